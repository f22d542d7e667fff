package client

import (
	"sync"
	"time"

	"velo/bench"
)

// stepBound is how far the real-time clock may move against the monotonic one before it counts as set.
// Both tick at the same slewed rate, so their offset is constant but for steps.
const stepBound = 50 * time.Microsecond

// offsetSample is the real-time clock minus session time, taken at a time.
type offsetSample struct {
	at     time.Duration
	offset time.Duration
	half   time.Duration // half the width of the bracket it was taken in
}

// sampleOffset brackets a reading of the real-time clock by two of the monotonic one, a few times, and
// keeps the narrowest.
func sampleOffset(clock bench.Clock) offsetSample {
	var best offsetSample
	for i := range 20 {
		before := clock.Now()
		real := time.Now().UnixNano()
		after := clock.Now()
		half := (after - before + 1) / 2
		if i == 0 || half < best.half {
			best = offsetSample{after, time.Duration(real) - before - half, half}
		}
		if best.half <= time.Microsecond || i >= 4 && best.half <= 10*time.Microsecond {
			break
		}
	}
	return best
}

// A watch follows the offset of the two clocks, once a second while requests run and at each one's
// end, to turn kernel stamps into session time and to notice when the wall clock is set.
type watch struct {
	clock  bench.Clock
	sample func() offsetSample
	every  time.Duration

	mu     sync.Mutex
	last   offsetSample
	steps  int // seen so far
	active int // requests that run
	stop   chan struct{}
}

func newWatch(clock bench.Clock) *watch {
	w := &watch{clock: clock, every: time.Second}
	w.sample = func() offsetSample { return sampleOffset(clock) }
	return w
}

// look takes a sample and compares it with the one before.
func (w *watch) look() offsetSample {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.update()
	return w.last
}

func (w *watch) update() {
	s := w.sample()
	if w.last.at != 0 {
		change := (s.offset - w.last.offset).Abs()
		if change > stepBound+s.half+w.last.half {
			w.steps++
		} else if s.half > w.last.half {
			s.offset, s.half = w.last.offset, w.last.half // the same offset, known better
		}
	}
	w.last = s
}

// begin says that a request starts. It returns the offset to use for all its stamps, and the number of
// steps seen before it.
func (w *watch) begin() (offset time.Duration, steps int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active++
	if w.stop == nil {
		w.stop = make(chan struct{})
		go w.run(w.stop)
	}
	if w.last.at == 0 || w.clock.Now()-w.last.at > w.every {
		w.update()
	}
	return w.last.offset, w.steps
}

// end says that a request ended, and tells whether the wall clock was set while it ran.
func (w *watch) end(steps int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.update()
	w.active--
	if w.active == 0 {
		close(w.stop)
		w.stop = nil
	}
	return w.steps != steps
}

func (w *watch) run(stop chan struct{}) {
	t := time.NewTicker(w.every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			w.look()
		case <-stop:
			return
		}
	}
}
