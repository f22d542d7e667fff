package sched

import (
	"fmt"
	"maps"
	"slices"
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

// watch looks at the turn of the loop that is under way, and ends everything if it does not end: after
// limit, or farLonger times the longest of the last steps, if that is more. It returns with stop.
func (s *Scheduler) watch(limit time.Duration, stop <-chan struct{}) {
	every := min(max(limit/20, time.Millisecond), time.Second)
	tick := time.NewTicker(every)
	defer tick.Stop()
	var turn uint64
	var waited, prepared time.Duration
	last := time.Now()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		now := time.Now()
		// A process that was stopped, or did not get a processor, is not a device that hangs.
		passed := min(now.Sub(last), 2*every)
		last = now
		current := s.status.turn.Load()
		if current == 0 || current != turn {
			turn, waited, prepared = current, 0, 0
			continue
		}
		what, preparing := s.model.Doing()
		if preparing && prepared < preparingLimits*limit {
			prepared += passed
			continue
		}
		longest := s.status.longest()
		if waited += passed; waited < max(limit, farLonger*longest) {
			continue
		}
		err := &HangError{Step: s.Status().Steps, After: waited + prepared, Longest: longest, Last: what}
		s.abandon(err)
		if s.o.Hung != nil {
			s.o.Hung(err)
		}
		return
	}
}

// abandon ends every answer with an error while the loop is in a step that does not end. If it ever comes
// back, it finds itself stopped.
func (s *Scheduler) abandon(err error) {
	s.status.alive.Store(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended, s.stopped, s.abandoned = true, err, true
	s.waiting = nil
	now := time.Now()
	for _, j := range slices.SortedFunc(maps.Keys(s.jobs), byAge) {
		j.state = over
		j.detach()
		// Its own result belongs to the loop.
		j.stream.end(Result{Finish: Failed, Err: err, Prompt: len(j.request.Prompt), Generated: j.stream.count(), Submitted: j.result.Submitted, End: now})
		delete(s.jobs, j)
	}
	s.done()
}

// lost tells whether the loop was given up while it was in a step, and why.
func (s *Scheduler) lost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.abandoned {
		return s.stopped
	}
	return nil
}
