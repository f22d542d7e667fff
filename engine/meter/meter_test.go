package meter

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"pgregory.net/rapid"

	"velo/engine/host"
	"velo/engine/sched"
)

var update = flag.Bool("update", false, "write the golden file")

var began = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// fixed is a meter of which nothing changes by itself.
func fixed(change ...func(*gauges)) *Meter {
	g := &gauges{
		began: began,
		now:   func() time.Time { return began.Add(90 * time.Second) },
		status: func() sched.Status {
			return sched.Status{Alive: true, Busy: true, Running: 3, Waiting: 2, Lanes: 8, Pages: 100, PagesUsed: 40, PagesCached: 10,
				CachedTokens: 777, Steps: 1234, Preempted: 1, Hits: 5, Misses: 6, LastStep: began.Add(89500 * time.Millisecond)}
		},
		memory:  func() (host.Memory, error) { return host.Memory{Total: 100e9, Available: 64e9}, nil },
		process: func() (host.Process, error) { return host.Process{RSS: 5e9, Threads: 20, Files: 33}, nil },
		sources: Sources{
			Graphs:           func() int { return 7 },
			LogDropped:       func() uint64 { return 11 },
			TelemetryDropped: func() uint64 { return 12 },
			LeastMemory:      func() int64 { return 60e9 },
		},
	}
	for _, c := range change {
		c(g)
	}
	return newMeter(Build{Version: "v1.2.3", Commit: "abcdef0", Dirty: true, Kernel: "k-42"}, g)
}

func after(s float64) time.Time { return began.Add(time.Duration(s * float64(time.Second))) }

func text(t *testing.T, m *Meter) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Fatalf("%d, %s: %s", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	return w.Body.String()
}

func value(t *testing.T, m *Meter, name string) float64 {
	t.Helper()
	for line := range strings.Lines(text(t, m)) {
		if rest, ok := strings.CutPrefix(line, prefix+name+" "); ok {
			var v float64
			if _, err := fmt.Sscan(rest, &v); err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("no %s", name)
	return 0
}

// The whole text, name by name: what dashboards were made for.
func TestExposition(t *testing.T) {
	m := fixed()
	m.Finished(&sched.Request{}, sched.Result{Finish: sched.Stop, Prompt: 1000, Cached: 200, Generated: 101,
		Submitted: after(0), Admitted: after(0.1), First: after(0.3), End: after(2.3)})
	m.Finished(&sched.Request{}, sched.Result{Finish: sched.Length, Prompt: 10, Generated: 1, Submitted: after(0), Admitted: after(0), First: after(4), End: after(4)})
	m.Finished(&sched.Request{}, sched.Result{Finish: sched.Cancelled, Prompt: 10, Submitted: after(0), End: after(700)})
	m.Finished(&sched.Request{}, sched.Result{Finish: sched.Cancelled, Reason: sched.ReasonBacklog, Prompt: 10, Cached: 10, Generated: 50,
		Submitted: after(0), Admitted: after(0), First: after(1), End: after(50)})
	m.Finished(&sched.Request{}, sched.Result{Finish: sched.Failed, Err: errors.New("no"), Submitted: after(0), End: after(0)})
	m.Stepped(sched.Step{Rows: 130, Prefill: 128, Decode: 2, Took: 20 * time.Millisecond})
	m.Stepped(sched.Step{Rows: 3, Decode: 3, Took: 4 * time.Millisecond})
	m.Rejected()
	m.Speculated(5, 3, 4)
	m.Speculated(5, 5, 6)
	got := text(t, m)
	const golden = "testdata/metrics.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what comes out (-update writes it):\n%s", golden, got)
	}
}

// Names, types and buckets as the original documents them, from its
// documentation and not from the code.
func TestDocumentedNames(t *testing.T) {
	families := parsed(t, text(t, fixed()))
	for kind, names := range map[dto.MetricType]string{
		dto.MetricType_GAUGE: `build_info engine_alive uptime_seconds max_batch requests_running requests_waiting process_rss_bytes thread_count open_fds
			mem_available_bytes mem_min_available_bytes scheduler_busy scheduler_last_step_age_seconds graph_cache_entries`,
		dto.MetricType_COUNTER: `requests_total prompt_tokens_total prompt_tokens_cached_total generation_tokens_total scheduler_steps_total log_lines_dropped_total
			requests_rejected_total streams_cancelled_backlog_total spec_draft_tokens_total spec_accepted_tokens_total spec_rounds_total spec_emitted_tokens_total`,
		dto.MetricType_HISTOGRAM: `time_to_first_token_seconds request_duration_seconds prefill_tokens_per_second decode_tokens_per_second`,
	} {
		for _, name := range strings.Fields(names) {
			if f := families["velogb10_"+name]; f == nil || f.GetType() != kind || f.GetHelp() == "" {
				t.Errorf("%s: %v", name, f)
			}
		}
	}
	for name, buckets := range map[string]string{
		"time_to_first_token_seconds": ".05 .1 .25 .5 1 2.5 5 10 30 60 120 300 inf",
		"request_duration_seconds":    ".5 1 2.5 5 10 30 60 120 300 600 1800 inf",
		"prefill_tokens_per_second":   "100 250 500 1000 2000 3000 4000 6000 8000 12000 inf",
		"decode_tokens_per_second":    "5 10 20 30 50 75 100 150 200 300 500 inf",
	} {
		got := families["velogb10_"+name].Metric[0].Histogram.Bucket
		want := strings.Fields(buckets)
		if len(got) != len(want) {
			t.Errorf("%s: %v", name, got)
			continue
		}
		for i, w := range want {
			var bound float64
			if _, err := fmt.Sscan(w, &bound); err != nil || got[i].GetUpperBound() != bound {
				t.Errorf("%s: bucket %d is %v, want %s", name, i, got[i].GetUpperBound(), w)
			}
		}
	}
	finishes := map[string]bool{}
	for _, r := range families["velogb10_requests_total"].Metric {
		finishes[r.Label[0].GetName()+"="+r.Label[0].GetValue()] = true
	}
	for _, f := range []string{"stop", "length", "tool_calls", "error", "cancelled"} {
		if !finishes["finish="+f] {
			t.Errorf("no finish=%s: %v", f, finishes)
		}
	}
	for name := range families {
		if !strings.HasPrefix(name, "velogb10_") || !regexp.MustCompile(`^[a-z0-9_]+$`).MatchString(name) {
			t.Errorf("%s", name)
		}
	}
}

func parsed(t *testing.T, text string) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// Whatever ends however: the counters are the sums.
func TestCountersAddUp(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := fixed()
		results := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sched.Result {
			at := func(name string) time.Time { return after(rapid.Float64Range(0, 100).Draw(t, name)) }
			res := sched.Result{Finish: sched.Finish(rapid.IntRange(0, 3).Draw(t, "finish")), Prompt: rapid.IntRange(1, 5000).Draw(t, "prompt"),
				Generated: rapid.IntRange(0, 5000).Draw(t, "generated"), Submitted: began}
			res.Cached = rapid.IntRange(0, res.Prompt).Draw(t, "cached")
			if rapid.Bool().Draw(t, "began") {
				res.Admitted, res.First, res.End = at("admitted"), at("first"), at("end") // in any order: clocks are clocks
			}
			return res
		}), 0, 20).Draw(r, "results")
		var all sync.WaitGroup // from several loops at a time
		var prompt, cached, generated, begun, ended float64
		for _, res := range results {
			all.Go(func() { m.Finished(&sched.Request{}, res) })
			prompt += float64(res.Prompt)
			cached += float64(res.Cached)
			generated += float64(res.Generated)
			if !res.First.IsZero() {
				begun++
			}
			if !res.End.IsZero() {
				ended++
			}
		}
		all.Wait()
		total := 0.0
		for _, f := range parsed(t, text(t, m))["velogb10_requests_total"].Metric {
			total += f.Counter.GetValue()
		}
		for name, c := range map[string]struct{ got, want float64 }{
			"requests": {total, float64(len(results))}, "prompt": {value(t, m, "prompt_tokens_total"), prompt},
			"cached": {value(t, m, "prompt_tokens_cached_total"), cached}, "generated": {value(t, m, "generation_tokens_total"), generated},
			"first": {value(t, m, "time_to_first_token_seconds_count"), begun}, "duration": {value(t, m, "request_duration_seconds_count"), ended},
		} {
			if c.got != c.want {
				r.Errorf("%s: %v, want %v", name, c.got, c.want)
			}
		}
		if p, d := value(t, m, "prefill_tokens_per_second_count"), value(t, m, "decode_tokens_per_second_count"); p > begun || d > begun {
			r.Errorf("%v prefill and %v decode rates of %v answers", p, d, begun)
		}
	})
}

// Once a server follows requests, a request counts once, however many answers
// it has, and as what its client saw.
func TestRequests(t *testing.T) {
	m := fixed()
	count := func(f Finish) float64 { return value(t, m, `requests_total{finish="`+string(f)+`"}`) }
	q := m.Request()
	for range 3 {
		m.Finished(&sched.Request{}, sched.Result{Finish: sched.Stop, Prompt: 5, Generated: 2})
	}
	q.Finish(ToolCalls)
	q.Finish(Stop)
	q.Close()
	m.Request().Close()
	m.Request().Finish("what is this")
	if count(ToolCalls) != 1 || count(Stop) != 0 || count(Cancelled) != 1 || count(Error) != 1 {
		t.Error(text(t, m))
	}
	if value(t, m, "generation_tokens_total") != 6 {
		t.Error("tokens are not counted by answer")
	}
}

func TestNilMeter(t *testing.T) {
	var m *Meter
	m.Finished(&sched.Request{}, sched.Result{})
	m.Stepped(sched.Step{})
	m.Rejected()
	m.Speculated(1, 1, 1)
	q := m.Request()
	q.Finish(Stop)
	q.Close()
	if all, err := m.Gatherer().Gather(); len(all) != 0 || err != nil {
		t.Error(all, err)
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusNotFound {
		t.Error(w.Code)
	}
}

func TestWhatCannotBeReadIsLeftOut(t *testing.T) {
	m := fixed(func(g *gauges) {
		g.memory = func() (host.Memory, error) { return host.Memory{}, io.EOF }
		g.process = func() (host.Process, error) { return host.Process{RSS: 1, Threads: 1, Files: -1}, nil }
		g.sources = Sources{}
		g.status = func() sched.Status { return sched.Status{} }
	})
	all := text(t, m)
	for _, name := range []string{"mem_available_bytes", "mem_min_available_bytes", "open_fds"} {
		if strings.Contains(all, name) {
			t.Errorf("%s is there", name)
		}
	}
	if value(t, m, "scheduler_last_step_age_seconds") != 90 || value(t, m, "engine_alive") != 0 || value(t, m, "graph_cache_entries") != 0 {
		t.Error(all)
	}
}

func TestLeastMemory(t *testing.T) {
	available := int64(50)
	m := fixed(func(g *gauges) {
		g.memory = func() (host.Memory, error) { return host.Memory{Available: available}, nil }
		g.sources.LeastMemory = nil
	})
	for _, c := range []struct{ now, least int64 }{{50, 50}, {70, 50}, {30, 30}, {40, 30}} {
		available = c.now
		if got := value(t, m, "mem_min_available_bytes"); got != float64(c.least) {
			t.Errorf("least %v with %d now, want %d", got, c.now, c.least)
		}
	}
}

// The real one: nothing is exposed twice, everything is there.
func TestNew(t *testing.T) {
	m := New(Build{}, func() sched.Status { return sched.Status{} }, Sources{})
	if _, err := m.Gatherer().Gather(); err != nil {
		t.Error(err)
	}
	if rss := value(t, m, "process_rss_bytes"); rss < 1<<20 {
		t.Errorf("%v bytes", rss)
	}
}

func BenchmarkFinished(b *testing.B) {
	m := fixed()
	q := &sched.Request{}
	res := sched.Result{Prompt: 100, Generated: 100, Submitted: began, Admitted: after(1), First: after(2), End: after(3)}
	b.ReportAllocs()
	for b.Loop() {
		m.Finished(q, res)
	}
}

func BenchmarkStepped(b *testing.B) {
	m := fixed()
	b.ReportAllocs()
	for b.Loop() {
		m.Stepped(sched.Step{Rows: 8, Decode: 8, Took: time.Millisecond})
	}
}

func BenchmarkScrape(b *testing.B) {
	m := New(Build{}, func() sched.Status { return sched.Status{} }, Sources{})
	for b.Loop() {
		if _, err := m.Gatherer().Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
