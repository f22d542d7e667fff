package cpu

import (
	"math"
	"unsafe"

	"velo/engine/ops"
)

// kernels are the inner loops. Each has a portable form in this file, which
// says what it computes, and vector forms beside it. Products of integers are
// the same bits in all sets. A vector form of another kernel may add in
// another order than the portable one; within a set the result for a pair of
// rows is the same whether it is computed alone or among four.
type kernels struct {
	name string

	// quantise rounds blocks groups of x to int16; see the task of that name.
	quantise func(x *float32, codes *int16, scales, sums *float32, blocks int)

	// tiles are integer products; lanes is how many rows a tile has.
	tiles [forms]tileKernel
	lanes int

	// dot is Σ x·y over n values.
	dot func(x, y *float32, n int) float32
	// dot4 is dot of x with four vectors that lie stride values apart.
	dot4 func(x, y *float32, stride, n int, out *[4]float32)
	// dequantise is w.Row.
	dequantise func(w *ops.Weight, dst []float32, i int)

	// scores sets out to scale·q·k for the 16 positions of a page of keys
	// [dim, 16].
	scores func(q, k *float32, dim int, scale float32, out *float32)
	// values adds Σ p[t]·v[t] to acc for the first n positions of a page of
	// values [16, dim].
	values func(p, v *float32, dim, n int, acc *float32)
	// top is the largest of n values, a multiple of 16.
	top func(x *float32, n int) float32
	// softmax sets x to exp(x−top) and returns the sum; n is a multiple of 16.
	softmax func(x *float32, n int, top float32) float32
	// silu sets dst to g/(1+exp(−g))·x.
	silu func(dst, g, x *float32, n int)
	// decay sets s [rows, cols] to f·s and adds Σ k[i]·s[i] to acc.
	decay func(s, k *float32, f float32, rows, cols int, acc *float32)
	// learn adds k[i]·d to each row of s and Σ q[i]·s[i] to acc.
	learn func(s, k, d, q *float32, rows, cols int, acc *float32)
}

var portable = kernels{
	name:     "portable",
	quantise: quantisePortable,
	tiles:    portableTiles,
	lanes:    portableLanes,
	dot:      dotPortable,
	dot4:     dot4Portable,
	dequantise: func(w *ops.Weight, dst []float32, i int) {
		w.Row(dst, i)
	},
	scores:  scoresPortable,
	values:  valuesPortable,
	top:     topPortable,
	softmax: softmaxPortable,
	silu:    siluPortable,
	decay:   decayPortable,
	learn:   learnPortable,
}

func at[T any](p *T, n int) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(p), n*int(unsafe.Sizeof(*p))))
}

func dotPortable(x, y *float32, n int) float32 {
	xs, ys := unsafe.Slice(x, n), unsafe.Slice(y, n)
	var s [4]float32
	i := 0
	for ; i+4 <= n; i += 4 {
		s[0] += xs[i] * ys[i]
		s[1] += xs[i+1] * ys[i+1]
		s[2] += xs[i+2] * ys[i+2]
		s[3] += xs[i+3] * ys[i+3]
	}
	for ; i < n; i++ {
		s[0] += xs[i] * ys[i]
	}
	return s[0] + s[1] + (s[2] + s[3])
}

func dot4Portable(x, y *float32, stride, n int, out *[4]float32) {
	for r := range out {
		out[r] = dotPortable(x, at(y, r*stride), n)
	}
}

func scoresPortable(q, k *float32, dim int, scale float32, out *float32) {
	qs, ks, os := unsafe.Slice(q, dim), unsafe.Slice(k, dim*ops.PageTokens), unsafe.Slice(out, ops.PageTokens)
	clear(os)
	for d, v := range qs {
		for t, w := range ks[d*ops.PageTokens : (d+1)*ops.PageTokens] {
			os[t] += v * w
		}
	}
	for t := range os {
		os[t] *= scale
	}
}

func valuesPortable(p, v *float32, dim, n int, acc *float32) {
	as := unsafe.Slice(acc, dim)
	for t, w := range unsafe.Slice(p, n) {
		for d, x := range unsafe.Slice(at(v, t*dim), dim) {
			as[d] += w * x
		}
	}
}

func topPortable(x *float32, n int) float32 {
	top := float32(math.Inf(-1))
	for _, v := range unsafe.Slice(x, n) {
		if v > top {
			top = v
		}
	}
	return top
}

func softmaxPortable(x *float32, n int, top float32) float32 {
	sum := float32(0)
	xs := unsafe.Slice(x, n)
	for i, v := range xs {
		xs[i] = exp(v - top)
		sum += xs[i]
	}
	return sum
}

func siluPortable(dst, g, x *float32, n int) {
	ds, gs, xs := unsafe.Slice(dst, n), unsafe.Slice(g, n), unsafe.Slice(x, n)
	for i, v := range gs {
		ds[i] = v / (1 + exp(-v)) * xs[i]
	}
}

func decayPortable(s, k *float32, f float32, rows, cols int, acc *float32) {
	as := unsafe.Slice(acc, cols)
	for i, w := range unsafe.Slice(k, rows) {
		row := unsafe.Slice(at(s, i*cols), cols)
		for j := range row {
			row[j] *= f
			as[j] += w * row[j]
		}
	}
}

func learnPortable(s, k, d, q *float32, rows, cols int, acc *float32) {
	as, ds, qs := unsafe.Slice(acc, cols), unsafe.Slice(d, cols), unsafe.Slice(q, rows)
	for i, w := range unsafe.Slice(k, rows) {
		row := unsafe.Slice(at(s, i*cols), cols)
		for j := range row {
			row[j] += w * ds[j]
			as[j] += qs[i] * row[j]
		}
	}
}

func exp(x float32) float32     { return float32(math.Exp(float64(x))) }
func sigmoid(x float32) float32 { return 1 / (1 + exp(-x)) }
