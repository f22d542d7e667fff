package report

import (
	"math"
	"strconv"

	"velo/bench/measure"
)

// text is a cell of words.
func text(s string) Cell { return Cell{Text: s, Raw: measure.Missing} }

// number is a cell with three significant digits in the unit of its column.
func number(v measure.Num, scale float64, src measure.Source) Cell {
	c := Cell{Text: Dash, Raw: v}
	if !v.Ok() {
		return c
	}
	c.Mark = src.Mark()
	if f := float64(v) * scale; math.IsInf(f, 0) {
		c.Text = infinite(f)
	} else {
		c.Text = significant(f)
	}
	return c
}

func infinite(f float64) string {
	if f < 0 {
		return "−∞"
	}
	return "∞"
}

// count is a cell with a whole number.
func count(n int) Cell { return Cell{Text: whole(n), Raw: measure.Num(n)} }

// tokenCount is a cell with a number of tokens, whole.
func tokenCount(v measure.Num, src measure.Source) Cell {
	c := Cell{Text: Dash, Raw: v}
	if v.Ok() {
		c.Text, _ = FormatNum(measure.Metric{Unit: measure.Tokens}, v)
		c.Mark = src.Mark()
	}
	return c
}

// quantile is a cell with a percentile, or grey "max of n" where n does not support it.
func quantile(d *measure.Dist, q, scale float64, src measure.Source) Cell {
	if d.N == 0 {
		return number(measure.Missing, scale, src)
	}
	x := d.Q(q)
	if !x.Supported {
		return Cell{Text: "max of " + whole(d.N), Raw: measure.Missing, Grey: true}
	}
	return number(x.Value, scale, src)
}

// interval is a cell with both ends of a 95 % interval.
func interval(i measure.Interval, scale float64) Cell {
	if i.Method == "" || !i.Lo.Ok() || !i.Hi.Ok() {
		return text(Dash)
	}
	return text(number(i.Lo, scale, "").Text + " – " + number(i.Hi, scale, "").Text)
}

// rowScale chooses the unit for a row of a table, by its typical value.
func rowScale(m measure.Metric, d *measure.Dist) (scale float64, unit string) {
	switch m.Unit {
	case measure.Seconds:
		v := median(d)
		if !v.Ok() || math.IsInf(float64(v), 0) {
			if v = d.Min; !v.Ok() || d.N == 0 {
				return 1e3, "ms"
			}
		}
		if v == 0 && d.Max.Ok() {
			v = d.Max
		}
		return timeScale(float64(v))
	case measure.Fraction:
		return 100, "%"
	}
	return 1, displayUnit(m.Unit)
}

// distTable is a table of distributions, one a row.
func distTable(id, title string, ds []dist) Table {
	t := Table{ID: id, Title: title, Columns: []Column{
		{Title: "Metric"}, {Title: "Unit"}, {Title: "n", Right: true}, {Title: "Mean", Right: true},
		{Title: "p50", Right: true}, {Title: "95 % of p50", Right: true}, {Title: "p90", Right: true},
		{Title: "p95", Right: true}, {Title: "p99", Right: true}, {Title: "Max", Right: true},
	}}
	sources := map[measure.Source]bool{}
	for _, x := range ds {
		scale, unit := rowScale(x.metric, x.d)
		mean, most := x.d.Mean, x.d.Max
		if x.d.N == 0 {
			mean, most = measure.Missing, measure.Missing
		}
		t.Rows = append(t.Rows, []Cell{
			text(x.metric.Name), text(unit), count(x.d.N), number(mean, scale, x.source),
			number(median(x.d), scale, x.source), interval(x.d.Q(0.5).Interval, scale),
			quantile(x.d, 0.9, scale, x.source), quantile(x.d, 0.95, scale, x.source),
			quantile(x.d, 0.99, scale, x.source), number(most, scale, x.source),
		})
		if x.d.N > 0 {
			sources[x.source] = true
		}
	}
	t.Note = legend(sources)
	return t
}

// legend explains the marks that occur.
func legend(sources map[measure.Source]bool) string {
	var words []string
	for _, s := range []struct {
		src  measure.Source
		word string
	}{{measure.Server, "counted by the server"}, {measure.Tokenizer, "counted by the model's tokenizer"}, {measure.Estimate, "estimate"}} {
		if sources[s.src] {
			words = append(words, s.src.Mark()+" "+s.word)
		}
	}
	return joinNotes(words...)
}

// fixed writes a number for CSV and for the exact figures: times in ms and rates with three
// decimals (1 µs, the grain of stored stamps), fractions with six, counts whole; empty where it was
// not measured.
func fixed(u measure.Unit, v measure.Num) string {
	f := float64(v)
	switch {
	case !v.Ok():
		return ""
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	switch u {
	case measure.Seconds:
		return strconv.FormatFloat(f*1e3, 'f', 3, 64)
	case measure.Fraction:
		return strconv.FormatFloat(f, 'f', 6, 64)
	case measure.Count, measure.Tokens:
		if f == math.Trunc(f) {
			return strconv.FormatFloat(f, 'f', 0, 64)
		}
	}
	return strconv.FormatFloat(f, 'f', 3, 64)
}

// fixedUnit is the unit that fixed writes in.
func fixedUnit(u measure.Unit) string {
	if u == measure.Seconds {
		return "ms"
	}
	return string(u)
}
