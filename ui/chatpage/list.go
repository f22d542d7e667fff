package chatpage

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"

	"velo/ui/console"
	"velo/ui/look"
)

// chatList is the column with the chats.
type chatList struct {
	page    *Page
	view    fyne.CanvasObject
	search  *look.Entry
	list    *widget.List
	none    *look.Paragraph
	chats   []console.Chat
	settled bool // the list was read at least once
	asked   int  // counts readings, so that only the last one counts
	marking bool
}

func (l *chatList) build(p *Page) {
	l.page = p
	l.search = look.NewEntry("Search chats")
	l.search.OnChanged = func(string) { l.reload() }
	l.search.OnEscape = func() { l.search.SetText("") }
	l.search.OnKey = p.Key
	l.list = widget.NewList(func() int { return len(l.chats) }, newRow, func(i widget.ListItemID, o fyne.CanvasObject) {
		if i < len(l.chats) {
			o.(*fyne.Container).Objects[0].(*fyne.Container).Objects[0].(*look.Text).Set(l.chats[i].Title)
			o.(*fyne.Container).Objects[0].(*fyne.Container).Objects[1].(*look.Text).Set(l.detail(&l.chats[i]))
		}
	})
	l.list.HideSeparators = true
	l.list.OnSelected = func(i widget.ListItemID) {
		if i < len(l.chats) && !l.marking && l.chats[i].ID != l.page.open {
			l.page.Open(l.chats[i].ID)
		}
	}
	l.none = look.NewParagraph("").In(look.Muted).Sized(look.Small)
	top := look.Inset(look.Step, look.Step, look.Step, look.Gap, look.Rows(look.Step,
		look.Trailing(look.Step, look.NewText("Chats").Sized(look.Head).Bold(), look.Button("New chat", p.NewChat)), l.search))
	l.view = look.Panel(look.OnSurface, look.Frame(top, nil, nil, look.Over(l.list, look.Inset(look.Step, look.Gap, 0, look.Gap, look.Rows(0, l.none)))))
}

func newRow() fyne.CanvasObject {
	return look.Inset(look.Half, look.Step, look.Half, look.Gap, look.Rows(0, look.NewText("").Fixed(96), look.NewText("").Sized(look.Small).In(look.Muted).Fixed(96)))
}

func (l *chatList) detail(c *console.Chat) string {
	if c.Found != "" {
		return strings.Join(strings.Fields(c.Found), " ")
	}
	text := when(c.Changed, l.page.Now()) + " · " + plural(c.Turns, "turn")
	if c.Model != "" {
		text += " · " + c.Model
	}
	return text
}

// reload reads the list again.
func (l *chatList) reload() {
	l.asked++
	n, words := l.asked, l.search.Text
	l.page.Thread.Work(func() func() {
		list, err := l.page.Chats.List(words)
		return func() {
			if n == l.asked {
				l.fill(list, words, err)
			}
		}
	})
}

func (l *chatList) fill(list []console.Chat, words string, err error) {
	l.settled = true
	text := ""
	switch {
	case err != nil:
		text = "The chats cannot be listed: " + err.Error()
	case len(list) == 0 && strings.TrimSpace(words) != "":
		text = "No chat holds all of these words in its title, prompts or answers."
	}
	l.none.Set(text)
	l.chats = list
	l.list.Refresh()
	if l.page.open == "" && len(list) > 0 && words == "" && !l.page.sending && l.page.composer.empty() { // what is being written begins a chat of its own
		l.page.Open(list[0].ID)
	}
	l.mark(l.page.open)
	l.page.update()
}

// mark shows which chat is open.
func (l *chatList) mark(id string) {
	l.marking = true
	l.list.UnselectAll()
	for i := range l.chats {
		if l.chats[i].ID == id {
			l.list.Select(i)
		}
	}
	l.marking = false
}

// FocusSearch puts the caret into the search of chats.
func (g *Page) FocusSearch() {
	if g.columns.narrow {
		g.showChats(true)
	}
	g.focus(g.list.search)
}

// step opens the chat above or below the one that is open.
func (g *Page) step(by int) {
	for i := range g.list.chats {
		if g.list.chats[i].ID == g.open && i+by >= 0 && i+by < len(g.list.chats) {
			g.Open(g.list.chats[i+by].ID)
			return
		}
	}
}

// Next opens the chat below, Previous the one above.
func (g *Page) Next() { g.step(1) }

// Previous opens the chat above.
func (g *Page) Previous() { g.step(-1) }
