package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"velo/bench"
	"velo/bench/measure"
	"velo/bench/sim"
	"velo/bench/suite"
)

// checkOrder holds the order of events to what the sink may rely on.
func checkOrder(t interface {
	Helper()
	Errorf(string, ...any)
	Fatalf(string, ...any)
}, l *log) {
	t.Helper()
	stage := map[int]int{} // request → 1 begun, 2 connection, 3 chunks, 4 ended
	step := map[int]*bench.Step{}
	open := map[int]*bench.Request{}
	for i, e := range l.events {
		if _, ok := e.(*bench.Header); ok != (i == 0) {
			t.Fatalf("event %d is %T", i, e)
		}
		if _, ok := e.(*bench.Finish); ok != (i == len(l.events)-1) {
			t.Fatalf("event %d of %d is %T", i, len(l.events), e)
		}
		advance := func(request, to int) {
			if from := stage[request]; from == 0 || from > to || from == to && to != 3 {
				t.Errorf("request %d: %T after stage %d", request, e, from)
			}
			stage[request] = to
		}
		switch e := e.(type) {
		case *bench.Step:
			if e.Number != len(step) {
				t.Errorf("step %d comes as number %d", e.Number, len(step))
			}
			if len(open) > 0 {
				t.Errorf("step %d is released while %d requests of the one before run", e.Number, len(open))
			}
			step[e.Number] = e
		case *bench.Request:
			s := step[e.Step]
			if s == nil || e.Step != len(step)-1 {
				t.Fatalf("request %d of step %d comes when %d steps have been released", e.Number, e.Step, len(step))
			}
			if e.Start < s.Released || e.Planned != e.Start || e.Warmup != s.Warmup {
				t.Errorf("request %d: start %v, planned %v, warm-up %v; step released %v, warm-up %v", e.Number, e.Start, e.Planned, e.Warmup, s.Released, s.Warmup)
			}
			if stage[e.Number] != 0 {
				t.Errorf("request %d comes twice", e.Number)
			}
			stage[e.Number], open[e.Number] = 1, e
		case *bench.Conn:
			advance(e.Request, 2)
		case bench.Chunks:
			for _, c := range e {
				if c.Request != e[0].Request {
					t.Errorf("chunks of requests %d and %d together", c.Request, e[0].Request)
				}
			}
			advance(e[0].Request, 3)
		case *bench.Counts:
			if stage[e.Request] != 3 {
				t.Errorf("request %d: counts after stage %d", e.Request, stage[e.Request])
			}
		case *bench.End:
			advance(e.Request, 4)
			delete(open, e.Request)
		}
	}
	for n := range len(stage) {
		if stage[n] != 4 {
			t.Errorf("request %d of %d ended in stage %d", n, len(stage), stage[n])
		}
	}
}

func TestRunEventsAndBarrier(t *testing.T) {
	e := newEndpoint(t)
	e.answer = func(w http.ResponseWriter, r *http.Request, n int, q asked) bool {
		time.Sleep(time.Duration(n%3) * 5 * time.Millisecond) // so that workers end apart
		if n%8 == 0 {
			runtime.GC() // for the samples to see
		}
		return false
	}
	o, l := options(t, e.URL, prompt("one"), prompt("two"), section("second", true), prompt("three"))
	o.Workers, o.Repeat, o.Warmup, o.Header.ID = 4, 2, -1, "0123"
	out := mustRun(t, o)
	if want := (Outcome{State: bench.Done, Requests: 24, OK: 24}); out != want {
		t.Fatalf("outcome %+v, want %+v", out, want)
	}
	checkOrder(t, l)
	s := l.session()
	var shape []string
	for _, st := range s.Steps {
		w := ""
		if st.Warmup {
			w = " warm-up"
		}
		shape = append(shape, fmt.Sprintf("%d/%d %s %s%s", st.Repetition, st.Index, st.Section, st.Title, w))
		if st.Workers != 4 || !st.Barrier || st.Kind != suite.Prompt {
			t.Errorf("step %+v", st)
		}
	}
	want := []string{
		"0/1 S one warm-up", "0/1 S one", "0/2 S two warm-up", "0/2 S two", "0/4 second three warm-up", "0/4 second three",
		"1/1 S one warm-up", "1/1 S one", "1/2 S two warm-up", "1/2 S two", "1/4 second three warm-up", "1/4 second three",
	}
	if !reflect.DeepEqual(shape, want) {
		t.Errorf("steps\n%s", strings.Join(shape, "\n"))
	}
	// The barrier as the server saw it: in the order of their steps, no request arrives before all of the
	// step before have ended.
	all := e.ordered()
	for i := range all {
		for j := range all {
			if s.Exchanges[j].Request.Step < s.Exchanges[i].Request.Step && all[j].Ended.After(all[i].Began) {
				t.Errorf("request %d of step %d arrived before request %d of step %d had ended", i, s.Exchanges[i].Request.Step, j, s.Exchanges[j].Request.Step)
			}
		}
	}
	if e.most() > 4 {
		t.Errorf("%d requests at once by 4 workers", e.most())
	}
	seen := map[string]bool{}
	for i, x := range s.Exchanges {
		q := x.Request
		if q.Number != i || all[i].Session != q.Session || seen[q.Session] {
			t.Errorf("request %d has session %q, the server saw %q", i, q.Session, all[i].Session)
		}
		seen[q.Session] = true
		if q.Worker != i%4 || q.PromptBytes == 0 || len(q.Parameters) == 0 || strings.Contains(string(q.Parameters), "messages") {
			t.Errorf("request %+v", q)
		}
		if x.End.Status != bench.OK {
			t.Errorf("request %d ended %+v", i, x.End)
		}
	}
	h := s.Header
	if h.ID != "0123" || h.Schema != bench.SchemaVersion || h.Title != "T" || !h.Anchor.Equal(o.Clock.Anchor()) || h.Endpoint.Model != "m" || h.Endpoint.URL != e.URL+"/v1" || h.Drawing != bench.DrawingNone {
		t.Errorf("header %+v", h)
	}
	if p := h.Plan; p.Workers != 4 || p.Repeat != 2 || p.Seed != 7 || p.Warmup != 4 || p.Prefix != bench.PrefixSalted || p.Failure != bench.FailureContinue || p.Protocol != "http/1.1" {
		t.Errorf("plan %+v", p)
	}
	if again, err := suite.Parse("header", h.Suite); err != nil || again.Title != "T" {
		t.Errorf("the suite in the header: %v", err)
	}
	if len(s.Samples) < 2 || s.Samples[0].At > s.Steps[0].Released || s.Samples[len(s.Samples)-1].At < s.Exchanges[23].End.End {
		t.Errorf("%d samples do not enclose the run", len(s.Samples))
	}
	for i, sample := range s.Samples {
		if sample.Heap <= 0 || i > 0 && (sample.CPU < s.Samples[i-1].CPU || sample.GCPauses < s.Samples[i-1].GCPauses) {
			t.Errorf("sample %+v", sample)
		}
		if sample.Offset.Abs() > time.Minute {
			t.Errorf("the clocks are %v apart since the anchor", sample.Offset)
		}
	}
	last := s.Samples[len(s.Samples)-1]
	if last.CPU <= s.Samples[0].CPU || last.GCPauses <= s.Samples[0].GCPauses || last.GCPauseMax <= 0 || last.GCPauseP99 <= 0 {
		t.Errorf("nothing was seen of the collections: %+v after %+v", last, s.Samples[0])
	}
}

func TestHistoryAsTheServerGotIt(t *testing.T) {
	e := newEndpoint(t)
	o, l := options(t, e.URL,
		section("A", true), prompt("one"),
		suite.Step{Type: suite.Context, K: 1}, suite.Step{Type: suite.Bench, PP: 200, TG: 4},
		section("A goes on", false), suite.Step{Type: suite.Image, Image: "velo-240.png", Prompt: "what?"}, prompt("two"),
		section("B", true), prompt("three"))
	o.Workers = 2
	out := mustRun(t, o)
	if out.OK != 12 {
		t.Fatalf("%+v\n%s", out, l.notes())
	}
	all, s := e.ordered(), l.session()
	answer := func(i int) string { // what request i was answered
		var b strings.Builder
		for _, c := range s.Exchanges[i].Chunks {
			b.WriteString(c.Text)
		}
		return b.String()
	}
	for w := range 2 {
		one, context, bench, image, two, three := all[w], all[2+w], all[4+w], all[6+w], all[8+w], all[10+w]
		if got := one.last(); len(one.Messages) != 1 || !strings.HasSuffix(got, "]\n\none") || len(got) != saltLength+3 {
			t.Errorf("first message %q", got)
		}
		for _, turn := range []struct {
			q      *asked
			before *asked
			number int
			turn   int
		}{{&context, &one, 0, 1}, {&image, &context, 2, 2}, {&two, &image, 6, 3}} {
			n := len(turn.before.Messages)
			if len(turn.q.Messages) != n+2 {
				t.Fatalf("%d messages after %d", len(turn.q.Messages), n)
			}
			for i := range n {
				if string(turn.q.Messages[i].Content) != string(turn.before.Messages[i].Content) {
					t.Errorf("message %d is replayed as %.60s, was %.60s", i, turn.q.Messages[i].Content, turn.before.Messages[i].Content)
				}
			}
			if got, want := turn.q.text(n), answer(turn.number+w); got != want || turn.q.Messages[n].Role != "assistant" || want == "" {
				t.Errorf("the answer %q is replayed as %q by %s", want, got, turn.q.Messages[n].Role)
			}
		}
		if got := two.last(); got != "two" {
			t.Errorf("a later message is %q", got)
		}
		if !strings.Contains(string(image.Messages[4].Content), "data:image/png;base64,") || !strings.Contains(string(two.Messages[4].Content), "data:image/png;base64,") {
			t.Error("the picture is not sent, or not replayed")
		}
		if len(bench.Messages) != 1 || strings.Contains(two.Body, bench.last()[30:60]) {
			t.Error("a bench step belongs to a conversation")
		}
		if len(three.Messages) != 1 || three.text(0)[:saltLength] == one.text(0)[:saltLength] {
			t.Errorf("after a reset: %d messages, salt %q", len(three.Messages), three.text(0)[:saltLength])
		}
	}
	for i, want := range []int{0, 0, 1, 1, 0, 0, 2, 2, 3, 3, 0, 0} {
		if got := s.Exchanges[i].Request.Turn; got != want {
			t.Errorf("request %d is turn %d, want %d", i, got, want)
		}
	}
	if got := s.Exchanges[6].Request.Images; !reflect.DeepEqual(got, []string{"velo-240.png"}) {
		t.Errorf("pictures %v", got)
	}
	if got := s.Exchanges[8].Request.Prompt; got != "two" {
		t.Errorf("recorded prompt %q", got)
	}
	if got := s.Exchanges[0].Request.Prompt; got != "one" {
		t.Errorf("recorded prompt %q", got)
	}
}

func TestSaltsAndSharedPrefixes(t *testing.T) {
	steps := []suite.Step{prompt("hello"), prompt("more"), {Type: suite.Bench, Depth: 300, PP: 200, TG: 4}, section("x", true), prompt("hello")}
	run := func(prefix string, seed int64) []asked {
		e := newEndpoint(t)
		o, l := options(t, e.URL, steps...)
		o.Workers, o.Repeat, o.Warmup, o.Prefix, o.Seed = 3, 2, 5, prefix, seed
		if out := mustRun(t, o); out.OK != 24 {
			t.Fatalf("%+v\n%s", out, l.notes())
		}
		return e.ordered()
	}
	salted := run(bench.PrefixSalted, 1)
	seen := map[string]int{}
	for i, q := range salted {
		// The measured second turn goes on with the salt of the first: that is its own history.
		if len(q.Messages) > 1 && !isWarmup(i, 5, 3) {
			continue
		}
		start := q.text(0)[:saltLength]
		if !strings.HasPrefix(start, "[") || !strings.HasSuffix(start, "]\n\n") {
			t.Errorf("request %d begins with %q", i, start)
		}
		if j, ok := seen[start]; ok {
			t.Errorf("requests %d and %d begin alike", j, i)
		}
		seen[start] = i
	}
	shared := run(bench.PrefixShared, 1)
	for i, q := range shared {
		first := shared[i/8*8] // of the step's warm-up
		switch same := commonPrefix(q.text(0), first.text(0)); {
		case i/8%4 != 2 && same != len(first.text(0)):
			t.Errorf("request %d shares %d bytes with its step's first", i, same)
		case i/8%4 == 2 && i%8 != 0 && same < 1000:
			t.Errorf("bench request %d shares %d bytes, fewer than its depth", i, same)
		case i/8%4 == 2 && i%8 != 0 && same == len(first.text(0)):
			t.Errorf("bench request %d has no prompt of its own behind the depth", i)
		}
	}
}

// A step of several requests a worker: each worker sends its next as soon as the one before has ended,
// the step drains once, at its end, and no two prompts are alike.
func TestRequestsAWorker(t *testing.T) {
	for _, prefix := range []string{bench.PrefixSalted, bench.PrefixShared} {
		e := newEndpoint(t)
		o, l := options(t, e.URL, suite.Step{Type: suite.Bench, Depth: 200, PP: 100, TG: 4, Requests: 15}, prompt("hello"))
		o.Workers, o.Warmup, o.Prefix = 3, 3, prefix
		var last Progress
		o.OnProgress = func(p Progress) { last = p }
		if out := mustRun(t, o); out.Requests != 48 || out.OK != 48 {
			t.Fatalf("%+v\n%s", out, l.notes())
		}
		checkOrder(t, l)
		if last.Total != 48 || last.Done != 48 {
			t.Errorf("progress at the end: %d of %d", last.Done, last.Total)
		}
		if e.most() > 3 {
			t.Errorf("%d requests at once by 3 workers", e.most())
		}
		s, prompts := l.session(), map[string]bool{}
		counts, ended := map[int]int{}, map[int]time.Duration{}
		for i, x := range s.Exchanges {
			q := x.Request
			if st := s.Step(q.Step); st.Warmup || st.Kind != suite.Bench {
				continue
			}
			counts[q.Worker]++
			if text := e.ordered()[i].text(0); prompts[text] {
				t.Errorf("request %d repeats a prompt", q.Number)
			} else {
				prompts[text] = true
			}
			if before, ok := ended[q.Worker]; ok && (q.Start < before || q.Turn != 0) {
				t.Errorf("request %d of worker %d, turn %d, starts at %v, before the one ahead of it ended at %v", q.Number, q.Worker, q.Turn, q.Start, before)
			}
			ended[q.Worker] = x.End.End
		}
		if len(counts) != 3 || counts[0] != 15 || counts[1] != 15 || counts[2] != 15 {
			t.Errorf("requests by worker: %v", counts)
		}
		if r := measure.Compute(s, measure.Options{}); r.Steps[0].Requests != 45 || len(r.Broken) > 0 {
			t.Errorf("the step has %d requests, broken %q", r.Steps[0].Requests, r.Broken)
		}
	}
}

// isWarmup tells whether request i is a warm-up, in a run whose steps have so many warm-up and measured
// requests in turn.
func isWarmup(i, warmup, workers int) bool { return i%(warmup+workers) < warmup }

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func TestWarmup(t *testing.T) {
	long, short := 3000, 40
	for _, test := range []struct{ asked, workers, warmup, want, streams int }{
		{-1, 3, 0, 3, 3}, {-1, 1, 0, 1, 1}, {2, 3, 0, 2, 2}, {7, 3, 0, 7, 3}, {0, 3, 0, 0, 0},
	} {
		e := newEndpoint(t)
		o, l := options(t, e.URL, suite.Step{Type: suite.Prompt, Text: "a", TG: long}, suite.Step{Type: suite.Bench, PP: 300, TG: short}, prompt("b"))
		o.Workers, o.Warmup = test.workers, test.asked
		if out := mustRun(t, o); out.Requests != 3*test.workers {
			t.Fatalf("%+v", out)
		}
		checkOrder(t, l)
		s := l.session()
		if s.Header.Plan.Warmup != test.want {
			t.Errorf("plan of %d warm-up requests, want %d", s.Header.Plan.Warmup, test.want)
		}
		counts := make([]int, len(s.Steps))
		all := e.ordered()
		prompts := map[string]bool{}
		for i, x := range s.Exchanges {
			counts[x.Request.Step]++
			if prompts[all[i].text(0)+all[i].last()] {
				t.Errorf("request %d repeats a prompt", i)
			}
			if len(all[i].Messages) == 1 {
				prompts[all[i].text(0)+all[i].last()] = true
			}
			if st := s.Step(x.Request.Step); st.Warmup {
				if got := all[i].number("max_tokens"); got != min(WarmupOutput, []int{long, short, WarmupOutput}[(st.Index-1)%3]) {
					t.Errorf("warm-up of step %d asks for %d tokens", st.Index, got)
				}
				if x.Request.AskedOutput != all[i].number("max_tokens") {
					t.Errorf("asked output %d, sent %d", x.Request.AskedOutput, all[i].number("max_tokens"))
				}
			}
		}
		for i, st := range s.Steps {
			want, streams := test.workers, test.workers
			if st.Warmup {
				want, streams = test.want, test.streams
			}
			if counts[i] != want || st.Workers != streams {
				t.Errorf("step %d (warm-up %v) had %d requests on %d streams, want %d on %d", i, st.Warmup, counts[i], st.Workers, want, streams)
			}
		}
		if test.want == 0 && len(s.Steps) != 3 {
			t.Errorf("%d steps without warm-up", len(s.Steps))
		}
		if e.most() > test.workers {
			t.Errorf("%d requests at once by %d workers", e.most(), test.workers)
		}
	}
}

func TestSameSeedSameBodies(t *testing.T) {
	bodies := func(seed int64, workers int) []string {
		e := newEndpoint(t)
		e.answer = func(w http.ResponseWriter, r *http.Request, n int, q asked) bool {
			e.stream(w, q, "the same words")
			return true
		}
		o, l := options(t, e.URL, prompt("a"), suite.Step{Type: suite.Context, K: 2}, suite.Step{Type: suite.Bench, Depth: 700, PP: 300, TG: 8, ExactTG: true})
		o.Workers, o.Repeat, o.Warmup, o.Seed = workers, 2, -1, seed
		if out := mustRun(t, o); out.OK != 6*workers {
			t.Fatalf("%+v %s", out, l.notes())
		}
		var all []string
		for _, q := range e.ordered() {
			all = append(all, q.Body)
		}
		return all
	}
	first, second, other := bodies(1, 3), bodies(1, 3), bodies(2, 3)
	if !reflect.DeepEqual(first, second) {
		t.Error("the same seed gave other bodies")
	}
	for i := range first {
		if first[i] == other[i] {
			t.Errorf("request %d does not depend on the seed", i)
		}
	}
}

func TestComplete(t *testing.T) {
	e := newEndpoint(t)
	five := 5
	for _, test := range []struct {
		name   string
		change func(*Options)
		want   bench.Plan
		err    string
	}{
		{"defaults", func(o *Options) { o.Warmup = -1 }, bench.Plan{Workers: 1, Repeat: 1, Warmup: 1, Prefix: "salted", Failure: "stop"}, ""},
		{"several", func(o *Options) { o.Workers, o.Warmup = 8, -1 }, bench.Plan{Workers: 8, Repeat: 1, Warmup: 8, Prefix: "salted", Failure: "continue"}, ""},
		{"as the suite says", func(o *Options) {
			o.Warmup = -1
			o.Suite.Warmup, o.Suite.Repeat, o.Suite.Prefix, o.Suite.Failure = &five, 3, "shared", "skip"
		}, bench.Plan{Workers: 1, Repeat: 3, Warmup: 5, Prefix: "shared", Failure: "skip"}, ""},
		{"as asked, whatever the suite says", func(o *Options) {
			o.Suite.Warmup, o.Suite.Repeat, o.Suite.Prefix, o.Suite.Failure = &five, 3, "shared", "skip"
			o.Warmup, o.Repeat, o.Prefix, o.Failure = 0, 2, "salted", "continue"
		}, bench.Plan{Workers: 1, Repeat: 2, Warmup: 0, Prefix: "salted", Failure: "continue"}, ""},
		{"no client", func(o *Options) { o.Client = nil }, bench.Plan{}, "there is no client"},
		{"no suite", func(o *Options) { o.Suite = nil }, bench.Plan{}, "cannot run a suite: there is none"},
		{"no sink", func(o *Options) { o.Sink = nil }, bench.Plan{}, "nothing to record it with"},
		{"no model", func(o *Options) { o.Model = "" }, bench.Plan{}, "name the model"},
		{"invalid suite", func(o *Options) { o.Suite.Steps[1].Text = "" }, bench.Plan{}, "step 2 (prompt), text"},
		{"nothing to send", func(o *Options) { o.Suite.Steps = o.Suite.Steps[:1] }, bench.Plan{}, "none of its steps sends anything"},
		{"negative", func(o *Options) { o.Workers = -1 }, bench.Plan{}, "must not be negative"},
		{"prefix", func(o *Options) { o.Prefix = "hot" }, bench.Plan{}, `prefix mode "hot"`},
		{"failure", func(o *Options) { o.Failure = "retry" }, bench.Plan{}, `failure policy "retry"`},
		{"no picture", func(o *Options) {
			o.Suite.Steps = append(o.Suite.Steps, suite.Step{Type: suite.Image, Image: "cat.png"})
		}, bench.Plan{}, `step 3 (image), image: there is no picture "cat.png"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			o, l := options(t, e.URL, prompt("a"))
			test.change(&o)
			if test.err != "" {
				_, err := Run(context.Background(), o)
				if err == nil || !strings.Contains(err.Error(), test.err) || !strings.HasPrefix(err.Error(), "cannot ") {
					t.Errorf("error %v", err)
				}
				if len(l.events) > 0 {
					t.Errorf("%d events of a run that was never begun", len(l.events))
				}
				return
			}
			if err := o.Complete(); err != nil {
				t.Fatal(err)
			}
			got := o.Header.Plan
			got.Seed, got.Protocol = 0, ""
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("plan %+v, want %+v", got, test.want)
			}
			if before := o.Header; o.Complete() != nil || !reflect.DeepEqual(before, o.Header) {
				t.Error("completing twice changes the header")
			}
		})
	}
}

func TestProgress(t *testing.T) {
	s, err := sim.Start(sim.Options{Scenario: sim.Scenario{TTFT: sim.Duration(30 * time.Millisecond), ITL: sim.Duration(20 * time.Millisecond), Tokens: 20, FailEvery: 4, Status: 503}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o, _ := options(t, s.URL(), prompt("a"), prompt("b"))
	o.Workers, o.Failure = 2, bench.FailureContinue
	var all []Progress
	o.OnProgress = func(p Progress) { all = append(all, p) }
	out := mustRun(t, o)
	last := all[len(all)-1]
	if last.State != bench.Done || last.Done != 4 || last.Total != 4 || last.Failed != 1 || out.Failed != 1 || last.Step != 2 || last.Steps != 2 || last.LastError == "" {
		t.Errorf("at the end %+v; outcome %+v", last, out)
	}
	states := map[string]bool{}
	for i, p := range all {
		if i > 0 && (p.Done < all[i-1].Done || p.Step < all[i-1].Step || p.Elapsed < all[i-1].Elapsed) {
			t.Errorf("progress goes back: %+v after %+v", p, all[i-1])
		}
		if len(p.Workers) != 2 {
			t.Fatalf("%d workers", len(p.Workers))
		}
		for w, ws := range p.Workers {
			states[ws.State] = true
			if ws.Worker != w || (ws.State == Failed) != (ws.Error != "") {
				t.Errorf("worker %+v", ws)
			}
		}
	}
	if !states[Streaming] || !states[Ended] || !states[Failed] {
		t.Errorf("states seen: %v", states)
	}
}

// Any suite, any number of workers: as many requests as the suite says, never more at once than workers,
// a barrier between steps, and every event in order.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := &endpoint{tokenizer: rapid.Bool().Draw(rt, "tokenizer"), noUsage: rapid.Bool().Draw(rt, "no usage")}
		failing := rapid.IntRange(2, 12).Draw(rt, "failing")
		e.answer = func(w http.ResponseWriter, r *http.Request, n int, q asked) bool {
			if n%failing == failing-1 && !q.probe() {
				http.Error(w, "no", http.StatusInternalServerError)
				return true
			}
			return false
		}
		e.Server = newServer(e)
		defer e.Close()
		var steps []suite.Step
		for range rapid.IntRange(1, 4).Draw(rt, "steps") {
			switch rapid.IntRange(0, 4).Draw(rt, "kind") {
			case 0:
				steps = append(steps, section("s", rapid.Bool().Draw(rt, "reset")))
			case 1:
				steps = append(steps, suite.Step{Type: suite.Context, K: 1})
			case 2:
				steps = append(steps, suite.Step{Type: suite.Bench, Depth: rapid.IntRange(0, 200).Draw(rt, "depth"), PP: rapid.IntRange(1, 200).Draw(rt, "pp"), TG: 2, ExactTG: true})
			case 3:
				steps = append(steps, suite.Step{Type: suite.Image, Image: "velo-240.png", Reasoning: "off"})
			default:
				steps = append(steps, prompt("p"))
			}
		}
		steps = append([]suite.Step{section("first", true), prompt("p")}, steps...)
		o, l := options(t, e.URL, steps...)
		o.Workers, o.Repeat = rapid.IntRange(1, 5).Draw(rt, "workers"), rapid.IntRange(1, 2).Draw(rt, "repeat")
		o.Warmup = rapid.IntRange(0, 7).Draw(rt, "warmup")
		o.Prefix = rapid.SampledFrom([]string{bench.PrefixSalted, bench.PrefixShared}).Draw(rt, "prefix")
		o.Failure = bench.FailureContinue
		out := mustRun(t, o)
		if want := o.Suite.Requests(o.Workers, o.Repeat); out.Requests != want || out.OK+out.Failed != want {
			rt.Fatalf("outcome %+v, want %d requests", out, want)
		}
		if e.most() > o.Workers {
			rt.Fatalf("%d requests at once by %d workers", e.most(), o.Workers)
		}
		checkOrder(rt, l)
		if want := out.Requests + o.Warmup*o.Suite.Sending()*o.Repeat; len(l.session().Exchanges) != want {
			rt.Fatalf("%d exchanges, want %d", len(l.session().Exchanges), want)
		}
		for _, q := range e.ordered() {
			for i, m := range q.Messages {
				if want := []string{"user", "assistant"}[i%2]; m.Role != want {
					rt.Fatalf("message %d is of %s", i, m.Role)
				}
			}
			if !json.Valid([]byte(q.Body)) {
				rt.Fatal("a body is not JSON")
			}
		}
	})
}
