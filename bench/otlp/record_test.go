package otlp

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"velo/bench"
	"velo/bench/measure"
	"velo/bench/otlp/offset"
	"velo/bench/otlp/stream"
	"velo/bench/report"
)

// kept is a sink that puts the session together.
type kept struct {
	mu      sync.Mutex
	session bench.Session
	events  int
}

func (k *kept) Append(e bench.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events++
	k.session.Append(e)
}

func (k *kept) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.events
}

const noon = int64(1_700_000_000_000_000_000)

func TestRecordingIsASession(t *testing.T) {
	r := started(t, loopback())
	url := "http://" + r.at("HTTP") + "/v1/logs"
	for i := range 30 { // before the press
		post(t, url, "application/json", []byte(logsOf(generation(noon+int64(i)*1e9, fmt.Sprintf("s%d", i), "g", 50)...)))
	}
	whole := generation(noon+40e9, "late", "g", 50)
	post(t, url, "application/json", []byte(logsOf(whole[:20]...)))
	k := &kept{}
	rec, err := r.Record(RecordOptions{Sink: k, Back: time.Minute, Title: "what looked wrong", Environment: bench.Environment{OS: "linux/amd64", Cores: 2}})
	check(t, err)
	if s := r.Snapshot(Query{}); len(s.Recordings) != 1 || !s.Recordings[0].Running {
		t.Errorf("recordings are %+v", s.Recordings)
	}
	post(t, url, "application/json", []byte(logsOf(whole[20:]...)))
	post(t, url, "application/json", []byte(logsOf(generation(noon+41e9, "headless", "g", 20)[5:]...)))
	post(t, url, "application/json", []byte(logsOf(generation(noon+42e9, "cut", "g", 20)[:10]...)))
	r.Clear() // is about views: the recording goes on
	state := rec.Stop()
	if state.Running || state.Reason != ByUser || state.Streams != 33 || state.Headless != 1 || state.Lost != 0 || state.Late != 0 {
		t.Errorf("state is %+v", state)
	}
	s := &k.session
	if s.Header.ID == "" || s.Header.Endpoint.Model != "qwen" || s.Header.Environment.Extra[bench.RecordedFromTelemetry] == "" || s.Finish == nil || s.Finish.State != bench.Done || s.Header.Anchor.UnixNano() != noon {
		t.Errorf("header %+v, finish %+v", s.Header, s.Finish)
	}
	run := measure.Compute(s, measure.Options{})
	if run.Attempted != 33 || run.OK != 32 || run.Unfinished != 1 || run.Tokens != 31*50+15+1+9 && run.Tokens != 31*50+20+9 {
		t.Errorf("attempted %d, ok %d, unfinished %d, tokens %d", run.Attempted, run.OK, run.Unfinished, run.Tokens)
	}
	if len(run.Broken) != 0 {
		t.Errorf("invariants are broken: %v", run.Broken)
	}
	if q := run.TTFT; q.N != 32 || !near(float64(q.Mean), 0.110) {
		t.Errorf("TTFT %+v", q.Mean)
	}
	if !near(float64(run.Rate.Mean), 100) || run.Source != measure.Server && run.Source != measure.Estimate {
		t.Errorf("rate %v, source %v", run.Rate.Mean, run.Source)
	}
	rep := report.New(s, report.Options{})
	var b strings.Builder
	check(t, report.Write(&b, rep, "html"))
	for _, want := range []string{"what looked wrong", bench.RecordedFromTelemetry, "finished"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	for _, f := range []string{"md", "csv", "csv-summary", "json", "pdf", "benchstat", "vllm"} {
		var b strings.Builder
		check(t, report.Write(&b, rep, f))
	}
	for _, f := range rep.Facts {
		t.Logf("%s: %s", f.Label, f.Value)
	}
}

// TestRecordingIsWrittenWhileItRuns: what a crash can lose is the last second.
func TestRecordingIsWrittenWhileItRuns(t *testing.T) {
	r := started(t, loopback())
	url := "http://" + r.at("HTTP") + "/v1/logs"
	k := &kept{}
	rec, err := r.Record(RecordOptions{Sink: k})
	check(t, err)
	post(t, url, "application/json", []byte(logsOf(generation(noon, "s", "g", 20)...)))
	waitFor(t, "the whole stream", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return len(k.session.Exchanges) == 1 && k.session.Exchanges[0].End != nil && len(k.session.Exchanges[0].Chunks) == 20
	})
	if rec.State().Running != true {
		t.Error("it has ended")
	}
	r.Close()
	if s := rec.State(); s.Running || s.Reason != ByClose || k.session.Finish == nil {
		t.Errorf("closing does not save it: %+v", s)
	}
}

func TestRecordingEndsAtItsBounds(t *testing.T) {
	r := started(t, loopback())
	url := "http://" + r.at("HTTP") + "/v1/logs"
	key := stream.Key{Service: "gb10_inference", Conversation: "s", Generation: "g"}
	post(t, url, "application/json", []byte(logsOf(generation(noon, "s", "g", 100)...)))
	post(t, url, "application/json", []byte(logsOf(generation(noon, "other", "g", 100)...)))
	for name, c := range map[string]struct {
		o      RecordOptions
		reason string
		n      int
	}{
		"tokens":  {RecordOptions{Tokens: 50, Back: time.Hour}, ByTokens, 2},
		"bytes":   {RecordOptions{Bytes: 500, Back: time.Hour}, ByBytes, 2},
		"time":    {RecordOptions{For: time.Millisecond}, ByTime, 0},
		"streams": {RecordOptions{Streams: []stream.Key{key}, Back: time.Hour}, ByEnd, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &kept{}
			c.o.Sink = k
			rec, err := r.Record(c.o)
			check(t, err)
			<-rec.Done()
			s := rec.State()
			if s.Reason != c.reason || s.Streams != c.n || s.Empty != (c.n == 0) || (k.count() == 0) != s.Empty {
				t.Errorf("ended as %+v, %d events", s, k.count())
			}
		})
	}
}

// TestClocksAreBoundedByTheClient: the emitter's clock is an hour ahead; requests that the client
// measures too bound the offset, and the difference of the TTFTs needs none.
func TestClocksAreBoundedByTheClient(t *testing.T) {
	r := started(t, loopback())
	clock := bench.StartClock()
	sink := r.Measured(clock)
	const ahead = int64(time.Hour)
	start := clock.Now()
	wall := clock.Anchor().UnixNano()
	client := bench.Session{}
	put := func(e bench.Event) { client.Append(e); sink.Append(e) }
	put(&bench.Header{ID: "x", Anchor: clock.Anchor()})
	put(&bench.Request{Number: 0, Session: "sess", Start: start, Planned: start})
	// the stream starts 5 ms after t0; its first token comes 110 ms later, and reaches the client 20 ms after that
	emitter := wall + int64(start) + 5e6 + ahead
	post(t, "http://"+r.at("HTTP")+"/v1/logs", "application/json", []byte(logsOf(generation(emitter, "sess", "g", 10)...)))
	if c := r.Snapshot(Query{}).Clocks; len(c) != 1 || c[0].Known() || c[0].Records == 0 || c[0].LeastSum > -59*time.Minute {
		t.Fatalf("before the client's side is known: %+v", c)
	}
	put(&bench.Conn{Request: 0, FirstByte: start + 30*time.Millisecond})
	put(bench.Chunks{{Request: 0, User: start + 135*time.Millisecond, Kernel: bench.Unset, Usage: -1, Exact: -1, Text: "x"}})
	put(&bench.End{Request: 0, Status: bench.OK, End: start + 300*time.Millisecond, Close: start + 300*time.Millisecond})
	s := r.Snapshot(Query{})
	if len(s.Clocks) != 1 || !s.Clocks[0].Known() {
		t.Fatalf("clocks are %+v", s.Clocks)
	}
	low, high := s.Clocks[0].Low, s.Clocks[0].High
	if true := -time.Hour; low > true || high < true || high-low != 30*time.Millisecond {
		t.Errorf("the offset is %v, the bounds are %v and %v", true, low, high)
	}
	if s.PairsTotal != 1 || !near(float64(s.Pairs[0].ServerTTFT), 0.110) || !near(float64(s.Pairs[0].ClientTTFT), 0.135) {
		t.Errorf("pairs are %+v", s.Pairs)
	}
	k := &kept{}
	rec, err := r.Record(RecordOptions{Sink: k, Back: time.Hour})
	check(t, err)
	rec.Stop()
	a := offset.Align(&k.session, &client)
	if len(a.Pairs) != 1 || !near(float64(a.Median), 0.025) || a.Low > -time.Hour || a.High < -time.Hour || a.Unmatched != 0 {
		t.Errorf("alignment is %+v", a)
	}
}

func TestPagesArePolled(t *testing.T) {
	page := "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name=\"m\"} 4\n# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total{model_name=\"m\"} %d\n"
	var mu sync.Mutex
	n, fail := 0, false
	web := serveText(t, func() (int, string) {
		mu.Lock()
		defer mu.Unlock()
		if fail {
			return 500, ""
		}
		n += 1000
		return 200, fmt.Sprintf(page, n)
	})
	c := Config{Enabled: true, Poll: []Poll{{URL: strings.Replace(web, "://", "://user:secret@", 1) + "/metrics", Every: 200 * time.Millisecond}}}
	r := started2(t, c)
	waitFor(t, "a rate", func() bool {
		for _, e := range r.Snapshot(Query{}).Engines {
			running, rate := false, false
			for _, g := range e.Gauges {
				running = running || g.Name == "Running" && g.Value == 4
				rate = rate || g.Name == "Output rate" && g.Value > 0
			}
			if running && rate && e.Model == "m" && e.Title == "vLLM" {
				return true
			}
		}
		return false
	})
	if p := r.State().Polls; len(p) != 1 || !p[0].Ok || p[0].Series != 2 || strings.Contains(p[0].URL, "secret") {
		t.Errorf("polls are %+v", p)
	}
	mu.Lock()
	fail = true
	mu.Unlock()
	waitFor(t, "the error", func() bool { p := r.State().Polls; return !p[0].Ok && strings.Contains(p[0].Error, "500") })
	check(t, r.Configure(Config{}))
	if p := r.State().Polls; len(p) != 0 {
		t.Errorf("it goes on although the receiver is off: %+v", p)
	}
}
