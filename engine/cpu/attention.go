package cpu

import (
	"fmt"
	"math"

	"velo/engine/ops"
)

// cache is keys, values and recurrent states of one model.
//
// A page holds, for each layer and key head, keys [dim, PageTokens] and then
// values [PageTokens, dim]: 16 scores are computed side by side without
// adding across a vector, and so is the sum of values.
type cache struct {
	shape      ops.CacheShape
	pages      []float32
	page       int // float32 a page
	states     []float32
	state      int // float32 a state
	convFloats int // of a layer's state, the convolution's share
}

// Cache makes a cache of so many pages and recurrent states.
func (b *Backend) Cache(shape ops.CacheShape, pages, states int) (ops.Cache, error) {
	if pages < 0 || states < 0 {
		return nil, fmt.Errorf("cannot make a cache of %d pages and %d states", pages, states)
	}
	c := &cache{shape: shape, page: int(shape.PageBytes() / 4), state: int(shape.StateBytes() / 4)}
	c.pages = make([]float32, pages*c.page)
	c.states = make([]float32, states*c.state)
	c.convFloats = max(shape.ConvKernel-1, 0) * shape.ConvCols
	return c, nil
}

func (c *cache) Shape() ops.CacheShape { return c.shape }

func (c *cache) CopyPage(dst, src int32) {
	copy(c.pages[int(dst)*c.page:(int(dst)+1)*c.page], c.pages[int(src)*c.page:])
}

func (c *cache) CopyState(dst, src int32) {
	copy(c.states[int(dst)*c.state:(int(dst)+1)*c.state], c.states[int(src)*c.state:])
}

func (c *cache) ClearState(slot int32) {
	clear(c.states[int(slot)*c.state : (int(slot)+1)*c.state])
}

// keys is the keys [dim, PageTokens] of a page, followed by its values.
func (c *cache) keys(page int32, layer, head int) []float32 {
	n := 2 * ops.PageTokens * c.shape.HeadDim
	at := int(page)*c.page + (layer*c.shape.KVHeads+head)*n
	return c.pages[at : at+n : at+n]
}

// conv is the last inputs of a layer's convolution, [ConvKernel−1, ConvCols].
func (c *cache) conv(slot int32, layer int) []float32 {
	at := int(slot)*c.state + layer*c.layerState()
	return c.states[at : at+c.convFloats : at+c.convFloats]
}

// matrix is the state [KeyDim, ValueDim] of a value head.
func (c *cache) matrix(slot int32, layer, head int) []float32 {
	n := c.shape.KeyDim * c.shape.ValueDim
	at := int(slot)*c.state + layer*c.layerState() + c.convFloats + head*n
	return c.states[at : at+n : at+n]
}

func (c *cache) layerState() int {
	return c.convFloats + c.shape.ValueHeads*c.shape.KeyDim*c.shape.ValueDim
}

// store is the task that puts a row's keys and values into their page.
type store struct {
	batch *ops.Batch
	k, v  view
	cache *cache
	layer int
}

func (t *store) do(row, _ int) {
	s := segmentOf(t.batch, row)
	position := s.Past + row - s.Row
	page, slot := s.Pages[position/ops.PageTokens], position%ops.PageTokens
	dim := t.cache.shape.HeadDim
	for h := range t.k.heads {
		keys := t.cache.keys(page, t.layer, h)
		for d, x := range t.k.head(row, h) {
			keys[d*ops.PageTokens+slot] = x
		}
		copy(keys[(ops.PageTokens+slot)*dim:(ops.PageTokens+slot+1)*dim], t.v.head(row, h))
	}
}

// segmentOf finds the segment of a row; there are few of them.
func segmentOf(b *ops.Batch, row int) *ops.Segment {
	lo, hi := 0, len(b.Segments)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; b.Segments[mid].Row <= row {
			lo = mid
		} else {
			hi = mid
		}
	}
	return &b.Segments[lo]
}

// attend is the task of one query head of one row a piece.
type attend struct {
	b      *Backend
	dst, q view
	cache  *cache
	layer  int
	window int
	scale  float32
}

// Attend appends k and v to layer and sets dst to the attention of q.
func (b *Backend) Attend(dst, q, k, v ops.Tensor, c ops.Cache, layer, window int, scale float32) {
	b.store = store{b.batch, of(k), of(v), c.(*cache), layer}
	rows := len(b.batch.Tokens)
	b.workers.run(&b.store, rows)
	b.attend = attend{b, of(dst), of(q), c.(*cache), layer, window, scale}
	b.workers.run(&b.attend, rows*q.Heads)
}

func (t *attend) do(piece, worker int) {
	row, head := piece/t.q.heads, piece%t.q.heads
	s := segmentOf(t.b.batch, row)
	end := s.Past + row - s.Row + 1
	start := 0
	if t.window > 0 {
		start = max(0, end-t.window)
	}
	first := start / ops.PageTokens // sums are in order of pages from the first seen
	pages := (end+ops.PageTokens-1)/ops.PageTokens - first
	k, c := t.b.k, &t.b.scratch[worker]
	c.scores = grow(c.scores, pages*ops.PageTokens)
	scores := c.scores
	kv := head / (t.q.heads / t.cache.shape.KVHeads)
	q := t.q.head(row, head)
	for i := range pages {
		keys := t.cache.keys(s.Pages[first+i], t.layer, kv)
		k.scores(&q[0], &keys[0], len(q), t.scale, &scores[i*ops.PageTokens])
	}
	low, high := start-first*ops.PageTokens, end-first*ops.PageTokens
	minusInf := float32(math.Inf(-1))
	for i := range low {
		scores[i] = minusInf
	}
	for i := high; i < len(scores); i++ {
		scores[i] = minusInf
	}
	sum := k.softmax(&scores[0], len(scores), k.top(&scores[0], len(scores)))
	dim := len(q)
	c.head = grow(c.head, dim)
	clear(c.head)
	for i := range pages {
		values := t.cache.keys(s.Pages[first+i], t.layer, kv)[ops.PageTokens*dim:]
		k.values(&scores[i*ops.PageTokens], &values[0], dim, min(ops.PageTokens, high-i*ops.PageTokens), &c.head[0])
	}
	out := t.dst.head(row, head)
	inverse := 1 / sum
	for d, x := range c.head {
		out[d] = x * inverse
	}
}
