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

// profile returns the profile of a counted automaton of a grammar.
func (s *shared) profile(g *Grammar, v *Vocabulary, count int) *profile {
	s.Lock()
	defer s.Unlock()
	c := &g.counts[count]
	print := g.prints[g.states[c.loop].print]
	p := s.profiles[print]
	if p == nil {
		if s.profiles == nil {
			s.profiles = map[[16]byte]*profile{}
		}
		p = g.profile(v, c)
		s.profiles[print] = p
	}
	return p
}

func (g *Grammar) profile(v *Vocabulary, c *counter) *profile {
	p := &profile{all: sample.NewMask(v.size)}
	type reached struct{ state, rounds int32 }
	current := make([]reached, v.deep+1)
	current[0].state = c.loop
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
	inside := make([][]counted, v.deep+1) // by rounds
	for n, end := int32(1), v.nodes[0].after; n < end; {
		at := &v.nodes[n]
		from := current[at.depth-1]
		table := loop
		if from.state != c.loop {
			table = row(from.state)
		}
		to := reached{table[at.label], from.rounds}
		if to.state < 0 {
			n = at.after
			continue
		}
		var tokens []int32
		if at.token >= 0 {
			one[0] = at.token
			tokens = one[:]
		} else if at.token < -1 {
			tokens = v.twins[-2-at.token]
		}
		if to.state == c.final {
			for _, k := range tokens {
				p.closing = append(p.closing, counted{k, to.rounds})
			}
			if at.after > n+1 {
				p.exits = append(p.exits, counted{n, to.rounds})
			}
			n = at.after
			continue
		}
		if from.state == c.loop { // rounds count from their first byte on
			to.rounds++
		}
		for _, k := range tokens {
			inside[to.rounds] = append(inside[to.rounds], counted{k, to.rounds})
			p.all.Allow(k)
		}
		current[at.depth] = to
		n++
	}
	p.inside = slices.Concat(inside...)
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
