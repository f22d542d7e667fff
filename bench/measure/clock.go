package measure

import (
	"time"

	"velo/bench"
)

// The times of docs/definitions.md.
const (
	tick     = 100 * time.Millisecond // between two rolling samples, on session time
	settle   = 250 * time.Millisecond // decode time before the first rolling sample
	window   = time.Second            // w, the window of the rolling rate
	dip      = 50 * time.Millisecond  // shorter dips of in-flight do not end a steady state
	burst    = 100 * time.Microsecond // gaps below it in a buffered stream
	stepSize = 50 * time.Microsecond  // a larger change of the clocks' offset is a clock step
)

// farthest bounds the times that are believed: 36 years either way, so that differences of two of
// them cannot overflow. bench.Unset lies outside.
const farthest = time.Duration(1) << 60

// known tells whether a time was measured and can be calculated with.
func known(t time.Duration) bool { return t > -farthest && t < farthest }

// between is the time from a to b in seconds; Missing where either is not known.
func between(a, b time.Duration) Num {
	if !known(a) || !known(b) {
		return Missing
	}
	return seconds(b - a)
}

func seconds(d time.Duration) Num { return Num(float64(d) / 1e9) }

// gridUp is the first moment of the sampling grid, whose lines are step apart, at or after t.
func gridUp(t, step time.Duration) time.Duration {
	k := t / step
	if t%step > 0 {
		k++
	}
	return k * step
}

// bucketOf is the number of the grid cell (k·step, (k+1)·step] that t lies in.
func bucketOf(t, step time.Duration) int {
	return int(gridUp(t, step)/step) - 1
}

// window is w of the options: 1 s by default, an hour at most.
func (o Options) window() time.Duration {
	if o.Window <= 0 {
		return window
	}
	return min(o.Window, time.Hour)
}

// stampOf chooses the clock of a request's chunk times: the kernel's where every chunk has its
// stamp and all of them can be true, else the read's return for all. A kernel stamp cannot be true
// when it lies after the return of the read that it belongs to or before the request started: then
// the clock was set, noticed or not. Times that an engine told are its own clock's.
func stampOf(x *bench.Exchange) bench.StampKind {
	if x.End != nil && x.End.Stamp == bench.EmitterStamp {
		return bench.EmitterStamp
	}
	if len(x.Chunks) == 0 {
		if x.End != nil && x.End.Stamp == bench.KernelStamp && !x.End.ClockStep {
			return bench.KernelStamp
		}
		return bench.UserStamp
	}
	if x.End != nil && (x.End.ClockStep || x.End.Stamp == bench.UserStamp) {
		return bench.UserStamp
	}
	for i := range x.Chunks {
		c := &x.Chunks[i]
		if !known(c.Kernel) || known(c.User) && c.Kernel > c.User+stepSize {
			return bench.UserStamp
		}
	}
	if x.Request != nil && known(x.Request.Start) && x.Chunks[0].Kernel < x.Request.Start {
		return bench.UserStamp
	}
	return bench.KernelStamp
}
