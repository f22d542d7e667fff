package sched

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Status is what the scheduler is doing. Counters are since the start.
type Status struct {
	Alive bool // Run runs
	// Failure is why it does not run any more, where that was not asked for.
	Failure string
	Busy    bool // answers are running

	Running, Waiting, Lanes int

	PagesUsed   int // held by running answers
	PagesCached int // held by the prefix cache alone; given back when needed
	Pages       int
	StatesUsed  int // recurrent states of a hybrid model, running answers and checkpoints
	States      int

	Checkpoints     int   // texts in the prefix cache
	CheckpointBytes int64 // of their recurrent states and logits
	CachedTokens    int64 // tokens of different prefixes in the prefix cache now

	Steps     uint64
	Preempted uint64
	Rejected  uint64 // requests refused with ErrBusy
	Hits      uint64 // answers that began from a cached prefix or another copy
	Misses    uint64 // with the prefix cache on
	Evicted   uint64 // texts of the prefix cache cut or dropped for room

	PromptTokens, ReusedTokens, GeneratedTokens uint64 // of answers that have ended

	LastStep         time.Time     // its end; while Busy also its beginning
	StepP50, StepP90 time.Duration // over the last 256 steps
}

// board is what Status reads. The loop publishes it once a turn.
type board struct {
	alive    atomic.Bool
	turn     atomic.Uint64 // that the loop is in, 0 between them
	rejected atomic.Uint64

	// The loop's own.
	steps, preempted          uint64
	hits, misses              uint64
	prompt, reused, generated uint64

	mu    sync.Mutex
	shown Status
	ring  [256]time.Duration
	n     int
}

// Status can be asked for from any goroutine and costs microseconds.
func (s *Scheduler) Status() Status {
	b := &s.status
	b.mu.Lock()
	shown := b.shown
	n := min(b.n, len(b.ring))
	took := b.ring
	b.mu.Unlock()
	shown.Alive, shown.Rejected = b.alive.Load(), b.rejected.Load()
	s.mu.Lock()
	shown.Waiting = len(s.waiting)
	if s.stopped != nil {
		shown.Failure = s.stopped.Error()
	}
	s.mu.Unlock()
	steps := took[:n]
	slices.Sort(steps)
	shown.StepP50, shown.StepP90 = quantile(steps, 0.5), quantile(steps, 0.9)
	return shown
}

// quantile interpolates between order statistics (Hyndman–Fan 7).
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + time.Duration((at-float64(i))*float64(sorted[i+1]-sorted[i]))
}

func (b *board) begin(now time.Time) {
	b.steps++
	b.mu.Lock()
	b.shown.Busy, b.shown.Steps, b.shown.LastStep = true, b.steps, now
	b.mu.Unlock()
}

func (b *board) end(now time.Time, step Step) {
	b.mu.Lock()
	b.ring[b.n%len(b.ring)] = step.Took
	b.n++
	b.shown.LastStep = now
	b.mu.Unlock()
}

// Current is the turn that the loop is in, 0 between them.
func (b *board) Current() uint64 { return b.turn.Load() }

// Longest is the longest of the last 256 steps, 0 if there were none.
func (b *board) Longest() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Max(b.ring[:])
}

// count adds up an answer that has ended.
func (b *board) count(j *job) {
	b.prompt += uint64(j.result.Prompt)
	b.reused += uint64(j.result.Cached)
	b.generated += uint64(j.result.Generated)
}

// publish shows where the loop stands.
func (b *board) publish(s *Scheduler) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := &b.shown
	v.Running, v.Lanes, v.Busy = len(s.lanes), s.o.Lanes, len(s.lanes) > 0
	v.Pages, v.PagesCached = s.pool.Pages(), s.pool.KeptPages()
	v.PagesUsed = v.Pages - s.pool.FreePages() - v.PagesCached
	v.States = s.pool.States()
	v.StatesUsed = v.States - s.pool.FreeStates()
	v.Checkpoints, v.CheckpointBytes, v.CachedTokens = s.cache.recent.Len(), s.cache.bytes, int64(s.cache.tree.held)
	v.Evicted = s.cache.evicted
	v.Preempted, v.Hits, v.Misses = b.preempted, b.hits, b.misses
	v.PromptTokens, v.ReusedTokens, v.GeneratedTokens = b.prompt, b.reused, b.generated
}
