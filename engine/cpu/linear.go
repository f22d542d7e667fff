package cpu

import (
	"math"
	"unsafe"

	"velo/engine/ops"
	"velo/engine/weights"
)

// quantised is activations as int16: for each row, cols codes and, for each
// group of 32, a scale and scale·Σcodes, which multiplies a weight's minimum.
type quantised struct {
	codes        []int16
	scales, sums []float32
	cols         int
}

// quantise is the task that rounds rows of x to int16: code =
// round(x·32767/max|x|), half to even.
type quantise struct {
	b *Backend
	x view
}

func (t *quantise) do(row, _ int) {
	q := &t.b.quantised
	n := q.cols / group
	t.b.k.quantise(&t.x.row(row)[0], &q.codes[row*q.cols], &q.scales[row*n], &q.sums[row*n], n)
}

func quantiseGeneric(x *float32, codes *int16, scales, sums *float32, blocks int) {
	xs, cs := unsafe.Slice(x, blocks*group), unsafe.Slice(codes, blocks*group)
	ss, us := unsafe.Slice(scales, blocks), unsafe.Slice(sums, blocks)
	for b := range blocks {
		top := float32(0)
		for _, v := range xs[b*group : (b+1)*group] {
			top = max(top, float32(math.Abs(float64(v))))
		}
		inverse := float32(0)
		if top > 0 {
			inverse = 32767 / top
		}
		sum := int32(0)
		for j := b * group; j < (b+1)*group; j++ {
			c := int32(math.RoundToEven(float64(xs[j] * inverse)))
			sum += c
			cs[j] = int16(c)
		}
		ss[b] = top / 32767
		us[b] = ss[b] * float32(sum)
	}
}

// linear is the task of a matrix product. A piece is some rows of the matrix
// times all rows of x: the piece's weights stay in the first cache while the
// rows of x pass by, four at a time.
type linear struct {
	b      *Backend
	dst, x view
	m      *matrix
	bias   vector
	add    bool
	rows   int // of x
	size   int // matrix rows a piece, a multiple of 4
}

// Linear sets dst to x·mᵀ + bias.
func (b *Backend) Linear(dst, x ops.Tensor, m ops.Matrix, bias ops.Vector) {
	b.multiply(dst, x, m, bias, false, len(b.batch.Tokens))
}

// AddLinear adds x·mᵀ + bias to dst.
func (b *Backend) AddLinear(dst, x ops.Tensor, m ops.Matrix, bias ops.Vector) {
	b.multiply(dst, x, m, bias, true, len(b.batch.Tokens))
}

// LinearRows is Linear on the first rows rows.
func (b *Backend) LinearRows(dst, x ops.Tensor, m ops.Matrix, rows int) {
	b.multiply(dst, x, m, nil, false, rows)
}

func (b *Backend) multiply(dst, x ops.Tensor, m ops.Matrix, bias ops.Vector, add bool, rows int) {
	if rows == 0 {
		return
	}
	t := &b.linear
	*t = linear{b: b, dst: of(dst), x: of(x), m: m.(*matrix), add: add, rows: rows}
	t.bias, _ = bias.(vector)
	if !t.x.solid() || !t.dst.solid() || t.x.heads*t.x.dim != t.m.in || t.dst.heads*t.dst.dim != t.m.out {
		panic("cpu: a linear layer's input or output has another width than its matrix")
	}
	if t.m.integer {
		q, n := &b.quantised, t.m.in/group
		q.cols = t.m.in
		q.codes = growInt16(q.codes, rows*t.m.in)
		q.scales, q.sums = grow(q.scales, rows*n), grow(q.sums, rows*n)
		b.quantise = quantise{b, t.x}
		b.workers.run(&b.quantise, rows)
	}
	// About eight pieces a worker, so that a slow one can be helped out, and
	// at most 64 rows, so that a piece's weights fit in the first cache.
	t.size = min(64, max(4, (t.m.out/(8*b.workers.n)+3)&^3))
	b.workers.run(t, (t.m.out+t.size-1)/t.size)
}

func growInt16(s []int16, n int) []int16 {
	if cap(s) < n {
		return make([]int16, n+n/2)[:n]
	}
	return s[:n]
}

func (t *linear) do(piece, worker int) {
	first := piece * t.size
	last := min(first+t.size, t.m.out)
	for i := range t.m.parts {
		p := &t.m.parts[i]
		from, to := max(first, p.first)-p.first, min(last, p.first+p.rows)-p.first
		if from >= to {
			continue
		}
		s := &t.b.scratch[worker]
		if p.form == raw {
			t.floats(p, from, to, s)
		} else {
			t.integers(p, from, to, s)
		}
	}
}

func (t *linear) put(row, out int, v float32) {
	at := row*t.dst.cols + t.dst.offset + out
	if t.bias != nil {
		v += t.bias[out]
	}
	if t.add {
		v += t.dst.data[at]
	}
	t.dst.data[at] = v
}

// integers multiplies rows from … to of p. A value is
// Σ scale·scale(x)·Σcode·code(x) + Σ minimum·sum(x), over groups.
func (t *linear) integers(p *part, from, to int, s *scratch) {
	k, q := t.b.k, &t.b.quantised
	n := q.cols / group
	width, per := q.cols, n
	one, four := k.bytes32, k.bytes32x4
	switch p.form {
	case nibbles:
		width, one, four = q.cols/2, k.nibbles, k.nibblesX4
	case bytes16:
		per, one, four = 2*n, k.bytes16, k.bytes16x4
	}
	row := 0
	for ; row+4 <= t.rows; row += 4 {
		codes, scales := &q.codes[row*q.cols], &q.scales[row*n]
		for i := from; i < to; i++ {
			four(&p.codes[i*width], &p.scales[i*per], codes, scales, n, &s.out)
			if p.minimum != nil {
				k.dot4(&p.minimum[i*n], &q.sums[row*n], n, n, &s.more)
				for r, v := range s.more {
					s.out[r] += v
				}
			}
			for r, v := range s.out {
				t.put(row+r, p.first+i, v)
			}
		}
	}
	for ; row < t.rows; row++ {
		codes, scales, sums := &q.codes[row*q.cols], &q.scales[row*n], &q.sums[row*n]
		for i := from; i < to; i++ {
			v := one(&p.codes[i*width], &p.scales[i*per], codes, scales, n)
			if p.minimum != nil {
				// Minima of four matrix rows at once, as far as there are four.
				switch r := (i - from) % 4; {
				case i-r+4 > to:
					v += k.dot(&p.minimum[i*n], sums, n)
				case r == 0:
					k.dot4(sums, &p.minimum[i*n], n, n, &s.more)
					v += s.more[0]
				default:
					v += s.more[r]
				}
			}
			t.put(row, p.first+i, v)
		}
	}
}

// floats multiplies rows from … to of p in float32, dequantised four at a
// time. The kernel takes one vector and four: for few rows of x those are
// rows of the matrix, for many they are rows of x; products commute and the
// order of the sum is the same.
func (t *linear) floats(p *part, from, to int, s *scratch) {
	k, n := t.b.k, t.m.in
	s.rows = grow(s.rows, 4*n)
	for i := from; i < to; i += 4 {
		many := min(4, to-i)
		w := floatRows(p.weight, i, many)
		if w == nil {
			for r := range many {
				k.dequantise(p.weight, s.rows[r*n:(r+1)*n], i+r)
			}
			w = s.rows
		}
		row := 0
		for ; row+4 <= t.rows; row += 4 {
			x := &t.x.row(row)[0]
			for r := range many {
				k.dot4(&w[r*n], x, t.x.cols, n, &s.out)
				for j, v := range s.out {
					t.put(row+j, p.first+i+r, v)
				}
			}
		}
		for ; row < t.rows; row++ {
			x := &t.x.row(row)[0]
			if many == 4 {
				k.dot4(x, &w[0], n, n, &s.out)
				for r, v := range s.out {
					t.put(row, p.first+i+r, v)
				}
				continue
			}
			for r := range many {
				k.dot4(x, &w[r*n], 0, n, &s.out)
				t.put(row, p.first+i+r, s.out[0])
			}
		}
	}
}

// floatRows is rows of an F32 weight where they lie, nil if they are not
// stored so or not aligned.
func floatRows(w *ops.Weight, i, rows int) []float32 {
	if w.Type != weights.F32 || !littleEndian {
		return nil
	}
	n := w.Cols()
	data := w.Data[i*n*4 : (i+rows)*n*4]
	if uintptr(unsafe.Pointer(&data[0]))%4 != 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&data[0])), rows*n)
}

var littleEndian = func() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 1
}()
