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
	n.pages = share(p, s.pages[:pagesFor(s.len)], 1)
	return n, nil
}

// Alone is how many of the pages of the first tokens tokens only snapshots
// hold.
func (n *Snapshot) Alone(tokens int) (pages int) {
	for _, page := range n.pages[:pagesFor(min(tokens, n.len))] {
		if n.pool.refs[page] == n.pool.kept[page] {
			pages++
		}
	}
	return pages
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
	return &Sequence{pool: p, len: n.len, state: slot, pages: share(p, n.pages, 0)}, nil
}

// Rewind takes the sequence to the moment of the snapshot, whichever sequence
// it was taken of. It needs no free page or state.
func (s *Sequence) Rewind(n *Snapshot) {
	p := s.pool
	old := s.pages
	s.pages = share(p, n.pages, 0)
	for _, page := range old {
		p.dropPage(page, 0)
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
		n.pool.dropPage(page, 1)
	}
	n.pages, n.len = nil, 0
	n.pool.dropState(n.state)
	n.state = -1
}

// Freeze turns a sequence into a snapshot of its present moment. It costs
// nothing; the sequence is then freed.
func (s *Sequence) Freeze() *Snapshot {
	s.cut(s.len)
	n := &Snapshot{pool: s.pool, pages: s.pages, len: s.len, state: s.state}
	for _, page := range n.pages {
		s.pool.count(page, 0, 1)
	}
	s.pages, s.len, s.state, s.freed = nil, 0, -1, true
	return n
}

// Thaw turns a snapshot into a sequence. Unlike Restore it takes no state; the
// snapshot is then freed.
func (n *Snapshot) Thaw() *Sequence {
	s := &Sequence{pool: n.pool, pages: n.pages, len: n.len, state: n.state}
	for _, page := range s.pages {
		n.pool.count(page, 0, -1)
	}
	n.pages, n.len, n.state, n.freed = nil, 0, -1, true
	return s
}

// Truncate forgets all tokens from position to on. A snapshot with a recurrent
// state cannot be cut.
func (n *Snapshot) Truncate(to int) error {
	if to < 0 || to > n.len {
		return fmt.Errorf("cannot cut a snapshot of %d tokens to %d", n.len, to)
	}
	if n.state >= 0 && to != n.len {
		return fmt.Errorf("cannot cut a snapshot of %d tokens to %d: its recurrent state does not run backwards", n.len, to)
	}
	keep := pagesFor(to)
	for _, page := range n.pages[keep:] {
		n.pool.dropPage(page, 1)
	}
	n.pages, n.len = n.pages[:keep], to
	return nil
}

// share adds a reference to each page, a snapshot's if kept is 1.
func share(p *Pool, pages []int32, kept int32) []int32 {
	for _, page := range pages {
		p.count(page, 1, kept)
	}
	return append([]int32(nil), pages...)
}
