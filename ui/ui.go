// Package ui is the window: the shell around the pages (navigation, the bar with endpoint and model,
// the status bar, menu and shortcuts) and what leads from one page to another. It shows what the
// console gives and sends what the user wants; it computes nothing and stores nothing.
//
// A page is a package of its own that gets a struct of small interfaces and callbacks, and a row in
// the table of pages below. Everything here runs on the UI thread; what may take time runs in
// thread.Thread.Work and comes back through it.
package ui

import (
	"context"
	"sync"
	"time"

	"fyne.io/fyne/v2"

	"velo/bench/otlp"
	"velo/ui/chatpage"
	"velo/ui/console"
	"velo/ui/enginepage"
	"velo/ui/look"
	"velo/ui/reportpage"
	"velo/ui/runpage"
	"velo/ui/sessionspage"
	"velo/ui/settingspage"
	"velo/ui/startpage"
	"velo/ui/suitespage"
	"velo/ui/telemetrypage"
	"velo/ui/thread"
)

// Params is what the window is given.
type Params struct {
	Console console.Console
	Window  fyne.Window
	Thread  *thread.Thread
	Quit    func()                                               // end the program; the console is closed by then
	OpenURL func(path string) error                              // show a file or folder with the desktop's program
	After   func(d time.Duration, f func()) (cancel func() bool) // nil: time.AfterFunc

	// Screen is the largest screen's size in pixels, less what the desktop keeps of it; the window begins no larger.
	// 0 = not known.
	Screen fyne.Size

	// SlowPaint says that the processor paints, where every painting of the window is paid for by what is
	// measured: what streams is drawn four times a second, not six.
	SlowPaint bool
}

// The ids of the pages.
const (
	StartPage     = "start"
	ChatPage      = "chat"
	SuitesPage    = "suites"
	RunPage       = "run"
	ReportPage    = "report"
	SessionsPage  = "sessions"
	EnginePage    = "engine"
	TelemetryPage = "telemetry"
	SettingsPage  = "settings"
)

// page is a row of the table of pages. What a page has no need of is nil.
type page struct {
	id, title string
	key       fyne.KeyName // with Ctrl
	view      fyne.CanvasObject
	shown     func()            // it came into view
	hidden    func()            // it went out of view
	themed    func()            // the palette changed
	changed   func(what string) // one of console's Changed words, in view or not
	// prepare draws the page while it is in view, on the ticker's goroutine: it may compute and must
	// not touch a widget. What it returns runs on the UI thread; next is when it wants to be called
	// again, 0 = not before the ticker is woken.
	prepare func(frame) (draw func(), next time.Duration)
}

// frame is what a page is drawn from, read once for the whole window.
type frame struct {
	run       console.RunState
	engine    console.EngineStatus
	palette   look.Palette
	telemetry otlp.State
}

// Shell is the window's content.
type Shell struct {
	Params
	theme   *look.Theme
	pages   []page
	current string

	begins    *startpage.Page
	chat      *chatpage.Page
	suites    *suitespage.Page
	run       *runpage.Page
	report    *reportpage.Page
	sessions  *sessionspage.Page
	engine    *enginepage.Page
	telemetry *telemetrypage.Page
	set       *settingspage.Page

	room       *look.Room // of the pages
	navigation []*look.Item
	centre     *fyne.Container // the pages
	middle     *fyne.Container // the notice and the pages
	notice     *look.Notice
	notices    notices
	offers     commandPalette
	dialogs    []modal            // that are open, the topmost last
	recent     []startpage.Recent // what was opened last
	unwatched  bool               // the window is not in front
	answering  string             // the turn of a chat that goes on, as far as was told
	bar        topBar
	status     statusBar
	commands   []*command
	ticker     *ticker

	settings console.Settings
	keeper   settingsKeeper
	palette  paletteBox
	pixels   pixels
	quitting bool
	chosen   selection
	cancel   []func()
	ctx      context.Context // of checks and lists; ends with the window
	end      context.CancelFunc
}

// selection is the endpoint and the model that a run takes.
type selection struct {
	endpoints []console.Endpoint
	endpoint  console.Endpoint
	model     string
}

// paletteBox hands the palette to the goroutine that draws.
type paletteBox struct {
	mu sync.Mutex
	p  look.Palette
}

func (b *paletteBox) set(p look.Palette) { b.mu.Lock(); b.p = p; b.mu.Unlock() }
func (b *paletteBox) get() look.Palette  { b.mu.Lock(); defer b.mu.Unlock(); return b.p }

// New builds the content of a window and sets it. Call it on the UI thread; Begin starts what moves.
func New(p Params) *Shell {
	s := &Shell{Params: p}
	if s.After == nil {
		s.After = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.settings = p.Console.Settings()
	s.scale()
	s.theme = &look.Theme{Mode: look.Mode(s.settings.Theme)}
	fyne.CurrentApp().Settings().SetTheme(s.theme)
	s.palette.set(look.Now())

	s.buildNotices()
	s.bar.build(s)
	s.status.build(s)
	s.buildPages()
	s.ticker = newTicker(s.Thread, s.prepare)
	s.commands = s.commandTable()

	column := look.Rows(0)
	for i := range s.pages {
		id := s.pages[i].id
		item := look.NewItem(s.pages[i].title, "", func() { s.Show(id) })
		s.navigation = append(s.navigation, item)
		column.Add(item)
	}
	left := look.Frame(nil, nil, look.Panel(look.OnSurface, look.Sized(136, 0, look.Inset(look.Step, 0, 0, 0, column))), look.Sized(1, 0, look.Rule()))
	views := make([]fyne.CanvasObject, len(s.pages))
	for i := range s.pages {
		views[i] = s.pages[i].view
		views[i].Hide()
	}
	s.centre = look.Over(views...)
	s.Window.SetPadded(false)
	s.room = look.NewRoom(s.centre)
	s.middle = look.Frame(s.notice.Container, nil, nil, s.room.Scroll)
	s.Window.SetContent(look.Frame(s.bar.view, s.status.view, left, s.middle))
	s.buildMenu()
	s.listenToKeys()
	s.Window.SetOnDropped(func(_ fyne.Position, files []fyne.URI) { s.Dropped(files) })
	s.Window.SetCloseIntercept(s.Close)
	s.Window.Resize(s.size())

	s.reloadEndpoints()
	s.reloadRecent()
	s.tellNotices()
	s.Show(s.startPage())
	return s
}

// size is that of the last time, and no smaller than what the pages need.
func (s *Shell) size() fyne.Size {
	size := fyne.NewSize(1280, 800)
	if s.settings.Width >= 640 && s.settings.Height >= 400 {
		size = fyne.NewSize(s.settings.Width, s.settings.Height)
	}
	return size
}

func (s *Shell) buildPages() {
	c := s.Console
	s.suites = suitespage.New(suitespage.Params{
		Suites: c, Thread: s.Thread, Last: s.settings.LastSpec,
		Start: s.start, Reason: s.whyNotStart, Open: s.chooseFile, Add: func() { s.editEndpoint(console.Endpoint{}) },
		First: func() bool { return len(s.ownEndpoints()) == 0 }, Say: s.say, Ask: s.ask,
	})
	s.run = runpage.New(runpage.Params{
		Stop: s.stop, Again: s.again, OpenReport: s.openReport, GoSuites: func() { s.Show(SuitesPage) },
		Redraw: func() { s.ticker.wake() },
	})
	s.report = reportpage.New(reportpage.Params{
		Report: c.Report, Thread: s.Thread, ExportPDF: s.exportPDF, Export: s.exportAs,
		GoSessions: func() { s.Show(SessionsPage) },
	})
	s.sessions = sessionspage.New(sessionspage.Params{
		Sessions: c, Categories: c.Preferences(), Thread: s.Thread, Report: s.openReport, Import: s.chooseFile, Save: s.saveSession,
		GoSuites: func() { s.Show(SuitesPage) }, Deleted: s.report.Forget, Renamed: s.report.Renamed,
		Say: s.say, Offer: s.offer, Prompt: s.prompt, After: s.After,
	})
	s.engine = enginepage.New(enginepage.Params{
		Engine: c.Engine(), Thread: s.Thread, ChooseFolder: s.chooseModelFolder, ChooseFile: s.chooseModelFile,
		Copy: func(text string) { fyne.CurrentApp().Clipboard().SetContent(text) }, Measure: s.measureEngine, Stop: s.stopEngine,
		Say: s.say, Redraw: func() { s.ticker.wake() }, After: s.After,
	})
	s.set = s.newSettingsPage()
	s.telemetry = s.newTelemetryPage()
	s.begins = s.newStartPage()
	s.chat = s.newChatPage()
	s.pages = []page{
		{id: StartPage, title: "Start", key: fyne.Key0, view: s.begins.View, shown: s.begins.Shown, hidden: s.begins.Hidden, changed: s.startChanged},
		{id: ChatPage, title: "Chat", key: fyne.Key1, view: s.chat.View, shown: s.chat.Shown, themed: s.chat.Themed, changed: s.chatChanged, prepare: s.drawChat},
		{id: SuitesPage, title: "Suites", key: fyne.Key2, view: s.suites.View, shown: s.suites.Shown, changed: s.suitesChanged},
		{id: RunPage, title: "Run", key: fyne.Key3, view: s.run.View, shown: s.wake, themed: s.wake, prepare: s.drawRun},
		{id: ReportPage, title: "Report", key: fyne.Key4, view: s.report.View, shown: s.report.Shown, hidden: s.report.Hidden, themed: s.report.Themed},
		{id: SessionsPage, title: "Sessions", key: fyne.Key5, view: s.sessions.View, shown: s.sessions.Shown, changed: s.sessionsChanged},
		{id: TelemetryPage, title: "Telemetry", key: fyne.Key7, view: s.telemetry.View, shown: s.telemetry.Shown, themed: s.telemetry.Themed, changed: s.telemetryChanged, prepare: s.drawTelemetry},
		{id: EnginePage, title: "Engine", key: fyne.Key8, view: s.engine.View, shown: s.engine.Shown, hidden: s.engine.Hidden, changed: s.engineChanged, prepare: s.drawEngine},
		{id: SettingsPage, title: "Settings", key: fyne.Key9, view: s.set.View, shown: s.set.Shown, hidden: s.set.Hidden, themed: s.set.Themed, changed: s.settingsChanged},
	}
}

func (s *Shell) wake() { s.ticker.wake() }

func (s *Shell) startChanged(what string) {
	if what == console.ChangedRun && s.current == StartPage {
		s.begins.Update()
	}
}

func (s *Shell) suitesChanged(what string) {
	switch what {
	case console.ChangedRun:
		s.suites.Update()
	case console.ChangedSuites:
		s.suites.Reload()
	}
}

func (s *Shell) sessionsChanged(what string) {
	if what == console.ChangedSessions && s.current == SessionsPage {
		s.sessions.Reload()
	}
}

func (s *Shell) engineChanged(what string) {
	if what == console.ChangedEngine {
		s.engine.Reload()
	}
}

func (s *Shell) drawRun(f frame) (func(), time.Duration) {
	next := time.Duration(0)
	if f.run.Active {
		next = 250 * time.Millisecond
	}
	return s.run.Prepare(f.run, f.palette), next
}

func (s *Shell) drawEngine(f frame) (func(), time.Duration) {
	next := time.Duration(0)
	if f.engine.State == console.EngineReady {
		next = 250 * time.Millisecond
	}
	return s.engine.Prepare(f.engine), next
}

func (s *Shell) find(id string) *page {
	for i := range s.pages {
		if s.pages[i].id == id {
			return &s.pages[i]
		}
	}
	return nil
}

// Page is the id of the page in view.
func (s *Shell) Page() string { return s.current }

// Show brings a page into view.
func (s *Shell) Show(id string) {
	p := s.find(id)
	if p == nil || id == s.current {
		return
	}
	if id == ReportPage && s.report.Session() == "" {
		s.loadNewest()
	}
	if old := s.find(s.current); old != nil {
		old.view.Hide()
		call(old.hidden)
	}
	s.current = id
	s.ticker.view(id)
	for i := range s.pages {
		s.navigation[i].Select(s.pages[i].id == id)
	}
	s.Window.Canvas().Unfocus() // a caret that blinks on a hidden page repaints the window
	p.view.Show()
	s.room.Settle()
	call(p.shown)
	s.refreshCommands()
}

// call calls f, unless it is nil.
func call(f func()) {
	if f != nil {
		f()
	}
}

// Begin starts what moves: the changes of the console and the clock of the run page. Call it when
// the window is on screen.
func (s *Shell) Begin() {
	s.cancel = append(s.cancel, s.Console.Changes(func(what string) {
		if what == console.ChangedRun || what == console.ChangedEngine {
			s.ticker.wake() // no need of the UI thread
		}
		s.Thread.Do(func() { s.changed(what) })
	}))
	s.fitScreen() // the scale is known by now
	s.ticker.start()
	s.ticker.wake()
	s.suites.Reload() // Ctrl+R works on every page, the one that the window begins with too
}

// End stops what Begin started. It is for a window that was closed from outside, without Close.
func (s *Shell) End() {
	s.end()
	for _, cancel := range s.cancel {
		cancel()
	}
	s.cancel = nil
	s.ticker.stop()
}

// changed brings up to date what the console says has changed.
func (s *Shell) changed(what string) {
	switch what {
	case console.ChangedSessions:
		s.status.reload()
	case console.ChangedEndpoints:
		s.reloadEndpoints()
	case console.ChangedOpen:
		s.reloadRecent()
	case console.ChangedNotices:
		s.tellNotices()
	}
	for i := range s.pages {
		if f := s.pages[i].changed; f != nil {
			f(what)
		}
	}
	s.refreshCommands()
}

// prepare is what the ticker calls, off the UI thread: it reads the run and the engine once and draws
// what is in view. During a quiet run it comes once a second and no sooner.
func (s *Shell) prepare(visible string) (show func(), next time.Duration) {
	f := frame{run: s.Console.Run(), engine: s.Console.Engine().Status(), palette: s.palette.get(), telemetry: s.Console.Telemetry().State()}
	var draw func()
	if p := s.find(visible); p != nil && p.prepare != nil {
		draw, next = p.prepare(f)
	}
	show = func() {
		call(draw)
		s.bar.showEngine(f.engine)
		s.bar.showTelemetry(f)
		s.status.show(f.run)
	}
	switch f.engine.State {
	case console.EngineStarting, console.EngineLoading, console.EngineStopping:
		next = sooner(next, 250*time.Millisecond)
	}
	if f.telemetry.Wanted { // a listener may break, or get its port, by itself
		next = sooner(next, time.Second)
	}
	if f.run.Active {
		next = sooner(next, time.Second)
		if f.run.Spec.Quiet {
			next = time.Second
		}
	}
	return show, next
}

// sooner is the earlier of two times to be called again; 0 is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// themed follows a change of the palette.
func (s *Shell) themed() {
	s.palette.set(look.Now())
	for i := range s.pages {
		call(s.pages[i].themed)
	}
}

// SetMode changes the theme.
func (s *Shell) SetMode(m look.Mode) {
	s.theme = &look.Theme{Mode: m}
	fyne.CurrentApp().Settings().SetTheme(s.theme)
	s.settings.Theme = string(m)
	s.keepSettings()
	s.themed()
	s.buildMenu()
}

// Themed is to be called when the desktop changed between dark and light.
func (s *Shell) Themed() { s.themed() }
