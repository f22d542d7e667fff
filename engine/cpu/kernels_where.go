package cpu

import (
	"velo/engine/ops"
	"velo/engine/weights"
)

// multiples are what sizes must be of for vector kernels.
type multiples struct {
	scores, values int // of the width of a head
	silu           int // of what one call takes; the rest is another's
	cols           int // of the columns of a state
}

// where is k with the kernels of other for sizes that its own are not made for. The size is the
// model's, so all rows of it are treated alike.
func (k kernels) where(m multiples, other *kernels) kernels {
	silu, decay, learn := k.silu, k.decay, k.learn
	k.scores, k.values = scoresWhere(m.scores, k.scores, other.scores), valuesWhere(m.values, k.values, other.values)
	k.silu = func(dst, g, x *float32, n int) {
		whole := n - n%m.silu
		if whole > 0 {
			silu(dst, g, x, whole)
		}
		if whole < n { // a pointer behind the end must not even be formed
			other.silu(at(dst, whole), at(g, whole), at(x, whole), n-whole)
		}
	}
	k.decay = func(s, k *float32, f float32, rows, cols int, acc *float32) {
		if cols%m.cols == 0 {
			decay(s, k, f, rows, cols, acc)
		} else {
			other.decay(s, k, f, rows, cols, acc)
		}
	}
	k.learn = func(s, k, d, q *float32, rows, cols int, acc *float32) {
		if cols%m.cols == 0 {
			learn(s, k, d, q, rows, cols, acc)
		} else {
			other.learn(s, k, d, q, rows, cols, acc)
		}
	}
	return k
}

type scoresKernel = func(q, k *float32, dim int, scale float32, out *float32)

// scoresWhere is own for heads whose width is a multiple of so many values, else other.
func scoresWhere(multiple int, own, other scoresKernel) scoresKernel {
	return func(q, k *float32, dim int, scale float32, out *float32) {
		if dim%multiple == 0 {
			own(q, k, dim, scale, out)
		} else {
			other(q, k, dim, scale, out)
		}
	}
}

type valuesKernel = func(p, v *float32, dim, n int, acc *float32)

// valuesWhere is own for heads whose width is a multiple of so many values, else other.
func valuesWhere(multiple int, own, other valuesKernel) valuesKernel {
	return func(p, v *float32, dim, n int, acc *float32) {
		if dim%multiple == 0 {
			own(p, v, dim, n, acc)
		} else {
			other(p, v, dim, n, acc)
		}
	}
}

// widening makes float32 of a row of 16 or 8 bit numbers, for rows that are multiples of halves, or
// bytes, values long.
type widening struct {
	bf16, f16     func(dst *float32, src *byte, n int)
	e4m3          func(dst *float32, src *byte, n int, scale float32)
	halves, bytes int
}

// dequantise is the kernel of that name, which leaves what it is not made for to other.
func (v widening) dequantise(other func(w *ops.Weight, dst []float32, i int)) func(w *ops.Weight, dst []float32, i int) {
	return func(w *ops.Weight, dst []float32, i int) {
		n := len(dst)
		switch {
		case w.Type == weights.BF16 && n%v.halves == 0:
			v.bf16(&dst[0], &w.RowData(i)[0], n)
		case w.Type == weights.F16 && n%v.halves == 0:
			v.f16(&dst[0], &w.RowData(i)[0], n)
		case (w.Type == weights.FP8Row || w.Type == weights.FP8Block) && n%v.bytes == 0:
			widenFP8(w, dst, i, v.e4m3)
		default:
			other(w, dst, i)
		}
	}
}
