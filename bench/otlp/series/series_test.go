package series

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"velo/bench/measure"
	"velo/bench/otlp/decode"
)

const second = uint64(1e9)

func put(t *Table, at time.Duration, p decode.Point) { t.Point(at, &decode.Origin{}, &p) }

func sum(value float64, start, at uint64, temp decode.Temporality, rising bool) decode.Point {
	return decode.Point{Name: "m", Kind: decode.Sum, Temporality: temp, Monotonic: rising, Value: value, Start: start * second, Time: at * second}
}

// TestSums is the table of temporality, restarts and resets. Points are (value, start, time).
func TestSums(t *testing.T) {
	const cumulative, delta = decode.Cumulative, decode.Delta
	type point struct {
		value     float64
		start, at uint64
	}
	for _, c := range []struct {
		name   string
		temp   decode.Temporality
		rising bool
		points []point
		rates  []float64 // what is plotted
		total  float64
		resets int
		stale  uint64
	}{
		{"cumulative", cumulative, true, []point{{100, 1, 10}, {150, 1, 20}, {150, 1, 30}}, []float64{5, 0}, 50, 0, 0},
		{"a restart with a new start time", cumulative, true, []point{{100, 1, 10}, {150, 1, 20}, {30, 25, 30}}, []float64{5, 6}, 80, 1, 0},
		{"a restart that is above the value before", cumulative, true, []point{{10, 1, 10}, {400, 15, 20}}, []float64{80}, 400, 1, 0},
		{"a value that falls without a start time", cumulative, true, []point{{100, 0, 10}, {40, 0, 20}}, []float64{4}, 40, 1, 0},
		{"a value that falls with the same start time", cumulative, true, []point{{100, 1, 10}, {40, 1, 20}}, []float64{4}, 40, 1, 0},
		{"an old point that comes late", cumulative, true, []point{{100, 1, 10}, {200, 1, 20}, {150, 1, 15}, {200, 1, 20}, {300, 1, 30}}, []float64{10, 10}, 200, 0, 2},
		{"a start time that appears", cumulative, true, []point{{100, 0, 10}, {150, 1, 20}}, []float64{5}, 50, 0, 0},
		{"delta", delta, true, []point{{50, 0, 10}, {50, 10, 20}, {20, 20, 30}}, []float64{5, 2}, 120, 0, 0},
		{"delta with gaps", delta, true, []point{{50, 5, 10}, {50, 20, 30}}, []float64{10, 5}, 100, 0, 0},
		{"a negative delta", delta, true, []point{{50, 5, 10}, {-50, 10, 20}}, []float64{10, 0}, 50, 0, 0},
		{"a level", cumulative, false, []point{{5, 1, 10}, {3, 1, 20}, {-2, 1, 30}}, []float64{5, 3, -2}, 0, 0, 0},
		{"a level after a restart", cumulative, false, []point{{5, 1, 10}, {1, 15, 20}}, []float64{5, 1}, 0, 0, 0},
		{"a level by deltas", delta, false, []point{{5, 1, 10}, {-3, 10, 20}, {4, 20, 30}}, []float64{5, 2, 6}, 0, 0, 0},
	} {
		table := NewTable(Options{})
		for i, p := range c.points {
			put(table, time.Duration(i)*time.Hour, sum(p.value, p.start, p.at, c.temp, c.rising)) // receipt says nothing about rates
		}
		lines, _ := table.Lines(Query{Points: true}, 0)
		var got []float64
		for _, p := range lines[0].Points {
			got = append(got, p.Value)
		}
		if fmt.Sprint(got) != fmt.Sprint(c.rates) {
			t.Errorf("%s: plotted %v, want %v", c.name, got, c.rates)
		}
		if c.rising && float64(lines[0].Total) != c.total || lines[0].Resets != c.resets || table.Counts().Stale != c.stale {
			t.Errorf("%s: total %v, %d resets, %d stale; want %v, %d, %d", c.name, lines[0].Total, lines[0].Resets, table.Counts().Stale, c.total, c.resets, c.stale)
		}
	}
}

// TestRatesAreNeverNegative, whatever comes in whatever order.
func TestRatesAreNeverNegative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := NewTable(Options{})
		for i := range rapid.IntRange(1, 40).Draw(t, "points") {
			p := sum(rapid.Float64Range(-1e6, 1e12).Draw(t, "value"), rapid.Uint64Range(0, 100).Draw(t, "start"), rapid.Uint64Range(0, 100).Draw(t, "time"),
				decode.Temporality(rapid.IntRange(0, 2).Draw(t, "temporality")), true)
			put(table, time.Duration(i)*time.Second, p)
			h := decode.Point{Name: "h", Kind: decode.Exponential, Temporality: p.Temporality, Start: p.Start, Time: p.Time, Count: rapid.Uint64Range(0, 1000).Draw(t, "count"),
				Sum: 5, Scale: rapid.Int32Range(-25, 25).Draw(t, "scale"), Zero: rapid.Uint64Range(0, 9).Draw(t, "zero"),
				Positive: decode.Buckets{Offset: rapid.Int32().Draw(t, "offset"), Counts: rapid.SliceOfN(rapid.Uint64Range(0, 9), 0, 5).Draw(t, "positive")}}
			put(table, time.Duration(i)*time.Second, h)
		}
		lines, _ := table.Lines(Query{Points: true}, 0)
		for _, l := range lines {
			for _, p := range l.Points {
				if p.Value < 0 && l.Name == "m" || math.IsInf(p.Value, 0) {
					t.Fatalf("%s: %v", l.Name, p)
				}
			}
			if l.Rate < 0 || l.Total < 0 {
				t.Fatalf("%+v", l)
			}
		}
	})
}

func histogram(start, at uint64, temp decode.Temporality, counts ...uint64) decode.Point {
	p := decode.Point{Name: "h", Kind: decode.Histogram, Temporality: temp, Start: start * second, Time: at * second, Bounds: []float64{1, 2, 4}, Buckets: counts,
		Min: math.NaN(), Max: math.NaN()}
	for i, n := range counts {
		p.Count += n
		p.Sum += float64(n) * []float64{0.5, 1.5, 3, 5}[i]
	}
	return p
}

func TestHistograms(t *testing.T) {
	for _, c := range []struct {
		name          string
		points        []decode.Point
		mean          float64
		p50           string
		total, resets int
	}{
		{"cumulative", []decode.Point{histogram(1, 10, decode.Cumulative, 10, 0, 0, 0), histogram(1, 20, decode.Cumulative, 10, 10, 0, 0)}, 1.5, "≤2", 10, 0},
		{"restart", []decode.Point{histogram(1, 10, decode.Cumulative, 10, 0, 0, 0), histogram(15, 20, decode.Cumulative, 0, 0, 4, 0)}, 3, "≤4", 4, 1},
		{"a bucket that falls", []decode.Point{histogram(0, 10, decode.Cumulative, 10, 0, 0, 0), histogram(0, 20, decode.Cumulative, 8, 8, 0, 0)}, 1, "~1", 16, 1},
		{"delta", []decode.Point{histogram(1, 10, decode.Delta, 10, 0, 0, 0), histogram(10, 20, decode.Delta, 0, 0, 4, 0)}, 3, "≤4", 14, 0},
		{"an interval without observations", []decode.Point{histogram(1, 10, decode.Delta, 10, 0, 0, 0), histogram(10, 20, decode.Delta, 0, 0, 0, 0)}, 0.5, "≤1", 10, 0},
		{"above the last bound", []decode.Point{histogram(1, 10, decode.Delta, 0, 0, 0, 10)}, 5, "≥4", 10, 0},
	} {
		table := NewTable(Options{})
		for i, p := range c.points {
			put(table, time.Duration(i)*time.Second, p)
		}
		lines, _ := table.Lines(Query{}, 0)
		if l := lines[0]; float64(l.Value) != c.mean || told(l.P50) != c.p50 || int(l.Total) != c.total || l.Resets != c.resets {
			t.Errorf("%s: %+v, want %+v", c.name, l, c)
		}
	}
}

// TestExponentialHistograms: the quantiles of values that are known lie in the buckets that hold them,
// over a change of scale and with values on both sides of zero.
func TestExponentialHistograms(t *testing.T) {
	point := func(scale int32, at uint64, values ...float64) decode.Point {
		p := decode.Point{Name: "e", Kind: decode.Exponential, Temporality: decode.Cumulative, Start: second, Time: at * second, Scale: scale, Min: math.NaN(), Max: math.NaN()}
		base := p.Base()
		p.Positive.Offset, p.Negative.Offset = -200, -200
		p.Positive.Counts, p.Negative.Counts = make([]uint64, 400), make([]uint64, 400)
		for _, v := range values {
			p.Count++
			p.Sum += v
			switch i := int(math.Ceil(math.Log(math.Abs(v))/math.Log(base))) - 1 + 200; {
			case v == 0:
				p.Zero++
			case v > 0:
				p.Positive.Counts[i]++
			default:
				p.Negative.Counts[i]++
			}
		}
		return p
	}
	table := NewTable(Options{})
	put(table, 0, point(4, 10, 1, 1, 1))
	put(table, 1, point(3, 20, 1, 1, 1, -8, -8, 0, 0, 5, 5, 5, 5, 5, 5)) // the library lowers the scale as values spread
	lines, _ := table.Lines(Query{}, 0)
	l := lines[0]
	if !(l.P50.Value > 4.5 && l.P50.Value < 5.5) || !(l.P90.Value > 4.5 && l.P90.Value < 5.5) || l.P50.Source != measure.Estimate || l.Resets != 0 || l.Total != 10 || math.Abs(float64(l.Value)-1.4) > 1e-9 {
		t.Errorf("%+v", l)
	}
	s := table.order[0]
	if v := s.interval.quantile(0.1).Value; !(v < -7 && v > -9) {
		t.Errorf("the lowest tenth is %v", v)
	}
	if v := s.interval.quantile(0.35).Value; v != 0 {
		t.Errorf("the third tenth is %v", v)
	}
}

func TestSummariesAndAbsentValues(t *testing.T) {
	table := NewTable(Options{})
	for i := range 2 {
		put(table, time.Duration(i), decode.Point{Name: "s", Kind: decode.Summary, Temporality: decode.Unspecified, Time: uint64(i+1) * second, Count: uint64(10 * (i + 1)), Sum: float64(20 * (i + 1)), Quantiles: []decode.Quantile{{Q: 0.5, Value: 7}, {Q: 0.99, Value: 9}}})
	}
	lines, _ := table.Lines(Query{}, 0)
	if l := lines[0]; l.Value != 2 || told(l.P50) != "7" || told(l.P99) != "9" || told(l.P90) != "-" {
		t.Errorf("%+v", l)
	}
	put(table, 0, decode.Point{Name: "a", Absent: true})
	put(table, 0, decode.Point{Name: "n", Value: math.NaN()})
	if table.Counts().Absent != 2 || table.Len() != 1 {
		t.Errorf("%+v, %d series", table.Counts(), table.Len())
	}
}

// TestTheOrderOfAttributesSaysNothing: a counter whose attributes come in another order is the same counter.
func TestTheOrderOfAttributesSaysNothing(t *testing.T) {
	table := NewTable(Options{})
	a, b := decode.Attribute{Key: "a", Value: decode.Text("1")}, decode.Attribute{Key: "b", Value: decode.Text("2")}
	for i, attributes := range []decode.Attributes{{a, b}, {b, a}, {a, b}} {
		p := decode.Point{Name: "x", Kind: decode.Sum, Temporality: decode.Cumulative, Monotonic: true, Attributes: attributes, Time: uint64(i+1) * 1e9, Value: float64(10 * i)}
		table.Point(time.Duration(i)*time.Second, &decode.Origin{}, &p)
		if attributes[0].Key != []string{"a", "b", "a"}[i] {
			t.Error("the record itself was changed")
		}
	}
	lines, _ := table.Lines(Query{}, 3*time.Second)
	if len(lines) != 1 || lines[0].Labels != "a=1,b=2" || lines[0].Value != 10 || lines[0].Total != 20 || lines[0].Resets != 0 {
		t.Errorf("it became %+v", lines)
	}
}

func TestSeriesAreBounded(t *testing.T) {
	table := NewTable(Options{Series: 10, Points: 5})
	for i := range 20 {
		for n := range 8 {
			put(table, time.Duration(n), decode.Point{Name: fmt.Sprint("m", i), Value: float64(n)})
		}
	}
	if table.Len() != 10 || table.Counts().Refused != 80 {
		t.Errorf("%d series, %+v", table.Len(), table.Counts())
	}
	lines, n := table.Lines(Query{Filter: "m3", Points: true}, 0)
	if n != 1 || len(lines[0].Points) != 5 || lines[0].Points[0].Value != 3 || lines[0].Points[4].Value != 7 {
		t.Errorf("%+v", lines)
	}
	put(table, 2*time.Hour, decode.Point{Name: "late", Value: 1}) // the others have been quiet for long
	if lines, _ := table.Lines(Query{Filter: "late"}, 0); len(lines) != 1 || table.Len() != 10 || table.Counts().Evicted != 1 {
		t.Errorf("no room was made: %+v", table.Counts())
	}
}

// pages are what engines expose, twice, ten seconds apart.
var pages = []struct {
	engine string
	first  string
	second string
	want   map[string]float64
}{
	{"vLLM", `
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3
vllm:num_requests_running{engine="1",model_name="m"} 2
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 1
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{model_name="m"} 1000
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{model_name="m"} 100
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{model_name="m"} 10
# TYPE vllm:spec_decode_num_draft_tokens_total counter
vllm:spec_decode_num_draft_tokens_total{model_name="m"} 30
# TYPE vllm:spec_decode_num_accepted_tokens_total counter
vllm:spec_decode_num_accepted_tokens_total{model_name="m"} 20
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{model_name="m"} 100
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{model_name="m",le="0.1"} 1
vllm:time_to_first_token_seconds_bucket{model_name="m",le="+Inf"} 1
vllm:time_to_first_token_seconds_sum{model_name="m"} 0.05
vllm:time_to_first_token_seconds_count{model_name="m"} 1
`, `
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 4
vllm:num_requests_running{engine="1",model_name="m"} 2
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{model_name="m"} 2000
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{model_name="m"} 600
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{model_name="m"} 20
# TYPE vllm:spec_decode_num_draft_tokens_total counter
vllm:spec_decode_num_draft_tokens_total{model_name="m"} 60
# TYPE vllm:spec_decode_num_accepted_tokens_total counter
vllm:spec_decode_num_accepted_tokens_total{model_name="m"} 35
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{model_name="m"} 600
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{model_name="m",le="0.1"} 1
vllm:time_to_first_token_seconds_bucket{model_name="m",le="+Inf"} 3
vllm:time_to_first_token_seconds_sum{model_name="m"} 0.65
vllm:time_to_first_token_seconds_count{model_name="m"} 3
`, map[string]float64{Running: 6, Waiting: 1, KVUse: 0.25, CacheHits: 0.5, Acceptance: 0.5, MeanAccepted: 2.5, OutputRate: 50, TTFT: 0.3}},
	{"SGLang", `
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m"} 7
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{model_name="m"} 2
# TYPE sglang:token_usage gauge
sglang:token_usage{model_name="m"} 0.28
# TYPE sglang:cache_hit_rate gauge
sglang:cache_hit_rate{model_name="m"} 0.5
# TYPE sglang:gen_throughput gauge
sglang:gen_throughput{model_name="m"} 86.5
# TYPE sglang:spec_accept_length gauge
sglang:spec_accept_length{model_name="m"} 3.5
`, "", map[string]float64{Running: 7, Waiting: 2, KVUse: 0.28, CacheHits: 0.5, OutputRate: 86.5, MeanAccepted: 3.5}},
	{"llama.cpp", `
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 1
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 0
# TYPE llamacpp:tokens_predicted_total counter
llamacpp:tokens_predicted_total 100
# TYPE llamacpp:n_decode_total counter
llamacpp:n_decode_total 100
`, `
# TYPE llamacpp:tokens_predicted_total counter
llamacpp:tokens_predicted_total 300
# TYPE llamacpp:n_decode_total counter
llamacpp:n_decode_total 300
`, map[string]float64{Running: 1, Waiting: 0, OutputRate: 20, StepTime: 0.05}},
	{"Velo", `
# TYPE velogb10_requests_running gauge
velogb10_requests_running 2
# TYPE velogb10_kv_pages gauge
velogb10_kv_pages 200
# TYPE velogb10_kv_pages_used gauge
velogb10_kv_pages_used 50
# TYPE velogb10_prompt_tokens_total counter
velogb10_prompt_tokens_total 1000
# TYPE velogb10_prompt_tokens_cached_total counter
velogb10_prompt_tokens_cached_total 0
`, `
# TYPE velogb10_prompt_tokens_total counter
velogb10_prompt_tokens_total 2000
# TYPE velogb10_prompt_tokens_cached_total counter
velogb10_prompt_tokens_cached_total 250
`, map[string]float64{Running: 2, KVUse: 0.25, CacheHits: 0.25, PromptRate: 100}},
}

func TestEnginesAreKnownByTheirMetrics(t *testing.T) {
	for _, c := range pages {
		table := NewTable(Options{})
		for i, page := range []string{c.first, c.second} {
			if _, err := table.Exposition(time.Duration(i)*10*time.Second, "host:8000", strings.NewReader(page)); err != nil {
				t.Fatalf("%s: %v", c.engine, err)
			}
			table.Sweep(time.Duration(i) * 10 * time.Second)
		}
		all := table.Engines(10 * time.Second)
		if len(all) != 1 || all[0].Title != c.engine {
			t.Fatalf("%s: %+v", c.engine, all)
		}
		got := map[string]float64{}
		for _, g := range all[0].Gauges {
			got[g.Name] = float64(g.Value)
			if g.Value.Ok() && len(g.Points) == 0 {
				t.Errorf("%s: %s has no history", c.engine, g.Name)
			}
			if g.Name == StepTime && g.Source != measure.Estimate {
				t.Errorf("a step time that is inferred does not say so")
			}
		}
		for name, want := range c.want {
			if v, ok := got[name]; !ok || math.Abs(v-want) > 1e-9 {
				t.Errorf("%s: %s is %v, want %v", c.engine, name, v, want)
			}
		}
		table.Clear()
		if len(table.Engines(0)) != 0 {
			t.Errorf("%s: still there after a clear", c.engine)
		}
	}
}

// TestConventionNames: metrics by the semantic conventions, under names of any spelling.
func TestConventionNames(t *testing.T) {
	for name, want := range map[string]role{
		"gen_ai.server.time_to_first_token": firstToken, "gen_ai.client.token.usage": usage, "gen_ai_server_request_duration": duration,
		"vllm_num_requests_running": running, "vllm.gpu_cache_usage_perc": kvUse, "VLLM:NUM_REQUESTS_WAITING": waiting,
		"vllm:spec_decode_num_accepted_tokens": accepted, "http.server.duration": 0, "vllm:unheard_of": 0,
	} {
		if _, r := roleOf(name); r != want {
			t.Errorf("%s is %d, want %d", name, r, want)
		}
	}
	table := NewTable(Options{})
	for i := range 3 {
		for kind, n := range map[string]float64{"input": 300, "output": 100} {
			put(table, 0, decode.Point{Name: "gen_ai.client.token.usage", Kind: decode.Histogram, Temporality: decode.Delta, Start: uint64(10*i+1) * second, Time: uint64(10*i+11) * second,
				Count: 5, Sum: 5 * n, Attributes: decode.Attributes{{Key: "gen_ai.token.type", Value: decode.Text(kind)}, {Key: "gen_ai.request.model", Value: decode.Text("m")}}})
		}
	}
	e := table.Engines(0)
	if len(e) != 1 || e[0].Model != "m" {
		t.Fatalf("%+v", e)
	}
	for _, g := range e[0].Gauges {
		if want := map[string]measure.Num{OutputRate: 50, PromptRate: 150}[g.Name]; math.Abs(float64(g.Value-want)) > 1e-9 {
			t.Errorf("%s is %v", g.Name, g.Value)
		}
	}
}

func FuzzExposition(f *testing.F) {
	for _, p := range pages {
		f.Add(p.first)
	}
	f.Add("# TYPE h histogram\nh_bucket{le=\"1\"} 5\nh_bucket{le=\"+Inf\"} 3\nh_count 2\nh_sum NaN\n")
	f.Fuzz(func(t *testing.T, page string) {
		table := NewTable(Options{Series: 100})
		for i := range 3 {
			_, _ = table.Exposition(time.Duration(i)*time.Second, "x", strings.NewReader(page))
			table.Sweep(time.Duration(i) * time.Second)
		}
		table.Engines(0)
		lines, _ := table.Lines(Query{Points: true}, 0)
		for _, l := range lines {
			if l.Plotted == "rate per second" && l.Value < 0 {
				t.Fatalf("%+v", l)
			}
		}
	})
}
