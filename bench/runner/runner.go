// Package runner executes suites. It turns the steps of a suite into requests, sends them through
// package client with one stream or with many, and hands what happens to a sink as the events of a
// session.
//
// Every step is a barrier: the bodies of all its requests are prepared first, then released together,
// and the next step begins when the last of them has ended. Each worker has a goroutine and a
// conversation of its own: prompt, context and image steps replay what that worker asked and was
// answered since the last reset, byte for byte; a bench step is a single message that belongs to no
// conversation.
//
// Before each measured step, warm-up requests of the same shape are sent in a step of their own. Their
// prompts differ from the measured ones and their answers are cut at WarmupOutput tokens.
//
// The same seed, suite and options give the same bodies, byte for byte, apart from what the model
// answered. So a second run with the same seed finds its prompts in the prefix cache of a server that
// has one: take a new seed to measure anew.
package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"velo/bench"
	"velo/bench/client"
	"velo/bench/suite"
)

// WarmupOutput is the number of tokens at which the answers of warm-up requests are cut: enough to have
// every worker decoding at once, and few enough that a suite of long answers does not take twice as long.
const WarmupOutput = 128

// Options say what to run and how. Client, Suite, Model and Sink are needed.
type Options struct {
	Client *client.Client
	Suite  *suite.Suite
	Model  string
	Clock  bench.Clock // the client's
	// Header is the session's, filled as far as the caller knows it (endpoint, environment, protocol,
	// timeouts, objectives). Complete fills in the rest.
	Header bench.Header
	// Workers is the number of streams at once; 0 is 1.
	Workers int
	// Repeat is the number of repetitions of the whole suite; 0 is what the suite says, else 1.
	Repeat int
	// Seed decides where fills are cut from and what prompts are salted with.
	Seed int64
	// Prefix is bench.PrefixSalted or PrefixShared; "" is what the suite says, else salted.
	Prefix string
	// Failure is bench.FailureStop, FailureSkip or FailureContinue; "" is what the suite says, else
	// stop for one worker and continue for more.
	Failure string
	// Warmup is the number of requests before each measured step; −1 is what the suite says, else one
	// for each worker.
	Warmup int
	// ContinuousUsage asks the server to say with each chunk how many tokens there are so far.
	ContinuousUsage bool
	// Sink takes the events. Append is called by one goroutine at a time, and never by one that
	// follows a stream.
	Sink bench.Sink
	// Tokens counts as the model does: the prompts that are made, and the answers (bench.Counts).
	// Without it the server is asked; a server that cannot answer leaves fills an estimate.
	Tokens bench.TokenCounter
	// Parameters are further members of each request's body. They hold where the suite says nothing else;
	// one that the server refuses is left out, and a note says so.
	Parameters map[string]json.RawMessage
	// Level is how much the model is to reason in steps that say nothing of it; "" sends nothing.
	Level string
	// Ways are the ways to ask this server for a level of reasoning, the surest first: one that it
	// refuses is followed by the next. nil: as plain vLLM takes it.
	Ways func(level string) []Way
	// Notes are sentences for the reader of the session, which it begins with.
	Notes []string
	// OnProgress is called by one goroutine at a time, at most ten times a second, and once at the end.
	OnProgress func(Progress)
}

// Outcome is how a run ended. Requests are measured ones, without warm-up; those that were stopped
// are neither OK nor failed.
type Outcome struct {
	State    string // bench.Done, Aborted or Broken
	Reason   string // why it did not get to its end; "" for Done
	Requests int
	OK       int
	Failed   int
	// Tokenizer is why Options.Tokens is not the model's own, as far as the run has shown: a sentence; ""
	// where nothing speaks against it.
	Tokenizer string
}

// Complete checks the options and fills in what they leave open, the plan and the suite of the header
// included. Run does it too; who needs the header beforehand calls it first.
func (o *Options) Complete() error {
	switch {
	case o.Client == nil:
		return errors.New("cannot run a suite: there is no client")
	case o.Suite == nil:
		return errors.New("cannot run a suite: there is none")
	case o.Sink == nil:
		return errors.New("cannot run a suite: there is nothing to record it with")
	case o.Model == "":
		return errors.New("cannot run a suite: name the model to measure")
	}
	s := o.Suite
	if problems := s.Validate(); len(problems) > 0 {
		return &suite.Invalid{File: s.Title, Problems: problems}
	}
	if s.Sending() == 0 {
		return fmt.Errorf("cannot run the suite %q: none of its steps sends anything; add a prompt, context, bench or image step", s.Title)
	}
	if o.Workers < 0 || o.Repeat < 0 || o.Warmup < -1 {
		return fmt.Errorf("cannot run with %d workers, %d repetitions and a warm-up of %d: they must not be negative", o.Workers, o.Repeat, o.Warmup)
	}
	o.Workers = max(o.Workers, 1)
	if o.Repeat == 0 {
		o.Repeat = max(s.Repeat, 1)
	}
	if o.Warmup < 0 {
		o.Warmup = o.Workers
		if s.Warmup != nil {
			o.Warmup = *s.Warmup
		}
	}
	o.Prefix = first(o.Prefix, s.Prefix, bench.PrefixSalted)
	if o.Failure = first(o.Failure, s.Failure); o.Failure == "" {
		o.Failure = bench.FailureContinue
		if o.Workers == 1 {
			o.Failure = bench.FailureStop
		}
	}
	switch o.Prefix {
	case bench.PrefixSalted, bench.PrefixShared:
	default:
		return fmt.Errorf("cannot run with the prefix mode %q: write %s or %s", o.Prefix, bench.PrefixSalted, bench.PrefixShared)
	}
	switch o.Failure {
	case bench.FailureStop, bench.FailureSkip, bench.FailureContinue:
	default:
		return fmt.Errorf("cannot run with the failure policy %q: write %s, %s or %s", o.Failure, bench.FailureStop, bench.FailureSkip, bench.FailureContinue)
	}

	h := &o.Header
	h.Schema, h.Anchor, h.Suite = bench.SchemaVersion, o.Clock.Anchor(), s.Marshal()
	h.ID = first(h.ID, bench.NewID(h.Anchor))
	h.Title = first(h.Title, s.Title)
	h.Drawing = first(h.Drawing, bench.DrawingNone)
	h.Endpoint.URL = first(h.Endpoint.URL, o.Client.BaseURL())
	h.Endpoint.Model = o.Model
	p := &h.Plan
	p.Workers, p.Repeat, p.Seed, p.Prefix, p.Failure, p.Warmup = o.Workers, o.Repeat, o.Seed, o.Prefix, o.Failure, o.Warmup
	p.Protocol = first(p.Protocol, "http/1.1")
	return nil
}

func first(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// Run runs the suite and returns when the last event has reached the sink. An error means that nothing
// was begun and no event was sent; whatever happens after that is in the Outcome, and in the Finish
// event. When ctx is cancelled the run stops at once: turns that have ended are kept, and so is what
// came of those that have not.
func Run(ctx context.Context, o Options) (Outcome, error) {
	if err := o.Complete(); err != nil {
		return Outcome{}, err
	}
	pictures, notes, err := pictures(o.Suite)
	if err != nil {
		return Outcome{}, err
	}
	r := newRun(o, pictures)
	r.events.Append(&r.o.Header)
	for _, n := range append(notes, o.Notes...) {
		r.note("%s", n)
	}
	stopSampling := r.watchSelf()
	stopReporting := r.report.start()

	reason, state := "", bench.Done
	err = r.all(ctx)
	var failed *failure
	switch {
	case ctx.Err() != nil:
		state, reason = bench.Aborted, "stopped by the user"
	case errors.As(err, &failed):
		state, reason = bench.Broken, failed.Error()
	case err != nil:
		state, reason = bench.Broken, err.Error()
	}
	out := r.report.outcome()
	if state == bench.Done && out.OK == 0 {
		state, reason = bench.Broken, "every request failed: "+r.report.lastError()
	}
	out.State, out.Reason = state, reason

	stopSampling()
	r.tellReasoning()
	r.events.Append(&bench.Finish{At: o.Clock.Now(), State: state, Reason: reason})
	r.events.close()
	stopReporting(state)
	if r.counting != nil {
		out.Tokenizer = r.counting.reason()
	}
	return out, nil
}

// failure is what ends a run before its last step.
type failure struct{ text string }

func (f *failure) Error() string { return f.text }

// run is a run under way.
type run struct {
	o             Options
	stages        []stage
	pictures      map[string]client.Image
	events        *fanIn
	counting      *counting // nil without a tokenizer
	report        *reporter
	rules         rules
	conversations []conversation // one a worker
	steps         int            // number of the next step
	requests      int            // number of the next request
	thoughts      thoughts
	telling       sync.Mutex
	told          map[string]bool
}

func newRun(o Options, pictures map[string]client.Image) *run {
	r := &run{o: o, stages: stages(o.Suite), pictures: pictures, told: map[string]bool{}}
	sink := o.Sink
	if o.Tokens != nil {
		r.counting = newCounting(sink, o.Clock, o.Tokens)
		sink = r.counting
	}
	r.events = newFanIn(sink)
	r.report = newReporter(o, len(r.stages))
	r.conversations = make([]conversation, o.Workers)
	return r
}

// note tells the reader of the session something, once.
func (r *run) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.telling.Lock()
	defer r.telling.Unlock()
	if r.told[text] {
		return
	}
	r.told[text] = true
	r.events.Append(&bench.Note{At: r.o.Clock.Now(), Text: text})
}

// A stage is a step of the suite that sends requests, with what the sections before it say.
type stage struct {
	*suite.Step
	index   int    // in the suite file
	section string // title
	fresh   bool   // a section that resets the conversation stands before it
}

func stages(s *suite.Suite) []stage {
	var all []stage
	section, fresh := "", false
	for i := range s.Steps {
		step := &s.Steps[i]
		if step.Type == suite.Section {
			section, fresh = step.Title, fresh || step.Reset
			continue
		}
		all = append(all, stage{step, i, section, fresh})
		fresh = false
	}
	return all
}

// all runs every repetition of every stage. The error is ctx's, or a *failure.
func (r *run) all(ctx context.Context) error {
	r.report.phase(Probing, "", "")
	if err := r.probe(ctx); err != nil {
		return err
	}
	for repetition := range r.o.Repeat {
		for w := range r.conversations {
			r.conversations[w] = conversation{}
		}
		for i, st := range r.stages {
			if err := ctx.Err(); err != nil {
				return err
			}
			if st.fresh {
				for w := range r.conversations {
					r.conversations[w] = conversation{}
				}
			}
			r.report.at(i+1, repetition)
			if r.o.Warmup > 0 {
				failed, err := r.step(ctx, st, repetition, true)
				if err != nil {
					return err
				}
				if failed && r.o.Failure == bench.FailureSkip {
					r.note("Step %q was left out in repetition %d: a warm-up request failed: %s", st.Name(), repetition+1, r.report.lastError())
					continue
				}
			}
			if _, err := r.step(ctx, st, repetition, false); err != nil {
				return err
			}
		}
	}
	return nil
}
