package model

import (
	"fmt"

	"velo/engine/kv"
	"velo/engine/ops"
	"velo/engine/sample"
)

// Step is what one step computes. It can be used again after Reset, without
// allocating.
type Step struct {
	model     *Model
	batch     ops.Batch
	sequences []*kv.Sequence
	rows      []int // of each sequence

	picks   []sample.Pick   // choices asked for
	from    []int32         // which output each is of
	chosen  []sample.Result // what came of them
	read    []int32         // outputs whose logits come to the host
	refused []bool          // outputs whose logits do not
}

// NewStep makes an empty step.
func (m *Model) NewStep() *Step { return &Step{model: m} }

// Reset empties the step.
func (s *Step) Reset() {
	b := &s.batch
	b.Tokens, b.Positions, b.Segments, b.Outputs = b.Tokens[:0], b.Positions[:0], b.Segments[:0], b.Outputs[:0]
	s.sequences, s.rows = s.sequences[:0], s.rows[:0]
	s.picks, s.from, s.chosen, s.refused = s.picks[:0], s.from[:0], s.chosen[:0], s.refused[:0]
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

// Outputs is how many logits were asked for.
func (s *Step) Outputs() int { return len(s.batch.Outputs) }

// Chooses tells whether the backend can choose tokens, so that Step.Pick is worth
// asking.
func (m *Model) Chooses() bool { return m.sampler != nil }

// Pick asks for the choice of the token that follows output number output,
// counted in the order of Add, to be made where the logits are. It is false if
// the backend cannot make it: its logits then come to the host, as those of
// every output without a pick, and of this one if logits is set. What p refers
// to must stay until Run.
func (s *Step) Pick(output int, p sample.Pick, logits bool) bool {
	sampler := s.model.sampler
	if sampler == nil || output < 0 || output >= len(s.batch.Outputs) {
		return false
	}
	n := len(s.picks)
	s.picks = append(s.picks, p)
	if !sampler.Samples(&s.picks[n], s.model.Config.Vocab, n+1) {
		s.picks = s.picks[:n]
		return false
	}
	s.from = append(s.from, int32(output))
	for len(s.refused) < len(s.batch.Outputs) {
		s.refused = append(s.refused, false)
	}
	s.refused[output] = !logits
	return true
}

// Choices is what was chosen for each pick, in their order, Token −1 where no
// token can follow. It is valid until the next Run.
func (s *Step) Choices() []sample.Result { return s.chosen }

// outputs lists the outputs whose logits come to the host.
func (s *Step) outputs() []int32 {
	s.read = s.read[:0]
	for i := range s.batch.Outputs {
		if i >= len(s.refused) || !s.refused[i] {
			s.read = append(s.read, int32(i))
		}
	}
	return s.read
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
