package grammar

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
)

// Bounds of what a grammar may grow to. They hold compile time and memory of a hostile grammar to
// about a second and a few hundred megabytes.
const (
	maxNodes  = 400_000    // nodes of one rule's nondeterministic automaton
	maxEdges  = 500_000    // its edges
	maxStates = 50_000     // states of one rule
	maxTotal  = 400_000    // states of a grammar
	maxRules  = 20_000     // rules of a grammar
	maxWork   = 20_000_000 // node visits of one determinisation
	lastChar  = 0x10FFFF
	callBase  = lastChar + 1 // labels from here on are calls: callBase + rule
)

// edge is a transition over the labels lo to hi. Labels are bytes or code points, and calls.
type edge struct{ lo, hi, to int32 }

// skip is a transition that consumes nothing.
type skip struct {
	to   int32
	when uint8 // always, atBegin or atEnd
}

const (
	always  = iota
	atBegin // only where nothing has been consumed
	atEnd   // only where nothing will be consumed
)

// nfa is a nondeterministic automaton under construction. Its first error sticks.
type nfa struct {
	skips [][]skip
	edges [][]edge
	total int // edges
	err   error
}

func (n *nfa) node() int32 {
	if len(n.edges) >= maxNodes {
		if n.err == nil {
			n.err = fmt.Errorf("it is too large: a rule has more than %d positions", maxNodes)
		}
		return 0
	}
	n.skips = append(n.skips, nil)
	n.edges = append(n.edges, nil)
	return int32(len(n.edges) - 1)
}

func (n *nfa) skip(from, to int32) { n.skips[from] = append(n.skips[from], skip{to, always}) }

func (n *nfa) edge(from, lo, hi, to int32) {
	if n.total++; n.total > maxEdges && n.err == nil {
		n.err = fmt.Errorf("it is too large: a rule has more than %d transitions", maxEdges)
	}
	if n.err == nil {
		n.edges[from] = append(n.edges[from], edge{lo, hi, to})
	}
}

// dfa is a deterministic automaton: start is state 0, the edges of a state are sorted and disjoint.
// One without states accepts nothing.
type dfa struct {
	edges [][]edge
	final []bool
}

func (d *dfa) next(state, label int32) int32 {
	es := d.edges[state]
	if len(es) > 8 {
		i := sort.Search(len(es), func(i int) bool { return es[i].hi >= label })
		es = es[i:min(i+1, len(es))]
	}
	for i := range es {
		if label <= es[i].hi {
			if label >= es[i].lo {
				return es[i].to
			}
			return -1
		}
	}
	return -1
}

// accepts tells whether a text, as code points, belongs to the language.
func (d *dfa) accepts(text string) bool {
	if len(d.edges) == 0 {
		return false
	}
	state := int32(0)
	for _, r := range text {
		if state = d.next(state, r); state < 0 {
			return false
		}
	}
	return d.final[state]
}

// key is a set of numbers as a map key.
func key(set []int32) string {
	b := make([]byte, 0, 4*len(set))
	for _, v := range set {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return string(b)
}

// determinise is the subset construction. The members of a set are node<<1, plus 1 behind an
// end assertion, where nothing may be consumed any more.
func (n *nfa) determinise(start, end int32) (*dfa, error) {
	if n.err != nil {
		return nil, n.err
	}
	d := &dfa{}
	ids := map[string]int32{}
	var sets [][]int32
	mark := make([]int32, 2*len(n.edges))
	var stamp int32
	work := 0
	var stack []int32
	add := func(seeds []int32, begin bool) int32 {
		stamp++
		stack = stack[:0]
		for _, s := range seeds {
			if mark[s<<1] != stamp {
				mark[s<<1] = stamp
				stack = append(stack, s<<1)
			}
		}
		var set []int32
		for len(stack) > 0 {
			s := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			work++
			if s>>1 == end || s&1 == 0 && len(n.edges[s>>1]) > 0 {
				set = append(set, s)
			}
			for _, k := range n.skips[s>>1] {
				t := k.to<<1 | s&1
				switch k.when {
				case atBegin:
					if !begin {
						continue
					}
				case atEnd:
					t |= 1
				}
				if mark[t] != stamp {
					mark[t] = stamp
					stack = append(stack, t)
				}
			}
		}
		slices.Sort(set)
		k := key(set)
		id, ok := ids[k]
		if !ok {
			id = int32(len(sets))
			ids[k] = id
			sets = append(sets, set)
			d.final = append(d.final, slices.ContainsFunc(set, func(s int32) bool { return s>>1 == end }))
		}
		return id
	}
	add([]int32{start}, true)
	var all, active []edge
	var cuts, seeds []int32
	for i := 0; i < len(sets); i++ {
		if len(sets) > maxStates {
			return nil, fmt.Errorf("it is too large: a rule needs more than %d states", maxStates)
		}
		if work > maxWork {
			return nil, fmt.Errorf("it is too large: a rule has too many alternatives side by side")
		}
		all, cuts = all[:0], cuts[:0]
		for _, s := range sets[i] {
			if s&1 == 0 {
				for _, e := range n.edges[s>>1] {
					all = append(all, e)
					cuts = append(cuts, e.lo, e.hi+1)
				}
			}
		}
		work += len(all)
		slices.SortFunc(all, func(a, b edge) int { return int(a.lo) - int(b.lo) })
		slices.Sort(cuts)
		cuts = slices.Compact(cuts)
		active = active[:0]
		var out []edge
		taken := 0
		for c := 0; c+1 < len(cuts); c++ {
			lo, hi := cuts[c], cuts[c+1]-1
			for taken < len(all) && all[taken].lo <= lo {
				active = append(active, all[taken])
				taken++
			}
			active = slices.DeleteFunc(active, func(e edge) bool { return e.hi < lo })
			if len(active) == 0 {
				continue
			}
			seeds = seeds[:0]
			for _, e := range active {
				seeds = append(seeds, e.to)
			}
			work += len(active)
			out = join(out, edge{lo, hi, add(seeds, false)})
		}
		d.edges = append(d.edges, out)
	}
	return d.minimise(), nil
}

// join appends an edge, lengthening the one before it where the two are one range.
func join(es []edge, e edge) []edge {
	if n := len(es); n > 0 && es[n-1].hi+1 == e.lo && es[n-1].to == e.to && e.lo < callBase {
		es[n-1].hi = e.hi
		return es
	}
	return append(es, e)
}

// prune leaves out the states from which no end can be reached, and those that nothing reaches.
// usable tells which calls can come to an end.
func (d *dfa) prune(usable func(rule int32) bool) *dfa {
	n := len(d.edges)
	back := make([][]int32, n)
	for s, es := range d.edges {
		for _, e := range es {
			if e.lo < callBase || usable(e.lo-callBase) {
				back[e.to] = append(back[e.to], int32(s))
			}
		}
	}
	alive := make([]bool, n)
	var stack []int32
	for s, f := range d.final {
		if f {
			alive[s] = true
			stack = append(stack, int32(s))
		}
	}
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, p := range back[s] {
			if !alive[p] {
				alive[p] = true
				stack = append(stack, p)
			}
		}
	}
	out := &dfa{}
	if n == 0 || !alive[0] {
		return out
	}
	name := make([]int32, n)
	for i := range name {
		name[i] = -1
	}
	order := []int32{0}
	name[0] = 0
	for i := 0; i < len(order); i++ {
		var es []edge
		for _, e := range d.edges[order[i]] {
			if !alive[e.to] || e.lo >= callBase && !usable(e.lo-callBase) {
				continue
			}
			if name[e.to] < 0 {
				name[e.to] = int32(len(order))
				order = append(order, e.to)
			}
			es = join(es, edge{e.lo, e.hi, name[e.to]})
		}
		out.edges = append(out.edges, es)
		out.final = append(out.final, d.final[order[i]])
	}
	return out
}

func anyRule(int32) bool { return true }

// minimise prunes and merges states of equal future, by Moore's refinement. Long chains need as
// many rounds as they have states and gain nothing: after 100 rounds they are left as they are.
func (d *dfa) minimise() *dfa {
	d = d.prune(anyRule)
	n := len(d.edges)
	class := make([]int32, n)
	count := 0 // classes; the first round parts final states from the others
	for s, f := range d.final {
		if f {
			class[s] = 1
		}
	}
	next := make([]int32, n)
	var b []byte
	for round := 0; ; round++ {
		if round == 100 {
			return d
		}
		ids := make(map[string]int32, count)
		for s, es := range d.edges {
			b = binary.LittleEndian.AppendUint32(b[:0], uint32(class[s]))
			for i := 0; i < len(es); i++ {
				lo, hi, to := es[i].lo, es[i].hi, class[es[i].to]
				for i+1 < len(es) && es[i+1].lo == hi+1 && class[es[i+1].to] == to {
					i++
					hi = es[i].hi
				}
				b = binary.LittleEndian.AppendUint32(b, uint32(lo))
				b = binary.LittleEndian.AppendUint32(b, uint32(hi))
				b = binary.LittleEndian.AppendUint32(b, uint32(to))
			}
			id, ok := ids[string(b)]
			if !ok {
				id = int32(len(ids))
				ids[string(b)] = id
			}
			next[s] = id
		}
		class, next = next, class
		if len(ids) == count {
			break
		}
		count = len(ids)
	}
	if count == n {
		return d
	}
	out := &dfa{edges: make([][]edge, count), final: make([]bool, count)}
	seen := make([]bool, count)
	for s, es := range d.edges { // state 0 is met first, so its class is 0
		c := class[s]
		if seen[c] {
			continue
		}
		seen[c] = true
		out.final[c] = d.final[s]
		for _, e := range es {
			out.edges[c] = join(out.edges[c], edge{e.lo, e.hi, class[e.to]})
		}
	}
	return out
}

// intersect returns the texts that both automata accept.
func intersect(a, b *dfa) (*dfa, error) {
	out := &dfa{}
	if len(a.edges) == 0 || len(b.edges) == 0 {
		return out, nil
	}
	ids := map[[2]int32]int32{{0, 0}: 0}
	pairs := [][2]int32{{0, 0}}
	for i := 0; i < len(pairs); i++ {
		if len(pairs) > maxStates {
			return nil, fmt.Errorf("it is too large: two conditions together need more than %d states", maxStates)
		}
		p, q := pairs[i][0], pairs[i][1]
		var es []edge
		ea, eb := a.edges[p], b.edges[q]
		for len(ea) > 0 && len(eb) > 0 {
			lo, hi := max(ea[0].lo, eb[0].lo), min(ea[0].hi, eb[0].hi)
			if lo <= hi {
				pair := [2]int32{ea[0].to, eb[0].to}
				id, ok := ids[pair]
				if !ok {
					id = int32(len(pairs))
					ids[pair] = id
					pairs = append(pairs, pair)
				}
				es = join(es, edge{lo, hi, id})
			}
			if ea[0].hi < eb[0].hi {
				ea = ea[1:]
			} else {
				eb = eb[1:]
			}
		}
		out.edges = append(out.edges, es)
		out.final = append(out.final, a.final[p] && b.final[q])
	}
	return out.minimise(), nil
}

// complement returns the texts of code points that the automaton does not accept.
func (d *dfa) complement() *dfa {
	n := int32(len(d.edges))
	out := &dfa{}
	for s := int32(0); s < n; s++ {
		var es []edge
		at := int32(0)
		for _, e := range d.edges[s] {
			if e.lo > at {
				es = append(es, edge{at, e.lo - 1, n})
			}
			es = append(es, e)
			at = e.hi + 1
		}
		if at <= lastChar {
			es = append(es, edge{at, lastChar, n})
		}
		out.edges = append(out.edges, es)
		out.final = append(out.final, !d.final[s])
	}
	out.edges = append(out.edges, []edge{{0, lastChar, n}})
	out.final = append(out.final, true)
	return out.minimise()
}
