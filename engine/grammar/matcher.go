package grammar

import (
	"errors"
	"fmt"
	"slices"

	"velo/engine/sample"
)

// Matcher is the state of one answer. It is not for concurrent use.
type Matcher struct {
	v      *Vocabulary
	t      *tables
	stacks stacks
	tops   []top // every way to read the text so far that waits for a byte
	spare  []top
	other  []top
	ended  bool // the text so far is complete
	over   bool // an end id was accepted
	limit  int  // of frames, before those that are no longer needed are dropped

	mask  sample.Mask
	fresh bool // mask belongs to tops
}

// NewMatcher returns the matcher of an empty answer.
func (g *Grammar) NewMatcher(v *Vocabulary) *Matcher {
	m := &Matcher{v: v, t: g.tablesFor(v), stacks: stacks{g: g, index: map[frame]int32{}}, mask: sample.NewMask(v.size), limit: 4096}
	m.stacks.work = append(m.stacks.work, m.stacks.enter(g.start, bottom))
	m.tops, m.ended = m.stacks.expand(nil)
	return m
}

// Mask returns what may come next: tokens that continue the text, and the end ids where it is
// complete. It is valid until the next call of any method. It is never nil.
func (m *Matcher) Mask() sample.Mask {
	if m.fresh {
		return m.mask
	}
	m.fresh = true
	if m.over {
		m.mask.Clear()
	} else {
		m.fill()
	}
	if m.ended {
		for _, id := range m.v.end {
			m.mask.Allow(id)
		}
	}
	return m.mask
}

// fill writes the tokens that may come next. A token that leaves a rule is followed into the rules
// that wait below, entry by entry.
func (m *Matcher) fill() {
	first := true
	t := m.t
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, p := range m.tops {
		e, below := m.entry(t.clamp(place{state: p.state, need: p.need, room: p.room})), p.below
		for below != bottom && len(e.exits) > manyExits {
			f := m.stacks.frames[below]
			e, below = m.join(joint{e, f.state}), f.below
		}
		if first && e.mask != nil {
			copy(m.mask, e.mask)
		} else {
			if first {
				m.mask.Clear()
			}
			m.or(e)
		}
		first = false
		m.leave(e, below)
	}
	if first {
		m.mask.Clear()
	}
}

// manyExits is from where on an entry is kept together with what lies below it.
const manyExits = 4

func (m *Matcher) or(e *entry) {
	if e.mask != nil {
		mask := m.mask[:len(e.mask)]
		for i, w := range e.mask {
			mask[i] |= w
		}
	}
	for _, id := range e.tokens {
		m.mask[id>>6] |= 1 << (id & 63)
	}
}

// leave goes on below a rule that ends within a token. Behind the bottom nothing may come, so a
// token that goes further than the text is not allowed.
func (m *Matcher) leave(e *entry, below int32) {
	if below == bottom {
		return
	}
	f := m.stacks.frames[below]
	for _, node := range e.exits {
		m.resume(f, node)
	}
}

func (m *Matcher) resume(f frame, node int32) {
	for {
		e := m.entry(m.t.g.returned(f.state, node))
		m.or(e)
		m.leave(e, f.below)
		if !e.ended || f.below == bottom {
			return
		}
		f = m.stacks.frames[f.below]
	}
}

func (m *Matcher) entry(p place) *entry {
	if e := m.t.entries[p]; e != nil {
		return e
	}
	m.t.mu.RUnlock()
	defer m.t.mu.RLock()
	return m.t.make(p)
}

func (m *Matcher) join(j joint) *entry {
	if e := m.t.joined[j]; e != nil {
		return e
	}
	m.t.mu.RUnlock()
	defer m.t.mu.RLock()
	return m.t.join(j)
}

// Accept adds a token to the answer. An id that the mask does not allow is an error and changes
// nothing.
func (m *Matcher) Accept(id int32) error {
	if id < 0 || int(id) >= m.v.size {
		return fmt.Errorf("cannot accept token %d: the vocabulary has %d", id, m.v.size)
	}
	if slices.Contains(m.v.end, id) {
		if !m.ended {
			return fmt.Errorf("cannot accept token %d: it ends a text that is not complete", id)
		}
		m.over, m.fresh = true, m.fresh && m.over
		return nil
	}
	b := m.v.bytes[id]
	if m.over || b == nil {
		return fmt.Errorf("cannot accept token %d: %s", id, map[bool]string{true: "the answer has ended", false: "it is no text"}[m.over])
	}
	from, ended := m.tops, false
	a, c := m.spare, m.other
	m.stacks.overflow = false
	for _, x := range b {
		a, ended = m.stacks.step(a[:0], from, x)
		if m.stacks.overflow {
			m.spare, m.other = a, c
			return errors.New("cannot follow the grammar: the text can be read in more than 512 ways")
		}
		if len(a) == 0 && !ended {
			m.spare, m.other = a, c
			return fmt.Errorf("cannot accept token %d: %q cannot come next", id, b)
		}
		from = a
		a, c = c, a
	}
	m.fresh = m.fresh && m.ended == ended && slices.Equal(from, m.tops)
	m.spare, m.other, m.tops = m.tops, a, from
	m.ended = ended
	if len(m.stacks.frames) > m.limit {
		m.stacks.compact(m.tops)
		m.limit = 2*len(m.stacks.frames) + 4096
		m.fresh = false
	}
	return nil
}

// Done tells that nothing but an end may follow.
func (m *Matcher) Done() bool { return m.over || m.ended && len(m.tops) == 0 }

// Complete tells that the text may end here.
func (m *Matcher) Complete() bool { return m.ended }

// Clone returns a matcher that goes on from here on its own.
func (m *Matcher) Clone() *Matcher {
	return &Matcher{v: m.v, t: m.t, stacks: m.stacks.clone(), tops: slices.Clone(m.tops), ended: m.ended, over: m.over, limit: m.limit,
		mask: sample.NewMask(m.v.size)}
}
