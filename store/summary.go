package store

import (
	"encoding/json"
	"time"

	"velo/bench"
	"velo/store/block"
)

// Summary is a session's line in the list: what can be told without reading its events.
type Summary struct {
	ID       string        `json:"id"`
	Title    string        `json:"title"` // the user's, where it was renamed
	Model    string        `json:"model"`
	Endpoint string        `json:"endpoint"` // the user's name for it, else its URL
	BuiltIn  bool          `json:"built_in,omitempty"`
	Told     bool          `json:"told,omitempty"`     // recorded from telemetry: no client measured it
	Suite    string        `json:"suite,omitempty"`    // title
	Category string        `json:"category,omitempty"` // one of Store.Categories, that the user gave it
	Began    time.Time     `json:"began"`
	Duration time.Duration `json:"duration"` // from the anchor to the finish, or the last event there is
	State    string        `json:"state"`    // StateDone, StateStopped, StateFailed, StateCutOff or StateRunning
	Requests int           `json:"requests"` // measured ones: without warm-up
	Failed   int           `json:"failed"`   // of these, ended otherwise than well or by the user
	Tokens   int           `json:"tokens"`   // of these: as the caller counted (SetSummaryTokens), until then as the server did, else by logprobs, else chunks
	Workers  int           `json:"workers"`
	Chunks   int           `json:"chunks"` // stored, warm-up included
	Events   int           `json:"events"` // stored, other than chunks
	Bytes    int64         `json:"bytes"`  // stored, compressed

	// Metrics are headline numbers that the caller computed (SetSummaryMetrics), by its own names,
	// and Source is the word that goes with Tokens. Both are as old as the program that set them.
	Metrics map[string]float64 `json:"metrics,omitempty"`
	Source  string             `json:"source,omitempty"`
}

// The states of a session.
const (
	StateDone    = bench.Done
	StateStopped = bench.Aborted
	StateFailed  = bench.Broken
	StateCutOff  = "cut off" // it has no finish: the program ended before
	StateRunning = "running"
	StateDamaged = "damaged" // the summary cannot be read
)

// A tally keeps the summary of a session up to date while its events come by.
type tally struct {
	sum  Summary
	open map[int]*openRequest
}

// openRequest is a request that has begun and not ended.
type openRequest struct {
	warmup bool
	chunks int
	exact  int
	all    bool // every chunk had an exact count
}

func newTally() *tally {
	return &tally{sum: Summary{State: StateRunning}, open: map[int]*openRequest{}}
}

// add counts an event. Requests that are open count their chunks as tokens until the end says better.
func (t *tally) add(e bench.Event) {
	switch e := e.(type) {
	case bench.Chunks:
		t.chunks(e)
		return
	case *bench.Header:
		t.header(e)
	case *bench.Request:
		t.open[e.Number] = &openRequest{warmup: e.Warmup, all: true}
		if !e.Warmup {
			t.sum.Requests++
		}
	case *bench.End:
		t.end(e)
		t.reach(e.Close)
	case *bench.Step:
		t.reach(e.Released)
	case *bench.Sample:
		t.reach(e.At)
	case *bench.Note:
		t.reach(e.At)
	case *bench.Finish:
		t.sum.State = e.State
		t.sum.Duration = max(e.At, 0).Truncate(block.Resolution)
	}
	t.sum.Events++
}

func (t *tally) header(h *bench.Header) {
	t.sum.ID, t.sum.Title, t.sum.Model, t.sum.BuiltIn = h.ID, h.Title, h.Endpoint.Model, h.Endpoint.BuiltIn
	t.sum.Endpoint = h.Endpoint.Name
	if t.sum.Endpoint == "" {
		t.sum.Endpoint = h.Endpoint.URL
	}
	t.sum.Told = h.Told()
	t.sum.Began, t.sum.Workers = h.Anchor, h.Plan.Workers
	var suite struct {
		Title string `json:"title"`
	}
	if json.Unmarshal(h.Suite, &suite) == nil { // another kind of document has no title
		t.sum.Suite = suite.Title
	}
}

func (t *tally) chunks(chunks bench.Chunks) {
	t.sum.Chunks += len(chunks)
	for i := range chunks {
		c := &chunks[i]
		t.reach(c.User)
		r := t.open[c.Request]
		if r == nil {
			continue
		}
		r.chunks++
		r.exact += int(c.Exact)
		r.all = r.all && c.Exact >= 0
		if !r.warmup {
			t.sum.Tokens++
		}
	}
}

func (t *tally) end(e *bench.End) {
	r := t.open[e.Request]
	if r == nil {
		return
	}
	delete(t.open, e.Request)
	if r.warmup {
		return
	}
	if e.Status != bench.OK && e.Status != bench.Stopped {
		t.sum.Failed++
	}
	switch {
	case e.Usage != nil && e.Usage.Completion >= 0:
		t.sum.Tokens += e.Usage.Completion - r.chunks
	case r.all && r.chunks > 0:
		t.sum.Tokens += r.exact - r.chunks
	}
}

func (t *tally) reach(at time.Duration) {
	if t.sum.State == StateRunning {
		t.sum.Duration = max(t.sum.Duration, at.Truncate(block.Resolution))
	}
}

// summary is what is known so far. ended says that nothing more will come.
func (t *tally) summary(ended bool) Summary {
	s := t.sum
	switch s.State {
	case StateDone, StateStopped, StateFailed:
	case StateRunning:
		if ended {
			s.State = StateCutOff
		}
	default: // a word that a later program may use
		s.State = StateFailed
	}
	return s
}
