package sched

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTree: the radix tree answers as a plain list of texts would.
func TestTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tr tree
		kept := map[string]*entry{}
		drawText := func(t *rapid.T, least int) []int32 {
			return rapid.SliceOfN(rapid.Int32Range(0, 2), least, 8).Draw(t, "text")
		}
		t.Repeat(map[string]func(*rapid.T){
			"place": func(t *rapid.T) {
				tokens := drawText(t, 1)
				n := tr.place(tokens)
				if old := kept[fmt.Sprint(tokens)]; n.entry != old {
					t.Fatalf("the node of %v has entry %v instead of %v", tokens, n.entry, old)
				}
				e := &entry{tokens: tokens, node: n}
				n.entry = e
				kept[fmt.Sprint(tokens)] = e
			},
			"remove": func(t *rapid.T) {
				if len(kept) == 0 {
					t.Skip("none")
				}
				var keys []string
				for key := range kept {
					keys = append(keys, key)
				}
				slices.Sort(keys)
				key := rapid.SampledFrom(keys).Draw(t, "which")
				tr.remove(kept[key].node)
				delete(kept, key)
			},
			"": func(t *rapid.T) {
				tokens := drawText(t, 0)
				n, at, whole := tr.match(tokens)
				want, longest := 0, -1
				prefixes := map[string]bool{}
				for _, e := range kept {
					want = max(want, common(e.tokens, tokens))
					if common(e.tokens, tokens) == len(e.tokens) {
						longest = max(longest, len(e.tokens))
					}
					for i := 1; i <= len(e.tokens); i++ {
						prefixes[fmt.Sprint(e.tokens[:i])] = true
					}
				}
				if n != want {
					t.Fatalf("%d tokens of %v match instead of %d", n, tokens, want)
				}
				if (whole == nil) != (longest < 0) || whole != nil && len(whole.tokens) != longest {
					t.Fatalf("the longest prefix of %v is %v instead of one of %d", tokens, whole, longest)
				}
				if e := at.any(); len(kept) > 0 && (e == nil || common(e.tokens, tokens) < n) {
					t.Fatalf("below the match of %v there is %v", tokens, e)
				}
				if tr.held != len(prefixes) {
					t.Fatalf("%d tokens are held instead of %d", tr.held, len(prefixes))
				}
				checkNode(t, &tr.root)
			},
		})
	})
}

// checkNode: no node is there without a use, and edges lead where they say.
func checkNode(t *rapid.T, n *node) {
	if n.parent != nil && n.entry == nil && len(n.children) < 2 {
		t.Fatalf("a node after %v has no entry and %d children", n.edge, len(n.children))
	}
	for first, child := range n.children {
		if child.parent != n || len(child.edge) == 0 || child.edge[0] != first {
			t.Fatalf("child %d has the edge %v", first, child.edge)
		}
		checkNode(t, child)
	}
}
