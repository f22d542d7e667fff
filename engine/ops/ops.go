// Package ops is what a model is written in: a small set of operations on
// batches of rows that engine/cpu and cuda implement.
//
// A model is a list of calls on a Backend, made once a step for all rows of a
// [Batch]. Rows of one sequence are consecutive and are the next tokens of
// that sequence; how many rows a sequence brings makes no difference to the
// meaning of any of them, so prefill, decode and the check of a draft are one
// thing. engine/cpu keeps this exact: the value of a row depends neither on the
// other rows nor on how the work is divided (batch invariance). cuda does so in
// steps of up to 16 rows; in larger ones a row may differ from that by rounding.
//
// Everything that belongs to a backend is opaque here: [Matrix] and [Vector]
// are parameters, [Tensor] is an activation. Activations are float32 in
// meaning; norms, softmax and recurrent state are computed in float32.
//
// The package is under the Apache License 2.0, see engine/LICENSE.
package ops

import "velo/engine/weights"

// Weight is a tensor as the loader gives it.
type Weight = weights.Tensor

// Matrix is the weight of a linear layer on a backend, [Out, In].
type Matrix interface {
	Out() int
	In() int
}

// Vector is a float32 parameter on a backend: a norm's weight, a bias, a
// convolution kernel.
type Vector interface{ Len() int }

// Buffer is memory of a backend for activations: rows of Cols float32 values.
type Buffer interface{ Cols() int }

// Tensor is a view of a buffer: for each row Heads groups of Dim values, the
// first at column Offset and each Stride columns after the one before. The
// output of a fused projection is taken apart with views, without a copy.
type Tensor struct {
	Buffer                     Buffer
	Offset, Heads, Dim, Stride int
}

// All is the view of a whole buffer as one head.
func All(b Buffer) Tensor {
	return Tensor{Buffer: b, Heads: 1, Dim: b.Cols(), Stride: b.Cols()}
}

// Part is the view of n columns from column offset on, as heads of equal size.
func Part(b Buffer, offset, n, heads int) Tensor {
	return Tensor{Buffer: b, Offset: offset, Heads: heads, Dim: n / heads, Stride: n / heads}
}

// Segment is the rows of a batch that belong to one sequence.
type Segment struct {
	Row, Rows int     // the first row and how many
	Past      int     // tokens of the sequence before the first row
	Pages     []int32 // page table: entry i holds positions i·PageTokens and on; long enough for Past+Rows
	State     int32   // slot of the recurrent state, −1 for a model without
}

// Batch is the input of one step.
type Batch struct {
	Tokens    []int32 // [rows] token ids
	Positions []int32 // [rows] position of each token in its sequence
	Segments  []Segment
	Outputs   []int32 // rows whose logits are wanted, ascending
}

// Rope describes rotary position embedding of the first 2·len(Inverse)
// dimensions of a head: dimension i turns with dimension i + len(Inverse).
type Rope struct {
	Inverse []float32 // inverse frequencies, one a pair
	Scale   float32   // factor on cosine and sine (YaRN), else 1
}

// CacheShape is what one model keeps of each token and of each sequence.
type CacheShape struct {
	Attention int // layers that keep keys and values
	Heads     int // of queries, if it is known before anything is computed
	Longest   int // tokens of one sequence at most, 0 for as many as there are pages
	KVHeads   int
	HeadDim   int
	KV        KVType // how a backend stores them

	Recurrent  int // layers that keep a recurrent state
	KeyHeads   int // heads of q and k of the delta rule
	ValueHeads int // heads of v, a multiple of KeyHeads
	KeyDim     int // width of a head of k
	ValueDim   int // width of a head of v
	ConvCols   int // channels of the causal convolution
	ConvKernel int // taps of the causal convolution
}

// PageTokens is how many tokens of one sequence share a page of the cache.
const PageTokens = 16

// PageBytes is the memory of one page of keys and values.
func (c CacheShape) PageBytes() int64 {
	return int64(c.Attention) * 2 * PageTokens * int64(c.KVHeads) * c.KV.HeadBytes(c.HeadDim)
}

// StateBytes is the memory of one sequence's recurrent state: the last
// ConvKernel−1 inputs of the convolution and a KeyDim × ValueDim matrix a
// value head, in float32, for each recurrent layer.
func (c CacheShape) StateBytes() int64 {
	conv := max(c.ConvKernel-1, 0) * c.ConvCols
	return int64(c.Recurrent) * int64(conv+c.ValueHeads*c.KeyDim*c.ValueDim) * 4
}

// Cache is the memory of keys, values and recurrent states on a backend.
// engine/kv decides which page and slot belongs to whom.
type Cache interface {
	Shape() CacheShape
	// CopyPage copies keys and values of all layers.
	CopyPage(dst, src int32)
	// CopyState copies the recurrent state of all layers.
	CopyState(dst, src int32)
	// ClearState sets a recurrent state to that of an empty sequence.
	ClearState(slot int32)
}

// Delta is the input of one gated delta rule step.
type Delta struct {
	Q, K Tensor // [KeyHeads, KeyDim], before normalisation
	V    Tensor // [ValueHeads, ValueDim]
	A, B Tensor // [ValueHeads]: decay and write strength before their activations
	ALog Vector // [ValueHeads]
	Bias Vector // [ValueHeads], dt_bias
	// Value head i reads key head i / (ValueHeads/KeyHeads), or
	// i mod KeyHeads if Tiled.
	Tiled bool
}

// Backend computes. Calls come from one goroutine, in order; results may be
// looked at after Read only. Rows are those of the batch given to Begin,
// unless said otherwise.
type Backend interface {
	// Name tells backend and device in words.
	Name() string
	// Rows is the largest number of rows in a batch.
	Rows() int

	// Matrix takes over parts stacked along their first dimension, all of the
	// same width. Parts may be of different types.
	Matrix(parts ...*Weight) (Matrix, error)
	// Vector takes over the values of parts one after another, plus add.
	Vector(add float32, parts ...*Weight) (Vector, error)
	// Buffer makes an activation of rows × cols values.
	Buffer(rows, cols int) Buffer
	// Cache makes a cache of so many pages and recurrent states. Its Shape tells
	// how it stores keys and values, whatever shape says of that.
	Cache(shape CacheShape, pages, states int) (Cache, error)

	// Begin starts a step. The batch must stay unchanged until Read.
	Begin(batch *Batch)
	// Embed sets dst to the rows of table that the tokens name.
	Embed(dst Tensor, table Matrix)
	// Norm sets each head of dst to x / sqrt(mean(x²)+eps) ⊙ w, w of Dim values.
	Norm(dst, x Tensor, w Vector, eps float32)
	// Linear sets dst to x·mᵀ + bias; bias may be nil. dst may not be x.
	Linear(dst, x Tensor, m Matrix, bias Vector)
	// AddLinear adds x·mᵀ + bias to dst; bias may be nil.
	AddLinear(dst, x Tensor, m Matrix, bias Vector)
	// LinearRows is Linear without bias on the first rows rows alone.
	LinearRows(dst, x Tensor, m Matrix, rows int)
	// Rope rotates the heads of x by their row's position.
	Rope(x Tensor, r *Rope)
	// Attend appends k and v to layer of cache and sets dst to
	// softmax(scale·q·kᵀ)·v over the last window positions up to each row's
	// own, all of them if window is 0. Query head i reads key head
	// i/(Heads of q / Heads of k).
	Attend(dst, q, k, v Tensor, cache Cache, layer, window int, scale float32)
	// Convolve applies the causal depthwise convolution w [cols, ConvKernel]
	// along the rows of each sequence, then SiLU, and moves the state of layer
	// on. x is overwritten by the result.
	Convolve(x Tensor, w Vector, cache Cache, layer int)
	// DeltaRule moves the state S of layer on by each row in order and sets
	// dst [ValueHeads, ValueDim] to Sᵀq. With q, k normalised to length 1,
	// q scaled by 1/√KeyDim, β = σ(b) and g = −exp(ALog)·softplus(a+Bias):
	// S ← e^g·S; S ← S + k·(β(v − Sᵀk))ᵀ (Yang et al., Gated Delta Networks,
	// arXiv 2412.06464).
	DeltaRule(dst Tensor, in *Delta, cache Cache, layer int)
	// SiLU sets dst to silu(gate) ⊙ x.
	SiLU(dst, gate, x Tensor)
	// Sigmoid multiplies x by σ(gate).
	Sigmoid(x, gate Tensor)
	// Gather sets row i of dst to row rows[i] of x.
	Gather(dst, x Tensor, rows []int32)
	// Read waits for the step and gives the first rows rows of x, row-major
	// [rows, Cols]. They are valid until the next Begin.
	Read(x Buffer, rows int) []float32
}
