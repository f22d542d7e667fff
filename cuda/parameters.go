//go:build linux && cuda && cgo

package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync"

	"velo/engine/ops"
)

// stack is an [ops.Matrix]: matrices one above the other, [out, in].
type stack struct {
	out, in int
	pieces  []piece
}

// piece is rows of a stack from row on. One that adds holds what is missing of the
// values of the piece before it, of the same rows.
type piece struct {
	m    *Matrix
	row  int
	adds bool
}

// Out is the width of the output.
func (s *stack) Out() int { return s.out }

// In is the width of the input.
func (s *stack) In() int { return s.in }

// vector is an [ops.Vector] of float32.
type vector struct {
	n      int
	values Memory
}

// Len is the number of values.
func (v *vector) Len() int { return v.n }

// stored is how a type of weights is kept: in which format, and in how many matrices
// that are added.
type stored struct {
	format   Format
	matrices int
}

// storedAs tells how weights of a type are kept. f16, FP8 with a factor a row and NVFP4 lie
// as they are, bf16 as halves with a factor a row, which loses nothing. float32 becomes two halves with a factor a row, 22 bits. All
// others become halves with a power of two a row for a factor, 11 bits, at two bytes a
// weight.
func storedAs(t ops.WeightType) stored {
	switch t {
	case ops.FP8Row:
		return stored{FP8, 1}
	case ops.NVFP4:
		return stored{NVFP4, 1}
	case ops.F32:
		return stored{F16, 2}
	}
	return stored{F16, 1}
}

// Matrix takes over parts stacked along their first dimension. Parts without data get
// random numbers, made on the device, for measuring.
func (b *Backend) Matrix(parts ...*ops.Weight) (ops.Matrix, error) {
	b.enter()
	defer b.leave()
	if b.failed != nil {
		return nil, b.failed
	}
	s := &stack{in: parts[0].Cols()}
	for i := 0; i < len(parts); {
		as, rows, n := storedAs(parts[i].Type), 0, 0
		for i+n < len(parts) && storedAs(parts[i+n].Type) == as && rows%16 == 0 {
			if parts[i+n].Cols() != s.in {
				return nil, fmt.Errorf("cannot stack %s of %d columns under %s of %d", parts[i+n].Name, parts[i+n].Cols(), parts[0].Name, s.in)
			}
			rows += parts[i+n].Rows()
			n++
		}
		if err := b.place(s, as, rows, parts[i:i+n]); err != nil {
			return nil, fmt.Errorf("cannot place %s on the GPU: %w", parts[i].Name, err)
		}
		i += n
	}
	return s, nil
}

// place appends parts, of rows rows, to a stack.
func (b *Backend) place(s *stack, as stored, rows int, parts []*ops.Weight) error {
	if s.in > operandMost {
		return fmt.Errorf("rows of %d values are too wide: %d are possible", s.in, operandMost)
	}
	matrices := make([]*Matrix, as.matrices)
	for i := range matrices {
		m, err := b.k.blank(&b.memory, as.format, rows, s.in)
		if err != nil {
			return err
		}
		matrices[i] = m
		s.pieces = append(s.pieces, piece{m, s.out, i > 0})
	}
	first := 0
	for _, t := range parts {
		if t.Data == nil {
			for _, m := range matrices {
				if err := b.k.random(m); err != nil {
					return err
				}
			}
			break
		}
		if err := b.fetch(matrices, as, t, first); err != nil {
			return err
		}
		first += t.Rows()
	}
	s.out += rows
	b.operand(as.format, s.in)
	return nil
}

// fetch begins to load a tensor into matrices, from row first on. As it lies in its file it is read
// from there; what has to be converted is looked at in mapped memory.
func (b *Backend) fetch(matrices []*Matrix, as stored, t *ops.Weight, first int) error {
	if asItIs(t.Type) {
		return b.load.matrix(matrices[0], first, t)
	}
	rows := b.load.rows(2 * t.Cols())
	for from := 0; from < t.Rows(); from += rows {
		n := min(rows, t.Rows()-from)
		parts, err := converted(t, as, from, n)
		if err != nil {
			return err
		}
		for i, p := range parts {
			if err := b.load.begin(slab{m: matrices[i], format: as.format, row: first + from, n: n, part: p, sizes: [2]int{len(p.Data)}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// partFormat is the format of parts of a tensor that become a matrix in format.
func partFormat(t ops.WeightType, format Format) Format {
	if t == ops.BF16 {
		return BF16
	}
	return format
}

// asItIs tells whether a type is packed on the device from what lies in the file.
func asItIs(t ops.WeightType) bool {
	return t == ops.BF16 || t == ops.F16 || t == ops.FP8Row || t == ops.NVFP4
}

// converted is rows of a tensor, n from row from on, as parts of a matrix each. The error is that of a
// mapped file that cannot be read.
func converted(t *ops.Weight, as stored, from, n int) ([]Part, error) {
	cols := t.Cols()
	parts := make([]Part, as.matrices)
	for i := range parts {
		parts[i] = Part{Rows: n, Data: make([]byte, 2*n*cols), Row: make([]float32, n)}
	}
	var workers sync.WaitGroup
	share := (n + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0)
	failed := make([]error, (n+share-1)/share)
	for i := range failed {
		start := i * share
		workers.Go(func() {
			defer ops.RecoverRead(debug.SetPanicOnFault(true), &failed[i])
			row := make([]float32, cols)
			for r := start; r < min(start+share, n); r++ {
				t.Row(row, from+r)
				halves(row, parts, r)
			}
		})
	}
	workers.Wait()
	return parts, errors.Join(failed...)
}

// halves writes a row as halves times a power of two that brings its largest number to
// 2¹³ and more: the first part has the nearest, each other one what is left.
func halves(row []float32, parts []Part, r int) {
	top := float32(0)
	for _, v := range row {
		top = max(top, float32(math.Abs(float64(v))))
	}
	_, e := math.Frexp(float64(top))
	if top == 0 || math.IsInf(float64(top), 0) || top != top {
		e = 0
	}
	e = max(e-14, -100)
	up := float32(math.Ldexp(1, -e))
	for i := range parts {
		parts[i].Row[r] = float32(math.Ldexp(1, e))
	}
	at := 2 * r * len(row)
	for j, v := range row {
		v *= up
		for i := range parts {
			h := halfBits(v)
			binary.LittleEndian.PutUint16(parts[i].Data[at+2*j:], h)
			v -= halfValue(h)
		}
	}
}

// Vector takes over the values of parts one after another, plus add. Parts without data
// are 0.
func (b *Backend) Vector(add float32, parts ...*ops.Weight) (ops.Vector, error) {
	b.enter()
	defer b.leave()
	if b.failed != nil {
		return nil, b.failed
	}
	var values []float32
	for _, t := range parts {
		row := make([]float32, t.Cols())
		for i := range t.Rows() {
			if t.Data != nil {
				t.Row(row, i)
			}
			for _, x := range row {
				values = append(values, x+add)
			}
		}
	}
	v := &vector{n: len(values)}
	var err error
	if v.values, err = b.memory.Take("a vector", int64(4*len(values))); err != nil {
		return nil, err
	}
	return v, Upload(v.values, values)
}

// WeightBytes is the memory that a weight takes on the device as a matrix, or as a
// vector if it has one dimension or is the taps of a convolution. Stacked with others it may
// take a little less.
func WeightBytes(t *ops.Weight) int64 {
	if len(t.Shape) < 2 || t.Cols() <= maxTaps {
		return aligned(4 * int64(t.Rows()) * int64(t.Cols()))
	}
	as := storedAs(t.Type)
	n := int64((t.Rows()+31)/32*2)*int64(as.format.units(t.Cols()))*int64(formats[as.format].bytes) + aligned(int64(4*t.Rows()))
	return n * int64(as.matrices)
}
