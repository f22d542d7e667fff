package sched

// tree holds texts by their prefixes: a radix tree over tokens. Each entry
// sits at the node where its text ends. A node without an entry, the root
// aside, has at least two children.
type tree struct {
	root node
	held int // tokens on all edges
}

type node struct {
	parent   *node
	edge     []int32 // tokens from the parent to here
	children map[int32]*node
	entry    *entry
}

// match walks along tokens as far as they go. It gives how many match, the
// node that the point of divergence is at or leads to, and the deepest entry
// whose whole text is a prefix of tokens.
func (t *tree) match(tokens []int32) (n int, at *node, whole *entry) {
	at = &t.root
	for n < len(tokens) {
		next := at.children[tokens[n]]
		if next == nil {
			return n, at, whole
		}
		k := common(next.edge, tokens[n:])
		n, at = n+k, next
		if k < len(next.edge) {
			return n, at, whole
		}
		if next.entry != nil {
			whole = next.entry
		}
	}
	return n, at, whole
}

// any gives an entry at or below a node.
func (n *node) any() *entry {
	for n.entry == nil {
		found := false
		for _, child := range n.children {
			n, found = child, true
			break
		}
		if !found {
			return nil
		}
	}
	return n.entry
}

// place gives the node of a text, which it makes if there is none. The tree
// keeps the slice.
func (t *tree) place(tokens []int32) *node {
	n, at, _ := t.match(tokens)
	depth := at.depth()
	if n < depth { // the text leaves in the middle of the edge to at
		at = at.split(len(at.edge) - (depth - n))
	}
	if n == len(tokens) {
		return at
	}
	leaf := &node{parent: at, edge: tokens[n:]}
	at.adopt(leaf)
	t.held += len(leaf.edge)
	return leaf
}

// remove takes the entry of a node away, and nodes that are of no use then.
func (t *tree) remove(n *node) {
	n.entry = nil
	for n.parent != nil && n.entry == nil {
		parent := n.parent
		switch len(n.children) {
		case 0:
			delete(parent.children, n.edge[0])
			t.held -= len(n.edge)
		case 1:
			for _, child := range n.children {
				child.edge = append(n.edge[:len(n.edge):len(n.edge)], child.edge...)
				child.parent = parent
				parent.children[child.edge[0]] = child
			}
			return
		default:
			return
		}
		n = parent
	}
}

func (n *node) adopt(child *node) {
	if n.children == nil {
		n.children = map[int32]*node{}
	}
	n.children[child.edge[0]] = child
	child.parent = n
}

// split puts a node k tokens down the edge that leads to n.
func (n *node) split(k int) *node {
	middle := &node{edge: n.edge[:k:k]}
	n.parent.adopt(middle)
	n.edge = n.edge[k:]
	middle.adopt(n)
	return middle
}

// depth is how many tokens lead to a node.
func (n *node) depth() (d int) {
	for ; n != nil; n = n.parent {
		d += len(n.edge)
	}
	return d
}

// common is the length of the common prefix.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
