package report

import (
	"math"
	"strconv"
	"strings"

	"velo/bench/measure"
)

// Dash stands for what was not measured.
const Dash = "—"

// FormatNum writes a number as tiles and tables show it: three significant digits, in the unit that
// keeps it readable (µs, ms or s for times, % for fractions). Counts and tokens are whole and keep
// every digit. What was not measured is a dash without a unit.
func FormatNum(m measure.Metric, v measure.Num) (value, unit string) {
	if !v.Ok() {
		return Dash, ""
	}
	f := float64(v)
	if math.IsInf(f, 0) {
		return infinite(f), displayUnit(m.Unit)
	}
	switch m.Unit {
	case measure.Seconds:
		scale, unit := timeScale(f)
		return significant(f * scale), unit
	case measure.Fraction:
		return significant(f * 100), "%"
	case measure.Count, measure.Tokens:
		if f == math.Trunc(f) && math.Abs(f) < 1e15 && !averages[m.ID] {
			return group(strconv.FormatFloat(f, 'f', 0, 64)), displayUnit(m.Unit)
		}
	}
	return significant(f), displayUnit(m.Unit)
}

// averages are the metrics in counts and tokens that are not whole: 2 tokens a step is 2.00.
var averages = map[string]bool{"in_flight": true, "mean_accepted": true, "accepted_estimate": true, "tokens_per_request": true}

// Exact writes a number at full precision in its SI unit, for copying and for hovering: the shortest
// decimal that reads back as the same number. What was not measured is a dash.
func Exact(m measure.Metric, v measure.Num) string {
	if !v.Ok() {
		return Dash
	}
	s := strconv.FormatFloat(float64(v), 'f', -1, 64)
	if u := string(m.Unit); m.Unit != measure.Fraction && m.Unit != measure.Count && u != "" {
		s += " " + u
	}
	return s
}

// timeScale chooses the unit of a time in seconds, by the value as it will be rounded: 999.7 ms is
// 1.00 s.
func timeScale(s float64) (float64, string) {
	a := math.Abs(s)
	switch {
	case a == 0:
		return 1e3, "ms"
	case a < 0.9995e-3:
		return 1e6, "µs"
	case a < 0.9995:
		return 1e3, "ms"
	}
	return 1, "s"
}

func displayUnit(u measure.Unit) string {
	switch u {
	case measure.Fraction:
		return "%"
	case measure.Count:
		return ""
	}
	return string(u)
}

// significant writes three significant digits, never in exponential form within what a benchmark
// can meet.
func significant(f float64) string {
	if f == 0 {
		return "0"
	}
	a := math.Abs(f)
	if a >= 1e12 || a < 1e-6 {
		return strconv.FormatFloat(f, 'e', 2, 64)
	}
	e := int(math.Floor(math.Log10(a)))
	if r := math.Pow(10, float64(2-e)); math.Round(a*r)/r >= math.Pow(10, float64(e+1)) {
		e++ // 9.996 rounds to 10.0
	}
	if e >= 2 {
		unit := math.Pow(10, float64(e-2))
		return group(strconv.FormatFloat(math.Round(f/unit)*unit, 'f', 0, 64))
	}
	return strconv.FormatFloat(f, 'f', 2-e, 64)
}

// group puts commas between thousands, from five digits on.
func group(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	if len(s) < 5 {
		return sign + s
	}
	var b strings.Builder
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return sign + b.String()
}

// whole writes a count.
func whole(n int) string { return group(strconv.Itoa(n)) }
