package report

import (
	"fmt"

	"velo/bench/measure"
	"velo/bench/report/chart"
)

// latency: how long one waits, for the first token and between tokens.
func (b *builder) latency() Section {
	r := b.run
	s := Section{ID: "latency", Title: "Latency"}
	mid := func(id, label string, d *measure.Dist, q float64, qName string) Tile {
		x := b.dist(id)
		return tile(x.metric, label, median(d), x.source, joinNotes("median", spread(x.metric, d, q, qName)))
	}
	longest := measure.Missing
	if r.MaxGap.N > 0 {
		longest = r.MaxGap.Max
	}
	s.Tiles = []Tile{
		mid("ttft", "Time to first token", &r.TTFT, 0.95, "p95"),
		mid("ttfo", "Time to first output", &r.TTFO, 0.95, "p95"),
		mid("ttst", "First to second chunk", &r.TTST, 0.95, "p95"),
		mid("e2e", "End to end", &r.E2E, 0.95, "p95"),
		mid("icl", "Gap between chunks", &r.ICL, 0.99, "p99"),
		mid("tpot", "Time per output token", &r.TPOT, 0.95, "p95"),
		tile(b.dist("max_gap").metric, "Longest gap", longest, measure.Clock, "never smoothed away"),
		mid("ttfb", "Time to first byte", &r.TTFB, 0.95, "p95"),
	}
	var rows []dist
	for _, x := range b.dists() {
		switch x.metric.ID {
		case "rate", "peak", "prefill":
			continue
		case "schedule_delay", "written_delay":
			if !b.open() {
				continue
			}
		}
		rows = append(rows, x)
	}
	s.Tables = []Table{distTable("latencies", "Latencies", rows)}
	if b.zeroGaps > 0 {
		s.Text = fmt.Sprintf("%s of %s between chunks are zero (%s %%): their chunks came in one read.",
			whole(b.zeroGaps), plural(b.gaps, "gap"), significant(100*float64(b.zeroGaps)/float64(b.gaps)))
	}
	if c, ok := b.gapHistogram(); ok {
		s.Charts = append(s.Charts, c)
	}
	if c, ok := b.stepBars("ttft-by-step", "TTFT by step", b.dist("ttft").metric, func(st *measure.Step) *measure.Dist { return &st.TTFT }); ok {
		s.Charts = append(s.Charts, c)
	}
	return s
}

// gapHistogram shows how often which gap lay between two chunks. Counts are logarithmic: a stall
// happens once among thousands of gaps, and is the point of the picture.
func (b *builder) gapHistogram() (NamedChart, bool) {
	values := b.run.ICL.Values
	if len(values) < 2 {
		return NamedChart{}, false
	}
	p99 := values[min(len(values)-1, int(0.99*float64(len(values))))]
	limit := 1.5 * p99
	if last := values[len(values)-1]; limit <= 0 || last <= limit {
		limit = last
	}
	h := measure.HistogramOf(values, nil, 0, limit)
	scale, unit := timeScale(float64(median(&b.run.ICL)))
	if unit == "s" && limit < 10 {
		scale, unit = 1e3, "ms"
	}
	edges := make([]float64, len(h.Edges))
	for i, e := range h.Edges {
		edges[i] = e * scale
	}
	caption := plural(len(values), "gap") + " between chunks (ICL), logarithmic counts."
	if h.Capped > 0 {
		caption += fmt.Sprintf(" The last bin holds the %s above %s, up to %s.", plural(h.Capped, "gap"),
			quantity(b.dist("icl").metric, measure.Num(h.Edges[len(h.Edges)-1]), measure.Clock), quantity(b.dist("icl").metric, b.run.ICL.Max, measure.Clock))
	}
	return NamedChart{ID: "gap-histogram", Title: "Gaps between chunks", Caption: caption,
		Chart: chart.Histogram{
			X: chart.Axis{Label: "gap", Unit: unit}, Y: chart.Axis{Label: "gaps"},
			Edges: edges, Counts: h.Counts, LogCounts: true, Markers: quantileMarkers(&b.run.ICL, scale),
		}}, true
}
