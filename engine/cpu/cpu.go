// Package cpu computes the operations of engine/ops on the processor.
//
// It is the default where no GPU is supported and the oracle of every GPU
// kernel. There are two ways to multiply by a weight. Exact dequantises it
// to float32 as weights.Tensor.Row defines it. The default keeps weights of
// four to eight bits as integers, rounds activations to int16 in groups of 32
// and multiplies integers, which is several times faster. (Activations of
// int8, as others have them, change what a small model answers.) Weights in
// floating point are exact in both.
//
// The order in which the terms of a sum are added depends on its length alone:
// a row's result is the same bits in a batch of any size, with any number of
// workers.
//
// The package is under the Apache License 2.0, see engine/LICENSE.
package cpu

import (
	"fmt"
	"runtime"

	"velo/engine/ops"
)

// Options choose how the backend works. The zero value is the fast default on
// all cores.
type Options struct {
	Rows    int  // most rows of a batch, 512 if 0
	Workers int  // goroutines that compute, GOMAXPROCS if 0
	Exact   bool // float32 arithmetic for every weight
	Generic bool // portable code instead of vector instructions
}

// Backend is the processor.
type Backend struct {
	rows    int
	exact   bool
	k       *kernels
	workers *workers
	batch   *ops.Batch
	scratch []scratch // one a worker
	turns   turns

	// The tasks live here so that a step allocates nothing.
	linear    linear
	quantise  quantise
	norm      norm
	attend    attend
	store     store
	convolve  convolve
	delta     deltaRule
	elements  elements
	rotate    rotate
	embed     embed
	quantised quantised
}

// scratch is a worker's own memory.
type scratch struct {
	out    [4]float32
	tile   [4 * maxLanes]float32
	rows   []float32 // dequantised rows of a matrix
	scores []float32 // of some queries
	sums   []float32 // of their weights
	head   []float32 // queries or accumulators
	_      [64]byte
}

var _ ops.Backend = (*Backend)(nil)

// New makes a backend.
func New(o Options) *Backend {
	if o.Rows <= 0 {
		o.Rows = 512
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	b := &Backend{rows: o.Rows, exact: o.Exact, workers: newWorkers(o.Workers), k: available()[0]}
	if o.Generic {
		b.k = &portable
	}
	b.scratch = make([]scratch, o.Workers)
	return b
}

// Close ends the workers.
func (b *Backend) Close() { b.workers.stop() }

// Name tells the kind of code and the number of workers.
func (b *Backend) Name() string {
	return fmt.Sprintf("cpu (%s, %d workers)", b.k.name, b.workers.n)
}

// Rows is the largest number of rows in a batch.
func (b *Backend) Rows() int { return b.rows }

// Begin starts a step.
func (b *Backend) Begin(batch *ops.Batch) {
	if len(batch.Tokens) > b.rows {
		panic(fmt.Sprintf("cpu: a batch of %d rows on a backend made for %d", len(batch.Tokens), b.rows))
	}
	b.batch = batch
	b.turns.rope = nil
}

type buffer struct {
	data []float32
	cols int
}

func (b *buffer) Cols() int { return b.cols }

// Buffer makes an activation of rows × cols values.
func (b *Backend) Buffer(rows, cols int) ops.Buffer {
	return &buffer{data: make([]float32, rows*cols), cols: cols}
}

// Read gives the first rows rows of x.
func (b *Backend) Read(x ops.Buffer, rows int) []float32 {
	return x.(*buffer).data[:rows*x.Cols()]
}

type vector []float32

func (v vector) Len() int { return len(v) }

// Vector takes over the values of parts one after another, plus add.
func (b *Backend) Vector(add float32, parts ...*ops.Weight) (ops.Vector, error) {
	var v vector
	for _, t := range parts {
		row := make([]float32, t.Cols())
		for i := range t.Rows() {
			t.Row(row, i)
			for _, x := range row {
				v = append(v, x+add)
			}
		}
	}
	return v, nil
}

// view is a tensor taken apart.
type view struct {
	data                             []float32
	cols, offset, heads, dim, stride int
}

func of(t ops.Tensor) view {
	b := t.Buffer.(*buffer)
	return view{b.data, b.cols, t.Offset, t.Heads, t.Dim, t.Stride}
}

func (v *view) head(row, head int) []float32 {
	at := row*v.cols + v.offset + head*v.stride
	return v.data[at : at+v.dim : at+v.dim]
}

// row is all of a row as one piece; heads must lie one after another.
func (v *view) row(row int) []float32 {
	at := row*v.cols + v.offset
	n := v.heads * v.dim
	return v.data[at : at+n : at+n]
}

func (v *view) solid() bool { return v.heads == 1 || v.stride == v.dim }

func grow(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n+n/2)[:n]
	}
	return s[:n]
}
