package measure

import (
	"math"
	"strings"
	"testing"

	"velo/bench"
)

func TestParseSLO(t *testing.T) {
	for _, c := range []struct {
		in   string
		want bench.SLO
		text string
	}{
		{"ttft_p95=200ms", bench.SLO{Metric: "ttft", Quantile: 0.95, Bound: 0.2}, "TTFT p95 ≤ 200 ms"},
		{"ttft=0.2s", bench.SLO{Metric: "ttft", Bound: 0.2}, "TTFT of each request ≤ 200 ms"},
		{"ttfo_p50=1.5s", bench.SLO{Metric: "ttfo", Quantile: 0.5, Bound: 1.5}, "TTFO p50 ≤ 1.5 s"},
		{"itl_p99.9=20ms", bench.SLO{Metric: "itl", Quantile: 0.999, Bound: 0.02}, "ITL p99.9 ≤ 20 ms"},
		{"tpot=250us", bench.SLO{Metric: "tpot", Bound: 0.00025}, "TPOT of each request ≤ 0.25 ms"},
		{"e2e_p90 = 1m", bench.SLO{Metric: "e2e", Quantile: 0.9, Bound: 60}, "E2E p90 ≤ 60 s"},
		{"rate=20", bench.SLO{Metric: "rate", Bound: 20}, "decode rate of each request ≥ 20 tok/s"},
		{"rate_p5=20tok/s", bench.SLO{Metric: "rate", Quantile: 0.05, Bound: 20}, "decode rate p5 ≥ 20 tok/s"},
		{"goodput=2", bench.SLO{Metric: "goodput", Bound: 2}, "goodput ≥ 2 req/s"},
		{"goodput=2.5 req/s", bench.SLO{Metric: "goodput", Bound: 2.5}, "goodput ≥ 2.5 req/s"},
		{"error_rate=1%", bench.SLO{Metric: "error_rate", Bound: 0.01}, "error rate ≤ 1 %"},
		{"error_rate=0", bench.SLO{Metric: "error_rate"}, "error rate ≤ 0 %"},
	} {
		got, err := ParseSLO(c.in)
		if err != nil || got.Metric != c.want.Metric || math.Abs(got.Quantile-c.want.Quantile) > 1e-12 || math.Abs(got.Bound-c.want.Bound) > 1e-12 {
			t.Errorf("%s: %+v, %v", c.in, got, err)
		}
		if text := TextOf(got); text != c.text {
			t.Errorf("%s reads %q, want %q", c.in, text, c.text)
		}
	}
	for in, want := range map[string]string{
		"ttft":             "NAME=VALUE",
		"ttft=20":          "with its unit",
		"ttft=-1s":         "no time",
		"ttft_p100=1s":     "less than 100",
		"ttft_p999=1s":     "p99.9",
		"ttft_p0=1s":       "more than 0",
		"ttft_p1e1=1s":     "no percentile",
		"ttft_pNaN=1s":     "no percentile",
		"ttft_95=1s":       "no metric",
		"latency=1s":       "no metric \"latency\"",
		"error_rate=150%":  "at most 100%",
		"error_rate=x":     "no share",
		"error_rate_p9=1%": "of the whole run",
		"goodput_p95=1":    "of the whole run",
		"rate=20ms":        "20tok/s",
		"rate=NaN":         "20tok/s",
		"goodput=Inf":      "2req/s",
		"=1":               "no metric",
		"rate=":            "no rate",
	} {
		if s, err := ParseSLO(in); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "cannot read the objective") {
			t.Errorf("%s: %+v, %v, want %q", in, s, err, want)
		}
	}
}

func FuzzParseSLO(f *testing.F) {
	for _, s := range []string{"ttft_p95=200ms", "rate=20", "error_rate=1%", "goodput_p=", "_p=1", "itl_p99.99=1us"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		s, err := ParseSLO(in)
		if err == nil && (!(s.Bound >= 0) || math.IsInf(s.Bound, 0) || !(s.Quantile >= 0 && s.Quantile < 1) || TextOf(s) == "") {
			t.Errorf("%q gave %+v", in, s)
		}
	})
}

func TestObjectives(t *testing.T) {
	slow := func(n, every int) []script { // every so-many-th request has a TTFT of 0.5 s instead of 0.1 s
		s := back(0, n, 11, 100, 10, 1000)
		for i := range s {
			if i%every == 0 {
				s[i].at = append([]float64(nil), s[i].at...)
				for k := range s[i].at {
					s[i].at[k] += 400
				}
			}
		}
		return s
	}
	failed := func(s []script, i int) []script {
		s[i].status = bench.Failed
		return s
	}
	estimated := func(s []script) []script {
		for i := range s {
			s[i].none = true
		}
		return s
	}
	for _, c := range []struct {
		name, slo string
		s         []script
		result    string
		value     float64
		good      int
	}{
		{"each meets it", "ttft=600ms", slow(20, 10), Met, 0.5, 20},
		{"two miss it", "ttft=200ms", slow(20, 10), Missed, 0.5, 18},
		{"p50 does not see them", "ttft_p50=200ms", slow(20, 10), Met, 0.1, 20},
		{"p95 does", "ttft_p95=200ms", slow(20, 10), Missed, 0.5, 20},
		{"too few for a p95", "ttft_p95=200ms", slow(19, 10), TooFew, 0.5, 19},
		{"too few for a p99", "e2e_p99=10s", slow(99, 10), TooFew, 0.6, 99},
		{"a failure counts as endless", "ttft_p95=600ms", failed(slow(20, 10), 3), Missed, math.Inf(1), 19},
		{"a failure misses what each must meet", "ttft=600ms", failed(slow(20, 10), 3), Missed, 0.5, 19},
		{"rates", "rate=99", slow(20, 10), Met, 100, 20},
		{"a rate too low", "rate=101", slow(20, 10), Missed, 100, 0},
		{"a failure has no rate", "rate_p5=99", failed(slow(20, 10), 0), Missed, 95, 19},
		{"ITL by tokens", "itl_p99=11ms", slow(20, 10), Met, 0.01, 20},
		{"ITL of estimates", "itl_p99=11ms", estimated(slow(20, 10)), NotMeasured, math.NaN(), 20},
		{"ITL of each, of estimates", "itl=11ms", estimated(slow(20, 10)), NotMeasured, math.NaN(), 0},
		{"errors", "error_rate=5%", failed(slow(20, 10), 0), Met, 0.05, 19},
		{"too many errors", "error_rate=4%", failed(slow(20, 10), 0), Missed, 0.05, 19},
		{"goodput", "goodput=0.7", slow(20, 30), Met, 20 / (20*1.2 - 1), 20},
		{"nothing", "ttft=1s", nil, TooFew, math.NaN(), 0},
		{"no errors of nothing", "error_rate=1%", nil, TooFew, math.NaN(), 0},
	} {
		slo, err := ParseSLO(c.slo)
		if err != nil {
			t.Fatal(err)
		}
		s := session(1, c.s...)
		s.Header.Plan.SLO = []bench.SLO{slo}
		r := Compute(s, Options{})
		o := r.Objectives[0]
		if o.Result != c.result || r.Good != c.good {
			t.Errorf("%s: %q with %d good, want %q with %d", c.name, o.Result, r.Good, c.result, c.good)
		}
		if math.IsInf(c.value, 1) {
			if !math.IsInf(float64(o.Value), 1) {
				t.Errorf("%s: value %v", c.name, o.Value)
			}
		} else {
			agree(t, c.name, o.Value, Num(c.value))
		}
	}
}

// Goodput counts requests that meet every objective that each must meet.
func TestGoodput(t *testing.T) {
	s := session(1, back(0, 20, 11, 100, 10, 1)...)
	for i, x := range s.Exchanges {
		if i%4 == 0 {
			x.End.Status = bench.Failed
		}
	}
	s.Header.Plan.SLO = []bench.SLO{{Metric: "ttft", Bound: 0.2}, {Metric: "rate", Bound: 50}}
	r := Compute(s, Options{})
	if r.Good != 15 || r.OK != 15 {
		t.Errorf("good %d of %d ok", r.Good, r.OK)
	}
	agree(t, "good fraction", r.GoodFraction, 0.75)
	agree(t, "goodput", r.Goodput, Num(15/(20*0.2+19*0.001)))
	if !r.GoodInterval.Ok() || r.GoodInterval.Lo >= 0.75 || r.GoodInterval.Hi <= 0.75 {
		t.Errorf("interval of the good fraction %+v", r.GoodInterval)
	}
}
