package model

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// HangError is a step that does not end: a kernel that never does, a driver that does not come back.
// What the device was given cannot be taken back, so the process has to end.
type HangError struct {
	Step    uint64
	After   time.Duration // that it was waited for
	Longest time.Duration // of the last steps before it, 0 if there were none
	Last    string        // what the device was given last, "" if that is not known
}

func (e *HangError) Error() string {
	s := fmt.Sprintf("cannot go on: step %d of the engine has not ended after %v", e.Step, e.After.Round(100*time.Millisecond))
	if e.Longest > 0 {
		s += fmt.Sprintf(", where the longest of the last steps took %v", e.Longest.Round(100*time.Microsecond))
	}
	if e.Last != "" {
		s += "; the device was given last: " + e.Last
	}
	return s
}

const (
	// A step that may be long is one that takes so many times the longest of the last ones.
	farLonger = 20
	// What the host makes once, as a graph of launches, may take so many times the limit.
	preparingLimits = 10
)

// Turns counts the steps of a loop, for whoever watches it from another goroutine. The zero value has
// none.
type Turns struct {
	current atomic.Uint64 // the step that is under way, 0 between them
	step    uint64        // the loop's own
	began   time.Time

	mu   sync.Mutex
	took [256]time.Duration
	n    int
}

// Begin is the beginning of a step, End its end. Both are the loop's.
func (t *Turns) Begin() {
	t.step++
	t.began = time.Now()
	t.current.Store(t.step)
}

// End is the end of the step that Begin began.
func (t *Turns) End() {
	took := time.Since(t.began)
	t.mu.Lock()
	t.took[t.n%len(t.took)] = took
	t.n++
	t.mu.Unlock()
	t.current.Store(0)
}

// Current is the step that is under way, 0 between them.
func (t *Turns) Current() uint64 { return t.current.Load() }

// Longest is the longest of the last 256 steps, 0 if there were none.
func (t *Turns) Longest() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Max(t.took[:])
}

// Steps is what a watch sees of a loop. Its methods are called from another goroutine.
type Steps interface {
	Current() uint64        // counts the steps up; 0 between them
	Longest() time.Duration // of the last steps
}

// Watch looks at the steps of a loop on the model until one does not end: after limit, or farLonger times
// the longest of the last ones, if that is more. It is nil once stop is closed.
func (m *Model) Watch(limit time.Duration, steps Steps, stop <-chan struct{}) *HangError {
	every := min(max(limit/20, time.Millisecond), time.Second)
	tick := time.NewTicker(every)
	defer tick.Stop()
	var step uint64
	var waited, prepared time.Duration
	last := time.Now()
	for {
		select {
		case <-stop:
			return nil
		case <-tick.C:
		}
		now := time.Now()
		// A process that was stopped, or did not get a processor, is not a device that hangs.
		passed := min(now.Sub(last), 2*every)
		last = now
		current := steps.Current()
		if current == 0 || current != step {
			step, waited, prepared = current, 0, 0
			continue
		}
		what, preparing := m.Doing()
		if preparing && prepared < preparingLimits*limit {
			prepared += passed
			continue
		}
		longest := steps.Longest()
		if waited += passed; waited < max(limit, farLonger*longest) {
			continue
		}
		return &HangError{Step: step, After: waited + prepared, Longest: longest, Last: what}
	}
}
