package ui

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/storage"
	"fyne.io/fyne/v2/test"
	"fyne.io/fyne/v2/widget"

	"velo/bench/runner"
	"velo/ui/console"
	"velo/ui/look"
)

// find returns the visible widgets of a kind below the content and the dialogs of the window.
func find[W any](g *stage, is func(W) bool) []W {
	var out []W
	var walk func(o fyne.CanvasObject)
	walk = func(o fyne.CanvasObject) {
		if !o.Visible() {
			return
		}
		if w, ok := o.(W); ok && is(w) {
			out = append(out, w)
		}
		switch o := o.(type) {
		case *fyne.Container:
			for _, c := range o.Objects {
				walk(c)
			}
		case fyne.Widget:
			for _, c := range test.WidgetRenderer(o).Objects() {
				walk(c)
			}
		}
	}
	for _, o := range g.window.Canvas().Overlays().List() {
		walk(o)
	}
	walk(g.window.Content())
	return out
}

func (g *stage) button(text string) *look.PushButton {
	g.t.Helper()
	all := find(g, func(b *look.PushButton) bool { return b.Text == text })
	if len(all) == 0 {
		g.t.Fatalf("there is no button %q", text)
	}
	return all[0]
}

// press presses a button, and lets everything happen that follows.
func (g *stage) press(text string) {
	g.t.Helper()
	b := g.button(text)
	if b.Disabled() {
		g.t.Fatalf("the button %q cannot be pressed", text)
	}
	test.Tap(b)
	g.pump()
}

// says tells whether a text is on the window.
func (g *stage) says(part string) bool {
	hit := func(s string) bool { return strings.Contains(s, part) }
	return len(find(g, func(x *look.Text) bool { return hit(x.Text()) })) > 0 ||
		len(find(g, func(x *look.Paragraph) bool { return hit(x.Text()) })) > 0 ||
		len(find(g, func(x *look.Tile) bool { return hit(x.Value()) || hit(x.Note()) })) > 0 ||
		len(find(g, func(x *widget.Label) bool { return hit(x.Text) })) > 0
}

func (g *stage) mustSay(parts ...string) {
	g.t.Helper()
	for _, p := range parts {
		if !g.says(p) {
			g.t.Errorf("%q is nowhere on the window (page %s)", p, g.shell.Page())
		}
	}
}

func (g *stage) tick() {
	g.shell.ticker.round()
	g.pump()
}

func TestFirstSuite(t *testing.T) {
	f := newFake()
	f.settings.Page = SuitesPage
	g := newStage(t, f, 1280, 776)
	g.mustSay("No endpoint was added yet", "It is not a real model", "Quick sample")
	g.press("Run suite")
	if len(g.fake.started) != 1 {
		t.Fatalf("%d runs were started", len(g.fake.started))
	}
	spec := g.fake.started[0]
	if spec.EndpointID != "builtin" || spec.SuiteID != "prebuilt-quick" || spec.Workers != 1 || spec.Repeat != 1 || !spec.Quiet {
		t.Errorf("the run that was started is %+v", spec)
	}
	if g.shell.Page() != RunPage {
		t.Errorf("page %s is shown after the start, want the run page", g.shell.Page())
	}
	if g.fake.settings.LastSpec != spec {
		t.Error("what was chosen is not kept for the next start")
	}
}

func TestEmptyPagesNameTheNextAction(t *testing.T) {
	for page, want := range map[string]struct{ text, button, leads string }{
		RunPage:      {"Nothing is being measured", "Go to suites", SuitesPage},
		ReportPage:   {"No report is open", "Go to sessions", SessionsPage},
		SessionsPage: {"No session is stored yet", "Go to suites", SuitesPage},
	} {
		g := newStage(t, newFake(), 1280, 776)
		g.shell.Show(page)
		g.tick()
		g.mustSay(want.text)
		g.press(want.button)
		if g.shell.Page() != want.leads {
			t.Errorf("%s: %q leads to %s, want %s", page, want.button, g.shell.Page(), want.leads)
		}
	}
}

func TestPagesTellFailures(t *testing.T) {
	f := newFake().full()
	f.fail = errDown
	g := newStage(t, f, 1280, 776)
	g.mustSay(errDown.Error()) // the steps of the suite cannot be read
	g.press("Run suite")
	g.mustSay(errDown.Error())
	if g.shell.Page() != SuitesPage {
		t.Errorf("page %s is shown although nothing was started", g.shell.Page())
	}
	g.shell.openReport("one")
	g.pump()
	g.mustSay("The report cannot be shown", errDown.Error())
	g.shell.Show(SessionsPage)
	g.pump()
	g.mustSay("The sessions cannot be listed", errDown.Error())
	f.mu.Lock()
	f.fail = nil
	f.mu.Unlock()
	g.press("Try again")
	if g.says("The sessions cannot be listed") {
		t.Error("the failure stays after it is over")
	}
	g.shell.Show(ReportPage)
	g.pump()
	g.press("Try again")
	g.mustSay("At a glance")
}

func TestRunPageFollowsARun(t *testing.T) {
	f := newFake().full()
	g := newStage(t, f, 1280, 776)
	g.shell.Show(RunPage)
	f.running(4, 0.55)
	g.tick()
	g.mustSay("Coding workload", "Step 4 of 6", "Write a parser", "12 of 24 requests", "tok/s", "decode", "measuring, quiet drawing")
	if got := g.shell.run.State(); got != "decode" {
		t.Errorf("the lamp says %q", got)
	}
	f.mu.Lock()
	f.state.Snapshot = sampleSnapshot(4, 6, 42, 0, 0.012) // before the first token
	f.mu.Unlock()
	g.tick()
	if got := g.shell.run.State(); got != "prefill" {
		t.Errorf("the lamp says %q before the first token", got)
	}
	g.press("Stop")
	if f.stopped != 1 {
		t.Fatalf("the run was stopped %d times", f.stopped)
	}
	g.tick()
	g.mustSay("Stopped. What was measured until then is kept.")
	if len(find(g, func(b *look.PushButton) bool { return b.Text == "Stop" })) != 0 {
		t.Error("what has ended can still be stopped")
	}
	g.press("Open report")
	if g.shell.Page() != ReportPage || g.shell.report.Session() != "one" {
		t.Errorf("page %s with session %q", g.shell.Page(), g.shell.report.Session())
	}
}

func TestRunThatFailsSaysWhy(t *testing.T) {
	f := newFake().full().running(2, 0.4)
	f.state.Active, f.state.Finished, f.state.Error = false, console.FinishedFailed, errDown.Error()
	g := newStage(t, f, 1280, 776)
	g.shell.Show(RunPage)
	g.tick()
	g.mustSay("failed", errDown.Error(), "the last run failed")
}

func TestRunCannotBeStartedTwice(t *testing.T) {
	f := newFake().full().running(2, 0.4)
	g := newStage(t, f, 1280, 776)
	g.tick()
	if !g.button("Run suite").Disabled() {
		t.Error("Run can be pressed while a run goes on")
	}
	g.mustSay("A run is going on")
	g.shell.suites.Start()
	g.pump()
	if len(f.started) != 0 {
		t.Error("a second run was started")
	}
	if g.shell.Do("run.start") {
		t.Error("the command is not greyed out")
	}
}

func TestFieldsSayWhatTheyTake(t *testing.T) {
	g := newStage(t, newFake().full(), 1280, 776)
	entries := find(g, func(e *look.Entry) bool { return true })
	for _, bad := range []string{"0", "-1", "many", "1001", ""} {
		entries[0].SetText(bad)
		g.pump()
		g.mustSay("Workers takes a whole number from 1 to 1000")
		if !g.button("Run suite").Disabled() {
			t.Errorf("a run with %q workers can be started", bad)
		}
	}
	entries[0].SetText("16")
	g.pump()
	g.press("Run suite")
	if g.fake.started[0].Workers != 16 {
		t.Errorf("%d workers were asked for", g.fake.started[0].Workers)
	}
}

func TestDropMenuArgumentAndRecentOpenAlike(t *testing.T) {
	g := newStage(t, newFake().full(), 1280, 776)
	g.shell.Show(SessionsPage)
	g.shell.Dropped([]fyne.URI{storage.NewFileURI("/tmp/mine.json")})
	g.pump()
	if g.shell.Page() != SuitesPage || g.shell.suites.Selected() != "mine" {
		t.Errorf("after a drop page %s shows suite %q", g.shell.Page(), g.shell.suites.Selected())
	}
	g.mustSay("The suite “My suite” was added.", "from /tmp/mine.json")
	g.shell.Open("/tmp/other.velo")
	g.pump()
	if g.shell.Page() != ReportPage || g.shell.report.Session() != "one" {
		t.Errorf("after a session page %s shows %q", g.shell.Page(), g.shell.report.Session())
	}
	g.shell.Open("/tmp/cat.gif", "/tmp/mine.json")
	g.pump()
	g.mustSay(`cannot open "/tmp/cat.gif"`)
	if g.shell.Page() != SuitesPage {
		t.Error("what could be opened was not shown")
	}
	var recent *fyne.MenuItem
	for _, i := range g.window.MainMenu().Items[0].Items {
		if i.Label == "Open recent" {
			recent = i
		}
	}
	if recent == nil || len(recent.ChildMenu.Items) < 3 {
		t.Fatal("the recent list does not show what was opened")
	}
	n := len(g.fake.opened)
	recent.ChildMenu.Items[0].Action()
	g.pump()
	if len(g.fake.opened) != n+1 {
		t.Error("the recent list does not open")
	}
	g.shell.Dropped([]fyne.URI{storage.NewURI("https://example.org/suite.json")})
	g.pump()
	g.mustSay("Only files can be dropped here")
	g.shell.Dropped(nil)
}

func TestChoosersOpen(t *testing.T) {
	g := newStage(t, newFake().full(), 1280, 776)
	for name, show := range map[string]func(){
		"file": g.shell.chooseFile, "folder": func() { g.shell.chooseFolder(func(string) {}) },
		"session": func() { g.shell.saveSession("one", "Coding workload") }, "about": g.shell.showAbout, "shortcuts": g.shell.showShortcuts,
	} {
		show()
		g.pump()
		overlays := g.window.Canvas().Overlays()
		if len(overlays.List()) != 2 { // the dim and the dialog
			t.Errorf("%s: %d overlays are shown", name, len(overlays.List()))
		}
		for _, b := range find(g, func(b *widget.Button) bool { return b.Text == "Cancel" || b.Text == "Close" }) {
			test.Tap(b)
			break
		}
		for _, b := range find(g, func(b *look.PushButton) bool { return len(overlays.List()) > 0 && b.Text == "Close" }) {
			test.Tap(b)
			break
		}
		if len(overlays.List()) != 0 {
			t.Errorf("%s: %d overlays stay behind", name, len(overlays.List()))
			for _, o := range overlays.List() {
				overlays.Remove(o)
			}
		}
	}
}

func TestExport(t *testing.T) {
	f := newFake().full()
	g := newStage(t, f, 1280, 776)
	if g.shell.Do("export.pdf") {
		t.Error("PDF can be exported where there is no report")
	}
	g.shell.openReport("one")
	g.pump()
	if !g.shell.Do("export.pdf") {
		t.Fatal("the command cannot be run on the report page")
	}
	g.pump()
	if !slices.Equal(f.exports, []string{"one pdf /home/kim/reports"}) {
		t.Errorf("exports: %q", f.exports)
	}
	g.mustSay("Wrote /home/kim/reports/coding-workload-e5f60718.pdf")
	g.press("Open")
	g.press("Open folder")
	if !slices.Equal(g.opened, []string{"/home/kim/reports/coding-workload-e5f60718.pdf", "/home/kim/reports"}) {
		t.Errorf("opened: %q", g.opened)
	}
	g.press("Export…")
	box := find(g, func(c *widget.CheckGroup) bool { return true })[0]
	box.SetSelected([]string{"Markdown", "JSON with raw events"})
	g.press("Export")
	if f.exports[1] != "one md,json /home/kim/reports" {
		t.Errorf("exports: %q", f.exports)
	}
	g.mustSay("Wrote 2 files to /home/kim/reports")
	f.mu.Lock()
	f.fail = errDown
	f.mu.Unlock()
	g.press("Export PDF")
	g.mustSay(errDown.Error())
}

func TestSessions(t *testing.T) {
	f := newFake().full()
	g := newStage(t, f, 1280, 776)
	g.shell.Show(SessionsPage)
	g.pump()
	g.mustSay("46")
	if !g.button("Delete").Disabled() {
		t.Error("Delete can be pressed although nothing is selected")
	}
	filter := find(g, func(e *look.Entry) bool { return true })[0]
	filter.SetText("context stopped")
	g.mustSay("of 46")
	filter.SetText("no such thing")
	g.mustSay("No session matches the filter.", "0 of 46")
	filter.SetText("")

	g.shell.sessions.Select("s3")
	g.press("Delete")
	g.mustSay("“Our support prompts” was deleted.", "45")
	if len(f.deleted) != 0 {
		t.Fatal("it was deleted before anybody could take it back")
	}
	g.press("Undo")
	g.mustSay("46")
	if g.shell.sessions.Selected() != "s3" || g.says("was deleted") {
		t.Error("after Undo it is not as before")
	}
	g.press("Delete")
	g.runLater()
	if !slices.Equal(f.deleted, []string{"s3"}) {
		t.Errorf("deleted: %q", f.deleted)
	}

	g.shell.sessions.Select("s5")
	g.press("Rename…")
	entry := find(g, func(e *look.Entry) bool { return e.Text == "Coding workload" })[0]
	entry.SetText("  Nightly  ")
	g.press("Rename")
	if f.renamed["s5"] != "Nightly" {
		t.Errorf("renamed: %v", f.renamed)
	}
	g.mustSay("45")
	g.press("Open report")
	if g.shell.Page() != ReportPage || g.shell.report.Session() != "s5" {
		t.Errorf("page %s shows %q", g.shell.Page(), g.shell.report.Session())
	}
}

// runLater runs what was put off.
func (g *stage) runLater() {
	for i, f := range g.later {
		if f != nil {
			g.later[i] = nil
			f()
		}
	}
	g.pump()
}

func TestDeletedWhenTheWindowCloses(t *testing.T) {
	f := newFake().full()
	g := newStage(t, f, 1280, 776)
	g.shell.Show(SessionsPage)
	g.pump()
	g.shell.sessions.Select("s3")
	g.press("Delete")
	g.shell.Close()
	g.pump()
	if !slices.Equal(f.deleted, []string{"s3"}) {
		t.Errorf("deleted: %q", f.deleted)
	}
}

// TestEndpoints: the bar leads to the one form of endpoints, and what is added there is the chosen one.
func TestEndpoints(t *testing.T) {
	f := newFake()
	g := newStage(t, f, 1280, 776)
	g.press("Add endpoint…")
	if g.shell.Page() != SettingsPage {
		t.Fatalf("the bar leads to %s", g.shell.Page())
	}
	add := func() *look.PushButton {
		return find(g, func(b *look.PushButton) bool { return b.Text == "Add endpoint" })[0]
	}
	if !add().Disabled() {
		t.Error("an endpoint without an address can be saved")
	}
	field := func(placeholder string) *look.Entry {
		return find(g, func(e *look.Entry) bool { return strings.HasPrefix(e.PlaceHolder, placeholder) })[0]
	}
	if g.window.Canvas().Focused() != fyne.Focusable(field("http://127")) {
		t.Error("the address has not the focus")
	}
	field("http://127").SetText(" http://10.0.0.7:8000 ")
	field("Empty: none").SetText("secret")
	g.press("Check")
	g.mustSay("2 models, the first is")
	g.press("Add endpoint")
	e := f.endpoints[0]
	if e.URL != "http://10.0.0.7:8000" || !e.HasKey || f.selected != e.ID {
		t.Errorf("kept %+v, selected %q", e, f.selected)
	}
	if g.shell.chosen.endpoint.ID != e.ID {
		t.Error("the new endpoint is not the chosen one")
	}
	if opts := g.shell.bar.model; opts.PlaceHolder != "llama-3.3-70b-instruct-nvfp4" {
		t.Errorf("the model picker offers %q", opts.PlaceHolder)
	}
	g.shell.Show(SuitesPage)
	g.pump()
	if g.says("No endpoint was added yet") {
		t.Error("the first-run panel stays")
	}

	g.press("Edit…")
	if g.shell.Page() != SettingsPage {
		t.Fatalf("the bar leads to %s", g.shell.Page())
	}
	field("Empty: the server's first").SetText("its-model")
	f.mu.Lock()
	f.fail = errDown
	f.mu.Unlock()
	g.press("Check")
	g.mustSay("connection refused")
	g.press("Remove key")
	f.mu.Lock()
	f.fail = nil
	f.mu.Unlock()
	g.press("Remove key")
	if e := f.endpoints[0]; e.HasKey || e.Model != "its-model" {
		t.Errorf("kept is %+v", e)
	}

	g.shell.Do("endpoint.remove")
	g.press("Remove endpoint")
	if len(f.endpoints) != 1 || !g.shell.chosen.endpoint.BuiltIn {
		t.Errorf("endpoints %+v, chosen %+v", f.endpoints, g.shell.chosen.endpoint)
	}
	if g.shell.Do("endpoint.remove") || g.shell.Do("endpoint.edit") {
		t.Error("the built-in endpoint can be changed")
	}
}

// TestNothingMovesBehindAQuestion: keys of the menu, and keys alone, wait until a question was answered.
func TestNothingMovesBehindAQuestion(t *testing.T) {
	g := newStage(t, newFake().full(), 1280, 776)
	g.shell.Show(SuitesPage)
	g.pump()
	g.shell.ask("Question", "Text", "Yes", func() {})
	for _, id := range []string{"page.telemetry", "run.start", "telemetry.toggle", "palette"} {
		g.shell.command(id).item.Action()
	}
	g.shell.typed(&fyne.KeyEvent{Name: fyne.KeyF1})
	g.pump()
	if g.shell.Page() != SuitesPage || len(g.fake.started) != 0 || g.fake.telemetry.settings.On || g.shell.offers.view != nil || len(g.shell.dialogs) != 1 {
		t.Errorf("page %s, %d runs, receiver %v, %d dialogs", g.shell.Page(), len(g.fake.started), g.fake.telemetry.settings.On, len(g.shell.dialogs))
	}
	g.shell.typed(&fyne.KeyEvent{Name: fyne.KeyEscape})
	g.shell.command("palette").item.Action()
	g.shell.command("page.telemetry").item.Action()
	if g.shell.offers.view == nil || g.shell.Page() != SuitesPage {
		t.Error("a page turns behind the palette")
	}
	g.shell.command("palette").item.Action()
	g.shell.command("page.telemetry").item.Action()
	if g.shell.Page() != TelemetryPage {
		t.Error("after the answer the keys do nothing")
	}
}

// TestStatusBarLeadsToItsJob: a click on what goes on shows its page.
func TestStatusBarLeadsToItsJob(t *testing.T) {
	g := newStage(t, newFake().full(), 1280, 776)
	g.shell.Show(SuitesPage)
	done := g.shell.busy("Writing the report", ReportPage)
	if got := g.shell.status.job.Text(); got != "Writing the report" {
		t.Errorf("the bar says %q", got)
	}
	g.shell.status.job.Tapped(nil)
	if g.shell.Page() != ReportPage {
		t.Errorf("a click on the job leads to %s", g.shell.Page())
	}
	done()
	g.fake.running(2, 0.5)
	g.shell.ticker.round()
	g.pump()
	g.shell.status.job.TypedKey(&fyne.KeyEvent{Name: fyne.KeyReturn})
	if g.shell.Page() != RunPage {
		t.Errorf("Enter on the run leads to %s", g.shell.Page())
	}
}

// TestTopBarFitsLargeText: at the largest text a window of 1280 pixels has 853 units.
func TestTopBarFitsLargeText(t *testing.T) {
	for _, percent := range console.TextSizes {
		width := float32(1280 * 100 / percent)
		g := newStage(t, newFake().full(), width, float32(776*100/percent))
		if least := g.shell.bar.view.MinSize().Width; least > width {
			t.Errorf("at %d %% the bar takes %v of %v", percent, least, width)
		}
		edge := fyne.CurrentApp().Driver().AbsolutePositionForObject(g.shell.bar.engine).X + g.shell.bar.engine.Size().Width
		if edge > width {
			t.Errorf("at %d %% the engine's button ends at %v of %v", percent, edge, width)
		}
	}
}

func TestModelsThatCannotBeListedCanBeTyped(t *testing.T) {
	f := newFake().full()
	f.unlisted = errDown
	f.endpoints[0].Model = ""
	g := newStage(t, f, 1280, 776)
	g.mustSay("could not be listed", errDown.Error())
	g.shell.bar.model.SetText("typed-model")
	g.press("Run suite")
	if f.started[0].Model != "typed-model" {
		t.Errorf("the run takes model %q", f.started[0].Model)
	}
}

func TestCloseAsksOnceWhileARunGoesOn(t *testing.T) {
	f := newFake().full().running(2, 0.4)
	g := newStage(t, f, 1280, 776)
	g.tick()
	g.shell.Close()
	g.mustSay("Stop it and keep what there is, or go on measuring?")
	g.press("Keep measuring")
	if f.closed != 0 || g.quit != 0 {
		t.Fatal("the program ended although the run was to go on")
	}
	g.shell.Close()
	g.press("Stop and keep what there is")
	if f.closed != 1 || g.quit != 1 {
		t.Errorf("console closed %d times, program ended %d times", f.closed, g.quit)
	}
	if len(f.saved) == 0 || f.settings.Width != 1280 {
		t.Error("the size of the window was not kept")
	}
	g.shell.Close()
	if g.quit != 1 {
		t.Error("the program ended twice")
	}
}

func TestCloseWithoutARunAsksNothing(t *testing.T) {
	g := newStage(t, newFake(), 1280, 776)
	g.shell.Close()
	g.pump()
	if g.quit != 1 || g.fake.closed != 1 {
		t.Errorf("ended %d times, console closed %d times", g.quit, g.fake.closed)
	}
}

func TestShortcuts(t *testing.T) {
	g := newStage(t, newFake().full(), 1280, 776)
	want := map[string]string{"Ctrl+2": "Suites", "Ctrl+3": "Run", "Ctrl+4": "Report", "Ctrl+5": "Sessions", "Ctrl+R": "Run suite",
		"Ctrl+.": "Stop", "Ctrl+O": "Open…", "Ctrl+E": "Export PDF", "F11": "Full screen (F11)", "Ctrl+Q": "Quit"}
	have := map[string]string{}
	for _, r := range g.shell.Shortcuts() {
		have[r[0]] = r[1]
	}
	for keys, title := range want {
		if have[keys] != title {
			t.Errorf("%s does %q, want %q", keys, have[keys], title)
		}
	}
	seen := map[string]string{}
	for _, m := range g.window.MainMenu().Items {
		for _, i := range m.Items {
			if i.Shortcut == nil {
				continue
			}
			s := i.Shortcut.(*desktop.CustomShortcut)
			if other := seen[s.ShortcutName()]; other != "" {
				t.Errorf("%s stands for %q and %q", s.ShortcutName(), other, i.Label)
			}
			seen[s.ShortcutName()] = i.Label
		}
	}
	g.window.Canvas().(interface{ OnTypedKey() func(*fyne.KeyEvent) }).OnTypedKey()(&fyne.KeyEvent{Name: fyne.KeyF11})
	if !g.window.FullScreen() {
		t.Error("F11 does not fill the screen")
	}
}

// TestShortcutsAreInTheManual keeps docs/window.md true.
func TestShortcutsAreInTheManual(t *testing.T) {
	g := newStage(t, newFake(), 1280, 776)
	b, err := os.ReadFile(filepath.Join("..", "docs", "window.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range g.shell.Shortcuts() {
		if line := "| " + r[0] + " | " + r[1] + " |"; !strings.Contains(string(b), line) {
			t.Errorf("docs/window.md has no line %q", line)
		}
	}
}

func TestThemeChangesEverythingAndIsKept(t *testing.T) {
	f := newFake().full()
	g := newStage(t, f, 1280, 776)
	if look.Now().Background != look.Dark.Background {
		t.Fatal("the theme of the settings was not taken")
	}
	g.shell.Do("theme.light")
	g.pump()
	if look.Now().Background != look.Light.Background || f.settings.Theme != "light" {
		t.Errorf("theme %q is kept", f.settings.Theme)
	}
	if g.shell.palette.get().Accent != look.Light.Accent {
		t.Error("what is drawn off the UI thread keeps the old colours")
	}
	for _, c := range []struct {
		id string
		on bool
	}{{"theme.light", true}, {"theme.dark", false}, {"theme.auto", false}} {
		if got := g.shell.command(c.id).item.Checked; got != c.on {
			t.Errorf("%s is checked: %v", c.id, got)
		}
	}
}

func TestNoticesOfTheStoreAreShown(t *testing.T) {
	f := newFake()
	f.notices = []string{"The store was damaged; the copy of yesterday was restored."}
	g := newStage(t, f, 1280, 776)
	g.mustSay("the copy of yesterday was restored")
	g.shell.Open("/tmp/cat.gif")
	g.pump()
	g.mustSay("cannot open")
	g.press("Dismiss")
	g.mustSay("the copy of yesterday was restored") // a later message only covers it
	g.press("Dismiss")
	if g.says("the copy of yesterday was restored") {
		t.Error("a dismissed notice stays")
	}
}

func TestSuiteCanBeRemoved(t *testing.T) {
	f := newFake().full()
	g := newStage(t, f, 1280, 776)
	g.shell.suites.Select("mine")
	g.pump()
	g.press("Remove suite")
	g.mustSay("Sessions that ran it keep their copy")
	all := find(g, func(b *look.PushButton) bool { return b.Text == "Remove suite" })
	test.Tap(all[0]) // that of the question
	g.pump()
	for _, s := range f.suites {
		if s.ID == "mine" {
			t.Error("the suite is still there")
		}
	}
	if g.shell.suites.Selected() == "mine" {
		t.Error("a suite that is gone is still shown")
	}
}

func TestRunAgain(t *testing.T) {
	f := newFake().full().running(8, 0.5)
	g := newStage(t, f, 1280, 776)
	g.tick()
	f.mu.Lock()
	f.state.Active, f.state.Finished = false, console.FinishedDone
	f.mu.Unlock()
	g.tick()
	g.shell.Show(RunPage)
	g.tick()
	g.press("Run again")
	if len(f.started) != 1 || f.started[0].Workers != 8 || f.started[0].SuiteID != "coding" {
		t.Errorf("started: %+v", f.started)
	}
}

func TestRemainingTimeIsNamedAGuess(t *testing.T) {
	f := newFake().full().running(2, 0.5)
	f.state.Progress = runner.Progress{State: runner.Running, Step: 1, Steps: 2, Done: 10, Total: 40, Elapsed: 100 * time.Second}
	g := newStage(t, f, 1280, 776)
	g.shell.Show(RunPage)
	g.tick()
	g.mustSay("10 of 40 requests · about 6 min left")
}
