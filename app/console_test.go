package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"velo/bench"
	"velo/store"
	"velo/ui/console"
)

func opened(t *testing.T) *theConsole {
	t.Helper()
	c := openedAt(t, t.TempDir())
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// openedAt is a console over the store in a folder; the test closes it.
func openedAt(t *testing.T, dir string) *theConsole {
	t.Helper()
	st, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return newConsole(st, dir)
}

// settled waits for the end of the run.
func settled(t *testing.T, c *theConsole) console.RunState {
	t.Helper()
	c.run.wait()
	s := c.Run()
	if s.Active {
		t.Fatal("the run still counts as active after its end")
	}
	return s
}

// TestConsoleRun is the job of the window: open a suite, run it, watch, read the report, export.
func TestConsoleRun(t *testing.T) {
	c := opened(t)
	what, err := c.Open(suiteFile(t, short))
	if err != nil || what.Kind != console.KindSuite {
		t.Fatalf("Open: %+v, %v", what, err)
	}
	heard := make(chan string, 100)
	cancel := c.Changes(func(w string) { heard <- w })
	defer cancel()
	if err := c.Start(console.RunSpec{SuiteID: what.ID, Workers: 2, Repeat: 1, Quiet: true}); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(console.RunSpec{SuiteID: what.ID, Workers: 1, Repeat: 1}); err == nil {
		t.Error("a second run started beside the first")
	}
	s := settled(t, c)
	if s.Finished != console.FinishedDone || s.Snapshot.Tokens != 16 || !s.BuiltIn || s.SessionID == "" {
		t.Errorf("the run ended as %+v", s)
	}
	later := c.Run()
	if later.Snapshot.At != s.Snapshot.At {
		t.Error("the numbers of a finished run go on")
	}
	r, err := c.Report(s.SessionID)
	if err != nil || r.Run.OK != 2 || r.Session.Header.Drawing != "quiet" {
		t.Fatalf("Report: %v, %+v", err, r)
	}
	files, err := c.Export(s.SessionID, []string{"pdf", "png"}, t.TempDir())
	if err != nil || len(files) < 2 {
		t.Errorf("Export: %v, %v", files, err)
	}
	path := filepath.Join(t.TempDir(), "one.velo")
	if err := c.ExportFile(s.SessionID, path); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteSession(s.SessionID); err != nil {
		t.Fatal(err)
	}
	if what, err = c.Open(path); err != nil || what.Kind != console.KindSession || what.ID != s.SessionID {
		t.Errorf("the exported session came back as %+v, %v", what, err)
	}
	if got := c.Recent(); len(got) != 2 || got[0] != path {
		t.Errorf("the recent files are %v", got)
	}
	seen := map[string]bool{}
	for len(heard) > 0 {
		seen[<-heard] = true
	}
	if !seen[console.ChangedRun] || !seen[console.ChangedSessions] {
		t.Errorf("changes were told: %v", seen)
	}
}

func TestConsoleStopKeepsTheTurn(t *testing.T) {
	c := opened(t)
	long := scenario(t, "fast")
	long.Tokens = 5000 // ten seconds
	e, err := c.SaveEndpoint(console.Endpoint{URL: endpoint(t, long)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	what, err := c.Open(suiteFile(t, strings.Replace(short, `"tg": 8`, `"tg": 5000`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(console.RunSpec{EndpointID: e.ID, SuiteID: what.ID, Workers: 1, Repeat: 1}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); c.Run().Snapshot.Tokens == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no token came")
		}
	}
	c.Stop()
	s := settled(t, c)
	if s.Finished != console.FinishedStopped {
		t.Errorf("the run ended as %q: %s", s.Finished, s.Error)
	}
	r, err := c.Report(s.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	last := r.Session.Exchanges[len(r.Session.Exchanges)-1]
	if last.Request.Warmup || last.End == nil || last.End.Status != bench.Stopped || len(last.Chunks) == 0 {
		t.Errorf("the partial turn is kept as %+v with %d chunks", last.End, len(last.Chunks))
	}
}

func TestConsoleEndpoints(t *testing.T) {
	c := opened(t)
	key := "secret-key"
	e, err := c.SaveEndpoint(console.Endpoint{URL: "127.0.0.1:8000"}, &key)
	if err != nil || !e.HasKey || e.URL != "http://127.0.0.1:8000/v1" || e.Name != "127.0.0.1:8000" {
		t.Fatalf("SaveEndpoint: %+v, %v", e, err)
	}
	if _, got, err := c.connect(t.Context(), e.ID); err != nil || got != key {
		t.Errorf("the key came back as %q, %v", got, err)
	}
	if data, err := os.ReadFile(filepath.Join(c.dir, "velo.db")); err != nil || strings.Contains(string(data), key) {
		t.Errorf("the key lies in the database (%v)", err)
	}
	e.Name = "box"
	if e, err = c.SaveEndpoint(e, nil); err != nil || !e.HasKey {
		t.Errorf("a change of the name lost the key: %+v, %v", e, err)
	}
	none := ""
	if e, err = c.SaveEndpoint(e, &none); err != nil || e.HasKey {
		t.Errorf("an empty key did not remove it: %+v, %v", e, err)
	}
	if _, err := c.SaveEndpoint(console.Endpoint{URL: "ftp://x"}, nil); err == nil {
		t.Error("ftp was taken for an endpoint")
	}
	if _, err := c.Check(t.Context(), console.Endpoint{URL: "http://127.0.0.1:9"}, ""); err == nil {
		t.Error("nobody listens there, and that was fine")
	}
	if said, err := c.Check(t.Context(), console.Endpoint{URL: endpoint(t, scenario(t, "fast"))}, ""); err != nil || !strings.Contains(said, "velo-sim") {
		t.Errorf("Check: %q, %v", said, err)
	}
	if err := c.DeleteEndpoint(e.ID); err != nil {
		t.Error(err)
	}
	if err := c.DeleteEndpoint(builtInID); err == nil {
		t.Error("the built-in endpoint was removed")
	}
	if ids, err := c.Models(t.Context(), builtInID); err != nil || len(ids) != 1 {
		t.Errorf("the built-in endpoint serves %v, %v", ids, err)
	}
}

func TestConsoleFailures(t *testing.T) {
	c := opened(t)
	e, err := c.SaveEndpoint(console.Endpoint{URL: "http://127.0.0.1:9/v1", Model: "m"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(console.RunSpec{EndpointID: e.ID, SuiteID: "prebuilt-sanity", Workers: 1, Repeat: 1}); err != nil {
		t.Fatal(err)
	}
	if s := settled(t, c); s.Finished != console.FinishedFailed || !strings.Contains(s.Error, "127.0.0.1:9") {
		t.Errorf("the run ended as %q: %q", s.Finished, s.Error)
	}
	for _, spec := range []console.RunSpec{
		{SuiteID: "nothing", Workers: 1, Repeat: 1},
		{SuiteID: "prebuilt-sanity", Workers: 0, Repeat: 1},
		{SuiteID: "prebuilt-sanity", EndpointID: "gone", Workers: 1, Repeat: 1},
	} {
		if err := c.Start(spec); err == nil {
			t.Errorf("%+v was started", spec)
		}
	}
	for name, text := range map[string]string{"a.json": "{", "b.velo": "not a session", "c.txt": "hello"} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Open(path); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Open(%s): %v", name, err)
		}
	}
	if _, err := c.Open(filepath.Join(t.TempDir(), "missing.json")); err == nil {
		t.Error("a missing file was opened")
	}
}
