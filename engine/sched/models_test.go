package sched

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"velo/engine/cpu"
	"velo/engine/enginetest"
	"velo/engine/kv"
	"velo/engine/model"
	"velo/engine/ops"
	"velo/engine/sample"
	"velo/engine/weights"
)

// families are a small model of attention alone and one of the hybrid kind.
func families(vocab int) map[string]*weights.Config {
	plain := weights.Config{Architecture: weights.Qwen3, QKNorm: true, Layers: 2, Hidden: 16, Heads: 2, KVHeads: 1, HeadDim: 8,
		Intermediate: 16, Vocab: vocab, MaxPosition: 4096, RopeTheta: 10000, PartialRotary: 1, RMSEps: 1e-6}
	hybrid := plain
	hybrid.Architecture, hybrid.AttentionGate, hybrid.NormOnePlus, hybrid.PartialRotary = weights.Qwen35, true, true, 0.5
	hybrid.LayerTypes = []string{weights.LinearAttention, weights.FullAttention}
	hybrid.LinearKeyHeads, hybrid.LinearValueHeads, hybrid.LinearKeyDim, hybrid.LinearValueDim, hybrid.ConvKernel = 1, 2, 8, 8, 4
	return map[string]*weights.Config{"plain": &plain, "hybrid": &hybrid}
}

const vocab = 50

// size of the test models.
type size struct{ vocab, rows, tokens, sequences int }

func newModel(t testing.TB, family string, z size) *model.Model {
	t.Helper()
	if z.vocab == 0 {
		z.vocab = vocab
	}
	if z.rows == 0 {
		z.rows = 64
	}
	c := families(z.vocab)[family]
	b := cpu.New(cpu.Options{Rows: z.rows, Workers: 1})
	t.Cleanup(b.Close)
	var backend ops.Backend = b
	if onDevice {
		backend = &choosing{Backend: b}
	}
	m, err := model.New(c, enginetest.TensorsOf(c), backend, model.Options{Tokens: z.tokens, Sequences: z.sequences, Outputs: 16})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// text is random tokens.
func text(seed uint64, n int) []int32 {
	r := rand.New(rand.NewPCG(seed, 2))
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(r.IntN(vocab))
	}
	return tokens
}

// oracle answers requests one at a time with nothing but the model and the sampler.
type oracle struct {
	m       *model.Model
	sampler *sample.Sampler
	known   map[string][]int32
}

func newOracle(t testing.TB, family string) *oracle {
	return &oracle{newModel(t, family, size{tokens: 4096, sequences: 2, rows: 512}), sample.New(vocab), map[string][]int32{}}
}

// answer gives the tokens that a copy of a request must get.
func (o *oracle) answer(t testing.TB, r *Request, copy, context int) (tokens []int32) {
	t.Helper()
	key := fmt.Sprint(r.Prompt, r.Sampling, r.MaxTokens, r.MinTokens, r.End, r.IgnoreEOS, copy, context)
	if known, ok := o.known[key]; ok {
		return known
	}
	defer func() { o.known[key] = tokens }()
	seq, err := o.m.Pool().NewSequence()
	if err != nil {
		t.Fatal(err)
	}
	defer seq.Free()
	p := r.Sampling
	p.Seed += uint64(copy)
	chosen, err := sample.NewSequence(p, vocab, r.Prompt, 0)
	if err != nil {
		t.Fatal(err)
	}
	longest := context - len(r.Prompt)
	if r.MaxTokens > 0 {
		longest = min(longest, r.MaxTokens)
	}
	next, step := r.Prompt, o.m.NewStep()
	for len(tokens) < longest {
		step.Reset()
		if err := step.Add(seq, next, 1); err != nil {
			t.Fatal(err)
		}
		logits, err := o.m.Run(step)
		if err != nil {
			t.Fatal(err)
		}
		var mask sample.Mask
		if len(tokens) < r.MinTokens {
			mask = sample.NewMask(vocab)
			mask.AllowAll()
			for _, id := range r.End {
				mask.Ban(id)
			}
		}
		res, err := o.sampler.Sample(chosen, logits, mask, sample.NoLogProbs)
		if err != nil {
			t.Fatal(err)
		}
		chosen.Append(res.Token)
		tokens = append(tokens, res.Token)
		if slices.Contains(r.End, res.Token) && !r.IgnoreEOS {
			break
		}
		next = tokens[len(tokens)-1:]
	}
	return tokens
}

// serve runs a scheduler until the test ends.
func serve(t testing.TB, m *model.Model, o Options) *Scheduler {
	t.Helper()
	s := New(m, o)
	run(t, s)
	return s
}

// run starts the loop of a scheduler, which may have requests already.
func run(t testing.TB, s *Scheduler) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		whole(t, s.pool)
	})
}

// turns moves a scheduler without a loop on until it has nothing to do.
func turns(t testing.TB, s *Scheduler) {
	t.Helper()
	for range 10000 {
		worked, err := s.turn()
		if err != nil {
			t.Fatal(err)
		}
		if !worked {
			return
		}
	}
	t.Fatalf("10000 turns and no end: %+v", s.Status())
}

// whole fails unless everything is free.
func whole(t testing.TB, p *kv.Pool) {
	t.Helper()
	if p.FreePages() != p.Pages() || p.FreeStates() != p.States() || p.KeptPages() != 0 {
		t.Errorf("%d of %d pages and %d of %d states are free after everything ended", p.FreePages(), p.Pages(), p.FreeStates(), p.States())
	}
}

func submit(t testing.TB, s *Scheduler, r *Request) []*Stream {
	t.Helper()
	streams, err := s.Submit(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return streams
}

// read takes everything from a stream.
func read(s *Stream) (tokens []int32, r Result) {
	buf := make([]Token, 7)
	for more := true; more; {
		var n int
		n, more = s.Next(buf)
		for _, token := range buf[:n] {
			tokens = append(tokens, token.ID)
		}
	}
	return tokens, s.Result()
}

// within fails if something takes longer than anything here may.
func within(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s hangs", what)
	}
}

var errTest = errors.New("the test says so")
