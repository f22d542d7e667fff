package measure

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"velo/bench"
)

// generated draws a session by its seed.
func generated(t *rapid.T) *bench.Session {
	seed := rapid.Uint64().Draw(t, "seed")
	workers := rapid.IntRange(1, 5).Draw(t, "workers")
	turns := rapid.IntRange(1, 4).Draw(t, "turns")
	return generator{rand.New(rand.NewPCG(seed, 1))}.session(workers, turns)
}

// The invariants of docs/definitions.md, on sessions of every kind.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := generated(t)
		r := Compute(s, Options{})
		for i := range r.Requests {
			q := &r.Requests[i]
			sum, answer := 0, 0
			for _, a := range q.Arrivals {
				sum += a.Tokens
				if a.Channel.Answer() {
					answer += a.Tokens
				}
			}
			if sum != q.N || answer != q.Answer || q.Answer+q.Thought != q.N {
				t.Fatalf("request %d: Σ tokens(i) = %d, N = %d = %d + %d", i, sum, q.N, q.Answer, q.Thought)
			}
			if q.TTFT.Ok() {
				total := float64(q.TTFT)
				for _, g := range q.ICL {
					total += g
				}
				if !near(total, float64(q.E2E)) {
					t.Fatalf("request %d: TTFT + Σ ICL = %v, cm − t0 = %v", i, total, q.E2E)
				}
			}
			if q.Rate.Ok() && float64(q.Peak) < float64(q.Rate)*(1-1e-12) {
				t.Fatalf("request %d: peak %v < mean %v", i, q.Peak, q.Rate)
			}
			if q.ITL.Ok() {
				values, weights := itlOf(q)
				sum, n := 0.0, 0.0
				for k, v := range values {
					w := 1.0
					if weights != nil {
						w = weights[k]
					}
					sum += v * w
					n += w
				}
				if !near(sum/n, float64(q.ITL)) || n != float64(q.N-q.N1) {
					t.Fatalf("request %d: mean of the gaps per token %v over %v, ITL %v over %d", i, sum/n, n, q.ITL, q.N-q.N1)
				}
			}
			for _, x := range q.Rolling.Samples {
				if x.Rate < 0 || x.Rate > float64(q.N)/settle.Seconds() {
					t.Fatalf("request %d: rolling rate %v", i, x.Rate)
				}
			}
		}
		if r.Good > r.OK || r.OK > r.Attempted || r.OK+r.Failed+r.Unfinished != r.Attempted {
			t.Fatalf("good %d, ok %d, failed %d, unfinished %d, attempted %d", r.Good, r.OK, r.Failed, r.Unfinished, r.Attempted)
		}
		for _, d := range dists(r) {
			checkDist(t, d)
		}
		for _, p := range [][2]*Dist{{&r.TTFTWithFailures, &r.TTFT}, {&r.E2EWithFailures, &r.E2E}} {
			for _, q := range []float64{0.01, 0.25, 0.5, 0.75, 0.9, 0.99} {
				with, without := quantile(p[0].Values, q), quantile(p[1].Values, q)
				if with < without {
					t.Fatalf("%s: q%v with failures %v, without %v", p[0].Metric, q, with, without)
				}
			}
		}
		for _, x := range append([]Span{r.Whole, r.Steady}, spans(r)...) {
			if x.None == "" && (x.InFlightMax > len(r.Requests) || float64(x.InFlight) > float64(x.InFlightMax)+1e-9 || x.To <= x.From) {
				t.Fatalf("span %+v", x)
			}
		}
		if n := s.Header.Plan.Workers; r.Whole.InFlightMax > n {
			t.Fatalf("%d in flight with %d workers", r.Whole.InFlightMax, n)
		}
		for _, k := range r.Trust {
			if k.Level == "" || k.Value == "" || k.Bound == "" || k.Name == "" || k.Detail == "" {
				t.Fatalf("trust line %+v", k)
			}
		}
		if len(r.Trust) != 16 {
			t.Fatalf("%d lines of trust", len(r.Trust))
		}
	})
}

func dists(r *Run) []*Dist {
	d := []*Dist{&r.TTFB, &r.TTFT, &r.TTFO, &r.TTST, &r.E2E, &r.TPOT, &r.Rate, &r.MaxGap, &r.Prefill, &r.Latency,
		&r.TTFTPlanned, &r.Peak, &r.ICL, &r.ITL, &r.TTFTWithFailures, &r.E2EWithFailures, &r.ScheduleDelay, &r.WrittenDelay}
	for i := range r.Steps {
		s := &r.Steps[i]
		d = append(d, &s.TTFT, &s.TTFO, &s.ITL, &s.TPOT, &s.E2E, &s.ICL, &s.Rate, &s.Prefill)
	}
	return d
}

func spans(r *Run) (s []Span) {
	for i := range r.Steps {
		s = append(s, r.Steps[i].System, r.Steps[i].Steady)
	}
	return s
}

func checkDist(t *rapid.T, d *Dist) {
	if len(d.Quantiles) != 5 {
		t.Fatalf("%s: %d quantiles", d.Metric, len(d.Quantiles))
	}
	if _, ok := MetricByID(d.Metric); !ok {
		t.Fatalf("there is no metric %q", d.Metric)
	}
	if !slices.IsSorted(d.Values) {
		t.Fatalf("%s: values not sorted", d.Metric)
	}
	if d.N == 0 {
		if d.Mean.Ok() || d.Max.Ok() || d.Quantiles[0].Value.Ok() {
			t.Fatalf("%s: numbers of nothing: %+v", d.Metric, d)
		}
		return
	}
	last := d.Min
	for _, q := range d.Quantiles {
		if q.Value < last {
			t.Fatalf("%s: p%v = %v below %v", d.Metric, 100*q.Q, q.Value, last)
		}
		last = q.Value
		if q.Supported != (float64(d.N)*(1-q.Q) > 1-1e-9) {
			t.Fatalf("%s: p%v of %d supported: %v", d.Metric, 100*q.Q, d.N, q.Supported)
		}
		if i := q.Interval; i.Ok() && (i.Lo > i.Hi || i.Method == orderStatistics && (q.Value < i.Lo || q.Value > i.Hi)) {
			t.Fatalf("%s: p%v = %v in %+v", d.Metric, 100*q.Q, q.Value, i)
		}
	}
	if last > d.Max {
		t.Fatalf("%s: p99.9 %v above the greatest %v", d.Metric, last, d.Max)
	}
	if d.Mean.Ok() && (d.Mean < d.Min || d.Mean > d.Max) {
		t.Fatalf("%s: mean %v outside %v … %v", d.Metric, d.Mean, d.Min, d.Max)
	}
	if i := d.MeanInterval; i.Ok() && (i.Lo > i.Hi || float64(i.Lo) < float64(d.Min)-1e-12 || float64(i.Hi) > float64(d.Max)*(1+1e-12)) {
		t.Fatalf("%s: interval of the mean %+v outside %v … %v", d.Metric, i, d.Min, d.Max)
	}
}

// The same events give the same numbers, to the last bit.
func TestPure(t *testing.T) {
	for seed := range uint64(5) {
		text := func() string {
			r := Compute(generator{rand.New(rand.NewPCG(seed, 1))}.session(3, 4), Options{})
			return fmt.Sprintf("%+v", *r)
		}
		if text() != text() {
			t.Fatalf("two computations of session %d differ", seed)
		}
	}
}

// When a run has ended, Live has the numbers of Compute: events of different requests interleaved by
// their times, snapshots taken meanwhile.
func TestLiveAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := generated(t)
		piece := rapid.IntRange(1, 7).Draw(t, "chunks an event")
		between := rapid.Float64Range(0.05, 3).Draw(t, "seconds between snapshots")
		l := NewLive(Options{})
		next := time.Duration(0)
		var end time.Duration
		for _, e := range interleaved(s, piece) {
			if e.at >= next {
				checkSnapshot(t, l.Snapshot(e.at))
				next = e.at + time.Duration(between*1e9)
			}
			l.Append(e.event)
			end = max(end, e.at)
		}
		end += 2 * time.Second
		got, want := l.Snapshot(end), Compute(s, Options{})
		if got.Tokens != want.Tokens || got.OK != want.OK || got.Failed != want.Failed || got.Requests != want.Attempted || got.Running != 0 {
			t.Fatalf("tokens %d, ok %d, failed %d of %d; want %d, %d, %d of %d", got.Tokens, got.OK, got.Failed, got.Requests,
				want.Tokens, want.OK, want.Failed, want.Attempted)
		}
		if got.Source != want.Source {
			t.Fatalf("source %q, want %q", got.Source, want.Source)
		}
		same(t, "max gap", got.MaxGap, want.MaxGap.Max)
		if st := want.Steps; len(st) > 0 && got.Step.Index == st[len(st)-1].Index {
			same(t, "median TTFT", got.TTFTMedian, Num(quantile(st[len(st)-1].TTFT.Values, 0.5)))
		}
		last := map[int]*Request{}
		for i := range want.Requests {
			last[want.Requests[i].Worker] = &want.Requests[i]
		}
		for _, w := range got.Workers {
			r := last[w.Worker]
			if w.Request != r.Number || w.Tokens != r.N {
				t.Fatalf("worker %d: request %d with %d tokens, want %d with %d", w.Worker, w.Request, w.Tokens, r.Number, r.N)
			}
			same(t, "rate", w.Rate, r.Rate)
			same(t, "TTFT", w.TTFT, r.TTFT)
		}
		for _, line := range want.Timeline {
			points := got.Sum
			if line.Worker >= 0 {
				points = got.Workers[line.Worker].Points
			}
			sameLine(t, line.Worker, points, line.Points)
		}
	})
}

// sameLine wants the same points, or, where the one was thinned, some of them with both extremes.
func sameLine(t *rapid.T, worker int, got, want []RollingSample) {
	t.Helper()
	if len(got) > Points || len(want) <= Points/2 && len(got) != len(want) {
		t.Fatalf("line of worker %d: %d points, want %d", worker, len(got), len(want))
	}
	if len(want) == 0 {
		return
	}
	i := 0
	for _, p := range got {
		for i < len(want) && !(want[i].At == p.At && near(want[i].Rate, p.Rate)) {
			i++
		}
		if i == len(want) {
			t.Fatalf("line of worker %d: point %v is not among those wanted", worker, p)
		}
	}
	g, w := ratesOf(got), ratesOf(want)
	if !near(slices.Min(g), slices.Min(w)) || !near(slices.Max(g), slices.Max(w)) {
		t.Fatalf("line of worker %d: from %v to %v, want from %v to %v", worker, slices.Min(g), slices.Max(g), slices.Min(w), slices.Max(w))
	}
}

func same(t *rapid.T, what string, got, want Num) {
	t.Helper()
	if got.Ok() != want.Ok() || got.Ok() && !near(float64(got), float64(want)) {
		t.Fatalf("%s %v, want %v", what, got, want)
	}
}

func checkSnapshot(t *rapid.T, s Snapshot) {
	if len(s.Sum) > Points {
		t.Fatalf("%d points", len(s.Sum))
	}
	for i, p := range s.Sum {
		if p.Rate < 0 || math.IsNaN(p.Rate) || i > 0 && p.At < s.Sum[i-1].At || p.At > s.At {
			t.Fatalf("point %d of the sum: %v after %v at %v", i, p, s.Sum[max(0, i-1)], s.At)
		}
	}
	if s.Median.Ok() && (s.Median < s.Min || s.Median > s.Max) {
		t.Fatalf("median %v outside %v … %v", s.Median, s.Min, s.Max)
	}
	for _, w := range s.Workers {
		if w.State == "" {
			t.Fatalf("worker %d has no state", w.Worker)
		}
	}
}

type timed struct {
	at    time.Duration
	event bench.Event
}

// interleaved are a session's events as they arrive, chunks in pieces of at most n.
func interleaved(s *bench.Session, n int) []timed {
	var all []timed
	for _, st := range s.Steps {
		all = append(all, timed{st.Released, st})
	}
	for _, x := range s.Exchanges {
		all = append(all, timed{x.Request.Start, x.Request})
		if x.Conn != nil {
			all = append(all, timed{x.Request.Start, x.Conn})
		}
		for i := 0; i < len(x.Chunks); i += n {
			part := x.Chunks[i:min(i+n, len(x.Chunks))]
			all = append(all, timed{part[len(part)-1].User, part})
		}
		all = append(all, timed{x.End.Close, x.End})
	}
	slices.SortStableFunc(all, func(a, b timed) int { return compareInt(a.at, b.at) })
	return all
}
