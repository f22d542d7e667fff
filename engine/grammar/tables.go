package grammar

import (
	"encoding/binary"
	"slices"
	"sync"

	"velo/engine/sample"
)

// tablesOf holds the tables of a grammar for each vocabulary it is used with.
type tablesOf struct {
	sync.Mutex
	of map[*Vocabulary]*tables
}

func (g *Grammar) tablesFor(v *Vocabulary) *tables {
	g.tables.Lock()
	defer g.tables.Unlock()
	t := g.tables.of[v]
	if t == nil {
		t = &tables{g: g, v: v, entries: map[place]*entry{}, joined: map[joint]*entry{}, current: make([]int32, v.deep+1), allowed: maxBudget}
		t.reset()
		if g.tables.of == nil {
			g.tables.of = map[*Vocabulary]*tables{}
		}
		g.tables.of[v] = t
	}
	return t
}

// tables are the entries of a grammar and a vocabulary, made when they are first needed, and the
// automaton that makes them: its states are sets of tops over frames of their own, relative to
// the place where a walk began. Reading the whole trie is then one look-up a node.
type tables struct {
	g *Grammar
	v *Vocabulary

	mu      sync.RWMutex // entries are added under the lock and read under the read lock
	entries map[place]*entry
	joined  map[joint]*entry
	bytes   int

	stacks stacks
	sets   []set
	ids    map[string]int32
	rows   []int32 // by set and class: the next set, unknown or dead
	key    []byte
	tops   []top

	// What a walk finds.
	current []int32 // packed set at each depth
	tokens  []int32
	exits   []int32
	allowed int // comparisons of tops that one may take
	budget  int // what is left of it
}

// joint is an entry with the state that the rule below it goes on at.
type joint struct {
	above *entry
	back  int32
}

// set is a state of the automaton of tops.
type set struct {
	tops  []top
	ended bool // the place where the walk began can end here
}

const (
	unknown = -1
	dead    = -2
)

// Bounds of the tables of one grammar. Beyond them they are begun anew.
const (
	maxSets    = 1 << 16
	maxEntries = 64 << 20 // bytes
)

// maxBudget is what one walk may take, about 20 ms. A grammar that can be read in hundreds of ways
// could make it minutes; beyond the budget only tokens of one byte, and those that go the ways
// known by then, are found. So the mask may miss a token, and is never empty where it need not be.
const maxBudget = 2_000_000

func (t *tables) reset() {
	t.stacks = stacks{g: t.g, index: map[frame]int32{}}
	t.sets = nil
	t.rows = nil
	t.ids = map[string]int32{}
}

// packed is the number of a set with what a walk must know of it, so that a walk reads one place
// of memory a node.
func (t *tables) packed(id int32) int32 {
	n := id << 2
	if t.sets[id].ended {
		n |= mayEnd
	}
	if len(t.sets[id].tops) > 0 {
		n |= goesOn
	}
	return n
}

const (
	mayEnd = 1
	goesOn = 2
)

// intern returns the packed number of a set, dead for one from which nothing leads on.
func (t *tables) intern(tops []top, ended bool) int32 {
	if len(tops) == 0 && !ended {
		return dead
	}
	slices.SortFunc(tops, func(a, b top) int {
		if a.state != b.state {
			return int(a.state) - int(b.state)
		}
		if a.below != b.below {
			return int(a.below) - int(b.below)
		}
		if a.need != b.need {
			return int(a.need) - int(b.need)
		}
		return int(a.room) - int(b.room)
	})
	t.key = t.key[:0]
	for _, p := range tops {
		for _, v := range [...]int32{p.state, p.need, p.room, p.below} {
			t.key = binary.LittleEndian.AppendUint32(t.key, uint32(v))
		}
	}
	if ended {
		t.key = append(t.key, 1)
	}
	if id, ok := t.ids[string(t.key)]; ok {
		return t.packed(id)
	}
	id := int32(len(t.sets))
	t.ids[string(t.key)] = id
	t.sets = append(t.sets, set{slices.Clone(tops), ended})
	for range t.g.classes {
		t.rows = append(t.rows, unknown)
	}
	return t.packed(id)
}

// step is the transition of the automaton of tops that is not in its rows yet.
func (t *tables) step(id int32, b byte) int32 {
	tops, ended := t.stacks.step(t.tops[:0], t.sets[id].tops, b)
	t.tops = tops
	n := len(t.stacks.work)
	t.budget -= 8 + n*n
	next := t.intern(tops, ended)
	t.rows[int(id)*t.g.classes+int(t.g.class[b])] = next
	return next
}

// clamp returns the place with counts that no token can tell from the true ones.
func (t *tables) clamp(p place) place {
	p.need = min(p.need, t.v.deep+1)
	if p.room > t.v.deep {
		p.room = endless
	}
	return p
}

// make adds the entry of a place. The lock is not held.
func (t *tables) make(p place) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.entry(p)
}

func (t *tables) entry(p place) *entry {
	if e := t.entries[p]; e != nil {
		return e
	}
	t.limit()
	st := &t.g.states[p.state]
	var e *entry
	var common sharedPlace
	if st.print >= 0 {
		common = sharedPlace{t.g.prints[st.print], p}
		common.place.state = st.local
		e = t.v.shared.get(common)
	}
	if e == nil {
		if st.count >= 0 && p.state == t.g.counts[st.count].loop && p.node == 0 && !p.fresh {
			e = t.v.shared.profile(t.g, t.v, int(st.count)).entry(t.v, p)
		} else {
			e = t.walk(p)
		}
		if st.print >= 0 {
			t.v.shared.put(common, e)
		}
	}
	t.entries[p] = e
	t.bytes += e.bytes()
	return e
}

// limit drops the entries where they have become too large.
func (t *tables) limit() {
	if t.bytes > maxEntries {
		clear(t.entries)
		clear(t.joined)
		t.bytes = 0
	}
	if len(t.sets) > maxSets {
		t.reset()
	}
}

// join adds the entry of another and of what the rule below makes of its exits. In a string nearly
// every token with a quote in it leaves the rule: one by one they would cost more than all others.
func (t *tables) join(j joint) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.joined[j]; e != nil {
		return e
	}
	e := j.above
	t.limit()
	begin, ended := t.begin(t.g.returned(j.back, 0))
	t.tokens, t.exits, t.budget = t.tokens[:0], t.exits[:0], t.allowed
	for _, n := range e.exits {
		if ended {
			t.exits = append(t.exits, n)
		}
		if begin != dead {
			t.scan(begin, n)
		}
	}
	out := t.found(e)
	t.joined[j] = out
	t.bytes += out.bytes()
	return out
}

// returned is the place of a rule that goes on after a call, with a part of the token read. Rules
// that count call nothing, so that there are no counts.
func (g *Grammar) returned(state, node int32) place {
	return place{state: state, room: endless, node: node, fresh: true}
}

// begin returns the set at a place, and whether the rule can end there.
func (t *tables) begin(p place) (id int32, ended bool) {
	if !p.fresh {
		return t.intern([]top{{p.state, p.need, p.room, bottom}}, false), false
	}
	t.stacks.work = append(t.stacks.work[:0], t.stacks.enter(p.state, bottom))
	t.tops, ended = t.stacks.expand(t.tops[:0])
	return t.intern(t.tops, ended), ended
}

// walk makes the entry of a place by reading the trie below its node.
func (t *tables) walk(p place) *entry {
	t.tokens, t.exits, t.budget = t.tokens[:0], t.exits[:0], t.allowed
	begin, ended := t.begin(p)
	if begin != dead {
		t.scan(begin, p.node)
	}
	e := t.found(nil)
	e.ended = ended
	return e
}

// scan reads the trie below a node and adds the tokens and exits that it finds.
func (t *tables) scan(begin, from int32) {
	v := t.v
	t.current[v.nodes[from].depth] = begin
	tokens, exits, current, class, classes := t.tokens, t.exits, t.current, &t.g.class, int32(t.g.classes)
	for n, end := from+1, v.nodes[from].after; n < end; {
		at := &v.nodes[n]
		id := current[at.depth-1] >> 2
		next := t.rows[id*classes+int32(class[at.label])]
		if next == unknown {
			if t.budget < 0 && at.depth > 1 {
				n = at.after
				continue
			}
			next = t.step(id, at.label)
		}
		if next == dead {
			n = at.after
			continue
		}
		if at.token >= 0 {
			tokens = append(tokens, at.token)
		} else if at.token < -1 {
			tokens = append(tokens, v.twins[-2-at.token]...)
		}
		if next&mayEnd != 0 && at.after > n+1 {
			exits = append(exits, n)
		}
		if next&goesOn == 0 {
			n = at.after
			continue
		}
		current[at.depth] = next
		n++
	}
	t.tokens, t.exits = tokens, exits
}

// found makes an entry of what was found, and of the tokens of another where there is one.
func (t *tables) found(more *entry) *entry {
	e := &entry{exits: slices.Clone(t.exits)}
	many := len(t.tokens)
	if more != nil {
		many += len(more.tokens)
	}
	if more != nil && more.mask != nil {
		e.mask = slices.Clone(more.mask)
	} else if many > t.v.words {
		e.mask = sample.NewMask(t.v.size)
	}
	if e.mask == nil {
		e.tokens = slices.Clone(t.tokens)
		if more != nil {
			e.tokens = append(e.tokens, more.tokens...)
		}
		return e
	}
	for _, k := range t.tokens {
		e.mask.Allow(k)
	}
	if more != nil {
		for _, k := range more.tokens {
			e.mask.Allow(k)
		}
	}
	return e
}
