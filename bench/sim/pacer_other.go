//go:build !linux

package sim

import "time"

// bell is a sleep that another thread can end, as exact as the timers of Go.
type bell struct{ rung chan struct{} }

func newBell() (*bell, error) { return &bell{make(chan struct{}, 1)}, nil }

// wait sleeps for d, or until somebody rings.
func (b *bell) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-b.rung:
	case <-timer.C:
	}
}

func (b *bell) ring() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

func (b *bell) close() {}

func sharpenTimer() {}
