package ui

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"velo/bench/measure"
	"velo/ui/console"
)

// fakeEngine is an engine in memory: a test says how it is.
type fakeEngine struct {
	fake *fake
	mu   sync.Mutex

	config  console.EngineConfig
	keys    []string // that were kept, "" = removed
	recent  []string
	status  console.EngineStatus
	facts   console.ModelFacts
	bad     error // of Inspect
	refused error // of Start
	log     []console.LogLine
	did     []string // "start", "restart", "stop"

	report  console.ProbeReport
	failing error         // of Probe
	probing chan struct{} // Probe waits for it, unless nil
	probed  []string      // choices
}

var _ console.Engine = (*fakeEngine)(nil)

func (f *fake) Engine() console.Engine { return &f.engine }

func (e *fakeEngine) lock() func() { e.mu.Lock(); return e.mu.Unlock }

func (e *fakeEngine) choose(path string) {
	e.mu.Lock()
	e.config.Model = path
	e.recent = slices.Insert(slices.DeleteFunc(e.recent, func(p string) bool { return p == path }), 0, path)
	e.mu.Unlock()
}

func (e *fakeEngine) Config() console.EngineConfig { defer e.lock()(); return e.config }

func (e *fakeEngine) SaveConfig(c console.EngineConfig, key *string) error {
	if c.Model != "" {
		e.choose(c.Model)
	}
	e.mu.Lock()
	if key != nil {
		e.keys = append(e.keys, *key)
		c.HasKey = *key != ""
	}
	e.config = c
	e.mu.Unlock()
	e.fake.change(console.ChangedEngine)
	return nil
}

func (e *fakeEngine) RecentModels() []string { defer e.lock()(); return slices.Clone(e.recent) }

func (e *fakeEngine) Inspect(_ context.Context, c console.EngineConfig) (console.ModelFacts, error) {
	defer e.lock()()
	f := e.facts
	f.Path = c.Model
	return f, e.bad
}

func (e *fakeEngine) Command(c console.EngineConfig) string {
	return fmt.Sprintf("velo serve --model-dir %s --port %d --max-seq-len %d", c.Model, c.Port, c.Context)
}

func (e *fakeEngine) act(what, state string) error {
	e.mu.Lock()
	if e.refused != nil && what != "stop" {
		defer e.mu.Unlock()
		return e.refused
	}
	e.did = append(e.did, what)
	e.status.State, e.status.Config = state, e.config
	e.mu.Unlock()
	e.fake.change(console.ChangedEngine)
	return nil
}

func (e *fakeEngine) Start() error   { return e.act("start", console.EngineStarting) }
func (e *fakeEngine) Restart() error { return e.act("restart", console.EngineStopping) }
func (e *fakeEngine) Stop()          { _ = e.act("stop", console.EngineStopping) }

func (e *fakeEngine) ProbeChoices() []console.ProbeChoice {
	list := []console.ProbeChoice{{ID: "qwen3.6-27b:nvfp4", Title: "qwen3.6-27b in nvfp4, made up"}, {Title: "The device alone"}}
	if c := e.Config(); c.Model != "" {
		list = append([]console.ProbeChoice{{ID: "model", Title: filepath.Base(c.Model)}}, list...)
	}
	return list
}

func (e *fakeEngine) Probe(ctx context.Context, choice string) (console.ProbeReport, error) {
	e.mu.Lock()
	e.probed = append(e.probed, choice)
	wait := e.probing
	e.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return console.ProbeReport{}, ctx.Err()
		}
	}
	defer e.lock()()
	return e.report, e.failing
}

func (e *fakeEngine) Status() console.EngineStatus { defer e.lock()(); return e.status }

func (e *fakeEngine) Log(n uint64) ([]console.LogLine, uint64) {
	defer e.lock()()
	next := uint64(len(e.log))
	if n >= next {
		return nil, next
	}
	return slices.Clone(e.log[n:]), next
}

// set makes the engine so, and tells.
func (e *fakeEngine) set(change func(*console.EngineStatus)) {
	e.mu.Lock()
	change(&e.status)
	e.mu.Unlock()
	e.fake.change(console.ChangedEngine)
}

func (e *fakeEngine) say(level, text string) {
	e.mu.Lock()
	e.log = append(e.log, console.LogLine{N: uint64(len(e.log)), Time: time.Date(2026, 11, 30, 20, 15, 4, 123e6, time.UTC).Add(time.Duration(len(e.log)) * 137 * time.Millisecond), Level: level, Text: text})
	e.mu.Unlock()
}

// withModel chooses a model and says what is known of it.
func (f *fake) withModel() *fake {
	e := &f.engine
	for _, p := range []string{"/data/models/Llama-3.3-70B-Instruct-NVFP4", "/home/kim/models/SmolLM2-135M-Instruct.Q4_1.gguf", "/home/kim/models/Qwen3-32B-FP8"} {
		e.choose(p)
	}
	e.facts = console.ModelFacts{Name: "Qwen3-32B-FP8", Architecture: "qwen3", Format: "safetensors", Type: "FP8Block", Layers: 64, MaxContext: 40960,
		Device: "cpu (avx512, 16 workers)", Context: 4096, Lanes: 8, Weights: 34_200_000_000, KV: 17_179_869_184, Scratch: 700_000_000, Estimate: true,
		Need: 52_079_869_184, Available: 118_000_000_000}
	return f
}

// serving makes the engine one that is ready, or on its way there.
func (f *fake) serving(state string) *fake {
	f.withModel()
	e := &f.engine
	e.status = console.EngineStatus{State: state, Since: time.Date(2026, 11, 30, 20, 15, 4, 0, time.UTC), Config: e.config}
	missing := measure.Missing
	e.status.Figures = console.EngineFigures{Running: missing, Waiting: missing, KV: missing, Cached: missing, Acceptance: missing, Tokens: missing, Rate: missing, StepP50: missing, StepP90: missing}
	e.say("INFO", "starting /usr/bin/velo serve --model-dir /home/kim/models/Qwen3-32B-FP8 --host 127.0.0.1 --port 8000")
	e.say("INFO", "plan weights=31.9GiB kv=16.0GiB scratch=668MiB total=48.5GiB")
	switch state {
	case console.EngineLoading:
		e.status.Done, e.status.Total, e.status.Rate = 14_400_000_000, 34_200_000_000, 1_230_000_000
	case console.EngineReady:
		e.status.URL, e.status.Model, e.status.Context, e.status.Lanes = "http://127.0.0.1:8000", "Qwen3-32B-FP8", 4096, 8
		e.status.Figures = console.EngineFigures{Running: 3, Waiting: 0, KV: 0.184, Cached: 0.62, Acceptance: missing, Tokens: 48231, Rate: 117.4, StepP50: 0.0251, StepP90: 0.0334}
		for i := range 40 {
			e.say("INFO", fmt.Sprintf("request id=cmpl-%04d prompt=%d cached=%d generated=%d finish=stop", i, 120+i*7, i*64%512, 200+i))
		}
		e.say("WARN", "prefix cache full, oldest checkpoint dropped bytes=4.0GiB")
	case console.EngineCrashed:
		e.say("ERROR", "cannot listen on 127.0.0.1:8000: address already in use")
		e.status.Failure = console.EngineFailure{Message: "Port 8000 is taken by another program.", Advice: "Use port 8001, which is free, or end the program that has port 8000.",
			Ended: "exit code 2", NextPort: 8001, Lines: []string{"2026-11-30T20:15:04.123Z INFO plan weights=31.9GiB", "2026-11-30T20:15:04.260Z ERROR cannot listen on 127.0.0.1:8000: address already in use"}}
	}
	return f
}
