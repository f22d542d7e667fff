//go:build linux && cuda && cgo

package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"velo/engine/ops"
)

// TestAttend attends with rows of several sequences in pages in random order, against
// float64 over the keys and values that were stored, which are held against those
// given. Each row has the same bits in a prompt, whichever of its rows it comes with, as
// a row of its own, and among rows of other sequences.
func TestAttend(t *testing.T) {
	rt := newRowsTest(t)
	mark := rt.p.used
	for _, s := range []struct {
		heads, group, dim, window int
		kv                        ops.KVType
	}{{2, 6, 256, 0, ops.KVF32}, {4, 1, 64, 0, ops.KVF32}, {2, 3, 128, 300, ops.KVF32}, {2, 3, 16, 0, ops.KVF32}, {1, 12, 64, 0, ops.KVF32}, {1, 8, 128, 0, ops.KVF32}, {1, 2, 256, 0, ops.KVF32},
		{2, 6, 256, 0, ops.KVBF16}, {1, 8, 128, 0, ops.KVBF16}, {2, 2, 64, 5, ops.KVBF16}, {1, 16, 128, 70, ops.KVBF16}, {1, 4, 96, 100, ops.KVBF16},
		{1, 6, 256, 0, ops.KVFP8}, {2, 4, 128, 300, ops.KVFP8}, {2, 1, 64, 0, ops.KVFP8}, {1, 2, 48, 0, ops.KVFP8}, {1, 9, 33, 40, ops.KVFP8},
		{1, 5, 256, 200, ops.KVQ8}, {2, 4, 128, 0, ops.KVQ8}, {1, 10, 64, 0, ops.KVQ8}, {2, 3, 80, 0, ops.KVQ8}} {
		t.Run(fmt.Sprint(s.heads, s.group, s.dim, s.window, s.kv), func(t *testing.T) {
			rt.p.used = mark
			rt.T = t
			const layers, layer = 3, 1
			longest := 1100 // two spans
			if s.dim == 64 {
				longest = 2100
			}
			lengths := []int{1, 16, 255, 256, 257, 513, longest}
			if testing.Short() { // where a device is slow
				lengths, longest = []int{1, 17, 257}, 700
				if s.dim == 64 && s.kv == ops.KVBF16 {
					lengths[2], longest = 1100, 1100
				}
			}
			cache := &Cache{Layers: layers, Heads: s.heads, Dim: s.dim, Type: s.kv}
			pitch := (longest + PageTokens - 1) / PageTokens
			order := rt.r.Perm(len(lengths) * pitch)
			cache.Pages = take(t, rt.p, int64(len(order))*cache.PageBytes())
			rt.check(cache.Pages.Fill(0xff)) // not numbers
			table := make([]int32, len(order))
			for i, page := range order {
				table[i] = int32(page)
			}
			tables := upload(rt, table)
			width := (s.group + 2) * s.heads * s.dim // q, k, v of a row side by side
			part := func(m Memory, offset, heads int) View { return View{m, width, offset, heads, s.dim, s.dim} }
			kv := s.heads * s.dim
			roomy := false // scratch memory has room for the sums of spans
			run := func(rows Memory, positions, segments []int32, sequences ...ops.Segment) []float32 {
				at := rt.p.used
				defer func() { rt.p.used = at }()
				n := len(positions)
				r := &Rows{N: n, Positions: upload(rt, positions), Segments: upload(rt, segments), Table: tables, TablePitch: pitch, Longest: longest - 1, Sequences: sequences}
				out := newOutput(t, rt.p, n*s.group*kv)
				out.poison(t)
				few := *r
				few.N = min(n, 1+rt.r.IntN(100)) // so that it is done in some launches
				if roomy {
					few.N = 2*n/span + 1
				}
				scratch := take(t, rt.p, AttendScratch(&few, s.group*s.heads, s.dim))
				rt.check(scratch.Fill(0xff))
				rt.check(rt.k.Attend(View{out.all, s.group * kv, 0, s.group * s.heads, s.dim, s.dim},
					part(rows, 0, s.group*s.heads), part(rows, s.group*kv, s.heads), part(rows, (s.group+1)*kv, s.heads),
					cache, r, layer, s.window, 1/float32(math.Sqrt(float64(s.dim))), scratch))
				return out.read(t, out.n)
			}
			same := func(what string, got, want []float32) {
				t.Helper()
				for i, v := range got {
					if v != want[i] {
						t.Fatalf("%s: value %d of row %d is %g, not %g", what, i%(s.group*kv), i/(s.group*kv), v, want[i])
					}
				}
			}
			history := make([][]float32, len(lengths)) // [position][width]
			var last []float32
			worst := 0.0
			for q, length := range lengths {
				x, xs := rt.values(length * width)
				history[q] = x
				positions, segments := make([]int32, length), make([]int32, length)
				for i := range positions {
					positions[i], segments[i] = int32(i), int32(q)
				}
				// The whole sequence at once: every row may look at those before it.
				whole := run(xs, positions, segments)
				bytes := make([]byte, cache.Pages.Bytes())
				rt.check(Download(cache.Pages, bytes))
				stored := held(t, cache, bytes, table[q*pitch:], layer, length)
				for p := range length {
					closeTo(t, s.kv, x[p*width+s.group*kv:][:2*kv], stored[p*2*kv:], s.dim)
				}
				for _, row := range []int{0, length / 2, length - 1} {
					want := reference(x[row*width:], stored, row, s.heads, s.group, s.dim, s.window)
					largest := 0.0
					for _, w := range want {
						largest = max(largest, math.Abs(w))
					}
					for i, w := range want {
						worst = max(worst, math.Abs(float64(whole[row*s.group*kv+i])-w)/largest)
					}
					near(t, fmt.Sprintf("row %d of %d", row, length), whole[row*s.group*kv:(row+1)*s.group*kv], want, 3e-5)
				}
				for _, all := range []bool{true, false} { // by blocks that have all positions, and by spans
					usual := rt.k.ways
					rt.k.ways.whole, roomy = all, true
					same("a prompt", run(xs, positions, segments, ops.Segment{Rows: length}), whole)
					rt.k.ways, roomy = usual, false
				}
				roomy = true
				for from := 0; from < length; { // in pieces, by spans
					n := 1 + rt.r.IntN(min(length-from, 1+rt.r.IntN(300)))
					same(fmt.Sprintf("rows %d to %d of %d", from, from+n, length), run(xs.Part(int64(4*from*width), int64(4*n*width)),
						positions[from:from+n], segments[from:from+n], ops.Segment{Rows: n}), whole[from*s.group*kv:(from+n)*s.group*kv])
					from += n
				}
				roomy = false
				last = append(last, whole[(length-1)*s.group*kv:]...)
			}
			t.Logf("largest error %.1g of the largest value", worst)
			// The last rows of all sequences as one batch: the same bits. And with
			// the last 40 of one among them.
			var rows []float32
			var positions, segments []int32
			var sequences []ops.Segment
			var want []float32
			for q, length := range lengths {
				n := 1
				if length == 257 {
					n = 40
				}
				sequences = append(sequences, ops.Segment{Row: len(positions), Rows: n})
				for i := length - n; i < length; i++ {
					rows = append(rows, history[q][i*width:(i+1)*width]...)
					positions, segments = append(positions, int32(i)), append(segments, int32(q))
				}
			}
			got := run(upload(rt, rows), positions, segments, sequences...)
			for _, q := range sequences {
				want = append(want, got[(q.Row+q.Rows-1)*s.group*kv:(q.Row+q.Rows)*s.group*kv]...)
			}
			same("among others", want, last)
		})
	}
	if err := rt.k.Attend(View{}, View{Heads: 2}, View{}, View{}, &Cache{Heads: 1, Dim: 257}, &Rows{N: 1}, 0, 0, 1, Memory{}); err == nil || !strings.Contains(err.Error(), "257") {
		t.Errorf("heads of 257: %v", err)
	}
}

// held is the keys and values of a sequence, [length][2·heads·dim], out of the bytes of
// all pages.
func held(t *testing.T, c *Cache, bytes []byte, table []int32, layer, length int) []float64 {
	t.Helper()
	var out []float64
	block := int(c.PageBytes()) / c.Layers / c.Heads
	one := func(b []byte, which, p, i int) float64 {
		at := (which*PageTokens+p)*c.Dim + i
		factors := b[2*PageTokens*c.Dim:]
		switch c.Type {
		case ops.KVF32:
			return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*at:])))
		case ops.KVBF16:
			return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*at:])) << 16))
		case ops.KVFP8:
			e, m := int(b[at]>>3&15), float64(b[at]&7)
			v := math.Ldexp(m, -9)
			if e > 0 {
				v = math.Ldexp(8+m, e-10)
			}
			if b[at] > 127 {
				v = -v
			}
			f := float64(math.Float32frombits(binary.LittleEndian.Uint32(factors[4*(which*PageTokens+p):])))
			if m, _ := math.Frexp(f); m != 0.5 {
				t.Fatalf("factor %g is no power of two", f)
			}
			return v * f
		}
		f := halfValue(binary.LittleEndian.Uint16(factors[2*((which*PageTokens+p)*((c.Dim+31)/32)+i/32):]))
		return bfloat(float32(int8(b[at])) * f)
	}
	for p := range length {
		for which := range 2 {
			for h := range c.Heads {
				b := bytes[((int(table[p/PageTokens])*c.Layers+layer)*c.Heads+h)*block:][:block]
				for i := range c.Dim {
					out = append(out, one(b, which, p%PageTokens, i))
				}
			}
		}
	}
	return out
}

// bfloat is the nearest bfloat16, ties to even.
func bfloat(v float32) float64 {
	b := math.Float32bits(v)
	return float64(math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff))
}

// closeTo fails unless stored values are as near to those given as the type can be.
func closeTo(t *testing.T, kv ops.KVType, given []float32, kept []float64, dim int) {
	t.Helper()
	for i, x := range given {
		head := given[i/dim*dim:][:dim]
		near := head[i%dim/32*32 : min(dim, i%dim/32*32+32)]
		largest := func(v []float32) (top float64) {
			for _, x := range v {
				top = max(top, math.Abs(float64(x)))
			}
			return top
		}
		size, bound := math.Abs(float64(x)), 0.0
		switch kv {
		case ops.KVBF16:
			bound = size / 256
		case ops.KVFP8: // 4 bits, or half of the smallest step under a scale of at most largest/224
			bound = max(size/16, largest(head)/224/1024)
		case ops.KVQ8:
			bound = largest(near)/127*0.51 + size/256
		}
		if e := math.Abs(kept[i] - float64(x)); !(e <= bound) {
			t.Fatalf("%g is stored as %g in %s, off by %g: %g is allowed", x, kept[i], kv, e, bound)
		}
	}
}

// reference is the attention of a row with queries q [heads·group·dim] over keys and
// values stored [position][2·heads·dim].
func reference(q []float32, stored []float64, row, heads, group, dim, window int) []float64 {
	width := 2 * heads * dim
	first := 0
	if window > 0 {
		first = max(0, row+1-window)
	}
	out := make([]float64, heads*group*dim)
	for h := range heads * group {
		scores := make([]float64, row+1)
		top := math.Inf(-1)
		for p := first; p <= row; p++ {
			for i, k := range stored[p*width+h/group*dim:][:dim] {
				scores[p] += float64(q[h*dim+i]) * k
			}
			scores[p] /= math.Sqrt(float64(dim))
			top = max(top, scores[p])
		}
		sum := 0.0
		for p := first; p <= row; p++ {
			e := math.Exp(scores[p] - top)
			sum += e
			for i, v := range stored[p*width+(heads+h/group)*dim:][:dim] {
				out[h*dim+i] += e * v
			}
		}
		for i := range dim {
			out[h*dim+i] /= sum
		}
	}
	return out
}
