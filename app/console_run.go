package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"velo/bench"
	"velo/bench/measure"
	"velo/bench/runner"
	"velo/ui/console"
)

// running is the run of the window: the one that goes on, or the last one.
type running struct {
	mu     sync.Mutex
	state  console.RunState
	live   *measure.Live
	clock  bench.Clock
	ended  time.Duration // by that clock; 0 while it goes on
	rec    *recording
	cancel context.CancelFunc
	done   chan struct{} // closed when the run has been kept; nil = none ever ran
}

// wait returns when no run is going on.
func (r *running) wait() {
	r.mu.Lock()
	done := r.done
	r.mu.Unlock()
	if done != nil {
		<-done
	}
}

// Start implements console.Console.
func (c *theConsole) Start(spec console.RunSpec) error {
	s, err := c.suite(spec.SuiteID)
	if err != nil {
		return err
	}
	if c.chats.busy() {
		return errors.New("cannot start a run while a chat is answered: it would disturb it; wait for the answer's end, or stop it")
	}
	if spec.Workers < 1 || spec.Repeat < 1 {
		return errors.New("cannot start the run: workers and repetitions start at 1")
	}
	if spec.EndpointID == "" {
		spec.EndpointID = builtInID
	}
	e, err := c.endpoint(spec.EndpointID)
	if err != nil {
		return err
	}
	r := &c.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Active {
		return errors.New("cannot start a second run: one is going on; stop it first")
	}
	if spec.Seed == 0 {
		spec.Seed = newSeed()
	}
	drawing := bench.DrawingLive
	if spec.Quiet {
		drawing = bench.DrawingQuiet
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.live, r.clock, r.ended, r.cancel, r.done = measure.NewLive(measure.Options{}), bench.StartClock(), 0, cancel, make(chan struct{})
	clock := r.clock
	r.rec = &recording{open: func(h *bench.Header) (recorder, error) { return c.recordMeasured(h, clock) }, live: r.live}
	model := spec.Model
	if model == "" {
		model = e.Model
	}
	r.state = console.RunState{Active: true, Title: s.Title, Endpoint: e.Name, Model: model, BuiltIn: e.BuiltIn, Drawing: drawing, Spec: spec}
	m := &measurement{
		model: model, suite: s, workers: spec.Workers, repeat: spec.Repeat, seed: spec.Seed, prefix: spec.Prefix,
		failure: spec.Failure, warmup: -1, timeout: c.timeouts(), drawing: drawing,
		set: c.forRun, refuted: c.refute,
	}
	go c.measure(ctx, m, r.clock, r.rec)
	go c.changed(console.ChangedRun)
	return nil
}

func (c *theConsole) measure(ctx context.Context, m *measurement, clock bench.Clock, rec *recording) {
	r := &c.run
	c.telemetry.runs(1)
	defer c.telemetry.runs(-1)
	outcome, err := func() (runner.Outcome, error) {
		var err error
		if m.endpoint, m.key, err = c.connect(ctx, r.spec().EndpointID); err != nil {
			return runner.Outcome{}, err
		}
		return m.run(ctx, clock, rec, func(p runner.Progress) {
			r.mu.Lock()
			r.state.Progress, r.state.SessionID = p, rec.session()
			r.mu.Unlock()
		})
	}()
	id := rec.session()
	if id != "" {
		c.noteHeadline(id)
	}
	r.mu.Lock()
	stopped := ctx.Err() != nil
	r.state.Active, r.state.SessionID, r.ended = false, id, clock.Now()
	switch {
	case stopped:
		r.state.Finished = console.FinishedStopped
	case err != nil:
		r.state.Finished, r.state.Error = console.FinishedFailed, err.Error()
	case outcome.State == bench.Broken:
		r.state.Finished, r.state.Error = console.FinishedFailed, outcome.Reason
	case outcome.OK == 0:
		r.state.Finished, r.state.Error = console.FinishedFailed, "No request succeeded. "+r.state.Progress.LastError
	default:
		r.state.Finished = console.FinishedDone
	}
	r.cancel()
	close(r.done)
	r.mu.Unlock()
	c.changed(console.ChangedSessions)
	c.changed(console.ChangedRun)
}

func (r *running) spec() console.RunSpec {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.Spec
}

// noteHeadline computes a finished session once, for the list.
func (c *theConsole) noteHeadline(id string) {
	s, err := c.store.Session(id)
	if err == nil {
		err = noteHeadline(c.store, id, measure.Compute(s, measure.Options{}))
	}
	if err != nil {
		c.notice(fmt.Sprintf("The session %s could not be read back: %v", id, err))
	}
}

// Stop implements console.Console.
func (c *theConsole) Stop() {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	if c.run.state.Active {
		c.run.cancel()
	}
}

// Run implements console.Console.
func (c *theConsole) Run() console.RunState {
	r := &c.run
	r.mu.Lock()
	s, live, now, rec := r.state, r.live, r.ended, r.rec
	if now == 0 && live != nil {
		now = r.clock.Now()
	}
	r.mu.Unlock()
	if s.Active {
		s.Trouble = rec.trouble()
	}
	if live != nil {
		s.Snapshot = live.Snapshot(now)
	}
	return s
}
