package model

import (
	"fmt"
	"runtime/debug"

	"velo/engine/ops"
	"velo/engine/weights"
)

// draft is the multi-token prediction head: from the trunk's normed hidden of
// a token and the token that followed, it predicts the one after that:
// fc·[norm(embedding) ‖ norm(hidden)], a block of softmax attention with keys
// and values of its own, a norm, the trunk's head. It is chained by feeding it
// the normed hidden it gave.
type draft struct {
	embedNorm, hiddenNorm ops.Vector
	fc                    ops.Matrix
	block                 *block
	norm                  ops.Vector

	input            ops.Buffer // [rows, 2·Hidden]
	embedded, before ops.Tensor // its halves
	token            ops.Tensor // [rows, Hidden]
	hidden, normed   ops.Tensor

	batch ops.Batch
	from  []int32 // rows the hidden is taken from
	last  []int32 // the last row of each sequence
	of    *Step   // what the hidden at hand belongs to
}

// draft binds the head, nil if the model has none.
func (b *binder) draft() *draft {
	if b.config.MTPLayers == 0 {
		return nil
	}
	if b.config.MTPLayers > 1 {
		b.fail("cannot build the model: it has %d prediction layers and one is supported", b.config.MTPLayers)
		return nil
	}
	n := b.config.Hidden
	d := &draft{
		embedNorm:  b.norm(n, "mtp.pre_fc_norm_embedding.weight"),
		hiddenNorm: b.norm(n, "mtp.pre_fc_norm_hidden.weight"),
		fc:         b.stack(2*n, linear{"mtp.fc", n}),
		block:      b.newBlock("mtp.layers.0", 0),
		norm:       b.norm(n, "mtp.norm.weight"),
	}
	d.input = b.shared("draft input", 2*n)
	d.embedded, d.before = ops.Part(d.input, 0, n, 1), ops.Part(d.input, n, n, 1)
	d.token = ops.All(b.shared("draft token", n))
	d.hidden = ops.All(b.shared("draft hidden", n))
	d.normed = ops.All(b.shared("draft normed", n))
	return d
}

// HasDraft tells whether the model has a multi-token prediction head.
func (m *Model) HasDraft() bool { return m.draft != nil }

// Draft runs the prediction head on the rows of the step just run. next[i] are
// the tokens that followed the first rows of sequence i; they may be fewer
// than the sequence's rows when the others were refused. The result is the
// logits of what comes after the last of them, [sequences, Vocab].
func (m *Model) Draft(s *Step, next [][]int32) (logits []float32, err error) {
	defer ops.Recover(&err)
	defer weights.Recover(debug.SetPanicOnFault(true), &err)
	d := m.draft
	switch {
	case d == nil:
		return nil, fmt.Errorf("cannot draft: the model has no prediction head")
	case m.ran != s:
		return nil, fmt.Errorf("cannot draft: the step is not the last one that was run")
	case len(next) != len(s.sequences):
		return nil, fmt.Errorf("cannot draft: tokens of %d sequences were given and the step has %d", len(next), len(s.sequences))
	case len(next) > m.outputs:
		return nil, fmt.Errorf("cannot draft for %d sequences: a step has at most %d outputs", len(next), m.outputs)
	}
	for i, tokens := range next {
		if len(tokens) == 0 || len(tokens) > s.rows[i] {
			return nil, fmt.Errorf("cannot draft: %d tokens were given for %d rows of sequence %d", len(tokens), s.rows[i], i+1)
		}
		if err := m.known(tokens); err != nil {
			return nil, fmt.Errorf("cannot draft: %w", err)
		}
	}
	d.reset()
	for i, tokens := range next {
		source := s.batch.Segments[i]
		if past := source.Past + len(tokens); past > s.sequences[i].Len() {
			return nil, fmt.Errorf("cannot draft: sequence %d went back to %d tokens", i+1, s.sequences[i].Len())
		}
		segment := s.sequences[i].Segment(len(d.batch.Tokens), len(tokens))
		segment.Past = source.Past
		for j := range tokens {
			d.batch.Positions = append(d.batch.Positions, int32(source.Past+j))
			d.from = append(d.from, int32(source.Row+j))
		}
		d.batch.Tokens = append(d.batch.Tokens, tokens...)
		d.batch.Segments = append(d.batch.Segments, segment)
		d.last = append(d.last, int32(len(d.batch.Tokens)-1))
	}
	d.of = s
	return m.runDraft(ops.All(m.normed)), nil
}

// DraftNext predicts one token further from next, one token a sequence, which
// the last Draft or DraftNext gave.
func (m *Model) DraftNext(next []int32) (logits []float32, err error) {
	defer ops.Recover(&err)
	defer weights.Recover(debug.SetPanicOnFault(true), &err)
	d := m.draft
	if d == nil || d.of == nil || d.of != m.ran {
		return nil, fmt.Errorf("cannot draft further: no draft was begun since the last step")
	}
	if len(next) != len(d.last) {
		return nil, fmt.Errorf("cannot draft further: %d tokens were given for %d sequences", len(next), len(d.last))
	}
	if err := m.known(next); err != nil {
		return nil, fmt.Errorf("cannot draft further: %w", err)
	}
	last := d.last
	for i, sequence := range d.of.sequences {
		past := int(d.batch.Positions[last[i]]) + 1
		if err := sequence.Reserve(max(0, past+1-sequence.Len())); err != nil {
			return nil, fmt.Errorf("cannot draft further: %w", err)
		}
	}
	// The hidden of each sequence's last row moves to the front.
	d.from = append(d.from[:0], last...)
	for i, sequence := range d.of.sequences {
		past := int(d.batch.Positions[last[i]]) + 1
		segment := sequence.Segment(i, 1)
		segment.Past = past
		d.batch.Segments[i] = segment
	}
	d.batch.Positions = d.batch.Positions[:0]
	for i := range next {
		d.batch.Positions = append(d.batch.Positions, int32(d.batch.Segments[i].Past))
		d.last[i] = int32(i)
	}
	d.batch.Tokens = append(d.batch.Tokens[:0], next...)
	return m.runDraft(d.normed), nil
}

func (d *draft) reset() {
	b := &d.batch
	b.Tokens, b.Positions, b.Segments = b.Tokens[:0], b.Positions[:0], b.Segments[:0]
	d.from, d.last, d.of = d.from[:0], d.last[:0], nil
}

// runDraft computes the head for d.batch; x has the hidden of the rows d.from.
func (m *Model) runDraft(x ops.Tensor) []float32 {
	d, b, eps := m.draft, m.backend, float32(m.Config.RMSEps)
	b.Begin(&d.batch)
	b.Gather(d.hidden, x, d.from)
	b.Norm(d.before, d.hidden, d.hiddenNorm, eps)
	b.Embed(d.token, m.embed)
	b.Norm(d.embedded, d.token, d.embedNorm, eps)
	b.Linear(d.hidden, ops.All(d.input), d.fc, nil)
	d.block.forward(b, m.cache, d.hidden)
	b.Norm(d.normed, d.hidden, d.norm, eps)
	return m.project(d.normed, d.last)
}

// known checks that tokens are in the vocabulary.
func (m *Model) known(tokens []int32) error {
	for i, id := range tokens {
		if id < 0 || int(id) >= m.Config.Vocab {
			return fmt.Errorf("token %d of %d: id %d is not in the vocabulary of %d", i+1, len(tokens), id, m.Config.Vocab)
		}
	}
	return nil
}
