package report

import "velo/bench/measure"

// dist is one distribution of the run with what a table needs to name it.
type dist struct {
	metric measure.Metric
	d      *measure.Dist
	source measure.Source
}

// scalar is one number of the run that has no distribution.
type scalar struct {
	label  string // on tiles
	metric measure.Metric
	v      measure.Num
	source measure.Source
	n      int // what it is taken over, 0 = not applicable
}

// metric finds a metric by ID. The other values serve numbers that have no entry of their own in
// measure.Metrics: counts, and variants of a metric such as "TTFT with failures".
func metric(id, name string, unit measure.Unit) measure.Metric {
	if m, ok := measure.MetricByID(id); ok {
		return m
	}
	return measure.Metric{ID: id, Name: name, Unit: unit}
}

// dists lists the distributions in the order of tables. Those that say nothing here are left out:
// latency from the plan in a closed loop, percentiles with failures where nothing failed.
func (b *builder) dists() []dist {
	r := b.run
	ds := []dist{
		{metric("ttft", "TTFT", measure.Seconds), &r.TTFT, measure.Clock},
		{metric("ttfo", "TTFO", measure.Seconds), &r.TTFO, measure.Clock},
		{metric("ttfb", "TTFB", measure.Seconds), &r.TTFB, measure.Clock},
		{metric("ttst", "TTST", measure.Seconds), &r.TTST, measure.Clock},
		{metric("e2e", "E2E", measure.Seconds), &r.E2E, measure.Clock},
		{metric("icl", "ICL", measure.Seconds), &r.ICL, measure.Clock},
		{metric("itl", "ITL", measure.Seconds), &r.ITL, r.Source},
		{metric("tpot", "TPOT", measure.Seconds), &r.TPOT, r.Source},
		{metric("max_gap", "Max gap", measure.Seconds), &r.MaxGap, measure.Clock},
		{metric("rate", "Decode rate", measure.PerSec), &r.Rate, r.Source},
		{metric("peak", "Peak rate", measure.PerSec), &r.Peak, r.Source},
		{metric("prefill", "Prefill rate", measure.PerSec), &r.Prefill, r.PrefillSource},
	}
	if b.open() {
		ds = append(ds,
			dist{metric("latency", "Latency", measure.Seconds), &r.Latency, measure.Clock},
			dist{metric("ttft_planned", "TTFT from plan", measure.Seconds), &r.TTFTPlanned, measure.Clock})
	}
	ds = append(ds,
		dist{metric("schedule_delay", "Schedule delay", measure.Seconds), &r.ScheduleDelay, measure.Clock},
		dist{metric("written_delay", "Written delay", measure.Seconds), &r.WrittenDelay, measure.Clock})
	if r.Failed > 0 {
		ds = append(ds,
			dist{metric("ttft_with_failures", "TTFT, failures as ∞", measure.Seconds), &r.TTFTWithFailures, measure.Clock},
			dist{metric("e2e_with_failures", "E2E, failures as ∞", measure.Seconds), &r.E2EWithFailures, measure.Clock})
	}
	for i := range ds {
		if src := ds[i].d.Source; src != "" {
			ds[i].source = src
		}
	}
	return ds
}

// dist finds one distribution by the ID of its metric.
func (b *builder) dist(id string) dist {
	for _, d := range b.dists() {
		if d.metric.ID == id {
			return d
		}
	}
	return dist{metric: metric(id, id, measure.Count), d: &measure.Dist{Mean: measure.Missing, Min: measure.Missing, Max: measure.Missing, SD: measure.Missing}}
}

// scalars lists the numbers of the run in the order of tables.
func (b *builder) scalars() []scalar {
	r := b.run
	n := r.Attempted
	none := func(s measure.Span, v measure.Num) measure.Num {
		if s.None != "" {
			return measure.Missing
		}
		return v
	}
	return append([]scalar{
		{"System output rate", metric("output_rate", "System output rate", measure.PerSec), none(r.Whole, r.Whole.OutputRate), r.Source, r.Whole.Requests},
		{"System output rate, steady state", metric("output_rate_steady", "System output rate, steady state", measure.PerSec), none(r.Steady, r.Steady.OutputRate), r.Source, r.Steady.Requests},
		{"Request rate", metric("request_rate", "Request rate", measure.ReqSec), none(r.Whole, r.Whole.RequestRate), measure.Clock, r.Whole.Requests},
		{"Requests in flight, mean", metric("in_flight", "Requests in flight, mean", measure.Count), none(r.Whole, r.Whole.InFlight), measure.Clock, n},
		{"Requests in flight, most", metric("in_flight_max", "Requests in flight, most", measure.Count), none(r.Whole, measure.Num(r.Whole.InFlightMax)), measure.Clock, n},
		{"Rolling rate, median", metric("rolling_median", "Rolling rate, median", measure.PerSec), r.Rolling.Median, r.Source, len(r.Rolling.Samples)},
		{"Rolling rate, lowest", metric("rolling_min", "Rolling rate, lowest", measure.PerSec), r.Rolling.Min, r.Source, len(r.Rolling.Samples)},
		{"Rolling rate, highest", metric("rolling_max", "Rolling rate, highest", measure.PerSec), r.Rolling.Max, r.Source, len(r.Rolling.Samples)},
		{"Stability", metric("stability", "Stability", measure.Fraction), r.Stability, r.Source, len(r.Rolling.Samples)},
		{"Run variance", metric("run_variance", "Run variance", measure.Fraction), r.RunVariance, r.Source, r.Rate.N},
		{"Goodput", metric("goodput", "Goodput", measure.ReqSec), r.Goodput, measure.Clock, n},
		{"Good fraction", metric("good_fraction", "Good fraction", measure.Fraction), r.GoodFraction, measure.Clock, n},
		{"Error rate", metric("error_rate", "Error rate", measure.Fraction), r.ErrorRate, measure.Clock, n},
		{"Requests attempted", metric("requests", "Requests attempted", measure.Count), measure.Num(r.Attempted), measure.Clock, n},
		{"Requests ok", metric("requests_ok", "Requests ok", measure.Count), measure.Num(r.OK), measure.Clock, n},
		{"Requests failed", metric("requests_failed", "Requests failed", measure.Count), measure.Num(r.Failed), measure.Clock, n},
		{"Warm-up requests", metric("requests_warmup", "Warm-up requests", measure.Count), measure.Num(r.Warm), measure.Clock, r.Warm},
		{"Output tokens", metric("tokens", "Output tokens", measure.Tokens), b.counted(r.Tokens), r.Source, n},
		{"Answer tokens", metric("answer_tokens", "Answer tokens", measure.Tokens), b.counted(r.Answer), r.Source, n},
		{"Reasoning tokens", metric("reasoning_tokens", "Reasoning tokens", measure.Tokens), b.counted(r.Thought), r.Source, n},
		{"Prompt tokens", metric("prompt_tokens", "Prompt tokens", measure.Tokens), r.Prompt, measure.Server, n},
		{"Cached prompt tokens", metric("cached_tokens", "Cached prompt tokens", measure.Tokens), r.Cached, measure.Server, n},
		{"Cache hit", metric("cache_hit", "Cache hit", measure.Fraction), r.CacheHit, measure.Server, n},
		{"Acceptance", metric("acceptance", "Acceptance", measure.Fraction), r.Acceptance, measure.Server, n},
		{"Mean accepted length", metric("mean_accepted", "Mean accepted length", measure.Tokens), r.MeanAccepted, measure.Server, n},
		{"Mean accepted length", metric("accepted_estimate", "Mean accepted length (estimate)", measure.Tokens), r.AcceptedEstimate, measure.Estimate, n},
		{"Share of short gaps", metric("short_gaps", "Share of short gaps (estimate)", measure.Fraction), r.ShortGaps, measure.Estimate, b.gaps},
	}, b.regimeScalars()...)
}

// scalar finds one number by the ID of its metric.
func (b *builder) scalar(id string) scalar {
	for _, s := range b.scalars() {
		if s.metric.ID == id {
			return s
		}
	}
	return scalar{label: id, metric: metric(id, id, measure.Count), v: measure.Missing}
}

// counted is a number of tokens; where no request brought a chunk nothing was counted.
func (b *builder) counted(n int) measure.Num {
	if len(b.sources) == 0 {
		return measure.Missing
	}
	return measure.Num(n)
}

// open tells whether the load was an open loop: latency counts from the plan there.
func (b *builder) open() bool { return b.s.Header.Plan.Rate > 0 }

// tile makes a tile of a number.
func tile(m measure.Metric, label string, v measure.Num, src measure.Source, note string) Tile {
	t := Tile{Metric: m, Label: label, Raw: v, Note: note}
	t.Value, t.Unit = FormatNum(m, v)
	if v.Ok() {
		t.Mark = src.Mark()
		if src == measure.Estimate {
			t.Note = joinNotes("estimate", note)
		}
	}
	return t
}

// tileOf makes a tile of a scalar.
func tileOf(s scalar, note string) Tile {
	return tile(s.metric, s.label, s.v, s.source, note)
}

func joinNotes(notes ...string) string {
	out := ""
	for _, n := range notes {
		if n == "" {
			continue
		}
		if out != "" {
			out += " · "
		}
		out += n
	}
	return out
}

// supported is a quantile that the number of values supports; Missing otherwise.
func supported(d *measure.Dist, q float64) measure.Num {
	if d.N == 0 {
		return measure.Missing
	}
	if x := d.Q(q); x.Supported {
		return x.Value
	}
	return measure.Missing
}

// median is the middle of what there is, whatever its number: with one value it is that value.
func median(d *measure.Dist) measure.Num {
	if d.N == 0 {
		return measure.Missing
	}
	return d.Q(0.5).Value
}

// spread says in a tile's note what lies around a median: "p95 412 ms, n 64", or "max of 7: 412 ms".
func spread(m measure.Metric, d *measure.Dist, q float64, label string) string {
	if d.N == 0 {
		return "not measured"
	}
	if v := supported(d, q); v.Ok() {
		return label + " " + quantity(m, v, measure.Clock) + ", n " + whole(d.N)
	}
	if d.N == 1 {
		return "one value"
	}
	return "max of " + whole(d.N) + ": " + quantity(m, d.Max, measure.Clock)
}
