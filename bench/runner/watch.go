package runner

import (
	"math"
	"runtime/metrics"
	"time"

	"velo/bench"
)

// sampleEvery is the time between two samples of the measuring process.
const sampleEvery = time.Second

// The runtime's own numbers (package runtime/metrics).
const (
	pausesMetric = "/sched/pauses/total/gc:seconds"
	heapMetric   = "/memory/classes/heap/objects:bytes"
)

// watchSelf records a sample of this process now, each second, and when the function that it returns is
// called, so that a run of any length has two.
func (r *run) watchSelf() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	var pauses pauses
	pauses.read() // those before the run do not count for its longest
	r.events.Append(r.sample(&pauses))
	go func() {
		defer close(ended)
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				r.events.Append(r.sample(&pauses))
			}
		}
	}()
	return func() {
		close(end)
		<-ended
		r.events.Append(r.sample(&pauses))
	}
}

func (r *run) sample(p *pauses) *bench.Sample {
	s := &bench.Sample{CPU: processCPU(), Readers: r.o.Client.Readers(), InFlight: r.o.Client.InFlight()}
	s.GCPauses, s.GCPauseMax, s.GCPauseP99, s.Heap = p.read()
	offset, half := r.o.Client.Offset()
	s.Offset, s.OffsetError = offset-time.Duration(r.o.Clock.Anchor().UnixNano()), half
	s.At = r.o.Clock.Now()
	return s
}

// pauses follows the histogram of stop-the-world pauses.
type pauses struct {
	samples [2]metrics.Sample
	before  []uint64
}

// read returns the number of pauses in the process's life, the longest since the last call, and the
// 99th percentile of all (both as the upper bound of the histogram's bucket), and the heap in bytes.
func (p *pauses) read() (number int, longest, p99 time.Duration, heap int64) {
	p.samples[0].Name, p.samples[1].Name = pausesMetric, heapMetric
	metrics.Read(p.samples[:])
	if p.samples[1].Value.Kind() == metrics.KindUint64 {
		heap = int64(p.samples[1].Value.Uint64())
	}
	if p.samples[0].Value.Kind() != metrics.KindFloat64Histogram {
		return 0, 0, 0, heap
	}
	h := p.samples[0].Value.Float64Histogram()
	var total uint64
	for i, n := range h.Counts {
		total += n
		if i >= len(p.before) && n > 0 || i < len(p.before) && n > p.before[i] {
			longest = bound(h.Buckets, i)
		}
	}
	var below uint64
	for i, n := range h.Counts {
		below += n
		if n > 0 && float64(below) >= 0.99*float64(total) {
			p99 = bound(h.Buckets, i)
			break
		}
	}
	p.before = append(p.before[:0], h.Counts...)
	return int(total), longest, p99, heap
}

// bound is the upper end of bucket i, or its lower end where there is no upper one.
func bound(buckets []float64, i int) time.Duration {
	v := buckets[i+1]
	if math.IsInf(v, 0) {
		v = buckets[i]
	}
	if math.IsInf(v, 0) || v < 0 {
		return 0
	}
	return time.Duration(v * float64(time.Second))
}
