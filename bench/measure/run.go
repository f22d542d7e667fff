package measure

import (
	"fmt"
	"math"
	"slices"
	"time"

	"velo/bench"
)

// Run is everything computed from a session.
type Run struct {
	ID         string
	Requests   []Request // all, in order of number
	Steps      []Step
	Attempted  int // measured requests, failures included
	Good       int // met every SLO; = OK where there is none
	OK         int
	Failed     int
	Unfinished int // stopped by the user, or cut off with the session: neither ok nor failed
	Warm       int
	Errors     map[string]int // by class

	TTFB, TTFT, TTFO, TTST, E2E, TPOT, Rate, MaxGap, Prefill, Latency, TTFTPlanned, Peak Dist // over measured requests that are not failures
	ICL, ITL                                                                             Dist // over gaps / tokens
	TTFTWithFailures, E2EWithFailures                                                    Dist // failures as +∞
	ScheduleDelay, WrittenDelay                                                          Dist
	Rolling                                                                              RollingStats // of all requests
	Stability                                                                            Num
	Late                                                                                 int // requests that started > 10 ms, or > 10 % of the mean time between arrivals, after their plan

	Tokens, Thought, Answer int // of measured requests
	Prompt, Cached          Num
	Source                  Source // the least of the requests' sources
	PrefillSource           Source
	Whole, Steady           Span
	Goodput                 Num      // requests/s
	GoodFraction            Num      // over attempted
	GoodInterval            Interval // of GoodFraction
	ErrorRate               Num      // failed over attempted
	ErrorInterval           Interval
	Acceptance              Num // Σ accepted / Σ drafted, server counters
	AcceptanceInterval      Interval
	MeanAccepted            Num // 1 + accepted/verify steps; see meanAccepted
	AcceptedEstimate        Num // tokens a chunk (estimate)
	ShortGaps               Num // share of short gaps (estimate)
	CacheHit                Num
	CacheHitInterval        Interval
	RunVariance             Num // sample SD/mean of decode rate over turns, ≥ 2
	Trust                   []Check
	Worst                   Level // of Trust: red > amber > unknown > green
	Objectives              []Objective
	Timeline                []Rates // a line a worker and their sum (Worker −1), on true times
	Broken                  []string
}

// computation is a session on its way to a Run.
type computation struct {
	session   *bench.Session
	options   Options
	run       *Run
	exchanges []*bench.Exchange // of run.Requests, in the same order
	last      time.Duration     // the latest moment that an event tells of

	completions []time.Duration // last chunks of the measured requests that are ok, sorted
}

// Compute computes a session. It is a pure function: the same events and options always give the
// same numbers, bootstrapped intervals included.
func Compute(s *bench.Session, o Options) *Run {
	c := &computation{session: s, options: o, run: &Run{ID: s.Header.ID, Errors: map[string]int{}}}
	c.requests()
	r := c.run
	var measured, good []*Request
	for i := range r.Requests {
		q := &r.Requests[i]
		if !q.Measured() {
			r.Warm++
			continue
		}
		measured = append(measured, q)
		c.attempt(q)
		if !q.Fails() {
			good = append(good, q)
		}
	}
	flows := c.flows()
	c.windows(measured, flows)
	g := newGroup(measured, c.repetition, seedOf(r.ID, 0))
	c.distributions(g, measured, good)
	c.tokens(measured, good)
	c.acceptance(good)
	c.judge(measured)
	c.ratios(g, measured)
	g.finish()
	r.Steps = c.steps(flows)
	r.Timeline = c.timeline()
	c.invariants(flows)
	c.trust(measured, flows)
	return r
}

// requests computes every exchange that began.
func (c *computation) requests() {
	for _, x := range c.session.Exchanges {
		if x != nil && x.Request != nil {
			c.exchanges = append(c.exchanges, x)
		}
	}
	slices.SortStableFunc(c.exchanges, func(a, b *bench.Exchange) int { return compareInt(a.Request.Number, b.Request.Number) })
	c.run.Requests = make([]Request, len(c.exchanges))
	moment := func(t time.Duration) {
		if known(t) {
			c.last = max(c.last, t)
		}
	}
	for i, x := range c.exchanges {
		r := Of(x, c.options)
		if x.End == nil && c.session.Header.Told() { // cut off: nothing says it but the header
			r.Stamp = bench.EmitterStamp
		}
		c.run.Requests[i] = r
		moment(r.Start)
		moment(r.Ended)
		if n := len(r.Arrivals); n > 0 {
			moment(r.Arrivals[n-1].At)
			if r.Measured() && r.Status == bench.OK {
				c.completions = append(c.completions, r.Arrivals[n-1].At)
			}
		}
	}
	slices.Sort(c.completions)
	for _, s := range c.session.Samples {
		moment(s.At)
	}
	if c.session.Finish != nil {
		moment(c.session.Finish.At)
	}
}

func (c *computation) attempt(q *Request) {
	r := c.run
	r.Attempted++
	switch {
	case q.Status == bench.OK:
		r.OK++
	case q.Fails():
		r.Failed++
		class := q.Class
		if class == "" {
			class = string(q.Status)
		}
		r.Errors[class]++
	default:
		r.Unfinished++
	}
}

// distributions fills in every distribution of the run. Requests that failed are in none but those
// that take them as +∞; those that the user stopped have no end-to-end time.
func (c *computation) distributions(g *group, measured, good []*Request) {
	r := c.run
	g.dist(&r.TTFB, "ttfb", func(q *Request) Num { return q.TTFB })
	g.dist(&r.TTFT, "ttft", func(q *Request) Num { return q.TTFT })
	g.dist(&r.TTFO, "ttfo", func(q *Request) Num { return q.TTFO })
	g.dist(&r.TTST, "ttst", func(q *Request) Num { return q.TTST })
	g.dist(&r.E2E, "e2e", whole(func(q *Request) Num { return q.E2E }))
	g.dist(&r.TPOT, "tpot", func(q *Request) Num { return q.TPOT })
	g.dist(&r.Rate, "rate", func(q *Request) Num { return q.Rate })
	g.dist(&r.MaxGap, "max_gap", func(q *Request) Num { return q.MaxGap })
	g.dist(&r.Prefill, "prefill", func(q *Request) Num { return q.Prefill })
	g.dist(&r.Latency, "latency", whole(func(q *Request) Num { return q.Latency }))
	g.dist(&r.TTFTPlanned, "ttft_planned", func(q *Request) Num { return q.TTFTPlanned })
	g.dist(&r.Peak, "peak", func(q *Request) Num { return q.Peak })
	g.gaps(&r.ICL, &r.ITL)
	r.TTFTWithFailures = withFailures("ttft", measured, func(q *Request) Num { return q.TTFT })
	r.E2EWithFailures = withFailures("e2e", measured, whole(func(q *Request) Num { return q.E2E }))
	r.ScheduleDelay = newDist("schedule_delay", sortedOf(valuesOf(measured, func(q *Request) Num { return q.ScheduleDelay })), nil)
	r.WrittenDelay = newDist("written_delay", sortedOf(valuesOf(measured, func(q *Request) Num { return q.WrittenDelay })), nil)
	r.RunVariance = Missing
	if r.Rate.N >= 2 && r.Rate.Mean > 0 {
		r.RunVariance = r.Rate.SD / r.Rate.Mean
	}
	r.Rolling = pooledRolling(good)
	r.Stability = r.Rolling.Stability
	r.Late = late(measured)
}

func valuesOf(requests []*Request, of func(*Request) Num) []float64 {
	v := make([]float64, len(requests))
	for i, q := range requests {
		v[i] = float64(of(q))
	}
	return v
}

// withFailures is a distribution in which each failed request counts as +∞.
func withFailures(metric string, measured []*Request, of func(*Request) Num) Dist {
	v := valuesOf(measured, of)
	for i, q := range measured {
		if q.Fails() {
			v[i] = math.Inf(1)
		}
	}
	d := newDist(metric, sortedOf(v), nil)
	d.Source = Clock
	for i := range d.Quantiles {
		if q := &d.Quantiles[i]; q.Supported {
			q.Interval = orderInterval(d.Values, q.Q)
		}
	}
	return d
}

// pooledRolling sums up the rolling samples of requests, in order of time.
func pooledRolling(requests []*Request) RollingStats {
	n := 0
	for _, q := range requests {
		n += len(q.Rolling.Samples)
	}
	all := make([]RollingSample, 0, n)
	for _, q := range requests {
		all = append(all, q.Rolling.Samples...)
	}
	slices.SortStableFunc(all, func(a, b RollingSample) int { return compareInt(a.At, b.At) })
	return statsOf(all)
}

// late counts the requests that started more than 10 ms, or 10 % of the mean time between arrivals,
// after their plan.
func late(measured []*Request) int {
	first, last, n := farthest, -farthest, 0
	for _, q := range measured {
		if known(q.Planned) {
			first, last = min(first, q.Planned), max(last, q.Planned)
			n++
		}
	}
	limit := 0.010
	if n > 1 {
		limit = min(limit, 0.1*float64(seconds(last-first))/float64(n-1))
	}
	count := 0
	for _, q := range measured {
		if float64(q.ScheduleDelay) > limit && q.ScheduleDelay > 0 {
			count++
		}
	}
	return count
}

// tokens sums up tokens and their sources.
func (c *computation) tokens(measured, good []*Request) {
	r := c.run
	r.Prompt, r.Cached = Missing, Missing
	for _, q := range measured {
		r.Tokens += q.N
		r.Thought += q.Thought
		r.Answer += q.Answer
		if q.N > 0 {
			r.Source = least(r.Source, q.Source)
		}
		r.Prompt, r.Cached = plus(r.Prompt, q.Prompt), plus(r.Cached, q.Cached)
	}
	for _, q := range good {
		if q.Prefill.Ok() {
			r.PrefillSource = least(r.PrefillSource, q.PrefillSource)
		}
	}
	r.Prefill.Source = r.PrefillSource
}

// plus adds what was measured.
func plus(a, b Num) Num {
	switch {
	case !a.Ok():
		return b
	case !b.Ok():
		return a
	}
	return a + b
}

// acceptance sums up what the server says about drafted tokens, and what the stream shows of them.
func (c *computation) acceptance(good []*Request) {
	r := c.run
	r.AcceptedEstimate, r.ShortGaps = Missing, Missing
	tokens, chunks := 0, 0
	for _, q := range good {
		if q.MeanChunk.Ok() {
			tokens += q.N - q.N1
			chunks += len(q.Arrivals) - 1
		}
	}
	if chunks > 0 && tokens > chunks {
		r.AcceptedEstimate = Num(tokens) / Num(chunks)
	}
	if _, share, ok := split(r.ICL.Values); ok {
		r.ShortGaps = Num(share)
	}
	r.MeanAccepted = c.meanAccepted(good)
}

// meanAccepted is 1 + accepted/verify steps. Servers count accepted tokens, not steps; these follow:
// each pass of the target model leaves one token of its own, and the first of them came from the
// prefill, so there were completion − accepted − 1 verify steps.
func (c *computation) meanAccepted(good []*Request) Num {
	accepted, steps := 0.0, 0.0
	for _, q := range good {
		if !q.Accepted.Ok() || !q.Unseen.Ok() {
			continue
		}
		if n := float64(q.N) + float64(q.Unseen) - float64(q.Accepted) - 1; n > 0 {
			accepted += float64(q.Accepted)
			steps += n
		}
	}
	if steps == 0 {
		return Missing
	}
	return Num(1 + accepted/steps)
}

// windows measures the whole run and its steady state.
func (c *computation) windows(measured []*Request, flows []*flow) {
	r := c.run
	all := make([]*Request, len(r.Requests))
	for i := range r.Requests {
		all[i] = &r.Requests[i]
	}
	v := c.curveOf(all)
	r.Whole = noSpan("no token came")
	if from, to, ok := bounds(measured); ok {
		r.Whole = c.spanWithout(from, to, c.pauses(flows), v)
	}
	if c.session.Header.Plan.Rate > 0 {
		r.Steady = c.steadyOpen(measured, v)
		return
	}
	r.Steady = c.steady(flows, func(f *flow) (time.Duration, time.Duration, bool) { return c.limits(f.measured) })
}

// ratios are the shares of the run and their intervals.
func (c *computation) ratios(g *group, measured []*Request) {
	r := c.run
	r.GoodFraction, r.ErrorRate, r.Goodput, r.Acceptance, r.CacheHit = Missing, Missing, Missing, Missing, Missing
	n := len(measured)
	good, failed := make([]float64, n), make([]float64, n)
	accepted, drafted, cached, prompt := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for i, q := range measured {
		if c.good(q) {
			good[i] = 1
			r.Good++
		}
		if q.Fails() {
			failed[i] = 1
		}
		if q.Drafted.Ok() {
			accepted[i], drafted[i] = float64(q.Accepted), float64(q.Drafted)
		}
		if q.CacheHit.Ok() {
			cached[i], prompt[i] = float64(q.Cached), float64(q.Prompt)
		}
	}
	if n > 0 {
		r.GoodFraction, r.ErrorRate = Num(r.Good)/Num(n), Num(r.Failed)/Num(n)
	}
	if t := seconds(r.Whole.Time()); r.Whole.None == "" && t > 0 {
		r.Goodput = Num(r.Good) / t
	}
	r.Acceptance = quotient(accepted, drafted)
	r.CacheHit = quotient(cached, prompt)
	g.ratio(&r.GoodInterval, good, nil)
	g.ratio(&r.ErrorInterval, failed, nil)
	g.ratio(&r.AcceptanceInterval, accepted, drafted)
	g.ratio(&r.CacheHitInterval, cached, prompt)
}

func quotient(num, den []float64) Num {
	a, b := 0.0, 0.0
	for i := range num {
		a += num[i]
		b += den[i]
	}
	if b == 0 {
		return Missing
	}
	return Num(a / b)
}

// invariants says which of the invariants of docs/definitions.md do not hold.
func (c *computation) invariants(flows []*flow) {
	r := c.run
	say := func(format string, a ...any) { r.Broken = append(r.Broken, fmt.Sprintf(format, a...)) }
	if r.Good > r.OK || r.OK > r.Attempted {
		say("%d good, %d ok and %d attempted requests do not fit into each other", r.Good, r.OK, r.Attempted)
	}
	for _, f := range flows {
		most, asked := f.curve.most(), f.target()
		if plan := c.session.Header.Plan; plan.Rate > 0 && plan.Workers > 0 {
			asked = plan.Workers
		}
		if most > asked {
			say("%s in flight at once in step %d, %d were asked for", plural(most, "request"), f.steps[0].Number, asked)
		}
	}
	for _, d := range []*Dist{&r.TTFT, &r.E2E, &r.TPOT, &r.Rate, &r.ICL, &r.ITL} {
		for i := 1; i < len(d.Quantiles); i++ {
			if d.Quantiles[i].Value < d.Quantiles[i-1].Value {
				say("the percentiles of %s do not rise", d.Metric)
			}
		}
	}
	for _, p := range [][2]*Dist{{&r.TTFTWithFailures, &r.TTFT}, {&r.E2EWithFailures, &r.E2E}} {
		for i := range p[0].Quantiles {
			if p[0].Quantiles[i].Supported == p[1].Quantiles[i].Supported && p[0].Quantiles[i].Value < p[1].Quantiles[i].Value {
				say("the percentiles of %s are lower with failures than without", p[0].Metric)
			}
		}
	}
	const most = 20
	broken := 0
	for i := range r.Requests {
		for _, s := range r.Requests[i].Broken {
			if broken++; broken <= most {
				say("request %d: %s", r.Requests[i].Number, s)
			}
		}
	}
	if broken > most {
		say("%d more of the kind", broken-most)
	}
}

func compareInt[T ~int | ~int64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
