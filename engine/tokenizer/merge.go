package tokenizer

import (
	"math"
	"strings"
)

// short is the number of symbols up to which the lowest rank is looked for by going through all
// pairs; longer words use a queue, so that the work grows as n log n.
const short = 48

const cacheWords = 1 << 15 // words a worker remembers
const cacheBytes = 48      // length of the longest of them

// A worker holds the scratch memory of one encoding at a time.
type worker struct {
	model *bpe
	words map[string][2]int32 // word → start and end of its ids in known
	known []int32
	ids   []int32
	ranks []int32
	nodes []node
	queue queue
}

// encode appends the ids of a word to dst.
func (w *worker) encode(dst []int32, word string) []int32 {
	m := w.model
	if m.ignoreMerges {
		if id, ok := m.vocab[word]; ok {
			return append(dst, id)
		}
	}
	if e, ok := w.words[word]; ok {
		return append(dst, w.known[e[0]:e[1]]...)
	}
	w.ids = m.symbols(w.ids[:0], word)
	if len(w.ids) <= short {
		w.mergeShort()
	} else {
		w.mergeLong()
	}
	if len(word) <= cacheBytes {
		if len(w.words) >= cacheWords {
			clear(w.words)
			w.known = w.known[:0]
		}
		from := len(w.known)
		w.known = append(w.known, w.ids...)
		w.words[strings.Clone(word)] = [2]int32{int32(from), int32(len(w.known))}
	}
	return append(dst, w.ids...)
}

const noMerge = math.MaxInt32

// mergeShort merges w.ids in place.
func (w *worker) mergeShort() {
	ids, merges := w.ids, &w.model.merges
	ranks := w.ranks[:0]
	rankAt := func(i int) int32 {
		if rank, _, ok := merges.find(ids[i], ids[i+1]); ok {
			return rank
		}
		return noMerge
	}
	for i := 0; i+1 < len(ids); i++ {
		ranks = append(ranks, rankAt(i))
	}
	for len(ranks) > 0 {
		best := 0
		for i, r := range ranks {
			if r < ranks[best] {
				best = i
			}
		}
		if ranks[best] == noMerge {
			break
		}
		_, ids[best], _ = merges.find(ids[best], ids[best+1])
		ids = append(ids[:best+1], ids[best+2:]...)
		ranks = append(ranks[:best], ranks[best+1:]...)
		if best > 0 {
			ranks[best-1] = rankAt(best - 1)
		}
		if best < len(ranks) {
			ranks[best] = rankAt(best)
		}
	}
	w.ids, w.ranks = ids, ranks
}

// A node is a symbol of a long word, linked to its neighbours.
type node struct {
	id         int32 // -1: merged into the one before
	prev, next int32 // -1: none
}

// A candidate is a merge that was possible when it was queued.
type candidate struct{ rank, at, left, right int32 }

// queue is a binary heap of candidates, the next merge first.
type queue []candidate

func (q queue) less(i, j int) bool {
	return q[i].rank < q[j].rank || q[i].rank == q[j].rank && q[i].at < q[j].at
}

func (q queue) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(q) {
			return
		}
		if child+1 < len(q) && q.less(child+1, child) {
			child++
		}
		if !q.less(child, i) {
			return
		}
		q[i], q[child] = q[child], q[i]
		i = child
	}
}

func (q queue) order() {
	for i := len(q)/2 - 1; i >= 0; i-- {
		q.down(i)
	}
}

func (q *queue) push(c candidate) {
	*q = append(*q, c)
	for i := len(*q) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.less(i, parent) {
			return
		}
		(*q)[i], (*q)[parent] = (*q)[parent], (*q)[i]
		i = parent
	}
}

func (q *queue) pop() candidate {
	top, last := (*q)[0], len(*q)-1
	(*q)[0] = (*q)[last]
	*q = (*q)[:last]
	q.down(0)
	return top
}

// mergeLong merges w.ids by a queue of candidates; those that a neighbour's merge has overtaken are
// recognised when their turn comes.
func (w *worker) mergeLong() {
	merges := &w.model.merges
	nodes, q := w.nodes[:0], w.queue[:0]
	for i, id := range w.ids {
		nodes = append(nodes, node{id, int32(i - 1), int32(i + 1)})
	}
	nodes[len(nodes)-1].next = -1
	offer := func(at int32) (candidate, bool) {
		if at < 0 || nodes[at].next < 0 {
			return candidate{}, false
		}
		left, right := nodes[at].id, nodes[nodes[at].next].id
		rank, _, ok := merges.find(left, right)
		return candidate{rank, at, left, right}, ok
	}
	for i := range nodes {
		if c, ok := offer(int32(i)); ok {
			q = append(q, c)
		}
	}
	q.order()
	for len(q) > 0 {
		c := q.pop()
		left := &nodes[c.at]
		if left.id != c.left || left.next < 0 || nodes[left.next].id != c.right {
			continue
		}
		_, left.id, _ = merges.find(c.left, c.right)
		gone := &nodes[left.next]
		gone.id = -1
		left.next = gone.next
		if left.next >= 0 {
			nodes[left.next].prev = c.at
		}
		if c, ok := offer(left.prev); ok {
			q.push(c)
		}
		if c, ok := offer(c.at); ok {
			q.push(c)
		}
	}
	ids := w.ids[:0]
	for i := int32(0); i >= 0; i = nodes[i].next {
		ids = append(ids, nodes[i].id)
	}
	w.ids, w.nodes, w.queue = ids, nodes, q
}
