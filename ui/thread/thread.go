// Package thread keeps slow work off the UI thread and widgets off every other one. The window has
// one Thread; a page starts work with it and is called back where it may touch its widgets.
package thread

import (
	"sync"
	"sync/atomic"
)

// Thread leads back to the UI thread.
type Thread struct {
	do     func(func())
	wg     sync.WaitGroup
	closed atomic.Bool
}

// New returns a Thread over do, which queues a function on the UI thread and returns (fyne.Do).
func New(do func(func())) *Thread { return &Thread{do: do} }

// Do queues f on the UI thread. After Close it does nothing: Fyne would run f on the caller's
// goroutine then.
func (t *Thread) Do(f func()) {
	if t.closed.Load() {
		return
	}
	t.do(func() {
		if !t.closed.Load() {
			f()
		}
	})
}

// Work runs work on a goroutine of its own, and what it returns, unless nil, on the UI thread.
func (t *Thread) Work(work func() (then func())) {
	if t.closed.Load() {
		return
	}
	t.wg.Add(1)
	go func() {
		defer t.wg.Done()
		if then := work(); then != nil {
			t.Do(then)
		}
	}()
}

// Wait returns when all work has run; what it queued may still be waiting.
func (t *Thread) Wait() { t.wg.Wait() }

// Close lets nothing more through to the UI thread.
func (t *Thread) Close() { t.closed.Store(true) }
