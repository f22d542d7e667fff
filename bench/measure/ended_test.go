package measure

import (
	"reflect"
	"runtime"
	"testing"
	"time"

	"velo/bench"
)

// TestLiveEnded: what Ended is given is what Of computes from all of the exchange, once for each request.
func TestLiveEnded(t *testing.T) {
	l := NewLive(Options{})
	var got []*Request
	l.Ended(func(r *Request) { got = append(got, r) })
	l.Append(&bench.Step{Workers: 2})
	want := map[int]Request{}
	for n, status := range []bench.Status{bench.OK, bench.Stopped, bench.TimedOut} {
		x := script{start: 10, at: every(100, 10, 40+n)}.exchange(n)
		end := *x.End
		end.Status = status
		x.End = &end
		want[n] = Of(x, Options{})
		l.Append(x.Request)
		if x.Conn != nil {
			l.Append(x.Conn)
		}
		for i := range x.Chunks {
			l.Append(x.Chunks[i : i+1])
		}
		l.Append(x.End)
		l.Append(x.End) // told twice, it ends once
	}
	if len(got) != len(want) {
		t.Fatalf("%d requests ended, want %d", len(got), len(want))
	}
	for _, r := range got {
		w := want[r.Number]
		a, b := *r, w
		a.ICL, b.ICL, a.Arrivals, b.Arrivals = nil, nil, nil, nil
		if !reflect.DeepEqual(r.Arrivals, w.Arrivals) || !reflect.DeepEqual(r.ICL, w.ICL) || a.N != b.N || a.TTFT != b.TTFT || a.Rate != b.Rate ||
			a.MaxGap != b.MaxGap || a.Status != b.Status || a.E2E != b.E2E || a.Counted != b.Counted || a.Answer != b.Answer || a.TTFO != b.TTFO {
			t.Errorf("request %d: %+v, want %+v", r.Number, a, b)
		}
	}
}

// BenchmarkLiveHour is the memory that a request of an hour takes while it runs: 360,000 chunks.
func BenchmarkLiveHour(b *testing.B) {
	const chunks = 360_000
	for range b.N {
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l := NewLive(Options{})
		l.Append(&bench.Step{Workers: 1})
		l.Append(&bench.Request{})
		for i := range chunks {
			at := time.Duration(i+10) * 10 * time.Millisecond
			l.Append(bench.Chunks{{User: at, Kernel: at, Usage: -1, Exact: -1, Text: " token"}})
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/chunks, "B/chunk")
		runtime.KeepAlive(l)
	}
}
