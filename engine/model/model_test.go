package model

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"velo/engine/cpu"
	"velo/engine/enginetest"
	"velo/engine/kv"
	"velo/engine/weights"
)

// families are small configurations of every kind of layer.
func families() map[string]*weights.Config {
	base := weights.Config{Layers: 2, Hidden: 32, Heads: 4, KVHeads: 2, HeadDim: 16, Intermediate: 64, Vocab: 50,
		MaxPosition: 256, RopeTheta: 10000, PartialRotary: 1, RMSEps: 1e-6}
	llama, qwen2, qwen3, hybrid := base, base, base, base
	llama.Architecture, llama.TieEmbeddings = weights.Llama, true
	qwen2.Architecture, qwen2.AttentionBias = weights.Qwen2, true
	qwen2.LayerTypes, qwen2.SlidingWindow = []string{weights.FullAttention, weights.SlidingAttention}, 5
	qwen3.Architecture, qwen3.QKNorm = weights.Qwen3, true
	hybrid.Architecture, hybrid.QKNorm, hybrid.AttentionGate, hybrid.NormOnePlus = weights.Qwen35, true, true, true
	hybrid.PartialRotary, hybrid.MTPLayers = 0.25, 1
	hybrid.LayerTypes = []string{weights.LinearAttention, weights.FullAttention}
	hybrid.LinearKeyHeads, hybrid.LinearValueHeads, hybrid.LinearKeyDim, hybrid.LinearValueDim, hybrid.ConvKernel = 2, 4, 8, 8, 4
	return map[string]*weights.Config{"llama": &llama, "qwen2": &qwen2, "qwen3": &qwen3, "qwen35": &hybrid}
}

func small(t testing.TB, c *weights.Config, o Options) *Model {
	t.Helper()
	b := cpu.New(cpu.Options{Rows: 64, Workers: 2})
	t.Cleanup(b.Close)
	if o.Tokens == 0 {
		o = Options{Tokens: 600, Sequences: 8, Outputs: 64}
	}
	m, err := New(c, enginetest.TensorsOf(c), b, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func sequence(t testing.TB, m *Model) *kv.Sequence {
	t.Helper()
	s, err := m.Pool().NewSequence()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// feed runs tokens in one step and gives the logits after each of them.
func feed(t testing.TB, m *Model, s *kv.Sequence, tokens []int32) [][]float32 {
	t.Helper()
	step := m.NewStep()
	if err := step.Add(s, tokens, len(tokens)); err != nil {
		t.Fatal(err)
	}
	return run(t, m, step)
}

func run(t testing.TB, m *Model, step *Step) [][]float32 {
	t.Helper()
	logits, err := m.Run(step)
	if err != nil {
		t.Fatal(err)
	}
	return split(m, logits)
}

func split(m *Model, logits []float32) (rows [][]float32) {
	for row := range slices.Chunk(logits, m.Config.Vocab) {
		rows = append(rows, slices.Clone(row))
	}
	return rows
}

func text(seed uint64, n int) []int32 {
	r := rand.New(rand.NewPCG(seed, 2))
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(r.IntN(50))
	}
	return tokens
}

// same fails unless two lists of logits are the same bits, and none is odd.
func same(t testing.TB, what string, got, want [][]float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows of logits instead of %d", what, len(got), len(want))
	}
	for i := range want {
		for j, v := range want[i] {
			if got[i][j] != v || math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				t.Fatalf("%s: logit %d of row %d is %v instead of %v", what, j, i, got[i][j], v)
			}
		}
	}
}

// TestPrefill: a text in steps of any size gives the same bits as token by token.
func TestPrefill(t *testing.T) {
	for name, c := range families() {
		t.Run(name, func(t *testing.T) {
			m := small(t, c, Options{})
			tokens := text(1, 45)
			s := sequence(t, m)
			var want [][]float32
			for i := range tokens {
				want = append(want, feed(t, m, s, tokens[i:i+1])...)
			}
			s.Free()
			rapid.Check(t, func(r *rapid.T) {
				s := sequence(t, m)
				defer s.Free()
				var got [][]float32
				for left := tokens; len(left) > 0; {
					n := rapid.IntRange(1, len(left)).Draw(r, "rows")
					got = append(got, feed(t, m, s, left[:n])...)
					left = left[n:]
				}
				same(t, "prefill", got, want)
			})
			if slices.Equal(want[0], want[1]) {
				t.Error("two tokens have the same logits")
			}
		})
	}
}

// TestBatch: sequences in one step give the same bits as alone.
func TestBatch(t *testing.T) {
	for name, c := range families() {
		t.Run(name, func(t *testing.T) {
			m := small(t, c, Options{})
			lengths := []int{1, 17, 5, 2, 30}
			var want [][]float32
			for i, n := range lengths {
				s := sequence(t, m)
				feed(t, m, s, text(uint64(i), n))
				want = append(want, feed(t, m, s, text(uint64(10+i), i+1))...)
				s.Free()
			}
			first, second := m.NewStep(), m.NewStep()
			var all []*kv.Sequence
			for i, n := range lengths {
				s := sequence(t, m)
				all = append(all, s)
				if err := first.Add(s, text(uint64(i), n), 0); err != nil {
					t.Fatal(err)
				}
			}
			run(t, m, first)
			for i, s := range all {
				if err := second.Add(s, text(uint64(10+i), i+1), i+1); err != nil {
					t.Fatal(err)
				}
			}
			same(t, "batch", run(t, m, second), want)
		})
	}
}

// TestSnapshot: a sequence restored or taken back goes on as if it had never
// left, also when the one it was taken of went elsewhere.
func TestSnapshot(t *testing.T) {
	for name, c := range families() {
		t.Run(name, func(t *testing.T) {
			m := small(t, c, Options{})
			start, other, rest := text(1, 21), text(2, 30), text(3, 14)
			s := sequence(t, m)
			feed(t, m, s, start)
			want := feed(t, m, s, rest)
			s.Free()

			s = sequence(t, m)
			feed(t, m, s, start)
			shot, err := s.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			feed(t, m, s, other)
			back, err := shot.Restore()
			if err != nil {
				t.Fatal(err)
			}
			same(t, "restored", feed(t, m, back, rest), want)
			s.Rewind(shot)
			same(t, "taken back", feed(t, m, s, rest), want)
			s.Rewind(shot)
			shot.Free()
			same(t, "taken back, snapshot gone", feed(t, m, s, rest), want)
			s.Free()
			back.Free()
			if n := m.Pool().FreePages(); n != (600+15)/16+8 {
				t.Errorf("%d pages are free after everything was freed", n)
			}
		})
	}
}

// TestDraft: the prediction head gives the same bits in one go and in parts,
// chains, and leaves the trunk alone.
func TestDraft(t *testing.T) {
	m := small(t, families()["qwen35"], Options{})
	tokens := text(4, 20)
	run20 := func(cut int) (last [][]float32) {
		s := sequence(t, m)
		defer s.Free()
		for _, part := range [][2]int{{0, cut}, {cut, 19}} {
			if part[0] == part[1] {
				continue
			}
			step := m.NewStep()
			if err := step.Add(s, tokens[part[0]:part[1]], 1); err != nil {
				t.Fatal(err)
			}
			run(t, m, step)
			logits, err := m.Draft(step, [][]int32{tokens[part[0]+1 : part[1]+1]})
			if err != nil {
				t.Fatal(err)
			}
			last = split(m, logits)
		}
		for range 3 {
			logits, err := m.DraftNext([]int32{7})
			if err != nil {
				t.Fatal(err)
			}
			last = append(last, split(m, logits)...)
		}
		return append(last, feed(t, m, s, tokens[19:])...)
	}
	want := run20(0)
	same(t, "draft", run20(7), want)
	s := sequence(t, m)
	feed(t, m, s, tokens[:19])
	same(t, "trunk after a draft", want[4:], feed(t, m, s, tokens[19:]))
	if _, err := m.DraftNext([]int32{1}); err == nil {
		t.Error("a draft goes on after another step")
	}
	if _, err := small(t, families()["llama"], Options{}).Draft(m.NewStep(), nil); err == nil {
		t.Error("a model without the head drafts")
	}
}

func TestBadSteps(t *testing.T) {
	m := small(t, families()["llama"], Options{Tokens: 32, Sequences: 1, Outputs: 4})
	s := sequence(t, m)
	step := m.NewStep()
	for what, err := range map[string]error{
		"no tokens":        step.Add(s, nil, 0),
		"unknown token":    step.Add(s, []int32{50}, 0),
		"negative token":   step.Add(s, []int32{-1}, 0),
		"many outputs":     step.Add(s, text(1, 9), 5),
		"more than tokens": step.Add(s, text(1, 1), 2),
		"many rows":        step.Add(s, text(1, 65), 0),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if err := step.Add(s, text(1, 49), 0); !errors.Is(err, kv.ErrFull) {
		t.Errorf("a text longer than the cache: %v", err)
	}
	if _, err := m.Run(step); err == nil {
		t.Error("an empty step runs")
	}
	if err := step.Add(s, text(1, 3), 1); err != nil {
		t.Fatal(err)
	}
	if step.Add(s, text(1, 3), 1) == nil {
		t.Error("a sequence may be added twice")
	}
	run(t, m, step)
	if _, err := m.Run(step); err == nil {
		t.Error("a step runs twice")
	}
	c := *families()["llama"]
	c.Hidden = 48
	if _, err := New(&c, enginetest.TensorsOf(families()["llama"]), m.backend, Options{Tokens: 16, Sequences: 1}); err == nil {
		t.Error("tensors of another shape are taken")
	}
	c.Architecture = "mamba"
	if _, err := New(&c, enginetest.TensorsOf(&c), m.backend, Options{}); err == nil {
		t.Error("an unknown architecture is taken")
	}
}

// TestNoAllocation: a step allocates nothing once everything has its size.
func TestNoAllocation(t *testing.T) {
	for name, c := range families() {
		m := small(t, c, Options{})
		a, b := sequence(t, m), sequence(t, m)
		feed(t, m, a, text(1, 40))
		feed(t, m, b, text(2, 3))
		step, one := m.NewStep(), []int32{5}
		decode := func() {
			step.Reset()
			if err := errors.Join(step.Add(a, one, 1), step.Add(b, one, 1)); err != nil {
				t.Fatal(err)
			}
			if _, err := m.Run(step); err != nil {
				t.Fatal(err)
			}
		}
		decode()
		if n := testing.AllocsPerRun(10, decode); n >= 1 {
			t.Errorf("%s: a decode step allocates %v times", name, n)
		}
	}
}
