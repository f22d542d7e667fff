package stream

import (
	"slices"
	"strings"
	"time"

	"velo/bench/measure"
)

// States of a stream.
const (
	Waiting = "waiting" // started, no token yet
	Running = "running"
	Ended   = "done"
	Broken  = "failed"
	Quiet   = "quiet" // no record for QuietAfter, and no end: the engine went away, or its records were lost
)

// QuietAfter is how long a stream without an end may say nothing before it is Quiet.
const QuietAfter = 60 * time.Second

// Summary is one line of the list of streams.
type Summary struct {
	Key
	Serial          uint64
	Model, Topology string
	State           string
	Finish          string // finish reason
	Error           string
	Clock           string        // whose times these are: EmitterClock or ReceiverClock
	Started         bool          // stream_start was seen; without it there is no TTFT
	Age             time.Duration // since the latest record came, by the receiver's clock
	Folded          bool          // only the numbers are left
	Lost            int           // records missing by token.index
	Duplicates      int
	Reordered       int
	Cut             int // chunks not kept
	Bytes           int64

	// The numbers, computed by package measure.
	Tokens  int
	Source  measure.Source
	Counted string
	TTFT    measure.Num
	Rate    measure.Num // decode rate
	ITL     measure.Num
	TPOT    measure.Num
	MaxGap  measure.Num
	E2E     measure.Num
	Prompt  measure.Num
	Cached  measure.Num
}

// Panel is one stream in full.
type Panel struct {
	Summary
	Text    string // the end of it
	Request measure.Request
	Live    measure.Snapshot // charts and rolling rate; zero for a folded stream
}

// Query says which streams a view is to hold.
type Query struct {
	Filter string // text that service, conversation, generation or model must contain; "" = all
	Limit  int    // lines at most; 0 = 50, at most 500
	Offset int    // lines to leave out, the most recent first
	Panels []Key  // streams wanted in full; at most 16
}

// MostPanels bounds Query.Panels.
const MostPanels = 16

// View is the streams as they are at a moment. Its Complete computes the numbers: it is to be called
// after the table's lock was given back.
type View struct {
	Streams []Summary // the most recent first
	Matches int       // streams that pass the filter
	Panels  []Panel   // in the order of Query.Panels; those that are gone are left out

	cache *Cache
	rows  []capture
	wide  []capture
	lives []*measure.Live
	nows  []time.Duration
}

// capture is a stream's data, copied so that it can be computed without the lock.
type capture struct {
	serial, version uint64
	at              time.Duration
	stream          Stream
}

// Cache keeps numbers between two views, so that only those of streams that changed are computed again.
// It belongs to one reader.
type Cache struct{ known map[uint64]cached }

type cached struct {
	version uint64
	at      time.Duration // receiver's time at which it was computed
	request measure.Request
}

// View copies what a query asks for. now is the receiver's monotonic time. It holds the caller up by
// the time of copying some lines, whatever number of streams there is, unless there is a filter.
func (t *Table) View(q Query, now time.Duration, c *Cache) *View {
	v := &View{cache: c}
	if q.Limit <= 0 {
		q.Limit = 50
	}
	q.Limit = min(q.Limit, 500)
	skip := q.Offset
	walk := func(e *Stream) bool {
		if e.hidden { // and so is all that was quiet for longer
			return false
		}
		if q.Filter != "" && !strings.Contains(e.key.Service+" "+e.key.Conversation+" "+e.key.Generation+" "+e.model, q.Filter) {
			return true
		}
		v.Matches++
		if skip > 0 {
			skip--
			return true
		}
		if len(v.Streams) < q.Limit {
			v.Streams = append(v.Streams, e.summary(now))
			v.rows = append(v.rows, e.capture(c, now))
		}
		return q.Filter != "" || len(v.Streams) < q.Limit
	}
	more := true
	for e := t.full.Back(); e != nil && more; e = e.Prev() {
		more = walk(e.Value.(*Stream))
	}
	more = q.Filter != "" || len(v.Streams) < q.Limit
	for e := t.folded.Back(); e != nil && more; e = e.Prev() {
		more = walk(e.Value.(*Stream))
	}
	if q.Filter == "" {
		v.Matches = t.visible
	}
	for _, k := range q.Panels[:min(len(q.Panels), MostPanels)] {
		s := t.streams[k]
		if s == nil || s.hidden {
			continue
		}
		v.Panels = append(v.Panels, Panel{Summary: s.summary(now), Text: s.end(t.options.Tail)})
		v.wide = append(v.wide, s.capture(c, now))
		if s.folded == nil {
			if s.live == nil {
				s.follow()
			}
			s.liveAsked = now
		}
		v.lives = append(v.lives, s.live)
		v.nows = append(v.nows, s.emitterNow(now))
	}
	return v
}

// emitterNow is the time on the stream's clock, on the session time of its Live: that of the latest
// record, and what has passed since it came. A stall shows, a clock offset does not matter.
func (s *Stream) emitterNow(now time.Duration) time.Duration {
	if s.latest == unset {
		return 0
	}
	return time.Duration(s.latest-s.liveBase) + max(0, now-s.got)
}

func (s *Stream) summary(now time.Duration) Summary {
	m := Summary{Key: s.key, Serial: s.serial, Model: s.model, Topology: s.topology, State: Running, Finish: s.finish, Error: s.failed,
		Clock: s.clock, Started: s.started, Age: max(0, now-s.got), Folded: s.folded != nil, Lost: s.lost(), Duplicates: s.duplicates,
		Reordered: s.reordered, Cut: s.cut, Bytes: s.bytes()}
	switch {
	case s.failed != "" || s.finish == "error":
		m.State = Broken
	case s.done:
		m.State = Ended
	case m.Age > QuietAfter:
		m.State = Quiet
	case len(s.chunks) == 0 && s.folded == nil:
		m.State = Waiting
	}
	return m
}

// costOf is how long the numbers of a running stream are good for, a chunk: it keeps the share of a core
// that long streams take small.
const costOf = 50 * time.Microsecond

// capture copies what the numbers are computed from, unless they are known already, or were computed so
// short a time ago that computing them again would cost too much.
func (s *Stream) capture(c *Cache, now time.Duration) capture {
	k := capture{serial: s.serial, version: s.version, at: now}
	if old, ok := c.known[s.serial]; ok && (old.version == s.version || !s.done && now-old.at < time.Duration(len(s.chunks))*costOf) {
		k.version, k.at = old.version, old.at
		return k
	}
	k.stream = *s
	k.stream.chunks = slices.Clone(s.chunks) // a late record may be put between them
	return k
}

// Complete computes the numbers.
func (v *View) Complete() {
	fresh := make(map[uint64]cached, len(v.rows)+len(v.wide))
	numbers := func(k *capture) *measure.Request {
		if old, ok := fresh[k.serial]; ok {
			return &old.request
		}
		old, ok := v.cache.known[k.serial]
		if !ok || old.version != k.version {
			old.version, old.at = k.version, k.at
			if s := &k.stream; s.folded != nil {
				old.request = *s.folded
			} else {
				old.request = measure.Of(s.exchange(0, s.base(), nil), measure.Options{})
			}
		}
		fresh[k.serial] = old
		return &old.request
	}
	for i := range v.rows {
		v.Streams[i].fill(numbers(&v.rows[i]))
	}
	for i := range v.wide {
		p := &v.Panels[i]
		r := numbers(&v.wide[i])
		p.fill(r)
		p.Request = *r
		if v.lives[i] != nil {
			p.Live = v.lives[i].Snapshot(v.nows[i])
		}
	}
	v.cache.known = fresh
	v.rows, v.wide, v.lives = nil, nil, nil
}

func (m *Summary) fill(r *measure.Request) {
	m.Tokens, m.Source, m.Counted = r.N, r.Source, r.Counted
	m.TTFT, m.Rate, m.ITL, m.TPOT, m.MaxGap, m.E2E = r.TTFT, r.Rate, r.ITL, r.TPOT, r.MaxGap, r.E2E
	m.Prompt, m.Cached = r.Prompt, r.Cached
}

// meter counts tokens as they come, by the receiver's clock, in cells of 100 ms.
type meter struct {
	cells [16]int
	cell  int64
}

const meterCell = 100 * time.Millisecond

func (m *meter) advance(now time.Duration) {
	c := int64(now / meterCell)
	for ; m.cell < c; m.cell++ {
		if c-m.cell > int64(len(m.cells)) {
			m.cell = c - int64(len(m.cells))
		}
		m.cells[(m.cell+1)%int64(len(m.cells))] = 0
	}
}

func (m *meter) add(now time.Duration, tokens int) {
	m.advance(now)
	m.cells[m.cell%int64(len(m.cells))] += tokens
}

// rate is the tokens a second over the last ten whole cells.
func (m *meter) rate(now time.Duration) float64 {
	m.advance(now)
	n := 0
	for i := int64(1); i <= 10; i++ {
		if c := m.cell - i; c >= 0 {
			n += m.cells[c%int64(len(m.cells))]
		}
	}
	return float64(n)
}

// Rate is the tokens that came in the last second, by the receiver's clock: as usage counts them, or
// an estimate by the length of the text.
func (t *Table) Rate(now time.Duration) float64 { return t.meter.rate(now) }
