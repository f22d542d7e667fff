// Package grammar narrows an answer to a language: JSON, a JSON schema, a grammar, a regular
// expression, a list of texts.
//
// Everything is compiled to rules over bytes. A rule is a deterministic automaton whose edges read
// a byte or call another rule; a [Matcher] follows all ways to read the text at once, as states
// over stacks of places to return to. It may follow tokens whose bytes begin and end anywhere,
// within characters too.
//
// The mask of the next token comes from tables: for a state of a rule, the tokens that stay within
// the rule, and the places in the trie of tokens where the rule can end. Both depend on nothing
// but the state, so they are made once, by reading the trie, and put together along the stack.
// Tables of automata that call nothing, such as a JSON string, belong to the [Vocabulary] and
// serve every grammar.
//
// The package is under the Apache License 2.0, see engine/LICENSE.
package grammar

import (
	"errors"
	"fmt"
	"math"
	"sync"
)

// must compiles what cannot fail.
func must(g *Grammar, err error) *Grammar {
	if err != nil {
		panic("grammar: " + err.Error())
	}
	return g
}

func single(e expression) (*Grammar, error) { return compile([]*rule{{body: e}}, 0) }

// Literal allows one text.
func Literal(text string) *Grammar {
	d := &dfa{}
	for i := range len(text) {
		d.edges = append(d.edges, []edge{{int32(text[i]), int32(text[i]), int32(i + 1)}})
		d.final = append(d.final, false)
	}
	d.edges = append(d.edges, nil)
	d.final = append(d.final, true)
	return must(compile([]*rule{{automaton: d}}, 0))
}

// Choice allows one of several texts.
func Choice(alternatives []string) (*Grammar, error) {
	if len(alternatives) == 0 {
		return nil, errors.New("cannot compile a choice: it has no alternatives")
	}
	var c choice
	for _, a := range alternatives {
		c = append(c, literal(a))
	}
	g, err := single(c)
	if err != nil {
		return nil, fmt.Errorf("cannot compile a choice: %w", err)
	}
	return g, nil
}

// combine makes a grammar of others, whose roots the new root calls by their number. The parts are
// within their bounds, so the whole has none.
func combine(parts []*Grammar, top *rule) *Grammar {
	rules := make([]*rule, len(parts), len(parts)+1)
	for i, p := range parts {
		base := int32(len(rules) - 1)
		offset := func(k int32) int32 {
			if k == p.root {
				return int32(i)
			}
			return base + 1 + k
		}
		for k, r := range p.rules {
			moved := &rule{name: r.name, counted: r.counted, automaton: &dfa{final: r.automaton.final}}
			for _, es := range r.automaton.edges {
				var out []edge
				for _, x := range es {
					if x.lo >= callBase {
						c := callBase + offset(x.lo-callBase)
						x = edge{c, c, x.to}
					}
					out = append(out, x)
				}
				moved.automaton.edges = append(moved.automaton.edges, out)
			}
			if int32(k) == p.root {
				rules[i] = moved
				moved = &rule{automaton: &dfa{}} // keeps the numbering
			}
			rules = append(rules, moved)
		}
	}
	root := int32(len(rules))
	return must(link(append(rules, top), root, math.MaxInt))
}

// Sequence allows a text of each part, one after the other.
func Sequence(parts ...*Grammar) *Grammar {
	d := &dfa{}
	for i := range parts {
		d.edges = append(d.edges, []edge{{callBase + int32(i), callBase + int32(i), int32(i + 1)}})
		d.final = append(d.final, false)
	}
	d.edges, d.final = append(d.edges, nil), append(d.final, true)
	return combine(parts, &rule{automaton: d})
}

// Either allows a text of one part. Of no parts it allows the empty text.
func Either(parts ...*Grammar) *Grammar {
	if len(parts) == 0 {
		return Literal("")
	}
	d := &dfa{edges: make([][]edge, 2), final: []bool{false, true}}
	for i := range parts {
		d.edges[0] = append(d.edges[0], edge{callBase + int32(i), callBase + int32(i), 1})
	}
	return combine(parts, &rule{automaton: d})
}

// maxCounted is how far Repeat counts.
const maxCounted = 1 << 20

// Repeat allows min to max texts of the part, one after the other; max below 0 is without end. It
// counts up to 1,048,576: a higher min is that, and a higher max is without end.
func Repeat(part *Grammar, min, max int) *Grammar {
	if max > maxCounted {
		max = -1
	}
	if min < 0 {
		min = 0
	} else if min > maxCounted {
		min = maxCounted
	}
	last := max
	if max < min {
		last = min
	}
	d := &dfa{}
	for i := range last + 1 {
		var es []edge
		switch {
		case i < last:
			es = []edge{{callBase, callBase, int32(i + 1)}}
		case max < 0:
			es = []edge{{callBase, callBase, int32(i)}}
		}
		d.edges = append(d.edges, es)
		d.final = append(d.final, i >= min)
	}
	return combine([]*Grammar{part}, &rule{automaton: d})
}

// Until allows any text up to and with the first place where stop stands.
func Until(stop string) *Grammar {
	if stop == "" {
		return Literal("")
	}
	return must(compile([]*rule{{automaton: until(stop)}}, 0))
}

// until is the automaton of Knuth, Morris and Pratt for the text, run beside one that reads UTF-8.
func until(stop string) *dfa {
	fail := make([]int, len(stop)+1) // length of the longest border
	for i, k := 1, 0; i < len(stop); i++ {
		for k > 0 && stop[i] != stop[k] {
			k = fail[k]
		}
		if stop[i] == stop[k] {
			k++
		}
		fail[i+1] = k
	}
	text := characters()
	ids := map[[2]int32]int32{{0, 0}: 0}
	pairs := [][2]int32{{0, 0}}
	d := &dfa{}
	for i := 0; i < len(pairs); i++ {
		matched, at := int(pairs[i][0]), pairs[i][1]
		d.final = append(d.final, matched == len(stop))
		if matched == len(stop) {
			d.edges = append(d.edges, nil)
			continue
		}
		var es []edge
		for b := range int32(256) {
			next := text.next(at, b)
			k := matched
			for k > 0 && int32(stop[k]) != b {
				k = fail[k]
			}
			if int32(stop[k]) == b {
				k++
			}
			if k == len(stop) {
				next = 0 // whatever character was open
			} else if next < 0 {
				continue
			}
			pair := [2]int32{int32(k), next}
			id, ok := ids[pair]
			if !ok {
				id = int32(len(pairs))
				ids[pair] = id
				pairs = append(pairs, pair)
			}
			es = join(es, edge{b, b, id})
		}
		d.edges = append(d.edges, es)
	}
	return d.minimise()
}

// characters is the automaton of valid UTF-8 text over bytes. The caller must not change it.
var characters = sync.OnceValue(func() *dfa {
	b := &body{}
	start, end := b.node(), b.node()
	b.add(repeat{chars{{0, lastChar, 0}}, 0, -1}, start, end)
	d, err := b.determinise(start, end)
	if err != nil {
		panic("grammar: " + err.Error())
	}
	return d
})
