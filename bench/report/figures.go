package report

import (
	"strconv"

	"velo/bench/measure"
)

// Figure is one line of the exact figures: what CSV, PDF and JSON agree on to the last digit. Value
// is the number that stands for the metric: the median of a distribution, or the number itself.
// Quantiles that N does not support are Missing; Value is given from the first one on.
type Figure struct {
	Metric                                           measure.Metric
	Source                                           measure.Source
	N                                                int
	Value, Mean, P50, P90, P95, P99, Lowest, Highest measure.Num
}

// figureColumns are the columns of the exact figures, in the summary CSV as in the PDF.
var figureColumns = []string{"metric", "unit", "source", "n", "value", "mean", "p50", "p90", "p95", "p99", "min", "max"}

// figures lists every number of the run.
func (b *builder) figures() []Figure {
	var fs []Figure
	for _, x := range b.dists() {
		f := Figure{Metric: x.metric, Source: x.source, N: x.d.N,
			Value: median(x.d), Mean: x.d.Mean, P50: supported(x.d, 0.5), P90: supported(x.d, 0.9),
			P95: supported(x.d, 0.95), P99: supported(x.d, 0.99), Lowest: x.d.Min, Highest: x.d.Max}
		if x.d.N == 0 {
			f.Mean, f.Lowest, f.Highest = measure.Missing, measure.Missing, measure.Missing
		}
		fs = append(fs, f)
	}
	for _, s := range b.scalars() {
		m := measure.Missing
		fs = append(fs, Figure{Metric: s.metric, Source: s.source, N: s.n, Value: s.v,
			Mean: m, P50: m, P90: m, P95: m, P99: m, Lowest: m, Highest: m})
	}
	return fs
}

// fields writes a figure as the summary CSV has it; what was not measured is empty.
func (f Figure) fields() []string {
	out := []string{f.Metric.ID, fixedUnit(f.Metric.Unit), string(f.Source), strconv.Itoa(f.N)}
	unit := f.Metric.Unit
	if averages[f.Metric.ID] {
		unit = ""
	}
	for _, v := range []measure.Num{f.Value, f.Mean, f.P50, f.P90, f.P95, f.P99, f.Lowest, f.Highest} {
		out = append(out, fixed(unit, v))
	}
	return out
}

// figuresSection shows the exact figures, with a dash in each empty field so that every line has as
// many words as there are columns.
func figuresSection(fs []Figure) Section {
	t := Table{ID: "figures", Columns: make([]Column, len(figureColumns))}
	for i, c := range figureColumns {
		t.Columns[i] = Column{Title: c, Right: i >= 3, Whole: true}
	}
	for _, f := range fs {
		row := make([]Cell, len(figureColumns))
		for i, s := range f.fields() {
			if s == "" {
				s = Dash
			}
			row[i] = text(s)
		}
		t.Rows = append(t.Rows, row)
	}
	return Section{ID: "figures", Title: "Exact figures",
		Text: "The same digits as in the summary CSV: times in ms and rates with three decimals, fractions with six. " +
			"value is the median of a distribution, or the number itself; a percentile that n does not support is a dash.",
		Tables: []Table{t}}
}
