package measure

import (
	"math"
	"strings"
	"testing"
	"time"

	"velo/bench"
)

// back are a worker's requests one after the other: n tokens gap apart, ttft before, pause between.
func back(worker, requests, n int, ttft, gap, pause float64) []script {
	var out []script
	now := 0.0
	for i := range requests {
		out = append(out, script{start: now, at: every(ttft, gap, n), worker: worker, turn: i})
		now += ttft + gap*float64(n-1) + pause
	}
	return out
}

func together(workers int, of func(worker int) []script) (all []script) {
	for w := range workers {
		all = append(all, of(w)...)
	}
	return all
}

// Four workers at 100 tok/s each: 20 requests of 0.1 s + 50 tokens, worked out by hand.
func TestRun(t *testing.T) {
	r := Compute(session(4, together(4, func(w int) []script { return back(w, 20, 51, 100, 10, 1) })...), Options{})
	if r.Attempted != 80 || r.OK != 80 || r.Good != 80 || r.Tokens != 80*51 || r.Source != Server {
		t.Errorf("attempted %d, ok %d, good %d, tokens %d by %s", r.Attempted, r.OK, r.Good, r.Tokens, r.Source)
	}
	whole := 20*0.6 + 19*0.001
	agree(t, "TTFT", r.TTFT.Mean, 0.1)
	agree(t, "rate", r.Rate.Mean, 100)
	agree(t, "ITL p99", r.ITL.Q(0.99).Value, 0.01)
	agree(t, "output rate", r.Whole.OutputRate, Num(80*51/whole))
	agree(t, "request rate", r.Whole.RequestRate, Num(80/whole))
	agree(t, "goodput", r.Goodput, Num(80/whole))
	agree(t, "good fraction", r.GoodFraction, 1)
	agree(t, "error rate", r.ErrorRate, 0)
	agree(t, "in flight", r.Whole.InFlight, Num(4*20*0.6/whole))
	agree(t, "run variance", Num(math.Round(float64(r.RunVariance)*1e9)), 0)
	if r.Whole.InFlightMax != 4 {
		t.Errorf("%d in flight at most", r.Whole.InFlightMax)
	}
	if r.Steady.None != "" || r.Steady.From != 0 || r.Steady.Requests != 80 {
		t.Errorf("steady state %+v: pauses of 1 ms are ignored", r.Steady)
	}
	if len(r.Broken) != 0 {
		t.Errorf("broken: %q", r.Broken)
	}
	if len(r.Steps) != 1 || r.Steps[0].Requests != 80 || r.Steps[0].System.OutputRate != r.Whole.OutputRate {
		t.Errorf("steps %+v", r.Steps)
	}
}

// A worker's next request may start at the very end of the one before: never more than the cap are in
// flight, and no dip parts the steady state.
func TestNoPause(t *testing.T) {
	r := Compute(session(6, together(6, func(w int) []script { return back(w, 20, 11, 100, 10, 0) })...), Options{})
	if r.Whole.InFlightMax != 6 || r.Steady.InFlightMax != 6 || len(r.Broken) > 0 {
		t.Errorf("%d in flight at most, %d in the steady state, broken %q", r.Whole.InFlightMax, r.Steady.InFlightMax, r.Broken)
	}
	agree(t, "in flight", r.Whole.InFlight, 6)
}

func TestSteady(t *testing.T) {
	for _, c := range []struct {
		name     string
		workers  int
		scripts  []script
		from, to time.Duration
		none     string
	}{
		{"too few completions", 4, together(4, func(w int) []script { return back(w, 5, 51, 100, 10, 1) }), 0, 0,
			"20 requests completed while at least 3 of 4 streams ran, 30 are needed"},
		{"one stream with long pauses", 1, back(0, 40, 11, 50, 10, 100), 0, 0, "1 request completed while at least 1 of 1"},
		{"one stream with short pauses", 1, back(0, 40, 11, 50, 10, 49), 0, at(40*150 + 39*49), ""},
		{"never together", 8, together(3, func(w int) []script { return back(w, 20, 11, 50, 10, 1) }), 0, 0, "never ran together"},
		{"one of two suffices", 2, append(back(0, 30, 11, 50, 10, 1),
			func() []script {
				s := back(1, 30, 11, 50, 10, 1)
				for i := range s {
					s[i].start += 1000
				}
				return s
			}()...), 0, at(1000 + 30*150 + 29), ""},
	} {
		r := Compute(session(c.workers, c.scripts...), Options{})
		if c.none != "" {
			if !strings.HasPrefix(r.Steady.None, "no steady state: ") || !strings.Contains(r.Steady.None, c.none) || r.Steady.OutputRate.Ok() {
				t.Errorf("%s: %+v", c.name, r.Steady)
			}
			continue
		}
		if r.Steady.None != "" || r.Steady.From != c.from || r.Steady.To != c.to {
			t.Errorf("%s: %+v, want from %v to %v", c.name, r.Steady, c.from, c.to)
		}
	}
}

// Of twenty streams nineteen must run; the ramp in which they come one by one and the tail are left out.
func TestSteadyRamp(t *testing.T) {
	s := together(20, func(w int) []script {
		s := back(w, 10, 11, 50, 10, 1)
		for i := range s {
			s[i].start += 100 * float64(w)
		}
		return s
	})
	r := Compute(session(20, s...), Options{})
	if r.Steady.None == "" {
		t.Fatalf("steady state %+v: 10 requests of 0.15 s end before the last worker begins", r.Steady)
	}
	s = together(20, func(w int) []script {
		s := back(w, 40, 11, 50, 10, 1)
		for i := range s {
			s[i].start += 100 * float64(w)
		}
		return s
	})
	r = Compute(session(20, s...), Options{})
	if r.Steady.None != "" || r.Steady.From != at(1800) || r.Steady.InFlightMax != 20 {
		t.Errorf("steady state %+v, want it from the 19th worker's begin", r.Steady)
	}
	agree(t, "steady output rate", Num(math.Round(float64(r.Steady.OutputRate)/50)), Num(math.Round(19.8*11/0.151/50)))
}

// A barrier parts the steps: no steady state reaches over it. Without barriers steps flow together.
func TestFlows(t *testing.T) {
	for _, barrier := range []bool{true, false} {
		s := &bench.Session{Header: bench.Header{ID: "x"}}
		number := 0
		for step := range 2 {
			s.Append(&bench.Step{Number: step, Index: step, Workers: 1, Barrier: barrier})
			for _, q := range back(0, 20, 11, 50, 10, 1) {
				q.step = step
				q.start += float64(step) * (20*150 + 20)
				feed(s, q.exchange(number))
				number++
			}
		}
		r := Compute(s, Options{})
		if (r.Steady.None == "") == barrier {
			t.Errorf("barrier %v: %+v", barrier, r.Steady)
		}
		if len(r.Steps) != 2 || r.Steps[1].Requests != 20 || r.Steps[1].TTFT.N != 20 {
			t.Errorf("steps %+v", r.Steps)
		}
	}
}

// Open loop: latency counts from the plan, late starts are counted, the steady state goes from the
// first planned arrival to the last.
func TestOpenLoop(t *testing.T) {
	s := &bench.Session{Header: bench.Header{ID: "x", Plan: bench.Plan{Rate: 10, Workers: 100}}}
	s.Append(&bench.Step{Workers: 100})
	for i := range 40 {
		q := script{start: 100 * float64(i), at: every(50, 10, 11), worker: i}
		if i == 20 {
			q.start += 30
		}
		x := q.exchange(i)
		x.Request.Planned = at(100 * float64(i))
		feed(s, x)
	}
	r := Compute(s, Options{})
	if r.Late != 1 {
		t.Errorf("%d late", r.Late)
	}
	agree(t, "latency", r.Latency.Max, 0.18)
	agree(t, "E2E", r.E2E.Max, 0.15)
	agree(t, "TTFT from plan", r.TTFTPlanned.Max, 0.08)
	agree(t, "schedule delay", r.ScheduleDelay.Max, 0.03)
	if r.Steady.None != "" || r.Steady.From != 0 || r.Steady.To != at(3900) {
		t.Errorf("steady state %+v", r.Steady)
	}
}

// Repetitions are summed up together; with three of them their own interval is given.
func TestRepetitions(t *testing.T) {
	s := &bench.Session{Header: bench.Header{ID: "x"}}
	for rep := range 3 {
		s.Append(&bench.Step{Number: rep, Repetition: rep, Workers: 1, Barrier: true})
		for i := range 4 {
			feed(s, script{start: float64(10000*rep + 1000*i), at: every(100+10*float64(rep), 10, 11), step: rep, turn: i}.exchange(4*rep+i))
		}
	}
	r := Compute(s, Options{})
	if len(r.Steps) != 1 || r.Steps[0].Repetitions != 3 || len(r.Steps[0].Numbers) != 3 {
		t.Fatalf("steps %+v", r.Steps)
	}
	d := r.Steps[0].TTFT
	half := Num(4.3026527297 * 0.01 / math.Sqrt(3))
	agree(t, "lower end", d.BetweenRuns.Lo, 0.11-half)
	agree(t, "upper end", d.BetweenRuns.Hi, 0.11+half)
	if d.BetweenRuns.Method != "Student t, df 2" || len(d.RepetitionMean) != 3 {
		t.Errorf("between runs %+v, %v", d.BetweenRuns, d.RepetitionMean)
	}
	if m := d.Quantiles[0].Interval.Method; m != "Student t, df 2" {
		t.Errorf("the median's interval is by %q: that between repetitions is preferred", m)
	}
	span := 3.0 + 0.2
	agree(t, "system output rate", r.Steps[0].System.OutputRate, Num(3*44/(3*span+0.03)))
	if !r.Steps[0].SystemBetweenRuns.Ok() {
		t.Error("no interval of the system's output rate")
	}
}

// Failed requests keep their tokens in the system's rate, are out of latencies, and count as +∞ where
// failures do; a stopped one has no end-to-end time.
func TestFailures(t *testing.T) {
	s := back(0, 10, 11, 100, 10, 1)
	s[3].status, s[7].status = bench.Failed, bench.Stopped
	s[3].at = s[3].at[:6]
	r := Compute(session(1, s...), Options{})
	if r.Attempted != 10 || r.OK != 8 || r.Failed != 1 || r.Unfinished != 1 || r.Errors["error"] != 1 {
		t.Errorf("attempted %d, ok %d, failed %d, unfinished %d, %v", r.Attempted, r.OK, r.Failed, r.Unfinished, r.Errors)
	}
	if r.TTFT.N != 9 || r.E2E.N != 8 || r.TTFTWithFailures.N != 10 || r.E2EWithFailures.N != 9 {
		t.Errorf("TTFT of %d, E2E of %d, with failures %d and %d", r.TTFT.N, r.E2E.N, r.TTFTWithFailures.N, r.E2EWithFailures.N)
	}
	if r.Tokens != 9*11+6 || r.Whole.Tokens != r.Tokens {
		t.Errorf("%d tokens, %d in the whole run", r.Tokens, r.Whole.Tokens)
	}
	if p := r.TTFTWithFailures.Q(0.9).Value; !near(float64(p), 0.1) { // place 8.1 of 0…9 would be the ninth value and a tenth of +∞
		if !math.IsInf(float64(p), 1) {
			t.Errorf("p90 with failures %v", p)
		}
	}
	agree(t, "median with failures", r.TTFTWithFailures.Q(0.5).Value, 0.1)
	agree(t, "error rate", r.ErrorRate, 0.1)
}

func TestWarmup(t *testing.T) {
	s := back(0, 10, 11, 100, 10, 1)
	s[0].warmup = true
	s[0].at = every(5000, 10, 11)
	for i := 1; i < 10; i++ {
		s[i].start += 5000
	}
	r := Compute(session(1, s...), Options{})
	if r.Warm != 1 || r.Attempted != 9 || r.TTFT.Max > 0.11 || r.Tokens != 99 || r.Steps[0].Warm != 1 || r.Whole.From != at(5000+201) {
		t.Errorf("warm %d of %d, TTFT up to %v, %d tokens, whole run from %v", r.Warm, r.Attempted, r.TTFT.Max, r.Tokens, r.Whole.From)
	}
}

// The lines of the workers and of their sum: rates while streams decode, zero between.
func TestTimeline(t *testing.T) {
	r := Compute(session(4, together(4, func(w int) []script { return back(w, 2, 301, 500, 10, 2000) })...), Options{})
	if len(r.Timeline) != 5 || r.Timeline[4].Worker != -1 {
		t.Fatalf("%d lines", len(r.Timeline))
	}
	for _, l := range r.Timeline {
		want, zeros := 100.0, 0
		if l.Worker < 0 {
			want = 400
		}
		for _, p := range l.Points {
			switch {
			case p.Rate == 0:
				zeros++
				if p.At != 3500*ms && p.At != 6000*ms {
					t.Errorf("line %d is zero at %v", l.Worker, p.At)
				}
			case math.Abs(p.Rate-want) > want/25+0.01:
				t.Errorf("line %d: %v at %v", l.Worker, p.Rate, p.At)
			}
		}
		if zeros != 2 {
			t.Errorf("line %d is zero %d times", l.Worker, zeros)
		}
	}
}

// Thinning keeps the extremes, the order and the bound.
func TestThin(t *testing.T) {
	for _, n := range []int{0, 1, 7, 600, 601, 100_000} {
		tn := newThinner(600)
		for i := range n {
			v := 50 + 10*math.Sin(float64(i)/100)
			switch i {
			case n / 3:
				v = 999
			case n / 2:
				v = -1
			}
			tn.add(RollingSample{time.Duration(i+1) * tick, v})
		}
		p := tn.points(600)
		if len(p) > 600 || n > 2000 && len(p) < 290 {
			t.Errorf("%d points of %d", len(p), n)
		}
		var least, most float64
		for i := range p {
			least, most = min(least, p[i].Rate), max(most, p[i].Rate)
			if i > 0 && p[i].At <= p[i-1].At {
				t.Errorf("%d points: %v after %v", n, p[i].At, p[i-1].At)
			}
		}
		if n > 100 && (least != -1 || most != 999) {
			t.Errorf("of %d points the extremes are %v and %v", n, least, most)
		}
	}
}

// A line that is zero for a while stays zero to the end of that while, however much it is thinned: with
// one of its two ends lost it would be drawn as a slow rise.
func TestThinKeepsPauses(t *testing.T) {
	for _, stretches := range []int{1, 3, 10, 60, 300} {
		tn, at := newThinner(600), time.Duration(0)
		var ends []time.Duration
		for range stretches {
			for range 29 {
				at += tick
				tn.add(RollingSample{at, 50})
			}
			tn.add(RollingSample{at + 5*ms, 0})
			at += 4 * time.Second
			ends = append(ends, at+7*ms)
			tn.add(RollingSample{at + 7*ms, 0})
		}
		p := tn.points(600)
		for _, end := range ends {
			near := false
			for _, x := range p {
				near = near || x.Rate == 0 && end-x.At < tn.size && x.At-end < tn.size
			}
			if !near && tn.size < 2*time.Second {
				t.Errorf("%d stretches, cells of %v: the pause that ends at %v has no end", stretches, tn.size, end)
			}
		}
		if len(p) > 600 || tn.size >= 2*time.Second && stretches < 60 {
			t.Errorf("%d stretches: %d points in cells of %v", stretches, len(p), tn.size)
		}
	}
}

func TestAcceptance(t *testing.T) {
	s := session(1, script{at: every(100, 30, 21), tokens: append([]int{1}, repeat(3, 20)...),
		usage: &bench.Usage{Prompt: 10, Completion: 61, Reasoning: -1, Cached: -1, Accepted: 40, Rejected: 10}})
	r := Compute(s, Options{})
	agree(t, "acceptance", r.Acceptance, 0.8)
	agree(t, "mean accepted length", r.MeanAccepted, 3) // 20 verify steps
	agree(t, "tokens a chunk", r.AcceptedEstimate, 3)
	if r.ShortGaps.Ok() {
		t.Errorf("short gaps %v where all are alike", r.ShortGaps)
	}
}

func repeat(n, times int) []int {
	v := make([]int, times)
	for i := range v {
		v[i] = n
	}
	return v
}

func TestForeign(t *testing.T) {
	s := session(2, together(2, func(w int) []script { return back(w, 10, 11, 100, 10, 10) })...)
	for _, x := range s.Exchanges {
		x.End.Usage = &bench.Usage{Prompt: 50, Completion: 11, Reasoning: -1, Cached: -1, Accepted: -1, Rejected: -1}
	}
	r := Compute(s, Options{})
	for _, c := range []struct {
		tool, metric string
		want         float64
	}{
		{"vllm", "completed", 20}, {"vllm", "duration", 2.09}, {"vllm", "total_output_tokens", 220}, {"vllm", "total_input_tokens", 1000},
		{"vllm", "output_throughput", 220 / 2.09}, {"vllm", "mean_ttft_ms", 100}, {"vllm", "median_tpot_ms", 10}, {"vllm", "p99_itl_ms", 10},
		{"vllm", "mean_e2el_ms", 200}, {"vllm", "std_ttft_ms", 0}, {"vllm", "max_concurrent_requests", 12}, // as many overlap the second second
		{"aiperf", "request_count", 20}, {"aiperf", "time_to_second_token avg", 10}, {"aiperf", "output_token_throughput_per_user p50", 100},
		{"aiperf", "output_sequence_length avg", 11}, {"aiperf", "good_request_fraction", 1},
		{"guidellm", "time_per_output_token_ms mean", 200.0 / 11}, {"guidellm", "inter_token_latency_ms p50", 10}, {"guidellm", "request_latency mean", 0.2},
	} {
		found := false
		for _, f := range As(c.tool, r) {
			if f.Metric == c.metric {
				found = true
				if math.Abs(float64(f.Value)-c.want) > 1e-6*max(1, c.want) {
					t.Errorf("%s %s = %v, want %v", c.tool, c.metric, f.Value, c.want)
				}
			}
		}
		if !found {
			t.Errorf("%s has no %s", c.tool, c.metric)
		}
	}
	if As("another", r) != nil {
		t.Error("numbers of a tool that is not known")
	}
	if len(As("vllm", Compute(&bench.Session{}, Options{}))) == 0 {
		t.Error("nothing of an empty run")
	}
}

func TestHistogram(t *testing.T) {
	for _, c := range []struct {
		name            string
		values, weights []float64
		width, cap      float64
		edges, counts   []float64
		capped          int
	}{
		{"by width", []float64{1, 2, 2.5, 7.9}, nil, 2, 0, []float64{0, 2, 4, 6, 8}, []float64{1, 2, 0, 1}, 0},
		{"capped", []float64{1, 2, 2.5, 100}, nil, 2, 6, []float64{0, 2, 4, 6}, []float64{1, 2, 1}, 1},
		{"weighted", []float64{1, 3}, []float64{2, 5}, 2, 0, []float64{0, 2, 4}, []float64{2, 5}, 0},
		{"not finite", []float64{1, math.NaN(), math.Inf(1)}, nil, 2, 0, []float64{0, 2}, []float64{1}, 0},
		{"alike but for rounding", []float64{50, 50 + 7e-15, 50 + 1.4e-14}, nil, 0, 0, []float64{49.975, 50.025}, []float64{3}, 0},
		{"nothing", nil, nil, 0, 0, nil, nil, 0},
	} {
		h := HistogramOf(c.values, c.weights, c.width, c.cap)
		if !equal(h.Edges, c.edges) || !equal(h.Counts, c.counts) || h.Capped != c.capped {
			t.Errorf("%s: %+v", c.name, h)
		}
	}
	v := make([]float64, 10000)
	for i := range v {
		v[i] = float64(i)
	}
	h := HistogramOf(v, nil, 0, 0)
	if n := len(h.Counts); n < 15 || n > 30 { // 2 · IQR/n^⅓ = 464 of 9999
		t.Errorf("%d bins", n)
	}
	if h := HistogramOf([]float64{3, 3, 3}, nil, 0, 0); sumOf(h.Counts) != 3 {
		t.Errorf("all alike: %+v", h)
	}
	if h := HistogramOf(v, nil, 0.001, 0); len(h.Counts) > 200 || sumOf(h.Counts) != 10000 {
		t.Errorf("%d bins of a narrow width", len(h.Counts))
	}
}

func equal(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !near(a[i], b[i]) {
			return false
		}
	}
	return true
}

// Warm-up steps that drain between measured ones are in no number of the run: neither their tokens nor
// their time. One stream without a pause is one request in flight, and Little's law holds.
func TestDrainedWarmupBetweenSteps(t *testing.T) {
	s := &bench.Session{Header: bench.Header{ID: "00000000000100000000"}}
	begin, n := 0.0, 0
	for step := range 6 {
		warmup := step%2 == 0
		s.Append(&bench.Step{Number: step, Index: step / 2, Workers: 1, Barrier: true, Warmup: warmup})
		for range 2 {
			x := script{start: begin, at: every(100, 10, 41), step: step, warmup: warmup}
			feed(s, x.exchange(n))
			begin, n = begin+500, n+1
		}
	}
	r := Compute(s, Options{})
	if r.Whole.Requests != 6 || r.Whole.Tokens != 6*41 || r.Whole.Paused != at(2*1000) || r.Whole.Time() != at(3*1000) {
		t.Errorf("%d requests, %d tokens in %v, %v left out", r.Whole.Requests, r.Whole.Tokens, r.Whole.Time(), r.Whole.Paused)
	}
	agree(t, "request rate", r.Whole.RequestRate, 2)
	agree(t, "goodput", r.Goodput, 2)
	agree(t, "output rate", r.Whole.OutputRate, 82)
	agree(t, "in flight", r.Whole.InFlight, 1)
	agree(t, "Little's law", r.Whole.RequestRate*r.E2E.Mean, r.Whole.InFlight)
	for _, x := range As("vllm", r) {
		switch x.Metric {
		case "duration":
			agree(t, "vllm's duration", x.Value, 3)
		case "output_throughput":
			agree(t, "vllm's output throughput", x.Value, 82)
		}
	}
}
