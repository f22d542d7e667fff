package sched

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"velo/engine/ops"
)

// PanicError is a panic of a step.
type PanicError struct {
	Step  uint64
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("cannot go on: step %d of the engine panicked: %v", e.Step, e.Value)
}

// Run is the loop. It returns nil when ctx has ended, after everything running
// and waiting was cancelled, and an error when a step failed or panicked,
// after everything was ended with that error. It can be called once.
func (s *Scheduler) Run(ctx context.Context) error {
	s.mu.Lock()
	if s.running {
		s.mu.Unlock()
		return errors.New("cannot run a scheduler twice")
	}
	s.running = true
	s.mu.Unlock()
	if s.hybrid && s.pool.States() == 0 {
		err := errors.New("cannot run: the model was made without room for recurrent states")
		s.shutDown(Failed, err)
		return err
	}
	s.status.alive.Store(true)
	defer s.status.alive.Store(false)
	s.choose.start()
	defer s.choose.stop()
	if s.o.StepLimit > 0 {
		stop := make(chan struct{})
		defer close(stop)
		go s.watch(s.o.StepLimit, stop)
	}
	for turn := uint64(1); ctx.Err() == nil; turn++ {
		s.status.turn.Store(turn)
		worked, err := s.turn()
		s.status.turn.Store(0)
		if lost := s.lost(); lost != nil {
			err = lost
		}
		if err != nil {
			s.shutDown(Failed, err)
			return err
		}
		if worked {
			continue
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
		}
	}
	s.shutDown(Cancelled, context.Cause(ctx))
	return nil
}

// turn does one step, if there is anything to compute.
func (s *Scheduler) turn() (worked bool, err error) {
	defer func() {
		v := recover()
		if fault, ok := v.(*ops.Fault); ok { // of what happens between steps: copies of states and pages
			err = fmt.Errorf("cannot go on: step %d of the engine failed: %w", s.status.steps, fault)
		} else if v != nil {
			err = &PanicError{Step: s.status.steps, Value: v, Stack: debug.Stack()}
		}
	}()
	s.sweep()
	s.admit()
	if len(s.lanes) > 0 {
		worked, err = true, s.advance()
	}
	s.status.publish(s)
	return worked, err
}

// sweep ends what was cancelled.
func (s *Scheduler) sweep() {
	s.mu.Lock()
	left := s.left
	s.left = nil
	s.doomed = s.doomed[:0]
	for _, j := range s.lanes {
		if j.cancel {
			s.doomed = append(s.doomed, j)
		}
	}
	s.mu.Unlock()
	for _, j := range left {
		s.forget(j)
	}
	for _, j := range s.doomed {
		s.finish(j, Cancelled, "", j.why) // why does not change any more
	}
}

// forget does the bookkeeping for a job whose stream has ended.
func (s *Scheduler) forget(j *job) {
	s.blocked = false
	s.leave(j)
	s.status.count(j)
	if s.o.Observer != nil {
		s.o.Observer.Finished(j.request, j.result)
	}
}

// leave takes a job out of its group.
func (s *Scheduler) leave(j *job) {
	g := j.group
	if g == nil {
		return
	}
	if g.reader == j {
		g.reader = nil
	}
	if !j.started() {
		g.waiting--
	}
	if g.waiting == 0 {
		s.dropFork(g)
	}
}

// finish ends a running answer. What it computed goes to the prefix cache.
func (s *Scheduler) finish(j *job, f Finish, reason string, err error) {
	if i := slices.Index(s.lanes, j); i >= 0 {
		s.lanes = slices.Delete(s.lanes, i, i+1)
	}
	if j.seq != nil {
		s.keep(j, f != Failed)
	}
	j.result.Finish, j.result.Reason, j.result.Err = f, reason, err
	j.result.Generated = j.answered()
	j.result.End = time.Now()
	s.mu.Lock()
	s.close(j)
	s.mu.Unlock()
	s.forget(j)
}

// keep gives the memory of a job up, to the prefix cache if it is of use there.
func (s *Scheduler) keep(j *job, useful bool) {
	n := j.seq.Len()
	// The state of a prompt that was left half-way is not worth another's.
	useful = useful && s.o.PrefixCache && n > 0 && (!s.hybrid || n >= len(j.request.Prompt))
	if useful && s.hybrid && s.o.CheckpointBytes > 0 {
		useful = s.pool.Shape().StateBytes() <= s.o.CheckpointBytes
	}
	if useful {
		shot := j.seq.Freeze()
		n = s.whole(n)
		if n < shot.Len() && shot.Truncate(n) != nil {
			n = 0
		}
		s.cache.add(slices.Clone(j.tokens[:n]), shot, nil)
	} else {
		j.seq.Free()
	}
	j.seq = nil
}

// shutDown ends everything.
func (s *Scheduler) shutDown(f Finish, err error) {
	s.status.alive.Store(false) // whoever is told below finds it so
	s.mu.Lock()
	s.ended = true
	if f == Failed {
		s.stopped = err
	}
	queue, left := s.waiting, s.left
	s.waiting, s.left = nil, nil
	for _, j := range queue {
		j.state = admitted // no more to be ended by a cancel
	}
	s.mu.Unlock()
	for _, j := range left {
		s.forget(j)
	}
	for len(s.lanes) > 0 {
		s.finish(s.lanes[len(s.lanes)-1], f, "", err)
	}
	for _, j := range queue {
		s.finish(j, f, "", err)
	}
	// What a panic left between the queue and a lane.
	s.mu.Lock()
	rest := slices.SortedFunc(maps.Keys(s.jobs), byAge)
	s.mu.Unlock()
	for _, j := range rest {
		s.finish(j, f, "", err)
	}
	s.cache.clear()
	s.status.publish(s)
}
