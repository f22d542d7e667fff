package grammar

import (
	"maps"
	"slices"
	"sort"
)

// frame is where a rule goes on when the one it called has ended, and what lies below.
type frame struct{ state, below int32 }

// top is one way to read the text so far: a state that waits for a byte, rounds of its counter that
// are still needed and still allowed (max int32 without a counter or an end), and the frame below.
type top struct{ state, need, room, below int32 }

// bottom is below the first frame.
const bottom = -1

const endless = 1<<31 - 1

// maxStacks is the most ways in which a text may be read at once.
const maxStacks = 512

// stacks is the pushdown store: every way to read the text so far, as tops over frames that they
// share. Equal frames have equal numbers.
type stacks struct {
	g        *Grammar
	frames   []frame
	index    map[frame]int32
	work     []top
	overflow bool // some way was dropped because there were too many
}

func (s *stacks) push(f frame) int32 {
	if i, ok := s.index[f]; ok {
		return i
	}
	i := int32(len(s.frames))
	s.frames = append(s.frames, f)
	s.index[f] = i
	return i
}

// enter returns a top at a state that has just been reached by a call or a return.
func (s *stacks) enter(state, below int32) top {
	t := top{state, 0, endless, below}
	if c := s.g.states[state].count; c >= 0 {
		t.need, t.room = s.g.counts[c].min, s.g.counts[c].max
	}
	return t
}

func (s *stacks) visit(t top) {
	if slices.Contains(s.work, t) {
		return
	}
	if len(s.work) == maxStacks {
		s.overflow = true
		return
	}
	s.work = append(s.work, t)
}

// expand follows calls and returns from the tops in s.work and appends those that wait for a byte
// to dst. ended tells that the bottom was left.
func (s *stacks) expand(dst []top) (tops []top, ended bool) {
	for i := 0; i < len(s.work); i++ {
		t := s.work[i]
		st := &s.g.states[t.state]
		if st.final {
			if t.below == bottom {
				ended = true
			} else {
				f := s.frames[t.below]
				s.visit(s.enter(f.state, f.below))
			}
		}
		for _, c := range st.calls {
			below := t.below
			if c.back >= 0 {
				below = s.push(frame{c.back, below})
			}
			s.visit(s.enter(c.start, below))
		}
		if len(st.edges) > 0 {
			dst = append(dst, t)
		}
	}
	return dst, ended
}

// step reads one byte.
func (s *stacks) step(dst, src []top, b byte) (tops []top, ended bool) {
	s.work = s.work[:0]
	for _, t := range src {
		if t, ok := s.g.next(t, b); ok {
			s.visit(t)
		}
	}
	return s.expand(dst)
}

// next moves within a rule.
func (g *Grammar) next(t top, b byte) (top, bool) {
	st := &g.states[t.state]
	es, label := st.edges, int32(b)
	if len(es) > 8 {
		i := sort.Search(len(es), func(i int) bool { return es[i].hi >= label })
		es = es[i:min(i+1, len(es))]
	}
	for i := range es {
		if label > es[i].hi {
			continue
		}
		if label < es[i].lo {
			break
		}
		to := es[i].to
		if st.count >= 0 {
			c := &g.counts[st.count]
			if t.state == c.loop {
				if to == c.final && t.need > 0 || to != c.final && t.room == 0 {
					break
				}
			}
			if to == c.loop && t.state != c.opening {
				t.need = max(0, t.need-1)
				if t.room != endless {
					t.room--
				}
			}
		}
		t.state = to
		return t, true
	}
	return top{}, false
}

// clone copies what the tops and frames need.
func (s *stacks) clone() stacks {
	return stacks{g: s.g, frames: slices.Clone(s.frames), index: maps.Clone(s.index), overflow: s.overflow}
}

// compact forgets the frames that no top stands on.
func (s *stacks) compact(tops []top) {
	old := s.frames
	s.frames = make([]frame, 0, 64)
	s.index = make(map[frame]int32, 64)
	name := map[int32]int32{bottom: bottom}
	var path []int32
	for i := range tops {
		path = path[:0]
		f := tops[i].below
		for {
			if _, ok := name[f]; ok {
				break
			}
			path = append(path, f)
			f = old[f].below
		}
		for _, p := range slices.Backward(path) {
			name[p] = s.push(frame{old[p].state, name[old[p].below]})
		}
		tops[i].below = name[tops[i].below]
	}
}
