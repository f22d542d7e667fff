package emit

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
)

// discard is a receiver that takes everything and looks at nothing.
func discard(t testing.TB, wait time.Duration) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(wait)
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func median(of []float64) float64 {
	s := slices.Sorted(slices.Values(of))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// What a record costs its producer, with every kind of receiver in turn within
// one run: blocks of 512, each kind's ring emptied in between but the silent
// one's, which stays full. The metrics are medians over the blocks.
func BenchmarkEmit(b *testing.B) {
	type kind struct {
		name  string
		e     *Emitter
		nanos []float64
	}
	with := func(name, endpoint string) *kind {
		e, err := New(Options{Endpoint: endpoint, IncludeTokens: true})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			now, cancel := context.WithCancel(context.Background())
			cancel()
			_ = e.Close(now)
		})
		return &kind{name: name, e: e}
	}
	kinds := []*kind{with("good", discard(b, 0)), with("again", discard(b, 0)), with("slow", discard(b, 200*time.Millisecond)),
		with("dead", "http://"+dead(b)), with("silent", "http://"+silent(b)), {name: "none"}}
	record := Record{Time: time.Now(), Request: "sess-0123456789ab", Generation: "gen-00000000-0000-4000-8000-000000000000", Event: Delta,
		Body: []byte(`{"id":"chatcmpl-00000000-0000-4000-8000-000000000000","object":"chat.completion.chunk","created":1790000000,"model":"model",` +
			`"choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}`)}
	const block = 512
	for range 20 { // the silent one's ring is full from here on
		for range block {
			kinds[4].e.Emit(record)
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		for j := range kinds {
			k := kinds[(i+j)%len(kinds)]
			begin := time.Now()
			for n := range block {
				record.Index = n
				k.e.Emit(record)
			}
			k.nanos = append(k.nanos, float64(time.Since(begin).Nanoseconds())/block)
			for k.name != "silent" && k.e.Status().Queued > 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}
	good := median(kinds[0].nanos)
	for _, k := range kinds {
		b.ReportMetric(median(k.nanos), "ns/"+k.name)
		if k.name != "none" {
			b.ReportMetric(median(k.nanos)/good, k.name+"/good")
		}
	}
}

// What the sender computes for a record.
func BenchmarkEncode(b *testing.B) {
	for name, protobuf := range map[string]bool{"json": false, "protobuf": true} {
		b.Run(name, func(b *testing.B) {
			batch := newBatch(Options{ModelID: "model", Topology: "single", Version: "v1"}, protobuf)
			r := &Record{Time: time.Now(), Request: "sess-0123456789ab", Generation: "gen-00000000-0000-4000-8000-000000000000", Index: 7, Event: Delta, Body: chunk(7)}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n%512 == 0 {
					batch.reset()
				}
				batch.add(r)
				n++
			}
		})
	}
}
