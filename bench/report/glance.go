package report

import (
	"fmt"

	"velo/bench/measure"
)

// glance is the run in nine numbers. The first is the hero: the decode rate of one stream, or what
// the system puts out where several streams ran at once.
func (b *builder) glance() []Tile {
	r := b.run
	rate, ttft, ttfo, e2e, icl := b.dist("rate"), b.dist("ttft"), b.dist("ttfo"), b.dist("e2e"), b.dist("icl")

	decode := tile(rate.metric, "Decode rate", median(&r.Rate), r.Source,
		joinNotes("median of requests", spreadLow(rate.metric, &r.Rate)))
	system := tileOf(b.scalar("output_rate"), b.systemNote())
	if s := b.scalar("output_rate_steady"); s.v.Ok() {
		system = tileOf(s, "steady state, "+b.systemNote())
		system.Label = "System output rate"
	}
	tiles := []Tile{decode, system}
	if b.concurrent() {
		tiles = []Tile{system, decode}
	}
	gap := r.MaxGap.Max
	if r.MaxGap.N == 0 {
		gap = measure.Missing
	}
	tiles = append(tiles,
		tile(ttft.metric, "Time to first token", median(&r.TTFT), measure.Clock, joinNotes("median", spread(ttft.metric, &r.TTFT, 0.95, "p95"))),
		tile(ttfo.metric, "Time to first output", median(&r.TTFO), measure.Clock, b.ttfoNote()),
		tile(e2e.metric, "End to end", median(&r.E2E), measure.Clock, joinNotes("median", spread(e2e.metric, &r.E2E, 0.95, "p95"))),
		tile(icl.metric, "Gap between chunks", median(&r.ICL), measure.Clock, joinNotes("median", spread(icl.metric, &r.ICL, 0.99, "p99"))),
		tile(b.dist("max_gap").metric, "Longest gap", gap, measure.Clock, "over all measured requests"),
		tile(b.scalar("tokens").metric, "Output tokens", b.scalar("tokens").v, r.Source, b.reasoningNote()),
		b.goodTile(),
	)
	return tiles
}

// concurrent tells whether more than one stream ran at a time.
func (b *builder) concurrent() bool {
	for _, st := range b.run.Steps {
		if st.Workers > 1 {
			return true
		}
	}
	return b.s.Header.Plan.Workers > 1
}

func (b *builder) systemNote() string {
	if s := b.run.Whole; s.None == "" && s.InFlight.Ok() {
		return significant(float64(s.InFlight)) + " in flight on average"
	}
	return ""
}

// spreadLow says where the slow end of a rate lies: for a rate, the tenth percentile is the bad one.
func spreadLow(m measure.Metric, d *measure.Dist) string {
	switch {
	case d.N == 0:
		return "not measured"
	case d.N == 1:
		return "one value"
	}
	lo, unit := FormatNum(m, d.Min)
	hi, _ := FormatNum(m, d.Max)
	return fmt.Sprintf("%s to %s %s, n %s", lo, hi, unit, whole(d.N))
}

func (b *builder) ttfoNote() string {
	r := b.run
	if r.TTFO.N == 0 {
		return "no answer arrived"
	}
	if r.Thought == 0 {
		return "first answer text; no reasoning seen"
	}
	return joinNotes("median", spread(b.dist("ttfo").metric, &r.TTFO, 0.95, "p95"))
}

func (b *builder) reasoningNote() string {
	r := b.run
	if r.Tokens == 0 {
		return ""
	}
	if r.Thought == 0 {
		return "no reasoning"
	}
	return significant(100*float64(r.Thought)/float64(r.Tokens)) + " % reasoning"
}

// goodTile shows the good fraction where objectives were asked for, else the failures.
func (b *builder) goodTile() Tile {
	r := b.run
	if len(b.s.Header.Plan.SLO) > 0 {
		s := b.scalar("good_fraction")
		return tile(s.metric, "Good fraction", s.v, measure.Clock, fmt.Sprintf("%s of %s met what each request must", whole(r.Good), whole(r.Attempted)))
	}
	s := b.scalar("error_rate")
	note := fmt.Sprintf("%s of %s", whole(r.Failed), plural(r.Attempted, "request"))
	if b.unended > 0 {
		note += fmt.Sprintf(", %s without an end", whole(b.unended))
	}
	return tile(s.metric, "Failed", s.v, measure.Clock, note)
}
