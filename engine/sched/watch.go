package sched

import (
	"maps"
	"slices"
	"time"

	"velo/engine/model"
)

// HangError is a step that does not end.
type HangError = model.HangError

// watch looks at the turn of the loop that is under way, and ends everything if it does not end
// ([model.Model.Watch]). It returns with stop.
func (s *Scheduler) watch(limit time.Duration, stop <-chan struct{}) {
	err := s.model.Watch(limit, &s.status, stop)
	if err == nil {
		return
	}
	err.Step = s.Status().Steps // turns without a step have a number too
	s.abandon(err)
	if s.o.Hung != nil {
		s.o.Hung(err)
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
