// Package suitespage is the page that lists the suites, shows what one asks, and starts it.
package suitespage

import (
	"fmt"

	"fyne.io/fyne/v2"

	"velo/bench/suite"
	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/table"
	"velo/ui/thread"
)

// Suites is what the page needs to know of suites.
type Suites interface {
	Suites() []console.Suite
	SuiteText(id string) ([]byte, error)
	DeleteSuite(id string) error
}

// Params is what the page is given.
type Params struct {
	Suites Suites
	Thread *thread.Thread
	Last   console.RunSpec                            // what was chosen the last time
	Start  func(console.RunSpec)                      // endpoint and model are filled in by the caller
	Reason func() string                              // why nothing can be started now; empty = it can
	Open   func()                                     // choose a file
	Add    func()                                     // add an endpoint
	First  func() bool                                // no endpoint was added yet
	Say    func(look.Tone, string)                    // tell of a failure
	Ask    func(title, text, yes string, then func()) // ask before something irreversible
}

// Page is the page. Its methods are called on the UI thread.
type Page struct {
	Params
	View fyne.CanvasObject

	suites   []console.Suite
	loaded   bool
	selected string
	parsed   *suite.Suite // of the selected one; nil: not read yet, or not readable

	list  *fyne.Container
	items []*look.Item
	side  *look.Scroll

	empty, detail fyne.CanvasObject
	first         *fyne.Container
	title         *look.Text
	facts         *look.Text
	description   *look.Paragraph
	steps         *table.Table
	remove        *look.PushButton
	body          *look.Scroll

	form form
	run  *look.PushButton
	why  *look.Paragraph
}

// listWidth is the width of the list of suites, in units, and listLeast that where there is no room.
const (
	listWidth = 288
	listLeast = 200
)

// New builds the page.
func New(p Params) *Page {
	g := &Page{Params: p}
	g.list = look.Rows(0)
	g.side = look.NewScroll(g.list)
	head := look.Inset(look.Gap, look.Gap, look.Step, look.Gap, look.Trailing(look.Step,
		look.NewText("Suites").Sized(look.Head).Bold(), look.Button("Open file…", p.Open)))
	hint := look.Inset(look.Step, look.Gap, look.Gap, look.Gap,
		look.NewParagraph("Drop a suite (.json) or a session (.velo) anywhere on the window.").Sized(look.Small).In(look.Muted))
	left := look.Panel(look.OnSurface, look.Frame(head, hint, nil, g.side))

	g.title = look.NewText("").Sized(look.Head).Bold().Fixed(320)
	g.facts = look.NewText("").In(look.Muted).Sized(look.Small).Fixed(320)
	g.description = look.NewParagraph("")
	g.remove = look.Button("Remove suite", g.askRemove)
	g.remove.Hide()
	g.run = look.MainButton("Run suite", g.start)
	g.why = look.NewParagraph("").In(look.Muted).Sized(look.Small)
	g.form.build(p.Last, g.formChanged)
	g.steps = table.New(look.Small,
		table.Column{Title: "Step", Right: true},
		table.Column{Title: "Kind", Least: 56},
		table.Column{Title: "What it sends", Stretch: true, Least: 240},
		table.Column{Title: "Context", Unit: "tok", Right: true},
		table.Column{Title: "Prompt", Unit: "tok", Right: true},
		table.Column{Title: "Output", Unit: "tok", Right: true, Least: 88},
	)
	g.first = look.Rows(0, look.Panel(look.OnSurface, look.Frame(nil, nil, look.Sized(3, 0, look.NewSurface(look.OnAccent)),
		look.Inset(look.Gap, look.Gap, look.Gap, look.Gap, look.Rows(look.Step,
			look.NewText("No endpoint was added yet").Bold(),
			look.NewParagraph("A run now measures the built-in scripted endpoint. It is not a real model: it sends tokens on a known schedule, "+
				"so that you see what Velo does and how exact it is on this machine. Its reports say so."),
			look.Line(look.Step, look.Button("Add endpoint…", p.Add)))))))

	top := look.Rows(look.Gap, g.first,
		look.Rows(look.Half, look.Trailing(look.Gap, g.title, g.remove), g.facts),
		g.description, look.Rule(), g.form.view,
		look.Trailing(look.Gap, g.why, look.Sized(136, 0, g.run)), look.Rule(), g.steps)
	g.body = look.NewScroll(look.Inset(look.Gap, look.Margin, look.Margin, look.Margin, top))
	g.body.OnScroll = func(y, h float32) { g.steps.SetView(y-g.steps.Position().Y-look.Gap, h) }
	g.steps.OnShow = func(y, h float32) { g.body.Reveal(g.steps.Position().Y+look.Gap+y, h) }
	g.steps.OnScroll = g.body.Scrolled

	g.detail = g.body
	g.empty = look.Inset(look.Margin, look.Margin, look.Margin, look.Margin,
		look.Empty("Reading suites", "The list of suites is being read."))
	g.View = look.Aside(listWidth, listLeast, left, look.Over(g.empty, g.detail))
	g.detail.Hide()
	return g
}

// Shown brings the page up to date when it comes into view.
func (g *Page) Shown() {
	g.Update()
	g.Reload()
}

// Reload reads the list of suites again.
func (g *Page) Reload() {
	g.Thread.Work(func() func() {
		list := g.Suites.Suites()
		return func() { g.fill(list) }
	})
}

func (g *Page) fill(list []console.Suite) {
	g.suites, g.loaded = list, true
	g.items = g.items[:0]
	g.list.Objects = nil
	heading := func(text string) {
		g.list.Add(look.Inset(look.Step, look.Gap, look.Half, look.Gap, look.NewText(text).Sized(look.Small).In(look.Muted)))
	}
	own := false
	for _, s := range list {
		own = own || !s.BuiltIn
	}
	section := ""
	for _, s := range list {
		if name := map[bool]string{true: "Built-in", false: "Your own"}[s.BuiltIn]; own && name != section {
			section = name
			heading(name)
		}
		id := s.ID
		item := look.NewItem(s.Title, fmt.Sprintf("%s · %s", plural(s.Steps, "step"), s.ID), func() { g.Select(id) })
		g.items = append(g.items, item)
		g.list.Add(item)
	}
	g.side.Settle()
	if len(list) == 0 {
		g.detail.Hide()
		g.empty.Show()
		return
	}
	g.empty.Hide()
	g.detail.Show()
	g.View.Refresh()
	if g.find(g.selected) == nil {
		g.selected = ""
		want := g.Last.SuiteID
		if g.find(want) == nil {
			want = list[0].ID
			for _, s := range list {
				if s.BuiltIn && (s.ID == "quick" || s.ID == "prebuilt-quick") {
					want = s.ID
				}
			}
		}
		g.Select(want)
		return
	}
	id := g.selected
	g.selected = ""
	g.Select(id)
}

func (g *Page) find(id string) *console.Suite {
	for i := range g.suites {
		if g.suites[i].ID == id {
			return &g.suites[i]
		}
	}
	return nil
}

// Selected is the id of the suite that is shown.
func (g *Page) Selected() string { return g.selected }

// Select shows a suite. One that is not in the list yet is shown as soon as it is.
func (g *Page) Select(id string) {
	s := g.find(id)
	if s == nil {
		g.Last.SuiteID, g.selected = id, ""
		return
	}
	if id == g.selected {
		return
	}
	g.selected = id
	for i, item := range g.items {
		item.Select(g.suites[i].ID == id)
	}
	g.title.Set(s.Title)
	g.description.Set(s.Description)
	if s.Description == "" {
		g.description.Hide()
	} else {
		g.description.Show()
	}
	g.parsed = nil
	g.steps.SetRows(0, nil)
	g.showFacts(s)
	if s.BuiltIn {
		g.remove.Hide()
	} else {
		g.remove.Show()
	}
	g.Update()
	g.body.To(0)
	g.body.Settle()
	g.Thread.Work(func() func() {
		text, err := g.Suites.SuiteText(id)
		var parsed *suite.Suite
		if err == nil {
			parsed, err = suite.Parse(id, text)
		}
		return func() {
			if g.selected != id {
				return
			}
			if err != nil {
				g.Say(look.OnRed, err.Error())
				return
			}
			g.showSteps(parsed)
		}
	})
}

func (g *Page) showFacts(s *console.Suite) {
	where := "built-in"
	if !s.BuiltIn {
		where = "from " + s.Path
		if s.Path == "" {
			where = "your own"
		}
	}
	g.facts.Set(fmt.Sprintf("%s · %s", plural(s.Steps, "step"), where))
}

func (g *Page) showSteps(s *suite.Suite) {
	g.parsed = s
	g.form.suggest(s)
	rows := describe(s)
	g.steps.SetRows(len(rows), func(r, c int) table.Cell { return rows[r][c] })
	g.Update()
	g.body.Settle()
}

// Update shows whether and with what a run can be started.
func (g *Page) Update() {
	if g.First() {
		g.first.Show()
	} else {
		g.first.Hide()
	}
	reason, ink := g.reason()
	if reason == "" {
		reason, ink = g.sends(), look.Muted
		g.run.Enable()
	} else {
		g.run.Disable()
	}
	g.why.SetIn(reason, ink)
	g.body.Settle()
}

func (g *Page) formChanged() {
	if g.run != nil {
		g.Update()
	}
}

// reason says why the suite cannot be run.
func (g *Page) reason() (string, look.Ink) {
	if g.selected == "" {
		return "Pick a suite first.", look.Muted
	}
	if _, err := g.form.spec(); err != nil {
		return err.Error(), look.Red
	}
	return g.Reason(), look.Amber
}

func (g *Page) sends() string {
	if g.parsed == nil {
		return ""
	}
	spec, err := g.form.spec()
	if err != nil {
		return ""
	}
	return fmt.Sprintf("Sends %s, and warm-up requests before each measured step.", plural(g.parsed.Requests(spec.Workers, spec.Repeat), "request"))
}

// Start runs the suite that is shown, as the button does.
func (g *Page) Start() { g.start() }

func (g *Page) start() {
	if reason, _ := g.reason(); reason != "" {
		g.Say(look.OnAmber, "The run was not started: "+reason)
		return
	}
	spec, _ := g.form.spec()
	spec.SuiteID = g.selected
	g.Last = spec
	g.Params.Start(spec)
}

func (g *Page) askRemove() {
	s := g.find(g.selected)
	if s == nil || s.BuiltIn {
		return
	}
	id, title := s.ID, s.Title
	g.Ask("Remove suite", fmt.Sprintf("Remove “%s” from the list? Sessions that ran it keep their copy, and the file stays where it is.", title), "Remove suite", func() {
		g.Thread.Work(func() func() {
			err := g.Suites.DeleteSuite(id)
			return func() {
				if err != nil {
					g.Say(look.OnRed, err.Error())
				}
				g.Reload()
			}
		})
	})
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
