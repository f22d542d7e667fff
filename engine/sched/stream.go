package sched

import (
	"sync"
	"time"

	"velo/engine/sample"
)

// Token is one token of an answer.
type Token struct {
	ID      int32
	At      time.Time        // when it was sampled
	LogProb float32          // 0 where none was asked for
	Top     []sample.LogProb // the likeliest, likeliest first
}

// Stream is one answer while it is written. Tokens wait in a ring that grows
// up to Options.Backlog, so that the loop never waits for a reader.
type Stream struct {
	scheduler *Scheduler
	job       *job

	mu     sync.Mutex
	came   sync.Cond // a token or the end
	ring   []Token   // its length is a power of two
	head   int
	size   int
	limit  int
	pushed int // tokens so far
	ended  bool
	result Result
}

func newStream(s *Scheduler, j *job) *Stream {
	stream := &Stream{scheduler: s, job: j, ring: make([]Token, 16), limit: s.o.Backlog}
	stream.came.L = &stream.mu
	return stream
}

// Next moves tokens to buf. It waits until there is at least one, or the end.
// After more was false nothing follows; the same call may still have brought
// tokens.
func (s *Stream) Next(buf []Token) (n int, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.size == 0 && !s.ended {
		s.came.Wait()
	}
	for n < len(buf) && s.size > 0 {
		buf[n] = s.ring[s.head]
		s.ring[s.head] = Token{}
		s.head = (s.head + 1) & (len(s.ring) - 1)
		s.size--
		n++
	}
	return n, s.size > 0 || !s.ended
}

// Result is how the answer ended. Before Next said that nothing more follows
// it is the zero Result.
func (s *Stream) Result() Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.result
}

// Cancel ends the answer: at once if it waits, else before the next step.
// Cancelling an answer that has ended does nothing.
func (s *Stream) Cancel() { s.scheduler.cancel(s.job, nil) }

// push adds a token, unless the reader has left too many.
func (s *Stream) push(t Token) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended { // the loop comes back from a step for which it was abandoned
		return true
	}
	if s.size == s.limit {
		return false
	}
	s.pushed++
	if s.size == len(s.ring) {
		ring := make([]Token, 2*len(s.ring))
		n := copy(ring, s.ring[s.head:])
		copy(ring[n:], s.ring[:s.head])
		s.ring, s.head = ring, 0
	}
	s.ring[(s.head+s.size)&(len(s.ring)-1)] = t
	s.size++
	if s.size == 1 {
		s.came.Broadcast()
	}
	return true
}

// count is how many tokens came so far.
func (s *Stream) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pushed
}

func (s *Stream) end(r Result) {
	s.mu.Lock()
	s.ended, s.result = true, r
	s.came.Broadcast()
	s.mu.Unlock()
}
