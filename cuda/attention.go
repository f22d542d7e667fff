//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"math"
	"slices"

	"velo/engine/ops"
)

// PageTokens is how many positions of one sequence share a page of the cache.
const PageTokens = 16

// partition is how many positions are attended to by one block.
const partition = 64

// span is how many partitions are added up before their sum is added to that of the spans
// before: a matter of arithmetic, alike in all kernels (kernels/pages.cuh).
const span = 16

// taken is how many query heads of a key head one block takes; more are several blocks.
const taken = 8

// promptRows is the fewest rows of a sequence that go through the kernel for prompts.
const promptRows = MaxRows + 1

// attentionKernels attend, for keys and values of each type.
type attentionKernels struct {
	store        [4]*Kernel
	attendAny    [4]*Kernel    // heads of any width up to 256
	attendSingle [2][3]*Kernel // float32, heads of 64, 128, 256 with up to 4 and up to 8 query heads a key head
	attendTensor [4][3]*Kernel // the other types, on the tensor cores
	attendMany   [4][3]*Kernel // for prompts
	combine      *Kernel
	turnStore    [4]*Kernel // store, with norms and rotations of q's and k's heads
}

// widths are those of heads that have kernels of their own.
var widths = [3]int{64, 128, 256}

func (t *attentionKernels) find(find func(to **Kernel, module, name string)) {
	for kv := ops.KVF32; kv <= ops.KVQ8; kv++ {
		find(&t.store[kv], "store", "store_"+kv.String())
		find(&t.turnStore[kv], "store", "turn_and_store_"+kv.String())
		find(&t.attendAny[kv], "attend", "attend_"+kv.String()+"_any")
		for i, dim := range widths {
			if kv == ops.KVF32 {
				find(&t.attendSingle[0][i], "attend", fmt.Sprintf("attend_f32_%d_g4", dim))
				find(&t.attendSingle[1][i], "attend", fmt.Sprintf("attend_f32_%d_g8", dim))
				continue
			}
			find(&t.attendTensor[kv][i], "attend", fmt.Sprintf("attend_%s_%d", kv, dim))
			find(&t.attendMany[kv][i], "prompt", fmt.Sprintf("prompt_%s_%d", kv, dim))
		}
	}
	find(&t.combine, "combine", "combine")
}

// Cache is keys and values of a model on the device, in pages of [PageTokens]
// positions; which page belongs to whom is not its affair.
type Cache struct {
	Layers, Heads, Dim int // of keys and values
	Type               ops.KVType
	Pages              Memory
}

// PageBytes is the size of a page.
func (c *Cache) PageBytes() int64 {
	return int64(c.Layers) * int64(c.Heads) * 2 * PageTokens * c.Type.HeadBytes(c.Dim)
}

// Rows tells of n rows which sequence each belongs to, where it stands, and
// where each sequence's pages are. All of it lies on the device, so that a graph
// serves every step.
type Rows struct {
	N          int
	Positions  Memory // int32 [n]
	Segments   Memory // int32 [n]: the row's sequence
	Table      Memory // int32 [sequences, TablePitch]: entry i holds positions i·PageTokens and on
	TablePitch int
	Longest    int           // no position is larger: how many partitions are launched
	Sequences  []ops.Segment // of which Row and Rows count; may be left out for few rows
}

// partitions is how many partitions are launched for each row.
func (r *Rows) partitions() int { return r.Longest/partition + 1 }

// AttendScratch is how many bytes [Kernels.Attend] needs for itself for all rows at once.
// With less it takes some of them at a time, down to one.
func AttendScratch(r *Rows, heads, dim int) int64 {
	return int64(r.N) * int64(heads) * int64(r.partitions()) * int64(dim+2) * 4
}

// Attend appends key and value of the rows to a layer of cache and sets to to
// softmax(scale·q·kᵀ)·v over the last window positions up to each row's own, all
// of them if window is 0. Query head i reads key head i / (Heads of q / Heads of
// k). A row has the same bits whichever rows it comes with.
//
// Heads of 64, 128 and 256 values in 16 or 8 bits are attended to on the tensor
// cores, those of sequences of more than [MaxRows] rows many rows at a time.
func (k *Kernels) Attend(to, q, key, value View, cache *Cache, r *Rows, layer, window int, scale float32, scratch Memory) error {
	return k.attend(to, q, key, value, cache, r, layer, window, scale, scratch, attendWithin{})
}

// attendWithin is what happens within the launches of an attention.
type attendWithin struct {
	turn *headTurn // of q and k, as keys and values are stored
	gate View      // to is multiplied by σ(gate), if there is one; rows of prompts are not
}

// headTurn is norms of the heads of q and k and their rotations.
type headTurn struct {
	qNorm, kNorm Memory
	eps          float32
	turns        *Turns
}

// gates tells whether attention of r may be multiplied by a gate within its launches.
func (r *Rows) gates() bool {
	return !slices.ContainsFunc(r.Sequences, func(s ops.Segment) bool { return s.Rows >= promptRows })
}

func (k *Kernels) attend(to, q, key, value View, cache *Cache, r *Rows, layer, window int, scale float32, scratch Memory, within attendWithin) error {
	group := q.Heads / max(1, cache.Heads)
	one := Rows{N: 1, Longest: r.Longest}
	row := AttendScratch(&one, q.Heads, cache.Dim)
	switch {
	case cache.Dim > 256:
		return fmt.Errorf("cannot attend with heads of %d values: up to 256 are possible", cache.Dim)
	case group*cache.Heads != q.Heads || group < 1:
		return fmt.Errorf("cannot attend with %d query heads for %d key heads: each key head needs as many", q.Heads, cache.Heads)
	case scratch.bytes < row:
		return fmt.Errorf("cannot attend with %d bytes of scratch memory: a row needs %d", scratch.bytes, row)
	}
	if err := k.keep(q, key, value, cache, r, layer, within.turn); err != nil {
		return err
	}
	at := attending{to, q, within.gate, cache, r, layer, window, group, scale * math.Log2E, scratch, int(scratch.bytes / row)}
	prompt := -1
	if cache.Type != ops.KVF32 {
		prompt = slices.Index(widths[:], cache.Dim)
	}
	next := 0 // the first row that nothing was launched for
	for i := range r.Sequences {
		s := &r.Sequences[i]
		if prompt < 0 || s.Rows < promptRows {
			continue
		}
		if err := k.attendRows(&at, next, s.Row); err != nil {
			return err
		}
		if err := k.attendPrompt(&at, k.attendMany[cache.Type][prompt], s.Row, s.Rows); err != nil {
			return err
		}
		next = s.Row + s.Rows
	}
	return k.attendRows(&at, next, r.N)
}

// keep stores key and value of the rows in a layer of cache; before that q and key are
// normalised and turned, if turn says how.
func (k *Kernels) keep(q, key, value View, cache *Cache, r *Rows, layer int, turn *headTurn) error {
	a, kernel := k.device.args.Reset(), k.store[cache.Type]
	grid := Grid{X: cache.Heads, Y: r.N, Block: (cache.Dim + 31) &^ 31}
	if turn == nil {
		a.Pointer(cache.Pages.at).view(key).view(value)
	} else {
		kernel = k.turnStore[cache.Type]
		grid.X = q.Heads + 2*cache.Heads
		a.view(q).view(key).view(value).Pointer(turn.qNorm.at).Pointer(turn.kNorm.at).Int(q.Heads).Int(cache.Dim).Float(turn.eps).
			Pointer(turn.turns.Cosine.at).Pointer(turn.turns.Sine.at).Int(turn.turns.Pairs).Pointer(cache.Pages.at)
	}
	a.Pointer(r.Positions.at).Pointer(r.Segments.at).Pointer(r.Table.at).Int(r.TablePitch).Int(layer).Int(cache.Layers)
	if turn == nil {
		a.Int(cache.Dim)
	}
	return kernel.Launch(grid, a)
}

// attending is what the launches of one attention have in common.
type attending struct {
	to, q, gate          View // gate: σ of it multiplies to, if it has heads
	cache                *Cache
	rows                 *Rows
	layer, window, group int
	scale                float32 // to logarithms of base 2
	scratch              Memory
	most                 int // rows that scratch has room for
}

// places appends the kernels' common arguments, for rows from first on.
func (t *attending) places(d *Device, first int) *Args {
	c, r := t.cache, t.rows
	at := uint64(4 * first)
	return d.args.Reset().view(from(t.q, first)).Pointer(c.Pages.at).Pointer(r.Positions.at + at).Pointer(r.Segments.at + at).
		Pointer(r.Table.at).Int(r.TablePitch).Int(t.layer).Int(c.Layers).Int(t.group).Int(t.window).Float(t.scale)
}

// from is a view without its first n rows.
func from(v View, n int) View {
	v.Offset += n * v.Pitch
	return v
}

// attendRows launches rows first to end−1, a block for each partition of each.
func (k *Kernels) attendRows(t *attending, first, end int) error {
	c, parts := t.cache, t.rows.partitions()
	kernel, tensor := k.attendAny[c.Type], false
	if i := slices.Index(widths[:], c.Dim); i >= 0 {
		switch {
		case c.Type != ops.KVF32:
			kernel, tensor = k.attendTensor[c.Type][i], true
		case t.group > 4:
			kernel = k.attendSingle[1][i]
		default:
			kernel = k.attendSingle[0][i]
		}
	}
	for ; first < end; first += t.most {
		n := min(t.most, end-first)
		grid := Grid{X: c.Heads * ((t.group + taken - 1) / taken), Y: parts, Z: n, Block: 256}
		a := t.places(k.device, first).Pointer(t.scratch.at)
		if tensor {
			var each int
			grid, each = k.splitGrid(t, kernel, n)
			a.Int(parts).Int(each)
		} else {
			a.Int(c.Dim)
		}
		if err := kernel.Launch(grid, a); err != nil {
			return err
		}
		if err := k.combineParts(t, first, n); err != nil {
			return err
		}
	}
	return nil
}

// splitGrid is the shape of a launch of attention on the tensor cores for n rows: as many partitions a
// block, each, as leave no block waiting for room.
func (k *Kernels) splitGrid(t *attending, kernel *Kernel, n int) (g Grid, each int) {
	c, parts := t.cache, t.rows.partitions()
	g = Grid{X: c.Heads * ((t.group + taken - 1) / taken), Z: n, Block: 128}
	room := k.device.facts.SMs * kernel.resident(g.Block, (c.Dim+32)*32+9<<9)
	each = (g.X*parts*n + room - 1) / room
	g.Y = (parts + each - 1) / each
	return g, each
}

// combineParts launches the sum over the partitions of n rows from row first on.
func (k *Kernels) combineParts(t *attending, first, n int) error {
	c, parts := t.cache, t.rows.partitions()
	a := k.device.args.Reset().view(from(t.to, first)).Pointer(t.scratch.at).Pointer(t.rows.Positions.at + uint64(4*first)).
		Int(parts).Int(t.window).Int(c.Dim).Int(partition).Int(span)
	if t.gate.Heads > 0 {
		a.view(from(t.gate, first))
	} else {
		a.view(View{})
	}
	return k.combine.Launch(combineGrid(t.q.Heads, n, c.Dim, (parts+span-1)/span), a)
}

// combineGrid is the shape of the launch that adds up so many spans of n rows: a warp has two.
func combineGrid(heads, n, dim, spans int) Grid {
	return Grid{X: heads, Y: n, Z: (dim + 31) / 32, Block: 32 * min(16, (spans+1)/2)}
}

// attendPrompt launches n rows of one sequence from row first on, and, where they are too few
// to fill the device, a block for each span of positions.
func (k *Kernels) attendPrompt(t *attending, kernel *Kernel, first, n int) error {
	c := t.cache
	rows := 64 // query heads and rows of a block
	if c.Dim == 256 {
		rows = 32
	}
	shared := partition * (4*c.Dim + 80)
	if c.Type != ops.KVBF16 {
		shared += partition * c.Dim
	}
	if err := kernel.Allow(shared); err != nil {
		return err
	}
	g := Grid{X: (n*t.group + rows - 1) / rows, Y: c.Heads, Block: 128, Shared: shared}
	spans := (t.rows.partitions() + span - 1) / span
	if spans == 1 || k.ways.whole || g.X*g.Y >= k.device.facts.SMs || t.scratch.bytes < spanScratch(n, t.q.Heads, spans, c.Dim) {
		return kernel.Launch(g, t.places(k.device, first).view(from(t.to, first)).Int(n).Pointer(0).Int(0))
	}
	// Too few blocks to fill the device: each has one span.
	g.Z = spans
	if err := kernel.Launch(g, t.places(k.device, first).view(from(t.to, first)).Int(n).Pointer(t.scratch.at).Int(spans)); err != nil {
		return err
	}
	a := k.device.args.Reset().view(from(t.to, first)).Pointer(t.scratch.at).Pointer(t.rows.Positions.at + uint64(4*first)).
		Int(spans).Int(t.window).Int(c.Dim).Int(partition * span).Int(1).view(View{})
	return k.combine.Launch(combineGrid(t.q.Heads, n, c.Dim, spans), a)
}

// spanScratch is the bytes of the sums of spans of n rows.
func spanScratch(n, heads, spans, dim int) int64 {
	return int64(n) * int64(heads) * int64(spans) * int64(dim+2) * 4
}
