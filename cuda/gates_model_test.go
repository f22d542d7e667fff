//go:build linux && cuda && cgo

package cuda

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"velo/engine/cpu"
	"velo/engine/kv"
	"velo/engine/model"
	"velo/engine/ops"
	"velo/engine/weights"
)

// gateTypes are the types of weights that have products of their own.
var gateTypes = []weights.Type{weights.F32, weights.BF16, weights.F16, weights.FP8Row, weights.NVFP4}

// sourceOf is a model as it is stored (F32), or with matrices of another type.
func sourceOf(w *weights.Model, kind weights.Type) model.Source {
	if kind == weights.F32 {
		return w
	}
	return typed{w, kind}
}

// roomy makes a model with room for 16 sequences and a snapshot of each.
func roomy(t testing.TB, w *weights.Model, source model.Source, b ops.Backend) *model.Model {
	t.Helper()
	m, err := model.New(&w.Config, source, b, model.Options{Tokens: 8000, Sequences: 40, Outputs: 16})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestGateRows: a row has the same bits in a step of 1 to 16 rows, of any sequences in any order, as
// launches and as a graph.
func TestGateRows(t *testing.T) {
	for _, name := range []string{"qwen2", "qwen3", "qwen3_5"} {
		for _, kind := range gateTypes {
			t.Run(name+"/"+kind.String(), func(t *testing.T) {
				seed := rand.Uint64()
				t.Log("seed", seed)
				r := rand.New(rand.NewPCG(seed, 0))
				w := openModel(t, name)
				b := newBackend(t, BackendOptions{})
				m := roomy(t, w, sourceOf(w, kind), b)
				var lanes []*kv.Sequence
				var shots []*kv.Snapshot
				var next []int32
				var want [][]float32
				for i := range MaxRows {
					s := sequence(t, m)
					prompt(t, m, s, words(m, r.Uint64(), 1+i*7))
					shot, err := s.Snapshot()
					if err != nil {
						t.Fatal(err)
					}
					token := words(m, r.Uint64(), 1)
					want = append(want, feed(t, m, s, token)...)
					lanes, shots, next = append(lanes, s), append(shots, shot), append(next, token[0])
				}
				step := m.NewStep()
				for n := 1; n <= MaxRows; n++ {
					for turn := range 3 { // the last one is a graph
						b.options.Eager = turn == 0
						step.Reset()
						var expected [][]float32
						for _, i := range r.Perm(MaxRows)[:n] {
							lanes[i].Rewind(shots[i])
							if err := step.Add(lanes[i], next[i:i+1], 1); err != nil {
								t.Fatal(err)
							}
							expected = append(expected, want[i])
						}
						sameBits(t, fmt.Sprintf("%d rows", n), logitsOf(t, m, step), expected)
					}
				}
			})
		}
	}
}

// TestGateGreedy: the likeliest text is the processor's, token by token, but for ties as docs/engine.md
// has them: both margins are below three times the root mean square difference at that position. That
// would explain anything if the differences were large, so that of the whole text is held to what
// roundings gives.
func TestGateGreedy(t *testing.T) {
	for _, name := range models {
		for _, kind := range gateTypes {
			t.Run(name+"/"+kind.String(), func(t *testing.T) {
				seed := rand.Uint64()
				w := openModel(t, name)
				source := sourceOf(w, kind)
				processor := cpu.New(cpu.Options{Workers: 4, Exact: true})
				defer processor.Close()
				a, b := bind(t, w, source, newBackend(t, BackendOptions{})), bind(t, w, source, processor)
				x, y := sequence(t, a), sequence(t, b)
				next := words(a, seed, 12)
				ties := 0
				var here, there [][]float32
				for range 120 {
					got, want := feed(t, a, x, next), feed(t, b, y, next)
					mine, theirs := got[len(got)-1:], want[len(want)-1:]
					here, there = append(here, mine[0]), append(there, theirs[0])
					_, rms, _ := apart(mine, theirs)
					i, j := largest(mine[0]), largest(theirs[0])
					if i != j {
						ties++
						a, b := float64(mine[0][i]-mine[0][j]), float64(theirs[0][j]-theirs[0][i])
						if !(max(a, b) < 3*rms) {
							t.Fatalf("seed %d, after %d tokens: %d here and %d on the processor, by %g and %g with a difference of %g", seed, y.Len(), i, j, a, b, rms)
						}
					}
					next = []int32{int32(j)}
				}
				_, rms, size := apart(here, there)
				t.Logf("seed %d: 120 tokens, %d ties, difference %.1e of the logits", seed, ties, rms/size)
				if most := roundings(t, &w.Config, source, words(a, seed, 120)); !(rms < most*size) {
					t.Errorf("logits differ by %.1e of their size, more than %.1e", rms/size, most)
				}
			})
		}
	}
}

func largest(v []float32) int {
	at := 0
	for i := range v {
		if v[i] > v[at] {
			at = i
		}
	}
	return at
}

// kept is a backend that remembers its cache.
type kept struct {
	*Backend
	last *cache
}

func (k *kept) Cache(shape ops.CacheShape, pages, states int) (ops.Cache, error) {
	c, err := k.Backend.Cache(shape, pages, states)
	if err == nil {
		k.last = c.(*cache)
	}
	return c, err
}

// stateOf is the bytes of a sequence's recurrent state.
func (k *kept) stateOf(t testing.TB, s *kv.Sequence) []byte {
	t.Helper()
	k.flush() // a step whose logits nobody wants is only noted
	n := k.last.states.SlotBytes()
	state := make([]byte, n)
	if err := Download(k.last.states.Slots.Part(int64(s.Segment(0, 1).State)*n, n), state); err != nil {
		t.Fatal(err)
	}
	return state
}

// TestGateRollback: a sequence taken back, or restored from a snapshot, has the very bytes of state
// that it had, and goes on with the same ones.
func TestGateRollback(t *testing.T) {
	for _, kind := range gateTypes {
		t.Run(kind.String(), func(t *testing.T) {
			seed := rand.Uint64()
			t.Log("seed", seed)
			r := rand.New(rand.NewPCG(seed, 0))
			w := openModel(t, "qwen3_5")
			k := &kept{Backend: newBackend(t, BackendOptions{})}
			m := roomy(t, w, sourceOf(w, kind), k)
			for range 8 {
				start, other := words(m, r.Uint64(), 1+r.IntN(90)), words(m, r.Uint64(), 1+r.IntN(40))
				rest := words(m, r.Uint64(), 1+r.IntN(MaxRows))
				s := sequence(t, m)
				prompt(t, m, s, start)
				before := k.stateOf(t, s)
				if bytes.Equal(before, make([]byte, len(before))) {
					t.Fatal("the state is empty")
				}
				want := feed(t, m, s, rest)
				after := k.stateOf(t, s)
				if bytes.Equal(before, after) {
					t.Fatal("the state does not move")
				}
				s.Free()

				s = sequence(t, m)
				prompt(t, m, s, start)
				shot, err := s.Snapshot()
				if err != nil {
					t.Fatal(err)
				}
				prompt(t, m, s, other)
				same := func(what string, s *kv.Sequence) {
					t.Helper()
					if !bytes.Equal(k.stateOf(t, s), before) {
						t.Fatalf("%s: the state has other bytes", what)
					}
					sameBits(t, what, feed(t, m, s, rest), want)
					if !bytes.Equal(k.stateOf(t, s), after) {
						t.Fatalf("%s: the state goes on with other bytes", what)
					}
				}
				back, err := shot.Restore()
				if err != nil {
					t.Fatal(err)
				}
				same("restored", back)
				for range 3 {
					s.Rewind(shot)
					same("taken back", s)
				}
				back.Free()
				s.Free()
				shot.Free()
			}
		})
	}
}

// TestGateSmall touches every kind of kernel once or twice, for compute-sanitizer, under which it
// takes long.
func TestGateSmall(t *testing.T) {
	for _, name := range []string{"qwen2", "qwen3_5"} {
		for _, kind := range []weights.Type{weights.F32, weights.FP8Row, weights.NVFP4} {
			t.Run(name+"/"+kind.String(), func(t *testing.T) {
				w := openModel(t, name)
				b := newBackend(t, BackendOptions{Rows: 64, Eager: true})
				m := roomy(t, w, sourceOf(w, kind), b)
				a, c := sequence(t, m), sequence(t, m)
				rows := feed(t, m, a, words(m, 1, 3))
				prompt(t, m, a, words(m, 2, 33))
				prompt(t, m, c, words(m, 3, 21))
				shot, err := a.Snapshot()
				if err != nil {
					t.Fatal(err)
				}
				rows = append(rows, feed(t, m, a, words(m, 4, 1))...)
				a.Rewind(shot)
				step := m.NewStep()
				for i, s := range []*kv.Sequence{a, c} {
					if err := step.Add(s, words(m, 5, 1+4*i), 1); err != nil {
						t.Fatal(err)
					}
				}
				rows = append(rows, logitsOf(t, m, step)...)
				for i, row := range rows {
					for j, v := range row {
						if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
							t.Fatalf("logit %d of row %d is %v", j, i, v)
						}
					}
				}
			})
		}
	}
}
