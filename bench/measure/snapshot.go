package measure

import (
	"slices"
	"time"

	"velo/bench"
)

// Snapshot is what a window shows of a running session.
type Snapshot struct {
	At                   time.Duration
	Running              int
	Step                 *bench.Step // the current one
	Requests, OK, Failed int         // measured ones
	Tokens               int         // received so far by measured requests, this run
	Rate                 Num         // rolling rate of all streams together; Missing when none runs
	Median, Min, Max     Num         // of the rolling samples of the sum; the median to 0.1 %
	TTFT                 Num         // of the latest request that has one
	TTFTMedian           Num         // over finished and running requests of the step
	MaxGap               Num         // of measured requests, the gap that now lasts included
	Source               Source
	Workers              []WorkerSnapshot
	Sum                  []RollingSample // of the sum, at most Points long, min and max kept when thinned
	LastError            string
}

// Points is the greatest number of points a line of a Snapshot has. With more than 16 workers their
// lines have fewer, 9,600 together and at least 60 each.
const Points = 600

// WorkerSnapshot is one worker of a running session.
type WorkerSnapshot struct {
	Worker  int
	State   string // "waiting", "prefill", "decode", "done", "failed", "stopped"
	Request int
	Turn    int
	Tokens  int // of the current request, or the last
	Rate    Num // rolling; the decode rate when the request has ended
	TTFT    Num
	Elapsed time.Duration
	Points  []RollingSample
	Error   string
}

// mostWaiting bounds the workers that are listed although they have not begun.
const mostWaiting = 4096

// Snapshot is the state at session time now. Stalls count: a rate falls while nothing arrives.
func (l *Live) Snapshot(now time.Duration) Snapshot {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !known(now) {
		now = max(0, l.newest)
	}
	s := Snapshot{At: now, Running: len(l.streams), Step: l.step, Requests: l.requests, OK: l.ok, Failed: l.failed,
		Tokens: l.tokens, Rate: Missing, TTFT: l.ttft, TTFTMedian: Num(quantile(l.ttfts, 0.5)), MaxGap: l.maxGap,
		Source: l.source, LastError: l.failure}
	settled := farthest
	running := make([]period, 0, len(l.streams))
	for _, r := range l.streams {
		settled = min(settled, r.since())
		if p, ok := r.decoding(); ok {
			running = append(running, p)
		}
		if !r.x.Request.Warmup && len(r.arrivals) > 0 {
			s.Source = least(s.Source, r.source)
			gap := r.maxGap
			if !r.ended {
				gap = max(gap, now-r.arrivals[len(r.arrivals)-1].At)
			}
			if len(r.arrivals) > 1 || gap > 0 {
				s.MaxGap = longer(s.MaxGap, seconds(gap))
			}
		}
	}
	l.sumUp(&s, running, settled, now)
	s.Workers = l.workerSnapshots(now)
	return s
}

func longer(a, b Num) Num {
	if a >= b {
		return a
	}
	return b
}

// since is the time from which on the request can still change a line.
func (s *stream) since() time.Duration {
	if len(s.arrivals) > 0 {
		return s.arrivals[0].At
	}
	if known(s.x.Request.Start) {
		return s.x.Request.Start
	}
	return -farthest
}

func (s *stream) decoding() (period, bool) {
	r := Request{Arrivals: s.arrivals}
	return r.decoding()
}

// sumUp fills in the line of all streams.
func (l *Live) sumUp(s *Snapshot, running []period, settled, now time.Duration) {
	t := &l.scratch
	l.sum.snapshot(t, running, settled, l.newest, now)
	s.Sum = t.thin.points(Points)
	s.Median, s.Min, s.Max = t.rates.median(), Missing, Missing
	if t.rates.n > 0 {
		s.Min, s.Max = Num(t.rates.least), Num(t.rates.most)
	}
	if s.Running == 0 {
		return
	}
	s.Rate = 0
	if len(running) == 0 {
		return
	}
	s.Rate = Missing // until a quarter of a second has been decoded
	if k := len(s.Sum) - 1; k >= 0 && s.Sum[k].At > now-2*tick {
		s.Rate = Num(s.Sum[k].Rate)
	}
}

func (l *Live) workerSnapshots(now time.Duration) []WorkerSnapshot {
	waiting := 0
	if l.step != nil {
		waiting = min(max(0, l.step.Workers), mostWaiting)
	}
	numbers := make([]int, 0, len(l.workers)+waiting)
	for n := range l.workers {
		numbers = append(numbers, n)
	}
	for n := range waiting {
		if l.workers[n] == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	out := make([]WorkerSnapshot, len(numbers))
	lines := track{thin: thinner{cells: l.scratch.thin.cells[:0]}}
	for i, n := range numbers {
		w := l.workers[n]
		if w == nil {
			out[i] = WorkerSnapshot{Worker: n, State: "waiting", Rate: Missing, TTFT: Missing}
			continue
		}
		out[i] = w.last
		settled := farthest
		var running []period
		if s := w.stream; s != nil {
			out[i] = s.snapshot(now, l.options.window())
			settled = s.since()
			if p, ok := s.decoding(); ok {
				running = append(running, p)
			}
		}
		w.line.snapshot(&lines, running, settled, l.newest, now)
		out[i].Points = lines.thin.points(lines.thin.limit * 2)
	}
	l.scratch.thin.cells = lines.thin.cells
	return out
}

// snapshot is a worker's state while its request runs.
func (s *stream) snapshot(now, w time.Duration) WorkerSnapshot {
	q := s.x.Request
	o := WorkerSnapshot{Worker: q.Worker, State: "prefill", Request: q.Number, Turn: q.Turn, Tokens: s.n,
		Rate: Missing, TTFT: s.ttft, Elapsed: max(0, now-q.Start)}
	if !known(q.Start) {
		o.Elapsed = 0
	}
	if len(s.arrivals) == 0 {
		return o
	}
	o.State = "decode"
	first := s.arrivals[0].At
	if now < first+settle {
		return o
	}
	w = min(w, now-first)
	tokens := 0
	for i := len(s.arrivals) - 1; i >= 0 && s.arrivals[i].At > now-w && s.arrivals[i].At > first; i-- {
		if s.arrivals[i].At <= now {
			tokens += s.arrivals[i].Tokens
		}
	}
	o.Rate = Num(float64(tokens) / w.Seconds())
	return o
}
