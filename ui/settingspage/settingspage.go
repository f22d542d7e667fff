// Package settingspage is the page of what the user sets: endpoints with their models, how the window
// looks, limits of time, categories of sessions, and where the data is. What is set is saved at once.
package settingspage

import (
	"context"
	"errors"
	"strings"
	"time"

	"fyne.io/fyne/v2"

	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/thread"
)

// Endpoints is what the page needs to know of endpoints.
type Endpoints interface {
	Endpoints() []console.Endpoint
	SaveEndpoint(e console.Endpoint, key *string) (console.Endpoint, error)
	DeleteEndpoint(id string) error
	Models(ctx context.Context, endpointID string) ([]string, error)
	Check(ctx context.Context, e console.Endpoint, key string) (string, error)
}

// Params is what the page is given.
type Params struct {
	Endpoints    Endpoints
	Preferences  console.Preferences
	Thread       *thread.Thread
	Settings     func() console.Settings // of the window
	SetMode      func(look.Mode)
	SetTextSize  func(percent int)
	Needs        func() (width, height int) // pixels that the window takes at least, at the text size that is set
	ChooseFolder func(title string, then func(path string))
	ChooseFile   func(title string, then func(path string))
	ShowData     func() // opens the data folder
	GoEngine     func() // leads to the engine's page
	GoTelemetry  func() // leads to the settings of the receiver, where it is said how long recordings stay
	// Recordings says what recordings from telemetry take on disk and how long they stay, and whether one is being
	// written, so that it is another text soon. It may take as long as a disk.
	Recordings func() (text string, writing bool)
	Added      func(endpoint string) // an endpoint was added
	Focus      func(fyne.Focusable)
	Quit       func()
	Say        func(look.Tone, string)
	Ask        func(title, text, yes string, then func())
	Warn       func(title, text, yes string, then func()) // asks so that Enter cancels
	// Prompt asks for a text, and gives it to then when the user agrees.
	Prompt func(title, label, text, yes string, then func(string))
	// After calls f after a while, on any goroutine: time.AfterFunc but for tests.
	After func(d time.Duration, f func()) (cancel func() bool)
}

// The page's measures, in units.
const (
	listWidth  = 264
	fieldWidth = 148
	formWidth  = 2*wideWidth + look.Gap
	wideWidth  = 2*fieldWidth + look.Gap
)

// settleTime is how long a form rests before what it holds is saved.
const settleTime = 500 * time.Millisecond

// Page is the page. Its methods are called on the UI thread.
type Page struct {
	Params
	View fyne.CanvasObject

	sections  []*section
	current   *section
	endpoints []console.Endpoint
	items     []*look.Item // of the endpoints, in their order
	list      *fyne.Container
	side      *look.Scroll
	centre    *fyne.Container

	endpoint   endpointForm
	model      modelForm
	appearance appearance
	limits     limitsForm
	categories categories
	data       dataForm
	ctx        context.Context // of questions to servers; ends when the page goes out of view
	end        context.CancelFunc
}

// section is one of the things that can be seen at the right.
type section struct {
	item  *look.Item // nil for those of an endpoint
	view  fyne.CanvasObject
	shown func()
	flush func() // saves what was typed
}

// New builds the page.
func New(p Params) *Page {
	g := &Page{Params: p}
	g.ctx, g.end = context.WithCancel(context.Background())
	g.endpoint.build(g)
	g.model.build(g)
	g.appearance.build(g)
	g.limits.build(g)
	g.categories.build(g)
	g.data.build(g)
	column := look.Rows(0)
	add := func(title string, s *section) {
		if title != "" {
			s.item = look.NewItem(title, "", func() { g.show(s) })
			column.Add(s.item)
		}
		s.view.Hide()
		g.sections = append(g.sections, s)
	}
	add("Appearance", &g.appearance.section)
	add("Limits of time", &g.limits.section)
	add("Session categories", &g.categories.section)
	add("Data and backups", &g.data.section)
	add("", &g.endpoint.section)
	add("", &g.model.section)

	g.list = look.Rows(0)
	g.side = look.NewScroll(look.Rows(0, column,
		look.Inset(look.Gap, look.Gap, look.Step, look.Gap, look.NewText("Endpoints").Sized(look.Small).In(look.Muted)), g.list))
	left := look.Panel(look.OnSurface, look.Sized(listWidth, 0, look.Frame(
		look.Inset(look.Gap, look.Gap, look.Step, look.Gap, look.NewText("Settings").Sized(look.Head).Bold()),
		look.Inset(look.Step, look.Gap, look.Gap, look.Gap, look.Line(look.Step, look.Button("New endpoint", g.Add))),
		nil, g.side)))
	views := make([]fyne.CanvasObject, len(g.sections))
	for i, s := range g.sections {
		views[i] = s.view
	}
	g.centre = look.Over(views...)
	g.View = look.Frame(nil, nil, left, g.centre)
	g.show(&g.appearance.section)
	return g
}

// content puts a section's rows at the page's margins, in a scroller of their own.
func content(rows ...fyne.CanvasObject) *look.Scroll {
	return look.NewScroll(look.Inset(look.Gap, look.Margin, look.Margin, look.Margin, look.Rows(look.Gap, rows...)))
}

func heading(text string) *look.Text { return look.NewText(text).Sized(look.Head).Bold() }

func small(text string) *look.Paragraph {
	return look.NewParagraph(text).Sized(look.Small).In(look.Muted)
}

// show brings a section into view.
func (g *Page) show(s *section) {
	if g.current != nil && g.current != s {
		g.leave()
		g.current.view.Hide()
	}
	g.current = s
	for _, other := range g.sections {
		if other.item != nil {
			other.item.Select(other == s)
		}
	}
	g.mark()
	s.view.Show()
	g.centre.Refresh()
	if s.shown != nil {
		s.shown()
	}
}

// Flush returns what saves what was typed, to be called off the UI thread: for the end of the window.
func (g *Page) Flush() (keep func() error) {
	var jobs []func() error
	for _, s := range []*saver{&g.endpoint.saver, &g.model.saver, &g.limits.saver} {
		s.cancel()
		if s.dirty {
			s.dirty = false
			jobs = append(jobs, s.job())
		}
	}
	return func() error {
		var all []error
		for _, job := range jobs {
			all = append(all, job())
		}
		return errors.Join(all...)
	}
}

// leave saves what was typed in the section in view.
func (g *Page) leave() {
	if g.current != nil && g.current.flush != nil {
		g.current.flush()
	}
}

// mark shows which endpoint is in view.
func (g *Page) mark() {
	on := g.current == &g.endpoint.section || g.current == &g.model.section
	for i, item := range g.items {
		item.Select(on && g.endpoints[i].ID == g.endpoint.old.ID)
	}
}

// Shown brings the page up to date when it comes into view.
func (g *Page) Shown() {
	g.ctx, g.end = context.WithCancel(context.Background())
	g.Reload()
	if g.current.shown != nil {
		g.current.shown()
	}
}

// Hidden saves what was typed, and ends questions to servers.
func (g *Page) Hidden() {
	g.leave()
	g.end()
}

// Themed follows a change of theme or text size.
func (g *Page) Themed() { g.appearance.fill() }

// Changed brings up to date what the console says has changed, while the page is in view.
func (g *Page) Changed(what string) {
	switch what {
	case console.ChangedEndpoints:
		g.Reload()
	case console.ChangedCategories, console.ChangedSessions:
		if g.current == &g.categories.section {
			g.categories.reload()
		}
	case console.ChangedData:
		if g.current == &g.data.section {
			g.data.reload()
		}
	}
	if g.current == &g.data.section && (what == console.ChangedSessions || what == console.ChangedTelemetry) {
		g.data.weigh()
	}
}

// Reload reads the endpoints again. What is being typed stays.
func (g *Page) Reload() {
	g.Thread.Work(func() func() {
		list := g.Endpoints.Endpoints()
		return func() { g.take(list) }
	})
}

func (g *Page) take(list []console.Endpoint) {
	g.endpoints, g.items = list, g.items[:0]
	g.list.Objects = nil
	for _, e := range list {
		detail := e.URL
		switch {
		case e.BuiltIn:
			detail = "part of Velo"
		case e.Engine:
			detail = "Velo's own engine"
		}
		item := look.NewItem(nameOf(e), detail, func() { g.Edit(e.ID) })
		g.items = append(g.items, item)
		g.list.Add(item)
		if e.ID == g.endpoint.old.ID {
			g.endpoint.take(e)
		}
	}
	g.mark()
	g.side.Settle()
}

// nameOf is how an endpoint is called.
func nameOf(e console.Endpoint) string {
	if e.Name != "" {
		return e.Name
	}
	return strings.TrimPrefix(strings.TrimPrefix(e.URL, "https://"), "http://")
}

// Edit brings an endpoint into view.
func (g *Page) Edit(id string) {
	for _, e := range g.endpoints {
		if e.ID == id {
			g.leave()
			g.endpoint.fill(e)
			g.show(&g.endpoint.section)
			return
		}
	}
}

// Add asks for a new endpoint.
func (g *Page) Add() { g.Fill(console.Endpoint{}) }

// Fill brings an endpoint into view that is there, or, without an ID, a new one of which this much is known.
func (g *Page) Fill(e console.Endpoint) {
	g.leave()
	g.endpoint.fill(e)
	g.show(&g.endpoint.section)
	if e.ID == "" {
		g.Focus(g.endpoint.url)
	}
}

// OpenModel brings a model of an endpoint into view.
func (g *Page) OpenModel(e console.Endpoint, model string) {
	g.leave()
	g.model.fill(e, model)
	g.show(&g.model.section)
}

// status is the line that says whether what was typed is saved.
type status struct{ *look.Paragraph }

func newStatus() status { return status{look.NewParagraph("").Sized(look.Small).AtMost(3)} }

func (s status) saved() { s.SetIn("Saved.", look.Muted) }

func (s status) typed() { s.SetIn("Not saved yet.", look.Muted) }

func (s status) wrong(err error) { s.SetIn(sentence(err.Error()), look.Red) }

// sentence makes an error one: with a capital letter and a full stop.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.ContainsAny(s[len(s)-1:], ".?!") {
		s += "."
	}
	return s
}

// saver saves a form when the user rests, and at once when asked.
type saver struct {
	page    *Page
	save    func()              // and says what came of it
	job     func() func() error // what saves the form, to be called off the UI thread
	dirty   bool
	filling bool // the form is changed by the program
	pending func() bool
}

// touched is called when the user changed something.
func (s *saver) touched() {
	if s.filling {
		return
	}
	s.dirty = true
	s.cancel()
	s.pending = s.page.After(settleTime, func() { s.page.Thread.Do(s.flush) })
}

func (s *saver) cancel() {
	if s.pending != nil {
		s.pending()
		s.pending = nil
	}
}

// flush saves what is not saved.
func (s *saver) flush() {
	s.cancel()
	if s.dirty {
		s.dirty = false
		s.save()
	}
}

// byProgram changes the form without an intent of the user.
func (s *saver) byProgram(change func()) {
	s.filling = true
	change()
	s.filling = false
}
