package model

import (
	"fmt"

	"velo/engine/kv"
	"velo/engine/ops"
)

// Step is what one step computes. It can be used again after Reset, without
// allocating.
type Step struct {
	model     *Model
	batch     ops.Batch
	sequences []*kv.Sequence
	rows      []int // of each sequence
}

// NewStep makes an empty step.
func (m *Model) NewStep() *Step { return &Step{model: m} }

// Reset empties the step.
func (s *Step) Reset() {
	b := &s.batch
	b.Tokens, b.Positions, b.Segments, b.Outputs = b.Tokens[:0], b.Positions[:0], b.Segments[:0], b.Outputs[:0]
	s.sequences, s.rows = s.sequences[:0], s.rows[:0]
}

// Rows is how many rows were added.
func (s *Step) Rows() int { return len(s.batch.Tokens) }

// Add adds the next tokens of a sequence and asks for the logits after the
// last outputs of them. A sequence may be added once a step. It makes room in
// the sequence; the error is kv.ErrFull if there is none, and says what is
// wrong with the request otherwise, and the step is then unchanged.
func (s *Step) Add(sequence *kv.Sequence, tokens []int32, outputs int) error {
	m, b := s.model, &s.batch
	row, n := len(b.Tokens), len(tokens)
	switch {
	case n == 0:
		return fmt.Errorf("cannot add a sequence to a step: no tokens were given")
	case row+n > m.rows:
		return fmt.Errorf("cannot add %d tokens to a step: it has %d of %d rows already", n, row, m.rows)
	case outputs < 0 || outputs > n:
		return fmt.Errorf("cannot give logits after %d of %d tokens", outputs, n)
	case len(b.Outputs)+outputs > m.outputs:
		return fmt.Errorf("cannot give logits after %d more tokens: a step has at most %d outputs", outputs, m.outputs)
	}
	if err := m.known(tokens); err != nil {
		return fmt.Errorf("cannot add a sequence to a step: %w", err)
	}
	for _, other := range s.sequences {
		if other == sequence {
			return fmt.Errorf("cannot add a sequence to a step twice")
		}
	}
	if err := sequence.Reserve(n); err != nil {
		return err
	}
	b.Tokens = append(b.Tokens, tokens...)
	for i := range n {
		b.Positions = append(b.Positions, int32(sequence.Len()+i))
	}
	b.Segments = append(b.Segments, sequence.Segment(row, n))
	for i := n - outputs; i < n; i++ {
		b.Outputs = append(b.Outputs, int32(row+i))
	}
	s.sequences = append(s.sequences, sequence)
	s.rows = append(s.rows, n)
	return nil
}

// check makes sure that sequences have not moved since they were added.
func (m *Model) check(s *Step) error {
	if s.model != m {
		return fmt.Errorf("cannot run a step of another model")
	}
	if len(s.rows) == 0 {
		return fmt.Errorf("cannot run an empty step")
	}
	for i, sequence := range s.sequences {
		if sequence.Len() != s.batch.Segments[i].Past {
			return fmt.Errorf("cannot run a step: sequence %d has moved from %d to %d tokens since it was added",
				i+1, s.batch.Segments[i].Past, sequence.Len())
		}
	}
	return nil
}
