package measure

import (
	"slices"
	"time"

	"velo/bench"
)

// Step sums up one step of the suite, over all its workers and repetitions; warm-up is left out of
// the request metrics.
type Step struct {
	Index                           int // of the step in the suite
	Numbers                         []int
	Section, Title, Kind            string
	Workers, Repetitions            int
	Depth, PP, TG                   int
	Requests, Failed, Warm          int
	Tokens                          int
	TTFT, TTFO, ITL, TPOT, E2E, ICL Dist
	Rate                            Dist // decode rate a request
	Prefill                         Dist
	PrefillSource                   Source
	Source                          Source
	System                          Span     // the whole step: first t0 to last cm, summed over repetitions
	SystemBetweenRuns               Interval // of the system's output rate, over ≥ 3 repetitions
	SystemRates                     []Num    // tokens/s, one a repetition
	Steady                          Span
	Stability                       Num
	ReleaseSkew                     Num // latest t0 − released, seconds
}

// steps sums up the steps of the suite in their order.
func (c *computation) steps(flows []*flow) []Step {
	var indexes []int
	byIndex := map[int][]*bench.Step{}
	of := map[int]int{} // Step.Number → Step.Index
	for _, s := range c.session.Steps {
		of[s.Number] = s.Index
		if _, ok := byIndex[s.Index]; !ok {
			indexes = append(indexes, s.Index)
		}
		byIndex[s.Index] = append(byIndex[s.Index], s)
	}
	requests := map[int][]*Request{}
	for i := range c.run.Requests {
		r := &c.run.Requests[i]
		if index, ok := of[r.Step]; ok {
			requests[index] = append(requests[index], r)
		}
	}
	slices.Sort(indexes)
	out := make([]Step, len(indexes))
	for i, index := range indexes {
		c.step(&out[i], byIndex[index], requests[index], flows)
	}
	return out
}

func (c *computation) step(st *Step, steps []*bench.Step, requests []*Request, flows []*flow) {
	first := steps[0]
	for _, s := range steps {
		if !s.Warmup {
			st.Numbers = append(st.Numbers, s.Number)
		}
	}
	for _, s := range steps {
		if !s.Warmup {
			first = s
			break
		}
	}
	*st = Step{Index: first.Index, Numbers: st.Numbers, Section: first.Section, Title: first.Title, Kind: first.Kind,
		Workers: first.Workers, Depth: first.Depth, PP: first.PP, TG: first.TG}
	var measured, good []*Request
	for _, r := range requests {
		if !r.Measured() {
			st.Warm++
			continue
		}
		measured = append(measured, r)
		st.Tokens += r.N
		if r.Fails() {
			st.Failed++
			continue
		}
		good = append(good, r)
		if r.N > 0 {
			st.Source = least(st.Source, r.Source)
		}
		if r.Prefill.Ok() {
			st.PrefillSource = least(st.PrefillSource, r.PrefillSource)
		}
	}
	st.Requests = len(measured)
	if r := c.run; len(measured) == r.Attempted { // the only step: its numbers are the run's
		st.TTFT, st.TTFO, st.TPOT, st.E2E, st.Rate, st.Prefill = r.TTFT, r.TTFO, r.TPOT, r.E2E, r.Rate, r.Prefill
		st.ICL, st.ITL = r.ICL, r.ITL
	} else {
		c.stepDistributions(st, measured)
	}
	st.Stability = pooledRolling(good).Stability
	c.system(st, measured)
	c.steadyStep(st, measured, flows)
	st.ReleaseSkew = releaseSkew(steps, measured)
}

func (c *computation) stepDistributions(st *Step, measured []*Request) {
	g := newGroup(measured, c.repetition, seedOf(c.session.Header.ID, 1+st.Index))
	g.dist(&st.TTFT, "ttft", func(r *Request) Num { return r.TTFT })
	g.dist(&st.TTFO, "ttfo", func(r *Request) Num { return r.TTFO })
	g.dist(&st.TPOT, "tpot", func(r *Request) Num { return r.TPOT })
	g.dist(&st.E2E, "e2e", whole(func(r *Request) Num { return r.E2E }))
	g.dist(&st.Rate, "rate", func(r *Request) Num { return r.Rate })
	g.dist(&st.Prefill, "prefill", func(r *Request) Num { return r.Prefill })
	st.Prefill.Source = st.PrefillSource
	g.gaps(&st.ICL, &st.ITL)
	g.finish()
}

// releaseSkew is the longest time from a step's release to the start of the first request of one of
// its workers.
func releaseSkew(steps []*bench.Step, measured []*Request) Num {
	type stream struct{ step, worker int }
	first := map[stream]time.Duration{}
	for _, r := range measured {
		k := stream{r.Step, r.Worker}
		if at, ok := first[k]; known(r.Start) && (!ok || r.Start < at) {
			first[k] = r.Start
		}
	}
	released := map[int]time.Duration{}
	for _, s := range steps {
		released[s.Number] = s.Released
	}
	skew := Missing
	for k, at := range first {
		if d := between(released[k.step], at); d.Ok() && !(d <= skew) {
			skew = d
		}
	}
	return skew
}

// system sums the step's repetitions up: tokens over time, each from its first t0 to its last cm.
func (c *computation) system(st *Step, measured []*Request) {
	byRepetition := map[int][]*Request{}
	var order []int
	for _, r := range measured {
		rep := c.repetition(r)
		if _, ok := byRepetition[rep]; !ok {
			order = append(order, rep)
		}
		byRepetition[rep] = append(byRepetition[rep], r)
	}
	slices.Sort(order)
	st.Repetitions = len(order)
	st.System = noSpan("no token came")
	st.SystemBetweenRuns = noInterval()
	total, area := 0.0, 0.0
	for _, rep := range order {
		from, to, ok := bounds(byRepetition[rep])
		if !ok {
			st.SystemRates = append(st.SystemRates, Missing)
			continue
		}
		s := c.span(from, to, c.curveOf(byRepetition[rep]))
		st.SystemRates = append(st.SystemRates, s.OutputRate)
		if st.System.None != "" {
			st.System = Span{From: from, To: to}
		}
		st.System.From, st.System.To = min(st.System.From, from), max(st.System.To, to)
		st.System.Tokens += s.Tokens
		st.System.Requests += s.Requests
		st.System.InFlightMax = max(st.System.InFlightMax, s.InFlightMax)
		total += float64(seconds(to - from))
		area += float64(s.InFlight) * float64(seconds(to-from))
	}
	if total > 0 {
		st.System.OutputRate = Num(float64(st.System.Tokens) / total)
		st.System.RequestRate = Num(float64(st.System.Requests) / total)
		st.System.InFlight = Num(area / total)
	}
	st.SystemBetweenRuns = betweenRuns(st.SystemRates)
}

// steadyStep finds the steady state within the step's own requests.
func (c *computation) steadyStep(st *Step, measured []*Request, flows []*flow) {
	if c.session.Header.Plan.Rate > 0 {
		st.Steady = c.steadyOpen(measured, c.curveOf(measured))
		return
	}
	var mine []*flow
	for _, f := range flows {
		if slices.ContainsFunc(f.steps, func(s *bench.Step) bool { return slices.Contains(st.Numbers, s.Number) }) {
			mine = append(mine, f)
		}
	}
	st.Steady = c.steady(mine, func(f *flow) (time.Duration, time.Duration, bool) {
		var own []*Request
		for _, r := range f.measured {
			if slices.Contains(st.Numbers, r.Step) {
				own = append(own, r)
			}
		}
		return c.limits(own)
	})
}

// limits is the time from the first t0 to the last end of requests.
func (c *computation) limits(requests []*Request) (from, to time.Duration, ok bool) {
	from, to = farthest, -farthest
	for _, r := range requests {
		if a, b, in := c.stay(r); in {
			from, to = min(from, a), max(to, b)
		}
	}
	return from, to, from < to
}

// repetition is the repetition that a request belongs to.
func (c *computation) repetition(r *Request) int {
	if s := c.session.Step(r.Step); s != nil {
		return s.Repetition
	}
	return 0
}

// whole restricts a metric to requests that ran to their end: a stopped one has no end-to-end time.
func whole(of func(*Request) Num) func(*Request) Num {
	return func(r *Request) Num {
		if r.Status != bench.OK {
			return Missing
		}
		return of(r)
	}
}
