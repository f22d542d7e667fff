package model

import (
	"fmt"
	"slices"

	"velo/engine/ops"
	"velo/engine/weights"
)

// binder turns tensors into parameters of a backend. The first error is kept;
// everything after it gives nil.
type binder struct {
	config  *weights.Config
	source  Source
	backend ops.Backend
	rope    *ops.Rope
	buffers map[string]ops.Buffer
	err     error

	attention, recurrent int // layers so far
}

func (b *binder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

func (b *binder) has(name string) bool {
	_, ok := b.source.Tensor(name)
	return ok
}

func (b *binder) tensor(name string, shape ...int) *ops.Weight {
	if b.err != nil {
		return nil
	}
	t, ok := b.source.Tensor(name)
	if !ok {
		b.fail("cannot build the model: tensor %s is missing", name)
		return nil
	}
	if !slices.Equal(t.Shape, shape) {
		b.fail("cannot build the model: tensor %s has shape %v, the configuration asks for %v", name, t.Shape, shape)
		return nil
	}
	return t
}

// linear is one matrix of a stack.
type linear struct {
	name string
	out  int
}

// stack makes one matrix of several that read the same input.
func (b *binder) stack(in int, parts ...linear) ops.Matrix {
	var tensors []*ops.Weight
	for _, p := range parts {
		tensors = append(tensors, b.tensor(p.name+".weight", p.out, in))
	}
	if b.err != nil {
		return nil
	}
	m, err := b.backend.Matrix(tensors...)
	if err != nil {
		b.fail("cannot build the model: %w", err)
	}
	return m
}

func (b *binder) matrix(out int, name string) ops.Matrix {
	t := b.tensor(name, out, b.config.Hidden)
	if b.err != nil {
		return nil
	}
	m, err := b.backend.Matrix(t)
	if err != nil {
		b.fail("cannot build the model: %w", err)
	}
	return m
}

// vector takes over tensors one after another.
func (b *binder) vector(add float32, parts ...*ops.Weight) ops.Vector {
	if b.err != nil {
		return nil
	}
	v, err := b.backend.Vector(add, parts...)
	if err != nil {
		b.fail("cannot build the model: %w", err)
	}
	return v
}

// bias is the biases of a stack, nil if the model has none.
func (b *binder) bias(there bool, parts ...linear) ops.Vector {
	if !there || b.err != nil {
		return nil
	}
	var tensors []*ops.Weight
	for _, p := range parts {
		tensors = append(tensors, b.tensor(p.name+".bias", p.out))
	}
	return b.vector(0, tensors...)
}

// norm is the weight of an RMS norm, made so that it multiplies as it is.
func (b *binder) norm(n int, name string) ops.Vector {
	add := float32(0)
	if b.config.NormOnePlus {
		add = 1
	}
	return b.vector(add, b.tensor(name, n))
}

func (b *binder) buffer(rows, cols int) ops.Buffer {
	return b.backend.Buffer(rows, cols)
}

// shared is an activation that all layers of one kind use in turn.
func (b *binder) shared(name string, cols int) ops.Buffer {
	if b.buffers == nil {
		b.buffers = map[string]ops.Buffer{}
	}
	buffer, ok := b.buffers[name]
	if !ok {
		buffer = b.buffer(b.backend.Rows(), cols)
		b.buffers[name] = buffer
	}
	return buffer
}
