package cpu

import (
	"velo/engine/ops"
	"velo/engine/weights"
)

//go:noescape
func quantiseNEON(x *float32, codes *int16, scales, sums *float32, blocks int)

//go:noescape
func dotNEON(x, y *float32, n int) float32

//go:noescape
func dot4NEON(x, y *float32, stride, n int, out *[4]float32)

//go:noescape
func widenBF16NEON(dst *float32, src *byte, n int)

//go:noescape
func widenF16NEON(dst *float32, src *byte, n int)

//go:noescape
func widenE4M3NEON(dst *float32, src *byte, n int, scale float32)

//go:noescape
func scoresNEON(q, k *float32, dim int, scale float32, out *float32)

//go:noescape
func valuesNEON(p, v *float32, dim, n int, acc *float32)

//go:noescape
func topNEON(x *float32, n int) float32

//go:noescape
func softmaxNEON(x *float32, n int, top float32) float32

//go:noescape
func siluNEON(dst, gate, x *float32, n int)

//go:noescape
func decayNEON(s, k *float32, f float32, rows, cols int, acc *float32)

//go:noescape
func learnNEON(s, k, d, q *float32, rows, cols int, acc *float32)

// neon is what every arm64 processor runs. It falls back to the portable
// kernels where a size does not fit a vector.
var neon = kernels{
	name:       "NEON",
	quantise:   quantiseNEON,
	tiles:      neonTiles,
	lanes:      8,
	dot:        dotNEON,
	dot4:       dot4NEON,
	dequantise: dequantiseNEON,
	scores: func(q, k *float32, dim int, scale float32, out *float32) {
		if dim%2 == 0 {
			scoresNEON(q, k, dim, scale, out)
		} else {
			scoresPortable(q, k, dim, scale, out)
		}
	},
	values: func(p, v *float32, dim, n int, acc *float32) {
		if dim%16 == 0 {
			valuesNEON(p, v, dim, n, acc)
		} else {
			valuesPortable(p, v, dim, n, acc)
		}
	},
	top:     topNEON,
	softmax: softmaxNEON,
	silu: func(dst, g, x *float32, n int) {
		whole := n &^ 3
		if whole > 0 {
			siluNEON(dst, g, x, whole)
		}
		if whole < n { // a pointer behind the end must not even be formed
			siluPortable(at(dst, whole), at(g, whole), at(x, whole), n-whole)
		}
	},
	decay: func(s, k *float32, f float32, rows, cols int, acc *float32) {
		if cols%8 == 0 {
			decayNEON(s, k, f, rows, cols, acc)
		} else {
			decayPortable(s, k, f, rows, cols, acc)
		}
	},
	learn: func(s, k, d, q *float32, rows, cols int, acc *float32) {
		if cols%8 == 0 {
			learnNEON(s, k, d, q, rows, cols, acc)
		} else {
			learnPortable(s, k, d, q, rows, cols, acc)
		}
	},
}

func dequantiseNEON(w *ops.Weight, dst []float32, i int) {
	n := len(dst)
	switch {
	case w.Type == weights.BF16 && n%8 == 0:
		widenBF16NEON(&dst[0], &w.RowData(i)[0], n)
	case w.Type == weights.F16 && n%8 == 0:
		widenF16NEON(&dst[0], &w.RowData(i)[0], n)
	case w.Type == weights.FP8Row || w.Type == weights.FP8Block:
		widenFP8(w, dst, i, widenE4M3NEON)
	default:
		w.Row(dst, i)
	}
}

// available are the kernels that the processor runs, the fastest first.
func available() []*kernels { return []*kernels{&neon, &portable} }
