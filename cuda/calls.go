//go:build linux && cuda && cgo

package cuda

import (
	"math"

	"velo/engine/ops"
)

// kind is the operation of a call.
type kind int32

const (
	embedCall kind = iota
	normCall
	linearCall
	ropeCall
	attendCall
	convolveCall
	deltaCall
	siluCall
	sigmoidCall
	gatherCall
	sampleCall
)

// tensor is an [ops.Tensor] of this backend.
type tensor struct {
	buffer                     *buffer
	offset, heads, dim, stride int32
}

func of(t ops.Tensor) tensor {
	return tensor{t.Buffer.(*buffer), int32(t.Offset), int32(t.Heads), int32(t.Dim), int32(t.Stride)}
}

func (t *tensor) view() View {
	return View{t.buffer.memory, t.buffer.cols, int(t.offset), int(t.heads), int(t.dim), int(t.stride)}
}

// solid tells whether the heads lie one after the other.
func (t *tensor) solid() bool { return t.heads == 1 || t.stride == t.dim }

// call is an operation of a step with its operands. Calls are compared, so there is
// nothing in them that differs between steps of the same shape, and no hole.
type call struct {
	kind            kind
	flags           int32   // of the kind
	dst, x, k, v    tensor  // x: q, k: a gate
	a, b            tensor  // of the delta rule
	m               *stack  // a table, a weight
	w, bias         *vector // w: also ALog
	cache           *cache
	rope            *ops.Rope
	layer, window   int32
	rows, picked    int32
	number, padding uint32 // float32: eps, scale
}

func (c *call) float() float32 { return math.Float32frombits(c.number) }

func (b *Backend) note(c call) { b.calls = append(b.calls, c) }

func (b *Backend) batchRows() int32 { return int32(len(b.batch.Tokens)) }

// Embed sets dst to the rows of table that the tokens name.
func (b *Backend) Embed(dst ops.Tensor, table ops.Matrix) {
	b.note(call{kind: embedCall, dst: of(dst), m: table.(*stack), rows: b.batchRows()})
}

// Norm sets each head of dst to x / √(mean(x²)+eps) ⊙ w.
func (b *Backend) Norm(dst, x ops.Tensor, w ops.Vector, eps float32) {
	b.note(call{kind: normCall, dst: of(dst), x: of(x), w: w.(*vector), number: math.Float32bits(eps), rows: b.batchRows()})
}

// Linear sets dst to x·mᵀ + bias.
func (b *Backend) Linear(dst, x ops.Tensor, m ops.Matrix, bias ops.Vector) {
	b.linear(dst, x, m, bias, 0, b.batchRows())
}

// AddLinear adds x·mᵀ + bias to dst.
func (b *Backend) AddLinear(dst, x ops.Tensor, m ops.Matrix, bias ops.Vector) {
	b.linear(dst, x, m, bias, 1, b.batchRows())
}

// LinearRows is Linear on the first rows rows.
func (b *Backend) LinearRows(dst, x ops.Tensor, m ops.Matrix, rows int) {
	b.linear(dst, x, m, nil, 0, int32(rows))
}

func (b *Backend) linear(dst, x ops.Tensor, m ops.Matrix, bias ops.Vector, add, rows int32) {
	c := call{kind: linearCall, flags: add, dst: of(dst), x: of(x), m: m.(*stack), rows: rows}
	if bias != nil {
		c.bias = bias.(*vector)
	}
	if !c.x.solid() || !c.dst.solid() || x.Heads*x.Dim != m.In() || dst.Heads*dst.Dim != m.Out() {
		panic("cuda: a linear layer's input or output has another width than its matrix")
	}
	if rows > 0 {
		b.note(c)
	}
}

// Rope rotates the heads of x by their row's position.
func (b *Backend) Rope(x ops.Tensor, r *ops.Rope) {
	b.note(call{kind: ropeCall, dst: of(x), rope: r, rows: b.batchRows()})
}

// Attend appends k and v to layer of cache and sets dst to the attention of q.
func (b *Backend) Attend(dst, q, k, v ops.Tensor, c ops.Cache, layer, window int, scale float32) {
	b.note(call{kind: attendCall, dst: of(dst), x: of(q), k: of(k), v: of(v), cache: c.(*cache), layer: int32(layer), window: int32(window),
		number: math.Float32bits(scale), rows: b.batchRows()})
}

// Convolve applies the causal depthwise convolution w along the rows of each sequence,
// then SiLU.
func (b *Backend) Convolve(x ops.Tensor, w ops.Vector, c ops.Cache, layer int) {
	b.note(call{kind: convolveCall, dst: of(x), w: w.(*vector), cache: c.(*cache), layer: int32(layer), rows: b.batchRows()})
}

// DeltaRule moves the state of layer on by each row in order and sets dst to Sᵀq.
func (b *Backend) DeltaRule(dst ops.Tensor, in *ops.Delta, c ops.Cache, layer int) {
	n := call{kind: deltaCall, dst: of(dst), x: of(in.Q), k: of(in.K), v: of(in.V), a: of(in.A), b: of(in.B), w: in.ALog.(*vector), bias: in.Bias.(*vector),
		cache: c.(*cache), layer: int32(layer), rows: b.batchRows()}
	if in.Tiled {
		n.flags = 1
	}
	b.note(n)
}

// SiLU sets dst to silu(gate) ⊙ x.
func (b *Backend) SiLU(dst, gate, x ops.Tensor) {
	b.note(call{kind: siluCall, dst: of(dst), k: of(gate), x: of(x), rows: b.batchRows()})
}

// Sigmoid multiplies x by σ(gate).
func (b *Backend) Sigmoid(x, gate ops.Tensor) {
	b.note(call{kind: sigmoidCall, dst: of(x), k: of(gate), x: of(x), rows: b.batchRows()})
}

// Gather sets row i of dst to row rows[i] of x.
func (b *Backend) Gather(dst, x ops.Tensor, rows []int32) {
	if len(rows) > 0 {
		b.note(call{kind: gatherCall, dst: of(dst), x: of(x), rows: int32(len(rows)), picked: int32(b.input.pick(rows))})
	}
}
