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
		t = &tables{g: g, v: v, entries: map[place]*entry{}, scratch: sample.NewMask(v.size)}
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
	bytes   int

	stacks stacks
	sets   []set
	ids    map[string]int32
	rows   []int32 // by set and class: the next set, unknown or dead
	key    []byte
	tops   []top

	current []int32 // set at each depth of a walk
	scratch sample.Mask
	tokens  []int32
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

func (t *tables) reset() {
	t.stacks = stacks{g: t.g, index: map[frame]int32{}}
	t.sets = nil
	t.rows = nil
	t.ids = map[string]int32{}
}

// intern returns the number of a set, dead for one from which nothing leads on.
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
		return id
	}
	id := int32(len(t.sets))
	t.ids[string(t.key)] = id
	t.sets = append(t.sets, set{slices.Clone(tops), ended})
	for range t.g.classes {
		t.rows = append(t.rows, unknown)
	}
	return id
}

// follow is the transition of the automaton of tops.
func (t *tables) follow(id int32, b byte) int32 {
	class := t.g.class[b]
	at := int(id)*t.g.classes + int(class)
	next := t.rows[at]
	if next == unknown {
		tops, ended := t.stacks.step(t.tops[:0], t.sets[id].tops, b)
		t.tops = tops
		next = t.intern(tops, ended)
		t.rows[at] = next
	}
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

// lookup returns the entry of a place, or nil if there is none yet. The read lock is held.
func (t *tables) lookup(p place) *entry { return t.entries[p] }

// make adds the entry of a place. The lock is not held.
func (t *tables) make(p place) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.entries[p]; e != nil {
		return e
	}
	if t.bytes > maxEntries {
		t.entries = map[place]*entry{}
		t.bytes = 0
	}
	st := &t.g.states[p.state]
	var e *entry
	var common sharedPlace
	if st.print >= 0 {
		common = sharedPlace{t.g.prints[st.print], p}
		common.place.state = st.local
		e = t.v.shared.get(common)
	}
	if e == nil {
		e = t.walk(p)
		if st.print >= 0 {
			t.v.shared.put(common, e)
		}
	}
	t.entries[p] = e
	t.bytes += e.bytes()
	return e
}

// walk reads the trie below a node from a place on.
func (t *tables) walk(p place) *entry {
	if len(t.sets) > maxSets {
		t.reset()
	}
	s := &t.stacks
	from := top{p.state, p.need, p.room, bottom}
	var tops []top
	e := &entry{}
	if p.fresh {
		s.work = append(s.work[:0], s.enter(p.state, bottom))
		tops, e.ended = s.expand(t.tops[:0])
		t.tops = tops
	} else {
		tops = []top{from}
	}
	begin := t.intern(tops, e.ended)
	v := t.v
	if begin == dead {
		return e
	}
	if len(t.current) < int(v.deep)+1 {
		t.current = make([]int32, v.deep+1)
	}
	t.current[v.depth[p.node]] = begin
	tokens := t.tokens[:0]
	for n, end := p.node+1, v.after[p.node]; n < end; {
		depth := v.depth[n]
		id := t.follow(t.current[depth-1], v.label[n])
		if id == dead {
			n = v.after[n]
			continue
		}
		for k := v.token[n]; k >= 0; k = v.same[k] {
			tokens = append(tokens, k)
		}
		if v.after[n] == n+1 {
			n++
			continue
		}
		if t.sets[id].ended {
			e.exits = append(e.exits, n)
		}
		if len(t.sets[id].tops) == 0 {
			n = v.after[n]
			continue
		}
		t.current[depth] = id
		n++
	}
	t.tokens = tokens
	if len(tokens) > v.words {
		e.mask = sample.NewMask(v.size)
		for _, k := range tokens {
			e.mask.Allow(k)
		}
	} else {
		e.tokens = slices.Clone(tokens)
	}
	e.exits = slices.Clip(e.exits)
	return e
}
