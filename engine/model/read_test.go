package model_test

import (
	"testing"

	"velo/engine/cpu"
	"velo/engine/enginetest"
	"velo/engine/model"
	"velo/engine/ops"
	"velo/engine/weights"
)

// deferred is a backend that computes when results are read, which it may: until then the batch must
// not change.
type deferred struct {
	*cpu.Backend
	pending bool
}

func (d *deferred) Begin(b *ops.Batch) {
	d.pending = true
	d.Backend.Begin(b)
}

func (d *deferred) Read(x ops.Buffer, rows int) []float32 {
	d.pending = false
	return d.Backend.Read(x, rows)
}

// TestRunReads: a step is computed when Run returns, also one whose logits nobody wants.
func TestRunReads(t *testing.T) {
	w, err := weights.Open(enginetest.Folder(t, enginetest.Hybrid))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	b := cpu.New(cpu.Options{Rows: 16, Workers: 1})
	defer b.Close()
	d := &deferred{Backend: b}
	m, err := model.New(&w.Config, w, d, model.Options{Tokens: 64, Sequences: 2, Outputs: 2})
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Pool().NewSequence()
	if err != nil {
		t.Fatal(err)
	}
	step := m.NewStep()
	for _, outputs := range []int{0, 1, 0} {
		step.Reset()
		if err := step.Add(s, []int32{1, 2, 3}, outputs); err != nil {
			t.Fatal(err)
		}
		logits, err := m.Run(step)
		if err != nil || len(logits) != outputs*w.Config.Vocab {
			t.Fatalf("%d logits, %v", len(logits), err)
		}
		if d.pending {
			t.Errorf("a step with %d outputs is not computed when Run returns", outputs)
		}
	}
}
