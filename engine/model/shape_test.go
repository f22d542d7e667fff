package model

import (
	"testing"

	"velo/engine/cpu"
	"velo/engine/enginetest"
	"velo/engine/ops"
)

// recorder is a processor that remembers what a model asked it for.
type recorder struct {
	*cpu.Backend
	bytes int64
	shape ops.CacheShape
}

func (r *recorder) Buffer(rows, cols int) ops.Buffer {
	r.bytes += 4 * int64(rows) * int64(cols)
	return r.Backend.Buffer(rows, cols)
}

func (r *recorder) Cache(shape ops.CacheShape, pages, states int) (ops.Cache, error) {
	r.shape = shape
	return r.Backend.Cache(shape, pages, states)
}

// TestShape: what is reckoned from a configuration is what the model asks its backend for, and
// layers count themselves to the same numbers.
func TestShape(t *testing.T) {
	for family, c := range families() {
		for _, size := range []struct{ rows, outputs int }{{40, 16}, {8, 3}} {
			r := &recorder{Backend: cpu.New(cpu.Options{Rows: size.rows, Workers: 1})}
			defer r.Close()
			m, err := New(c, enginetest.TensorsOf(c), r, Options{Tokens: 64, Sequences: 2, Outputs: size.outputs})
			if err != nil {
				t.Fatal(err)
			}
			row, output := Activations(c)
			if want := int64(size.rows)*row + int64(size.outputs)*output; r.bytes != want {
				t.Errorf("%s, %+v: buffers of %d bytes were made, %d are reckoned", family, size, r.bytes, want)
			}
			if want := Shape(c); r.shape != want || m.Pool().Shape() != want {
				t.Errorf("%s: a cache of %+v was made, reckoned is %+v", family, r.shape, want)
			}
			attention, recurrent := 0, 0
			for _, l := range m.layers {
				if _, ok := l.(*deltaBlock); ok {
					recurrent++
				} else {
					attention++
				}
			}
			if m.HasDraft() {
				attention++
			}
			if want := Shape(c); attention != want.Attention || recurrent != want.Recurrent {
				t.Errorf("%s: %d layers attend and %d recur, reckoned are %+v", family, attention, recurrent, want)
			}
		}
	}
}

// TestShapeByHand: a hybrid model's page and state, worked out by hand.
func TestShapeByHand(t *testing.T) {
	s := Shape(families()["qwen35"])
	// One attention layer and the prediction head's; keys and values of 16 tokens, 2 heads of 16 each.
	if want := int64(2 * 2 * 16 * 2 * 16 * 4); s.PageBytes() != want {
		t.Errorf("a page takes %d bytes, want %d", s.PageBytes(), want)
	}
	// One recurrent layer: 3 inputs of 2·16 + 32 channels, 4 heads of 8 × 8.
	if want := int64((3*64 + 4*8*8) * 4); s.StateBytes() != want {
		t.Errorf("a state takes %d bytes, want %d", s.StateBytes(), want)
	}
}
