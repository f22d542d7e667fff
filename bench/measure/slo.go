package measure

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"velo/bench"
)

// Objective is one SLO and how the run did.
type Objective struct {
	SLO    bench.SLO
	Text   string // "TTFT p95 ≤ 200 ms"
	Value  Num    // seen, in the metric's unit; the worst request's where each must meet it
	Result string // Met, Missed, TooFew or NotMeasured
	N      int    // requests (gaps between tokens for a percentile of ITL) that were judged
}

// The results of an objective.
const (
	Met         = "met"
	Missed      = "missed"
	TooFew      = "not enough requests"
	NotMeasured = "not measured" // no request has the metric, or its tokens are estimates
)

// objective says how an SLO's metric is read, judged and written.
type objective struct {
	name  string
	lower bool // the bound is a lower one
	unit  Unit
	title string
	of    func(*Request) Num
}

// objectives are the metrics that an SLO can be about. goodput and error_rate are of the run, the
// others of each request.
var objectives = []objective{
	{"ttft", false, Seconds, "TTFT", func(r *Request) Num { return r.TTFT }},
	{"ttfo", false, Seconds, "TTFO", func(r *Request) Num { return r.TTFO }},
	{"itl", false, Seconds, "ITL", func(r *Request) Num { return r.ITL }},
	{"tpot", false, Seconds, "TPOT", func(r *Request) Num { return r.TPOT }},
	{"e2e", false, Seconds, "E2E", func(r *Request) Num { return r.E2E }},
	{"rate", true, PerSec, "decode rate", func(r *Request) Num { return r.Rate }},
	{"goodput", true, ReqSec, "goodput", nil},
	{"error_rate", false, Fraction, "error rate", nil},
}

func objectiveOf(name string) (objective, bool) {
	for _, o := range objectives {
		if o.name == name {
			return o, true
		}
	}
	return objective{}, false
}

// ParseSLO reads NAME[_pQ]=VALUE: ttft_p95=200ms, rate=20, error_rate=1%, goodput=2.
//
// NAME is ttft, ttfo, itl, tpot or e2e (VALUE a time with its unit: 200ms, 0.2s), rate (tokens a
// second), goodput (requests a second) or error_rate (1% or 0.01). rate and goodput are lower bounds,
// the others upper ones. Q is the percentile in percent, p95 or p99.9; without it each request must
// meet the bound. A percentile is that of the values as they are: rate_p5=20 asks that no more than
// one request in twenty be slower than 20 tokens a second.
func ParseSLO(s string) (bench.SLO, error) {
	fail := func(format string, a ...any) (bench.SLO, error) {
		return bench.SLO{}, fmt.Errorf("cannot read the objective %q: %s", s, fmt.Sprintf(format, a...))
	}
	left, right, ok := strings.Cut(s, "=")
	if !ok {
		return fail("write NAME=VALUE or NAME_pQ=VALUE, as in ttft_p95=200ms")
	}
	left, right = strings.TrimSpace(left), strings.TrimSpace(right)
	name, order := left, ""
	o, ok := objectiveOf(name)
	if !ok {
		if i := strings.LastIndex(left, "_p"); i >= 0 {
			name, order = left[:i], left[i+2:]
			o, ok = objectiveOf(name)
		}
	}
	if !ok {
		var names []string
		for _, o := range objectives {
			names = append(names, o.name)
		}
		return fail("there is no metric %q; there are %s", name, strings.Join(names, ", "))
	}
	slo := bench.SLO{Metric: name}
	if name != left {
		if o.of == nil {
			return fail("%s is one number of the whole run and has no percentiles; write %s=VALUE", name, name)
		}
		q, err := strconv.ParseFloat(order, 64)
		if err != nil || !(q > 0 && q < 100) || strings.ContainsAny(order, "eExX+_") {
			return fail("%q is no percentile; write p50, p95 or p99.9, more than 0 and less than 100", "p"+order)
		}
		slo.Quantile = math.Round(q*1e9) / 1e11
	}
	bound, why := o.parse(right)
	if why != "" {
		return fail("%s", why)
	}
	slo.Bound = bound
	return slo, nil
}

// parse reads a bound in the metric's unit; why says what is wrong with it.
func (o objective) parse(s string) (bound float64, why string) {
	number := func(units ...string) (float64, bool) {
		t := s
		for _, u := range units {
			if rest, ok := strings.CutSuffix(t, u); ok {
				t = strings.TrimSpace(rest)
				break
			}
		}
		f, err := strconv.ParseFloat(t, 64)
		return f, err == nil && f >= 0 && !math.IsInf(f, 0)
	}
	switch o.unit {
	case Seconds:
		d, err := time.ParseDuration(strings.ReplaceAll(s, " ", ""))
		if err != nil || d <= 0 {
			return 0, fmt.Sprintf("%q is no time; write it with its unit, as in 200ms or 0.2s", s)
		}
		return d.Seconds(), ""
	case Fraction:
		f, ok := number("%")
		if strings.HasSuffix(s, "%") {
			f /= 100
		}
		if !ok || f > 1 {
			return 0, fmt.Sprintf("%q is no share; write 1%% or 0.01, at most 100%%", s)
		}
		return f, ""
	case PerSec:
		if f, ok := number("tok/s", "tokens/s", "t/s", "/s"); ok {
			return f, ""
		}
		return 0, fmt.Sprintf("%q is no rate in tokens a second; write 20 or 20tok/s", s)
	}
	if f, ok := number("req/s", "requests/s", "r/s", "/s"); ok {
		return f, ""
	}
	return 0, fmt.Sprintf("%q is no rate in requests a second; write 2 or 2req/s", s)
}

// TextOf writes an objective: "TTFT p95 ≤ 200 ms", "decode rate of each request ≥ 20 tok/s".
func TextOf(s bench.SLO) string {
	o, ok := objectiveOf(s.Metric)
	if !ok {
		return s.Metric
	}
	text := o.title
	switch {
	case s.Quantile > 0:
		text += " p" + strconv.FormatFloat(math.Round(s.Quantile*1e11)/1e9, 'f', -1, 64)
	case o.of != nil:
		text += " of each request"
	}
	sign := " ≤ "
	if o.lower {
		sign = " ≥ "
	}
	return text + sign + o.write(s.Bound)
}

func (o objective) write(v float64) string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	switch o.unit {
	case Seconds:
		if v < 1 {
			return number(v*1e3) + " ms"
		}
		return number(v) + " s"
	case Fraction:
		return number(v*100) + " %"
	}
	return number(v) + " " + string(o.unit)
}

// meets tells whether a value keeps the bound; what is not measured does not.
func (o objective) meets(v Num, bound float64) bool {
	if o.lower {
		return float64(v) >= bound
	}
	return float64(v) <= bound
}

// request tells whether a request meets the objective. One with a single token has no rate and no
// time between tokens that could miss it.
func (o objective) request(r *Request, bound float64) bool {
	if r.Status != bench.OK {
		return false
	}
	if r.N <= 1 && (o.name == "itl" || o.name == "tpot" || o.name == "rate") {
		return true
	}
	return o.meets(o.of(r), bound)
}

// good tells whether a request is ok and meets every objective that each request must meet.
func (c *computation) good(r *Request) bool {
	if r.Status != bench.OK {
		return false
	}
	for _, s := range c.session.Header.Plan.SLO {
		if o, ok := objectiveOf(s.Metric); ok && o.of != nil && s.Quantile == 0 && !o.request(r, s.Bound) {
			return false
		}
	}
	return true
}

// judge works the objectives out, those of the run's own numbers aside: goodput is counted by good.
func (c *computation) judge(measured []*Request) {
	for _, s := range c.session.Header.Plan.SLO {
		o, ok := objectiveOf(s.Metric)
		x := Objective{SLO: s, Text: TextOf(s), Value: Missing, Result: NotMeasured}
		switch {
		case !ok:
		case o.of == nil:
			c.judgeRun(&x, o, measured)
		case s.Quantile > 0:
			c.judgeQuantile(&x, o, measured)
		default:
			judgeEach(&x, o, measured)
		}
		c.run.Objectives = append(c.run.Objectives, x)
	}
}

func (x *Objective) settle(met bool) {
	x.Result = Missed
	if met {
		x.Result = Met
	}
}

// judgeEach wants every request that ended to meet the bound, failed ones included.
func judgeEach(x *Objective, o objective, measured []*Request) {
	met, seen := true, false
	for _, r := range measured {
		if !r.Finished() {
			continue
		}
		x.N++
		met = met && o.request(r, x.SLO.Bound)
		if v := o.of(r); v.Ok() && r.Status == bench.OK {
			if !seen || o.lower == (v < x.Value) {
				x.Value = v
			}
			seen = true
		} else {
			seen = seen || r.Fails() || o.request(r, x.SLO.Bound)
		}
	}
	switch {
	case x.N == 0:
		x.Result = TooFew
	case seen:
		x.settle(met)
	}
}

// judgeQuantile takes failed requests as +∞, or as a rate of zero: a server does not get faster by
// failing. The percentiles of ITL are those of the tokens, which failed requests do not have.
func (c *computation) judgeQuantile(x *Objective, o objective, measured []*Request) {
	var d Dist
	if o.name == "itl" {
		d = c.run.ITL
	} else {
		var v []float64
		for _, r := range measured {
			switch {
			case r.Fails() && o.lower:
				v = append(v, 0)
			case r.Fails():
				v = append(v, math.Inf(1))
			case r.Status == bench.OK:
				v = append(v, float64(o.of(r)))
			}
		}
		if slices.ContainsFunc(v, func(f float64) bool { return f == f }) || len(v) == 0 {
			d = newDist(o.name, sortedOf(v), nil)
		} else {
			return
		}
	}
	q := d.Q(x.SLO.Quantile)
	x.N = d.N
	switch {
	case d.N == 0 && len(measured) > 0 && o.name == "itl":
	case !q.Supported:
		x.Value, x.Result = q.Value, TooFew
	default:
		x.Value = q.Value
		x.settle(o.meets(q.Value, x.SLO.Bound))
	}
}

// judgeRun judges the run's own numbers.
func (c *computation) judgeRun(x *Objective, o objective, measured []*Request) {
	failed, good := 0, 0
	for _, r := range measured {
		if r.Finished() {
			x.N++
		}
		if r.Fails() {
			failed++
		}
		if c.good(r) {
			good++
		}
	}
	if x.N == 0 {
		x.Result = TooFew
		return
	}
	if o.name == "error_rate" {
		x.Value = Num(failed) / Num(len(measured))
	} else if t := seconds(c.run.Whole.Time()); t > 0 {
		x.Value = Num(good) / t
	} else {
		x.Value = 0
	}
	x.settle(o.meets(x.Value, x.SLO.Bound))
}
