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

func quantisePortable(x *float32, codes *int16, scales, sums *float32, blocks int) {
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

// linear is the task of a matrix product. A piece is some tiles of the matrix
// times all rows of x, four at a time: those four stay in the first cache while
// the piece's weights pass by, from the second.
type linear struct {
	b      *Backend
	dst, x view
	m      *matrix
	bias   vector
	add    bool
	rows   int // of x
	size   int // tiles a piece
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
	// at most 64 rows, so that a piece's weights fit in the second cache.
	t.size = min(64/b.k.lanes, max(1, t.m.tiles/(8*b.workers.n)))
	b.workers.run(t, (t.m.tiles+t.size-1)/t.size)
}

func growInt16(s []int16, n int) []int16 {
	if cap(s) < n {
		return make([]int16, n+n/2)[:n]
	}
	return s[:n]
}

func (t *linear) do(piece, worker int) {
	first := piece * t.size
	last := min(first+t.size, t.m.tiles)
	s := &t.b.scratch[worker]
	for i := range t.m.parts {
		p := &t.m.parts[i]
		from, to := max(first, p.start)-p.start, min(last, p.start+p.tiles)-p.start
		switch {
		case from >= to:
		case p.form == raw:
			t.floats(p, from*p.lanes, min(to*p.lanes, p.rows), s)
		default:
			t.integers(p, from, to, s)
		}
	}
}

// put sets n neighbouring values of a row of dst.
func (t *linear) put(row, out int, values []float32) {
	at := row*t.dst.cols + t.dst.offset + out
	dst := t.dst.data[at : at+len(values)]
	if t.bias != nil {
		for i, b := range t.bias[out : out+len(values)] {
			values[i] += b
		}
	}
	if t.add {
		for i, v := range values {
			dst[i] += v
		}
		return
	}
	copy(dst, values)
}

// integers multiplies tiles from … to of p. Results that nothing is added to
// are written where they belong, others by way of the scratch.
func (t *linear) integers(p *part, from, to int, s *scratch) {
	q, kernel := &t.b.quantised, &t.b.k.tiles[p.form]
	n := q.cols / group
	bytes := p.form.tileBytes(p.lanes, q.cols)
	for row := 0; row < t.rows; {
		rows, multiply := 1, kernel.one
		if row+4 <= t.rows {
			rows, multiply = 4, kernel.four
		}
		a, as, sums := &q.codes[row*q.cols], &q.scales[row*n], &q.sums[row*n]
		for i := from; i < to; i++ {
			first := i * p.lanes
			many := min(p.lanes, p.rows-first)
			if many == p.lanes && !t.add && t.bias == nil {
				dst := &t.dst.data[row*t.dst.cols+t.dst.offset+p.first+first]
				multiply(&p.codes[i*bytes], a, as, sums, n, dst, t.dst.cols)
				continue
			}
			multiply(&p.codes[i*bytes], a, as, sums, n, &s.tile[0], p.lanes)
			for r := range rows {
				t.put(row+r, p.first+first, s.tile[r*p.lanes:r*p.lanes+many])
			}
		}
		row += rows
	}
}

// floats multiplies rows from … to of p in float32, dequantised four at a time
// and more for many rows of x, which are read again for each lot. The kernel
// takes one vector and four: for few rows of x those are rows of the matrix,
// for many they are rows of x; products commute and the order of the sum is the
// same.
func (t *linear) floats(p *part, from, to int, s *scratch) {
	k, n := t.b.k, t.m.in
	lot := 4
	if t.rows >= 16 {
		lot = 16
	}
	for i := from; i < to; i += lot {
		many := min(lot, to-i)
		w := floatRows(p.weight, i, many)
		if w == nil {
			s.rows = grow(s.rows, lot*n)
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
				for j := range s.out {
					t.put(row+j, p.first+i+r, s.out[j:j+1])
				}
			}
		}
		for ; row < t.rows; row++ {
			x := &t.x.row(row)[0]
			r := 0
			for ; r+4 <= many; r += 4 {
				k.dot4(x, &w[r*n], n, n, &s.out)
				t.put(row, p.first+i+r, s.out[:])
			}
			for ; r < many; r++ {
				k.dot4(x, &w[r*n], 0, n, &s.out)
				t.put(row, p.first+i+r, s.out[:1])
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
