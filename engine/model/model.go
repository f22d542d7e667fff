// Package model is the architectures, written once over engine/ops.
//
// A [Model] binds the tensors of a loaded model to a backend and runs steps.
// A [Step] is what one step computes: for each sequence in it some next
// tokens, and for which of them logits are wanted. Prefill, decode and the
// check of a draft are steps with other numbers of rows; sequences may be
// mixed freely, and the result of a row does not depend on its company.
//
//	step := m.NewStep()
//	step.Add(sequence, prompt, 1)
//	logits, err := m.Run(step) // [1, Vocab]: what follows the prompt
//
// The package is under the Apache License 2.0, see engine/LICENSE.
package model

import (
	"fmt"
	"runtime/debug"
	"slices"

	"velo/engine/kv"
	"velo/engine/ops"
	"velo/engine/weights"
)

// Source is where tensors come from; *weights.Model is one.
type Source interface {
	Tensor(name string) (*weights.Tensor, bool)
}

// Options size a model's memory.
type Options struct {
	Tokens    int // tokens remembered in all sequences together
	Context   int // most tokens of a sequence, 0 for as many as there are
	Sequences int // sequences and snapshots at a time, of a hybrid model
	Outputs   int // most rows of a step whose logits are wanted, 16 if 0
}

// Model computes.
type Model struct {
	Config  weights.Config
	backend ops.Backend
	sampler ops.Sampler // the backend, if it can choose tokens
	pool    *kv.Pool
	cache   ops.Cache
	outputs int

	embed  ops.Matrix
	norm   ops.Vector
	head   ops.Matrix
	rope   *ops.Rope
	layers []layer
	draft  *draft
	ran    *Step // the last step that was run

	hidden, normed   ops.Buffer // [rows, Hidden]
	selected, logits ops.Buffer // [outputs, Hidden], [outputs, Vocab]
	rows             int
}

// layer is one block of an architecture: it adds to hidden, which every row
// of the batch has one of.
type layer interface {
	forward(b ops.Backend, c ops.Cache, hidden ops.Tensor)
}

// New binds the tensors of source to a backend. The error names what is
// missing or has the wrong shape.
func New(config *weights.Config, source Source, backend ops.Backend, o Options) (_ *Model, err error) {
	defer ops.Recover(&err)
	defer weights.Recover(debug.SetPanicOnFault(true), &err)
	if o.Outputs <= 0 {
		o.Outputs = 16
	}
	o.Outputs = min(o.Outputs, backend.Rows())
	m := &Model{Config: *config, backend: backend, outputs: o.Outputs, rows: backend.Rows()}
	m.sampler, _ = backend.(ops.Sampler)
	b := &binder{config: &m.Config, source: source, backend: backend}
	m.rope = rope(&m.Config)
	b.rope = m.rope
	m.hidden = b.buffer(m.rows, m.Config.Hidden)
	m.normed = b.buffer(m.rows, m.Config.Hidden)
	m.embed = b.matrix(m.Config.Vocab, "model.embed_tokens.weight")
	if m.Config.TieEmbeddings {
		m.head = m.embed
	} else {
		m.head = b.matrix(m.Config.Vocab, "lm_head.weight")
	}
	m.norm = b.norm(m.Config.Hidden, "model.norm.weight")
	switch m.Config.Architecture {
	case weights.Llama, weights.Qwen2, weights.Qwen3:
		m.layers = b.llama()
	case weights.Qwen35:
		m.layers = b.qwen35()
		m.draft = b.draft()
	default:
		return nil, fmt.Errorf("cannot compute architecture %q: known are %s, %s, %s and %s",
			m.Config.Architecture, weights.Llama, weights.Qwen2, weights.Qwen3, weights.Qwen35)
	}
	if b.err != nil {
		return nil, b.err
	}
	m.selected = b.buffer(o.Outputs, m.Config.Hidden)
	m.logits = b.buffer(o.Outputs, m.Config.Vocab)
	if m.sampler != nil {
		if err := m.sampler.SampleFrom(m.logits); err != nil {
			return nil, fmt.Errorf("cannot make room for the choice of tokens: %w", err)
		}
	}
	// Every sequence may leave its last page partly empty.
	pages := (o.Tokens+ops.PageTokens-1)/ops.PageTokens + o.Sequences
	shape := Shape(&m.Config)
	shape.Longest = o.Context
	if m.cache, err = backend.Cache(shape, pages, o.Sequences); err != nil {
		return nil, fmt.Errorf("cannot make room for %d tokens in %d sequences: %w", o.Tokens, o.Sequences, err)
	}
	m.pool = kv.NewPool(m.cache, pages, o.Sequences)
	return m, nil
}

// Pool hands out the sequences that steps are made of.
func (m *Model) Pool() *kv.Pool { return m.pool }

// Rows is the most rows of a step.
func (m *Model) Rows() int { return m.rows }

// Doing tells, from any goroutine, what the device was given last, and whether the host makes something
// that is made once ([ops.Watched]); nothing of a backend that does not tell.
func (m *Model) Doing() (last string, preparing bool) {
	if w, ok := m.backend.(ops.Watched); ok {
		return w.Doing()
	}
	return "", false
}

// Outputs is the most rows of a step whose logits are wanted.
func (m *Model) Outputs() int { return m.outputs }

// Run computes a step and moves its sequences on. The result is the logits of
// the rows that were asked for, in order, row-major [outputs, Vocab], without
// those whose token was chosen where they are (see Step.Pick); it is valid until the next Run or draft. On an error nothing has changed but
// memory reserved for the sequences; if it is an *ops.Fault, the device failed
// and what it holds is lost, and if it is a *weights.Fault, weights that lie in a mapped file are.
func (m *Model) Run(s *Step) (result []float32, err error) {
	defer ops.Recover(&err)
	defer weights.Recover(debug.SetPanicOnFault(true), &err)
	if err := m.check(s); err != nil {
		return nil, err
	}
	m.ran = s
	b := m.backend
	b.Begin(&s.batch)
	hidden, normed := ops.All(m.hidden), ops.All(m.normed)
	b.Embed(hidden, m.embed)
	for _, l := range m.layers {
		l.forward(b, m.cache, hidden)
	}
	b.Norm(normed, hidden, m.norm, float32(m.Config.RMSEps))
	var logits []float32
	if len(s.picks) == 0 {
		logits = m.project(normed, s.batch.Outputs)
	} else {
		logits = m.choose(normed, s)
	}
	for i, n := range s.rows {
		s.sequences[i].Advance(n)
	}
	return logits, nil
}

// choose makes the choices of a step and gives the logits of its other outputs.
func (m *Model) choose(x ops.Tensor, s *Step) (logits []float32) {
	n := len(s.batch.Outputs)
	selected := ops.All(m.selected)
	m.backend.Gather(selected, x, s.batch.Outputs)
	m.backend.LinearRows(ops.All(m.logits), selected, m.head, n)
	m.sampler.Sample(m.logits, s.from, s.picks)
	if read := s.outputs(); len(read) > 0 {
		logits = m.sampler.ReadRows(m.logits, read)
	}
	s.chosen = slices.Grow(s.chosen[:0], len(s.picks))[:len(s.picks)]
	m.sampler.Choices(s.chosen)
	return logits
}

// project gives the logits of rows of x, already normed.
func (m *Model) project(x ops.Tensor, rows []int32) []float32 {
	if len(rows) == 0 {
		m.backend.Read(m.logits, 0) // the batch may change from now on
		return nil
	}
	selected := ops.All(m.selected)
	m.backend.Gather(selected, x, rows)
	m.backend.LinearRows(ops.All(m.logits), selected, m.head, len(rows))
	return m.backend.Read(m.logits, len(rows))
}
