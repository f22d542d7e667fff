package host

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	watchEvery = 50 * time.Millisecond
	// How long memory must be low: a loader's or another program's short need
	// is not worth ending every request.
	watchPatience = 400 * time.Millisecond
)

// Watchdog watches the memory that is available. A machine whose memory is the
// GPU's as well does not survive running out of it; ending the engine in time
// is the better way.
type Watchdog struct {
	least atomic.Int64
	stop  chan struct{}
	once  sync.Once
	done  chan struct{}
}

// Watch calls low once, with what was left, when less than limit bytes were
// available for 400 ms without a break. It ends then, or with Stop. A reading
// that fails counts as no news.
func Watch(limit int64, low func(available int64)) *Watchdog {
	return watch(limit, low, func() (int64, error) {
		m, err := ReadMemory()
		return m.Available, err
	})
}

func watch(limit int64, low func(int64), read func() (int64, error)) *Watchdog {
	w := &Watchdog{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		var since time.Time // when it was first seen low; zero = it is not
		for {
			if n, err := read(); err == nil {
				if least := w.least.Load(); least == 0 || n < least {
					w.least.Store(n)
				}
				switch now := time.Now(); {
				case n >= limit:
					since = time.Time{}
				case since.IsZero():
					since = now
				case now.Sub(since) >= watchPatience:
					low(n)
					return
				}
			}
			select {
			case <-tick.C:
			case <-w.stop:
				return
			}
		}
	}()
	return w
}

// Least is the least available memory seen so far, bytes; 0 before the first
// reading and for a nil Watchdog.
func (w *Watchdog) Least() int64 {
	if w == nil {
		return 0
	}
	return w.least.Load()
}

// Stop ends the watch and waits for it, but must not be called by low.
func (w *Watchdog) Stop() {
	if w == nil {
		return
	}
	w.once.Do(func() { close(w.stop) })
	<-w.done
}
