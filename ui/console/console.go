// Package console says what the window asks of the program behind it. It holds no widget and no
// logic: package app fills the interface, package ui shows what it gives and sends what the user
// wants.
package console

import (
	"context"
	"time"

	"velo/bench/measure"
	"velo/bench/report"
	"velo/bench/runner"
)

// Endpoint is a server that can be measured. Its key is kept elsewhere and never comes back.
type Endpoint struct {
	ID        string
	Name      string // the user's word for it
	URL       string // base URL, with or without the /v1
	Model     string // the model that a run takes when none is picked; empty = the server's first
	BuiltIn   bool   // the scripted endpoint of this program: not a real model
	HasKey    bool
	ThinkTags bool   // inline <think>…</think> is split off the answer
	Preset    string // what kind of server the user says it is: ID of a Preset; empty = nothing
	Reasoning string // how reasoning is switched there: ID of ReasoningWays; empty = as the preset has it, else as the server says of itself
	Engine    bool   // this program's own engine
	Down      string // why it cannot be measured now: a sentence; empty = it can, as far as is known
}

// Suite is a suite that can be run.
type Suite struct {
	ID          string
	Title       string
	Description string
	BuiltIn     bool
	Steps       int
	Path        string // of the user's own file; empty for a built-in one
}

// RunSpec is everything that the user chooses about a run.
type RunSpec struct {
	EndpointID string
	Model      string // empty = the endpoint's
	SuiteID    string
	Workers    int    // concurrent streams, from 1
	Repeat     int    // repetitions of the whole suite, from 1
	Seed       int64  // 0 = a new one each run, so that no prefix cache knows the prompts
	Failure    string // bench.FailureStop, FailureSkip or FailureContinue; empty = continue
	Prefix     string // bench.PrefixSalted or PrefixShared; empty = salted
	Quiet      bool   // the window draws at most once a second while it measures
}

// Session is one line of the sessions list.
type Session struct {
	ID       string
	Title    string
	Model    string
	Endpoint string
	Suite    string
	Category string // empty = none
	BuiltIn  bool
	Began    time.Time
	Duration time.Duration
	State    string // "done", "stopped", "failed", "cut off" or "running"
	Requests int
	Failed   int
	Tokens   int
	Workers  int
	TTFT     measure.Num // median, seconds
	Rate     measure.Num // median decode rate, tokens/s
	Source   measure.Source
}

// How a run ended.
const (
	FinishedDone    = "done"
	FinishedStopped = "stopped"
	FinishedFailed  = "failed"
)

// RunState is the run that goes on, or the last one. Its zero value says that nothing has run.
type RunState struct {
	Active    bool
	SessionID string
	Title     string
	Endpoint  string
	Model     string
	BuiltIn   bool
	Progress  runner.Progress
	Snapshot  measure.Snapshot
	Drawing   string // bench.DrawingQuiet or DrawingLive: what the session notes about this window
	Finished  string // empty while nothing has ended, else FinishedDone, FinishedStopped or FinishedFailed
	Error     string // why it failed: what, where and what to do
	Trouble   string // while it goes on: what was measured cannot be stored; it is kept in memory and tried again
	Spec      RunSpec
}

// What is the thing that Open found in a file.
type What struct {
	Kind  string // KindSuite or KindSession
	ID    string
	Title string
}

// The kinds of files that Open knows.
const (
	KindSuite   = "suite"
	KindSession = "session"
	KindModel   = "model" // the engine is configured to take it
)

// Status is what the status bar shows besides the run.
type Status struct {
	StoreBytes int64
	DataDir    string
	Notices    []string // recovery of a damaged store, no keyring …: sentences, each once, in the order they came; shown until dismissed
}

// The events of Changes.
const (
	ChangedRun       = "run"       // a run began or ended; not sent for every token
	ChangedSessions  = "sessions"  // the list of sessions
	ChangedSuites    = "suites"    // the list of suites
	ChangedEndpoints = "endpoints" // the endpoints or the selected one
	ChangedOpen      = "open"      // the recent list
	ChangedNotices   = "notices"   // Status has a notice more
	ChangedEngine    = "engine"    // the state of the engine or how it is configured; not its progress and figures
)

// Console is the program behind the window. Every method may be called from any goroutine. Those
// that return an error, Models and Check above all, may take as long as a disk or a network; the
// others return at once.
type Console interface {
	Endpoints() []Endpoint
	// SaveEndpoint adds e (ID empty) or changes it, and returns it as it was kept. A nil key leaves
	// the key as it is, an empty one removes it.
	SaveEndpoint(e Endpoint, key *string) (Endpoint, error)
	DeleteEndpoint(id string) error
	SelectedEndpoint() string // empty = none was ever picked: the built-in one is offered
	SelectEndpoint(id string)
	// Models asks the endpoint which models it serves.
	Models(ctx context.Context, endpointID string) ([]string, error)
	// Check tries an endpoint before it is saved and says what it found: "12 models". An empty key
	// with e.HasKey means the stored one.
	Check(ctx context.Context, e Endpoint, key string) (string, error)

	// FindServers looks for servers on the usual ports of this machine. It takes some seconds at most.
	FindServers(ctx context.Context) []Server

	Suites() []Suite
	// SuiteText is the suite's file.
	SuiteText(id string) ([]byte, error)
	DeleteSuite(id string) error

	// Start begins a run and returns; its course is read from Run.
	Start(RunSpec) error
	// Stop asks the run to end; what was measured is kept.
	Stop()
	Run() RunState

	Sessions() ([]Session, error) // newest first
	Report(id string) (*report.Report, error)
	DeleteSession(id string) error
	RenameSession(id, title string) error
	// Export writes a session's report in these formats (of report.Formats) into dir and returns
	// the files it wrote.
	Export(id string, formats []string, dir string) ([]string, error)
	// ExportFile writes the session itself, raw events and all, as one .velo file.
	ExportFile(id, path string) error

	// Engine is this program's own engine.
	Engine() Engine
	// Chats is the part that converses.
	Chats() Chats
	// Telemetry is the receiver of what engines tell of themselves.
	Telemetry() Telemetry
	// Preferences is what the user sets.
	Preferences() Preferences

	// Open takes any file that Velo knows: a suite is added, a session is imported, a model (a folder
	// with config.json, or a .gguf file) is what the engine takes next.
	Open(path string) (What, error)
	Recent() []string // paths, newest first, at most ten

	Status() Status
	Version() string
	Settings() Settings
	SaveSettings(Settings)

	// Changes calls back from any goroutine with one of the Changed words. The callback must not
	// block.
	Changes(func(what string)) (cancel func())

	// Close stops a run and the engine, keeps what was measured and flushes everything. It may take
	// seconds.
	Close() error
}
