package grammar

import "slices"

// expression is the body of a rule. Nil is the empty text.
type expression interface {
	// build adds the expression to an automaton over bytes, between two nodes. It adds no edge into
	// from and none out of to, so that no repetition leaks into a neighbour.
	build(b *body, from, to int32)
	// size is about the number of nodes that build adds.
	size(b *body) int
}

// body is one rule being built.
type body struct {
	nfa
	rules  []*rule // what references mean
	loop   int     // enclosing repetitions
	inline []int32 // rules being built in place of a reference
	apart  bool    // no rule is built in place
}

// inlined tells whether a reference is replaced by the rule itself. In a repetition it is where the
// rule has none of its own: a character that ends and begins again within one token would cost a
// step up and down for each byte of the vocabulary. A string stays a rule, so that its masks are
// shared.
func (b *body) inlined(r int32) bool {
	rule := b.rules[r]
	limit := 24
	if b.loop > 0 && !rule.loops && len(b.edges) < 20_000 {
		limit = 4000
	}
	return !b.apart && rule.body != nil && !rule.recursive && rule.size > 0 && rule.size <= limit && len(b.inline) < 100
}

type (
	literal  string       // bytes
	chars    []edge       // one code point out of ranges; to is not used
	sequence []expression // one after the other
	choice   []expression // one of them; none accepts nothing
	repeat   struct {     // min to max times; max < 0 is without end
		of       expression
		min, max int
	}
	reference int32          // another rule, in place where that is better
	call      int32          // another rule, always called, so that its masks are shared
	embedded  struct{ *dfa } // an automaton over bytes
	graph     struct {       // expressions between numbered nodes; begins at 0, ends at the last
		nodes int
		arcs  []arc
	}
	arc struct {
		from, to int
		over     expression
	}
)

func (n *body) add(e expression, from, to int32) {
	if n.err != nil {
		return
	}
	if e == nil {
		n.skip(from, to)
		return
	}
	e.build(n, from, to)
}

func (l literal) build(b *body, from, to int32) {
	for i := 0; i < len(l); i++ {
		next := to
		if i+1 < len(l) {
			next = b.node()
		}
		b.edge(from, int32(l[i]), int32(l[i]), next)
		from = next
	}
	if len(l) == 0 {
		b.skip(from, to)
	}
}

func (c chars) build(b *body, from, to int32) {
	for _, r := range c {
		b.utf8(from, to, r.lo, r.hi)
	}
}

func (s sequence) build(b *body, from, to int32) {
	for i, e := range s {
		next := to
		if i+1 < len(s) {
			next = b.node()
		}
		b.add(e, from, next)
		from = next
	}
	if len(s) == 0 {
		b.skip(from, to)
	}
}

func (c choice) build(b *body, from, to int32) {
	for _, e := range c {
		b.add(e, from, to)
	}
}

func (r repeat) build(b *body, from, to int32) {
	b.loop++
	defer func() { b.loop-- }()
	for i := 0; i < r.min && b.err == nil; i++ {
		next := b.node()
		b.add(r.of, from, next)
		from = next
	}
	if r.max < 0 {
		in, out := b.node(), b.node()
		b.skip(from, in)
		b.add(r.of, in, out)
		b.skip(out, in)
		b.skip(in, to)
		return
	}
	for i := r.min; i < r.max && b.err == nil; i++ {
		b.skip(from, to)
		next := b.node()
		b.add(r.of, from, next)
		from = next
	}
	b.skip(from, to)
}

func (r reference) build(b *body, from, to int32) {
	if b.inlined(int32(r)) && !slices.Contains(b.inline, int32(r)) {
		b.inline = append(b.inline, int32(r))
		b.add(b.rules[r].body, from, to)
		b.inline = b.inline[:len(b.inline)-1]
		return
	}
	call(r).build(b, from, to)
}

func (c call) build(b *body, from, to int32) { b.edge(from, callBase+int32(c), callBase+int32(c), to) }

func (d embedded) build(b *body, from, to int32) {
	if len(d.edges) == 0 {
		return
	}
	base := make([]int32, len(d.edges))
	for i := range base {
		base[i] = b.node()
	}
	if b.err != nil {
		return
	}
	b.skip(from, base[0])
	for s, es := range d.edges {
		for _, e := range es {
			b.edge(base[s], e.lo, e.hi, base[e.to])
		}
		if d.final[s] {
			b.skip(base[s], to)
		}
	}
}

func (g graph) build(b *body, from, to int32) {
	at := make([]int32, g.nodes)
	for i := range at {
		at[i] = b.node()
	}
	if b.err != nil {
		return
	}
	b.skip(from, at[0])
	b.skip(at[g.nodes-1], to)
	for _, a := range g.arcs {
		b.add(a.over, at[a.from], at[a.to])
	}
}

const huge = 1 << 30

func bounded(n int) int { return min(max(n, 0), huge) }

func sizeOf(b *body, e expression) int {
	if e == nil {
		return 1
	}
	return e.size(b)
}

func (l literal) size(*body) int { return len(l) + 1 }
func (c chars) size(*body) int   { return 8 * len(c) }
func (s sequence) size(b *body) int {
	n := 1
	for _, e := range s {
		n = bounded(n + sizeOf(b, e))
	}
	return n
}
func (c choice) size(b *body) int { return sequence(c).size(b) + 2*len(c) }
func (r repeat) size(b *body) int {
	b.loop++
	n := sizeOf(b, r.of)
	b.loop--
	times := max(r.min, r.max, 1)
	if n >= huge/times {
		return huge
	}
	return n * times
}
func (r reference) size(b *body) int {
	if b.inlined(int32(r)) {
		return b.rules[r].size + 2
	}
	return 2
}
func (c call) size(*body) int     { return 2 }
func (d embedded) size(*body) int { return len(d.edges) }
func (g graph) size(b *body) int {
	n := g.nodes
	for _, a := range g.arcs {
		n = bounded(n + sizeOf(b, a.over))
	}
	return n
}
