//go:build unix

package measure

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"velo/bench"
)

// large is a session of requests × chunks, 64 workers at about 100 tok/s each, two steps.
func large(requests, chunks int) *bench.Session {
	r := rand.New(rand.NewPCG(1, 2))
	s := &bench.Session{Header: bench.Header{ID: "0000000000030badcafe", Plan: bench.Plan{Workers: 64}}}
	s.Append(&bench.Step{Number: 0, Index: 0, Workers: 64})
	s.Append(&bench.Step{Number: 1, Index: 1, Workers: 64})
	clock := make([]time.Duration, 64)
	for n := range requests {
		w := n % 64
		t := clock[w] + time.Duration(50+r.IntN(200))*ms
		x := &bench.Exchange{Request: &bench.Request{Number: n, Step: 2 * n / requests, Worker: w, Turn: n / 64, Start: clock[w], Planned: clock[w]}}
		x.Chunks = make(bench.Chunks, chunks)
		for i := range x.Chunks {
			x.Chunks[i] = bench.Chunk{Request: n, Read: int32(i), User: t + time.Duration(50_000+r.IntN(100_000)), Kernel: t, Usage: -1, Exact: -1, Text: "word "}
			t += time.Duration(10e6 + 2e6*r.NormFloat64())
		}
		x.End = &bench.End{Request: n, Status: bench.OK, By: bench.EndDone, Finish: "length", End: t, Close: t, Stamp: bench.KernelStamp, Reads: chunks,
			Usage: &bench.Usage{Prompt: 1000, Completion: chunks, Reasoning: -1, Cached: 0, Accepted: -1, Rejected: -1}}
		clock[w] = t + ms
		feed(s, x)
	}
	return s
}

// cpu is the processor time of this process so far: on a shared machine the wall clock says little.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkCompute(b *testing.B) {
	for _, c := range []struct{ requests, chunks int }{{64, 15625}, {1000, 1000}, {10000, 100}} {
		s := large(c.requests, c.chunks)
		b.Run(fmt.Sprintf("%dx%d", c.requests, c.chunks), func(b *testing.B) {
			began := cpu()
			for b.Loop() {
				Compute(s, Options{})
			}
			b.ReportMetric((cpu()-began).Seconds()*1e3/float64(b.N), "cpu-ms/op")
		})
	}
}

// The intervals of the means of 1,000 requests, all metrics together.
func BenchmarkBootstrap(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	ratios := make([]ratio, 16)
	for i := range ratios {
		ratios[i] = ratio{num: make([]float64, 1000), out: new(Interval)}
		for k := range ratios[i].num {
			ratios[i].num[k] = r.ExpFloat64()
		}
	}
	began := cpu()
	for b.Loop() {
		bootstrap(ratios, 1000, 7)
	}
	b.ReportMetric((cpu()-began).Seconds()*1e3/float64(b.N), "cpu-ms/op")
}

// Events of 1,000 streams in the order in which they arrive.
func BenchmarkLive(b *testing.B) {
	const streams, chunks = 1000, 200
	text := "word "
	began := cpu()
	for b.Loop() {
		l := NewLive(Options{})
		l.Append(&bench.Step{Workers: streams})
		for n := range streams {
			l.Append(&bench.Request{Number: n, Worker: n})
		}
		for i := range chunks {
			for n := range streams {
				at := time.Duration(100+10*i)*ms + time.Duration(n)*time.Microsecond
				l.Append(bench.Chunks{{Request: n, Read: int32(i), User: at + 50_000, Kernel: at, Usage: -1, Exact: -1, Text: text}})
			}
		}
		for n := range streams {
			l.Append(&bench.End{Request: n, Status: bench.OK, Stamp: bench.KernelStamp, End: 3 * time.Second,
				Usage: &bench.Usage{Prompt: 10, Completion: chunks, Cached: -1, Accepted: -1, Rejected: -1}})
		}
	}
	b.ReportMetric(float64((cpu()-began).Nanoseconds())/float64(b.N*streams*chunks), "cpu-ns/event")
}

// A snapshot of 64 workers that have been decoding for ten minutes.
func BenchmarkSnapshot(b *testing.B) {
	const workers, chunks = 64, 60000
	l := NewLive(Options{})
	l.Append(&bench.Step{Workers: workers})
	for n := range workers {
		l.Append(&bench.Request{Number: n, Worker: n})
	}
	for i := range chunks {
		for n := range workers {
			at := time.Duration(100+10*i) * ms
			l.Append(bench.Chunks{{Request: n, Read: int32(i), User: at, Kernel: at, Usage: int32(i + 1), Exact: -1, Text: "a"}})
		}
		if i%10 == 0 {
			l.Snapshot(time.Duration(100+10*i) * ms)
		}
	}
	now := time.Duration(100+10*chunks) * ms
	b.ReportAllocs()
	began := cpu()
	for b.Loop() {
		l.Snapshot(now)
		now += 100 * ms
	}
	b.ReportMetric(float64((cpu()-began).Microseconds())/float64(b.N), "cpu-µs/op")
}
