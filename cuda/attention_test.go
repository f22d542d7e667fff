//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestAttend attends with rows of several sequences whose earlier keys and values
// were stored by the same kernel, in pages in random order, against float64.
func TestAttend(t *testing.T) {
	rt := newRowsTest(t)
	mark := rt.p.used
	for _, s := range []struct {
		heads, group, dim, window int
		half                      bool
	}{{2, 6, 256, 0, false}, {4, 1, 64, 0, false}, {1, 8, 128, 0, true}, {2, 3, 128, 300, false}, {2, 2, 64, 5, true}, {2, 3, 16, 0, false}, {1, 4, 96, 100, true}} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			rt.p.used = mark
			rt.T = t
			lengths := []int{1, 16, 255, 256, 257, 513, 700}
			const layers, layer, longest = 3, 1, 700
			cache := &Cache{Layers: layers, Heads: s.heads, Dim: s.dim, Half: s.half}
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
			run := func(rows Memory, n int, positions, segments []int32) []float32 {
				r := &Rows{N: n, Positions: upload(rt, positions), Segments: upload(rt, segments), Table: tables, TablePitch: pitch, Longest: longest - 1}
				out := newOutput(t, rt.p, n*s.group*kv)
				out.poison(t)
				bytes := AttendScratch(r, s.group*s.heads, s.dim)
				scratch := take(t, rt.p, bytes)
				rt.check(scratch.Fill(0xff))
				rt.check(rt.k.Attend(View{out.all, s.group * kv, 0, s.group * s.heads, s.dim, s.dim},
					part(rows, 0, s.group*s.heads), part(rows, s.group*kv, s.heads), part(rows, (s.group+1)*kv, s.heads),
					cache, r, layer, s.window, 1/float32(math.Sqrt(float64(s.dim))), scratch))
				return out.read(t, out.n)
			}
			// All positions of a sequence in turn, as a batch of its own each: keys and
			// values are there, and outputs to compare.
			history := make([][]float32, len(lengths)) // [position][width]
			var last []float32
			for q, length := range lengths {
				x, xs := rt.values(length * width)
				history[q] = x
				positions, segments := make([]int32, length), make([]int32, length)
				for i := range positions {
					positions[i], segments[i] = int32(i), int32(q)
				}
				// The whole sequence at once: every row may look at those before it.
				at := rt.p.used
				got := run(xs, length, positions, segments)
				rt.p.used = at
				rows := []int{0, length / 2, length - 1}
				for _, row := range rows {
					near(t, fmt.Sprintf("row %d of %d", row, length), got[row*s.group*kv:(row+1)*s.group*kv],
						reference(history[q], row, s.heads, s.group, s.dim, s.window, s.half), 2e-6)
				}
				last = append(last, got[(length-1)*s.group*kv:]...)
			}
			// The last rows of all sequences as one batch: the same bits.
			var rows []float32
			var positions, segments []int32
			for q, length := range lengths {
				rows = append(rows, history[q][(length-1)*width:]...)
				positions, segments = append(positions, int32(length-1)), append(segments, int32(q))
			}
			for i, v := range run(upload(rt, rows), len(lengths), positions, segments) {
				if v != last[i] {
					t.Fatalf("value %d of sequence %d is %g among others, %g in its own batch", i%(s.group*kv), i/(s.group*kv), v, last[i])
				}
			}
		})
	}
	if err := rt.k.Attend(View{}, View{Heads: 2}, View{}, View{}, &Cache{Heads: 1, Dim: 257}, &Rows{N: 1}, 0, 0, 1, Memory{}); err == nil || !strings.Contains(err.Error(), "257") {
		t.Errorf("heads of 257: %v", err)
	}
}

// reference is the attention of a row of x [position][(group+2)·heads·dim].
func reference(x []float32, row, heads, group, dim, window int, half bool) []float64 {
	width := (group + 2) * heads * dim
	stored := func(v float32) float64 {
		if half { // to the nearest bfloat16, ties to even
			b := math.Float32bits(v)
			return float64(math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff))
		}
		return float64(v)
	}
	first := 0
	if window > 0 {
		first = max(0, row+1-window)
	}
	out := make([]float64, heads*group*dim)
	for h := range heads * group {
		q := x[row*width+h*dim:][:dim]
		scores := make([]float64, row+1)
		top := math.Inf(-1)
		for p := first; p <= row; p++ {
			k := x[p*width+group*heads*dim+h/group*dim:][:dim]
			for i := range q {
				scores[p] += float64(q[i]) * stored(k[i])
			}
			scores[p] /= math.Sqrt(float64(dim))
			top = max(top, scores[p])
		}
		sum := 0.0
		for p := first; p <= row; p++ {
			e := math.Exp(scores[p] - top)
			sum += e
			for i, v := range x[p*width+(group+1)*heads*dim+h/group*dim:][:dim] {
				out[h*dim+i] += e * stored(v)
			}
		}
		for i := range dim {
			out[h*dim+i] /= sum
		}
	}
	return out
}
