package bench_test

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"velo/bench"
	"velo/bench/measure"
	"velo/bench/report"
	"velo/bench/runner"
	"velo/bench/sim"
)

// Pitfalls 19 to 24: what is made of the measurements, and said about them.

// row is the line of a table of the report that begins with a word.
func row(t testing.TB, r *report.Report, section, table, first string) map[string]report.Cell {
	t.Helper()
	s := r.Section(section)
	if s == nil {
		t.Fatalf("the report has no section %q", section)
	}
	for _, tab := range s.Tables {
		for _, cells := range tab.Rows {
			if tab.ID == table && cells[0].Text == first {
				byColumn := map[string]report.Cell{}
				for i, c := range tab.Columns {
					byColumn[c.Title] = cells[i]
				}
				return byColumn
			}
		}
	}
	t.Fatalf("table %q of section %q has no line %q", table, section, first)
	return nil
}

// figure is one of the exact figures of a report.
func figure(t testing.TB, r *report.Report, id string) report.Figure {
	t.Helper()
	for _, f := range r.Figures {
		if f.Metric.ID == id {
			return f
		}
	}
	t.Fatalf("the report has no figure %q", id)
	return report.Figure{}
}

// A percentile needs a sample that supports it. Without that the p99 of 12 requests is the highest of them and
// passes for a p99, an objective on it is met, and the gaps of 12 requests give an interval as if 180
// independent values had been drawn.
func TestPitfall19(t *testing.T) {
	t.Parallel()
	t.Run("few", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, sim.Scenario{TTFT: 20 * simMS, ITL: 20 * simMS, Tokens: 16, Drift: 0.08})
		o := runner.Options{Workers: 6, Repeat: 2}
		for _, slo := range []string{"ttft_p99=10s", "ttft_p50=10s"} {
			v, err := measure.ParseSLO(slo)
			if err != nil {
				t.Fatal(err)
			}
			o.Header.Plan.SLO = append(o.Header.Plan.SLO, v)
		}
		session, _ := s.run(t.Context(), o, prompt())
		r := report.New(session, report.Options{})
		if q := r.Run.TTFT.Q(0.99); q.Supported || q.Value != r.Run.TTFT.Max || r.Run.TTFT.N != 12 {
			t.Errorf("p99 of %d: %+v, the highest is %v", r.Run.TTFT.N, q, r.Run.TTFT.Max)
		}
		if c := row(t, r, "latency", "latencies", "TTFT")["p99"]; c.Text != "max of 12" || !c.Grey || c.Raw.Ok() {
			t.Errorf("the report shows %+v as p99 of 12 requests", c)
		}
		if f := figure(t, r, "ttft"); f.P99.Ok() || !f.P50.Ok() || !f.P90.Ok() {
			t.Errorf("the exact figures have a p99 of 12 requests, or no p50 or p90: %+v", f)
		}
		if o := r.Run.Objectives; len(o) != 2 || o[0].Result != measure.TooFew || o[1].Result != measure.Met {
			t.Errorf("objectives on p99 and p50: %+v", o)
		}
		level(t, r.Run, "support", measure.Amber, measure.Red)

		median := r.Run.ICL.Q(0.5)
		n := r.Run.ICL.N
		half := 0.98 * math.Sqrt(float64(n)) // ranks, as if gaps were independent
		v := r.Run.ICL.Values
		naive := v[int(float64(n)/2+half)] - v[int(float64(n)/2-half)]
		if width := float64(median.Interval.Hi - median.Interval.Lo); median.Interval.Method != "Woodruff, clustered by request" || width < 1.15*naive {
			t.Errorf("the interval of the median gap by %q is %.3g s wide; independent gaps would give %.3g s, and they are alike within a request",
				median.Interval.Method, width, naive)
		}
	})
	t.Run("enough", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, sim.Scenario{TTFT: 5 * simMS, ITL: simMS, Tokens: 4})
		session, _ := s.run(t.Context(), runner.Options{Workers: 20, Repeat: 5}, prompt())
		r := report.New(session, report.Options{})
		var v []float64
		for _, q := range r.Run.Requests {
			v = append(v, float64(q.TTFT))
		}
		slices.Sort(v)
		if len(v) != 100 {
			t.Fatalf("%d requests", len(v))
		}
		q := r.Run.TTFT.Q(0.99)
		if want := v[98] + 0.01*(v[99]-v[98]); !q.Supported || math.Abs(float64(q.Value)-want) > 1e-9 {
			t.Errorf("p99 of 100: %+v, between the two highest it is %v", q, want)
		}
		if c := row(t, r, "latency", "latencies", "TTFT")["p99"]; c.Grey || !c.Raw.Ok() {
			t.Errorf("the report shows %+v as p99 of 100 requests", c)
		}
		if d := r.Run.TTFT; d.BetweenRuns.Method != "Student t, df 4" || len(d.RepetitionMean) != 5 || d.Q(0.5).Interval.Method != "Student t, df 4" {
			t.Errorf("the interval between 5 repetitions is by %q, that of the median by %q", d.BetweenRuns.Method, d.Q(0.5).Interval.Method)
		}
	})
}

// Tools mean different things by one name. Taken for one another, the same reply has 37 ms a token as GuideLLM
// writes it and 10 ms as all others do.
func TestPitfall20(t *testing.T) {
	t.Parallel()
	var s *stage
	var a *answer
	undisturbed(t, func() bool {
		s = newStage(t, sim.Scenario{TTFT: 700 * simMS, ITL: 10 * simMS, Tokens: 24, UnseenEnd: 1})
		a = s.ask(nil)
		return s.inTime(&a.Request, a.writes)
	})
	run := measure.Compute(&s.session, measure.Options{})
	if a.N != 24 || a.Unseen != 1 {
		t.Fatalf("%d tokens, %v unseen; 24 were sent and 25 counted", a.N, a.Unseen)
	}
	came(t, "E2E", a.E2E, s.from(a.Start, a.tokens[23]), slack(&a.Request))
	decode := a.E2E - a.TTFT
	lasted(t, "first to last chunk", decode, gap(a.tokens[0], a.tokens[23]), slack(&a.Request))
	for _, c := range []struct {
		what           string
		value, time, n measure.Num // s a token, s and tokens
	}{
		{"TPOT", a.TPOT, decode, 23},
		{"TPOT of vLLM", foreign(t, "vllm", "mean_tpot_ms", run) / 1e3, decode, 24},
		{"inter-token latency of AIPerf", foreign(t, "aiperf", "inter_token_latency avg", run) / 1e3, decode, 24},
		{"time per output token of GuideLLM", foreign(t, "guidellm", "time_per_output_token_ms mean", run) / 1e3, a.E2E, 25},
	} {
		if !(math.Abs(float64(c.value*c.n-c.time)) < 1e-9) {
			t.Errorf("%s is %v s; by its definition it is %v s over %v tokens", c.what, c.value, c.time, c.n)
		}
	}
	if gl := foreign(t, "guidellm", "time_per_output_token_ms mean", run) / 1e3; gl < 1.3*a.TPOT {
		t.Errorf("GuideLLM's %.3g s a token and %.3g s do not differ by the first token's wait", gl, a.TPOT)
	}
	if measure.As("some other tool", run) != nil {
		t.Error("a tool that nobody knows has definitions")
	}
	if run.PrefillSource != measure.Estimate { // TTFT is not the time that a GPU took to read the prompt
		t.Errorf("the prefill rate comes from %q", run.PrefillSource)
	}
	r := report.New(&s.session, report.Options{})
	tools := r.Section("tools")
	if tools == nil || !strings.Contains(tools.Text, "not to be compared") {
		t.Fatal("the report does not say that unlike definitions are not to be compared")
	}
	seen := map[string]bool{}
	for _, cells := range tools.Tables[0].Rows {
		seen[cells[0].Text] = true
		if len(cells) != 4 || cells[1].Text == "" || cells[3].Text == "" {
			t.Errorf("a number without its definition: %+v", cells)
		}
	}
	if len(seen) != 3 {
		t.Errorf("the report shows the definitions of %v", seen)
	}
	for _, f := range r.Figures {
		if m, ok := measure.MetricByID(f.Metric.ID); ok && m.Definition == "" {
			t.Errorf("%s has no definition", f.Metric.ID)
		}
	}
}

// What is in flight is swept over exact intervals. Counted in buckets of a second, one stream of short requests
// reads as eight at a time.
func TestPitfall21(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 8} {
		s := newStage(t, sim.Scenario{TTFT: 40 * simMS, ITL: 2 * simMS, Tokens: 8})
		session, out := s.run(t.Context(), runner.Options{Workers: workers, Repeat: 8}, prompt())
		if out.OK != 8*workers {
			t.Fatalf("%+v", out)
		}
		run := measure.Compute(session, measure.Options{})
		var edges []edge
		for _, writes := range s.streams() {
			edges = append(edges, edge{writes[0].Request, 1}, edge{writes[len(writes)-1].After, -1})
		}
		if n := run.Whole.InFlightMax; n > workers || n < most(edges) {
			t.Errorf("%d workers: %d in flight; the endpoint had %d at once", workers, n, most(edges))
		}
		if buckets := foreign(t, "vllm", "max_concurrent_requests", run); buckets <= measure.Num(workers) {
			t.Errorf("%d workers: %v in buckets of a second: the scenario does not tell the ways apart", workers, buckets)
		}
		if run.Whole.InFlight > measure.Num(workers) {
			t.Errorf("%d workers: %v in flight on average", workers, run.Whole.InFlight)
		}
		holds(t, run.Broken)
		if workers > 1 {
			continue
		}
		session.Exchanges[1].Request.Start = session.Exchanges[0].Request.Start // two at once by one worker ...
		session.Exchanges[1].Request.Step = session.Exchanges[0].Request.Step   // ... of one step
		level(t, measure.Compute(session, measure.Options{}), "invariants", measure.Red)
	}
}

// A tool call is what the stream says is one, and it is output. Without it such a reply is empty and has neither
// TTFT nor tokens; with a broken stream taken for a finished one the model is blamed for the transport.
func TestPitfall22(t *testing.T) {
	t.Parallel()
	s := newStage(t, *builtin(t, "tool-calls"))
	a := s.ask(nil)
	came(t, "TTFT", a.TTFT, s.from(a.Start, a.tokens[0]), slack(&a.Request))
	if a.N != 32 || a.Answer != 32 || a.TTFO != a.TTFT || a.Status != bench.OK {
		t.Errorf("%s, %d tokens, %d of them answer, TTFO %v and TTFT %v; 32 were sent, all of calls", a.Status, a.N, a.Answer, a.TTFO, a.TTFT)
	}
	for i, c := range a.exchange.Chunks {
		if c.Channel != bench.Tool {
			t.Errorf("chunk %d is %s", i, c.Channel)
		}
	}
	var calls []struct{ Name, Arguments string }
	if err := json.Unmarshal([]byte(a.result.ToolCalls), &calls); err != nil || len(calls) != 2 {
		t.Fatalf("two calls were sent, %q came: %v", a.result.ToolCalls, err)
	}
	for _, c := range calls {
		if c.Name == "" || !json.Valid([]byte(c.Arguments)) {
			t.Errorf("call %+v has no name, or arguments that are no JSON", c)
		}
	}
	if a.result.Answer != "" {
		t.Errorf("the calls are in the answer: %q", a.result.Answer)
	}

	said := newStage(t, sim.Scenario{TTFT: 10 * simMS, Tokens: 1000, Regime: "structured"}) // JSON in a text is no call
	if b := said.ask(nil); b.result.ToolCalls != "" || !strings.Contains(b.result.Answer, "{") || b.exchange.Chunks[0].Channel != bench.Content {
		t.Errorf("an answer that shows JSON gives the calls %q: %q", b.result.ToolCalls, b.result.Answer)
	}

	for kind, want := range map[string]bench.Status{"eof": bench.Truncated, "truncate": bench.Truncated, "error": bench.Failed, "malformed": bench.OK} {
		cut := builtin(t, "tool-calls")
		cut.Usage = "continuous"
		cut.Fault = sim.Fault{Kind: kind, After: 20}
		c := s.ask(cut)
		tokens := 20
		if kind == "malformed" {
			tokens = 32
		}
		if c.Status != want || c.N != tokens || (c.exchange.End.Malformed == 1) != (kind == "malformed") {
			t.Errorf("%s after 20 tokens of calls: %s, %d tokens, %d malformed", kind, c.Status, c.N, c.exchange.End.Malformed)
		}
	}
}

// A rate needs a time, and an interval needs two ends. With the guards gone a single token has a rate of
// infinity or of 0, replies that came at once millions of tokens a second, and ITL includes TTFT.
func TestPitfall23(t *testing.T) {
	t.Parallel()
	s := newStage(t, sim.Scenario{TTFT: 400 * simMS, ITL: 10 * simMS, Tokens: 1, EmptyDeltas: 5})
	one := s.ask(nil)
	came(t, "TTFT", one.TTFT, s.from(one.Start, one.tokens[0]), slack(&one.Request))
	for name, v := range map[string]measure.Num{
		"rate": one.Rate, "ITL": one.ITL, "TPOT": one.TPOT, "peak": one.Peak, "TTST": one.TTST, "max gap": one.MaxGap, "rolling rate": one.Rolling.Median,
	} {
		if v.Ok() {
			t.Errorf("one token has a %s of %v", name, v)
		}
	}
	r := report.New(&s.session, report.Options{})
	if c := row(t, r, "latency", "latencies", "TPOT")["p50"]; c.Text != report.Dash {
		t.Errorf("the report shows %q as the TPOT of one token", c.Text)
	}
	if hero := r.Glance[0]; hero.Value != report.Dash || hero.Raw.Ok() {
		t.Errorf("the report shows %q as the decode rate of one token", hero.Value)
	}
	var b bytes.Buffer
	if err := report.Write(&b, r, "json"); err != nil || !json.Valid(b.Bytes()) || bytes.Contains(b.Bytes(), []byte("NaN")) {
		t.Errorf("the report is no JSON: %v", err)
	}

	var ten *answer
	undisturbed(t, func() bool {
		ten = s.ask(&sim.Scenario{TTFT: 400 * simMS, ITL: 10 * simMS, Tokens: 10})
		return s.inTime(&ten.Request, ten.writes)
	})
	lasted(t, "mean ITL, nine times,", 9*ten.ITL, gap(ten.tokens[0], ten.tokens[9]), 100*ms)
	if len(ten.ICL) != 9 {
		t.Errorf("%d gaps between 10 tokens", len(ten.ICL))
	}

	x := *ten.exchange // as if all of it had come with one read
	x.Chunks = append(bench.Chunks(nil), x.Chunks...)
	for i := range x.Chunks {
		x.Chunks[i].Read, x.Chunks[i].User, x.Chunks[i].Kernel = x.Chunks[9].Read, x.Chunks[9].User, x.Chunks[9].Kernel
	}
	if at := measure.Of(&x, measure.Options{}); at.Rate.Ok() || at.Peak.Ok() || at.TPOT.Ok() || at.ITL.Ok() || at.N != 10 || !at.Buffered {
		t.Errorf("10 tokens at one instant have rate %v, peak %v, TPOT %v, ITL %v; buffered: %v", at.Rate, at.Peak, at.TPOT, at.ITL, at.Buffered)
	}
}

// The machine changes while it is measured. A mean over all of the run hides that its end is at half of the
// speed of its beginning; and a report that does not name the governor cannot explain another TTFT.
func TestPitfall24(t *testing.T) {
	t.Parallel()
	steady := sim.Scenario{TTFT: 10 * simMS, ITL: 5 * simMS, Tokens: 300}
	decay := steady
	decay.Decay = 0.4
	drift := sim.Scenario{TTFT: 10 * simMS, ITL: 10 * simMS, Tokens: 32, Drift: 0.12}
	for name, c := range map[string]struct {
		scenario sim.Scenario
		repeat   int
		lo, hi   measure.Num // stability
	}{
		"constant":              {steady, 1, 0.8, 1.2},
		"falls within a reply":  {decay, 1, 0.35, 0.7}, // a linear fall from 100 to 40 is about 0.5
		"falls between replies": {drift, 8, 0.3, 0.75},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r *report.Report
			undisturbed(t, func() bool {
				s := newStage(t, c.scenario)
				o := runner.Options{Repeat: c.repeat}
				o.Header.Environment.Governor = "powersave"
				session, _ := s.run(t.Context(), o, prompt())
				r = report.New(session, report.Options{})
				streams := s.streams()
				for i, x := range session.Exchanges {
					if !s.inTime(&r.Run.Requests[i], streams[x.Request.Session]) {
						return false
					}
				}
				return true
			})
			if v := r.Run.Stability; !(v >= c.lo && v <= c.hi) {
				t.Errorf("stability %.3g, want %.3g to %.3g", v, c.lo, c.hi)
			}
			said := slices.ContainsFunc(r.Findings, func(f report.Finding) bool { return f.ID == "decay" })
			if said != (r.Run.Stability < 0.85) {
				t.Errorf("the report says that the rate fell: %v", said)
			}
			named := slices.ContainsFunc(r.Facts, func(f report.Fact) bool { return strings.Contains(f.Value, "governor powersave") })
			if !named {
				t.Errorf("the report does not name the governor: %+v", r.Facts)
			}
		})
	}
}
