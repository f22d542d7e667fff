package ui

import (
	"sync"
	"sync/atomic"
	"time"

	"velo/ui/thread"
)

// ticker is the one clock of the window. It prepares what is shown on a goroutine of its own and
// queues at most one function on the UI thread: while that one waits, nothing more is prepared, so a
// busy window never lags behind.
type ticker struct {
	thread  *thread.Thread
	prepare func(visible string) (show func(), next time.Duration)

	queued  atomic.Bool
	missed  atomic.Bool // woken while queued
	visible atomic.Value
	wakes   chan struct{}
	done    chan struct{}
	once    sync.Once
	ended   sync.WaitGroup
}

func newTicker(t *thread.Thread, prepare func(string) (func(), time.Duration)) *ticker {
	k := &ticker{thread: t, prepare: prepare, wakes: make(chan struct{}, 1), done: make(chan struct{})}
	k.visible.Store("")
	return k
}

// view says which page is in view.
func (k *ticker) view(id string) { k.visible.Store(id) }

// wake asks for one round soon. It never blocks and may be called from anywhere.
func (k *ticker) wake() {
	select {
	case k.wakes <- struct{}{}:
	default:
	}
}

// leastRest is what the goroutine that prepares rests at least between two rounds.
const leastRest = 10 * time.Millisecond

// round prepares and queues once; it returns the time from its beginning to that of the next one, 0 = not before
// a wake.
func (k *ticker) round() time.Duration {
	if k.queued.Load() {
		k.missed.Store(true)
		return 50 * time.Millisecond
	}
	show, next := k.prepare(k.visible.Load().(string))
	k.queued.Store(true)
	k.thread.Do(func() {
		show()
		k.queued.Store(false)
		if k.missed.Swap(false) {
			k.wake()
		}
	})
	return next
}

func (k *ticker) start() {
	k.ended.Add(1)
	go func() {
		defer k.ended.Done()
		timer := time.NewTimer(time.Hour)
		timer.Stop()
		for {
			select {
			case <-k.done:
				timer.Stop()
				return
			case <-k.wakes:
			case <-timer.C:
			}
			began := time.Now()
			if next := k.round(); next > 0 {
				timer.Reset(max(next-time.Since(began), leastRest))
			} else {
				timer.Stop()
			}
		}
	}()
}

// stop ends the clock and waits for a round that is under way.
func (k *ticker) stop() {
	k.once.Do(func() { close(k.done) })
	k.ended.Wait()
}
