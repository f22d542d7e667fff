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
	shape.KV = ops.KVF32
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

// attend is the task of some rows and some query heads that share a key head.
// Pages pass by all of them before the next, so that a page is fetched once.
type attend struct {
	b      *Backend
	dst, q view
	cache  *cache
	layer  int
	window int
	scale  float32
	rows   int // a piece
	heads  int // a piece, a divisor of the query heads of a key head
}

// attendRows is how many rows share a page in long batches.
const attendRows = 4

// Attend appends k and v to layer and sets dst to the attention of q.
func (b *Backend) Attend(dst, q, k, v ops.Tensor, c ops.Cache, layer, window int, scale float32) {
	b.store = store{b.batch, of(k), of(v), c.(*cache), layer}
	rows := len(b.batch.Tokens)
	b.workers.run(&b.store, rows)
	t := &b.attend
	*t = attend{b, of(dst), of(q), c.(*cache), layer, window, scale, 1, 1}
	if rows >= 2*attendRows*b.workers.n { // enough for all workers
		t.rows, t.heads = attendRows, q.Heads/t.cache.shape.KVHeads
	}
	b.workers.run(t, (rows+t.rows-1)/t.rows*(q.Heads/t.heads))
}

func (t *attend) do(piece, worker int) {
	pieces := t.q.heads / t.heads
	row, head := piece/pieces*t.rows, piece%pieces*t.heads
	for last := min(row+t.rows, len(t.b.batch.Tokens)); row < last; {
		s := segmentOf(t.b.batch, row)
		rows := min(last, s.Row+s.Rows) - row
		t.some(s, row, rows, head, &t.b.scratch[worker])
		row += rows
	}
}

// span is the pages from first to last−1 that a row of a segment sees, and
// which of their positions: low to high−1, counted from the first page.
func (t *attend) span(s *ops.Segment, row int) (first, last, low, high int) {
	end := s.Past + row - s.Row + 1
	start := 0
	if t.window > 0 {
		start = max(0, end-t.window)
	}
	first, last = start/ops.PageTokens, (end+ops.PageTokens-1)/ops.PageTokens
	return first, last, start - first*ops.PageTokens, end - first*ops.PageTokens
}

// some computes rows rows of a segment and t.heads heads. Sums are in order of
// pages from the first that a row sees, whatever others see.
func (t *attend) some(s *ops.Segment, row, rows, head int, c *scratch) {
	k, dim := t.b.k, t.q.dim
	kv := head / (t.q.heads / t.cache.shape.KVHeads)
	begin, _, _, _ := t.span(s, row)
	_, end, _, _ := t.span(s, row+rows-1)
	width := (end - begin) * ops.PageTokens
	c.scores = grow(c.scores, rows*t.heads*width)
	c.sums = grow(c.sums, rows*t.heads)
	c.head = grow(c.head, rows*t.heads*dim)
	clear(c.head)
	for page := begin; page < end; page++ {
		keys := t.cache.keys(s.Pages[page], t.layer, kv)
		for r := range rows {
			if first, last, _, _ := t.span(s, row+r); page < first || page >= last {
				continue
			}
			for h := range t.heads {
				at := (r*t.heads+h)*width + (page-begin)*ops.PageTokens
				k.scores(&t.q.head(row+r, head+h)[0], &keys[0], dim, t.scale, &c.scores[at])
			}
		}
	}
	for r := range rows {
		for h := range t.heads {
			j := r*t.heads + h
			first, last, low, high := t.span(s, row+r)
			at := j*width + (first-begin)*ops.PageTokens
			c.sums[j] = t.softmax(c.scores[at:at+(last-first)*ops.PageTokens], low, high)
		}
	}
	for page := begin; page < end; page++ {
		values := t.cache.keys(s.Pages[page], t.layer, kv)[ops.PageTokens*dim:]
		for r := range rows {
			first, last, _, high := t.span(s, row+r)
			if page < first || page >= last {
				continue
			}
			n := min(ops.PageTokens, high-(page-first)*ops.PageTokens)
			for h := range t.heads {
				j := r*t.heads + h
				k.values(&c.scores[j*width+(page-begin)*ops.PageTokens], &values[0], dim, n, &c.head[j*dim])
			}
		}
	}
	for r := range rows {
		for h := range t.heads {
			j := r*t.heads + h
			out := t.dst.head(row+r, head+h)
			inverse := 1 / c.sums[j]
			for d, x := range c.head[j*dim : (j+1)*dim] {
				out[d] = x * inverse
			}
		}
	}
}

// softmax turns scores into weights, 0 outside low … high−1, and returns their
// sum, which they are yet to be divided by.
func (t *attend) softmax(scores []float32, low, high int) float32 {
	minusInf := float32(math.Inf(-1))
	for i := range low {
		scores[i] = minusInf
	}
	for i := high; i < len(scores); i++ {
		scores[i] = minusInf
	}
	return t.b.k.softmax(&scores[0], len(scores), t.b.k.top(&scores[0], len(scores)))
}
