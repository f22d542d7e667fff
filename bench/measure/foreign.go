package measure

import (
	"fmt"
	"math"
	"time"

	"velo/bench"
)

// Foreign is a number as another tool defines it, computed from the same events.
type Foreign struct {
	Metric     string // that tool's name for it, with its unit where the name holds one
	Value      Num    // in the unit that the name or the definition says
	Definition string
}

// As computes a run as "vllm" (vllm bench serve), "aiperf" or "guidellm" defines its metrics; nil for
// any other tool. Only requests that ended well count, as there. Such numbers are never compared with
// those of docs/definitions.md.
func As(tool string, r *Run) []Foreign {
	f := &foreign{run: r, from: farthest, to: -farthest}
	for i := range r.Requests {
		if q := &r.Requests[i]; q.Measured() {
			if known(q.Start) {
				f.from = min(f.from, q.Start)
			}
			f.to = later(f.to, q)
			if q.Status == bench.OK && q.N > 0 && q.E2E.Ok() {
				f.ok = append(f.ok, q)
			}
		}
	}
	switch tool {
	case "vllm":
		f.vllm()
	case "aiperf":
		f.aiperf()
	case "guidellm":
		f.guidellm()
	}
	return f.out
}

// foreign gathers the numbers of another tool.
type foreign struct {
	run      *Run
	ok       []*Request
	from, to time.Duration // first t0, last end
	out      []Foreign
}

// later is the later of t and a request's end, or its last chunk where the end was not seen.
func later(t time.Duration, q *Request) time.Duration {
	if n := len(q.Arrivals); n > 0 && known(q.Arrivals[n-1].At) {
		t = max(t, q.Arrivals[n-1].At)
	}
	if known(q.Ended) {
		t = max(t, q.Ended)
	}
	return t
}

func (f *foreign) add(metric string, v Num, definition string) {
	f.out = append(f.out, Foreign{metric, v, definition})
}

// outputOf is the length of a request's output as the tools count it: by usage, hidden tokens and
// the end token included, else as seen.
func outputOf(q *Request) float64 {
	if q.Unseen > 0 {
		return float64(q.N) + float64(q.Unseen)
	}
	return float64(q.N)
}

// each is a metric's value of every request, those that are not measured left out.
func (f *foreign) each(of func(*Request) float64) []float64 {
	v := make([]float64, 0, len(f.ok))
	for _, q := range f.ok {
		if x := of(q); !math.IsNaN(x) && !math.IsInf(x, 0) {
			v = append(v, x)
		}
	}
	return v
}

func (f *foreign) gaps() []float64 {
	var v []float64
	for _, q := range f.ok {
		v = append(v, q.ICL...)
	}
	return v
}

func sumOf(v []float64) (sum float64) {
	for _, x := range v {
		sum += x
	}
	return sum
}

// duration is the time from the first t0 to the last end, without warm-up steps between, which those
// tools do not have.
func (f *foreign) duration() Num {
	if f.from >= f.to {
		return Missing
	}
	return between(f.from, f.to-f.run.Whole.Paused)
}

// per is n over the duration of the run.
func (f *foreign) per(n float64) Num {
	d := f.duration()
	if !(d > 0) {
		return Missing
	}
	return Num(n) / d
}

// deviation is the standard deviation of v, over n − less.
func deviation(v []float64, less int) Num {
	if len(v) <= less {
		return Missing
	}
	mean, squares := sumOf(v)/float64(len(v)), 0.0
	for _, x := range v {
		squares += (x - mean) * (x - mean)
	}
	return Num(math.Sqrt(squares / float64(len(v)-less)))
}

func meanOf(v []float64) Num {
	if len(v) == 0 {
		return Missing
	}
	return Num(sumOf(v) / float64(len(v)))
}

// nearestRank is the order statistic at rank ⌈q·n⌉.
func nearestRank(sorted []float64, q float64) Num {
	if len(sorted) == 0 {
		return Missing
	}
	i := int(math.Ceil(q*float64(len(sorted))-1e-9)) - 1
	return Num(sorted[min(max(i, 0), len(sorted)-1)])
}

// evenTPOT is (E2E − TTFT)/(n − 1), n by usage.
func evenTPOT(q *Request) float64 {
	if n := outputOf(q); n > 1 {
		return float64(q.E2E-q.TTFT) / (n - 1)
	}
	return math.NaN()
}

func (f *foreign) totals() (input, output float64) {
	for _, q := range f.ok {
		if q.Prompt.Ok() {
			input += float64(q.Prompt)
		}
		output += outputOf(q)
	}
	return input, output
}

func (f *foreign) vllm() {
	input, output := f.totals()
	n := float64(len(f.ok))
	f.add("completed", Num(n), "requests that ended well")
	f.add("failed", Num(f.run.Failed), "failed requests")
	f.add("duration", f.duration(), "first t0 to last end, warm-up steps between left out, s")
	f.add("total_input_tokens", Num(input), "Σ prompt tokens")
	f.add("total_output_tokens", Num(output), "Σ completion tokens by usage")
	f.add("request_throughput", f.per(n), "completed/duration")
	if len(f.run.Objectives) > 0 {
		f.add("request_goodput", f.per(float64(f.run.Good)), "good requests/duration")
	}
	f.add("output_throughput", f.per(output), "Σ completion tokens/duration, ramp and tail included")
	f.add("total_token_throughput", f.per(input+output), "Σ prompt and completion tokens/duration")
	chunks, requests := f.buckets()
	f.add("max_output_tokens_per_s", chunks, "most chunks in a bucket of 1 s; less than the mean where chunks hold several tokens")
	f.add("max_concurrent_requests", requests, "most requests that overlap a bucket of 1 s; may exceed the cap")
	for _, m := range []struct {
		name, definition string
		v                []float64
	}{
		{"ttft", "first chunk − t0, ms; the tool itself takes an empty first chunk, which is not stored here", f.each(func(q *Request) float64 { return float64(q.TTFT) })},
		{"tpot", "(E2E − TTFT)/(n − 1), ms", f.each(evenTPOT)},
		{"itl", "gaps between chunks, ms, whatever they hold", f.gaps()},
		{"e2el", "last chunk − t0, ms", f.each(func(q *Request) float64 { return float64(q.E2E) })},
	} {
		sortFloats(m.v)
		f.add("mean_"+m.name+"_ms", 1e3*meanOf(m.v), m.definition)
		f.add("median_"+m.name+"_ms", 1e3*Num(quantile(m.v, 0.5)), m.definition)
		f.add("std_"+m.name+"_ms", 1e3*deviation(m.v, 0), m.definition+"; of the population")
		f.add("p99_"+m.name+"_ms", 1e3*Num(quantile(m.v, 0.99)), m.definition+"; linear interpolation, however few")
	}
}

// buckets counts, in buckets of one second from the start, the most chunks received and the most
// requests that overlap one.
func (f *foreign) buckets() (chunks, requests Num) {
	n := int((f.to - f.from) / time.Second)
	if len(f.ok) == 0 || n < 0 || n > mostCells {
		return Missing, Missing
	}
	c, open := make([]int, n+1), make([]int, n+2)
	for _, q := range f.ok {
		first := min(max(int((q.Start-f.from)/time.Second), 0), n)
		last := first
		for _, a := range q.Arrivals {
			k := min(max(int((a.At-f.from)/time.Second), 0), n)
			c[k]++
			last = max(last, k)
		}
		open[first]++
		open[last+1]--
	}
	most, at, now := 0, 0, 0
	for k := range c {
		now += open[k]
		most, at = max(most, c[k]), max(at, now)
	}
	return Num(most), Num(at)
}

func (f *foreign) aiperf() {
	input, output := f.totals()
	n := float64(len(f.ok))
	f.add("request_count", Num(n), "requests that ended well")
	f.add("error_request_count", Num(f.run.Failed), "failed requests")
	f.add("request_throughput", f.per(n), "requests that ended well/(last response − first request)")
	f.add("output_token_throughput", f.per(output), "Σ output tokens/(last response − first request)")
	f.add("total_token_throughput", f.per(input+output), "Σ input and output tokens/(last response − first request)")
	f.add("goodput", f.per(float64(f.run.Good)), "requests that met every objective/(last response − first request)")
	f.add("good_request_fraction", f.run.GoodFraction, "good requests/requests attempted, errors included")
	f.add("effective_concurrency", f.run.Whole.InFlight, "time-weighted mean of requests in flight")
	for _, m := range []struct {
		name, definition string
		scale            Num
		v                []float64
	}{
		{"time_to_first_token", "first chunk with content or reasoning − t0, ms", 1e3, f.each(func(q *Request) float64 { return float64(q.TTFT) })},
		{"time_to_second_token", "second chunk − first chunk, ms", 1e3, f.each(func(q *Request) float64 { return float64(q.TTST) })},
		{"time_to_first_output_token", "first chunk that is not reasoning − t0, ms", 1e3, f.each(func(q *Request) float64 { return float64(q.TTFO) })},
		{"request_latency", "last chunk − t0, ms", 1e3, f.each(func(q *Request) float64 { return float64(q.E2E) })},
		{"inter_token_latency", "(latency − TTFT)/(output tokens − 1), ms", 1e3, f.each(evenTPOT)},
		{"inter_chunk_latency", "gaps between chunks, ms", 1e3, f.gaps()},
		{"output_token_throughput_per_user", "1/inter_token_latency, tok/s", 1, f.each(func(q *Request) float64 { return 1 / evenTPOT(q) })},
		{"output_sequence_length", "output tokens by usage", 1, f.each(outputOf)},
		{"input_sequence_length", "prompt tokens by usage", 1, f.each(func(q *Request) float64 { return float64(q.Prompt) })},
	} {
		sortFloats(m.v)
		f.add(m.name+" avg", m.scale*meanOf(m.v), m.definition)
		f.add(m.name+" p50", m.scale*Num(quantile(m.v, 0.5)), m.definition)
		f.add(m.name+" p90", m.scale*Num(quantile(m.v, 0.9)), m.definition)
		f.add(m.name+" p99", m.scale*Num(quantile(m.v, 0.99)), m.definition)
		f.add(m.name+" std", m.scale*deviation(m.v, 1), m.definition+"; of the sample")
	}
}

func (f *foreign) guidellm() {
	_, output := f.totals()
	f.add("requests_per_second", f.per(float64(len(f.ok))), "requests that ended well over the run")
	f.add("output_tokens_per_second", f.per(output), "Σ output tokens over the run")
	f.add("request_concurrency mean", f.run.Whole.InFlight, "time-weighted mean of requests in flight")
	closed := func(q *Request) float64 {
		if known(q.Ended) {
			return float64(between(q.Start, q.Ended))
		}
		return float64(q.E2E)
	}
	for _, m := range []struct {
		name, definition string
		scale            Num
		v                []float64
	}{
		{"request_latency", "end of the response − t0, s", 1, f.each(closed)},
		{"time_to_first_token_ms", "first token, reasoning included, − t0, ms", 1e3, f.each(func(q *Request) float64 { return float64(q.TTFT) })},
		{"inter_token_latency_ms", "(last token − first token)/(n − 1), ms", 1e3, f.each(evenTPOT)},
		{"time_per_output_token_ms", "(last token − t0)/n, ms: includes TTFT", 1e3, f.each(func(q *Request) float64 { return float64(q.E2E) / outputOf(q) })},
	} {
		sortFloats(m.v)
		f.add(m.name+" mean", m.scale*meanOf(m.v), m.definition)
		for _, q := range []float64{0.5, 0.95, 0.99} {
			f.add(fmt.Sprintf("%s p%.0f", m.name, 100*q), m.scale*nearestRank(m.v, q), m.definition+"; the order statistic at rank ⌈q·n⌉")
		}
	}
}
