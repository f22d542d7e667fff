package app

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"velo/engine/enginetest"
	"velo/ui/console"
)

// engineState waits, as long as it takes, until the engine is so.
func engineState(t *testing.T, c *theConsole, want string) console.EngineStatus {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		s := c.Engine().Status()
		if s.State == want {
			return s
		}
		if s.State == console.EngineCrashed || time.Now().After(end) {
			lines, _ := c.Engine().Log(0)
			t.Fatalf("the engine is %s, not %s: %+v\n%v", s.State, want, s.Failure, lines)
		}
	}
}

func engineEndpoint(t *testing.T, c *theConsole) console.Endpoint {
	t.Helper()
	e, err := c.endpoint(console.EngineID)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// configured is a console whose engine has a small model and any free port.
func configured(t *testing.T, family string) (*theConsole, string) {
	t.Helper()
	c := opened(t)
	folder := enginetest.Folder(t, family)
	what, err := c.Open(folder)
	if err != nil || what.Kind != console.KindModel || what.ID != folder {
		t.Fatalf("Open: %+v, %v", what, err)
	}
	config := c.Engine().Config()
	config.Port, config.Context, config.Lanes, config.Threads = 0, 128, 2, 1
	if err := c.Engine().SaveConfig(config, nil); err != nil {
		t.Fatal(err)
	}
	return c, folder
}

// TestEngineOfTheWindow is the whole of it with the real engine: choose, start, measure, stop.
func TestEngineOfTheWindow(t *testing.T) {
	c, folder := configured(t, enginetest.Plain)
	if got := c.Engine().RecentModels(); len(got) != 1 || got[0] != folder {
		t.Errorf("the recent models are %v", got)
	}
	if got := c.Recent(); len(got) != 0 {
		t.Errorf("a model is among the recent files: %v", got)
	}
	if e := engineEndpoint(t, c); e.Down == "" || !strings.HasSuffix(e.Name, "(stopped)") {
		t.Errorf("an engine that does not run is the endpoint %+v", e)
	}
	key := "a key of the test"
	if err := c.Engine().SaveConfig(c.Engine().Config(), &key); err != nil {
		t.Fatal(err)
	}
	if err := c.Engine().Start(); err != nil {
		t.Fatal(err)
	}
	s := engineState(t, c, console.EngineReady)
	if s.Context != 128 || s.Lanes != 2 || s.Model == "" || s.Config.Model != folder {
		t.Errorf("ready as %+v", s)
	}
	lines, _ := c.Engine().Log(0)
	for _, l := range lines {
		if strings.Contains(l.Text, key) {
			t.Errorf("the key is in the log: %q", l.Text)
		}
	}
	e := engineEndpoint(t, c)
	if e.Down != "" || !e.Engine || e.Name != "Velo engine – "+s.Model || e.Model != s.Model {
		t.Errorf("a ready engine is the endpoint %+v", e)
	}
	what, err := c.Open(suiteFile(t, short))
	if err != nil {
		t.Fatal(err)
	}
	run := console.RunSpec{SuiteID: what.ID, EndpointID: console.EngineID, Workers: 2, Repeat: 1, Quiet: true}
	if err := c.Start(run); err != nil {
		t.Fatal(err)
	}
	if r := settled(t, c); r.Finished != console.FinishedDone {
		t.Fatalf("the run ended as %s: %s", r.Finished, r.Error)
	}
	list, err := c.Sessions()
	if err != nil || len(list) != 1 || list[0].Endpoint != e.Name || list[0].Model != s.Model || list[0].BuiltIn {
		t.Errorf("the session is %+v, %v", list, err)
	}
	report, err := c.Report(list[0].ID)
	if err != nil || report.Session.Header.Endpoint.OwnedBy != "velo" || !strings.HasPrefix(report.Session.Header.Endpoint.URL, s.URL) {
		t.Errorf("the session's endpoint is %+v, %v", report.Session.Header.Endpoint, err)
	}
	for end := time.Now().Add(time.Minute); !c.Engine().Status().Figures.Tokens.Ok() || c.Engine().Status().Figures.Tokens == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the figures never come: %+v", c.Engine().Status().Figures)
		}
	}
	if f := c.Engine().Status().Figures; !f.KV.Ok() || !f.Running.Ok() || f.StepP50 <= 0 || f.Acceptance.Ok() {
		t.Errorf("figures %+v", f)
	}
	if _, err := c.SaveEndpoint(e, nil); err == nil {
		t.Error("the engine can be changed as an endpoint")
	}
	if err := c.DeleteEndpoint(console.EngineID); err == nil {
		t.Error("the engine can be removed from the endpoints")
	}

	c.Engine().Stop()
	engineState(t, c, console.EngineStopped)
	if err := c.Start(run); err != nil {
		t.Fatal(err)
	}
	if r := settled(t, c); r.Finished != console.FinishedFailed || !strings.Contains(r.Error, "The engine is stopped. Start it first.") {
		t.Errorf("a run against a stopped engine: %s, %s", r.Finished, r.Error)
	}
}

func TestEngineThatDoesNotStartSaysWhy(t *testing.T) {
	c, folder := configured(t, enginetest.Plain)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	crash := func(change func(*console.EngineConfig)) console.EngineFailure {
		t.Helper()
		before := c.Engine().Config()
		config := before
		change(&config)
		if err := c.Engine().SaveConfig(config, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.Engine().Start(); err != nil {
			t.Fatal(err)
		}
		for c.Engine().Status().State != console.EngineCrashed {
			if c.Engine().Status().State == console.EngineReady {
				t.Fatal("it started")
			}
			time.Sleep(5 * time.Millisecond)
		}
		if err := c.Engine().SaveConfig(before, nil); err != nil {
			t.Fatal(err)
		}
		return c.Engine().Status().Failure
	}
	port := l.Addr().(*net.TCPAddr).Port
	if f := crash(func(c *console.EngineConfig) { c.Port = port }); f.NextPort <= port || f.Ended != "exit code 2" || !strings.Contains(f.Message, fmt.Sprint(port)) {
		t.Errorf("a port that is taken: %+v", f)
	}
	if e := engineEndpoint(t, c); !strings.Contains(e.Down, "crashed") {
		t.Errorf("the endpoint of a crashed engine: %+v", e)
	}
	if f := crash(func(c *console.EngineConfig) { c.Context = 1 << 24 }); f.Message == "" || f.Advice == "" || f.Ended != "exit code 1" {
		t.Errorf("a context that the model was not made for: %+v", f)
	}
	weights, err := filepath.Glob(filepath.Join(folder, "*.safetensors"))
	if err != nil || len(weights) == 0 {
		t.Fatalf("the model has no weights: %v", err)
	}
	if err := os.Truncate(weights[0], 100); err != nil {
		t.Fatal(err)
	}
	if f := crash(func(*console.EngineConfig) {}); !strings.Contains(f.Message, "safetensors") || !strings.Contains(f.Advice, "another model") || len(f.Lines) == 0 {
		t.Errorf("a damaged model: %+v", f)
	}
	if _, err := c.Engine().Inspect(context.Background(), c.Engine().Config()); err == nil || !strings.Contains(err.Error(), "safetensors") {
		t.Errorf("a damaged model is inspected: %v", err)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := c.Engine().Start(); err == nil || !strings.Contains(err.Error(), "is not there any more") {
		t.Errorf("a model that is gone: %v", err)
	}
}

func TestEngineInspect(t *testing.T) {
	for family, hybrid := range map[string]bool{enginetest.Plain: false, enginetest.Hybrid: true} {
		c, folder := configured(t, family)
		f, err := c.Engine().Inspect(context.Background(), c.Engine().Config())
		if err != nil {
			t.Fatal(err)
		}
		if f.Path != folder || f.Architecture != family || f.Format != "safetensors" || f.Type == "" || f.Layers < 1 || f.Device == "" || f.Context != 128 || f.Lanes != 2 ||
			f.Need != f.Weights+f.KV+f.State+f.Scratch+f.Choice+f.Own || f.Weights <= 0 || f.KV <= 0 || f.Available <= 0 || (f.State > 0) != hybrid || f.Problem != "" {
			t.Errorf("%s: %+v", family, f)
		}
		config := c.Engine().Config()
		config.Context = 1 << 24
		if f, err = c.Engine().Inspect(context.Background(), config); err != nil || !strings.Contains(f.Problem, "the model was made for") || f.Need <= 0 {
			t.Errorf("%s with too long a context: %+v, %v", family, f, err)
		}
	}
}

func TestEngineSettingsAreKept(t *testing.T) {
	dir := t.TempDir()
	c := openedAt(t, dir)
	var models []string
	for i := range 12 {
		path := filepath.Join(dir, fmt.Sprintf("model-%d.gguf", i))
		models = append(models, path)
		config := c.Engine().Config()
		config.Model, config.Lanes = path, i+1
		if err := c.Engine().SaveConfig(config, nil); err != nil {
			t.Fatal(err)
		}
	}
	key := "secret"
	if err := c.Engine().SaveConfig(c.Engine().Config(), &key); err != nil {
		t.Fatal(err)
	}
	want := c.Engine().Config()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "velo.db")); err == nil && strings.Contains(string(data), key) {
		t.Error("the key is in the database")
	}
	c = openedAt(t, dir)
	defer c.Close()
	if got := c.Engine().Config(); got != want || !got.HasKey || got.Model != models[11] {
		t.Errorf("%+v was kept of %+v", got, want)
	}
	if got := c.Engine().RecentModels(); len(got) != 10 || got[0] != models[11] || got[9] != models[2] {
		t.Errorf("the recent models are %v", got)
	}
}

// TestEngineStartsWithTheWindow, and ends with it, while it still loads or when it is ready.
func TestEngineStartsWithTheWindow(t *testing.T) {
	for _, wait := range []bool{false, true} {
		c, _ := configured(t, enginetest.Plain)
		c.engine.launch()
		if s := c.Engine().Status().State; s != console.EngineStopped {
			t.Errorf("it is %s although nobody wants it started", s)
		}
		config := c.Engine().Config()
		config.AtLaunch = true
		if err := c.Engine().SaveConfig(config, nil); err != nil {
			t.Fatal(err)
		}
		c.engine.launch()
		if wait {
			engineState(t, c, console.EngineReady)
		}
		if !c.Engine().Status().Running() {
			t.Errorf("it is %s although it is wanted at every start", c.Engine().Status().State)
		}
		pid := c.engine.process.Status().PID
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if p, err := os.FindProcess(pid); err == nil && p.Signal(syscall.Signal(0)) == nil {
			t.Errorf("process %d outlives the window", pid)
		}
		if note := c.Engine().Status().Note; note != "" {
			t.Errorf("it did not end by itself: %s", note)
		}
	}
}

func TestEngineRefusesWhatCannotBeStarted(t *testing.T) {
	here := t.TempDir()
	for _, c := range []struct {
		config console.EngineConfig
		want   string
	}{
		{console.EngineConfig{}, "choose a model first"},
		{console.EngineConfig{Model: here, Port: 70000}, "ports are 1 to 65535"},
		{console.EngineConfig{Model: here, Lanes: -1}, "start at 1"},
		{console.EngineConfig{Model: here, Telemetry: "localhost:4318"}, "http://127.0.0.1:4318"},
		{console.EngineConfig{Model: filepath.Join(here, "gone")}, "is not there any more"},
	} {
		if err := checkEngine(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.config, err, c.want)
		}
	}
	if err := checkEngine(console.EngineConfig{Model: here, Telemetry: "grpc://127.0.0.1:4317", Port: 8000}); err != nil {
		t.Error(err)
	}
}

// TestEngineCommandIsWhatServeTakes gives the flags of the form to `velo serve` and reads back what
// it understood.
func TestEngineCommandIsWhatServeTakes(t *testing.T) {
	c := console.EngineConfig{Model: "/models/it's a model", Host: "0.0.0.0", Port: 9000, Context: 8192, Lanes: 4, Threads: 3, Telemetry: "http://127.0.0.1:4318", HasKey: true}
	code, out, errs := velo(context.Background(), append([]string{"serve", "--print-config"}, serveFlags(c)...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, want := range []string{"--model-dir=/models/it's a model", "--host=0.0.0.0", "--port=9000", "--max-seq-len=8192", "--max-batch=4", "--threads=3",
		"--prefix-cache=off", "--otel-endpoint=http://127.0.0.1:4318"} {
		if !strings.Contains(out, want+"\n") {
			t.Errorf("serve does not understand %q:\n%s", want, out)
		}
	}
	_, out, _ = velo(context.Background(), append([]string{"serve", "--print-config"}, serveFlags(console.EngineConfig{Model: "m", Port: 8000, PrefixCache: true})...)...)
	for _, want := range []string{"--max-batch=8  (default)", "--prefix-cache=on  (default)", "--threads=0  (default)"} {
		if !strings.Contains(out, want+"\n") {
			t.Errorf("what is left to the engine is not %q:\n%s", want, out)
		}
	}
	got := (&theEngine{}).Command(c)
	want := `VELO_API_KEY=… velo serve --model-dir '/models/it'\''s a model' --host 0.0.0.0 --port 9000 --max-seq-len 8192 --max-batch 4 --threads 3 --prefix-cache=off --otel-endpoint http://127.0.0.1:4318`
	if got != want {
		t.Errorf("the command line is\n%s\nwant\n%s", got, want)
	}
}

func TestOpenTellsModelsFromOtherFolders(t *testing.T) {
	c := opened(t)
	if _, err := c.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no config.json") {
		t.Errorf("an empty folder: %v", err)
	}
	file := filepath.Join(t.TempDir(), "Tiny.GGUF")
	if err := os.WriteFile(file, []byte("GGUF"), 0o600); err != nil {
		t.Fatal(err)
	}
	if what, err := c.Open(file); err != nil || what.Kind != console.KindModel {
		t.Errorf("a .gguf file: %+v, %v", what, err)
	}
}
