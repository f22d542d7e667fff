package grammar

import (
	"slices"

	"velo/engine/sample"
)

// profile is the trie as an automaton with a counter reads it from its loop, for any bounds: how
// many rounds each token takes. The entries of all counts come from one walk.
type profile struct {
	inside  []counted // tokens that stay in the loop, by the rounds they begin
	all     sample.Mask
	closing []counted // tokens that end with the rule or behind it
	exits   []counted // nodes with a rest to be read
}

// counted is a token or a node and the rounds up to it.
type counted struct{ id, rounds int32 }

// profile returns the profile of the automaton that a state belongs to. The lock is held.
func (t *tables) profile(st *state) *profile {
	print := t.g.prints[st.print]
	s := &t.v.shared
	s.Lock()
	defer s.Unlock()
	if p := s.profiles[print]; p != nil {
		return p
	}
	if s.profiles == nil {
		s.profiles = map[[16]byte]*profile{}
	}
	p := t.g.profile(t.v, &t.g.counts[st.count])
	s.profiles[print] = p
	return p
}

func (g *Grammar) profile(v *Vocabulary, c *counter) *profile {
	p := &profile{all: sample.NewMask(v.size)}
	type at struct{ state, rounds int32 }
	current := make([]at, v.deep+1)
	current[0] = at{c.loop, 0}
	// A dense table of the automaton, which numbers its states from opening on.
	next := map[int32]*[256]int32{}
	row := func(state int32) *[256]int32 {
		r := next[state]
		if r == nil {
			r = new([256]int32)
			for b := range r {
				r[b] = -1
			}
			for _, e := range g.states[state].edges {
				for b := e.lo; b <= e.hi; b++ {
					r[b] = e.to
				}
			}
			next[state] = r
		}
		return r
	}
	loop := row(c.loop)
	var one [1]int32
	for n, end := int32(1), v.after[0]; n < end; {
		depth := v.depth[n]
		from := current[depth-1]
		table := loop
		if from.state != c.loop {
			table = row(from.state)
		}
		to := at{table[v.label[n]], from.rounds}
		if to.state < 0 {
			n = v.after[n]
			continue
		}
		var tokens []int32
		if k := v.token[n]; k >= 0 {
			one[0] = k
			tokens = one[:]
		} else if k < -1 {
			tokens = v.twins[-2-k]
		}
		if to.state == c.final {
			for _, k := range tokens {
				p.closing = append(p.closing, counted{k, to.rounds})
			}
			if v.after[n] > n+1 {
				p.exits = append(p.exits, counted{n, to.rounds})
			}
			n = v.after[n]
			continue
		}
		if from.state == c.loop { // rounds count from their first byte on
			to.rounds++
		}
		for _, k := range tokens {
			p.inside = append(p.inside, counted{k, to.rounds})
			p.all.Allow(k)
		}
		current[depth] = to
		n++
	}
	slices.SortStableFunc(p.inside, func(a, b counted) int { return int(a.rounds - b.rounds) })
	return p
}

// entry is the entry of the loop with so many rounds needed and allowed.
func (p *profile) entry(v *Vocabulary, at place) *entry {
	e := &entry{mask: sample.NewMask(v.size)}
	more, _ := slices.BinarySearchFunc(p.inside, at.room, func(c counted, room int32) int {
		if c.rounds <= room {
			return -1
		}
		return 1
	})
	if more > len(p.inside)/2 {
		copy(e.mask, p.all)
		for _, c := range p.inside[more:] {
			e.mask.Ban(c.id)
		}
	} else {
		for _, c := range p.inside[:more] {
			e.mask.Allow(c.id)
		}
	}
	for _, c := range p.closing {
		if at.need <= c.rounds && c.rounds <= at.room {
			e.mask.Allow(c.id)
		}
	}
	for _, c := range p.exits {
		if at.need <= c.rounds && c.rounds <= at.room {
			e.exits = append(e.exits, c.id)
		}
	}
	return e
}
