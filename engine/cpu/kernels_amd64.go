package cpu

import "golang.org/x/sys/cpu"

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

var avx2 = kernels{
	name:       "AVX2",
	quantise:   quantiseAVX2,
	tiles:      avx2Tiles,
	lanes:      8,
	dot:        dotAVX2,
	dot4:       dot4AVX2,
	dequantise: widening{bf16: widenBF16AVX2, f16: widenF16AVX2, halves: 8, e4m3: widenE4M3AVX2, bytes: 1}.dequantise(portable.dequantise),
	scores:     scoresAVX2,
	values:     valuesAVX2,
	top:        topAVX2,
	softmax:    softmaxAVX2,
	silu:       siluAVX2,
	decay:      decayAVX2,
	learn:      learnAVX2,
}.where(multiples{scores: 2, values: 16, silu: 8, cols: 8}, &portable)

// avx512 is avx2 with tiles of 16 lanes, dot products and attention in wider
// vectors, vnni with its instruction for tiles.
var avx512, vnni = func() (a, v kernels) {
	a = avx2
	a.name, a.tiles, a.lanes = "AVX-512", avx512Tiles, 16
	a.dot, a.dot4 = dotAVX512, dot4AVX512
	a.dequantise = widening{bf16: widenBF16AVX512, f16: widenF16AVX512, halves: 16, e4m3: widenE4M3AVX512, bytes: 32}.dequantise(avx2.dequantise)
	a.scores, a.values = scoresWhere(4, scoresAVX512, avx2.scores), valuesWhere(64, valuesAVX512, avx2.values)
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
