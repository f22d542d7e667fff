// Package reportpage is the page that shows the report of a session: every section of the report
// model, its tables to copy from, its charts at the pixels of the screen, and the ways to export it.
package reportpage

import (
	"strings"

	"fyne.io/fyne/v2"

	"velo/bench/report"
	"velo/ui/look"
	"velo/ui/table"
	"velo/ui/thread"
)

// Params is what the page is given.
type Params struct {
	Report     func(id string) (*report.Report, error)
	Thread     *thread.Thread
	ExportPDF  func(id string) // to the folder of the last time, or a chosen one
	Export     func(id string) // choose formats and folder
	GoSessions func()
	Redraw     func()
}

// Page is the page. Its methods are called on the UI thread.
type Page struct {
	Params
	View fyne.CanvasObject

	id      string // of the session that is shown, or read
	shown   bool   // the page is in view
	stale   bool   // the theme changed while it was not
	visible *report.Report

	empty, wait, failed, full fyne.CanvasObject
	failure                   *look.Paragraph
	title, subtitle           *look.Text
	status                    *look.Text
	pdf, export               *look.PushButton
	index                     *fyne.Container
	indexItems                []*look.Item
	body                      *fyne.Container
	scroll                    *look.Scroll
	sections                  []fyne.CanvasObject
	tables                    []placed
	charts                    []*chartView
}

// placed is a table and what it lies in, from the inside out, up to the content of the scroller.
type placed struct {
	table *table.Table
	in    []fyne.CanvasObject
}

func (p placed) y() float32 {
	y := p.table.Position().Y
	for _, o := range p.in {
		y += o.Position().Y
	}
	return y
}

// indexWidth is that of the list of sections, in units: the longest of their names is not cut. Where there is no
// room it gives way down to indexLeast.
const (
	indexWidth = 224
	indexLeast = 136
)

// New builds the page.
func New(p Params) *Page {
	g := &Page{Params: p}
	pad := func(o fyne.CanvasObject) fyne.CanvasObject {
		return look.Inset(look.Margin, look.Margin, look.Margin, look.Margin, o)
	}
	g.empty = pad(look.Empty("No report is open", "A report is computed from the stored events of a session. Run a suite, or pick a session.",
		look.MainButton("Go to sessions", p.GoSessions)))
	g.wait = pad(look.Empty("Reading the session", "Every number is computed from the stored events. A million of them take about two seconds."))
	g.failure = look.NewParagraph("")
	g.failed = pad(look.Rows(look.Gap, look.NewText("The report cannot be shown").Sized(look.Head).Bold(), g.failure,
		look.Line(look.Step, look.Button("Try again", func() { id := g.id; g.id = ""; g.Load(id) }), look.Button("Go to sessions", p.GoSessions))))

	g.title = look.NewText("").Sized(look.Head).Bold().Fixed(320)
	g.subtitle = look.NewText("").Sized(look.Small).In(look.Muted).Fixed(320)
	g.status = look.NewText("").Sized(look.Small)
	g.pdf = look.MainButton("Export PDF", g.ExportNow)
	g.export = look.Button("Export…", g.ExportAs)
	head := look.Fold(look.Gap, look.Rows(look.Half, g.title, g.subtitle), look.Line(look.Step, g.export, g.pdf))
	g.index = look.Rows(0)
	g.body = look.Rows(look.Margin)
	g.scroll = look.NewScroll(look.Inset(look.Gap, look.Margin, look.Margin, look.Margin, g.body))
	g.scroll.OnScroll = g.scrolled
	left := look.Inset(look.Step, 0, 0, look.Step, look.NewScroll(g.index))
	g.full = look.Frame(look.Rows(0, look.Inset(look.Gap, look.Margin, look.Gap, look.Margin, head), look.Rule()), nil, nil,
		look.Aside(indexWidth, indexLeast, left, g.scroll))

	g.View = look.Over(g.empty, g.wait, g.failed, g.full)
	g.only(g.empty)
	return g
}

func (g *Page) only(o fyne.CanvasObject) {
	for _, other := range []fyne.CanvasObject{g.empty, g.wait, g.failed, g.full} {
		if other != o {
			other.Hide()
		}
	}
	o.Show()
	g.View.Refresh()
}

// Session is the id of the session whose report is shown, or being read; empty = none.
func (g *Page) Session() string { return g.id }

// Ready tells whether a report is shown.
func (g *Page) Ready() bool { return g.visible != nil }

// ExportNow exports the report as PDF.
func (g *Page) ExportNow() {
	if g.Ready() {
		g.ExportPDF(g.id)
	}
}

// ExportAs asks for formats and folder and exports the report.
func (g *Page) ExportAs() {
	if g.Ready() {
		g.Export(g.id)
	}
}

// Load shows the report of a session.
func (g *Page) Load(id string) {
	if id == g.id && g.visible != nil {
		return
	}
	g.id, g.visible = id, nil
	if id == "" {
		g.only(g.empty)
		return
	}
	g.only(g.wait)
	g.Thread.Work(func() func() {
		r, err := g.Report(id)
		return func() {
			if g.id != id {
				return
			}
			if err != nil {
				g.failure.Set(err.Error())
				g.only(g.failed)
				return
			}
			g.show(r)
		}
	})
}

// Forget closes the report of a session that is deleted.
func (g *Page) Forget(id string) {
	if id == g.id {
		g.Load("")
	}
}

// Renamed shows the new title of a session.
func (g *Page) Renamed(id, title string) {
	if id == g.id {
		g.title.Set(title)
	}
}

// Shown tells that the page came into view.
func (g *Page) Shown() {
	g.shown = true
	if g.stale {
		g.stale = false
		g.redraw()
	}
}

// Hidden tells that the page is out of view.
func (g *Page) Hidden() { g.shown = false }

// Themed draws the charts in the colours of another theme.
func (g *Page) Themed() {
	if !g.shown {
		g.stale = true
		return
	}
	g.redraw()
}

func (g *Page) redraw() {
	for _, c := range g.charts {
		c.draw()
	}
}

func (g *Page) show(r *report.Report) {
	g.visible = r
	g.title.Set(r.Title)
	g.subtitle.Set(strings.TrimPrefix(r.Subtitle+" · "+r.Status, " · "))
	g.build(r)
	g.only(g.full)
	g.scroll.To(0)
	g.scroll.Settle()
	g.mark(0)
}

func (g *Page) scrolled(top, height float32) {
	for _, p := range g.tables {
		g.view(p, top, height)
	}
	at := 0
	for i, s := range g.sections {
		if s.Position().Y <= top+look.Margin+look.Gap {
			at = i
		}
	}
	g.mark(at)
}

func (g *Page) view(p placed, top, height float32) { p.table.SetView(top-p.y()-look.Gap, height) }

func (g *Page) mark(at int) {
	for i, item := range g.indexItems {
		item.Select(i == at)
	}
}

// Scroll scrolls to a place of the report, in units from its top.
func (g *Page) Scroll(y float32) { g.scroll.To(y) }
