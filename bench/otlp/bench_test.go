package otlp

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"velo/bench"
	"velo/bench/client"
	"velo/bench/measure"
	"velo/bench/otlp/decode"
	"velo/bench/otlp/stream"
	"velo/bench/sim"

	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// bodiesOf are requests of 512 generation records of some streams, in both encodings.
func bodiesOf(b testing.TB, streams int) (js, wire []string) {
	b.Helper()
	var records []string
	for i := range 512 * 8 {
		s := i % streams
		records = append(records, record(noon+int64(i)*1e5, "stream_delta", fmt.Sprintf("sess-%012d", s), fmt.Sprintf("gen-%032d", s), -1,
			`{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"qwen","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}`))
	}
	for at := 0; at < len(records); at += 512 {
		body := logsOf(records[at : at+512]...)
		js = append(js, body)
		var m logspb.LogsData
		if err := protojson.Unmarshal([]byte(body), &m); err != nil {
			b.Fatal(err)
		}
		w, err := proto.Marshal(&m)
		if err != nil {
			b.Fatal(err)
		}
		wire = append(wire, string(w))
	}
	return js, wire
}

// BenchmarkAccept is generation records through check, streams, raw records and clocks, without the
// network: run it with GOMAXPROCS=1 to see what one core takes.
func BenchmarkAccept(b *testing.B) {
	js, wire := bodiesOf(b, 16)
	for format, bodies := range map[decode.Format][]string{decode.JSON: js, decode.Protobuf: wire} {
		b.Run(format.String(), func(b *testing.B) {
			r := New(Options{})
			defer r.Close()
			r.admission.configure(Limits{Records: 1e12})
			b.ReportAllocs()
			for i := range b.N {
				if _, f := r.ingest(context.Background(), logs, format, bodies[i%len(bodies)], r.clock.now()); f != nil {
					b.Fatal(f.message)
				}
			}
			b.ReportMetric(512*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkAcceptHTTP is the same over a socket, sender included.
func BenchmarkAcceptHTTP(b *testing.B) {
	_, wire := bodiesOf(b, 16)
	c := loopback()
	c.Limits.Records = 1e12
	r := started(b, c)
	url := "http://" + r.at("HTTP") + "/v1/logs"
	b.ResetTimer()
	for i := range b.N {
		if status, _, body := post(b, url, "application/x-protobuf", []byte(wire[i%len(wire)])); status != 200 {
			b.Fatal(status, body)
		}
	}
	b.ReportMetric(512*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkMemory is what 10,000 streams of 200 tokens hold: all of their chunks and texts, and after
// they were folded.
func BenchmarkMemory(b *testing.B) {
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for range b.N {
		before := heap()
		t := stream.NewTable(stream.Options{Bytes: 1 << 40})
		for i := range 10_000 {
			body := logsOf(generation(noon+int64(i)*1e6, fmt.Sprintf("sess-%d", i), "g", 200)...)
			if _, err := decode.Logs(body, decode.JSON, func(o *decode.Origin, l *decode.Log) bool { t.Log(time.Duration(i), noon, o, l); return true }); err != nil {
				b.Fatal(err)
			}
		}
		full := heap()
		said := t.Bytes()
		for range 10 {
			t.Sweep(24 * time.Hour)
		}
		folded := heap()
		b.ReportMetric(float64(full-before)/(1<<20), "MiB-full")
		b.ReportMetric(float64(said)/(1<<20), "MiB-full-counted")
		b.ReportMetric(float64(folded-before)/(1<<20), "MiB-folded")
		runtime.KeepAlive(t)
	}
}

// BenchmarkSnapshot is a window's snapshot with four panels, of a receiver that holds 10,000 streams.
func BenchmarkSnapshot(b *testing.B) {
	r := New(Options{})
	defer r.Close()
	r.admission.configure(Limits{Records: 1e12})
	for i := range 10_000 {
		if _, f := r.ingest(context.Background(), logs, decode.JSON, logsOf(generation(noon, fmt.Sprintf("sess-%d", i), "g", 20)...), r.clock.now()); f != nil {
			b.Fatal(f.message)
		}
	}
	var q Query
	for i := range 4 {
		q.Streams.Panels = append(q.Streams.Panels, stream.Key{Service: "gb10_inference", Conversation: fmt.Sprintf("sess-%d", 9990+i), Generation: "g"})
	}
	b.ResetTimer()
	for range b.N {
		r.Snapshot(q)
	}
}

// flood sends protobuf bodies until stop is called, at the rate at which they are taken but no more
// than records a second; it returns how many records were taken and how many refused.
func flood(b *testing.B, r *Receiver, perSecond float64) (stop func() (taken, refused uint64)) {
	_, wire := bodiesOf(b, 16)
	url := "http://" + r.at("HTTP") + "/v1/logs"
	var taken, refused atomic.Uint64
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		began := time.Now()
		for i := 0; ctx.Err() == nil; i++ {
			time.Sleep(time.Until(began.Add(time.Duration(float64(i) * 512 / perSecond * 1e9))))
			a, err := http.Post(url, "application/x-protobuf", strings.NewReader(wire[i%len(wire)]))
			if err != nil {
				continue
			}
			a.Body.Close()
			if a.StatusCode == http.StatusOK {
				taken.Add(512)
			} else {
				refused.Add(512)
			}
		}
	}()
	return func() (uint64, uint64) {
		cancel()
		<-ended
		return taken.Load(), refused.Load()
	}
}

// BenchmarkDelay is the time from a record's receipt to the snapshot that shows it, for a window that
// takes one ten times a second, with and without a flood of 50,000 records a second.
func BenchmarkDelay(b *testing.B) {
	for name, rate := range map[string]float64{"quiet": 0, "flood": 50_000} {
		b.Run(name, func(b *testing.B) {
			c := loopback()
			c.Limits.Records = 1e12
			r := started(b, c)
			if rate > 0 {
				stop := flood(b, r, rate)
				defer stop()
			}
			url := "http://" + r.at("HTTP") + "/v1/logs"
			var delays, snapshots []time.Duration
			for i := range b.N {
				k := stream.Key{Service: "gb10_inference", Conversation: fmt.Sprintf("probe-%d", i), Generation: "g"}
				go func() {
					body := logsOf(record(noon, "stream_delta", k.Conversation, "g", 1, `{"choices":[{"delta":{"content":"x"}}]}`))
					if a, err := http.Post(url, "application/json", strings.NewReader(body)); err == nil {
						a.Body.Close()
					}
				}()
				for {
					began := time.Now()
					s := r.Snapshot(Query{Streams: stream.Query{Panels: []stream.Key{k}}})
					snapshots = append(snapshots, time.Since(began))
					if len(s.Panels) == 1 {
						delays = append(delays, s.Panels[0].Age+time.Since(began))
						break
					}
					time.Sleep(100*time.Millisecond - time.Since(began))
				}
			}
			slices.Sort(delays)
			slices.Sort(snapshots)
			b.ReportMetric(float64(delays[len(delays)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(snapshots[len(snapshots)*99/100].Microseconds())/1000, "snapshot-p99-ms")
		})
	}
}

// stamps keeps what of a session tells of the client's own delay.
type stamps struct{ delays []float64 }

func (s *stamps) Append(e bench.Event) {
	if c, ok := e.(bench.Chunks); ok {
		for i := range c {
			if c[i].Kernel != bench.Unset {
				s.delays = append(s.delays, float64((c[i].User-c[i].Kernel).Microseconds())/1000)
			}
		}
	}
}

// BenchmarkMeasurement is a measurement that runs while the receiver is flooded: the scripted endpoint
// sends tokens at times that are known, the client stamps them. It reports how far the client's own
// clock readings lie behind the kernel's, and how far TTFT and decode rate are from the script's.
func BenchmarkMeasurement(b *testing.B) {
	for _, k := range []struct {
		name string
		rate float64
		core float64
	}{{"alone", 0, 1}, {"flood", 50_000, 1}, {"flood, a quarter of a core", 50_000, 0.25}} {
		b.Run(k.name, func(b *testing.B) {
			scenario, err := sim.Load("steady")
			if err != nil {
				b.Fatal(err)
			}
			scenario.TTFT, scenario.ITL, scenario.Tokens = sim.Duration(100*time.Millisecond), sim.Duration(5*time.Millisecond), 200
			server, err := sim.Start(sim.Options{Addr: "127.0.0.1:0", Scenario: scenario})
			if err != nil {
				b.Fatal(err)
			}
			defer server.Close()
			c := loopback()
			c.Limits.Records, c.Limits.Core = 1e12, k.core
			r := started(b, c)
			stop := func() (uint64, uint64) { return 0, 0 }
			if k.rate > 0 {
				stop = flood(b, r, k.rate)
			}
			began := time.Now()
			s := &stamps{}
			session := measured(b, server.URL(), s, b.N)
			taken, refused := stop()
			run := measure.Compute(session, measure.Options{})
			slices.Sort(s.delays)
			if n := len(s.delays); n > 0 {
				b.ReportMetric(s.delays[n*99/100], "stamp-p99-ms")
			}
			b.ReportMetric(float64(run.TTFT.Q(0.5).Value)*1000-100, "ttft-off-ms")
			b.ReportMetric((float64(run.Rate.Q(0.5).Value)/200-1)*100, "rate-off-%")
			b.ReportMetric(float64(taken)/time.Since(began).Seconds(), "taken/s")
			b.ReportMetric(float64(refused)/time.Since(began).Seconds(), "refused/s")
		})
	}
}

// measured sends n requests, one after the other, and returns the session.
func measured(b *testing.B, url string, also bench.Sink, n int) *bench.Session {
	b.Helper()
	clock := bench.StartClock()
	c, err := client.New(client.Options{BaseURL: url, Clock: clock, Connections: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	session := &bench.Session{}
	sink := both{session, also}
	sink.Append(&bench.Header{Schema: bench.SchemaVersion, ID: bench.NewID(time.Now()), Anchor: clock.Anchor()})
	for i := range n {
		call, err := c.Prepare(client.Chat{Model: "m", Messages: []client.Message{{Role: "user", Content: "go"}}})
		if err != nil {
			b.Fatal(err)
		}
		q := &bench.Request{Number: i, Session: fmt.Sprintf("s%d", i), Parameters: call.Parameters()}
		if end := call.Do(context.Background(), q, sink).End; end.Status != bench.OK {
			b.Fatal(end.Error)
		}
	}
	return session
}

type both [2]bench.Sink

func (t both) Append(e bench.Event) { t[0].Append(e); t[1].Append(e) }
