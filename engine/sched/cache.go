package sched

import (
	"container/list"

	"velo/engine/kv"
	"velo/engine/ops"
)

// cache keeps what was computed of texts that have ended, or that others may
// share while they run: the prefix cache.
//
// Attention needs no more than the keys and values of a prefix, so one entry
// serves every prefix of its text, in whole pages. A recurrent state is good
// for its own position alone: in a hybrid model an entry is a checkpoint and
// serves texts that begin with all of it.
//
// Pages that only entries hold are as good as free; they are given back, the
// least recently used first, when a request needs them. Recurrent states are
// what checkpoints really cost, and limit bounds their bytes.
type cache struct {
	pool    *kv.Pool
	hybrid  bool
	tree    tree
	recent  list.List // of *entry, the most recently used first
	bytes   int64     // of states and logits
	limit   int64
	evicted uint64
}

// entry is a text and what is remembered of it.
type entry struct {
	tokens []int32
	shot   *kv.Snapshot
	logits []float32 // what follows the text; nil if not kept
	node   *node
	place  *list.Element
	bytes  int64
}

func newCache(pool *kv.Pool, limit int64) *cache {
	shape := pool.Shape()
	return &cache{pool: pool, hybrid: shape.Recurrent > 0, limit: limit}
}

// find gives an entry and how many of tokens can be taken from it: fewer than
// all, as the last one is what logits come from, unless the entry kept them.
func (c *cache) find(tokens []int32) (*entry, int) {
	n, at, whole := c.tree.match(tokens)
	if !c.hybrid {
		n = min(n, len(tokens)-1) / ops.PageTokens * ops.PageTokens
		if n == 0 {
			return nil, 0
		}
		return at.any(), n
	}
	for whole != nil {
		if n := len(whole.tokens); n < len(tokens) || whole.logits != nil {
			return whole, n
		}
		whole = whole.node.above()
	}
	return nil, 0
}

// above is the next entry on the way to the root.
func (n *node) above() *entry {
	for n = n.parent; n != nil; n = n.parent {
		if n.entry != nil {
			return n.entry
		}
	}
	return nil
}

// use marks an entry as just used.
func (c *cache) use(e *entry) { c.recent.MoveToFront(e.place) }

// room makes sure that one more checkpoint fits, evicting others for it.
func (c *cache) room(logits int) bool {
	if !c.hybrid {
		return true
	}
	need := c.pool.Shape().StateBytes() + 4*int64(logits)
	if c.limit > 0 && need > c.limit {
		return false
	}
	for c.pool.FreeStates() == 0 || c.limit > 0 && c.bytes+need > c.limit {
		if !c.evict(nil) {
			return false
		}
	}
	return true
}

// has tells whether exactly this text is kept, and marks it as used.
func (c *cache) has(tokens []int32, logits bool) bool {
	n, at, _ := c.tree.match(tokens)
	if n < len(tokens) {
		return false
	}
	if !c.hybrid {
		if e := at.any(); e != nil {
			c.use(e)
			return true
		}
		return false
	}
	e := at.entry
	if e == nil || len(e.tokens) != n || logits && e.logits == nil {
		return false
	}
	c.use(e)
	return true
}

// add takes over a snapshot of a text, of which it keeps the slice, and what
// follows it. The snapshot of an attention model must be of whole pages.
func (c *cache) add(tokens []int32, shot *kv.Snapshot, logits []float32) {
	if len(tokens) == 0 || c.has(tokens, logits != nil) {
		shot.Free()
		return
	}
	n := c.tree.place(tokens)
	if n.entry != nil { // the same without its logits
		c.drop(n.entry)
		n = c.tree.place(tokens)
	}
	e := &entry{tokens: tokens, shot: shot, logits: logits, node: n}
	n.entry = e
	e.place = c.recent.PushFront(e)
	if c.hybrid {
		e.bytes = c.pool.Shape().StateBytes() + 4*int64(len(logits))
		c.bytes += e.bytes
		for c.limit > 0 && c.bytes > c.limit && c.evict(nil) {
		}
		return
	}
	// What the new entry covers is of no more use.
	for old := n.above(); old != nil; old = n.above() {
		c.drop(old)
	}
}

// drop forgets an entry.
func (c *cache) drop(e *entry) {
	c.take(e)
	e.shot.Free()
}

// take removes an entry without freeing what it holds.
func (c *cache) take(e *entry) {
	c.tree.remove(e.node)
	c.recent.Remove(e.place)
	c.bytes -= e.bytes
}

// trimPages is how many pages at least an eviction takes off a text.
const trimPages = 8

// evict gives back some of the least recently used entry, except spares: the
// end of its text where any prefix is useful, else all of it. It tells
// whether there was anything to evict.
func (c *cache) evict(except *entry) bool {
	last := c.recent.Back()
	if last != nil && last.Value.(*entry) == except {
		last = last.Prev()
	}
	if last == nil {
		return false
	}
	c.evicted++
	e := last.Value.(*entry)
	keep := len(e.tokens) - trimPages*ops.PageTokens
	if c.hybrid || keep <= 0 {
		c.drop(e)
		return true
	}
	next := last.Next()
	c.take(e)
	if err := e.shot.Truncate(keep); err != nil || c.has(e.tokens[:keep], false) {
		e.shot.Free()
		return true
	}
	e.tokens = e.tokens[:keep]
	e.node = c.tree.place(e.tokens)
	e.node.entry = e
	if next != nil {
		e.place = c.recent.InsertBefore(e, next)
	} else {
		e.place = c.recent.PushBack(e)
	}
	return true
}

// clear forgets everything.
func (c *cache) clear() {
	for e := c.recent.Front(); e != nil; e = c.recent.Front() {
		c.drop(e.Value.(*entry))
	}
}
