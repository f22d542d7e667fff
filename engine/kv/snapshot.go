package kv

import "fmt"

// Snapshot is a moment of a sequence that sequences can be started from or
// taken back to, any number of times.
type Snapshot struct {
	pool  *Pool
	pages []int32
	len   int
	state int32
	freed bool
}

// Len is how many tokens the snapshot remembers.
func (n *Snapshot) Len() int { return n.len }

// Snapshot keeps the present moment. It costs a state (in a hybrid model) and,
// when the sequence goes on, a copy of its last page unless that is full.
func (s *Sequence) Snapshot() (*Snapshot, error) {
	p := s.pool
	slot, ok := p.takeState()
	if !ok {
		return nil, fmt.Errorf("cannot keep a snapshot at %d tokens: no recurrent state is free: %w", s.len, ErrFull)
	}
	if slot >= 0 {
		p.cache.CopyState(slot, s.state)
	}
	n := &Snapshot{pool: p, len: s.len, state: slot}
	n.pages = share(p, nil, s.pages[:pagesFor(s.len)])
	return n, nil
}

// Restore starts a new sequence from the snapshot.
func (n *Snapshot) Restore() (*Sequence, error) {
	p := n.pool
	slot, ok := p.takeState()
	if !ok {
		return nil, fmt.Errorf("cannot start a sequence from a snapshot of %d tokens: no recurrent state is free: %w", n.len, ErrFull)
	}
	if slot >= 0 {
		p.cache.CopyState(slot, n.state)
	}
	return &Sequence{pool: p, len: n.len, state: slot, pages: share(p, nil, n.pages)}, nil
}

// Rewind takes the sequence to the moment of the snapshot, whichever sequence
// it was taken of. It needs no free page or state.
func (s *Sequence) Rewind(n *Snapshot) {
	p := s.pool
	old := s.pages
	s.pages = share(p, nil, n.pages)
	for _, page := range old {
		p.dropPage(page)
	}
	s.len = n.len
	if s.state >= 0 {
		p.cache.CopyState(s.state, n.state)
	}
}

// Free gives back what only the snapshot holds. A second call does nothing.
func (n *Snapshot) Free() {
	if n.freed {
		return
	}
	n.freed = true
	for _, page := range n.pages {
		n.pool.dropPage(page)
	}
	n.pages, n.len = nil, 0
	n.pool.dropState(n.state)
	n.state = -1
}

func share(p *Pool, dst, pages []int32) []int32 {
	for _, page := range pages {
		p.refs[page]++
	}
	return append(dst, pages...)
}
