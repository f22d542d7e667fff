package grammar

import (
	"bytes"
	"slices"
	"sync"

	"velo/engine/sample"
)

// maxToken is the longest token that is looked at, in bytes. Longer ones are never allowed.
const maxToken = 1 << 12

// Vocabulary is the tokens of a model as a trie. It is built once a model, immutable for its users
// and safe for concurrent use.
type Vocabulary struct {
	size  int
	words int // of a mask
	bytes [][]byte
	end   []int32

	nodes []node // of the trie in depth-first order; node 0 is the root
	twins [][]int32
	deep  int32 // length of the longest token

	shared shared
}

// node is a node of the trie.
type node struct {
	after int32 // the first node behind the subtree
	token int32 // the token that ends here, -1 without, -2-i for those of twins[i]
	depth uint16
	label byte
}

// NewVocabulary builds the trie of the ids 0 to vocab-1. token returns the bytes of an id, and nil
// for special and unused ones, which are never allowed; nor are empty tokens. end are the ids that
// end an answer.
func NewVocabulary(vocab int, token func(id int32) []byte, end []int32) *Vocabulary {
	v := &Vocabulary{size: vocab, words: (vocab + 63) / 64, bytes: make([][]byte, vocab)}
	var order []int32
	for id := range int32(vocab) {
		if slices.Contains(end, id) {
			continue
		}
		if b := token(id); len(b) > 0 && len(b) <= maxToken {
			v.bytes[id] = slices.Clone(b)
			order = append(order, id)
			v.deep = max(v.deep, int32(len(b)))
		}
	}
	for _, id := range end {
		if id >= 0 && int(id) < vocab && !slices.Contains(v.end, id) {
			v.end = append(v.end, id)
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		if c := bytes.Compare(v.bytes[a], v.bytes[b]); c != 0 {
			return c
		}
		return int(a - b)
	})
	v.nodes = append(v.nodes, node{token: -1})
	path := []int32{0} // nodes of the token before
	var last []byte
	for _, id := range order {
		b := v.bytes[id]
		common := 0
		for common < len(b) && common < len(last) && b[common] == last[common] {
			common++
		}
		for _, n := range path[common+1:] {
			v.nodes[n].after = int32(len(v.nodes))
		}
		path = path[:common+1]
		for i := common; i < len(b); i++ {
			path = append(path, int32(len(v.nodes)))
			v.nodes = append(v.nodes, node{token: -1, depth: uint16(i + 1), label: b[i]})
		}
		n := &v.nodes[path[len(path)-1]]
		switch first := n.token; {
		case first == -1:
			n.token = id
		case first >= 0: // several tokens of the same bytes
			n.token = int32(-2 - len(v.twins))
			v.twins = append(v.twins, []int32{first, id})
		default:
			v.twins[-2-first] = append(v.twins[-2-first], id)
		}
		last = b
	}
	for _, n := range path {
		v.nodes[n].after = int32(len(v.nodes))
	}
	v.warm()
	return v
}

// warm makes what the strings of any JSON need, before the first request.
func (v *Vocabulary) warm() {
	g := JSON()
	for i := range g.counts {
		v.shared.profile(g, v, i)
	}
}

// entry is what may follow in one place of a rule, as far as that rule decides it.
type entry struct {
	mask   sample.Mask // of the tokens that stay in the rule; nil where they are few
	tokens []int32     // all of them where they are few
	exits  []int32     // nodes of the trie at which the rule can end, with a rest to be read
	ended  bool        // it can end where it begins
}

// place is what an entry belongs to.
type place struct {
	state, need, room int32
	node              int32 // of the trie: what has been read of the token already
	fresh             bool  // just reached, so that calls and returns are still to be followed
}

// shared keeps the entries of automata that call nothing, whichever grammar they are part of: a
// JSON string costs one walk over the whole trie for each vocabulary, not for each schema.
type shared struct {
	sync.Mutex
	entries  map[sharedPlace]*entry
	profiles map[[16]byte]*profile
	bytes    int
}

type sharedPlace struct {
	print [16]byte
	place place
}

// maxShared is what shared entries may take before they are dropped, in bytes.
const maxShared = 64 << 20

func (s *shared) get(p sharedPlace) *entry {
	s.Lock()
	defer s.Unlock()
	return s.entries[p]
}

func (s *shared) put(p sharedPlace, e *entry) {
	s.Lock()
	defer s.Unlock()
	if s.entries == nil || s.bytes > maxShared {
		s.entries, s.profiles = map[sharedPlace]*entry{}, map[[16]byte]*profile{}
		s.bytes = 0
	}
	s.entries[p] = e
	s.bytes += e.bytes()
}

func (e *entry) bytes() int { return 200 + 8*len(e.mask) + 4*len(e.tokens) + 4*len(e.exits) }
