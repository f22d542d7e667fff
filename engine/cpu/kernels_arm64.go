package cpu

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

// neon is what every arm64 processor runs.
var neon = kernels{
	name:       "NEON",
	quantise:   quantiseNEON,
	tiles:      neonTiles,
	lanes:      8,
	dot:        dotNEON,
	dot4:       dot4NEON,
	dequantise: widening{bf16: widenBF16NEON, f16: widenF16NEON, halves: 8, e4m3: widenE4M3NEON, bytes: 1}.dequantise(portable.dequantise),
	scores:     scoresNEON,
	values:     valuesNEON,
	top:        topNEON,
	softmax:    softmaxNEON,
	silu:       siluNEON,
	decay:      decayNEON,
	learn:      learnNEON,
}.where(multiples{scores: 2, values: 16, silu: 4, cols: 8}, &portable)

// available are the kernels that the processor runs, the fastest first.
func available() []*kernels { return []*kernels{&neon, &portable} }
