package app

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"velo/bench"
	"velo/bench/client"
	"velo/bench/measure"
	"velo/bench/runner"
	"velo/bench/suite"
	"velo/ui/console"
)

// measurement is one suite measured on one endpoint: a session to be.
type measurement struct {
	endpoint   console.Endpoint
	key        string
	model      string // empty = the server's first
	suite      *suite.Suite
	workers    int
	repeat     int
	seed       int64
	prefix     string // "" = as the suite says, as failure
	failure    string
	warmup     int // −1 = as the suite says, else as many as workers
	continuous bool
	http2      bool
	timeout    bench.Timeout
	slo        []bench.SLO
	drawing    string
	tokens     bench.TokenCounter // the model's own tokenizer; nil = the server counts
	// set is what is set for the model that is measured; nil = nothing. refuted is told when the run shows
	// that the tokenizer is not the model's.
	set     func(ctx context.Context, c *client.Client, e console.Endpoint, model, owner string) (modelRun, error)
	refuted func(endpointID, model, why string)
}

// defaultTimeout are the limits of a request where nothing else is asked. There is none on the
// whole: a long generation is not a failure.
var defaultTimeout = bench.Timeout{Connect: 15 * time.Second, FirstByte: 10 * time.Minute, Idle: 2 * time.Minute}

// quietGC is the growth, in percent of the live heap, at which garbage is collected while measuring.
const quietGC = 500

// newSeed is a seed that no earlier run had: a server that caches prefixes has then seen none of the
// prompts. The report names it, and with it the run can be repeated to the byte.
func newSeed() int64 { return time.Now().UnixMilli() }

// recorder is where a session's events are kept.
type recorder interface {
	bench.Sink
	Close() error
}

// recording opens its recorder when the header of the session comes, and hands every event to it
// and to the live numbers.
type recording struct {
	open func(*bench.Header) (recorder, error)
	live *measure.Live

	mu  sync.RWMutex
	to  recorder
	id  string
	err error
}

func (r *recording) Append(e bench.Event) {
	if h, ok := e.(*bench.Header); ok {
		to, err := r.open(h)
		r.mu.Lock()
		r.to, r.err, r.id = to, err, h.ID
		r.mu.Unlock()
	} else {
		r.mu.RLock()
		to := r.to
		r.mu.RUnlock()
		if to != nil {
			to.Append(e)
		}
	}
	if r.live != nil {
		r.live.Append(e)
	}
}

// session is the ID of the session, empty before its header came.
func (r *recording) session() string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.id
}

// trouble is what keeps the recorder from storing events; empty = nothing. They are kept in memory then.
func (r *recording) trouble() string {
	r.mu.RLock()
	to := r.to
	r.mu.RUnlock()
	if e, ok := to.(interface{ Err() error }); ok {
		if err := e.Err(); err != nil {
			return err.Error()
		}
	}
	return ""
}

// close flushes and closes the recorder.
func (r *recording) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to == nil {
		return r.err
	}
	to := r.to
	r.to = nil
	return to.Close()
}

// run measures and returns when the last event has been kept. The clock is the session's.
func (m *measurement) run(ctx context.Context, clock bench.Clock, rec *recording, onProgress func(runner.Progress)) (runner.Outcome, error) {
	c, err := client.New(client.Options{
		BaseURL: m.endpoint.URL, Key: m.key, Timeout: m.timeout, Clock: clock,
		Connections: m.workers, HTTP2: m.http2, ThinkTags: m.endpoint.ThinkTags,
	})
	if err != nil {
		return runner.Outcome{}, err
	}
	defer c.Close()
	model, owner, err := pickModel(ctx, c, m.model)
	if err != nil {
		return runner.Outcome{}, err
	}
	protocol, channel := "http/1.1", ""
	if m.http2 {
		protocol = "h2"
	}
	if m.endpoint.ThinkTags {
		channel = "think-tags"
	}
	header := bench.Header{
		Schema: bench.SchemaVersion, ID: bench.NewID(clock.Anchor()), Anchor: clock.Anchor(), Title: m.suite.Title,
		Endpoint: bench.Endpoint{
			Name: m.endpoint.Name, URL: c.BaseURL(), Model: model, OwnedBy: owner, BuiltIn: m.endpoint.BuiltIn,
		},
		Plan:        bench.Plan{Protocol: protocol, Channel: channel, Timeouts: m.timeout, SLO: m.slo},
		Environment: environment(), Drawing: m.drawing,
	}
	set := modelRun{tokens: m.tokens}
	if m.set != nil {
		if set, err = m.set(ctx, c, m.endpoint, model, owner); err != nil {
			return runner.Outcome{}, err
		}
	}
	// A collection takes a core for milliseconds, just when tokens wait to be read: while it is
	// measured the program takes more memory instead.
	defer debug.SetGCPercent(debug.SetGCPercent(quietGC))
	out, err := runner.Run(ctx, runner.Options{
		Client: c, Suite: m.suite, Model: model, Clock: clock, Header: header,
		Workers: m.workers, Repeat: m.repeat, Seed: m.seed, Prefix: m.prefix, Failure: m.failure,
		Warmup: m.warmup, ContinuousUsage: m.continuous, Sink: rec, Tokens: set.tokens, OnProgress: onProgress,
		Parameters: set.parameters, Level: set.level, Ways: set.ways, Notes: set.notes,
	})
	if out.Tokenizer != "" && m.refuted != nil {
		m.refuted(m.endpoint.ID, model, out.Tokenizer)
	}
	if closeErr := rec.close(); closeErr != nil && err == nil {
		err = fmt.Errorf("cannot keep the session: %w", closeErr)
	}
	return out, err
}

// pickModel returns the model to measure and who owns it: the one asked for, or the server's first.
// A server that does not list its models serves the one asked for.
func pickModel(ctx context.Context, c *client.Client, asked string) (model, owner string, err error) {
	models, err := c.Models(ctx)
	if asked != "" {
		for _, m := range models {
			if m.ID == asked {
				return asked, m.OwnedBy, nil
			}
		}
		return asked, "", nil
	}
	if err != nil {
		return "", "", fmt.Errorf("cannot find out which model to measure: %w", err)
	}
	if len(models) == 0 {
		return "", "", fmt.Errorf("%s lists no models: load one there, or name one with --model", c.BaseURL())
	}
	return models[0].ID, models[0].OwnedBy, nil
}
