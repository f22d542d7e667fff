//go:build linux && cuda && cgo

package cuda

import (
	"strings"
	"testing"
	"time"

	"velo/engine/kv"
	"velo/engine/model"
	"velo/engine/sample"
)

func TestCeilings(t *testing.T) {
	b := newBackend(t, BackendOptions{Rows: 16})
	if strings.HasPrefix(b.Facts().Name, "Velo emulator") {
		t.Skip("an emulator has no bandwidth")
	}
	free, _, err := b.device.MemoryInfo()
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.Ceilings()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", c)
	// Loose bounds that a wrong unit or a factor of 8 would break.
	if c.Read < 20e9 || c.Read > 20e12 || c.Copy < 20e9 || c.Copy > 20e12 || c.Bytes < 4*int64(b.Facts().L2) {
		t.Errorf("bandwidth %+v", c)
	}
	for i, d := range []time.Duration{c.Launch, c.Round, c.GraphLaunch, c.GraphRound, c.Node} {
		if d < 50*time.Nanosecond || d > 10*time.Millisecond {
			t.Errorf("cost %d is %v", i, d)
		}
	}
	if k := b.k.add.dependent; (c.Dependent > 0) != k {
		t.Errorf("dependent launches cost %v, on a device that has them: %v", c.Dependent, k)
	}
	if now, _, err := b.device.MemoryInfo(); err != nil || now < free-(8<<20) {
		t.Errorf("%d bytes are free after, %d before (%v)", now, free, err)
	}
}

// StepCost finds every launch of a step, each once, and leaves the backend as it was.
func TestStepCost(t *testing.T) {
	for _, name := range []string{"llama3", "qwen3_5"} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t, BackendOptions{Rows: 16})
			w := openModel(t, name)
			m := bind(t, w, w, b)
			step := m.NewStep()
			var open []*kv.Sequence
			add := func() {
				for _, s := range open {
					s.Free()
				}
				open = nil
				step.Reset()
				for i := range 3 {
					s := sequence(t, m)
					open = append(open, s)
					if err := step.Add(s, words(m, uint64(i), 1), 1); err != nil {
						t.Fatal(err)
					}
				}
			}
			run := func(step *model.Step) error { _, err := m.Run(step); return err }
			add()
			want := logitsOf(t, m, step)
			add()
			for i := range step.Outputs() {
				step.Pick(i, sample.Pick{Temperature: 0.7, TopK: 20, TopP: 0.9, Uniform: 0.3, Top: sample.NoLogProbs}, true)
			}
			cost, err := b.StepCost(func() error { return run(step) }, time.Now().Add(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			launches, total, chosen := 0, time.Duration(0), false
			for i, c := range cost.Costs {
				launches += c.Launches
				total += c.Time
				chosen = chosen || c.Kernel == "sample"
				if c.Time <= 0 || c.Launches < 1 || c.Bytes < 0 || i > 0 && c.Time > cost.Costs[i-1].Time {
					t.Errorf("kernel %d is %+v", i, c)
				}
				if strings.HasPrefix(c.Kernel, "linear") && c.Bytes == 0 {
					t.Errorf("%s reads nothing", c.Kernel)
				}
			}
			if launches != cost.Launches || launches < 10 || !chosen || cost.Graph <= 0 || total <= 0 {
				t.Errorf("%d launches of %d, a choice of tokens: %v, graph %v, kernels %v", launches, cost.Launches, chosen, cost.Graph, total)
			}
			// Every matrix but the embedding is read once.
			if cost.Bytes < w.Bytes()/8 {
				t.Errorf("a step reads %d bytes of a model of %d", cost.Bytes, w.Bytes())
			}
			if b.device.tape != nil || b.options.Eager {
				t.Error("launches are still noted")
			}
			for range 3 { // as launches, captured, as a graph
				add()
				sameBits(t, "after StepCost", logitsOf(t, m, step), want)
			}
			add()
			late, err := b.StepCost(func() error { return run(step) }, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range late.Costs {
				if c.Time != 0 {
					t.Errorf("%s was measured after the end of the time", c.Kernel)
				}
			}
		})
	}
}

// What is read for a product that happens in the launch of the next operation is counted there.
func TestBytesBesideAnotherLaunch(t *testing.T) {
	matrix := func(bytes int64) *stack { return &stack{pieces: []piece{{m: &Matrix{weights: Memory{bytes: bytes}}}}} }
	tape := tape{calls: []call{{kind: linearCall, m: matrix(100)}, {kind: linearCall, m: matrix(7)}, {kind: normCall}, {kind: convolveCall}, {kind: linearCall, m: matrix(3)}},
		launches: []taped{{call: -1}, {call: 0}, {call: 3}, {call: 3}}}
	if got := tape.beside(); len(got) != 1 || got[3] != 7 {
		t.Errorf("%v", got)
	}
}
