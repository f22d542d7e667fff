// Package kv owns what a model remembers of its sequences: pages of keys and
// values, and recurrent states.
//
// Memory is made once, of equal pages of [ops.PageTokens] tokens and equal
// recurrent states. A [Sequence] holds a table of pages and, in a hybrid
// model, one state. A [Snapshot] keeps a moment of a sequence: it shares the
// pages by counting references and copies the state, so taking one costs a
// state and no pages, and prefix caching and speculation are built from it. A
// page that is shared is copied before it is written to.
//
// The package is under the Apache License 2.0, see engine/LICENSE.
package kv

import (
	"errors"
	"fmt"

	"velo/engine/ops"
)

// ErrFull means that no page or state is free. Free or preempt a sequence and
// try again.
var ErrFull = errors.New("the cache is full")

// Pool hands out pages and states of one cache. It is not safe for use by
// several goroutines at once.
type Pool struct {
	cache  ops.Cache
	refs   []int32 // references of each page
	kept   []int32 // those of them that are snapshots'
	alone  int     // pages that only snapshots hold
	total  int     // recurrent states, free or not
	pages  []int32 // free pages, a stack
	states []int32 // free states, a stack
	hybrid bool
}

// NewPool hands out pages and states numbered from 0.
func NewPool(cache ops.Cache, pages, states int) *Pool {
	p := &Pool{cache: cache, refs: make([]int32, pages), kept: make([]int32, pages), hybrid: cache.Shape().Recurrent > 0}
	for i := pages - 1; i >= 0; i-- {
		p.pages = append(p.pages, int32(i))
	}
	if p.hybrid {
		p.total = states
		for i := states - 1; i >= 0; i-- {
			p.states = append(p.states, int32(i))
		}
	}
	return p
}

// FreePages is how many pages nobody holds.
func (p *Pool) FreePages() int { return len(p.pages) }

// FreeStates is how many recurrent states nobody holds; 0 for a model that has none.
func (p *Pool) FreeStates() int { return len(p.states) }

// Pages is how many pages there are.
func (p *Pool) Pages() int { return len(p.refs) }

// States is how many recurrent states there are; 0 for a model that has none.
func (p *Pool) States() int { return p.total }

// KeptPages is how many pages only snapshots hold: freeing all snapshots would
// make so many more free.
func (p *Pool) KeptPages() int { return p.alone }

// Shape is what the cache keeps of each token and each sequence.
func (p *Pool) Shape() ops.CacheShape { return p.cache.Shape() }

// count changes how many references a page has, and how many of them are
// snapshots'.
func (p *Pool) count(page, refs, kept int32) {
	if p.refs[page] > 0 && p.refs[page] == p.kept[page] {
		p.alone--
	}
	p.refs[page] += refs
	p.kept[page] += kept
	if p.refs[page] > 0 && p.refs[page] == p.kept[page] {
		p.alone++
	}
}

func (p *Pool) takePage() (int32, bool) {
	n := len(p.pages)
	if n == 0 {
		return 0, false
	}
	page := p.pages[n-1]
	p.pages = p.pages[:n-1]
	p.refs[page] = 1
	return page, true
}

// dropPage gives a reference of a sequence back, and of a snapshot if kept is 1.
func (p *Pool) dropPage(page, kept int32) {
	p.count(page, -1, -kept)
	switch {
	case p.refs[page] == 0:
		p.pages = append(p.pages, page)
	case p.refs[page] < 0:
		panic(fmt.Sprintf("kv: page %d was freed twice", page))
	}
}

// takeState gives a state with arbitrary content, −1 for a model without.
func (p *Pool) takeState() (int32, bool) {
	if !p.hybrid {
		return -1, true
	}
	n := len(p.states)
	if n == 0 {
		return 0, false
	}
	slot := p.states[n-1]
	p.states = p.states[:n-1]
	return slot, true
}

func (p *Pool) dropState(slot int32) {
	if slot >= 0 {
		p.states = append(p.states, slot)
	}
}

// NewSequence makes an empty sequence.
func (p *Pool) NewSequence() (*Sequence, error) {
	slot, ok := p.takeState()
	if !ok {
		return nil, fmt.Errorf("cannot start a sequence: no recurrent state is free: %w", ErrFull)
	}
	if slot >= 0 {
		p.cache.ClearState(slot)
	}
	return &Sequence{pool: p, state: slot}, nil
}

// Sequence is the memory of one text.
type Sequence struct {
	pool  *Pool
	pages []int32
	len   int
	state int32
	freed bool
}

// Len is how many tokens are remembered.
func (s *Sequence) Len() int { return s.len }

// Segment describes the next rows tokens of the sequence, at row of a batch.
// Room for them must have been made with Reserve.
func (s *Sequence) Segment(row, rows int) ops.Segment {
	return ops.Segment{Row: row, Rows: rows, Past: s.len, Pages: s.pages, State: s.state}
}

// Reserve makes room for n more tokens, so that the next n positions may be
// written. On ErrFull nothing has changed.
func (s *Sequence) Reserve(n int) error {
	need := pagesFor(s.len + n)
	p := s.pool
	// A partly filled last page that a snapshot also holds is copied before
	// anything is appended to it.
	shared := -1
	if i := s.len / ops.PageTokens; n > 0 && i < len(s.pages) && p.refs[s.pages[i]] > 1 {
		shared = i
	}
	more := max(need-len(s.pages), 0)
	if shared >= 0 {
		more++
	}
	if more > len(p.pages) {
		return fmt.Errorf("cannot make room for %d tokens after %d: %d more pages of %d tokens are needed and %d are free: %w",
			n, s.len, more, ops.PageTokens, len(p.pages), ErrFull)
	}
	if shared >= 0 {
		page, _ := p.takePage()
		p.cache.CopyPage(page, s.pages[shared])
		p.dropPage(s.pages[shared], 0)
		s.pages[shared] = page
	}
	for len(s.pages) < need {
		page, _ := p.takePage()
		s.pages = append(s.pages, page)
	}
	return nil
}

// Advance counts n tokens as remembered, after a step that wrote them.
func (s *Sequence) Advance(n int) {
	if pagesFor(s.len+n) > len(s.pages) {
		panic("kv: advance without reserve")
	}
	s.len += n
}

// Truncate forgets all tokens from position n on. A recurrent state cannot
// run backwards: a sequence that has one goes back with Rewind.
func (s *Sequence) Truncate(n int) error {
	if n < 0 || n > s.len {
		return fmt.Errorf("cannot cut a sequence of %d tokens to %d", s.len, n)
	}
	if s.state >= 0 && n != s.len {
		return fmt.Errorf("cannot cut a sequence of %d tokens to %d: its recurrent state does not run backwards; take a snapshot and rewind to it", s.len, n)
	}
	s.cut(n)
	return nil
}

func (s *Sequence) cut(n int) {
	keep := pagesFor(n)
	for _, page := range s.pages[min(keep, len(s.pages)):] {
		s.pool.dropPage(page, 0)
	}
	s.pages = s.pages[:min(keep, len(s.pages))]
	s.len = n
}

// Free gives pages and state back. A second call does nothing.
func (s *Sequence) Free() {
	if s.freed {
		return
	}
	s.freed = true
	s.cut(0)
	s.pool.dropState(s.state)
	s.state = -1
}

func pagesFor(tokens int) int { return (tokens + ops.PageTokens - 1) / ops.PageTokens }
