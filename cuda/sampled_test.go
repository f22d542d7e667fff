//go:build linux && cuda && cgo

package cuda

import (
	"math/rand/v2"
	"testing"

	"velo/engine/kv"
	"velo/engine/sample"
)

// What a step chooses is what engine/sample chooses from the logits that the same step gives, in
// any company, launched one by one and as a graph, also when the lists of choices outgrow the
// memory they lie in.
func TestSampledSteps(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	for _, eager := range []bool{false, true} {
		r := rand.New(rand.NewPCG(seed, 7))
		w := openModel(t, "qwen3_5")
		b := newBackend(t, BackendOptions{Rows: 64, Eager: eager})
		m := bind(t, w, w, b)
		vocab := m.Config.Vocab
		cpu := sample.New(vocab)
		var lanes []*kv.Sequence
		var last []int32
		for i := range 6 {
			lanes = append(lanes, sequence(t, m))
			last = append(last, int32(i+3))
		}
		step, graphs := m.NewStep(), 0
		for turn := range 60 {
			n := 1 + turn/10
			step.Reset()
			var picks []sample.Pick
			var wanted []bool
			for i := range n {
				if err := step.Add(lanes[i], last[i:i+1], 1); err != nil {
					t.Fatal(err)
				}
			}
			for i := range n {
				p := drawnPick(r, vocab)
				if turn%10 == 9 { // as much as there can be
					p.Count, p.Repetition, p.Seen, p.Bias = make([]int32, vocab), 1.2, nil, nil
					for id := range vocab {
						p.Seen = append(p.Seen, int32(id))
						p.Bias = append(p.Bias, sample.Bias{Token: int32(id), Bias: r.Float32()})
					}
				}
				picks, wanted = append(picks, p), append(wanted, turn%2 == 0 || i%2 == 0)
				if !step.Pick(i, p, wanted[i]) {
					t.Fatal("a choice was refused")
				}
			}
			logits, err := m.Run(step)
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			for i, got := range step.Choices() {
				token := got.Token
				if wanted[i] {
					row := logits[rows*vocab : (rows+1)*vocab]
					rows++
					want, err := cpu.Choose(&picks[i], row)
					if err != nil {
						want.Token = -1
					}
					if want.Token != token && !edge(cpu, picks[i], row, token) {
						t.Fatalf("turn %d, lane %d of %d: %d is chosen, not %d", turn, i, n, token, want.Token)
					}
					if err == nil && picks[i].Top >= 0 {
						sameProbabilities(t, picks[i].Top, row, want, got)
					}
				}
				last[i] = max(token, 0)
			}
			if rows*vocab != len(logits) {
				t.Fatalf("%d logits for %d rows", len(logits), rows)
			}
			if len(b.shapes.graphs) > 0 {
				graphs++
			}
		}
		if (graphs > 0) == eager {
			t.Errorf("eager %v: %d turns with graphs", eager, graphs)
		}
	}
}
