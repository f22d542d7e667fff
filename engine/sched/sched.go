package sched

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"velo/engine/kv"
	"velo/engine/model"
	"velo/engine/ops"
	"velo/engine/sample"
)

// Options size a scheduler.
type Options struct {
	Lanes   int // answers written at a time, 8 if 0; at most the model's outputs
	Context int // tokens of one request, prompt and answer; all that the model remembers if 0

	// StepTokens is the most rows of a step, running answers and chunks of
	// prompts together; 512 if 0, at least Lanes, at most the model's rows. It
	// bounds how long a running answer waits for its next token.
	StepTokens int

	// StepTime is how long a step may take, as far as the rows of prompts in it
	// decide: they are as many as recent steps say will fit, StepTokens at
	// most. It bounds the gap of running answers, and the wait of a request
	// that comes in the middle of a step, on machines of any speed. 0 = no bound.
	StepTime time.Duration

	Waiting int // most answers waiting, 256 if 0, none if negative
	Backlog int // tokens that a slow reader may leave, 65536 if 0

	// PrefixCache keeps what was computed for later requests. CheckpointBytes
	// bounds the recurrent states (and logits) that it keeps; 0 leaves the
	// bound to the model's memory. Pages need none: those that only the cache
	// holds are given back when a request needs them.
	PrefixCache     bool
	CheckpointBytes int64

	// LoopWindow is how many last tokens must be LoopRepeats or more repeats
	// of one period for an answer to be ended as a loop: 300 and 3 if 0;
	// LoopWindow < 0 never ends one.
	LoopWindow, LoopRepeats int

	// StepLimit is how long a step may take before it is taken for one that never ends (and at least 20
	// times the longest of the last ones): then every answer ends with a *HangError, and Hung is told, on
	// another goroutine than the loop's, which does not come back. 0 = no limit.
	StepLimit time.Duration
	Hung      func(err error)

	PanicSteps int // fault injection: that step panics, 0 = none
	HangSteps  int // fault injection: that step never ends, 0 = none
	Observer   Observer
}

// Observer is told what happened, on the loop. It must not block.
type Observer interface {
	Finished(r *Request, res Result) // once an answer
	Stepped(Step)
}

// Step is one turn of the loop.
type Step struct {
	Rows    int // Prefill + Decode
	Prefill int // of prompts, and of answers computed again after a preemption
	Decode  int // one a running answer
	Took    time.Duration
}

// Why a request is not taken.
var (
	ErrBusy    = errors.New("cannot take the request: too many are waiting; try again in a few seconds")
	ErrStopped = errors.New("cannot take the request: the engine has stopped or is stopping")
)

// Scheduler runs requests on a model.
type Scheduler struct {
	o      Options
	model  *model.Model
	pool   *kv.Pool
	hybrid bool
	vocab  int

	wake chan struct{} // something for the loop to look at

	mu      sync.Mutex
	waiting []*job            // by age
	left    []*job            // ended while waiting, not yet told the observer
	jobs    map[*job]struct{} // answers that have not ended, wherever they are
	orders  uint64
	running bool  // Run was called
	closed  bool  // no more requests
	stopped error // why Run returned, or would
	// abandoned: everything was ended while the loop was in a step that did not end.
	abandoned bool
	ended     bool
	idle      chan struct{} // closed when closed and nothing is in flight

	// The loop's own.
	lanes   []*job // by age
	cache   *cache
	forks   []*group
	step    *model.Step
	placed  []*job
	doomed  []*job
	picks   []pick
	choose  *chooser
	blocked bool // nothing was released since the first in the queue found no room
	turns   int  // rotates who is first in sharing out rows
	pace    pace
	status  board
}

// New makes a scheduler. From then on model, pool and sequences belong to it.
func New(m *model.Model, o Options) *Scheduler {
	if o.Lanes <= 0 {
		o.Lanes = 8
	}
	o.Lanes = min(o.Lanes, m.Outputs(), m.Rows())
	if o.StepTokens <= 0 {
		o.StepTokens = 512
	}
	o.StepTokens = min(max(o.StepTokens, o.Lanes), m.Rows())
	all := m.Pool().Pages() * ops.PageTokens
	if o.Context <= 0 || o.Context > all {
		o.Context = all
	}
	switch {
	case o.Waiting == 0:
		o.Waiting = 256
	case o.Waiting < 0:
		o.Waiting = 0
	}
	if o.Backlog <= 0 {
		o.Backlog = 65536
	}
	if o.LoopWindow == 0 {
		o.LoopWindow = 300
	}
	if o.LoopRepeats <= 0 {
		o.LoopRepeats = 3
	}
	s := &Scheduler{o: o, model: m, pool: m.Pool(), vocab: m.Config.Vocab, wake: make(chan struct{}, 1), idle: make(chan struct{}), jobs: map[*job]struct{}{}}
	s.cache = newCache(s.pool, o.CheckpointBytes)
	s.hybrid = s.cache.hybrid
	s.step = m.NewStep()
	s.choose = newChooser(s.vocab, o.Lanes)
	s.status.publish(s)
	return s
}

// Options are those in force, with defaults filled in and cut to what the
// model can do.
func (s *Scheduler) Options() Options { return s.o }

// job is one answer.
type job struct {
	request *Request
	copy    int
	order   uint64 // age
	group   *group // of the copies of a request, nil for one
	stream  *Stream
	detach  func() bool // stops listening to the request's context
	max     int         // tokens of the answer

	// Guarded by Scheduler.mu.
	state  jobState
	cancel bool
	why    error

	// The loop's own, made when the answer is first admitted.
	tokens  []int32 // prompt and answer
	seq     *kv.Sequence
	chosen  *sample.Sequence
	guide   Guide
	watch   func(id int32) bool
	mask    sample.Mask // a guide's mask without the ids of End
	repeats *repeats
	tops    []sample.LogProb // memory for the lists of likeliest tokens
	kept    []float32        // logits of the last token, from a checkpoint
	cuts    []int            // boundaries still to come
	take    int              // rows in the step being built
	output  bool             // the step being built reaches the last token
	result  Result
}

type jobState int

const (
	waiting jobState = iota
	admitted
	over
)

// generated is how many tokens were chosen.
func (j *job) generated() int { return len(j.tokens) - len(j.request.Prompt) }

// started tells whether the answer was admitted before.
func (j *job) started() bool { return j.tokens != nil }

// group is the copies of one request. One of them reads the prompt and the
// others wait for it.
type group struct {
	reader  *job // reads the prompt now
	fork    *kv.Snapshot
	logits  []float32 // what follows the prompt
	waiting int       // copies that were not admitted yet
}

// Submit queues a request and gives one stream a copy. When ctx ends, so do
// they, before the next step. The error is ErrBusy, ErrStopped, a
// *TooLongError, or says what is wrong with the request.
func (s *Scheduler) Submit(ctx context.Context, r *Request) ([]*Stream, error) {
	if err := r.check(s.vocab, s.o.Context); err != nil {
		return nil, err
	}
	n := r.copies()
	if n > s.o.Lanes+s.o.Waiting {
		return nil, fmt.Errorf("cannot answer a request %d times: %d answers at most may run and wait", n, s.o.Lanes+s.o.Waiting)
	}
	now := time.Now()
	longest := s.o.Context - len(r.Prompt)
	if r.MaxTokens > 0 {
		longest = min(longest, r.MaxTokens)
	}
	var g *group
	if n > 1 {
		g = &group{waiting: n}
	}
	jobs, streams := make([]*job, n), make([]*Stream, n)
	for i := range jobs {
		j := &job{request: r, copy: i, group: g, max: longest, result: Result{Prompt: len(r.Prompt), Submitted: now}}
		j.stream = newStream(s, j)
		jobs[i], streams[i] = j, j.stream
	}
	s.mu.Lock()
	switch {
	case s.closed || s.ended:
		err := ErrStopped
		if s.stopped != nil {
			err = fmt.Errorf("%w: %w", ErrStopped, s.stopped)
		}
		s.mu.Unlock()
		return nil, err
	case len(s.jobs)+n > s.o.Lanes+s.o.Waiting:
		s.status.rejected.Add(1)
		s.mu.Unlock()
		return nil, ErrBusy
	}
	for _, j := range jobs {
		s.orders++
		j.order = s.orders
		s.jobs[j] = struct{}{}
		// AfterFunc runs the function on a goroutine of its own, which waits
		// for the lock held here.
		j.detach = context.AfterFunc(ctx, func() { s.cancel(j, context.Cause(ctx)) })
	}
	s.waiting = append(s.waiting, jobs...)
	s.mu.Unlock()
	s.nudge()
	return streams, nil
}

// nudge makes the loop look around.
func (s *Scheduler) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// cancel ends a job: here if it waits, on the loop if it runs.
func (s *Scheduler) cancel(j *job, why error) {
	s.mu.Lock()
	if j.state == over || j.cancel {
		s.mu.Unlock()
		return
	}
	j.cancel, j.why = true, why
	if j.state == waiting {
		for i, other := range s.waiting {
			if other == j {
				s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
				break
			}
		}
		j.result.Finish, j.result.Err, j.result.End = Cancelled, why, time.Now()
		j.result.Generated = max(0, j.answered())
		s.close(j)
		s.left = append(s.left, j)
	}
	s.mu.Unlock()
	s.nudge()
}

// answered is how many tokens were generated, also of a job that never began.
func (j *job) answered() int {
	if !j.started() {
		return 0
	}
	return j.generated()
}

// close ends the stream of a job, unless it was abandoned. The lock is held.
func (s *Scheduler) close(j *job) {
	if j.state == over {
		return
	}
	j.state = over
	j.detach()
	j.stream.end(j.result)
	delete(s.jobs, j)
	if s.closed && len(s.jobs) == 0 {
		s.done()
	}
}

// done tells those who drain. The lock is held.
func (s *Scheduler) done() {
	select {
	case <-s.idle:
	default:
		close(s.idle)
	}
}

// Drain refuses new requests and waits until all that were taken have ended.
// The error is the context's if it ended before that.
func (s *Scheduler) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	if len(s.jobs) == 0 {
		s.done()
	}
	s.mu.Unlock()
	select {
	case <-s.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("cannot wait for the running answers: %w", context.Cause(ctx))
	}
}
