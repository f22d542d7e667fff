package otlp

import (
	"slices"
	"strings"
	"time"

	"velo/bench/measure"
	"velo/bench/otlp/offset"
	"velo/bench/otlp/series"
	"velo/bench/otlp/stream"
)

// State holds separate facts. None of them is inferred from another: a receiver that listens and hears
// nothing is not off, and one that is wanted and cannot have its port does not listen.
type State struct {
	Wanted     bool            // the settings want it on
	Listeners  []Listener      // one for each address that is wanted
	Data       bool            // data has ever come
	LastData   time.Duration   // age of the latest data; valid with Data
	Status     bool            // an engine's status record has ever come
	LastStatus time.Duration   // its age; valid with Status
	Statuses   []stream.Status // the latest of each service; Received is its age here
	Counters   Counters
	Streams    stream.Counts
	Series     series.Counts
	Kept       int           // streams in memory
	KeptBytes  int64         // of their chunks and text
	KeptBound  int64         // the bound of these
	KeptFor    time.Duration // chunks of a quiet stream stay that long
	Polls      []Polled      // Last is the age here
	Jumps      []Jump        // of clocks, the latest last
	// Certificate is what listeners speak TLS with; nil = none that is kept in files.
	Certificate *CertificateState
}

// Listening tells whether every wanted address listens, and there is one.
func (s State) Listening() bool {
	for _, l := range s.Listeners {
		if l.Address == "" {
			return false
		}
	}
	return len(s.Listeners) > 0
}

// Query says what a snapshot is to hold besides State; its zero value asks for the latest 50 streams
// and the engines.
type Query struct {
	Streams stream.Query
	Lines   *series.Query // the metrics explorer; nil = not wanted
	Raw     int           // latest raw records; 0 = none, at most 5,000
	Filter  string        // of raw records: text that name, service, body or attributes must contain
	Calls   int           // latest requests that came as spans; 0 = none
}

// Clock is what is known of an emitter's clock.
type Clock struct {
	Service string
	offset.Bounds
}

// Snapshot is what a window shows.
type Snapshot struct {
	At         time.Duration // receiver's time
	State      State
	Streams    []stream.Summary // the most recent first
	Matches    int              // streams that pass the filter
	Panels     []stream.Panel
	Rate       measure.Num // tokens that came in the last second, by the receiver's clock
	Engines    []series.Engine
	Lines      []series.Line
	LinesMatch int
	Raw        []Raw  // the latest first
	Calls      []Call // the latest first
	Clocks     []Clock
	Pairs      []offset.Pair // requests measured on both sides, the latest first, 100 at most
	PairsTotal int
	Recordings []RecordingState
}

// Snapshot is the state at this moment. It may be called as often as ten times a second; the lock that
// records need is held only while lines are copied.
func (r *Receiver) Snapshot(q Query) Snapshot {
	r.views.Lock() // the cache of numbers belongs to one reader at a time
	defer r.views.Unlock()
	now := r.clock.now()
	s := Snapshot{At: now, State: r.state(now)}
	h := r.hub
	h.lock()
	view := h.streams.View(q.Streams, now, &r.cache)
	s.Rate = measure.Num(h.streams.Rate(now))
	s.Engines = h.series.Engines(now)
	if q.Lines != nil {
		s.Lines, s.LinesMatch = h.series.Lines(*q.Lines, now)
	}
	s.Raw = h.raw.find(q.Filter, min(q.Raw, 5000))
	for i := len(h.calls) - 1; i >= 0 && len(s.Calls) < q.Calls; i-- {
		s.Calls = append(s.Calls, h.calls[i])
	}
	for service, b := range h.join.Bounds() {
		if b.Known() || b.Records > 0 {
			s.Clocks = append(s.Clocks, Clock{service, b})
		}
	}
	s.Pairs, s.PairsTotal = h.join.Pairs()
	h.mu.Unlock()
	slices.SortFunc(s.Clocks, func(a, b Clock) int { return strings.Compare(a.Service, b.Service) })
	slices.Reverse(s.Pairs)
	s.Pairs = s.Pairs[:min(len(s.Pairs), 100)]
	view.Complete()
	s.Streams, s.Matches, s.Panels = view.Streams, view.Matches, view.Panels
	r.mu.Lock()
	recordings := slices.Clone(r.recordings)
	r.mu.Unlock()
	for _, rec := range recordings {
		s.Recordings = append(s.Recordings, rec.State())
	}
	return s
}

// State is the facts alone.
func (r *Receiver) State() State { return r.state(r.clock.now()) }

func (r *Receiver) state(now time.Duration) State {
	r.mu.Lock()
	c := r.config
	r.mu.Unlock()
	s := State{Wanted: c.Enabled, Listeners: r.listeners.state(), Counters: r.counters.read()}
	if c.Certificate != nil {
		x := c.Certificate.State()
		s.Certificate = &x
	}
	h := r.hub
	h.lock()
	s.Data, s.LastData = h.dataSeen, max(0, now-h.lastData)
	s.Status, s.LastStatus = h.statuses, max(0, now-h.status)
	for _, x := range h.streams.Statuses() {
		x.Received = max(0, now-x.Received)
		s.Statuses = append(s.Statuses, x)
	}
	s.Streams, s.Series = h.streams.Counts(), h.series.Counts()
	s.Kept, s.KeptBytes = h.streams.Len(), h.streams.Bytes()
	o := h.streams.Options()
	s.KeptBound, s.KeptFor = o.Bytes, o.Keep
	s.Jumps = slices.Clone(h.jumps)
	h.mu.Unlock()
	slices.SortFunc(s.Statuses, func(a, b stream.Status) int { return strings.Compare(a.Service, b.Service) })
	r.pollers.mu.Lock()
	for _, p := range r.pollers.pages {
		x := p.state
		if x.Tried {
			x.Last = max(0, now-x.Last)
		}
		s.Polls = append(s.Polls, x)
	}
	r.pollers.mu.Unlock()
	return s
}
