package sched

import (
	"math"
	"strings"
	"testing"

	"velo/engine/ops"
	"velo/engine/weights"
)

// TestPlan: pages and states are what a model made with these sizes has.
func TestPlan(t *testing.T) {
	for family, c := range families(vocab) {
		if c.LayerTypes == nil {
			c.LayerTypes = []string{weights.FullAttention, weights.FullAttention}
		}
		z := Sizes{Context: 100, Lanes: 3, Tokens: 250, Checkpoints: 5, Rows: 64}
		p := Plan(c, 1<<20, z)
		checkpoints := 0
		if family == "hybrid" {
			checkpoints = 5
		}
		m := newModel(t, family, size{tokens: 250, sequences: 3 + checkpoints})
		pool := m.Pool()
		if want := int64(pool.Pages()) * pool.Shape().PageBytes(); p.Pages != want {
			t.Errorf("%s: pages of %d bytes are planned, %d are made", family, p.Pages, want)
		}
		if want := int64(pool.States()) * pool.Shape().StateBytes(); p.States+p.Checkpoints != want {
			t.Errorf("%s: states of %d bytes are planned, %d are made", family, p.States+p.Checkpoints, want)
		}
		if p.Total != p.Weights+p.Pages+p.States+p.Checkpoints+p.Scratch || p.Weights != 1<<20 || p.Scratch <= 0 {
			t.Errorf("%s: %+v does not add up", family, p)
		}
		if (p.Checkpoints > 0) != strings.Contains(p.String(), "5 states for the prefix cache") {
			t.Errorf("%s: checkpoints of %d bytes, in words:\n%s", family, p.Checkpoints, p)
		}
		if err := p.Check(); err != nil {
			t.Errorf("%s: refused without a limit: %v", family, err)
		}
		for kv, share := range map[ops.KVType][2]int64{ops.KVBF16: {1, 2}, ops.KVFP8: {8 + 4, 4 * 8}, ops.KVQ8: {8 + 2, 4 * 8}} {
			z.KV = kv
			if got, want := Plan(c, 1<<20, z).Pages, p.Pages*share[0]/share[1]; c.HeadDim == 8 && got != want || got >= p.Pages {
				t.Errorf("%s: pages of %d bytes are planned in %s, want %d", family, got, kv, want)
			}
		}
		p.Sizes.Available = p.Total
		if err := p.Check(); err != nil {
			t.Errorf("%s: refused though it fits: %v", family, err)
		}
		p.Sizes.Available--
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), "fewer lanes") {
			t.Errorf("%s: a byte too much gives %v", family, err)
		}
	}
}

func TestPlanDefaultsAndLimits(t *testing.T) {
	c := families(vocab)["plain"]
	c.LayerTypes = []string{weights.FullAttention, weights.FullAttention}
	if p := Plan(c, 0, Sizes{}); p.Sizes.Context != 4096 || p.Sizes.Lanes != 8 || p.Sizes.Tokens != 8*4096 || p.Sizes.Rows != 512 {
		t.Errorf("defaults are %+v", p.Sizes)
	}
	c.MaxPosition = 1000
	if p := Plan(c, 0, Sizes{}); p.Sizes.Context != 1000 {
		t.Errorf("a model of 1000 positions gets a context of %d", p.Sizes.Context)
	}
	p := Plan(c, math.MaxInt64, Sizes{Lanes: math.MaxInt32, Context: math.MaxInt32, Rows: math.MaxInt32, Available: 1 << 40})
	if p.Total != math.MaxInt64 || p.Check() == nil {
		t.Errorf("sizes that no machine has add up to %d", p.Total)
	}
}
