package cpu

import (
	"golang.org/x/sys/cpu"

	"velo/engine/ops"
	"velo/engine/weights"
)

//go:noescape
func quantiseAVX2(x *float32, codes *int16, scales, sums *float32, blocks int)

//go:noescape
func dotAVX2(x, y *float32, n int) float32

//go:noescape
func dot4AVX2(x, y *float32, stride, n int, out *[4]float32)

//go:noescape
func widenBF16AVX2(dst *float32, src *byte, n int)

//go:noescape
func widenF16AVX2(dst *float32, src *byte, n int)

//go:noescape
func widenE4M3AVX2(dst *float32, src *byte, n int, scale float32)

//go:noescape
func scoresAVX2(q, k *float32, dim int, scale float32, out *float32)

//go:noescape
func valuesAVX2(p, v *float32, dim, n int, acc *float32)

//go:noescape
func softmaxAVX2(x *float32, n int, top float32) float32

//go:noescape
func siluAVX2(dst, gate, x *float32, n int)

//go:noescape
func decayAVX2(s, k *float32, f float32, rows, cols int, acc *float32)

//go:noescape
func learnAVX2(s, k, d, q *float32, rows, cols int, acc *float32)

//go:noescape
func topAVX2(x *float32, n int) float32

//go:noescape
func dotAVX512(x, y *float32, n int) float32

//go:noescape
func dot4AVX512(x, y *float32, stride, n int, out *[4]float32)

//go:noescape
func widenBF16AVX512(dst *float32, src *byte, n int)

//go:noescape
func widenF16AVX512(dst *float32, src *byte, n int)

//go:noescape
func widenE4M3AVX512(dst *float32, src *byte, n int, scale float32)

//go:noescape
func scoresAVX512(q, k *float32, dim int, scale float32, out *float32)

//go:noescape
func valuesAVX512(p, v *float32, dim, n int, acc *float32)

// hasF16C tells whether the processor converts IEEE halves.
func hasF16C() bool

// avx2 falls back to the portable kernels where a size does not fit a vector;
// the size is the model's, so all rows of it are treated alike.
var avx2 = kernels{
	name:       "AVX2",
	quantise:   quantiseAVX2,
	tiles:      avx2Tiles,
	lanes:      8,
	dot:        dotAVX2,
	dot4:       dot4AVX2,
	dequantise: dequantiseAVX2,
	scores: func(q, k *float32, dim int, scale float32, out *float32) {
		if dim%2 == 0 {
			scoresAVX2(q, k, dim, scale, out)
		} else {
			scoresPortable(q, k, dim, scale, out)
		}
	},
	values: func(p, v *float32, dim, n int, acc *float32) {
		if dim%16 == 0 {
			valuesAVX2(p, v, dim, n, acc)
		} else {
			valuesPortable(p, v, dim, n, acc)
		}
	},
	top:     topAVX2,
	softmax: softmaxAVX2,
	silu: func(dst, g, x *float32, n int) {
		whole := n &^ 7
		if whole > 0 {
			siluAVX2(dst, g, x, whole)
		}
		if whole < n { // a pointer behind the end must not even be formed
			siluPortable(at(dst, whole), at(g, whole), at(x, whole), n-whole)
		}
	},
	decay: func(s, k *float32, f float32, rows, cols int, acc *float32) {
		if cols%8 == 0 {
			decayAVX2(s, k, f, rows, cols, acc)
		} else {
			decayPortable(s, k, f, rows, cols, acc)
		}
	},
	learn: func(s, k, d, q *float32, rows, cols int, acc *float32) {
		if cols%8 == 0 {
			learnAVX2(s, k, d, q, rows, cols, acc)
		} else {
			learnPortable(s, k, d, q, rows, cols, acc)
		}
	},
}

func dequantiseAVX2(w *ops.Weight, dst []float32, i int) {
	n := len(dst)
	switch {
	case w.Type == weights.BF16 && n%8 == 0:
		widenBF16AVX2(&dst[0], &w.RowData(i)[0], n)
	case w.Type == weights.F16 && n%8 == 0:
		widenF16AVX2(&dst[0], &w.RowData(i)[0], n)
	case w.Type == weights.FP8Row || w.Type == weights.FP8Block:
		widenFP8(w, dst, i, widenE4M3AVX2)
	default:
		w.Row(dst, i)
	}
}

func dequantiseAVX512(w *ops.Weight, dst []float32, i int) {
	n := len(dst)
	switch {
	case w.Type == weights.BF16 && n%16 == 0:
		widenBF16AVX512(&dst[0], &w.RowData(i)[0], n)
	case w.Type == weights.F16 && n%16 == 0:
		widenF16AVX512(&dst[0], &w.RowData(i)[0], n)
	case (w.Type == weights.FP8Row || w.Type == weights.FP8Block) && n%32 == 0:
		widenFP8(w, dst, i, widenE4M3AVX512)
	default:
		dequantiseAVX2(w, dst, i)
	}
}

// avx512 is avx2 with tiles of 16 lanes, dot products and attention in wider
// vectors, vnni with its instruction for tiles.
var avx512, vnni = func() (a, v kernels) {
	a = avx2
	a.name, a.tiles, a.lanes = "AVX-512", avx512Tiles, 16
	a.dot, a.dot4, a.dequantise = dotAVX512, dot4AVX512, dequantiseAVX512
	a.scores = func(q, k *float32, dim int, scale float32, out *float32) {
		if dim%4 == 0 {
			scoresAVX512(q, k, dim, scale, out)
		} else {
			avx2.scores(q, k, dim, scale, out)
		}
	}
	a.values = func(p, v *float32, dim, n int, acc *float32) {
		if dim%64 == 0 {
			valuesAVX512(p, v, dim, n, acc)
		} else {
			avx2.values(p, v, dim, n, acc)
		}
	}
	v = a
	v.name, v.tiles = "AVX-512 VNNI", vnniTiles
	return a, v
}()

// available are the kernels that the processor runs, the fastest first.
func available() (sets []*kernels) {
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL && hasF16C() {
		if cpu.X86.HasAVX512VNNI {
			sets = append(sets, &vnni)
		}
		sets = append(sets, &avx512)
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA && hasF16C() {
		sets = append(sets, &avx2)
	}
	return append(sets, &portable)
}
