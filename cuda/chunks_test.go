//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"math"
	"os"
	"testing"
)

// rms is the root mean square difference over that of want.
func rms(got []float32, want []float64) float64 {
	difference, size := 0.0, 0.0
	for i, v := range got {
		w := want[i]
		d := float64(v) - w
		difference += d * d
		size += w * w
	}
	return math.Sqrt(difference / size)
}

// chunkError bounds what the delta rule in chunks is off by, over the root mean square of
// what is right. Seven factors are rounded to 11 bits (keys, queries, S, the inverse, what
// it multiplies, scores, D), each by 2⁻¹² of itself at most and independently: √7·2⁻¹² of
// the terms. Terms may be somewhat larger than their sum, so 2⁻¹⁰.
const chunkError = 1. / (1 << 10)

// TestDeltaRuleInChunks holds segments of any length against float64 row by row, with
// memory for few chunks at a time too, and short ones among them against themselves alone.
func TestDeltaRuleInChunks(t *testing.T) {
	rt := newRowsTest(t)
	scratch := rt.k.scratch
	for _, s := range []*States{
		{Layers: 2, Cols: 10, Taps: 4, KeyHeads: 2, ValueHeads: 6, KeyDim: 128, ValueDim: 128},
		{Layers: 1, Cols: 1, Taps: 1, KeyHeads: 2, ValueHeads: 2, KeyDim: 64, ValueDim: 32},
		{Layers: 1, Cols: 1, Taps: 1, KeyHeads: 1, ValueHeads: 2, KeyDim: 64, ValueDim: 96},
	} {
		for i, rows := range [][]int32{{17, 200, 3}, {64}, {5, 129}, {300}} {
			for _, tiled := range []bool{false, true} {
				c := newDeltaCase(rt, s, rows, []int32{2, 0, 1}[:len(rows)], tiled)
				want, state := c.reference()
				for _, few := range []int64{0, 1, 2} {
					rt.k.scratch = scratch
					if few > 0 {
						rt.k.scratch = scratch.Part(0, few*s.preparedBytes())
						rt.check(Upload(s.Slots, c.start))
					}
					rt.check(rt.k.scratch.Fill(0xff))
					c.out.poison(t)
					rt.check(rt.k.DeltaRule(c.to, c.in, s, c.g, c.layer))
					got, after := c.out.read(t, c.out.n), make([]float32, len(c.start))
					rt.check(Download(s.Slots, after))
					name := fmt.Sprintf("keys of %d, rows %d, tiled %v, chunks at a time %d", s.KeyDim, rows, tiled, few)
					a, b := rms(got, want), 0.0
					for _, slot := range c.slot { // the matrices that were moved
						at := (int(slot)*s.Layers+c.layer)*s.layer() + s.convolution()
						b = max(b, rms(after[at:][:s.layer()-s.convolution()], state[at:]))
					}
					if i == 1 || os.Getenv("VELO_SHOW") != "" {
						t.Logf("%s: off by %.2g, the states by %.2g", name, a, b)
					}
					if !(a < chunkError) || !(b < chunkError) {
						t.Errorf("%s: off by %g, the states by %g", name, a, b)
					}
				}
				rt.k.scratch = scratch
			}
		}
	}
}

// BenchmarkRecurrent times the convolution and the delta rule of the 27B and the 9B model.
func BenchmarkRecurrent(b *testing.B) {
	d := open(b, Options{})
	k := loadKernels(b, d)
	p := pool(b, d, 256<<20)
	rt := &benchMemory{b, p}
	for _, valueHeads := range []int{48, 32} {
		s := &States{Layers: 1, Cols: (32 + valueHeads) * 128, Taps: 4, KeyHeads: 16, ValueHeads: valueHeads, KeyDim: 128, ValueDim: 128}
		for _, rows := range []int32{1, 16, 64, 512, 2048} {
			p.Reset()
			s.Slots = rt.random(k, s.SlotBytes())
			width := s.Cols + 2*valueHeads
			x := rt.random(k, int64(rows)*int64(width)*4)
			w, alog := rt.random(k, int64(s.Cols*s.Taps*4)), rt.random(k, int64(valueHeads*4))
			to := take(b, p, int64(rows)*int64(valueHeads)*128*4)
			at := 0
			part := func(heads, dim int) View {
				v := View{x, width, at, heads, dim, dim}
				at += heads * dim
				return v
			}
			in := &Delta{part(16, 128), part(16, 128), part(valueHeads, 128), part(valueHeads, 1), part(valueHeads, 1), alog, alog, false}
			g := &Segments{N: 1, First: rt.numbers(0), Rows: rt.numbers(rows), Slot: rt.numbers(0), Total: int(rows), Shortest: int(rows), Longest: int(rows)}
			for _, what := range []struct {
				name string
				run  func() error
			}{
				{"convolution", func() error { return k.Convolve(View{x, width, 0, 1, s.Cols, s.Cols}, w, s, g, 0, nil) }},
				{"delta rule", func() error {
					return k.DeltaRule(View{to, valueHeads * 128, 0, valueHeads, 128, 128}, in, s, g, 0)
				}},
			} {
				const n = 8
				graph := graph(b, d, n, func(int) error { return what.run() })
				fmt.Printf("%d value heads, %4d rows: %-12s %8.2f µs\n", valueHeads, rows, what.name, float64(median(b, d, graph))/1e3/n)
				graph.Close()
			}
		}
	}
}

// benchMemory is memory on the device with something in it.
type benchMemory struct {
	testing.TB
	p *Pool
}

func (m *benchMemory) random(k *Kernels, bytes int64) Memory {
	at := take(m.TB, m.p, bytes)
	if err := k.fillRandom(at, 5, 0x807fffff, 0x3f000000); err != nil {
		m.Fatal(err)
	}
	return at
}

func (m *benchMemory) numbers(v ...int32) Memory {
	at := take(m.TB, m.p, int64(4*len(v)))
	if err := Upload(at, v); err != nil {
		m.Fatal(err)
	}
	return at
}
