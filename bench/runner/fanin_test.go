package runner

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"velo/bench"
)

// sinkFunc makes a sink of a function.
type sinkFunc func(bench.Event)

func (f sinkFunc) Append(e bench.Event) { f(e) }

func TestFanInKeepsOrderAndEverything(t *testing.T) {
	const goroutines, each = 50, 400
	next := make([]int, goroutines)
	busy := false
	f := newFanIn(sinkFunc(func(e bench.Event) {
		if busy {
			t.Error("the sink is called twice at once")
		}
		busy = true
		c := e.(bench.Chunks)[0]
		if int(c.Read) != next[c.Request] {
			t.Errorf("event %d of goroutine %d comes after %d", c.Read, c.Request, next[c.Request])
		}
		next[c.Request]++
		busy = false
	}))
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range each {
				f.Append(bench.Chunks{{Request: g, Read: int32(i)}})
			}
		})
	}
	all.Wait()
	f.close()
	for g, n := range next {
		if n != each {
			t.Errorf("%d events of goroutine %d came through, not %d", n, g, each)
		}
	}
	f.Append(&bench.Note{}) // too late: dropped, and nothing hangs
}

// A sink that stands still does not hold up those who follow streams.
func TestFanInDoesNotWaitForTheSink(t *testing.T) {
	stuck, took := make(chan struct{}), 0
	f := newFanIn(sinkFunc(func(bench.Event) {
		<-stuck
		took++
	}))
	for range 10_000 { // would never return if it waited
		f.Append(&bench.Note{})
	}
	close(stuck)
	f.close()
	if took != 10_000 {
		t.Errorf("%d events came through", took)
	}
}

// mutexSink is the alternative that BenchmarkFanIn compares with.
type mutexSink struct {
	mu sync.Mutex
	to bench.Sink
}

func (m *mutexSink) Append(e bench.Event) {
	m.mu.Lock()
	m.to.Append(e)
	m.mu.Unlock()
}

// BenchmarkFanIn brings events of 1,000 goroutines, 100 a second each, to a sink that takes a microsecond
// for each and 50 milliseconds for every ten thousandth, as one does that waits for a disk. "longest-µs"
// is how long the slowest Append held its stream up, "held-%" the share of Appends that took longer than
// 10 milliseconds.
func BenchmarkFanIn(b *testing.B) {
	sink := func() bench.Sink {
		n := 0
		return sinkFunc(func(bench.Event) {
			n++
			for began := time.Now(); time.Since(began) < time.Microsecond; {
			}
			if n%10_000 == 0 {
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	for _, kind := range []string{"queue", "mutex"} {
		b.Run(kind, func(b *testing.B) {
			var to bench.Sink = &mutexSink{to: sink()}
			end := func() {}
			if kind == "queue" {
				f := newFanIn(sink())
				to, end = f, f.close
			}
			const goroutines = 1000
			longest, held := make([]time.Duration, goroutines), make([]int, goroutines)
			var all sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for g := range goroutines {
				all.Go(func() {
					for range b.N/goroutines + 1 {
						began := time.Now()
						to.Append(bench.Chunks{{Request: g}})
						took := time.Since(began)
						if longest[g] = max(longest[g], took); took > 10*time.Millisecond {
							held[g]++
						}
						time.Sleep(10 * time.Millisecond) // 100 tokens a second
					}
				})
			}
			all.Wait()
			end()
			var most time.Duration
			slow := 0
			for g, d := range longest {
				most, slow = max(most, d), slow+held[g]
			}
			b.ReportMetric(100*float64(slow)/float64(b.N), "held-%")
			b.ReportMetric(float64(most.Microseconds()), "longest-µs")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkFill makes prompts of a length, counted by a rule in this process.
func BenchmarkFill(b *testing.B) {
	for _, tokens := range []int{512, 8192, 65536} {
		b.Run(fmt.Sprint(tokens), func(b *testing.B) {
			counts := 0
			l := ruler{calls: 16, perToken: proseBytes}
			l.count = counter(&counts)
			for i := range b.N {
				if _, err := l.fit(b.Context(), "", uint64(i)*7919*104729, goOn, tokens); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(counts)/float64(b.N), "counts/op")
		})
	}
}
