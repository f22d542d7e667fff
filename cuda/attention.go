//go:build linux && cuda && cgo

package cuda

import "fmt"

// PageTokens is how many positions of one sequence share a page of the cache.
const PageTokens = 16

// partition is how many positions are attended to by one block.
const partition = 64

// maxGroup is the most query heads that read one key head.
const maxGroup = 8

// attentionKernels attend, for keys and values in float32 and in bfloat16.
type attentionKernels struct {
	store   [2]*Kernel
	attend  [2][7]*Kernel // heads of 64, 128, 256, with up to 4 and up to 8 query heads a key head; of any width up to 256
	combine *Kernel
}

func (t *attentionKernels) find(find func(**Kernel, string)) {
	for i, name := range []string{"f32", "bf16"} {
		find(&t.store[i], "store_"+name)
		for j, dim := range []string{"64_g4", "64_g8", "128_g4", "128_g8", "256_g4", "256_g8", "any"} {
			find(&t.attend[i][j], "attend_"+name+"_"+dim)
		}
	}
	find(&t.combine, "combine")
}

// Cache is keys and values of a model on the device, in pages of [PageTokens]
// positions; which page belongs to whom is not its affair.
type Cache struct {
	Layers, Heads, Dim int  // of keys and values
	Half               bool // bfloat16 instead of float32
	Pages              Memory
}

// PageBytes is the size of a page.
func (c *Cache) PageBytes() int64 {
	width := int64(4)
	if c.Half {
		width = 2
	}
	return int64(c.Layers) * int64(c.Heads) * 2 * PageTokens * int64(c.Dim) * width
}

func (c *Cache) kind() int {
	if c.Half {
		return 1
	}
	return 0
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
	Longest    int // no position is larger: how many partitions are launched
}

// part is n rows from row first on.
func (r Rows) part(first, n int) Rows {
	r.N = n
	r.Positions.at += uint64(4 * first)
	r.Segments.at += uint64(4 * first)
	return r
}

// partitions is how many partitions are launched for each row.
func (r *Rows) partitions() int { return r.Longest/partition + 1 }

// AttendScratch is how many bytes [Kernels.Attend] needs for itself.
func AttendScratch(r *Rows, heads, dim int) int64 {
	return int64(r.N) * int64(heads) * int64(r.partitions()) * int64(dim+2) * 4
}

// Attend appends key and value of the rows to a layer of cache and sets to to
// softmax(scale·q·kᵀ)·v over the last window positions up to each row's own, all
// of them if window is 0. Query head i reads key head i / (Heads of q / Heads of
// k).
func (k *Kernels) Attend(to, q, key, value View, cache *Cache, r *Rows, layer, window int, scale float32, scratch Memory) error {
	group := q.Heads / cache.Heads
	size := 6
	switch cache.Dim {
	case 64:
		size = 0
	case 128:
		size = 2
	case 256:
		size = 4
	}
	switch {
	case cache.Dim > 256:
		return fmt.Errorf("cannot attend with heads of %d values: up to 256 are possible", cache.Dim)
	case group*cache.Heads != q.Heads || group < 1 || group > maxGroup:
		return fmt.Errorf("cannot attend with %d query heads for %d key heads: up to %d each are possible", q.Heads, cache.Heads, maxGroup)
	case scratch.bytes < AttendScratch(r, q.Heads, cache.Dim):
		return fmt.Errorf("cannot attend with %d bytes of scratch memory: %d are needed", scratch.bytes, AttendScratch(r, q.Heads, cache.Dim))
	}
	if size < 6 && group > 4 {
		size++
	}
	d := k.device
	a := d.args.Reset().Pointer(cache.Pages.at).view(key).view(value).Pointer(r.Positions.at).Pointer(r.Segments.at).
		Pointer(r.Table.at).Int(r.TablePitch).Int(layer).Int(cache.Layers).Int(cache.Dim)
	if err := k.store[cache.kind()].Launch(Grid{X: cache.Heads, Y: r.N, Block: cache.Dim}, a); err != nil {
		return err
	}
	parts := r.partitions()
	a = d.args.Reset().view(q).Pointer(cache.Pages.at).Pointer(r.Positions.at).Pointer(r.Segments.at).
		Pointer(r.Table.at).Int(r.TablePitch).Int(layer).Int(cache.Layers).Int(group).Int(window).Float(scale).Pointer(scratch.at).Int(cache.Dim)
	if err := k.attend[cache.kind()][size].Launch(Grid{X: cache.Heads, Y: parts, Z: r.N, Block: 256}, a); err != nil {
		return err
	}
	a = d.args.Reset().view(to).Pointer(scratch.at).Pointer(r.Positions.at).Int(parts).Int(window).Int(cache.Dim)
	return k.combine.Launch(Grid{X: q.Heads, Y: r.N, Block: 256}, a)
}
