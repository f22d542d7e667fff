package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"velo/bench/measure"
	"velo/bench/report/chart"
)

// throughput: how fast tokens come, for one stream and for all of them.
func (b *builder) throughput() Section {
	r := b.run
	s := Section{ID: "throughput", Title: "Throughput"}
	rate, peak := b.dist("rate"), b.dist("peak")
	all, steady := b.scalar("output_rate"), b.scalar("output_rate_steady")
	most := r.Peak.Max
	if r.Peak.N == 0 {
		most = measure.Missing
	}
	s.Tiles = []Tile{
		tile(rate.metric, "Decode rate", median(&r.Rate), r.Source, joinNotes("median of requests", spreadLow(rate.metric, &r.Rate))),
		tileOf(all, spanNote(r.Whole)),
		tileOf(steady, spanNote(r.Steady)),
		tile(peak.metric, "Peak rate", most, r.Source, "highest over windows of one request"),
		tileOf(b.scalar("rolling_median"), b.rollingNote()),
		tileOf(b.scalar("stability"), "last 30 % over p95 of rolling samples"),
		tileOf(b.scalar("run_variance"), "SD over mean of decode rates"),
		tileOf(b.scalar("request_rate"), ""),
	}
	for _, id := range []string{"acceptance", "mean_accepted", "accepted_estimate", "short_gaps"} {
		if x := b.scalar(id); x.v.Ok() {
			s.Tiles = append(s.Tiles, tileOf(x, speculationNotes[id]))
		}
	}
	s.Tables = append(s.Tables, distTable("rates", "Rates", []dist{rate, peak, b.dist("prefill")}))
	if t, ok := b.repetitions(); ok {
		s.Tables = append(s.Tables, t)
	}
	if c, ok := b.rateHistogram(); ok {
		s.Charts = append(s.Charts, c)
	}
	if c, ok := b.stepBars("rate-by-step", "Decode rate by step", b.dist("rate").metric, func(st *measure.Step) *measure.Dist { return &st.Rate }); ok {
		s.Charts = append(s.Charts, c)
	}
	return s
}

var speculationNotes = map[string]string{
	"acceptance":        "accepted over drafted, server counters",
	"mean_accepted":     "1 + accepted over verify steps",
	"accepted_estimate": "tokens a chunk; not an acceptance rate",
	"short_gaps":        "gaps in two modes; not an acceptance rate",
}

func spanNote(s measure.Span) string {
	if s.None != "" {
		return oneLine(s.None, 90)
	}
	return fmt.Sprintf("%s in %s", plural(s.Tokens, "token"), durationText(s.Time()))
}

func (b *builder) rollingNote() string {
	m := b.scalar("rolling_median").metric
	if !b.run.Rolling.Min.Ok() {
		return "no request was long enough"
	}
	lo, _ := FormatNum(m, b.run.Rolling.Min)
	hi, _ := FormatNum(m, b.run.Rolling.Max)
	return fmt.Sprintf("%s to %s, windows of %s", lo, hi, b.windowWords())
}

// repetitions shows the means of each repetition, and the interval between them.
func (b *builder) repetitions() (Table, bool) {
	t := Table{ID: "repetitions", Title: "Between repetitions",
		Columns: []Column{{Title: "Metric"}, {Title: "Unit"}, {Title: "Repetitions", Right: true}, {Title: "Mean", Right: true},
			{Title: "95 % of mean", Right: true}, {Title: "Method"}, {Title: "Each", Right: true}}}
	for _, id := range []string{"rate", "ttft", "ttfo", "e2e", "tpot"} {
		x := b.dist(id)
		if len(x.d.RepetitionMean) < 3 {
			continue
		}
		scale, unit := rowScale(x.metric, x.d)
		each := ""
		for i, v := range x.d.RepetitionMean {
			if i == 8 {
				each += ", …"
				break
			}
			if i > 0 {
				each += ", "
			}
			each += number(v, scale, "").Text
		}
		t.Rows = append(t.Rows, []Cell{text(x.metric.Name), text(unit), count(len(x.d.RepetitionMean)),
			number(meanOf(x.d.RepetitionMean), scale, x.source), interval(x.d.BetweenRuns, scale), text(x.d.BetweenRuns.Method), text(each)})
	}
	return t, len(t.Rows) > 0
}

func meanOf(vs []measure.Num) measure.Num {
	sum, n := 0.0, 0
	for _, v := range vs {
		if v.Ok() {
			sum += float64(v)
			n++
		}
	}
	if n == 0 {
		return measure.Missing
	}
	return measure.Num(sum / float64(n))
}

// rateHistogram shows how often the rolling decode rate had which value.
func (b *builder) rateHistogram() (NamedChart, bool) {
	samples := b.run.Rolling.Samples
	if len(samples) < 2 {
		return NamedChart{}, false
	}
	values := make([]float64, 0, len(samples))
	for _, s := range samples {
		values = append(values, s.Rate)
	}
	slices.Sort(values)
	h := measure.HistogramOf(values, nil, 0, math.Inf(1))
	return NamedChart{ID: "rate-histogram", Title: "Rolling decode rate",
		Caption: fmt.Sprintf("%s of the rolling rate of single requests, every 100 ms.%s", plural(len(samples), "sample"), b.estimateSentence()),
		Chart: chart.Histogram{
			X: chart.Axis{Label: "rolling decode rate", Unit: "tok/s"}, Y: chart.Axis{Label: "samples"},
			Edges: h.Edges, Counts: h.Counts, Markers: quantileMarkers(&measure.Dist{N: len(values), Values: values}, 1),
		}}, true
}

// estimateSentence says that rates are estimates where they are.
func (b *builder) estimateSentence() string {
	if b.run.Source == measure.Estimate && len(b.sources) > 0 {
		return " Token counts are an estimate."
	}
	return ""
}

// quantileMarkers marks the median and the 90th percentile of a distribution.
func quantileMarkers(d *measure.Dist, scale float64) []chart.Marker {
	ms := []chart.Marker{{Value: float64(median(d)) * scale, Axis: chart.X, Label: "p50"}}
	if v := supported(d, 0.9); v.Ok() {
		ms = append(ms, chart.Marker{Value: float64(v) * scale, Axis: chart.X, Label: "p90"})
	}
	return ms
}

// stepBars compares the medians of the steps, with the range of their requests as whiskers.
func (b *builder) stepBars(id, title string, m measure.Metric, of func(*measure.Step) *measure.Dist) (NamedChart, bool) {
	const most = 24 // more bars than this cannot carry labels
	bars := chart.Bars{Y: chart.Axis{Label: axisLabel(m), Unit: string(m.Unit), ZeroBased: true}}
	scale := 1.0
	if m.Unit == measure.Seconds {
		longest := 0.0
		for i := range b.run.Steps {
			if v := median(of(&b.run.Steps[i])); v.Ok() {
				longest = math.Max(longest, float64(v))
			}
		}
		scale, bars.Y.Unit = timeScale(longest)
	}
	measured := 0
	for i := range b.run.Steps {
		st := &b.run.Steps[i]
		d := of(st)
		v := median(d)
		if v.Ok() {
			measured++
		}
		bars.Labels = append(bars.Labels, b.stepLabel(i))
		bars.Values = append(bars.Values, float64(v)*scale)
		lo, hi := math.NaN(), math.NaN()
		if d.N > 1 {
			lo, hi = float64(d.Min)*scale, float64(d.Max)*scale
		}
		bars.Lo, bars.Hi = append(bars.Lo, lo), append(bars.Hi, hi)
	}
	if measured < 2 || len(bars.Values) > most {
		return NamedChart{}, false
	}
	return NamedChart{ID: id, Title: title, Chart: bars,
		Caption: "Median of the step's requests; whiskers from the lowest to the highest. Steps are numbered as in the table of steps." + b.estimateFor(m)}, true
}

// axisLabel is the name of a metric as axes have it: in lower case, but for abbreviations.
func axisLabel(m measure.Metric) string {
	if strings.ToUpper(m.Name) == m.Name || m.Name == "" {
		return m.Name
	}
	return strings.ToLower(m.Name[:1]) + m.Name[1:]
}

func (b *builder) estimateFor(m measure.Metric) string {
	if m.Unit == measure.PerSec {
		return b.estimateSentence()
	}
	return ""
}
