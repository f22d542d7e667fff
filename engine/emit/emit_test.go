package emit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var quick = timing{connect: 2 * time.Second, exchange: 2 * time.Second, alive: time.Hour}

// started starts an emitter with tokens, little patience and short intervals.
func started(t testing.TB, o Options, change ...func(*timing)) *Emitter {
	t.Helper()
	if o.Interval == 0 {
		o.Interval = 5 * time.Millisecond
	}
	o.IncludeTokens = true
	tm := quick
	for _, c := range change {
		c(&tm)
	}
	e, err := start(o, tm)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = e.Close(ctx)
	})
	return e
}

// told keeps what Log is told.
type told struct {
	mu  sync.Mutex
	all []string
}

func (l *told) log(s string) { l.mu.Lock(); l.all = append(l.all, s); l.mu.Unlock() }
func (l *told) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

func chunk(i int) []byte {
	return fmt.Appendf(nil, `{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"\"%d\" é\n"}}]}`, i)
}

func emitStream(e *Emitter, request string, n int) {
	for i := range n {
		event := Delta
		switch i {
		case 0:
			event = Start
		case n - 1:
			event = End
		}
		e.Emit(Record{Time: time.Unix(1790000000, int64(i)), Request: request, Generation: "gen-1", Index: i, Event: event, Body: chunk(i)})
	}
}

// Each way to send: everything arrives, once, in order, and the counts add up.
func TestEverythingArrives(t *testing.T) {
	const n = 1234
	for name, open := range map[string]func(t *testing.T, r *receiver) Options{
		"json":     func(t *testing.T, r *receiver) Options { return Options{Endpoint: serveHTTP(t, r)} },
		"protobuf": func(t *testing.T, r *receiver) Options { return Options{Endpoint: serveHTTP(t, r), Protobuf: true} },
		"grpc": func(t *testing.T, r *receiver) Options {
			return Options{Endpoint: "grpc://" + serveGRPC(t, &grpcLogs{receiver: r})}
		},
		"a batch of one": func(t *testing.T, r *receiver) Options {
			return Options{Endpoint: serveHTTP(t, r), BatchSize: 1, Ring: 2048}
		},
		"by size alone": func(t *testing.T, r *receiver) Options {
			return Options{Endpoint: serveHTTP(t, r), BatchSize: 64, Interval: time.Hour}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &receiver{}
			o := open(t, r)
			o.ModelID = "m"
			e := started(t, o)
			emitStream(e, "sess-1", n)
			if name == "by size alone" {
				until(t, "the full batches are there", func() bool { return len(r.records()) >= n/64*64 })
				if got := len(r.records()); got != n/64*64 {
					t.Errorf("%d records before the interval, want %d", got, n/64*64)
				}
			}
			if err := closed(t, e); err != nil {
				t.Error(err)
			}
			r.check(t)
			got := r.records()
			if len(got) != n {
				t.Fatalf("%d of %d records arrived", len(got), n)
			}
			for i, l := range got {
				if l.Body.GetStringValue() != string(chunk(i)) || attribute(l.Attributes, "token.index").GetIntValue() != int64(i) {
					t.Fatalf("record %d: %v", i, l)
				}
			}
			for _, m := range r.logs {
				if k := len(m.ResourceLogs[0].ScopeLogs[0].LogRecords); o.BatchSize > 0 && k > o.BatchSize || k > 512 {
					t.Errorf("a request of %d records", k)
				}
			}
			if s := e.Status(); s.Sent != n || s.Dropped+s.Failed+s.Rejected+s.Queued != 0 || s.LastSent.IsZero() || s.LastError != "" {
				t.Errorf("%+v", s)
			}
		})
	}
}

// The body, byte for byte.
func TestRecordsAreTheOriginals(t *testing.T) {
	r := &receiver{}
	e := started(t, Options{Endpoint: serveHTTP(t, r), ModelID: `qwen "3"`, Topology: "tp2", Version: "v1.2", Interval: time.Hour,
		Headers: map[string]string{"Authorization": "Bearer x"}})
	at := time.Unix(1790000000, 123456789)
	e.Emit(Record{Time: at, Request: "sess-0123456789ab", Generation: "gen-6f", Event: Start, Body: []byte(`{"choices":[{"delta":{"role":"assistant"}}]}`)})
	e.Emit(Record{Time: at.Add(time.Millisecond), Request: "sess-0123456789ab", Generation: "gen-6f", Index: 1, Event: Delta, Body: []byte("é\n\x01\u2028")})
	e.Emit(Record{Time: at, Generation: "server", Event: StatusRecord, Body: []byte("status")})
	if err := closed(t, e); err != nil {
		t.Fatal(err)
	}
	attributes := func(request, index, event, generation string) string {
		return `"attributes":[{"key":"model.id","value":{"stringValue":"qwen \"3\""}},{"key":"topology","value":{"stringValue":"tp2"}},` +
			`{"key":"request.id","value":{"stringValue":"` + request + `"}},{"key":"token.index","value":{"intValue":"` + index + `"}},` +
			`{"key":"event","value":{"stringValue":"` + event + `"}},{"key":"generation.id","value":{"stringValue":"` + generation + `"}}]}`
	}
	want := `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"gb10_inference"}}]},` +
		`"scopeLogs":[{"scope":{"name":"gb10.generation.emitter","version":"v1.2"},"logRecords":[` +
		`{"timeUnixNano":"1790000000123456789","observedTimeUnixNano":"1790000000123456789",` +
		`"body":{"stringValue":"{\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}"},` + attributes("sess-0123456789ab", "0", "stream_start", "gen-6f") + `,` +
		`{"timeUnixNano":"1790000000124456789","observedTimeUnixNano":"1790000000124456789",` +
		`"body":{"stringValue":"é\n\u0001` + "\u2028" + `"},` + attributes("sess-0123456789ab", "1", "stream_delta", "gen-6f") + `,` +
		`{"timeUnixNano":"1790000000123456789","observedTimeUnixNano":"1790000000123456789",` +
		`"body":{"stringValue":"status"},` + attributes("", "0", "status", "server") + `]}]}]}`
	if len(r.bodies) != 1 || string(r.bodies[0]) != want {
		t.Errorf("got  %s\nwant %s", r.bodies, want)
	}
	h := r.headers[0]
	if h.Get("Content-Type") != "application/json" || h.Get("Connection") != "close" || h.Get("Authorization") != "Bearer x" {
		t.Errorf("headers %v", h)
	}
}

func TestTheEmitterSaysThatItIsThere(t *testing.T) {
	r := &receiver{}
	e := started(t, Options{Endpoint: serveHTTP(t, r)}, func(tm *timing) { tm.alive = 10 * time.Millisecond })
	until(t, "two status records are there", func() bool { return len(r.records()) >= 2 })
	_ = closed(t, e)
	l := r.records()[0]
	for key, want := range map[string]string{"event": "status", "request.id": "", "generation.id": "server", "topology": "single"} {
		if got := attribute(l.Attributes, key).GetStringValue(); got != want {
			t.Errorf("%s = %q, want %q", key, got, want)
		}
	}
	if l.Body.GetStringValue() != "status" || time.Since(time.Unix(0, int64(l.TimeUnixNano))) > time.Hour {
		t.Error(l)
	}
}

func TestWithoutTokensOnlyTheFrameIsSent(t *testing.T) {
	r := &receiver{}
	o := Options{Endpoint: serveHTTP(t, r), Interval: time.Millisecond}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	emitStream(e, "s", 10)
	if err := closed(t, e); err != nil {
		t.Fatal(err)
	}
	var events []string
	for _, l := range r.records() {
		events = append(events, attribute(l.Attributes, "event").GetStringValue())
	}
	if fmt.Sprint(events) != "[stream_start stream_end]" {
		t.Error(events)
	}
}

// Nobody listens: each batch is lost at once, the first three failures and
// each hundredth are told, and it works as soon as somebody does listen.
func TestDeadReceiver(t *testing.T) {
	for _, scheme := range []string{"http", "grpc"} {
		t.Run(scheme, func(t *testing.T) {
			var log told
			e := started(t, Options{Endpoint: scheme + "://" + dead(t), BatchSize: 1, Log: log.log, Interval: time.Millisecond})
			const n = 205
			for i := range n {
				emitStream(e, "s", 1)
				until(t, "the record is settled", func() bool { return e.Status().Failed == uint64(i+1) })
			}
			s := e.Status()
			if s.Sent != 0 || s.Failed != n || s.Dropped+s.Queued != 0 || !strings.Contains(s.LastError, "cannot send logs to "+scheme+"://127.0.0.1:") ||
				!strings.Contains(s.LastError, "refused") {
				t.Errorf("%+v", s)
			}
			var failures []string
			for _, l := range log.lines() {
				_, number, _ := strings.Cut(l, "failure ")
				failures = append(failures, number)
			}
			if got := strings.Join(failures, "; "); got != "1 in a row; 2 in a row; 3 in a row; 100 in a row; 200 in a row" {
				t.Errorf("told: %s", got)
			}
		})
	}
}

func TestReceiverThatComesBack(t *testing.T) {
	r := &receiver{}
	var ill atomic.Bool
	ill.Store(true)
	r.answer = func(w http.ResponseWriter, _ *http.Request) {
		if ill.Load() {
			http.Error(w, "no", http.StatusInternalServerError)
		}
	}
	var log told
	e := started(t, Options{Endpoint: serveHTTP(t, r), Log: log.log})
	emitStream(e, "s", 1)
	until(t, "the first is lost", func() bool { return e.Status().Failed == 1 })
	ill.Store(false)
	emitStream(e, "s", 1)
	until(t, "the second arrives", func() bool { return e.Status().Sent == 1 })
	lines := log.lines()
	if len(lines) != 2 || !strings.Contains(lines[0], "it answers 500 Internal Server Error; dropped 1 of them") || !strings.Contains(lines[1], "takes logs again after 1 failures") {
		t.Errorf("told %q", lines)
	}
}

// A receiver that takes the connection and says nothing: producers go on, what
// does not fit is dropped and counted, and Close is over when its time is.
func TestSilentReceiver(t *testing.T) {
	for _, scheme := range []string{"http", "grpc"} {
		t.Run(scheme, func(t *testing.T) {
			const n, ring = 1000, 64
			e := started(t, Options{Endpoint: scheme + "://" + silent(t), Ring: ring, BatchSize: 16}, func(tm *timing) { tm.exchange = time.Hour })
			until(t, "the sender is stuck", func() bool {
				emitStream(e, "s", 2)
				return e.Status().Queued >= 16
			})
			before := e.Status()
			emitStream(e, "s", n)
			s := e.Status()
			if s.Dropped-before.Dropped < n-ring || s.Queued > ring+16 || s.Sent+s.Failed != 0 {
				t.Errorf("%+v", s)
			}
			all := s.Dropped + s.Queued
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			err := e.Close(ctx)
			if err == nil || !strings.Contains(err.Error(), "cannot send the last ") || !strings.Contains(err.Error(), "no more time") {
				t.Errorf("Close: %v", err)
			}
			s = e.Status()
			if s.Dropped+s.Failed != all || s.Queued != 0 {
				t.Errorf("%d records and then %+v", all, s)
			}
			e.Emit(Record{})
			if e.Status().Dropped != s.Dropped+1 {
				t.Error("a record after Close is not counted as dropped")
			}
		})
	}
}

// A load that never lets the ring run empty does not keep the rest from being
// sent.
func TestOverloadLeavesRoom(t *testing.T) {
	r := &receiver{answer: func(http.ResponseWriter, *http.Request) { time.Sleep(2 * time.Millisecond) }}
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "x"}))
	e := started(t, Options{Endpoint: serveHTTP(t, r), Ring: 64, BatchSize: 8, Interval: time.Millisecond, Traces: true,
		Metrics: true, Gatherer: registry, MetricsInterval: time.Millisecond})
	stop := make(chan struct{})
	var producer sync.WaitGroup
	producer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				emitStream(e, "s", 64)
				runtime.Gosched()
			}
		}
	})
	e.Span(aSpan())
	until(t, "metrics and a span are sent", func() bool { s := e.Status(); return s.MetricsSent > 2 && s.SpansSent == 1 && s.Dropped > 0 })
	if err := closed(t, e); err == nil {
		t.Log("nothing was lost by closing")
	}
	close(stop)
	producer.Wait()
}

func TestTimeoutsAreSentences(t *testing.T) {
	for _, scheme := range []string{"http", "grpc"} {
		e := started(t, Options{Endpoint: scheme + "://" + silent(t)}, func(tm *timing) { tm.exchange = 20 * time.Millisecond })
		emitStream(e, "s", 1)
		until(t, "it gives up", func() bool { return e.Status().Failed == 1 })
		if s := e.Status(); !strings.Contains(s.LastError, "no answer within 20ms") {
			t.Errorf("%s: %q", scheme, s.LastError)
		}
	}
}

// A receiver that wants to be left alone is, and what comes meanwhile is lost,
// not kept.
func TestRetryAfter(t *testing.T) {
	r := &receiver{}
	r.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	e := started(t, Options{Endpoint: serveHTTP(t, r)})
	for i := range 5 {
		emitStream(e, "s", 10)
		until(t, "they are settled", func() bool { return e.Status().Failed == uint64(10*(i+1)) })
	}
	if len(r.bodies) != 1 {
		t.Errorf("%d requests", len(r.bodies))
	}
	if s := e.Status(); !strings.Contains(s.LastError, "429") {
		t.Errorf("%+v", s)
	}
}

func TestPartialSuccess(t *testing.T) {
	for name, c := range map[string]struct {
		answer   string
		rejected uint64
	}{
		"some":        {`{"partialSuccess":{"rejectedLogRecords":"3","errorMessage":"too old"}}`, 3},
		"a number":    {`{"partialSuccess":{"rejectedLogRecords":2,"errorMessage":"too old"}}`, 2},
		"more":        {`{"partialSuccess":{"rejectedLogRecords":"99"}}`, 10},
		"none":        {`{"partialSuccess":{}}`, 0},
		"another way": {`{"ingested":10}`, 0},
		"no JSON":     {`ok`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := &receiver{answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(c.answer)) }}
			e := started(t, Options{Endpoint: serveHTTP(t, r), Interval: time.Hour})
			emitStream(e, "s", 10)
			err := closed(t, e)
			if s := e.Status(); s.Sent != 10-c.rejected || s.Rejected != c.rejected || (err != nil) != (c.rejected > 0) {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
}

func TestLongBodiesMakeShortBatches(t *testing.T) {
	r := &receiver{}
	e := started(t, Options{Endpoint: serveHTTP(t, r), Interval: time.Hour})
	long := strings.Repeat("é", 150_000)
	for i := range 12 {
		e.Emit(Record{Index: i, Body: []byte(long)})
	}
	if err := closed(t, e); err != nil {
		t.Fatal(err)
	}
	for _, b := range r.bodies {
		if len(b) > bodyLimit+400_000 {
			t.Errorf("a request of %d bytes", len(b))
		}
	}
	if n := len(r.records()); n != 12 {
		t.Errorf("%d of 12 arrived", n)
	}
}

func TestNilEmitter(t *testing.T) {
	var e *Emitter
	e.Emit(Record{})
	e.Span(Span{})
	if e.Status() != (Status{}) || e.Close(context.Background()) != nil {
		t.Error("a nil emitter does something")
	}
}

// Many producers while it is closed: nothing is counted twice or forgotten.
func TestCountsAddUp(t *testing.T) {
	r := &receiver{}
	var wants atomic.Int64
	r.answer = func(w http.ResponseWriter, _ *http.Request) { // one in three fails
		if wants.Add(1)%3 == 0 {
			w.WriteHeader(http.StatusBadRequest)
		}
	}
	e := started(t, Options{Endpoint: serveHTTP(t, r), Ring: 256, BatchSize: 32, Interval: time.Millisecond})
	var all sync.WaitGroup
	const producers, each = 8, 3000
	for p := range producers {
		all.Go(func() { emitStream(e, fmt.Sprint(p), each) })
	}
	until(t, "some are sent", func() bool { return e.Status().Sent > 100 })
	_ = closed(t, e)
	all.Wait()
	s := e.Status()
	if got := s.Sent + s.Dropped + s.Failed + s.Rejected + s.Queued; got != producers*each {
		t.Errorf("%d records are accounted for of %d: %+v", got, producers*each, s)
	}
	if n := len(r.records()); uint64(n) < s.Sent {
		t.Errorf("%d sent and %d arrived", s.Sent, n)
	}
}

// What one record costs its producer.
func TestEmitDoesNotAllocate(t *testing.T) {
	e := started(t, Options{Endpoint: "http://" + dead(t), Interval: time.Hour, Ring: 4096})
	body := chunk(1)
	if n := testing.AllocsPerRun(400, func() {
		e.Emit(Record{Time: time.Unix(1, 2), Request: "sess-1", Generation: "gen-1", Index: 1, Event: Delta, Body: body})
	}); n != 0 {
		t.Errorf("%v allocations a record", n)
	}
}

// The sender's share: nothing once the buffers have grown.
func TestBatchesDoNotAllocate(t *testing.T) {
	for name, protobuf := range map[string]bool{"json": false, "protobuf": true} {
		b := newBatch(Options{ModelID: "m", Topology: "single", Version: "1"}, protobuf)
		r := &Record{Time: time.Unix(1790000000, 1), Request: "sess-1", Generation: "gen-1", Index: 77, Event: Delta, Body: chunk(7)}
		write := func() {
			b.reset()
			for range 64 {
				b.add(r)
			}
			_ = b.body()
		}
		write()
		if n := testing.AllocsPerRun(20, write); n != 0 {
			t.Errorf("%s: %v allocations a batch", name, n)
		}
	}
}

func TestEventNames(t *testing.T) {
	if got := fmt.Sprint(Start, Delta, End, StatusRecord, Event(9)); got != "stream_start stream_delta stream_end status event(9)" {
		t.Error(got)
	}
}

func FuzzJSONStrings(f *testing.F) {
	for _, s := range []string{"", `"\`, "\x00\x1f\x7f", "é\u2028\U0001f600", "\xff\xc3(", "<&>"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = validBytes(b)
		written := appendJSON(nil, b)
		var got string
		if err := json.Unmarshal(written, &got); err != nil {
			t.Fatalf("%q: %v", written, err)
		}
		if want := string(b); got != want {
			t.Fatalf("%q is written %s and read %q", b, written, got)
		}
		if string(appendJSON(nil, string(b))) != string(written) {
			t.Fatal("bytes and text differ")
		}
	})
}

func TestReasonsAreShort(t *testing.T) {
	h := newHTTP(endpoint{host: "x:1"}, Options{}, quick)
	err := h.post(context.Background(), logs, nil).err
	if err == nil || strings.Contains(err.Error(), "Post ") || errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
