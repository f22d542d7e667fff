//go:build linux && cuda && cgo

package cuda

import (
	"math/rand/v2"
	"testing"

	"velo/engine/cpu"
	"velo/engine/kv"
	"velo/engine/model"
	"velo/engine/weights"
)

// TestPromptInSteps: a prompt that is longer than a step is the processor's, as far as rounding
// activations lets it.
func TestPromptInSteps(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	for _, name := range []string{"qwen3_5", "qwen2"} {
		for _, kind := range []weights.Type{weights.FP8Row, weights.NVFP4} {
			t.Run(name+"/"+kind.String(), func(t *testing.T) {
				w := openModel(t, name)
				source := sourceOf(w, kind)
				const last = 100
				run := func(m *model.Model) [][]float32 {
					tokens, s := words(m, seed, 700), sequence(t, m)
					prompt(t, m, s, tokens[:512])
					step := m.NewStep()
					if err := step.Add(s, tokens[512:], last); err != nil {
						t.Fatal(err)
					}
					return logitsOf(t, m, step)
				}
				got := run(bind(t, w, source, newBackend(t, BackendOptions{Rows: 512})))
				var want [2][][]float32 // of the weights, and of weights that are off by 2⁻¹¹
				for i, s := range []model.Source{source, jittered{source}} {
					processor := cpu.New(cpu.Options{Workers: 2, Exact: true})
					defer processor.Close()
					want[i] = run(bind(t, w, s, processor))
				}
				largest, rms, size := apart(got, want[0])
				_, most, _ := apart(want[1], want[0])
				t.Logf("largest difference %.2g, root mean square %.2g of %.2g; weights off by 2⁻¹¹ give %.2g", largest, rms, size, most)
				if !(rms < 3*most) || len(got) != last {
					t.Errorf("logits are off by %g of %g, more than three times %g", rms, size, most)
				}
			})
		}
	}
}

// TestGraphOfTwoSequences: a graph that was captured with 4 and 4 rows serves 7 and 1, and 1 and 7:
// the bits are those of each sequence alone.
func TestGraphOfTwoSequences(t *testing.T) {
	for _, name := range []string{"qwen3_5", "qwen3"} {
		t.Run(name, func(t *testing.T) {
			w := openModel(t, name)
			b := newBackend(t, BackendOptions{Rows: 64})
			m := roomy(t, w, sourceOf(w, weights.FP8Row), b)
			var together, alone [2]*kv.Sequence
			var texts [2][]int32
			for i := range together {
				together[i], alone[i] = sequence(t, m), sequence(t, m)
				texts[i] = words(m, uint64(i), 60)
				for _, s := range []*kv.Sequence{together[i], alone[i]} {
					prompt(t, m, s, texts[i][:17+10*i])
				}
				texts[i] = texts[i][17+10*i:]
			}
			for _, rows := range [][2]int{{4, 4}, {4, 4}, {4, 4}, {7, 1}, {1, 7}, {4, 4}} {
				step := m.NewStep()
				var want [][]float32
				for i, n := range rows {
					if err := step.Add(together[i], texts[i][:n], n); err != nil {
						t.Fatal(err)
					}
				}
				got := logitsOf(t, m, step)
				for i, n := range rows {
					want = append(want, feed(t, m, alone[i], texts[i][:n])...)
					texts[i] = texts[i][n:]
				}
				sameBits(t, name, got, want)
			}
		})
	}
}
