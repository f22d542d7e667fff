//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"math"
	"testing"
)

// segments puts a batch of so many rows a segment on the device.
func (t *rowsTest) segments(rows, slots []int32) (*Segments, int) {
	first, n := make([]int32, len(rows)), int32(0)
	for i, r := range rows {
		first[i] = n
		n += r
	}
	return &Segments{len(rows), upload(t, first), upload(t, rows), upload(t, slots)}, int(n)
}

func TestConvolve(t *testing.T) {
	rt := newRowsTest(t)
	for _, taps := range []int{1, 2, 4} {
		const cols, pitch, layers, layer, slots = 300, 310, 2, 1, 4
		s := &States{Layers: layers, Cols: cols, Taps: taps, KeyHeads: 1, ValueHeads: 1, KeyDim: 64, ValueDim: 32}
		start, states := rt.values(slots * int(s.SlotBytes()/4))
		s.Slots = states
		w, ws := rt.values(cols * taps)
		rows, slot := []int32{3, 1, 6}, []int32{2, 0, 3}
		g, n := rt.segments(rows, slot)
		x, xs := rt.values(n * pitch)
		rt.check(rt.k.Convolve(View{xs, pitch, 5, 1, cols, cols}, ws, s, g, layer))
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
		near(t, fmt.Sprintf("convolution of %d taps", taps), got, want, 1e-6)
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
			layer, slots := s.Layers-1, 3
			size := int(s.SlotBytes() / 4)
			start, states := rt.values(slots * size)
			s.Slots = states
			rows, slot := []int32{1, 5}, []int32{2, 0}
			g, n := rt.segments(rows, slot)
			width := 2*s.KeyHeads*s.KeyDim + s.ValueHeads*(s.ValueDim+2)
			x, xs := rt.values(n * width)
			alog, alogs := rt.values(s.ValueHeads)
			bias, biases := rt.values(s.ValueHeads)
			kAt, vAt := s.KeyHeads*s.KeyDim, 2*s.KeyHeads*s.KeyDim
			aAt := vAt + s.ValueHeads*s.ValueDim
			bAt := aAt + s.ValueHeads
			part := func(at, heads, dim int) View { return View{xs, width, at, heads, dim, dim} }
			in := &Delta{part(0, s.KeyHeads, s.KeyDim), part(kAt, s.KeyHeads, s.KeyDim), part(vAt, s.ValueHeads, s.ValueDim),
				part(aAt, s.ValueHeads, 1), part(bAt, s.ValueHeads, 1), alogs, biases, tiled}
			out := newOutput(t, rt.p, n*s.ValueHeads*s.ValueDim)
			to := View{out.all, s.ValueHeads * s.ValueDim, 0, s.ValueHeads, s.ValueDim, s.ValueDim}
			out.poison(t)
			rt.check(rt.k.DeltaRule(to, in, s, g, layer))
			got := out.read(t, out.n)
			after := make([]float32, len(start))
			rt.check(Download(states, after))

			var want []float64
			state := make([]float64, len(start))
			for i, v := range start {
				state[i] = float64(v)
			}
			row := 0
			for i, count := range rows {
				matrices := state[int(slot[i])*size+layer*s.layer()+s.convolution():]
				for range count {
					r := x[row*width : (row+1)*width]
					for h := range s.ValueHeads {
						kh := h / (s.ValueHeads / s.KeyHeads)
						if tiled {
							kh = h % s.KeyHeads
						}
						q, k := unit(r[kh*s.KeyDim:][:s.KeyDim]), unit(r[kAt+kh*s.KeyDim:][:s.KeyDim])
						decay := math.Exp(-math.Exp(float64(alog[h])) * math.Log1p(math.Exp(float64(r[aAt+h]+bias[h]))))
						beta := 1 / (1 + math.Exp(-float64(r[bAt+h])))
						m := matrices[h*s.KeyDim*s.ValueDim:][:s.KeyDim*s.ValueDim]
						for c := range s.ValueDim {
							found, o := 0.0, 0.0
							for i := range k {
								m[i*s.ValueDim+c] *= decay
								found += m[i*s.ValueDim+c] * k[i]
							}
							change := beta * (float64(r[vAt+h*s.ValueDim+c]) - found)
							for i := range k {
								m[i*s.ValueDim+c] += k[i] * change
								o += m[i*s.ValueDim+c] * q[i] / math.Sqrt(float64(s.KeyDim))
							}
							want = append(want, o)
						}
					}
					row++
				}
			}
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
				one := &Segments{1, upload(rt, []int32{int32(row)}), upload(rt, []int32{1}), upload(rt, []int32{sequence})}
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
