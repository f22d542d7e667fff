// Package startpage is the page that a new user sees: the servers that run on this machine, one press
// away from a number, the scripted endpoint where there is none, and what was opened last.
package startpage

import (
	"context"
	"fmt"
	"strings"

	"fyne.io/fyne/v2"

	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/thread"
)

// Recent is a file that was opened before.
type Recent struct {
	Path    string
	Missing bool // it is not there any more
}

// Params is what the page is given.
type Params struct {
	Thread   *thread.Thread
	Find     func(ctx context.Context) []console.Server // takes seconds
	Measure  func(console.Server)                       // makes it the endpoint and measures it
	Use      func(console.Server)                       // makes it the endpoint
	Key      func(console.Server)                       // asks for its key
	Scripted func()                                     // measures the scripted endpoint
	Add      func()                                     // asks for an address
	Engine   func()                                     // leads to Velo's own engine
	Open     func()                                     // asks for a file
	Recent   func() []Recent                            // takes as long as a disk
	OpenPath func(path string)
	Reason   func() string // why nothing can be measured now; empty = it can
}

// Page is the page. Its methods are called on the UI thread.
type Page struct {
	Params
	View fyne.CanvasObject

	state    *look.Lamp
	again    *look.PushButton
	servers  *fyne.Container
	scripts  *fyne.Container // the offer of the scripted endpoint
	measures []*look.PushButton
	recent   *fyne.Container
	why      *look.Paragraph
	body     *look.Scroll

	found  []console.Server
	search context.CancelFunc // of the search that goes on; nil = none does
	number int                // of searches
	done   bool               // one has ended
}

// rowWidth is what a row may be wide: further apart, name and button are hard to match.
const rowWidth = 880

// New builds the page.
func New(p Params) *Page {
	g := &Page{Params: p}
	g.state = look.NewLamp(0)
	g.again = look.Button("Search again", g.Search)
	g.servers = look.Rows(0)
	g.why = look.NewParagraph("").In(look.Amber)
	g.why.Hide()
	g.scripts = look.Rows(0)
	g.recent = look.Rows(0)

	head := look.Rows(look.Half,
		look.NewText("Measure a server on this machine").Sized(look.Head).Bold(),
		look.NewParagraph("Velo asks the usual ports of this machine. Measure runs the quick sample: a few short requests.").In(look.Muted))
	other := look.Flow(look.Gap, 272,
		way("Another machine", "A server that is reached by an address, with or without a key.", look.Button("Add endpoint…", p.Add)),
		way("Velo's own engine", "Choose a model folder or a .gguf file and serve it from this program.", look.Button("Choose a model…", p.Engine)),
		way("A file", "A suite (.json) or a session (.velo). Dropping it anywhere does the same.", look.Button("Open file…", p.Open)))
	column := look.Rows(look.Gap, head,
		look.Fold(look.Gap, g.state.Container, g.again), g.why,
		look.Rows(0, look.Rule(), g.servers, g.scripts),
		look.Sized(0, look.Step, look.NewSurface(look.OnBackground)),
		look.NewText("Or").Sized(look.Head).Bold(), other, g.recent)
	g.body = look.NewScroll(look.Inset(look.Margin, look.Margin, look.Margin, look.Margin, narrow(rowWidth, column)))
	g.View = g.body
	g.Update()
	return g
}

// way is another way to begin.
func way(title, text string, b *look.PushButton) fyne.CanvasObject {
	return look.Rows(look.Step, look.NewText(title).Bold(), look.Sized(0, 56, look.NewParagraph(text).In(look.Muted)), look.Line(0, b))
}

// Shown searches when the page comes into view.
func (g *Page) Shown() {
	g.Search()
	g.Thread.Work(func() func() {
		list := g.Recent()
		return func() { g.showRecent(list) }
	})
}

// Hidden calls a search off.
func (g *Page) Hidden() {
	if g.search != nil {
		g.search()
	}
}

// Search looks for servers.
func (g *Page) Search() {
	if g.search != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	g.search = cancel
	g.number++
	g.again.Disable()
	g.state.Set(look.OnAccent, "Asking the ports of this machine …")
	g.Thread.Work(func() func() {
		found := g.Find(ctx)
		off := ctx.Err() != nil
		return func() {
			cancel()
			g.search = nil
			g.again.Enable()
			if off { // what it found is not all there is
				g.Update()
				return
			}
			g.found, g.done = found, true
			g.Update()
		}
	})
}

// Update brings up to date what depends on the run and on the search.
func (g *Page) Update() {
	why := ""
	if g.Reason != nil {
		why = g.Reason()
	}
	g.why.Set(why)
	g.measures = nil
	rows := make([]fyne.CanvasObject, 0, 2*len(g.found))
	for i, s := range g.found {
		rows = append(rows, g.row(s, i == 0), look.Rule())
	}
	g.servers.Objects = rows
	switch {
	case g.search != nil:
	case !g.done:
		g.state.Set(look.OnFaint, "No search was made yet.")
	case len(g.found) == 0:
		g.state.Set(look.OnAmber, "No server answers on the usual ports of this machine (8000, 8080, 30000, 1234, 11434).")
	case len(g.found) == 1:
		g.state.Set(look.OnGreen, "One server answers.")
	default:
		g.state.Set(look.OnGreen, fmt.Sprintf("%d servers answer.", len(g.found)))
	}
	g.scripts.Objects = []fyne.CanvasObject{g.scriptedRow(), look.Rule()}
	for _, b := range g.measures {
		b.SetEnabled(why == "" && !b.Disabled())
	}
	show(g.why, why != "")
	g.body.Settle()
	g.body.Refresh()
}

func show(o fyne.CanvasObject, on bool) {
	if on {
		o.Show()
	} else {
		o.Hide()
	}
}

// row is a server that was found; the first one has the button that this page is for.
func (g *Page) row(s console.Server, first bool) fyne.CanvasObject {
	name := s.Kind
	if s.Version != "" {
		name += " " + s.Version
	}
	detail := Address(s)
	tone := look.OnGreen
	switch {
	case s.Down != "":
		tone, detail = look.OnAmber, detail+" · "+s.Down
	case s.Locked && s.EndpointID == "":
		tone, detail = look.OnAmber, detail+" · It wants a key."
	case len(s.Models) == 1:
		detail += " · " + s.Models[0]
	case len(s.Models) > 1:
		detail += fmt.Sprintf(" · %d models: %s", len(s.Models), strings.Join(s.Models, ", "))
	}
	if s.EndpointID != "" {
		detail += " · among the endpoints"
	}
	var buttons []fyne.CanvasObject
	if s.Locked && s.EndpointID == "" {
		buttons = append(buttons, look.Button("Enter key…", func() { g.Key(s) }))
	} else {
		use := look.Button("Use", func() { g.Use(s) })
		measure := look.Button("Measure", func() { g.Measure(s) })
		if first {
			measure = look.MainButton("Measure", func() { g.Measure(s) })
		}
		if s.Down != "" {
			measure.Disable()
		}
		g.measures = append(g.measures, measure)
		buttons = append(buttons, use, measure)
	}
	return line(tone, name, detail, buttons...)
}

func (g *Page) scriptedRow() fyne.CanvasObject {
	b := look.Button("Measure", g.Scripted)
	if g.done && len(g.found) == 0 && g.search == nil {
		b = look.MainButton("Measure", g.Scripted)
	}
	g.measures = append(g.measures, b)
	return line(look.OnFaint, "Scripted endpoint", "Part of this program, and no real model: it sends tokens on a known schedule. Its reports say so.", b)
}

// line is a row: what it is, what is known of it, what can be done.
func line(tone look.Tone, name, detail string, buttons ...fyne.CanvasObject) fyne.CanvasObject {
	words := look.Rows(0, look.NewText(name).Bold().Fixed(240), look.NewText(detail).Sized(look.Small).In(look.Muted).Fixed(240))
	return look.Inset(look.Step, 0, look.Step, 0, look.Frame(nil, nil, look.Sized(look.Gap, 0, look.Line(0, look.Dot(tone))),
		look.Trailing(look.Gap, words, look.Line(look.Step, buttons...))))
}

// Address is that of a server without what all have.
func Address(s console.Server) string {
	return strings.TrimSuffix(strings.TrimPrefix(s.URL, "http://"), "/v1")
}

func (g *Page) showRecent(list []Recent) {
	g.recent.Objects = nil
	if len(list) > 0 {
		g.recent.Add(look.Inset(look.Step, 0, look.Step, 0, look.NewText("Opened last").Sized(look.Head).Bold()))
	}
	for _, r := range list {
		b := look.Button("Open", func() { g.OpenPath(r.Path) })
		detail := folder(r.Path)
		if r.Missing {
			b.Disable()
			detail += " · not there any more"
		}
		g.recent.Add(line(look.OnFaint, base(r.Path), detail, b))
		g.recent.Add(look.Rule())
	}
	g.body.Settle()
	g.body.Refresh()
}

// base and folder cut a path at its last separator, whichever the system's is.
func base(path string) string   { return path[strings.LastIndexAny(path, `/\`)+1:] }
func folder(path string) string { return path[:max(strings.LastIndexAny(path, `/\`), 0)] }
