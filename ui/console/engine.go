package console

import (
	"context"
	"time"

	"velo/bench/measure"
)

// EngineID is the ID of the endpoint that this program's own engine is.
const EngineID = "engine"

// EngineConfig is what the user chooses about the engine. A number that is 0 is the engine's choice.
type EngineConfig struct {
	Model       string // a folder with config.json, or a .gguf file
	Host        string // that it listens on; empty = this machine only
	Port        int
	Context     int // tokens of one request
	Lanes       int // requests in one step
	Threads     int
	PrefixCache bool
	Telemetry   string // OTLP endpoint; empty = none
	HasKey      bool   // clients need a key, which is kept elsewhere and never comes back
	AtLaunch    bool   // start it when the window opens
}

// The states of the engine.
const (
	EngineStopped  = "stopped"
	EngineStarting = "starting"
	EngineLoading  = "loading"
	EngineReady    = "ready"
	EngineStopping = "stopping"
	EngineCrashed  = "crashed"
)

// EngineStatus is how the engine is.
type EngineStatus struct {
	State       string
	Since       time.Time // of the state
	Done, Total int64     // bytes of weights taken over, while loading
	Rate        float64   // of that, bytes/s; 0 = not known yet
	Checking    bool      // loaded, and its health check has not passed yet

	URL            string // base URL while it is ready, without /v1
	Model          string // as the engine names it
	Context, Lanes int
	Config         EngineConfig // that it was started with

	Figures EngineFigures // while ready
	Ill     string        // while it is checked or ready: why it does not answer its health check
	Note    string        // while stopped: how it ended, where that was out of the ordinary
	Failure EngineFailure // while crashed
}

// Running tells whether there is an engine, whatever it does.
func (s EngineStatus) Running() bool { return s.State != EngineStopped && s.State != EngineCrashed }

// EngineFigures is what the engine says of its work. Missing is what it does not give.
type EngineFigures struct {
	Running, Waiting measure.Num // requests
	KV               measure.Num // share of the pages of keys and values in use
	Cached           measure.Num // share of the prompt tokens since the start that came from the cache
	Acceptance       measure.Num // share of the drafted tokens since the start that were accepted
	Tokens           measure.Num // generated for requests that have ended
	Rate             measure.Num // generated a second, now
	StepP50, StepP90 measure.Num // seconds
	Device           string      // that it computes on; empty: not told yet
	GPU              *GPUFigures // nil: it computes on no GPU, or nothing is known of it
	GPUUntold        string      // why its GPU tells nothing, or of its memory alone; empty: it does, or there is none
}

// EngineFailure is why the engine ended although nobody asked it to.
type EngineFailure struct {
	Message  string // what and why
	Advice   string // what to do
	Ended    string // "exit code 3", "signal killed"
	Lines    []string
	NextPort int // a free port, where that is what it takes
}

// LogLine is a line of the engine's log.
type LogLine struct {
	N     uint64 // counts up by one
	Time  time.Time
	Level string // "DEBUG", "INFO", "WARN", "ERROR" or empty
	Text  string
}

// ModelFacts is what a model is and what it takes, found out without starting anything.
type ModelFacts struct {
	Path         string
	Name         string
	Architecture string
	Format       string // of the files: "GGUF" or "safetensors"
	Type         string // that most of the weights are stored in: "Q4_1"
	Layers       int
	MaxContext   int // that the model was made for
	Device       string

	// Context and Lanes are what the engine would take, the bytes of memory follow from them. Scratch
	// is an estimate on the processor; a GPU has Choice and Own besides, and then Scratch is exact.
	Context, Lanes              int
	Weights, KV, State, Scratch int64
	Choice                      int64 // of tokens
	Own                         int64 // of the GPU: kernels' scratch and operands, and weights on their way
	Estimate                    bool  // Scratch is one
	Need, Available             int64
	Problem                     string // why it cannot be started so, apart from memory: a context it was not made for
}

// Engine is the engine behind the window. Inspect may take as long as a disk; the others return at
// once.
type Engine interface {
	Config() EngineConfig
	// SaveConfig keeps what was chosen. A nil key leaves the key as it is, an empty one removes it.
	SaveConfig(c EngineConfig, key *string) error
	// RecentModels are the paths of models that were chosen, newest first, at most ten.
	RecentModels() []string
	// Inspect says what the model of a config is.
	Inspect(ctx context.Context, c EngineConfig) (ModelFacts, error)
	// Command is the command line that does what Start does; it has no key in it.
	Command(c EngineConfig) string

	// Start starts the engine as it is configured, Restart stops it before if it runs.
	Start() error
	Restart() error
	Stop()
	Status() EngineStatus
	// ProbeChoices are what can be probed, the best one first; the model is among them where one was
	// chosen.
	ProbeChoices() []ProbeChoice
	// Probe measures the GPU, and what a step of a model takes on it, in a process of its own. It
	// takes some seconds and ends early when ctx does. An error may be a *ProbeError.
	Probe(ctx context.Context, choice string) (ProbeReport, error)
	// Log returns the lines from number n on that are still kept, and the number to ask with next.
	Log(n uint64) (lines []LogLine, next uint64)
}
