package ui

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/storage"
	"fyne.io/fyne/v2/widget"

	"velo/ui/console"
	"velo/ui/look"
)

// onEngine is a stage with the engine's page in view.
func onEngine(t *testing.T, f *fake) *stage {
	t.Helper()
	g := newStage(t, f, 1280, 776)
	cancel := f.Changes(func(what string) { g.thread.Do(func() { g.shell.changed(what) }) }) // as Begin does
	t.Cleanup(cancel)
	g.shell.Show(EnginePage)
	g.pump()
	g.tick()
	return g
}

func (g *stage) entry(placeholder string) *look.Entry {
	g.t.Helper()
	all := find(g, func(e *look.Entry) bool { return e.PlaceHolder == placeholder })
	if len(all) == 0 {
		g.t.Fatalf("there is no field %q", placeholder)
	}
	return all[0]
}

func (g *stage) has(button string) bool {
	return len(find(g, func(b *look.PushButton) bool { return b.Text == button })) > 0
}

func TestEngineWithoutAModel(t *testing.T) {
	g := onEngine(t, newFake())
	g.mustSay("No model was chosen yet")
	if g.has("Start engine") {
		t.Error("an engine without a model can be started")
	}
	g.shell.Show(SuitesPage)
	g.press("Engine: stopped")
	if g.shell.Page() != EnginePage || len(g.fake.engine.did) != 0 {
		t.Errorf("the switch leads to %s and did %q", g.shell.Page(), g.fake.engine.did)
	}
	g.mustSay("choose a model first")
	g.shell.Dropped([]fyne.URI{storage.NewFileURI("/models/tiny.gguf")})
	g.pump()
	g.mustSay("tiny", "/models/tiny.gguf")
	if !g.has("Start engine") || g.fake.engine.config.Model != "/models/tiny.gguf" {
		t.Error("what was dropped cannot be started")
	}
}

func TestEngineIsStartedWatchedAndStopped(t *testing.T) {
	f := newFake().withModel()
	g := onEngine(t, f)
	g.mustSay("Qwen3-32B-FP8", "qwen3, 64 layers", "31.9 GiB, FP8Block", "40960 tokens", "Fits: it takes 48.5 GiB of the 110 GiB", "Stopped", "--max-seq-len 0")
	g.press("Start engine")
	g.tick()
	if !slices.Equal(f.engine.did, []string{"start"}) {
		t.Fatalf("it did %q", f.engine.did)
	}
	g.mustSay("Starting", "It is in use now")
	if !g.has("Engine: starting") || g.has("Start engine") {
		t.Error("a start cannot be seen on the buttons")
	}

	f.engine.set(func(s *console.EngineStatus) {
		s.State, s.Done, s.Total, s.Rate = console.EngineLoading, 14_400_000_000, 34_200_000_000, 1_230_000_000
	})
	g.tick()
	g.mustSay("Loading 42 %", "13.4 GiB of 31.9 GiB · 1.15 GiB/s · about 17 s left")
	if !g.has("Engine: loading 42 %") || g.has("Copy address") || g.has("Measure") {
		t.Error("the bar or the buttons do not fit a loading engine")
	}
	f.engine.set(func(s *console.EngineStatus) { s.Checking = true })
	g.tick()
	g.mustSay("waiting for its health check")

	f.serving(console.EngineReady)
	f.engine.set(func(*console.EngineStatus) {})
	g.tick()
	g.mustSay("Ready at http://127.0.0.1:8000", "8 requests of 4096 tokens each", "117 tok/s ▪", "48,231 in answers", "3 requests", "62.0 %", "18.4 %", "25.1 ms", "nothing is drafted")
	g.press("Copy address")
	if got := fyne.CurrentApp().Clipboard().Content(); got != "http://127.0.0.1:8000/v1" {
		t.Errorf("%q was copied", got)
	}
	f.engine.set(func(s *console.EngineStatus) { s.Ill = "connection refused" })
	g.tick()
	g.mustSay("does not answer its health check: Connection refused.")
	if !g.has("Engine: not answering") {
		t.Error("the bar says nothing of it")
	}
	g.press("Stop engine")
	g.tick()
	g.mustSay("Stopping")
	if !g.button("Engine: stopping").Disabled() || !g.button("Stop engine").Disabled() {
		t.Error("what is stopping can be stopped again")
	}
	f.engine.set(func(s *console.EngineStatus) {
		*s = console.EngineStatus{State: console.EngineStopped, Note: "The engine had not ended 8 s after it was asked to, and was killed."}
	})
	g.tick()
	g.mustSay("and was killed")
	if !slices.Equal(f.engine.did, []string{"start", "stop"}) {
		t.Errorf("it did %q", f.engine.did)
	}
}

func TestEngineThatCrashedSaysWhy(t *testing.T) {
	f := newFake().serving(console.EngineCrashed)
	g := onEngine(t, f)
	g.mustSay("Crashed: exit code 2", "Port 8000 is taken", "Use port 8001, which is free", "address already in use")
	g.press("Copy details")
	if got := fyne.CurrentApp().Clipboard().Content(); !strings.Contains(got, "Port 8000 is taken") || !strings.Contains(got, "velo serve") || !strings.Contains(got, "address already in use") {
		t.Errorf("%q was copied", got)
	}
	g.press("Use port 8001")
	if f.engine.config.Port != 8001 || !slices.Equal(f.engine.did, []string{"start"}) {
		t.Errorf("port %d, it did %q", f.engine.config.Port, f.engine.did)
	}
	g.tick()
	if g.says("Port 8000 is taken") {
		t.Error("the failure stays after a new start")
	}
	if got := g.entry("8000").Text; got != "8001" {
		t.Errorf("the field says %q", got)
	}
}

func TestEngineThatCrashesOnAnotherPageIsTold(t *testing.T) {
	f := newFake().withModel()
	g := onEngine(t, f)
	g.shell.Show(SuitesPage)
	g.tick()
	f.serving(console.EngineCrashed)
	g.tick()
	g.tick()
	g.mustSay("The engine ended by itself. Port 8000 is taken by another program.")
	g.press("Show engine")
	if g.shell.Page() != EnginePage || g.says("ended by itself") {
		t.Errorf("page %s", g.shell.Page())
	}
	g.shell.Show(SuitesPage)
	g.tick()
	if g.says("ended by itself") {
		t.Error("one crash is told twice")
	}
}

func TestEngineThatCannotBeStartedSaysWhy(t *testing.T) {
	f := newFake().withModel()
	f.engine.refused = errors.New("cannot start the engine: /models/x is not there any more; choose the model again")
	g := onEngine(t, f)
	g.press("Start engine")
	g.mustSay("Cannot start the engine: /models/x is not there any more; choose the model again.")
}

func TestEngineFormIsKeptAndSaysWhatItTakes(t *testing.T) {
	f := newFake().withModel()
	g := onEngine(t, f)
	context := g.entry("4096 or less")
	for _, bad := range []string{"0", "-1", "many", "99999999999999999999"} {
		context.SetText(bad)
		g.pump()
		g.mustSay("Context takes a whole number from 1 to")
		if !g.button("Start engine").Disabled() {
			t.Errorf("it can be started with a context of %q", bad)
		}
	}
	context.SetText("8192")
	g.mustSay("--max-seq-len 8192")
	if f.engine.config.Context != 0 {
		t.Error("it was kept with each key")
	}
	g.runLater()
	if f.engine.config.Context != 8192 {
		t.Error("what was typed is not kept after a rest")
	}
	g.entry("127.0.0.1").SetText("0.0.0.0")
	g.mustSay("Whoever reaches this machine")
	key := g.entry("Empty: none")
	key.SetText("secret")
	if g.says("Whoever reaches this machine") {
		t.Error("the warning stays although there is a key")
	}
	g.shell.Show(SuitesPage) // keeps what was typed
	g.pump()
	if !slices.Equal(f.engine.keys, []string{"secret"}) || f.engine.config.Host != "0.0.0.0" || key.Text != "" {
		t.Errorf("keys %q, host %q, the field holds %q", f.engine.keys, f.engine.config.Host, key.Text)
	}
	g.shell.Show(EnginePage)
	g.pump()
	find(g, func(c *widget.Check) bool { return strings.HasPrefix(c.Text, "Remove the key") })[0].SetChecked(true)
	g.press("Start engine")
	if f.engine.config.HasKey || len(f.engine.keys) != 2 {
		t.Error("the key was not removed")
	}
	// It runs now: what is changed takes a restart.
	f.engine.set(func(s *console.EngineStatus) { s.State = console.EngineReady })
	g.tick()
	if g.says("runs with other settings") {
		t.Error("it is said to run with other settings")
	}
	find(g, func(s *widget.Select) bool { return s.Selected == "on" })[0].SetSelected("off")
	g.pump()
	g.mustSay("The engine runs with other settings. Restart it to use these.")
	g.press("Restart")
	if f.engine.config.PrefixCache || f.engine.did[len(f.engine.did)-1] != "restart" {
		t.Errorf("%+v, did %q", f.engine.config, f.engine.did)
	}
}

func TestEngineFit(t *testing.T) {
	for _, c := range []struct {
		need, free int64
		problem    string
		want       string
	}{
		{10 << 30, 100 << 30, "", "Fits: it takes 10.0 GiB of the 100 GiB"},
		{90 << 30, 100 << 30, "", "Fits only just: it takes 90.0 GiB"},
		{200 << 30, 100 << 30, "", "Does not fit: it takes 200 GiB, and 100 GiB of memory may be used. Take a shorter context"},
		{1 << 30, 0, "", "how much may be used here is not known"},
		{1 << 30, 100 << 30, "cannot give a request 9 tokens: the model was made for 8 at most", "Cannot give a request 9 tokens: the model was made for 8 at most."},
	} {
		f := newFake().withModel()
		f.engine.facts.Need, f.engine.facts.Available, f.engine.facts.Problem = c.need, c.free, c.problem
		onEngine(t, f).mustSay(c.want)
	}
	f := newFake().withModel()
	f.engine.bad = errors.New("cannot open /models/x: config.json is not JSON")
	onEngine(t, f).mustSay("Cannot open /models/x: config.json is not JSON.")
}

func TestEngineLogIsFollowedSearchedAndPaused(t *testing.T) {
	f := newFake().serving(console.EngineReady)
	g := onEngine(t, f)
	g.mustSay("43 lines", "prefix cache full") // the end is in view
	search := g.entry("Search the log")
	search.SetText("warn CACHE")
	g.mustSay("1 of 43 lines")
	g.press("Copy log")
	if got := fyne.CurrentApp().Clipboard().Content(); !strings.HasSuffix(got, "Z WARN prefix cache full, oldest checkpoint dropped bytes=4.0GiB\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("%q was copied", got)
	}
	search.SetText("no such line")
	g.mustSay("No line matches the search.")
	search.SetText("")
	g.press("Pause")
	f.engine.say("ERROR", "a new line")
	g.tick()
	g.mustSay("43 of 44 lines, paused")
	if g.says("a new line") {
		t.Error("a paused log goes on")
	}
	g.press("Go on")
	g.mustSay("44 lines", "a new line")
	for range 6000 {
		f.engine.say("INFO", "flood")
	}
	f.engine.say("INFO", "the last one")
	g.tick()
	g.mustSay("5000 lines", "the last one")
}

// TestEngineLogStaysAtItsEnd: whatever height the log becomes, its end is in view, unless the user reads further
// up; and what came while the page was not in view is at its end too.
func TestEngineLogStaysAtItsEnd(t *testing.T) {
	f := newFake().serving(console.EngineReady)
	g := onEngine(t, f)
	list := find(g, func(l *widget.List) bool { return l.Length != nil && l.Length() == 43 })[0]
	ended := func(after string) {
		t.Helper()
		at := list.GetScrollOffset()
		if list.ScrollToBottom(); at < list.GetScrollOffset() || at == 0 {
			t.Errorf("after %s the log is at %v, and ends at %v", after, at, list.GetScrollOffset())
		}
	}
	ended("the start")
	for _, height := range []float32{1300, 720, 1000} {
		g.window.Resize(fyne.NewSize(1280, height))
		ended(fmt.Sprintf("a height of %v", height))
		f.engine.say("ERROR", fmt.Sprintf("it failed at %v", height))
		g.tick()
		g.mustSay(fmt.Sprintf("it failed at %v", height))
		ended("a line more")
	}
	g.shell.Show(SuitesPage)
	f.engine.say("ERROR", "it failed meanwhile")
	g.shell.Show(EnginePage)
	g.pump()
	g.tick()
	g.mustSay("it failed meanwhile")
	ended("another page")
	// Who has scrolled away reads on.
	list.ScrollToOffset(40)
	g.window.Resize(fyne.NewSize(1280, 800))
	f.engine.say("ERROR", "it failed again")
	g.tick()
	if at := list.GetScrollOffset(); at != 40 {
		t.Errorf("the log was moved to %v", at)
	}
	list.ScrollToBottom()
	f.engine.say("ERROR", "it failed at last")
	g.tick()
	g.mustSay("it failed at last")
	ended("coming back to its end")
}

func TestEngineIsAnEndpoint(t *testing.T) {
	f := newFake()
	f.endpoints = append([]console.Endpoint{{ID: console.EngineID, Name: "Velo engine – Qwen3 (stopped)", Engine: true, Down: "The engine is stopped. Start it first."}}, f.endpoints...)
	g := onEngine(t, f.serving(console.EngineReady))
	if !g.shell.chosen.endpoint.BuiltIn {
		t.Fatalf("%+v is chosen although nobody picked it and it is stopped", g.shell.chosen.endpoint)
	}
	g.press("Measure")
	if f.selected != console.EngineID || g.shell.Page() != SuitesPage {
		t.Errorf("%q is selected, page %s", f.selected, g.shell.Page())
	}
	g.mustSay("The engine is stopped. Start it first.")
	if !g.button("Run suite").Disabled() {
		t.Error("a stopped engine can be measured")
	}
	f.endpoints[0] = console.Endpoint{ID: console.EngineID, Name: "Velo engine – Qwen3", URL: "http://127.0.0.1:8000", Model: "Qwen3", Engine: true}
	f.change(console.ChangedEndpoints)
	g.pump()
	if g.says("The engine is stopped") || g.says("could not be listed") {
		t.Error("it still counts as stopped")
	}
	if !g.button("Edit…").Disabled() || g.shell.Do("endpoint.remove") {
		t.Error("the engine can be edited as an endpoint")
	}
	g.press("Run suite")
	if f.started[0].EndpointID != console.EngineID || f.started[0].Model != "Qwen3" {
		t.Errorf("started %+v", f.started[0])
	}
	g.tick()
	// Stopping it now would break the run.
	g.press("Engine: ready")
	g.mustSay("A run measures the engine just now.")
	if len(f.engine.did) != 0 {
		t.Error("it was stopped before the question was answered")
	}
	g.press("Stop engine")
	if !slices.Equal(f.engine.did, []string{"stop"}) {
		t.Errorf("it did %q", f.engine.did)
	}
}

func TestCloseKeepsWhatWasTypedForTheEngine(t *testing.T) {
	f := newFake().serving(console.EngineReady)
	g := onEngine(t, f)
	g.entry("8000").SetText("9000")
	g.shell.Close()
	g.mustSay("the engine is being stopped")
	g.pump()
	if f.engine.config.Port != 9000 || g.quit != 1 || f.closed != 1 {
		t.Errorf("port %d, ended %d times, console closed %d times", f.engine.config.Port, g.quit, f.closed)
	}
}

// TestEngineMovesOnlyWhenItDoes holds how often the window draws for the engine's sake.
func TestEngineMovesOnlyWhenItDoes(t *testing.T) {
	for _, c := range []struct {
		state, page string
		rests       bool
	}{
		{console.EngineStopped, EnginePage, true}, {console.EngineCrashed, EnginePage, true}, {console.EngineReady, SuitesPage, true},
		{console.EngineReady, EnginePage, false}, {console.EngineLoading, SuitesPage, false}, {console.EngineStopping, SuitesPage, false},
	} {
		g := newStage(t, newFake().serving(c.state), 1280, 776)
		_, next := g.shell.prepare(c.page)
		if (next == 0) != c.rests {
			t.Errorf("%s on the page %s: the next drawing comes after %s", c.state, c.page, next)
		}
		if next > 0 && next.Milliseconds() < 250 {
			t.Errorf("%s: numbers change more than four times a second", c.state)
		}
	}
}
