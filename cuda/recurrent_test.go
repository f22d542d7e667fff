//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"velo/engine/ops"
)

// segments puts a batch of so many rows a segment on the device.
func (t *rowsTest) segments(rows, slots []int32) (*Segments, int) {
	first, n := make([]int32, len(rows)), int32(0)
	for i, r := range rows {
		first[i] = n
		n += r
	}
	g := &Segments{N: len(rows), First: upload(t, first), Rows: upload(t, rows), Slot: upload(t, slots)}
	host := make([]ops.Segment, len(rows))
	for i := range host {
		host[i].Rows = int(rows[i])
	}
	g.measure(host)
	return g, int(n)
}

func TestConvolve(t *testing.T) {
	rt := newRowsTest(t)
	for i := range 6 {
		taps, lengths := []int{1, 2, 4}[i%3], [][]int32{{3, 1, 6}, {70, 2, 32}}[i/3]
		const cols, pitch, layers, layer, slots = 300, 310, 2, 1, 4
		s := &States{Layers: layers, Cols: cols, Taps: taps, KeyHeads: 1, ValueHeads: 1, KeyDim: 64, ValueDim: 32}
		start, states := rt.values(slots * int(s.SlotBytes()/4))
		s.Slots = states
		w, ws := rt.values(cols * taps)
		rows, slot := lengths, []int32{2, 0, 3}
		g, n := rt.segments(rows, slot)
		x, xs := rt.values(n * pitch)
		// Beside it a product with few rows, the same as alone.
		part, _ := randomPart(rt.r, BF16, 20, 1024)
		m, err := rt.k.Matrix(rt.p, take(t, rt.p, 1<<20), BF16, 1024, part)
		rt.check(err)
		const most = 9
		_, other := rt.values(most * 1024)
		out := newOutput(t, rt.p, most*20)
		few := fewProduct{y: View{out.all, 20, 0, 1, 20, 20}, x: View{other, 1024, 0, 1, 1024, 1024}, m: m, n: []int{1, most}[i%2]}
		out.poison(t)
		rt.check(rt.k.Few(&few))
		alone := out.read(t, few.n*20)
		out.poison(t)
		rt.check(rt.k.Convolve(View{xs, pitch, 5, 1, cols, cols}, ws, s, g, layer, &few))
		if beside := out.read(t, few.n*20); !slices.Equal(beside, alone) {
			t.Errorf("a product with few rows is %v beside a convolution and %v alone", beside, alone)
		}
		got := make([]float32, len(x))
		rt.check(Download(xs, got))
		want, state := make([]float64, len(x)), make([]float64, len(start))
		for i, v := range x {
			want[i] = float64(v)
		}
		for i, v := range start {
			state[i] = float64(v)
		}
		row := 0
		for i, count := range rows {
			past := state[int(slot[i])*int(s.SlotBytes()/4)+layer*s.layer():]
			for range count {
				for c := range cols {
					at := row*pitch + 5 + c
					in, sum := want[at], 0.0
					for j := range taps - 1 {
						sum += float64(w[c*taps+j]) * past[j*cols+c]
						if j+1 < taps-1 {
							past[j*cols+c] = past[(j+1)*cols+c]
						} else {
							past[j*cols+c] = in
						}
					}
					sum += float64(w[c*taps+taps-1]) * in
					want[at] = sum / (1 + math.Exp(-sum))
				}
				row++
			}
		}
		near(t, fmt.Sprintf("convolution of %d taps, rows %d", taps, lengths), got, want, 1e-6)
		after := make([]float32, len(start))
		rt.check(Download(states, after))
		near(t, fmt.Sprintf("state of %d taps", taps), after, state, 1e-7)
	}
}

func TestDeltaRule(t *testing.T) {
	rt := newRowsTest(t)
	for _, s := range []*States{
		{Layers: 2, Cols: 10, Taps: 4, KeyHeads: 2, ValueHeads: 6, KeyDim: 128, ValueDim: 128},
		{Layers: 1, Cols: 1, Taps: 1, KeyHeads: 2, ValueHeads: 2, KeyDim: 64, ValueDim: 32},
		{Layers: 2, Cols: 3, Taps: 2, KeyHeads: 2, ValueHeads: 4, KeyDim: 16, ValueDim: 8},
	} {
		for _, tiled := range []bool{false, true} {
			rows, slot := []int32{1, 5}, []int32{2, 0}
			c := newDeltaCase(rt, s, rows, slot, tiled)
			to, in, g, layer, out := c.to, c.in, c.g, c.layer, c.out
			start, states, n := c.start, s.Slots, int(c.g.Total)
			out.poison(t)
			rt.check(rt.k.DeltaRule(to, in, s, g, layer))
			got := out.read(t, out.n)
			after := make([]float32, len(start))
			rt.check(Download(states, after))

			want, state := c.reference()
			near(t, "delta rule", got, want, 1e-5)
			near(t, "state of the delta rule", after, state, 1e-5)

			// One row at a time leaves the same bits, in the output and in the state.
			rt.check(Upload(states, start))
			out.poison(t)
			for row := range n {
				sequence := slot[0]
				if row >= int(rows[0]) {
					sequence = slot[1]
				}
				one := &Segments{N: 1, First: upload(rt, []int32{int32(row)}), Rows: upload(rt, []int32{1}), Slot: upload(rt, []int32{sequence}),
					Total: 1, Shortest: 1, Longest: 1}
				rt.check(rt.k.DeltaRule(to, in, s, one, layer))
			}
			for i, v := range out.read(t, out.n) {
				if v != got[i] {
					t.Fatalf("value %d is %g in steps of one row, %g in one of all", i, v, got[i])
				}
			}
			single := make([]float32, len(start))
			rt.check(Download(states, single))
			for i, v := range single {
				if v != after[i] {
					t.Fatalf("value %d of the state is %g after steps of one row, %g after one of all", i, v, after[i])
				}
			}
		}
	}
}

// unit is v as a vector of length 1.
func unit(v []float32) []float64 {
	sum, out := 1e-6, make([]float64, len(v))
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	for i, x := range v {
		out[i] = float64(x) / math.Sqrt(sum)
	}
	return out
}

// deltaCase is a random input of the delta rule.
type deltaCase struct {
	s                    *States
	rows, slot           []int32
	g                    *Segments
	in                   *Delta
	to                   View
	out                  output
	layer, width         int
	x, alog, bias, start []float32
}

func newDeltaCase(t *rowsTest, s *States, rows, slot []int32, tiled bool) *deltaCase {
	c := &deltaCase{s: s, rows: rows, slot: slot, layer: s.Layers - 1}
	var xs, alogs, biases Memory
	c.start, s.Slots = t.values(3 * int(s.SlotBytes()/4))
	var n int
	c.g, n = t.segments(rows, slot)
	c.width = 2*s.KeyHeads*s.KeyDim + s.ValueHeads*(s.ValueDim+2)
	c.x, xs = t.values(n * c.width)
	c.alog, alogs = t.values(s.ValueHeads)
	c.bias, biases = t.values(s.ValueHeads)
	at := 0
	part := func(heads, dim int) View {
		v := View{xs, c.width, at, heads, dim, dim}
		at += heads * dim
		return v
	}
	c.in = &Delta{part(s.KeyHeads, s.KeyDim), part(s.KeyHeads, s.KeyDim), part(s.ValueHeads, s.ValueDim),
		part(s.ValueHeads, 1), part(s.ValueHeads, 1), alogs, biases, tiled}
	c.out = newOutput(t.T, t.p, n*s.ValueHeads*s.ValueDim)
	c.to = View{c.out.all, s.ValueHeads * s.ValueDim, 0, s.ValueHeads, s.ValueDim, s.ValueDim}
	return c
}

// reference is the delta rule in float64, row by row: the output and the states after it.
func (c *deltaCase) reference() (want, state []float64) {
	s, size := c.s, int(c.s.SlotBytes()/4)
	for _, v := range c.start {
		state = append(state, float64(v))
	}
	row := 0
	for i, count := range c.rows {
		matrices := state[int(c.slot[i])*size+c.layer*s.layer()+s.convolution():]
		for range count {
			r := c.x[row*c.width : (row+1)*c.width]
			for h := range s.ValueHeads {
				kh := h / (s.ValueHeads / s.KeyHeads)
				if c.in.Tiled {
					kh = h % s.KeyHeads
				}
				q, k := unit(r[c.in.Q.Offset+kh*s.KeyDim:][:s.KeyDim]), unit(r[c.in.K.Offset+kh*s.KeyDim:][:s.KeyDim])
				decay := math.Exp(-math.Exp(float64(c.alog[h])) * math.Log1p(math.Exp(float64(r[c.in.A.Offset+h]+c.bias[h]))))
				beta := 1 / (1 + math.Exp(-float64(r[c.in.B.Offset+h])))
				m := matrices[h*s.KeyDim*s.ValueDim:][:s.KeyDim*s.ValueDim]
				for col := range s.ValueDim {
					found, o := 0.0, 0.0
					for i := range k {
						m[i*s.ValueDim+col] *= decay
						found += m[i*s.ValueDim+col] * k[i]
					}
					change := beta * (float64(r[c.in.V.Offset+h*s.ValueDim+col]) - found)
					for i := range k {
						m[i*s.ValueDim+col] += k[i] * change
						o += m[i*s.ValueDim+col] * q[i] / math.Sqrt(float64(s.KeyDim))
					}
					want = append(want, o)
				}
			}
			row++
		}
	}
	return want, state
}
