package ui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fyne.io/fyne/v2/test"

	"velo/ui/console"
	"velo/ui/look"
)

// local is a console on whose machine two servers run, and one that loads.
func (f *fake) local() *fake {
	f.servers = []console.Server{
		{Kind: console.ServerVLLM, Version: "0.11.2", URL: "http://127.0.0.1:8000/v1", Models: []string{"llama-3.3-70b-instruct-nvfp4"}},
		{Kind: console.ServerOllama, Version: "0.12.0", URL: "http://127.0.0.1:11434/v1", Models: []string{"qwen3:32b", "gemma3:27b", "gpt-oss:120b"}},
		{Kind: console.ServerLlama, URL: "http://127.0.0.1:8080/v1", Down: "It is loading its model. Search again in a moment."},
		{Kind: console.ServerSGLang, URL: "http://127.0.0.1:30000/v1", Locked: true},
	}
	return f
}

// TestANumberInThreeClicks begins as a new user does, and counts the clicks until a number is on
// screen: with a server on this machine, and without one.
func TestANumberInThreeClicks(t *testing.T) {
	for name, c := range map[string]struct {
		fake     *fake
		endpoint string
	}{
		"a server runs":    {newFake().local(), "http://127.0.0.1:8000/v1"},
		"no server runs":   {newFake(), ""},
		"one that was run": {newFake().full().local(), "http://127.0.0.1:8000/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := c.fake
			f.settings.Page = ""
			g := newStage(t, f, 1280, 776)
			if g.shell.Page() != StartPage {
				t.Fatalf("a new user sees page %s", g.shell.Page())
			}
			clicks := 0
			click := func(b *look.PushButton) { clicks++; test.Tap(b); g.pump() }
			main := find(g, func(b *look.PushButton) bool {
				return b.Importance == look.MainButton("", nil).Importance && !b.Disabled()
			})
			if len(main) != 1 {
				t.Fatalf("%d buttons stand out", len(main))
			}
			click(main[0])
			if g.shell.Page() != RunPage || len(f.started) != 1 {
				t.Fatalf("page %s, started %+v", g.shell.Page(), f.started)
			}
			spec := f.started[0]
			f.running(1, 0.6)
			g.tick()
			number := false
			for _, tile := range find(g, func(*look.Tile) bool { return true }) {
				number = number || strings.Contains(tile.Value(), "tok/s") && strings.ContainsAny(tile.Value(), "123456789")
			}
			if !number {
				t.Error("no number is on screen")
			}
			if clicks > 3 {
				t.Errorf("it took %d clicks", clicks)
			}
			url := ""
			for _, e := range f.endpoints {
				if e.ID == spec.EndpointID {
					url = e.URL
				}
			}
			if url != c.endpoint || spec.SuiteID != quickSample || spec.Model != "" {
				t.Errorf("measures %q: %+v", url, spec)
			}
		})
	}
}

func TestStartPageTellsWhatItFinds(t *testing.T) {
	f := newFake().local()
	g := newStage(t, f, 1280, 776)
	g.mustSay("4 servers answer.", "vLLM 0.11.2", "llama-3.3-70b-instruct-nvfp4", "Ollama 0.12.0", "3 models: qwen3:32b", "It is loading its model", "It wants a key", "Scripted endpoint")
	g.press("Enter key…")
	if got := find(g, func(e *look.Entry) bool { return e.Text == "http://127.0.0.1:30000/v1" }); len(got) != 1 || g.shell.Page() != SettingsPage {
		t.Error("the form does not know the address")
	}
	g.shell.Show(StartPage)
	g.pump()

	g.press("Use")
	if len(f.endpoints) != 2 || f.selected != f.endpoints[0].ID || f.endpoints[0].URL != "http://127.0.0.1:8000/v1" || f.endpoints[0].Preset != "vllm" {
		t.Fatalf("endpoints %+v, selected %q", f.endpoints, f.selected)
	}
	g.mustSay("is the endpoint that runs take")
	g.shell.Show(StartPage)
	g.pump()
	g.mustSay("among the endpoints")
	g.press("Use") // once more adds none
	if len(f.endpoints) != 2 {
		t.Errorf("the same server is %d endpoints", len(f.endpoints)-1)
	}

	f.mu.Lock()
	f.servers = nil
	f.mu.Unlock()
	g.shell.Show(StartPage)
	g.pump()
	g.mustSay("No server answers on the usual ports")
	f.local()
	g.press("Search again")
	g.mustSay("4 servers answer.")
	if f.searches != 5 {
		t.Errorf("searched %d times", f.searches)
	}

	f.running(1, 0.5)
	g.tick()
	f.change(console.ChangedRun)
	g.shell.changed(console.ChangedRun)
	g.pump()
	g.mustSay("A run is going on")
	if !g.button("Measure").Disabled() {
		t.Error("a second run can be started")
	}
}

func TestStartPageListsWhatWasOpened(t *testing.T) {
	f := newFake()
	here := filepath.Join(t.TempDir(), "here.json")
	writeFile(t, here)
	f.recent = []string{here, "/nowhere/gone.velo"}
	g := newStage(t, f, 1280, 776)
	g.mustSay("here.json", "gone.velo", "not there any more")
	open := find(g, func(b *look.PushButton) bool { return b.Text == "Open" })
	if len(open) != 2 || open[0].Disabled() || !open[1].Disabled() {
		t.Fatal("what is missing can be opened, or what is there cannot")
	}
	test.Tap(open[0])
	g.pump()
	if len(f.opened) != 1 || f.opened[0] != here {
		t.Errorf("opened %v", f.opened)
	}
}

func writeFile(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
}
