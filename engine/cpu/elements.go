package cpu

import (
	"math"

	"velo/engine/ops"
)

// embed is the task of looking up one row's token.
type embed struct {
	b     *Backend
	dst   view
	table *matrix
}

// Embed sets dst to the rows of table that the tokens name.
func (b *Backend) Embed(dst ops.Tensor, table ops.Matrix) {
	b.embed = embed{b, of(dst), table.(*matrix)}
	b.workers.run(&b.embed, len(b.batch.Tokens))
}

func (t *embed) do(row, _ int) {
	t.table.row(t.dst.row(row), int(t.b.batch.Tokens[row]))
}

// norm is the task of one row.
type norm struct {
	dst, x view
	w      vector
	eps    float32
}

// Norm is RMS normalisation of each head.
func (b *Backend) Norm(dst, x ops.Tensor, w ops.Vector, eps float32) {
	b.norm = norm{of(dst), of(x), w.(vector), eps}
	b.workers.run(&b.norm, len(b.batch.Tokens))
}

func (t *norm) do(row, _ int) {
	for h := range t.x.heads {
		x, dst := t.x.head(row, h), t.dst.head(row, h)
		f := rootMean(x, t.eps)
		for i, v := range x {
			dst[i] = v * f * t.w[i]
		}
	}
}

// rootMean is 1/√(mean(x²)+eps).
func rootMean(x []float32, eps float32) float32 {
	var s [4]float32
	i := 0
	for ; i+4 <= len(x); i += 4 {
		s[0] += x[i] * x[i]
		s[1] += x[i+1] * x[i+1]
		s[2] += x[i+2] * x[i+2]
		s[3] += x[i+3] * x[i+3]
	}
	for ; i < len(x); i++ {
		s[0] += x[i] * x[i]
	}
	mean := (s[0] + s[1] + (s[2] + s[3])) / float32(len(x))
	return 1 / float32(math.Sqrt(float64(mean+eps)))
}

// turns is cosine and sine of the angles of a batch, made at its first
// rotation and used by every layer.
type turns struct {
	rope     *ops.Rope
	cos, sin []float32 // [rows, pairs]
}

// rotate is the task of one row.
type rotate struct {
	x     view
	turns *turns
}

// Rope rotates the heads of x by their row's position.
func (b *Backend) Rope(x ops.Tensor, r *ops.Rope) {
	t, pairs := &b.turns, len(r.Inverse)
	if t.rope != r {
		t.rope = r
		t.cos, t.sin = grow(t.cos, len(b.batch.Tokens)*pairs), grow(t.sin, len(b.batch.Tokens)*pairs)
		for row, position := range b.batch.Positions {
			for i, f := range r.Inverse {
				// The angle is rounded to float32 as transformers rounds it.
				sin, cos := math.Sincos(float64(float32(position) * f))
				t.cos[row*pairs+i], t.sin[row*pairs+i] = float32(cos)*r.Scale, float32(sin)*r.Scale
			}
		}
	}
	b.rotate = rotate{of(x), t}
	b.workers.run(&b.rotate, len(b.batch.Tokens))
}

func (t *rotate) do(row, _ int) {
	pairs := len(t.turns.rope.Inverse)
	cos, sin := t.turns.cos[row*pairs:(row+1)*pairs], t.turns.sin[row*pairs:(row+1)*pairs]
	for h := range t.x.heads {
		x := t.x.head(row, h)
		for i, c := range cos {
			a, b := x[i], x[i+pairs]
			x[i], x[i+pairs] = a*c-b*sin[i], b*c+a*sin[i]
		}
	}
}

// elements is the task of one row of an operation on single values.
type elements struct {
	b        *Backend
	kind     elementKind
	dst      view
	gate, in view
	rows     []int32
}

type elementKind uint8

const (
	siluKind elementKind = iota
	sigmoidKind
	gatherKind
)

// SiLU sets dst to silu(gate) ⊙ x.
func (b *Backend) SiLU(dst, gate, x ops.Tensor) {
	b.each(elements{b: b, kind: siluKind, dst: of(dst), gate: of(gate), in: of(x)}, len(b.batch.Tokens))
}

// Sigmoid multiplies x by σ(gate).
func (b *Backend) Sigmoid(x, gate ops.Tensor) {
	b.each(elements{b: b, kind: sigmoidKind, dst: of(x), gate: of(gate), in: of(x)}, len(b.batch.Tokens))
}

// Gather sets row i of dst to row rows[i] of x.
func (b *Backend) Gather(dst, x ops.Tensor, rows []int32) {
	b.each(elements{b: b, kind: gatherKind, dst: of(dst), in: of(x), rows: rows}, len(rows))
}

func (b *Backend) each(t elements, rows int) {
	b.elements = t
	b.workers.run(&b.elements, rows)
}

func (t *elements) do(row, _ int) {
	from := row
	if t.kind == gatherKind {
		from = int(t.rows[row])
	}
	for h := range t.dst.heads {
		dst, in := t.dst.head(row, h), t.in.head(from, h)
		switch t.kind {
		case siluKind:
			t.b.k.silu(&dst[0], &t.gate.head(row, h)[0], &in[0], len(dst))
		case sigmoidKind:
			for i, g := range t.gate.head(row, h) {
				dst[i] = in[i] * sigmoid(g)
			}
		case gatherKind:
			copy(dst, in)
		}
	}
}
