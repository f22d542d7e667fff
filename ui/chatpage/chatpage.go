// Package chatpage is the page that converses with a model: the list of chats, the conversation as it
// streams, the field for the next message, and beside them what was measured of it.
package chatpage

import (
	"sync"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"

	"velo/ui/console"
	"velo/ui/livepanel"
	"velo/ui/look"
	"velo/ui/thread"
)

// Params is what the page is given.
type Params struct {
	Chats       console.Chats
	Thread      *thread.Thread
	Chosen      func() (e console.Endpoint, model string) // of the top bar: what a new chat takes
	ChooseImage func(then func(path string))
	Clipboard   func() (data []byte, kind string, err error) // the picture on the clipboard; nil: there is no way to it
	Copy        func(text string)
	Save        func(write func(dir string) (file string, err error)) // asks for a folder where none is known
	Say         func(look.Tone, string)
	Ask         func(title, text, yes string, then func())
	Prompt      func(title, label, text, yes string, then func(string))
	Focus       func(fyne.Focusable)
	Key         func(*fyne.KeyEvent) // a key that is not for a text
	Redraw      func()               // ask for a drawing soon
	Changed     func()               // what can be done changed
	Now         func() time.Time     // nil: time.Now
}

// Page is the page. Prepare may be called on any goroutine, everything else on the UI thread.
type Page struct {
	Params
	View fyne.CanvasObject

	list     chatList
	composer composer
	form     form
	panel    *livepanel.Panel

	title, place       *look.Text
	use, parameters    *look.PushButton
	fold               *look.PushButton // where there is no room for list and panel: changes one for the other
	columns            *columns
	words              *transcript
	scroll             *look.Scroll
	none               fyne.CanvasObject // there is no chat: the first message begins one
	fresh              fyne.CanvasObject // there is no turn yet
	failed             *look.Paragraph   // why the chat cannot be shown
	broken             fyne.CanvasObject
	whole              *fyne.Container
	head, top          *fyne.Container
	conversation, body *fyne.Container

	chat    console.Conversation
	open    string // the chat that is shown, or will be when it has been read; empty: none
	loaded  bool   // chat is that chat
	opened  map[string]bool
	scope   string // the turn whose statistics are shown; empty: the last one
	follow  bool   // the end stays in view
	sending bool
	active  bool // a turn goes on
	toText  bool // the focus goes to the text as soon as the turn is in it
	ending  bool // the program says that it has ended, the chat was not read since

	layouter layouter
	laying   bool // a layout is under way
	again    bool // and is out of date
	width    float32
	reading  int // counts readings of chats, so that only the last one counts

	wanted wanted
	live   live
}

// wanted tells the goroutine that prepares which turn is in view, and how wide.
type wanted struct {
	mu    sync.Mutex
	chat  string
	turn  string // that runs, as it was laid out
	width float32
	open  map[string]bool
}

func (w *wanted) get() (chat, turn string, width float32, open map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.chat, w.turn, w.width, w.open
}

func (w *wanted) set(chat, turn string, width float32, open map[string]bool) {
	kept := make(map[string]bool, len(open))
	for k, v := range open {
		kept[k] = v
	}
	w.mu.Lock()
	w.chat, w.turn, w.width, w.open = chat, turn, width, kept
	w.mu.Unlock()
}

// The widths of the columns beside the conversation, in units.
const (
	listWidth  = 208
	panelWidth = 360
	mostWide   = 880 // of a conversation: longer lines are hard to read
)

// New builds the page.
func New(p Params) *Page {
	g := &Page{Params: p, opened: map[string]bool{}, follow: true}
	if g.Now == nil {
		g.Now = time.Now
	}
	g.layouter.do = actions{Toggle: g.toggle, Version: g.version, Edit: g.edit, Again: g.sendAgain, Copy: g.copyTurn, Text: g.copyText, Stats: g.showStatistics}
	g.panel = livepanel.New(livepanel.Params{Thread: p.Thread, Copy: p.Copy, Say: p.Say, Save: p.Save, Redraw: p.Redraw, Scope: g.setScope})
	g.list.build(g)
	g.composer.build(g)
	g.form.build(g)

	g.title = look.NewText("").Sized(look.Head).Bold().Fixed(120)
	g.place = look.NewText("").Sized(look.Small).In(look.Muted).Fixed(120)
	g.use = quiet(choice{"Use chosen model", g.useChosen})
	g.use.Hide()
	g.parameters = quiet(choice{"Parameters", g.toggleForm})
	g.fold = quiet(choice{"Chats", func() { g.showChats(!g.columns.chats) }})
	g.fold.Hide()
	g.head = look.Rows(0,
		look.Trailing(look.Step, g.title, look.Line(0, quiet(choice{"Rename…", g.Rename}), quiet(choice{"Delete…", g.Delete}))),
		look.Fold(look.Step, g.place, look.Fold(0, g.use, look.Line(0, g.fold, quiet(choice{"Copy chat", g.CopyChat}), g.parameters))))

	g.words = newTranscript()
	g.words.OnScroll = func(dy float32) { g.follow = false; g.scroll.To(g.scroll.Offset() + dy); g.noticeEnd() }
	g.words.OnEnds = func(end bool) {
		g.follow = end
		if end {
			g.toEnd()
		} else {
			g.scroll.To(0)
		}
	}
	g.words.OnCopy = func(text string) {
		if text == "" {
			g.CopyChat()
			return
		}
		g.Copy(text)
	}
	g.words.OnKey = func(e *fyne.KeyEvent) {
		if e.Name == fyne.KeyEscape {
			g.escape()
			return
		}
		if p.Key != nil {
			p.Key(e)
		}
	}
	g.words.OnRune = func(c rune) { g.Type(c) }
	g.scroll = look.NewScroll(container.New(&margins{side: look.Gap, edge: look.Step, most: mostWide, resized: g.resized}, g.words))
	g.scroll.OnScroll = func(top, height float32) {
		resized := height != g.words.view
		g.words.setView(top, height)
		switch {
		case !resized:
			g.noticeEnd()
		case g.follow:
			g.toEnd()
		}
	}
	g.fresh = look.Inset(look.Margin, look.Gap, look.Gap, look.Gap, look.Empty("Ask something",
		"The answer streams in here, with its reasoning apart. Beside it you see what was measured: rate, time to first token, gaps."))
	g.failed = look.NewParagraph("").In(look.Red)
	g.broken = look.Inset(look.Margin, look.Gap, look.Gap, look.Gap, look.Rows(look.Gap, g.failed,
		look.Line(look.Step, look.Button("Read again", func() { g.Open(g.open) }))))
	g.none = look.Inset(look.Margin, look.Gap, look.Gap, look.Gap, look.Empty("Ask something",
		"Your first message begins a chat with the endpoint and the model of the bar above. Chats measure while you converse: each turn keeps its raw events, like any session."))
	g.body = look.Over(g.scroll, g.fresh, g.none, g.broken, g.form.view)
	g.top = look.Rows(0, look.Inset(look.Step, look.Step, look.Half, look.Gap, g.head), look.Rule())
	g.conversation = look.Frame(g.top, g.composer.view, nil, g.body)
	g.columns = &columns{folded: func(narrow bool) { showIf(g.fold, narrow); g.head.Refresh() }}
	// Hidden until it is known whether there is a chat, the conversation has its size nevertheless.
	g.whole = container.New(g.columns, g.list.view, look.Rule(), look.Over(g.conversation), look.Rule(), g.panel.View)
	g.View = g.whole
	g.conversation.Hide()
	g.broken.Hide()
	g.form.view.Hide()
	g.none.Hide()
	g.update()
	return g
}

// Shown brings the page up to date when it comes into view.
func (g *Page) Shown() {
	g.Reload()
	g.Redraw()
	if g.writable() {
		g.focus(g.composer.entry)
	}
}

// Themed follows a change of the palette.
func (g *Page) Themed() {
	g.words.Refresh()
	g.panel.Themed()
	g.Redraw()
}

// Reload reads the list of chats, and the one that is shown, again.
func (g *Page) Reload() {
	g.list.reload()
	if g.open != "" {
		g.read(g.open)
	}
}

// Selected is the ID of the chat that is shown.
func (g *Page) Selected() string { return g.open }

// Active tells whether a turn goes on.
func (g *Page) Active() bool { return g.active }

// HasChat tells whether a chat is shown.
func (g *Page) HasChat() bool { return g.loaded }

// writable tells whether a message can be written: to the chat that is shown, or to the one that it begins.
func (g *Page) writable() bool { return g.loaded || g.open == "" && g.list.settled }

// CanSend tells whether there is something that can be sent now.
func (g *Page) CanSend() bool { return !g.active && !g.sending && g.writable() && !g.composer.empty() }

// Type writes a letter that nothing else has a use for into the field for messages, and tells whether there
// is one.
func (g *Page) Type(c rune) bool {
	if !g.writable() || !g.composer.view.Visible() {
		return false
	}
	g.focus(g.composer.entry)
	g.composer.entry.TypedRune(c)
	return true
}

// CanRepeat tells whether there is a question that can be asked again.
func (g *Page) CanRepeat() bool {
	return !g.active && !g.sending && g.loaded && len(g.chat.Turns) > 0
}

// Open shows a chat.
func (g *Page) Open(id string) {
	if id == "" {
		return
	}
	if id != g.open {
		g.open, g.loaded, g.scope, g.follow = id, false, "", true
		g.composer.clear()
		g.form.view.Hide()
		g.words.set(nil)
		g.showChats(false)
	}
	g.list.mark(id)
	g.read(id)
}

// showChats shows the list of chats instead of the panel, where there is no room for both.
func (g *Page) showChats(on bool) {
	if g.columns.chats != on {
		g.columns.chats = on
		text := "Chats"
		if on {
			text = "Figures"
		}
		g.fold.SetText(text)
		g.whole.Refresh()
	}
}

// read reads a chat again.
func (g *Page) read(id string) {
	g.reading++
	n := g.reading
	g.Thread.Work(func() func() {
		c, err := g.Chats.Chat(id)
		return func() {
			if n == g.reading && id == g.open {
				g.take(c, err)
			}
		}
	})
}

func (g *Page) take(c console.Conversation, err error) {
	showIf(g.broken, err != nil)
	if err != nil {
		g.loaded = false
		if g.ending {
			g.ended()
		}
		g.failed.Set(err.Error())
		showIf(g.scroll, false)
		showIf(g.fresh, false)
		g.update()
		return
	}
	before := len(g.chat.Turns)
	same := g.loaded && g.chat.ID == c.ID
	g.chat, g.loaded = c, true
	if !same || len(c.Turns) > before {
		g.follow = true
	}
	var calls []console.ChatCall
	if n := len(c.Turns); n > 0 && c.Turns[n-1].Status != "" {
		calls = c.Turns[n-1].Calls
	}
	g.composer.setCalls(calls)
	g.title.Set(c.Title)
	g.tellPlace()
	g.form.show(c.Parameters)
	g.relayout()
	g.statistics()
	if n := len(c.Turns); g.ending && (n == 0 || c.Turns[n-1].Status != "") {
		g.ended()
	}
	g.update()
	if !same {
		g.focus(g.composer.entry)
	}
}

func (g *Page) tellPlace() {
	text := g.chat.Endpoint
	if g.chat.Model != "" {
		text = g.chat.Model + " · " + text
	}
	g.place.Set(text)
	e, model := g.Chosen()
	showIf(g.use, g.loaded && e.ID != "" && e.Down == "" && (e.ID != g.chat.EndpointID || model != "" && model != g.chat.Model))
	g.head.Refresh()
}

// ChosenChanged is to be called when the top bar's endpoint or model changed.
func (g *Page) ChosenChanged() { g.tellPlace() }

// update brings what can be done up to date.
func (g *Page) update() {
	if g.View == nil {
		return // it is still being built
	}
	none := g.open == "" && g.list.settled
	appears := none && !g.none.Visible()
	moved := g.top.Visible() != (g.open != "")
	showIf(g.conversation, g.open != "" || none)
	showIf(g.top, g.open != "")
	showIf(g.none, none)
	showIf(g.fresh, g.loaded && len(g.chat.Turns) == 0 && !g.form.view.Visible())
	showIf(g.scroll, g.loaded && len(g.chat.Turns) > 0 && !g.form.view.Visible())
	if g.composer.view.Visible() == g.form.view.Visible() {
		showIf(g.composer.view, !g.form.view.Visible())
		moved = true
	}
	if moved {
		g.conversation.Refresh()
	}
	c := &g.composer
	showIf(c.send, !g.active)
	showIf(c.stop, g.active)
	c.send.SetEnabled(g.CanSend())
	hint := askHere
	if g.active {
		hint = stopHere
	}
	if c.entry.PlaceHolder != hint {
		c.entry.SetPlaceHolder(hint)
	}
	if appears {
		g.focus(c.entry)
	}
	if g.Changed != nil {
		g.Changed()
	}
}

// settle lays the page out again after the field for messages changed its height.
func (g *Page) settle() {
	if g.conversation != nil {
		g.conversation.Refresh()
		if g.follow {
			g.toEnd()
		}
	}
	g.update()
}

// noticeEnd follows the end again when the user has scrolled to it.
func (g *Page) noticeEnd() {
	g.follow = g.words.top+g.words.view >= g.words.height-8
}

func (g *Page) toEnd() { g.scroll.To(fyne.Max(0, g.words.height+look.Gap-g.scroll.Size().Height)) }

// resized notes how wide the conversation is; a change lays it out again.
func (g *Page) resized(width float32) {
	if width != g.width && width > 0 {
		g.width = width
		g.relayout()
	}
}

// relayout lays the turns out again, off the UI thread.
func (g *Page) relayout() {
	if !g.loaded || g.width <= 0 {
		return
	}
	if g.laying {
		g.again = true
		return
	}
	g.laying, g.again = true, false
	turns := g.chat.Turns
	opened := make(map[string]bool, len(g.opened))
	for k, v := range g.opened {
		opened[k] = v
	}
	o := options{model: g.chat.Model, open: opened, now: g.Now(), width: g.width, shown: g.scope}
	if o.model == "" {
		o.model = "Model"
	}
	id := g.chat.ID
	g.Thread.Work(func() func() {
		views := make([]*turnView, len(turns))
		for i := range turns {
			views[i] = g.layouter.turn(&turns[i], o)
		}
		return func() {
			g.laying = false
			if id == g.chat.ID && g.loaded {
				g.lay(views)
			}
			if g.again {
				g.relayout()
			}
		}
	})
}

// lay shows what was laid out.
func (g *Page) lay(views []*turnView) {
	running := ""
	if n := len(views); n > 0 && views[n-1].answer >= 0 {
		running = views[n-1].id
	}
	g.wanted.set(g.chat.ID, running, g.width, g.opened)
	if running != "" {
		g.live.put(views[len(views)-1])
	}
	follow := g.follow
	g.words.set(views)
	g.update()
	g.settleScroll(follow)
	if running != "" && g.toText {
		// A caret that blinks paints the window all the time. While the answer comes the focus is on the
		// text; what is typed goes on to the field.
		g.toText = false
		if g.composer.entry.Text == "" {
			g.focus(g.words)
		}
	}
	g.Redraw()
}

func (g *Page) settleScroll(follow bool) {
	g.scroll.Settle()
	if follow {
		g.toEnd()
		g.follow = true
	}
}

// toggle opens or closes a part of a turn.
func (g *Page) toggle(turn, what string) {
	k := key(turn, what)
	g.opened[k] = !g.opened[k]
	g.follow = false
	g.relayout()
}

// focus moves the focus, while the page is in view.
func (g *Page) focus(o fyne.Focusable) {
	if g.Focus != nil && g.View.Visible() {
		g.Focus(o)
	}
}
