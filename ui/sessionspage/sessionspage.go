// Package sessionspage is the page that lists the stored sessions: find one, open its report, rename
// it, hand it on as a file, delete it.
package sessionspage

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"

	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/table"
	"velo/ui/thread"
)

// Sessions is what the page needs to know of sessions.
type Sessions interface {
	Sessions() ([]console.Session, error)
	DeleteSession(id string) error
	RenameSession(id, title string) error
}

// Categories are the words that sessions are sorted by.
type Categories interface {
	Categories() ([]console.Category, error)
	SetCategory(sessionID, name string) error
}

// Params is what the page is given.
type Params struct {
	Sessions   Sessions
	Categories Categories
	Thread     *thread.Thread
	Report     func(id string)        // open the report of a session
	Import     func()                 // choose a file
	Save       func(id, title string) // choose where to write the session as a .velo file
	GoSuites   func()
	Deleted    func(id string)
	Renamed    func(id, title string)
	Say        func(look.Tone, string)
	// Offer tells that something can be undone until forget is called.
	Offer func(text, undo string, onUndo func()) (forget func())
	// Prompt asks for a text, and gives it to then when the user agrees.
	Prompt func(title, label, text, yes string, then func(string))
	// After calls f after a while, on any goroutine: time.AfterFunc but for tests.
	After func(d time.Duration, f func()) (cancel func() bool)
}

// undoFor is how long a deletion can be taken back.
const undoFor = 10 * time.Second

// Page is the page. Its methods are called on the UI thread.
type Page struct {
	Params
	View fyne.CanvasObject

	all      []console.Session
	shown    []console.Session // filtered and sorted
	loaded   bool
	deleting map[string]*deletion
	sortBy   int
	backward bool

	empty, failed, full          fyne.CanvasObject
	failure                      *look.Paragraph
	filter                       *look.Entry
	category                     *widget.Select
	categories                   []string // those that there are
	filling                      bool     // the picker is set by the program
	sort                         *look.PushButton
	count                        *look.Text
	open, rename, save, deleteIt *look.PushButton
	table                        *table.Table
	none                         *look.Text
	scroll                       *look.Scroll
}

// New builds the page.
func New(p Params) *Page {
	g := &Page{Params: p, deleting: map[string]*deletion{}, sortBy: 0, backward: true}
	pad := func(o fyne.CanvasObject) fyne.CanvasObject {
		return look.Inset(look.Margin, look.Margin, look.Margin, look.Margin, o)
	}
	g.empty = pad(look.Empty("No session is stored yet", "Every run is kept here with all of its raw events, and so is every session file (.velo) that you open.",
		look.MainButton("Go to suites", p.GoSuites), look.Button("Import session…", p.Import)))
	g.failure = look.NewParagraph("")
	g.failed = pad(look.Rows(look.Gap, look.NewText("The sessions cannot be listed").Sized(look.Head).Bold(), g.failure,
		look.Line(look.Step, look.Button("Try again", g.Reload))))

	g.filter = look.NewEntry("Filter by title, model, endpoint, suite or state")
	g.filter.OnChanged = func(string) { g.arrange() }
	g.filter.OnEscape = func() { g.filter.SetText("") }
	g.category = widget.NewSelect([]string{anyCategory}, func(string) {
		if !g.filling {
			g.arrange()
		}
	})
	g.sort = look.Button("Category…", g.askCategory)
	g.count = look.NewText("").Sized(look.Small).In(look.Muted)
	g.open = look.MainButton("Open report", func() { g.with(func(s console.Session) { p.Report(s.ID) }) })
	g.rename = look.Button("Rename…", g.askRename)
	g.save = look.Button("Export session…", func() { g.with(func(s console.Session) { p.Save(s.ID, s.Title) }) })
	g.deleteIt = look.Button("Delete", func() { g.with(func(s console.Session) { g.remove(s) }) })
	imp := look.Button("Import…", p.Import)

	columns := make([]table.Column, len(fields))
	for i, f := range fields {
		columns[i] = f.column
	}
	g.table = table.New(look.Small, columns...)
	g.table.OnSelect = func(int) { g.buttons() }
	g.table.OnOpen = func(row int) { p.Report(g.shown[row].ID) }
	g.table.OnHead = g.sortOn
	g.table.OnKey = func(e *fyne.KeyEvent) {
		switch e.Name {
		case fyne.KeyDelete:
			g.with(func(s console.Session) { g.remove(s) })
		case fyne.KeyF2:
			g.askRename()
		}
	}
	g.none = look.NewText("No session matches the filter.").In(look.Muted)
	g.none.Hide()
	g.scroll = look.NewScroll(look.Rows(look.Gap, g.table, g.none))
	g.scroll.OnScroll = func(top, height float32) { g.table.SetView(top, height) }
	g.table.OnShow = g.scroll.Reveal
	g.table.OnScroll = g.scroll.Scrolled

	head := look.Rows(look.Gap,
		look.Trailing(look.Gap, look.Line(look.Gap, look.NewText("Sessions").Sized(look.Head).Bold(), g.count), look.Line(look.Step, imp)),
		look.Fold(look.Gap, look.Trailing(look.Step, g.filter, look.Sized(168, 0, g.category)), look.Line(look.Step, g.deleteIt, g.sort, g.rename, g.save, g.open)))
	g.full = look.Inset(look.Gap, look.Margin, 0, look.Margin, look.Frame(look.Inset(0, 0, look.Step, 0, head), nil, nil, g.scroll))
	g.View = look.Over(g.empty, g.failed, g.full)
	g.only(g.full)
	g.buttons()
	return g
}

func (g *Page) only(o fyne.CanvasObject) {
	for _, other := range []fyne.CanvasObject{g.empty, g.failed, g.full} {
		if other != o {
			other.Hide()
		}
	}
	o.Show()
	g.View.Refresh()
}

// Shown brings the list up to date when the page comes into view.
func (g *Page) Shown() { g.Reload() }

// Reload reads the list again.
func (g *Page) Reload() {
	g.Thread.Work(func() func() {
		list, err := g.Sessions.Sessions()
		known, knownErr := g.Categories.Categories()
		return func() {
			if knownErr != nil {
				g.Say(look.OnRed, knownErr.Error())
			}
			g.takeCategories(known)
			if err != nil {
				g.failure.Set(err.Error())
				g.only(g.failed)
				return
			}
			g.all, g.loaded = list, true
			g.arrange()
		}
	})
}

// arrange filters and sorts what is shown, and keeps the selected session selected.
func (g *Page) arrange() {
	if !g.loaded {
		return
	}
	keep := ""
	if r := g.table.Selected(); r >= 0 && r < len(g.shown) {
		keep = g.shown[r].ID
	}
	words := strings.Fields(strings.ToLower(g.filter.Text))
	g.shown = g.shown[:0:0]
	total := 0
	for _, s := range g.all {
		if g.deleting[s.ID] != nil {
			continue
		}
		total++
		if g.inCategory(s) && matches(s, words) {
			g.shown = append(g.shown, s)
		}
	}
	less := fields[g.sortBy].less
	sort.SliceStable(g.shown, func(i, j int) bool {
		if g.backward {
			i, j = j, i
		}
		return less(&g.shown[i], &g.shown[j])
	})
	g.count.Set(fmt.Sprintf("%d", total))
	if len(g.shown) != total {
		g.count.Set(fmt.Sprintf("%d of %d", len(g.shown), total))
	}
	for i, f := range fields {
		title := f.column.Title
		if i == g.sortBy {
			title += map[bool]string{true: " ▼", false: " ▲"}[g.backward]
		}
		g.table.SetHead(i, title)
	}
	rows := g.shown
	g.table.SetRows(len(rows), func(r, c int) table.Cell { return fields[c].cell(&rows[r]) })
	if keep != "" {
		row := -1
		for i, s := range rows {
			if s.ID == keep {
				row = i
			}
		}
		if row != g.table.Selected() {
			g.table.Select(row)
		}
	}
	if len(rows) == 0 && total > 0 {
		g.none.Show()
	} else {
		g.none.Hide()
	}
	if total == 0 {
		g.only(g.empty)
	} else {
		g.only(g.full)
	}
	g.buttons()
	g.scroll.Settle()
}

func matches(s console.Session, words []string) bool {
	text := strings.ToLower(strings.Join([]string{s.Title, s.Model, s.Endpoint, s.Suite, s.Category, s.State, s.ID, s.Began.Local().Format("2006-01-02 15:04")}, " "))
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

func (g *Page) sortOn(col int) {
	if col == g.sortBy {
		g.backward = !g.backward
	} else {
		g.sortBy, g.backward = col, fields[col].column.Right
	}
	g.arrange()
}

// with calls f with the selected session.
func (g *Page) with(f func(console.Session)) {
	if r := g.table.Selected(); r >= 0 && r < len(g.shown) {
		f(g.shown[r])
	}
}

func (g *Page) buttons() {
	on := g.table.Selected() >= 0
	for _, b := range []*look.PushButton{g.open, g.rename, g.sort, g.save, g.deleteIt} {
		b.SetEnabled(on)
	}
}

func (g *Page) askRename() {
	g.with(func(s console.Session) {
		g.Prompt("Rename session", "Title", s.Title, "Rename", func(title string) {
			title = strings.TrimSpace(title)
			if title == "" || title == s.Title {
				return
			}
			g.Thread.Work(func() func() {
				err := g.Sessions.RenameSession(s.ID, title)
				return func() {
					if err != nil {
						g.Say(look.OnRed, err.Error())
						return
					}
					g.Params.Renamed(s.ID, title)
					g.Reload()
				}
			})
		})
	})
}

// Selected is the id of the selected session; empty = none.
func (g *Page) Selected() (id string) {
	g.with(func(s console.Session) { id = s.ID })
	return id
}

// Select selects a session, if it is shown.
func (g *Page) Select(id string) {
	for i, s := range g.shown {
		if s.ID == id {
			g.table.Select(i)
		}
	}
}
