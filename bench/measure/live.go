package measure

import (
	"slices"
	"sync"
	"time"

	"velo/bench"
)

// Live computes a session while its events arrive. It is a Sink, safe for concurrent use; Snapshot
// may be called from another goroutine at any rate. Its memory does not grow with the number of
// snapshots, and Append is O(1) amortised.
//
// While a request runs its tokens are counted by continuous usage, logprobs or token ids where its
// chunks have them, else as the requests before it turned out, else by the length of the text. When it
// ends it is computed as Compute does, from then on Live has the same numbers, and its chunks are
// forgotten.
type Live struct {
	options Options

	mu       sync.Mutex
	step     *bench.Step
	streams  map[int]*stream // running, by number of the request
	workers  map[int]*worker
	sum      *liveLine
	scratch  track
	requests int
	ok       int
	failed   int
	tokens   int // of measured requests
	source   Source
	habit    habit
	ttft     Num
	ttftAt   time.Duration
	ttfts    []float64 // of the step's requests, sorted
	maxGap   Num
	newest   time.Duration
	failure  string
	ended    func(*Request)
}

// stream is a running request.
type stream struct {
	x        *bench.Exchange
	worker   *worker
	arrivals []Arrival
	user     bool // user stamps, as a kernel stamp was missing or cannot be true
	n        int
	usage    int32
	bytes    int
	source   Source
	maxGap   time.Duration
	counts   bool // its TTFT is among ttfts
	ttft     Num
	ended    bool
}

// worker is what is known of one worker: its running request, or the last one.
type worker struct {
	number int
	stream *stream
	last   WorkerSnapshot
	line   *liveLine
}

// habit is how the tokens of requests that have ended were spread, to count those of the next ones
// by until their own usage comes.
type habit struct {
	one    bool
	tokens int
	bytes  int
}

// NewLive returns an empty Live.
func NewLive(o Options) *Live {
	return &Live{options: o, streams: map[int]*stream{}, workers: map[int]*worker{},
		sum: newLiveLine(o.window(), Points, true), scratch: track{rates: newRateBins()},
		ttft: Missing, ttftAt: -farthest, maxGap: Missing, newest: -farthest}
}

// Ended sets what is called with each request that has ended, as Of computes it, before Append of its End returns:
// who needs it does not have to keep the chunks a second time. Call it before the first Append.
func (l *Live) Ended(f func(*Request)) { l.ended = f }

var _ bench.Sink = (*Live)(nil)

// Append takes an event.
func (l *Live) Append(e bench.Event) {
	if end, ok := e.(*bench.End); ok {
		l.end(end)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := e.(type) {
	case *bench.Step:
		l.step = e
		l.ttfts = l.ttfts[:0]
		for _, s := range l.streams {
			s.counts = false
		}
		l.see(e.Released)
	case *bench.Request:
		l.start(e)
	case *bench.Conn:
		if s := l.streams[e.Request]; s != nil && !s.ended {
			s.x.Conn = e
		}
	case bench.Chunks:
		if len(e) == 0 {
			return
		}
		if s := l.streams[e[0].Request]; s != nil && !s.ended {
			for i := range e {
				l.chunk(s, &e[i])
			}
		}
	case *bench.Counts:
		if s := l.streams[e.Request]; s != nil && !s.ended {
			s.x.Counts = e
		}
	case *bench.Sample:
		l.see(e.At)
	case *bench.Finish:
		l.see(e.At)
	}
}

// see takes note of a time that an event tells of.
func (l *Live) see(t time.Duration) {
	if known(t) {
		l.newest = max(l.newest, t)
	}
}

func (l *Live) start(q *bench.Request) {
	if l.streams[q.Number] != nil {
		return
	}
	w := l.workers[q.Worker]
	if w == nil {
		workers := len(l.workers) + 1
		if l.step != nil {
			workers = max(workers, l.step.Workers)
		}
		w = &worker{number: q.Worker, line: newLiveLine(l.options.window(), pointsOf(workers), false)}
		l.workers[q.Worker] = w
	}
	s := &stream{x: &bench.Exchange{Request: q}, worker: w, ttft: Missing}
	s.user = !known(q.Start)
	w.stream = s
	l.streams[q.Number] = s
	if !q.Warmup {
		l.requests++
	}
	l.see(q.Start)
}

// pointsOf is the number of points that each of some workers' lines may have.
func pointsOf(workers int) int { return min(max(9600/max(workers, 1), 60), Points) }

func (l *Live) chunk(s *stream, c *bench.Chunk) {
	s.x.Chunks = append(s.x.Chunks, *c)
	n := l.count(s, c)
	if !s.user && !(known(c.Kernel) && c.Kernel <= c.User+stepSize && c.Kernel >= s.x.Request.Start) {
		l.restamp(s)
	}
	at := c.Kernel
	if s.user {
		at = c.User
	}
	if k := len(s.arrivals); k > 0 {
		if !known(at) || at < s.arrivals[k-1].At {
			at = s.arrivals[k-1].At
		}
		s.maxGap = max(s.maxGap, at-s.arrivals[k-1].At)
	} else if !known(at) {
		at = max(l.newest, s.x.Request.Start)
	}
	s.arrivals = append(s.arrivals, Arrival{at, n, c.Channel, c.Read})
	s.n += n
	l.sum.add(at, n)
	s.worker.line.add(at, n)
	if !s.x.Request.Warmup {
		l.tokens += n
	}
	l.see(at)
	if len(s.arrivals) == 1 {
		l.sum.dirty, s.worker.line.dirty = true, true
		l.first(s, between(s.x.Request.Start, at), at)
	}
}

// restamp changes a request over to user stamps.
func (l *Live) restamp(s *stream) {
	s.user = true
	l.sum.dirty, s.worker.line.dirty = true, true
	s.maxGap = 0
	for i := range s.arrivals {
		a := &s.arrivals[i]
		l.move(s, a, -1)
		if t := s.x.Chunks[i].User; known(t) {
			a.At = t
		}
		if i > 0 {
			a.At = max(a.At, s.arrivals[i-1].At)
			s.maxGap = max(s.maxGap, a.At-s.arrivals[i-1].At)
		}
		l.move(s, a, 1)
	}
	if len(s.arrivals) > 0 {
		l.first(s, between(s.x.Request.Start, s.arrivals[0].At), s.arrivals[0].At)
	}
}

// move adds an arrival to the lines, or takes it back.
func (l *Live) move(s *stream, a *Arrival, times int) {
	l.sum.add(a.At, times*a.Tokens)
	s.worker.line.add(a.At, times*a.Tokens)
}

// first takes note of a request's TTFT, in the place of the one known before.
func (l *Live) first(s *stream, ttft Num, at time.Duration) {
	if s.counts {
		if i, ok := slices.BinarySearch(l.ttfts, float64(s.ttft)); ok {
			l.ttfts = slices.Delete(l.ttfts, i, i+1)
		}
		s.counts = false
	}
	s.ttft = ttft
	if !(ttft >= 0) {
		return
	}
	q := s.x.Request
	if l.step != nil && q.Step == l.step.Number && (!q.Warmup || l.step.Warmup) {
		i, _ := slices.BinarySearch(l.ttfts, float64(ttft))
		l.ttfts = slices.Insert(l.ttfts, i, float64(ttft))
		s.counts = true
	}
	if at >= l.ttftAt {
		l.ttft, l.ttftAt = ttft, at
	}
}

// count is the number of a chunk's tokens as far as it can be known before the request's end.
func (l *Live) count(s *stream, c *bench.Chunk) int {
	s.bytes += len(c.Text)
	switch {
	case c.Usage >= 0:
		n := max(0, int(c.Usage-s.usage))
		s.usage = max(s.usage, c.Usage)
		s.source = least(s.source, Server)
		return n
	case c.Exact >= 0:
		s.source = least(s.source, Server)
		return int(c.Exact)
	}
	s.source = Estimate
	switch {
	case l.habit.one:
		return 1
	case l.habit.bytes > 0:
		return max(1, int(float64(s.bytes)*float64(l.habit.tokens)/float64(l.habit.bytes)+0.5)-s.n)
	}
	return ByTextLength(s.bytes, s.n)
}

// end computes a request that has ended, outside the lock, and puts its numbers in the place of the
// provisional ones.
func (l *Live) end(e *bench.End) {
	l.mu.Lock()
	s := l.streams[e.Request]
	if s == nil || s.ended {
		l.mu.Unlock()
		return
	}
	s.ended = true
	s.x.End = e
	l.mu.Unlock()

	r := Of(s.x, l.options)
	if l.ended != nil {
		l.ended(&r)
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range s.arrivals {
		l.move(s, &s.arrivals[i], -1)
	}
	for i := range r.Arrivals {
		l.move(s, &r.Arrivals[i], 1)
	}
	if p, ok := r.decoding(); ok {
		l.sum.finish(p)
		s.worker.line.finish(p)
		l.see(p.to)
		if r.Fails() {
			l.first(s, Missing, p.from)
		} else {
			l.first(s, r.TTFT, p.from)
		}
	}
	l.sum.dirty, s.worker.line.dirty = true, true
	l.see(e.End)
	delete(l.streams, e.Request)
	l.settle(s, &r)
}

// settle counts a request that has ended.
func (l *Live) settle(s *stream, r *Request) {
	if !r.Warmup {
		l.tokens += r.N - s.n
		if r.N > 0 {
			l.source = least(l.source, r.Source)
		}
		switch {
		case r.Status == bench.OK:
			l.ok++
		case r.Fails():
			l.failed++
		}
		if !r.Fails() && r.MaxGap.Ok() && !(r.MaxGap <= l.maxGap) {
			l.maxGap = r.MaxGap
		}
	}
	if r.Error != "" && r.Fails() {
		l.failure = r.Error
	}
	if r.Status == bench.OK && r.N > 0 && r.Counted != ByLength {
		l.habit = habit{one: true, tokens: r.N, bytes: s.bytes}
		for _, a := range r.Arrivals {
			l.habit.one = l.habit.one && a.Tokens == 1
		}
	}
	w := s.worker
	if w.stream == s {
		w.stream = nil
	}
	w.last = WorkerSnapshot{Worker: w.number, State: "done", Request: r.Number, Turn: r.Turn, Tokens: r.N,
		Rate: r.Rate, TTFT: r.TTFT, Error: r.Error}
	switch {
	case r.Fails():
		w.last.State = "failed"
	case r.Status == bench.Stopped:
		w.last.State = "stopped"
	}
	if t := between(r.Start, r.Ended); t > 0 {
		w.last.Elapsed = r.Ended - r.Start
	}
}
