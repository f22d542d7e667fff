package report

import (
	"fmt"

	"velo/bench"
	"velo/bench/measure"
	"velo/bench/regime/share"
	"velo/bench/report/chart"
)

// split tells the kinds of text of the measured requests apart.
func (b *builder) split() {
	exchanges := make(map[int]*bench.Exchange, len(b.s.Exchanges))
	for _, x := range b.s.Exchanges {
		exchanges[x.Request.Number] = x
	}
	var s share.Splitter
	for _, q := range b.measured {
		s.Add(q, share.Of(exchanges[q.Number], q))
	}
	b.shares, b.splits = s.Shares(), s.Requests()
}

// regimeScalars are the numbers of each kind of text, for the exact figures.
func (b *builder) regimeScalars() []scalar {
	var out []scalar
	for _, o := range b.shares {
		name := o.Regime.String()
		out = append(out,
			scalar{"Tokens of " + name, metric("tokens_"+name, "Output tokens, "+name, measure.Tokens), measure.Num(o.Tokens), o.Source, o.Requests},
			scalar{"Decode rate of " + name, metric("rate_"+name, "Decode rate, "+name, measure.PerSec), o.Rate, o.Source, o.Requests})
	}
	return out
}

// regimes: tokens, rate and gaps by the kind of text that was written.
func (b *builder) regimes() Section {
	s := Section{ID: "regimes", Title: "Kinds of text"}
	if len(b.shares) == 0 {
		return s
	}
	t := Table{ID: "regimes", Columns: []Column{
		{Title: "Kind"}, {Title: "Requests", Right: true}, {Title: "Tokens", Right: true}, {Title: "Share", Unit: "%", Right: true},
		{Title: "Decode rate", Unit: "tok/s", Right: true}, {Title: "Gap p50", Unit: "ms", Right: true},
		{Title: "Gap p90", Unit: "ms", Right: true}, {Title: "Longest gap", Unit: "ms", Right: true}}}
	all := 0
	for _, o := range b.shares {
		all += o.Tokens
	}
	sources := map[measure.Source]bool{}
	bars := chart.Bars{Y: chart.Axis{Label: "decode rate", Unit: "tok/s", ZeroBased: true}}
	for _, o := range b.shares {
		sources[o.Source] = true
		part := measure.Missing
		if all > 0 {
			part = measure.Num(float64(o.Tokens) / float64(all))
		}
		t.Rows = append(t.Rows, []Cell{text(o.Regime.String()), count(o.Requests), tokenCount(measure.Num(o.Tokens), o.Source),
			number(part, 100, measure.Clock), number(o.Rate, 1, o.Source),
			number(o.GapP50, 1e3, measure.Clock), number(o.GapP90, 1e3, measure.Clock), number(o.MaxGap, 1e3, measure.Clock)})
		if o.Rate.Ok() {
			bars.Labels, bars.Values = append(bars.Labels, o.Regime.String()), append(bars.Values, float64(o.Rate))
		}
	}
	t.Note = legend(sources)
	s.Tables = []Table{t}
	s.Text = "What was being written, as this program's classifier tells it from the text alone: each chunk has the kind of most of its characters, and the gap before it is that kind's. " +
		"Decode rate is tokens over those gaps, of one stream."
	empty := 0
	for _, q := range b.measured {
		if len(q.Arrivals) == 0 {
			empty++
		}
	}
	if empty > 0 {
		s.Text += fmt.Sprintf(" %s brought no text.", plural(empty, "request"))
	}
	if left := len(b.measured) - b.splits - empty; left > 0 {
		s.Text += fmt.Sprintf(" %s left out: their text is not in the session.", plural(left, "request"))
	}
	if len(bars.Values) > 1 {
		s.Charts = []NamedChart{{ID: "rate-by-regime", Title: "Decode rate by kind of text", Chart: bars,
			Caption: "Tokens over the gaps before them, all measured requests together." + b.estimateSentence()}}
	}
	return s
}

// sharesJSON are the kinds of text, at full precision in SI units.
func sharesJSON(o *share.Share) map[string]any {
	return map[string]any{"regime": o.Regime, "requests": o.Requests, "chunks": o.Chunks, "tokens": o.Tokens, "decoded_tokens": o.Decoded,
		"time_s": measure.Num(o.Time.Seconds()), "rate": o.Rate, "gap_p50": o.GapP50, "gap_p90": o.GapP90, "max_gap": o.MaxGap, "source": o.Source}
}
