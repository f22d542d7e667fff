//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"testing"
)

// BenchmarkMLP times the feed-forward part of a 27B model in nvfp4, of 16 layers
// one after the other: norm, gate+up, SiLU, down onto the residual.
// The weights of a layer are 151 MB, so the second cache does not help.
func BenchmarkMLP(b *testing.B) {
	d := open(b, Options{})
	k := loadKernels(b, d)
	const hidden, inner, layers = 5120, 17408, 16
	p := pool(b, d, 4<<30)
	// First and second operand: x normalised, and the gated product.
	x := take(b, p, MaxRows*hidden*4)
	both := take(b, p, MaxRows*2*inner*4)
	weight := take(b, p, hidden*4)
	var up, down []*Matrix
	for range layers {
		for _, m := range []struct {
			to      *[]*Matrix
			out, in int
		}{{&up, 2 * inner, hidden}, {&down, hidden, inner}} {
			matrix, err := k.blank(p, NVFP4, m.out, m.in)
			if err != nil {
				b.Fatal(err)
			}
			if err := k.fillRandom(matrix.weights, 2, 0xbfbfbfbf, 0); err != nil {
				b.Fatal(err)
			}
			if err := matrix.factors.Fill(0x20); err != nil { // 1.4e-19
				b.Fatal(err)
			}
			*m.to = append(*m.to, matrix)
		}
	}
	for _, m := range []Memory{x, weight} {
		if err := k.fillRandom(m, 3, 0x807fffff, 0x3f000000); err != nil {
			b.Fatal(err)
		}
	}
	first, err := k.Operand(p, hidden, MaxRows)
	if err != nil {
		b.Fatal(err)
	}
	second, err := k.Operand(p, inner, MaxRows)
	if err != nil {
		b.Fatal(err)
	}
	view := func(m Memory, pitch, offset, n int) View { return View{m, pitch, offset, 1, n, n} }
	step := func(n int, whole bool) func(i int) error {
		return func(i int) error {
			if whole {
				if err := k.SplitNorm(first, view(x, hidden, 0, hidden), weight, 1e-6, n); err != nil {
					return err
				}
			}
			if err := k.Linear(&Product{Y: both, Pitch: 2 * inner, X: first, M: up[i]}); err != nil {
				return err
			}
			if whole {
				if err := k.SplitSiLU(second, view(both, 2*inner, 0, inner), view(both, 2*inner, inner, inner), n); err != nil {
					return err
				}
			}
			return k.Linear(&Product{Y: x, Pitch: hidden, X: second, M: down[i], Add: true})
		}
	}
	bandwidth := readBandwidth(b, k, p.whole.Part(0, 3<<30), take(b, p, 4096))
	floor := float64(up[0].Bytes()+down[0].Bytes()) / bandwidth * 1e6
	for _, n := range []int{1, 2, 4, 8, 16} {
		var took [2]float64
		for i, whole := range []bool{true, false} {
			g := graph(b, d, layers, step(n, whole))
			took[i] = median(b, d, g).Seconds() / layers * 1e6
			g.Close()
		}
		fmt.Printf("MLP 27B nvfp4  n %-2d  %7.2f µs a layer, %7.2f without norm and SiLU, bytes %.2f µs: %.1f%%\n",
			n, took[0], took[1], floor, 100*floor/took[0])
	}
}
