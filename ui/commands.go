package ui

import (
	"path/filepath"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"

	"velo/ui/console"
	"velo/ui/look"
)

// command is one thing that the window can do: the menu, the shortcuts, the palette, the sheet of
// shortcuts and the table in the manual all come from one list of them.
type command struct {
	id, menu, title string
	key             fyne.KeyName
	modifier        fyne.KeyModifier
	letter          rune // does it too, while no text has the focus
	run             func()
	can             func() bool // nil: always
	checked         func() bool // nil: not a choice
	divides         bool        // a line above it in the menu
	quits           bool

	item *fyne.MenuItem
}

// The menus, from left to right.
var menus = []string{"File", "Chat", "Run", "Endpoint", "Engine", "Telemetry", "View", "Help"}

const ctrl = fyne.KeyModifierControl

func (s *Shell) commandTable() []*command {
	ready := func() bool { return s.report.Ready() && s.current == ReportPage }
	active := func() bool { return s.status.active }
	idle := func() bool { return !s.status.active }
	onChat := func(can func() bool) func() bool { return func() bool { return s.current == ChatPage && can() } }
	mode := func(m look.Mode) (func(), func() bool) {
		return func() { s.SetMode(m) }, func() bool {
			return s.theme.Mode == m || s.theme.Mode == "" && m == look.Auto
		}
	}
	auto, isAuto := mode(look.Auto)
	dark, isDark := mode(look.AlwaysDark)
	lite, isLite := mode(look.AlwaysLite)
	list := []*command{
		{id: "file.open", menu: "File", title: "Open…", key: fyne.KeyO, modifier: ctrl, run: s.chooseFile},
		{id: "export.pdf", menu: "File", title: "Export PDF", key: fyne.KeyE, modifier: ctrl, run: s.report.ExportNow, can: ready, divides: true},
		{id: "export", menu: "File", title: "Export…", key: fyne.KeyE, modifier: ctrl | fyne.KeyModifierShift, run: s.report.ExportAs, can: ready},
		{id: "file.data", menu: "File", title: "Show data folder", run: s.showData, divides: true},
		{id: "quit", menu: "File", title: "Quit", key: fyne.KeyQ, modifier: ctrl, run: s.Close, divides: true, quits: true},
		{id: "chat.new", menu: "Chat", title: "New chat", key: fyne.KeyN, modifier: ctrl, run: s.newChat},
		{id: "chat.send", menu: "Chat", title: "Send", key: fyne.KeyReturn, modifier: ctrl, run: s.chat.Send, can: onChat(s.chat.CanSend), divides: true},
		{id: "chat.stop", menu: "Chat", title: "Stop the answer", key: fyne.KeyEscape, run: s.chat.Stop, can: onChat(s.chat.Active)},
		{id: "chat.again", menu: "Chat", title: "Send again", key: fyne.KeyReturn, modifier: ctrl | fyne.KeyModifierShift, run: s.chat.SendAgain, can: onChat(s.chat.CanRepeat)},
		{id: "chat.edit", menu: "Chat", title: "Edit last question", key: fyne.KeyUp, modifier: ctrl, run: s.chat.EditLast, can: onChat(s.chat.CanRepeat)},
		{id: "chat.search", menu: "Chat", title: "Search chats", key: fyne.KeyF, modifier: ctrl, run: s.searchChats, divides: true},
		{id: "chat.previous", menu: "Chat", title: "Chat above", key: fyne.KeyPageUp, modifier: ctrl, run: s.chat.Previous, can: onChat(s.chat.HasChat)},
		{id: "chat.next", menu: "Chat", title: "Chat below", key: fyne.KeyPageDown, modifier: ctrl, run: s.chat.Next, can: onChat(s.chat.HasChat)},
		{id: "chat.parameters", menu: "Chat", title: "System prompt and parameters", key: fyne.KeyComma, modifier: ctrl, run: s.chat.Parameters, can: onChat(s.chat.HasChat)},
		{id: "chat.markdown", menu: "Chat", title: "Copy as Markdown", run: func() { s.chat.CopyAs("markdown") }, can: onChat(s.chat.HasChat), divides: true},
		{id: "chat.json", menu: "Chat", title: "Copy as JSON", run: func() { s.chat.CopyAs("json") }, can: onChat(s.chat.HasChat)},
		{id: "chat.curl", menu: "Chat", title: "Copy the last turn as cURL", run: func() { s.chat.CopyAs("curl") }, can: onChat(s.chat.HasChat)},
		{id: "chat.rename", menu: "Chat", title: "Rename chat…", run: s.chat.Rename, can: onChat(s.chat.HasChat), divides: true},
		{id: "chat.delete", menu: "Chat", title: "Delete chat…", run: s.chat.Delete, can: onChat(s.chat.HasChat)},
		{id: "run.start", menu: "Run", title: "Run suite", key: fyne.KeyR, modifier: ctrl, run: s.suites.Start, can: idle},
		{id: "run.again", menu: "Run", title: "Run again", key: fyne.KeyR, modifier: ctrl | fyne.KeyModifierShift, run: s.again, can: idle},
		{id: "run.sample", menu: "Run", title: "Run quick sample", run: s.measureSample, can: idle},
		{id: "run.stop", menu: "Run", title: "Stop", key: fyne.KeyPeriod, modifier: ctrl, run: s.stop, can: active},
		{id: "servers.find", menu: "Endpoint", title: "Find servers on this machine", key: fyne.KeyF, modifier: ctrl | fyne.KeyModifierShift, run: s.findServers},
		{id: "endpoint.add", menu: "Endpoint", title: "Add endpoint…", run: func() { s.editEndpoint(console.Endpoint{}) }},
		{id: "endpoint.edit", menu: "Endpoint", title: "Edit endpoint…", run: func() { s.editEndpoint(s.chosen.endpoint) }, can: s.ownChosen},
		{id: "endpoint.models", menu: "Endpoint", title: "List models again", run: s.loadModels},
		{id: "endpoint.remove", menu: "Endpoint", title: "Remove endpoint…", run: s.removeEndpoint, can: s.ownChosen, divides: true},
		{id: "engine.start", menu: "Engine", title: "Start engine", key: fyne.KeyG, modifier: ctrl, run: s.startEngine, can: func() bool { return !s.bar.running }},
		{id: "engine.stop", menu: "Engine", title: "Stop engine", key: fyne.KeyG, modifier: ctrl | fyne.KeyModifierShift, run: s.stopEngine, can: func() bool { return s.bar.running }},
		{id: "engine.restart", menu: "Engine", title: "Restart engine", run: s.engine.Restart, can: func() bool { return s.bar.running }},
		{id: "engine.folder", menu: "Engine", title: "Open model folder…", run: s.chooseModelFolder, divides: true},
		{id: "engine.file", menu: "Engine", title: "Open model file…", run: s.chooseModelFile},
		{id: "telemetry.toggle", menu: "Telemetry", title: "Turn receiver on or off", key: fyne.KeyT, modifier: ctrl | fyne.KeyModifierShift, run: s.telemetry.Toggle},
		{id: "telemetry.record", menu: "Telemetry", title: "Record all streams, or stop", key: fyne.KeyD, modifier: ctrl | fyne.KeyModifierShift, run: s.telemetry.RecordAll, divides: true},
		{id: "telemetry.pause", menu: "Telemetry", title: "Pause the page, or go on", run: s.telemetry.Pause},
		{id: "telemetry.clear", menu: "Telemetry", title: "Clear the views", run: s.telemetry.Clear},
	}
	for i := range s.pages {
		id := s.pages[i].id
		list = append(list, &command{id: "page." + id, menu: "View", title: s.pages[i].title, key: s.pages[i].key, modifier: ctrl, run: func() { s.Show(id) }})
	}
	return append(list,
		&command{id: "page.next", menu: "View", title: "Next page", key: fyne.KeyTab, modifier: ctrl, run: func() { s.turn(1) }, divides: true},
		&command{id: "page.back", menu: "View", title: "Page before", key: fyne.KeyTab, modifier: ctrl | fyne.KeyModifierShift, run: func() { s.turn(-1) }},
		&command{id: "palette", menu: "View", title: "Command palette…", key: fyne.KeyP, modifier: ctrl | fyne.KeyModifierShift, run: s.togglePalette, divides: true},
		&command{id: "theme.auto", menu: "View", title: "Theme of the desktop", run: auto, checked: isAuto, divides: true},
		&command{id: "theme.dark", menu: "View", title: "Dark theme", run: dark, checked: isDark},
		&command{id: "theme.light", menu: "View", title: "Light theme", run: lite, checked: isLite},
		&command{id: "text.larger", menu: "View", title: "Larger text", key: fyne.KeyEqual, modifier: ctrl, run: func() { s.larger(1) }, divides: true},
		&command{id: "text.smaller", menu: "View", title: "Smaller text", key: fyne.KeyMinus, modifier: ctrl, run: func() { s.larger(-1) }},
		&command{id: "view.full", menu: "View", title: "Full screen (F11)", key: fyne.KeyF11, run: s.fullScreen, divides: true},
		&command{id: "help.shortcuts", menu: "Help", title: "Shortcuts", key: fyne.KeyF1, letter: '?', run: s.showShortcuts},
		&command{id: "help.about", menu: "Help", title: "About Velo", run: s.showAbout},
	)
}

func (s *Shell) command(id string) *command {
	for _, c := range s.commands {
		if c.id == id {
			return c
		}
	}
	return nil
}

// Do runs a command by its id, if it can be run now.
func (s *Shell) Do(id string) bool {
	c := s.command(id)
	if c == nil || c.can != nil && !c.can() {
		return false
	}
	c.run()
	return true
}

// pressed runs a command that was chosen in the menu or by its keys. While a question is open it is to be answered
// first, and the palette to be closed: what is behind it does not move. Quitting is always possible.
func (s *Shell) pressed(c *command) {
	open := len(s.dialogs) > 0 || s.offers.view != nil && c.id != "palette" // which its own keys close
	if !open || c.quits {
		s.Do(c.id)
	}
}

// keys writes a command's keys: "Ctrl+Shift+E".
func (c *command) keys() string {
	var parts []string
	if c.modifier&fyne.KeyModifierControl != 0 {
		parts = append(parts, "Ctrl")
	}
	if c.modifier&fyne.KeyModifierShift != 0 {
		parts = append(parts, "Shift")
	}
	if c.key != "" {
		parts = append(parts, keyName(c.key))
	}
	keys := strings.Join(parts, "+")
	if c.letter != 0 {
		keys += ", " + string(c.letter)
	}
	return keys
}

// keyName is how a key is called on a keyboard.
func keyName(k fyne.KeyName) string {
	switch k {
	case fyne.KeyReturn:
		return "Enter"
	case fyne.KeyPageUp:
		return "Page up"
	case fyne.KeyPageDown:
		return "Page down"
	}
	return string(k)
}

// buildMenu makes the menu from the commands, and the list of recent files.
func (s *Shell) buildMenu() {
	main := fyne.NewMainMenu()
	for _, name := range menus {
		m := fyne.NewMenu(name)
		for _, c := range s.commands {
			if c.menu != name {
				continue
			}
			if c.divides {
				m.Items = append(m.Items, fyne.NewMenuItemSeparator())
			}
			c.item = fyne.NewMenuItem(c.title, func() { s.pressed(c) })
			c.item.IsQuit = c.quits
			if c.modifier != 0 {
				c.item.Shortcut = &desktop.CustomShortcut{KeyName: c.key, Modifier: c.modifier}
			}
			m.Items = append(m.Items, c.item)
			if c.id == "file.open" {
				m.Items = append(m.Items, s.recentItem())
			}
		}
		main.Items = append(main.Items, m)
	}
	s.setStates()
	s.Window.SetMainMenu(main)
}

func (s *Shell) recentItem() *fyne.MenuItem {
	item := fyne.NewMenuItem("Open recent", nil)
	item.ChildMenu = fyne.NewMenu("Open recent")
	for _, r := range s.recent {
		path := r.Path
		one := fyne.NewMenuItem(filepath.Base(path)+"  ("+filepath.Dir(path)+")", func() { s.Open(path) })
		one.Disabled = r.Missing
		item.ChildMenu.Items = append(item.ChildMenu.Items, one)
	}
	item.Disabled = len(item.ChildMenu.Items) == 0
	return item
}

func (s *Shell) setStates() (changed bool) {
	for _, c := range s.commands {
		if c.item == nil {
			continue
		}
		off, on := c.can != nil && !c.can(), c.checked != nil && c.checked()
		changed = changed || c.item.Disabled != off || c.item.Checked != on
		c.item.Disabled, c.item.Checked = off, on
	}
	return changed
}

// refreshCommands greys out what cannot be done now.
func (s *Shell) refreshCommands() {
	if s.setStates() {
		if m := s.Window.MainMenu(); m != nil {
			m.Refresh()
		}
	}
}

// listenToKeys takes the keys that need no modifier; Fyne has no shortcuts for those. They come here
// while nothing has the focus, or what has it has no use for them.
func (s *Shell) listenToKeys() {
	s.Window.Canvas().SetOnTypedKey(s.typed)
	s.Window.Canvas().SetOnTypedRune(s.typedRune)
}

func (s *Shell) typed(e *fyne.KeyEvent) {
	if e.Name == fyne.KeyEscape && s.closeDialog() {
		return
	}
	for _, c := range s.commands {
		if c.key == e.Name && c.modifier == 0 {
			s.pressed(c)
		}
	}
}

func (s *Shell) typedRune(r rune) {
	if len(s.dialogs) > 0 || s.current == ChatPage && s.chat.Type(r) {
		return
	}
	for _, c := range s.commands {
		if c.letter == r {
			s.Do(c.id)
		}
	}
}

// turn shows the page that is so many further down the navigation; its ends are joined.
func (s *Shell) turn(by int) {
	for i := range s.pages {
		if s.pages[i].id == s.current {
			s.Show(s.pages[(i+by+len(s.pages))%len(s.pages)].id)
			return
		}
	}
}

func (s *Shell) findServers() {
	if s.current == StartPage {
		s.begins.Search()
	}
	s.Show(StartPage)
}

func (s *Shell) fullScreen() { s.Window.SetFullScreen(!s.Window.FullScreen()) }
