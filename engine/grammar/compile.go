package grammar

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// rule is one rule of a grammar on its way from an expression to an automaton over bytes and calls.
type rule struct {
	name      string // for errors; may be empty
	body      expression
	automaton *dfa
	counted   *counter
	recursive bool
	loops     bool // it repeats something without end
	size      int
}

// counter bounds how often an automaton comes back to its state loop. It stands for a chain of
// max copies of the automaton, which for a string of 10,000 characters would be 250,000 states.
// From loop, final is entered only after min rounds, and anything else only before max; the way
// from opening to loop is no round.
type counter struct {
	opening, loop, final int32
	min, max             int32 // max is endless without one
}

// Grammar is a compiled grammar, immutable and safe for concurrent use.
type Grammar struct {
	rules  []*rule // kept, so that grammars can be put together
	root   int32
	states []state
	start  int32
	counts []counter // with the numbers of states
	prints [][16]byte

	class   [256]uint8 // bytes that no state tells apart
	classes int
	example []byte // a byte of each class

	tables tablesOf
}

// state is a state of any rule.
type state struct {
	edges []edge
	calls []transfer
	final bool
	count int32 // index of counts, -1 without
	print int32 // index of prints where the rest of the rule calls nothing, -1 otherwise
	local int32 // number within its rule
}

// transfer is a call of another rule: it goes on at start, and then at back. At -1 there is nothing
// left to do in the calling rule, so that a tail call needs no room.
type transfer struct{ start, back int32 }

// compile makes a grammar of rules, within the bounds. Rules that nothing reaches are allowed.
func compile(rules []*rule, root int32) (*Grammar, error) {
	if len(rules) > maxRules {
		return nil, fmt.Errorf("it has more than %d rules", maxRules)
	}
	return link(rules, root, maxTotal)
}

// link makes a grammar of rules of at most so many states.
func link(rules []*rule, root int32, most int) (*Grammar, error) {
	measure(rules)
	total := 0
	for _, r := range rules {
		if r.automaton == nil {
			d, err := r.build(&body{rules: rules})
			if err != nil {
				d, err = r.build(&body{rules: rules, apart: true})
			}
			if err != nil {
				if r.name != "" {
					err = fmt.Errorf("%s: %w", r.name, err)
				}
				return nil, err
			}
			r.automaton = d
		}
		if total += len(r.automaton.edges); total > most {
			return nil, fmt.Errorf("it is too large: it needs more than %d states", most)
		}
	}
	if err := finite(rules, root); err != nil {
		return nil, err
	}
	if err := leftRecursion(rules); err != nil {
		return nil, err
	}
	return assemble(rules, root), nil
}

func (r *rule) build(b *body) (*dfa, error) {
	start, end := b.node(), b.node()
	b.add(r.body, start, end)
	return b.determinise(start, end)
}

// measure finds which rules call themselves and how large the others are with all they refer to.
func measure(rules []*rule) {
	const (
		unseen = iota
		open
		closed
	)
	mark := make([]uint8, len(rules))
	loop := false
	var walk func(e expression, visit func(int32))
	walk = func(e expression, visit func(int32)) {
		switch e := e.(type) {
		case sequence:
			for _, k := range e {
				walk(k, visit)
			}
		case choice:
			for _, k := range e {
				walk(k, visit)
			}
		case repeat:
			if e.max < 0 {
				loop = true
			}
			walk(e.of, visit)
		case graph:
			for _, a := range e.arcs {
				walk(a.over, visit)
			}
		case reference:
			visit(int32(e))
		}
	}
	// A rule is recursive where it is on a cycle. It is enough to break each cycle once.
	type visited struct {
		rule     int32
		of, next []int32
	}
	for i := range rules {
		if mark[i] != unseen {
			continue
		}
		enter := func(r int32) visited {
			mark[r] = open
			p := visited{rule: r}
			loop = false
			walk(rules[r].body, func(k int32) { p.next = append(p.next, k); p.of = append(p.of, k) })
			rules[r].loops = loop
			return p
		}
		stack := []visited{enter(int32(i))}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.next) == 0 {
				mark[top.rule] = closed
				for _, k := range top.of {
					rules[top.rule].loops = rules[top.rule].loops || rules[k].loops
				}
				rules[top.rule].size = sizeOf(&body{rules: rules, loop: 1}, rules[top.rule].body)
				stack = stack[:len(stack)-1]
				continue
			}
			k := top.next[0]
			top.next = top.next[1:]
			switch mark[k] {
			case unseen:
				stack = append(stack, enter(k))
			case open:
				rules[k].recursive = true
			}
		}
	}
}

// callers returns for each rule the rules that call it.
func callers(rules []*rule) [][]int32 {
	out := make([][]int32, len(rules))
	for i, r := range rules {
		for _, es := range r.automaton.edges {
			for _, e := range es {
				if k := e.lo - callBase; k >= 0 && (len(out[k]) == 0 || out[k][len(out[k])-1] != int32(i)) {
					out[k] = append(out[k], int32(i))
				}
			}
		}
	}
	return out
}

// settle finds the rules that have a property which grows with that of the rules they call.
func settle(rules []*rule, has func(r *rule, of []bool) bool) []bool {
	of := make([]bool, len(rules))
	back := callers(rules)
	queue := make([]int32, len(rules))
	for i := range queue {
		queue[i] = int32(i)
	}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		if !of[i] && has(rules[i], of) {
			of[i] = true
			queue = append(queue, back[i]...)
		}
	}
	return of
}

// finite leaves out what can never come to an end, such as an object that must hold itself.
func finite(rules []*rule, root int32) error {
	ends := settle(rules, func(r *rule, ends []bool) bool {
		return len(r.automaton.prune(func(k int32) bool { return ends[k] }).edges) > 0
	})
	if !ends[root] {
		return errors.New("no finite text satisfies it")
	}
	for _, r := range rules {
		if r.counted == nil { // a counted one calls nothing and keeps its numbers
			r.automaton = r.automaton.prune(func(k int32) bool { return ends[k] })
		}
	}
	return nil
}

// leftRecursion refuses rules that call themselves before they have read anything.
func leftRecursion(rules []*rule) error {
	// reach visits the states of a rule that are reached without reading.
	reach := func(d *dfa, nullable []bool, visit func(s int32)) {
		if len(d.edges) == 0 {
			return
		}
		seen := map[int32]bool{0: true}
		stack := []int32{0}
		for len(stack) > 0 {
			s := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			visit(s)
			for _, e := range d.edges[s] {
				if e.lo >= callBase && nullable[e.lo-callBase] && !seen[e.to] {
					seen[e.to] = true
					stack = append(stack, e.to)
				}
			}
		}
	}
	nullable := settle(rules, func(r *rule, nullable []bool) bool {
		empty := false
		reach(r.automaton, nullable, func(s int32) { empty = empty || r.automaton.final[s] })
		return empty
	})
	first := make([][]int32, len(rules))
	for i, r := range rules {
		reach(r.automaton, nullable, func(s int32) {
			for _, e := range r.automaton.edges[s] {
				if e.lo >= callBase && !slices.Contains(first[i], e.lo-callBase) {
					first[i] = append(first[i], e.lo-callBase)
				}
			}
		})
	}
	mark := make([]uint8, len(rules))
	for i := range rules {
		stack := []int32{int32(i)}
		for len(stack) > 0 {
			r := stack[len(stack)-1]
			switch {
			case mark[r] == 0:
				mark[r] = 1
				for _, k := range first[r] {
					switch mark[k] {
					case 0:
						stack = append(stack, k)
					case 1:
						return fmt.Errorf("rule %q is left-recursive: it can begin with itself; write it as a repetition", rules[k].name)
					}
				}
			default:
				mark[r] = 2
				stack = stack[:len(stack)-1]
			}
		}
	}
	return nil
}

// assemble numbers the states of all rules that the root reaches.
func assemble(rules []*rule, root int32) *Grammar {
	g := &Grammar{rules: rules, root: root}
	base := make([]int32, len(rules))
	used := make([]bool, len(rules))
	used[root] = true
	order := []int32{root}
	var total int32
	for i := 0; i < len(order); i++ {
		r := order[i]
		base[r] = total
		total += int32(len(rules[r].automaton.edges))
		for _, es := range rules[r].automaton.edges {
			for _, e := range es {
				if e.lo >= callBase && !used[e.lo-callBase] {
					used[e.lo-callBase] = true
					order = append(order, e.lo-callBase)
				}
			}
		}
	}
	g.start = base[root]
	g.states = make([]state, 0, total)
	for _, i := range order {
		r := rules[i]
		d := r.automaton
		count, print := int32(-1), int32(-1)
		if r.counted != nil {
			c := *r.counted
			c.opening += base[i]
			c.loop += base[i]
			c.final += base[i]
			count = int32(len(g.counts))
			g.counts = append(g.counts, c)
		}
		if !slices.ContainsFunc(d.edges, func(es []edge) bool { return len(es) > 0 && es[len(es)-1].lo >= callBase }) {
			print = int32(len(g.prints))
			g.prints = append(g.prints, d.print(r.counted))
		}
		for s, es := range d.edges {
			st := state{final: d.final[s], count: count, print: print, local: int32(s)}
			for _, e := range es {
				to := base[i] + e.to
				switch {
				case e.lo < callBase:
					st.edges = append(st.edges, edge{e.lo, e.hi, to})
				case d.final[e.to] && len(d.edges[e.to]) == 0:
					st.calls = append(st.calls, transfer{base[e.lo-callBase], -1})
				default:
					st.calls = append(st.calls, transfer{base[e.lo-callBase], to})
				}
			}
			g.states = append(g.states, st)
		}
	}
	g.classify()
	return g
}

// classify finds the bytes that no state tells apart.
func (g *Grammar) classify() {
	var cut [257]bool
	for i := range g.states {
		for _, e := range g.states[i].edges {
			cut[e.lo], cut[e.hi+1] = true, true
		}
	}
	for b := range 256 {
		if cut[b] || b == 0 {
			g.example = append(g.example, byte(b))
		}
		g.class[b] = uint8(len(g.example) - 1)
	}
	g.classes = len(g.example)
}

// print is a fingerprint: two automata of equal print accept the same.
func (d *dfa) print(c *counter) (sum [16]byte) {
	var b []byte
	add := func(v int32) { b = binary.LittleEndian.AppendUint32(b, uint32(v)) }
	for s, es := range d.edges {
		add(int32(len(es)))
		if d.final[s] {
			add(-1)
		}
		for _, e := range es {
			add(e.lo)
			add(e.hi)
			add(e.to)
		}
	}
	if c != nil { // the bounds are part of the configuration, not of the automaton
		add(-2)
		add(c.opening)
		add(c.loop)
		add(c.final)
	}
	h := sha256.Sum256(b)
	copy(sum[:], h[:])
	return sum
}
