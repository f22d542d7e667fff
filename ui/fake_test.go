package ui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"velo/bench/measure"
	"velo/bench/report"
	"velo/bench/runner"
	"velo/bench/suite"
	"velo/ui/console"
)

// fake is a console in memory. It is safe for concurrent use, as a console must be.
type fake struct {
	mu        sync.Mutex
	endpoints []console.Endpoint
	selected  string
	suites    []console.Suite
	sessions  []console.Session
	state     console.RunState
	settings  console.Settings
	recent    []string
	notices   []string
	reports   map[string]*report.Report
	fail      error // of everything that can fail
	watchers  []func(string)

	started  []console.RunSpec
	stopped  int
	opened   []string
	exports  []string
	deleted  []string
	renamed  map[string]string
	saved    []console.Settings
	runs     int // calls of Run
	closed   int
	unlisted error // of Models
	engine   fakeEngine
	prefs    *fakeSettings // what the user sets; nil until it is asked for
	chats    fakeChats
	servers  []console.Server // that are found on this machine
	searches int

	telemetry fakeTelemetry
}

var _ console.Console = (*fake)(nil)

func newFake() *fake {
	f := &fake{settings: console.Settings{Theme: "dark"}, reports: map[string]*report.Report{}, renamed: map[string]string{}}
	f.engine.fake = f
	f.chats.fake = f
	f.telemetry.fake = f
	f.engine.config = console.EngineConfig{Port: 8000, PrefixCache: true}
	f.engine.status.State = console.EngineStopped
	f.endpoints = []console.Endpoint{{ID: "builtin", Name: "Built-in scripted endpoint", BuiltIn: true}}
	for _, s := range suite.BuiltIn() {
		f.suites = append(f.suites, console.Suite{ID: s.ID, Title: s.Title, Description: s.Description, BuiltIn: true, Steps: s.Requests(1, 1)})
	}
	return f
}

func (f *fake) lock() func() { f.mu.Lock(); return f.mu.Unlock }

func (f *fake) Endpoints() []console.Endpoint {
	defer f.lock()()
	return append([]console.Endpoint(nil), f.endpoints...)
}

func (f *fake) SaveEndpoint(e console.Endpoint, key *string) (console.Endpoint, error) {
	defer f.lock()()
	if f.fail != nil {
		return e, f.fail
	}
	if e.ID == "" {
		e.ID = fmt.Sprint("e", len(f.endpoints))
	}
	if key != nil {
		e.HasKey = *key != ""
	}
	for i := range f.endpoints {
		if f.endpoints[i].ID == e.ID {
			f.endpoints[i] = e
			return e, nil
		}
	}
	f.endpoints = append([]console.Endpoint{e}, f.endpoints...)
	return e, nil
}

func (f *fake) DeleteEndpoint(id string) error {
	defer f.lock()()
	var left []console.Endpoint
	for _, e := range f.endpoints {
		if e.ID != id {
			left = append(left, e)
		}
	}
	f.endpoints = left
	return f.fail
}

func (f *fake) SelectedEndpoint() string { defer f.lock()(); return f.selected }
func (f *fake) SelectEndpoint(id string) { defer f.lock()(); f.selected = id }

func (f *fake) Models(ctx context.Context, id string) ([]string, error) {
	defer f.lock()()
	if f.unlisted != nil {
		return nil, f.unlisted
	}
	return []string{"llama-3.3-70b-instruct-nvfp4", "qwen3-32b-fp8"}, ctx.Err()
}

func (f *fake) Check(context.Context, console.Endpoint, string) (string, error) {
	defer f.lock()()
	return "2 models, the first is llama-3.3-70b-instruct-nvfp4", f.fail
}

func (f *fake) FindServers(ctx context.Context) []console.Server {
	defer f.lock()()
	f.searches++
	if ctx.Err() != nil {
		return nil
	}
	found := append([]console.Server(nil), f.servers...)
	for i := range found {
		for _, e := range f.endpoints {
			if e.URL == found[i].URL {
				found[i].EndpointID = e.ID
			}
		}
	}
	return found
}

func (f *fake) Suites() []console.Suite {
	defer f.lock()()
	return append([]console.Suite(nil), f.suites...)
}

func (f *fake) SuiteText(id string) ([]byte, error) {
	defer f.lock()()
	if f.fail != nil {
		return nil, f.fail
	}
	all := suite.BuiltIn()
	for _, s := range all {
		if s.ID == id {
			return s.Marshal(), nil
		}
	}
	return all[0].Marshal(), nil
}

func (f *fake) DeleteSuite(id string) error {
	defer f.lock()()
	var left []console.Suite
	for _, s := range f.suites {
		if s.ID != id {
			left = append(left, s)
		}
	}
	f.suites = left
	return f.fail
}

func (f *fake) Start(s console.RunSpec) error {
	defer f.lock()()
	if f.fail != nil {
		return f.fail
	}
	f.started = append(f.started, s)
	f.state = console.RunState{Active: true, Title: "Coding workload", Spec: s}
	return nil
}

func (f *fake) Stop() {
	f.mu.Lock()
	f.stopped++
	f.state.Active, f.state.Finished = false, console.FinishedStopped
	f.mu.Unlock()
	f.change(console.ChangedRun)
}

func (f *fake) Run() console.RunState {
	defer f.lock()()
	f.runs++
	return f.state
}

func (f *fake) set(s console.RunState) {
	f.mu.Lock()
	f.state = s
	f.mu.Unlock()
	f.change(console.ChangedRun)
}

func (f *fake) Sessions() ([]console.Session, error) {
	defer f.lock()()
	return append([]console.Session(nil), f.sessions...), f.fail
}

func (f *fake) Report(id string) (*report.Report, error) {
	defer f.lock()()
	if f.fail != nil {
		return nil, f.fail
	}
	if r := f.reports[id]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("cannot read the session %s: there is none of that id", id)
}

func (f *fake) DeleteSession(id string) error {
	defer f.lock()()
	if f.fail != nil {
		return f.fail
	}
	f.deleted = append(f.deleted, id)
	var left []console.Session
	for _, s := range f.sessions {
		if s.ID != id {
			left = append(left, s)
		}
	}
	f.sessions = left
	return nil
}

func (f *fake) RenameSession(id, title string) error {
	defer f.lock()()
	f.renamed[id] = title
	for i := range f.sessions {
		if f.sessions[i].ID == id {
			f.sessions[i].Title = title
		}
	}
	return f.fail
}

func (f *fake) Export(id string, formats []string, dir string) ([]string, error) {
	defer f.lock()()
	if f.fail != nil {
		return nil, f.fail
	}
	f.exports = append(f.exports, id+" "+strings.Join(formats, ",")+" "+dir)
	var files []string
	for _, x := range formats {
		files = append(files, filepath.Join(dir, "coding-workload-e5f60718."+x))
	}
	return files, nil
}

func (f *fake) ExportFile(id, path string) error {
	defer f.lock()()
	f.exports = append(f.exports, id+" velo "+path)
	return f.fail
}

func (f *fake) Open(path string) (console.What, error) {
	defer f.lock()()
	f.opened = append(f.opened, path)
	switch filepath.Ext(path) {
	case ".json":
		s := console.Suite{ID: "mine", Title: "My suite", Description: "Dropped.", Steps: 3, Path: path}
		f.suites = append([]console.Suite{s}, f.suites...)
		f.recent = append(f.recent, path)
		return console.What{Kind: console.KindSuite, ID: s.ID, Title: s.Title}, nil
	case ".gguf":
		f.engine.choose(path)
		return console.What{Kind: console.KindModel, ID: path, Title: filepath.Base(path)}, nil
	case ".velo":
		f.recent = append(f.recent, path)
		return console.What{Kind: console.KindSession, ID: "one", Title: "Coding workload"}, nil
	}
	return console.What{}, fmt.Errorf("cannot open %q: it is neither a suite (.json) nor a session (.velo)", path)
}

func (f *fake) Recent() []string { defer f.lock()(); return append([]string(nil), f.recent...) }

func (f *fake) Status() console.Status {
	defer f.lock()()
	return console.Status{StoreBytes: 48 << 20, DataDir: os.TempDir(), Notices: f.notices}
}

func (f *fake) Version() string { return "0.1.0" }

func (f *fake) Settings() console.Settings { defer f.lock()(); return f.settings }

func (f *fake) SaveSettings(s console.Settings) {
	defer f.lock()()
	f.settings = s
	f.saved = append(f.saved, s)
}

func (f *fake) Changes(watch func(string)) func() {
	defer f.lock()()
	f.watchers = append(f.watchers, watch)
	n := len(f.watchers) - 1
	return func() {
		defer f.lock()()
		f.watchers[n] = nil
	}
}

func (f *fake) change(what string) {
	f.mu.Lock()
	list := append([]func(string){}, f.watchers...)
	f.mu.Unlock()
	for _, w := range list {
		if w != nil {
			w(what)
		}
	}
}

func (f *fake) Close() error { defer f.lock()(); f.closed++; return nil }

var errDown = errors.New("cannot reach http://10.0.0.7:8000/v1: connection refused. Is the server running, and is the port right?")

// full puts in what a program in use has.
func (f *fake) full() *fake {
	f.endpoints = append([]console.Endpoint{
		{ID: "e1", Name: "Workstation", URL: "http://10.0.0.7:8000/v1", Model: "llama-3.3-70b-instruct-nvfp4", HasKey: true},
		{ID: "e2", Name: "Laptop", URL: "http://127.0.0.1:8080/v1"},
	}, f.endpoints...)
	f.selected = "e1"
	f.suites = append([]console.Suite{{ID: "mine", Title: "Our support prompts", Description: "What our users ask, forty times.", Steps: 40, Path: "/home/kim/suites/support.json"}}, f.suites...)
	titles := []string{"Coding workload", "Quick sample", "Context sweep", "Our support prompts", "Prose and mathematics"}
	states := []string{"done", "done", "stopped", "done", "failed", "cut off"}
	for i := range 46 {
		s := console.Session{ID: fmt.Sprint("s", i), Title: titles[i%5], Model: "llama-3.3-70b-instruct-nvfp4", Endpoint: "Workstation", Suite: "coding",
			Began: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC).Add(-time.Duration(i) * 7 * time.Hour), Duration: time.Duration(40+i*37) * time.Second,
			State: states[i%6], Requests: 12 + i*3, Tokens: 1536 + i*1234, Workers: 1 << (i % 7), TTFT: measure.Num(0.08 + 0.013*float64(i)), Rate: measure.Num(140 / float64(1+i%7)), Source: measure.Server}
		if i%6 == 4 {
			s.Failed, s.Rate, s.TTFT = 5, measure.Missing, measure.Missing
		}
		if i%5 == 1 {
			s.Endpoint, s.Model, s.BuiltIn, s.Source = "Built-in scripted endpoint", "velo-sim", true, measure.Estimate
		}
		f.sessions = append(f.sessions, s)
	}
	f.sessions[0].ID = "one"
	r := report.New(sampleSession(16, 6, 42, 13), report.Options{Version: "0.1.0"})
	f.reports["one"] = r
	for _, s := range f.sessions {
		f.reports[s.ID] = r
	}
	f.recent = []string{"/home/kim/suites/support.json", "/home/kim/sessions/coding.velo"}
	f.settings.ExportDir = "/home/kim/reports"
	f.settings.Page = SuitesPage
	return f
}

// running puts a run in that goes on.
func (f *fake) running(workers int, share float64) *fake {
	f.state = console.RunState{Active: true, SessionID: "one", Title: "Coding workload", Endpoint: "Workstation", Model: "llama-3.3-70b-instruct-nvfp4",
		Snapshot: sampleSnapshot(workers, 6, 42, 13, share), Drawing: "quiet", Spec: console.RunSpec{SuiteID: "coding", Workers: workers, Repeat: 1, Quiet: true},
		Progress: runner.Progress{State: runner.Running, Step: 4, Steps: 6, Section: "Code", Title: "Write a parser for a small language", Done: 3 * workers, Total: 6 * workers, Elapsed: 14 * time.Second}}
	return f
}
