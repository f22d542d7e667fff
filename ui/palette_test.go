package ui

import (
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"velo/ui/console"
	"velo/ui/look"
)

// keyTo sends a key to what has the focus, or to the window, as the real driver does.
func (g *stage) keyTo(name fyne.KeyName) {
	c := g.window.Canvas()
	e := &fyne.KeyEvent{Name: name}
	if f := c.Focused(); f != nil {
		f.TypedKey(e)
	} else if f := c.OnTypedKey(); f != nil {
		f(e)
	}
	g.pump()
}

func (g *stage) runeTo(r rune) {
	c := g.window.Canvas()
	if f := c.Focused(); f != nil {
		f.TypedRune(r)
	} else if f := c.OnTypedRune(); f != nil {
		f(r)
	}
	g.pump()
}

func (g *stage) typeText(text string) {
	for _, r := range text {
		g.runeTo(r)
	}
}

func TestPaletteRunsWhatIsTyped(t *testing.T) {
	f := newFake().full()
	g := newStage(t, f, 1280, 776)
	g.shell.Do("palette")
	g.pump()
	if g.shell.offers.view == nil || g.window.Canvas().Focused() != fyne.Focusable(g.shell.offers.entry) {
		t.Fatal("the palette is not open, or nothing can be typed into it")
	}
	g.typeText("sess")
	if c, ok := g.shell.offers.list.chosen(); !ok || c.title != "Sessions" {
		t.Fatalf("“sess” chooses %+v", c)
	}
	g.keyTo(fyne.KeyReturn)
	if g.shell.Page() != SessionsPage || g.shell.offers.view != nil {
		t.Errorf("page %s, palette open: %v", g.shell.Page(), g.shell.offers.view != nil)
	}

	// Every command is in it, with its keys, and what was run last comes first.
	g.shell.Do("palette")
	p := &g.shell.offers
	if c, _ := p.list.chosen(); c.id != "page.sessions" {
		t.Errorf("%q is offered first, want what was run last", c.id)
	}
	ids := map[string]choiceRow{}
	for _, r := range p.list.rows {
		ids[r.id] = r
	}
	for _, c := range g.shell.commands {
		r, ok := ids[c.id]
		if c.id != "palette" && (!ok || r.keys != c.keys() || r.title != c.title) {
			t.Errorf("the command %s is not offered right: %+v", c.id, r)
		}
	}

	if last := p.list.rows[len(p.list.rows)-1]; last.can {
		t.Errorf("what cannot be done does not come last, but %+v", last)
	}

	// What cannot be done now is found, and does nothing.
	g.typeText("stop")
	if c, _ := p.list.chosen(); c.id != "run.stop" || c.can {
		t.Errorf("nothing can be stopped, yet %+v is offered", c)
	}
	g.keyTo(fyne.KeyReturn)
	if p.view == nil || f.stopped != 0 {
		t.Error("a command that cannot be done was run")
	}
	g.keyTo(fyne.KeyEscape)
	if p.view != nil || len(g.window.Canvas().Overlays().List()) != 0 {
		t.Error("Escape does not close the palette")
	}

	// Endpoints and recent files are offered too.
	g.shell.Do("palette")
	g.typeText("laptop")
	g.keyTo(fyne.KeyEnter)
	if g.shell.chosen.endpoint.ID != "e2" || f.selected != "e2" {
		t.Errorf("the endpoint is %q", g.shell.chosen.endpoint.ID)
	}
	g.shell.Do("palette")
	g.typeText("support.json")
	if c, ok := p.list.chosen(); !ok || c.can || c.title != "Open support.json" {
		t.Errorf("a file that is missing is offered: %+v", c)
	}
	g.shell.Do("palette") // the same keys close it
	if p.view != nil {
		t.Error("the palette stays open")
	}
}

func TestPaletteKeysAndPointer(t *testing.T) {
	g := newStage(t, newFake(), 1280, 776)
	g.shell.Do("palette")
	l := g.shell.offers.list
	n := len(l.rows)
	for _, c := range []struct {
		key  fyne.KeyName
		want int
	}{{fyne.KeyDown, 1}, {fyne.KeyUp, 0}, {fyne.KeyUp, n - 1}, {fyne.KeyDown, 0}, {fyne.KeyPageDown, choicesInView}, {fyne.KeyPageUp, 0}, {fyne.KeyPageUp, 0}} {
		g.keyTo(c.key)
		if l.at != c.want || l.at < l.top || l.at >= l.top+choicesInView {
			t.Errorf("%s chooses %d, want %d (in view from %d)", c.key, l.at, c.want, l.top)
		}
	}
	l.Scrolled(&fyne.ScrollEvent{Scrolled: fyne.Delta{DY: -10}})
	if l.top != 1 {
		t.Errorf("the wheel leads to %d", l.top)
	}
	g.typeText("dark theme")
	l.Tapped(&fyne.PointEvent{Position: fyne.NewPos(40, choiceHeight/2)})
	if g.shell.offers.view != nil || g.shell.theme.Mode != look.AlwaysDark {
		t.Error("a press does not run")
	}
	g.shell.Do("palette")
	g.typeText("no such thing")
	g.keyTo(fyne.KeyReturn)
	g.mustSay("Nothing is called that.")
	test.TapCanvas(g.window.Canvas(), fyne.NewPos(10, 700))
	if g.shell.offers.view != nil {
		t.Error("a press beside it does not close it")
	}
}

// TestSheet: the question mark shows the shortcuts wherever the focus is, except in a text, and Escape
// closes them.
func TestSheet(t *testing.T) {
	g := newStage(t, newFake().full(), 1280, 776)
	g.window.Canvas().Focus(g.shell.navigation[0])
	g.runeTo('?')
	g.mustSay("Shortcuts")
	if len(g.shell.dialogs) != 1 {
		t.Fatalf("%d dialogs are open", len(g.shell.dialogs))
	}
	g.runeTo('?')
	if len(g.shell.dialogs) != 1 {
		t.Errorf("%d dialogs are open", len(g.shell.dialogs))
	}
	g.keyTo(fyne.KeyEscape)
	if len(g.shell.dialogs) != 0 || len(g.window.Canvas().Overlays().List()) != 0 {
		t.Error("Escape does not close the sheet")
	}
	g.keyTo(fyne.KeyF1)
	if len(g.shell.dialogs) != 1 {
		t.Error("F1 does not show the sheet")
	}
	g.keyTo(fyne.KeyEscape)
	entry := find(g, func(*look.Entry) bool { return true })[0]
	g.window.Canvas().Focus(entry)
	g.runeTo('?')
	if len(g.shell.dialogs) != 0 || !strings.Contains(entry.Text, "?") {
		t.Error("a question mark in a text shows the sheet")
	}
}

func TestEscapeAnswersNo(t *testing.T) {
	f := newFake().full().running(1, 0.5)
	g := newStage(t, f, 1280, 776)
	g.tick()
	g.shell.Close()
	g.mustSay("A run is going on")
	g.window.Canvas().Focus(g.button("Keep measuring"))
	g.keyTo(fyne.KeyEscape)
	if len(g.shell.dialogs) != 0 || g.quit != 0 {
		t.Errorf("%d dialogs, ended %d times", len(g.shell.dialogs), g.quit)
	}
	g.shell.Close()
	g.window.Canvas().Focus(g.button("Stop and keep what there is"))
	g.keyTo(fyne.KeyReturn)
	if g.quit != 1 {
		t.Error("Enter does not press the button that has the focus")
	}
}

func TestPagesTurn(t *testing.T) {
	g := newStage(t, newFake().full(), 1280, 776)
	first := g.shell.Page()
	seen := map[string]bool{}
	for range g.shell.pages {
		g.shell.Do("page.next")
		g.pump()
		seen[g.shell.Page()] = true
	}
	if g.shell.Page() != first || len(seen) != len(g.shell.pages) {
		t.Errorf("%d of %d pages were seen, the last is %s", len(seen), len(g.shell.pages), g.shell.Page())
	}
	g.shell.Do("page.back")
	g.shell.Do("page.next")
	if g.shell.Page() != first {
		t.Error("back and next lead elsewhere")
	}
}

func TestNoticesThatComeLater(t *testing.T) {
	f := newFake()
	f.notices = []string{"The first thing."}
	g := newStage(t, f, 1280, 776)
	g.shell.Begin()
	g.mustSay("The first thing.")
	g.press("Dismiss")
	f.mu.Lock()
	f.notices = append(f.notices, "The second thing.")
	f.mu.Unlock()
	f.change(console.ChangedNotices)
	g.pump()
	g.mustSay("The second thing.")
	if g.says("The first thing.") {
		t.Error("what was dismissed comes back")
	}
	f.mu.Lock()
	for range 10 {
		f.notices = append(f.notices, "One of many.")
	}
	f.mu.Unlock()
	f.change(console.ChangedNotices)
	g.pump()
	g.mustSay("The second thing.", "and 5 more.")
	g.shell.End()
}

func TestTroubleWithTheStoreIsTold(t *testing.T) {
	f := newFake().full().running(1, 0.5)
	f.state.Trouble = "cannot store the session one: no space left on device"
	g := newStage(t, f, 1280, 776)
	g.tick()
	g.mustSay("no space left on device")
	g.press("Copy details")
	if got := fyne.CurrentApp().Clipboard().Content(); !strings.Contains(got, "no space left") || !strings.Contains(got, "Velo 0.1.0") {
		t.Errorf("copied %q", got)
	}
	g.press("Dismiss")
	g.tick()
	if g.says("no space left") {
		t.Error("the same trouble is told twice")
	}
}

func TestLongWorkThatEndsUnseenIsTold(t *testing.T) {
	for _, c := range []struct {
		name    string
		watched bool
		took    time.Duration
		want    bool
	}{{"seen", true, time.Hour, false}, {"short", false, time.Second, false}, {"unseen", false, time.Minute, true}} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake().full().running(1, 0.5)
			g := newStage(t, f, 1280, 776)
			g.tick()
			g.shell.Foreground(c.watched)
			f.mu.Lock()
			f.state.Active, f.state.Finished, f.state.Progress.Elapsed = false, console.FinishedDone, c.took
			f.mu.Unlock()
			var want *fyne.Notification
			if c.want {
				want = fyne.NewNotification("Velo: Coding workload", "The run is done.")
			}
			test.AssertNotificationSent(t, want, g.tick)
		})
	}
}

func TestACrashOfTheEngineIsToldWhereNobodyLooks(t *testing.T) {
	f := newFake().full().serving(console.EngineReady)
	g := newStage(t, f, 1280, 776)
	g.tick()
	g.shell.Foreground(false)
	f.serving(console.EngineCrashed)
	test.AssertNotificationSent(t, fyne.NewNotification("Velo: engine", "The engine ended by itself. "+f.engine.status.Failure.Message), g.tick)
	test.AssertNotificationSent(t, nil, g.tick) // once
}

// TestRecentMenuGreysWhatIsMissing opens the menu's own list.
func TestRecentMenuGreysWhatIsMissing(t *testing.T) {
	f := newFake()
	here := t.TempDir() + "/here.json"
	writeFile(t, here)
	f.recent = []string{here, "/nowhere/gone.velo"}
	g := newStage(t, f, 1280, 776)
	for _, m := range g.window.MainMenu().Items[0].Items {
		if m.Label == "Open recent" {
			if m.Disabled || len(m.ChildMenu.Items) != 2 || m.ChildMenu.Items[0].Disabled || !m.ChildMenu.Items[1].Disabled {
				t.Errorf("%+v", m.ChildMenu.Items)
			}
			return
		}
	}
	t.Error("there is no list of recent files")
}
