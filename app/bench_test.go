package app

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"velo/bench/sim"
	"velo/engine/enginetest"
	"velo/store"
	"velo/store/handoff"
)

// TestMain lets this test's own binary be the program: the built-in endpoint starts it as `velo sim`,
// the window its engine as `velo serve`.
func TestMain(m *testing.M) {
	if dir := os.Getenv(recordingChild); dir != "" {
		recordUntilKilled(dir)
	}
	if len(os.Args) > 1 && (slices.Contains([]string{"sim", "serve", "probe", "run", "quantize", "bench"}, os.Args[1])) {
		if os.Getenv(hangingFiles) != "" {
			hangOnFiles()
		}
		os.Exit(Main(os.Args[1:], nil))
	}
	os.Exit(m.Run())
}

// velo runs a command line in this process, with a store of its own.
func velo(ctx context.Context, args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = run(ctx, args, strings.NewReader(""), &o, &e, nil)
	return code, o.String(), e.String()
}

func suiteFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "suite.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const short = `{"title": "Short", "steps": [{"type": "section", "title": "One"}, {"type": "prompt", "text": "Say something.", "tg": 8}]}`

func endpoint(t *testing.T, s sim.Scenario) string {
	t.Helper()
	server, err := sim.Start(sim.Options{Scenario: s})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server.URL()
}

func scenario(t *testing.T, name string) sim.Scenario {
	t.Helper()
	s, err := sim.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBenchExitCodes(t *testing.T) {
	t.Setenv("VELO_DATA", t.TempDir())
	good := endpoint(t, scenario(t, "fast"))
	bad := endpoint(t, scenario(t, "unavailable"))
	file := suiteFile(t, short)
	for _, c := range []struct {
		name string
		args []string
		code int
		want string // in either output
	}{
		{"all well", []string{"bench", file, "--endpoint", good}, 0, "1 of 1 requests succeeded"},
		{"without /v1", []string{"bench", file, "--endpoint", strings.TrimSuffix(good, "/v1")}, 0, "1 of 1"},
		{"SLO met", []string{"bench", file, "--endpoint", good, "--slo", "ttft=10s", "--slo", "error_rate=0"}, 0, "met"},
		{"SLO missed", []string{"bench", file, "--endpoint", good, "--slo", "ttft=1us"}, 3, "missed"},
		{"SLO without support", []string{"bench", file, "--endpoint", good, "--slo", "ttft_p99=10s"}, 3, "not enough requests"},
		{"server fails", []string{"bench", file, "--endpoint", bad}, 1, "503"},
		{"nobody there", []string{"bench", file, "--endpoint", "http://127.0.0.1:9/v1"}, 1, "127.0.0.1:9"},
		{"no suite", []string{"bench"}, 2, "quick"},
		{"unknown suite", []string{"bench", "qick"}, 2, "quick"},
		{"unknown flag", []string{"bench", file, "--wokers", "2"}, 2, "wokers"},
		{"unknown format", []string{"bench", file, "--format", "docx"}, 2, "pdf"},
		{"bad SLO", []string{"bench", file, "--slo", "speed=3"}, 2, "speed"},
		{"bad workers", []string{"bench", file, "--workers", "0"}, 2, "workers"},
		{"bad URL", []string{"bench", file, "--endpoint", "ftp://x"}, 2, "ftp"},
		{"a folder that cannot be written to", []string{"bench", file, "--out", filepath.Join(file, "below")}, 1, "cannot make the folder"},
		{"key not set", []string{"bench", file, "--api-key-env", "VELO_NO_SUCH_KEY"}, 2, "VELO_NO_SUCH_KEY"},
		{"unknown command", []string{"bensch"}, 2, "bensch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := velo(t.Context(), c.args...)
			if code != c.code || !strings.Contains(out+errs, c.want) {
				t.Errorf("exit code %d, want %d; %q expected in\n%s\n%s", code, c.code, c.want, out, errs)
			}
		})
	}
}

// TestBenchBuiltIn measures the endpoint that comes along, in its own process, and says so.
func TestBenchBuiltIn(t *testing.T) {
	t.Setenv("VELO_DATA", t.TempDir())
	out := t.TempDir()
	code, text, errs := velo(t.Context(), "bench", suiteFile(t, short), "--workers", "3", "--repeat", "2",
		"--out", out, "--format", "pdf,png,svg,md,csv,json,html,benchstat,vllm")
	if code != 0 || !strings.Contains(text, "not a real model") {
		t.Fatalf("exit code %d\n%s\n%s", code, text, errs)
	}
	for _, ext := range []string{"pdf", "png", "svg", "md", "csv", "json", "html", "txt"} {
		if files, _ := filepath.Glob(filepath.Join(out, "*."+ext)); len(files) == 0 {
			t.Errorf("no *.%s was written", ext)
		}
	}
	code, text, errs = velo(t.Context(), "sessions", "--json")
	var s store.Summary
	if err := json.Unmarshal([]byte(text), &s); code != 0 || err != nil {
		t.Fatalf("sessions: exit code %d, %v\n%s\n%s", code, err, text, errs)
	}
	if s.Requests != 6 || s.Failed != 0 || s.Workers != 3 || !s.BuiltIn || s.Tokens != 48 || s.Metrics["ttft"] <= 0 {
		t.Errorf("the session is kept as %+v", s)
	}
}

func TestBenchJSONLine(t *testing.T) {
	t.Setenv("VELO_DATA", t.TempDir())
	code, out, errs := velo(t.Context(), "bench", suiteFile(t, short), "--endpoint", endpoint(t, scenario(t, "fast")), "--json")
	var line struct {
		Title   string
		Metrics map[string]struct {
			N         int
			Quantiles map[string]struct{ Value float64 }
		}
		Events any
	}
	if err := json.Unmarshal([]byte(out), &line); code != 0 || err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("exit code %d, %v\n%s\n%s", code, err, out, errs)
	}
	if m := line.Metrics["ttft"]; line.Title != "Short" || m.N != 1 || m.Quantiles["p50"].Value <= 0 || line.Events != nil {
		t.Errorf("the line is %+v", line)
	}
}

// TestBenchStopped ends a run in the middle of a stream: what there is, is kept.
func TestBenchStopped(t *testing.T) {
	t.Setenv("VELO_DATA", t.TempDir())
	url := endpoint(t, scenario(t, "slow"))
	ctx, stop := context.WithCancel(t.Context())
	file := suiteFile(t, `{"title": "Long", "steps": [{"type": "section", "title": "One"}, {"type": "prompt", "text": "Talk.", "tg": 60}]}`)
	time.AfterFunc(2500*time.Millisecond, stop)
	code, out, errs := velo(ctx, "bench", file, "--endpoint", url, "--warmup", "0")
	if code != 130 {
		t.Fatalf("exit code %d\n%s\n%s", code, out, errs)
	}
	_, text, _ := velo(t.Context(), "sessions", "--json")
	var s store.Summary
	if err := json.Unmarshal([]byte(text), &s); err != nil || s.State != store.StateStopped || s.Chunks == 0 {
		t.Errorf("the session is kept as %+v (%v)", s, err)
	}
}

// TestBenchBesideAWindow measures while another process holds the store: the session goes through
// the inbox, handed over to who listens, or taken in later.
func TestBenchBesideAWindow(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("VELO_DATA", dir)
	url := endpoint(t, scenario(t, "fast"))
	file := suiteFile(t, short)
	st, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := newConsole(st, dir)
	if code, out, errs := velo(t.Context(), "bench", file, "--endpoint", url); code != 0 {
		t.Fatalf("nobody listens: exit code %d\n%s\n%s", code, out, errs)
	}
	if list, _ := st.Sessions(); len(list) != 0 {
		t.Fatalf("%d sessions came without being handed over", len(list))
	}
	if taken, err := st.ImportInbox(); err != nil || len(taken) != 1 {
		t.Fatalf("the inbox had %d sessions: %v", len(taken), err)
	}
	l, err := handoff.Listen(dir, func(m handoff.Message) handoff.Reply { return c.takeSession(m.Session) })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if code, out, errs := velo(t.Context(), "bench", file, "--endpoint", url); code != 0 {
		t.Fatalf("somebody listens: exit code %d\n%s\n%s", code, out, errs)
	}
	list, err := c.Sessions()
	if err != nil || len(list) != 2 || !list[0].TTFT.Ok() {
		t.Errorf("the window has %+v (%v)", list, err)
	}
	if files, _ := filepath.Glob(filepath.Join(st.Inbox(), "*")); len(files) != 0 {
		t.Errorf("the inbox still has %v", files)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestBenchTokenizer counts answers with a model's own tokenizer, and drops one that is another
// model's.
func TestBenchTokenizer(t *testing.T) {
	t.Setenv("VELO_DATA", t.TempDir())
	folder := enginetest.Folder(t, enginetest.Plain)
	measure := func(scenarioName string, more ...string) (source, notes string) {
		out := t.TempDir()
		args := append([]string{"bench", suiteFile(t, short), "--endpoint", endpoint(t, scenario(t, scenarioName)), "--out", out, "--format", "json"}, more...)
		if code, text, errs := velo(t.Context(), args...); code != exitOK {
			t.Fatalf("exit code %d\n%s\n%s", code, text, errs)
		}
		code, text, errs := velo(t.Context(), "sessions", "--json")
		if code != exitOK {
			t.Fatalf("sessions: %s", errs)
		}
		var last store.Summary
		if err := json.Unmarshal([]byte(strings.SplitN(text, "\n", 2)[0]), &last); err != nil {
			t.Fatal(err)
		}
		files, _ := filepath.Glob(filepath.Join(out, "*.json"))
		if len(files) != 1 {
			t.Fatalf("files: %v", files)
		}
		report, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		return string(last.Source), string(report)
	}
	if source, _ := measure("usage-absent", "--tokenizer", folder); source != "tokenizer" {
		t.Errorf("with the tokenizer the source is %s", source)
	}
	if source, _ := measure("usage-absent"); source != "estimate" {
		t.Errorf("without it the source is %s", source)
	}
	// Eight tokens that the endpoint counts are many more of this byte-level vocabulary.
	if source, notes := measure("fast", "--tokenizer", filepath.Join(folder, "tokenizer.json")); source == "tokenizer" || !strings.Contains(notes, "it is not the model's") {
		t.Errorf("another model's tokenizer: the source is %s", source)
	}
	for path, want := range map[string]string{
		filepath.Join(folder, "nothing"):     "no such file",
		t.TempDir():                          "the folder has no tokenizer.json",
		filepath.Join(folder, "config.json"): "tokenizer",
	} {
		if code, _, errs := velo(t.Context(), "bench", suiteFile(t, short), "--tokenizer", path); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %s", path, code, errs)
		}
	}
}
