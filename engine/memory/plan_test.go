package memory

import (
	"math"
	"slices"
	"strings"
	"testing"

	"velo/engine/backend"
	"velo/engine/cpu"
	"velo/engine/enginetest"
	"velo/engine/model"
	"velo/engine/ops"
	"velo/engine/weights"
)

func open(t *testing.T, family string) *weights.Model {
	t.Helper()
	w, err := weights.Open(enginetest.Folder(t, family))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// recorder is a processor that adds up the activations that it makes.
type recorder struct {
	*cpu.Backend
	bytes int64
}

func (r *recorder) Buffer(rows, cols int) ops.Buffer {
	r.bytes += 4 * int64(rows) * int64(cols)
	return r.Backend.Buffer(rows, cols)
}

// TestReckon: pages, states and activations are what a model made with the plan's sizes has.
func TestReckon(t *testing.T) {
	for _, family := range []string{enginetest.Plain, enginetest.Hybrid} {
		w := open(t, family)
		z := Sizes{Context: 100, Lanes: 3, Tokens: 250, Checkpoints: 5, Rows: 64}
		p, err := Reckon(w, z)
		if err != nil {
			t.Fatal(err)
		}
		r := &recorder{Backend: cpu.New(cpu.Options{Rows: p.Sizes.Rows, Workers: 1})}
		defer r.Close()
		m, err := model.New(&w.Config, w, r, model.Options{Tokens: p.Sizes.Tokens, Sequences: p.Sizes.Lanes + p.Sizes.Checkpoints, Outputs: p.Sizes.Outputs})
		if err != nil {
			t.Fatal(err)
		}
		pool := m.Pool()
		if want := int64(pool.Pages()) * pool.Shape().PageBytes(); p.Pages != want {
			t.Errorf("%s: pages of %d bytes are planned, %d are made", family, p.Pages, want)
		}
		states := int64(0) // a pool counts them of a model without any too
		if family == enginetest.Hybrid {
			states = int64(pool.States()) * pool.Shape().StateBytes()
		}
		if p.States+p.Checkpoints != states || (states > 0) != (family == enginetest.Hybrid) {
			t.Errorf("%s: states of %d + %d bytes are planned, %d are made", family, p.States, p.Checkpoints, states)
		}
		if p.Scratch != r.bytes {
			t.Errorf("%s: activations of %d bytes are planned, %d are made", family, p.Scratch, r.bytes)
		}
		if p.Weights != w.Bytes() /* bf16 is used where it lies */ || p.Choice != 0 {
			t.Errorf("%s: weights of %d bytes are planned, %d are in the files; choice %d", family, p.Weights, w.Bytes(), p.Choice)
		}
		if p.Total != p.Weights+p.Pages+p.States+p.Checkpoints+p.Scratch+p.Choice {
			t.Errorf("%s: %+v does not add up", family, p)
		}
		if (p.Checkpoints > 0) != strings.Contains(p.String(), "5 states for the prefix cache") || (p.Checkpoints > 0) == strings.Contains(p.String(), "no recurrent states") {
			t.Errorf("%s: checkpoints of %d bytes, in words:\n%s", family, p.Checkpoints, p)
		}
		// What was settled is settled the same way again.
		again, err := Reckon(w, p.Sizes)
		if err != nil || again.Sizes != p.Sizes || again.Total != p.Total || len(again.Changed) != 0 {
			t.Errorf("%s: a plan of %+v is %+v, %v", family, p, again, err)
		}
	}
}

// TestGPU: keys, values, weights and the choice of tokens take what they do on the GPU, which need
// not be there.
func TestGPU(t *testing.T) {
	if !slices.Contains(backend.Names(), backend.CUDA) {
		t.Skip("no GPU in this build")
	}
	w := open(t, enginetest.Plain)
	z := Sizes{Context: 100, Lanes: 3, KV: "f32", Backend: backend.CUDA}
	full, err := Reckon(w, z)
	if err != nil {
		t.Fatal(err)
	}
	if full.Weights != backend.WeightBytes(backend.Options{Name: backend.CUDA}, w) || full.Weights == w.Bytes() {
		t.Errorf("weights of %d bytes are planned", full.Weights)
	}
	for kv, share := range map[string][2]int64{"": {1, 2}, "bf16": {1, 2}, "fp8": {16 + 4, 4 * 16}, "q8": {16 + 2, 4 * 16}} {
		z.KV = kv
		p, err := Reckon(w, z)
		if want := full.Pages * share[0] / share[1]; err != nil || p.Pages != want {
			t.Errorf("pages of %d bytes are planned in %q, want %d, %v", p.Pages, kv, want, err)
		}
		if kv != "" && !strings.Contains(p.String(), " tokens in "+kv+",") {
			t.Errorf("the type %s is not told:\n%s", kv, p)
		}
	}
	// What the backend takes beside is in the total, and so is page-locked memory where it is the GPU's too.
	z = Sizes{Context: 100, Lanes: 3, Backend: backend.CUDA}
	own, err := Reckon(w, z)
	z.Shared = true
	shared, again := Reckon(w, z)
	if err != nil || again != nil || own.Own.Device <= 0 || own.Own.Pinned <= 0 || own.Own.Loading <= 0 || own.Total != own.Asked()+own.Own.Device+own.Own.Loading ||
		shared.Total != own.Total+own.Own.Pinned+own.Own.Loading {
		t.Errorf("%+v, %v; where memory is shared %+v, %v", own, err, shared, again)
	}
	for _, p := range []Plan{own, shared} {
		if !strings.Contains(p.Sum(), "the GPU's own "+bytes(p.Total-p.Asked())) || !strings.Contains(p.String(), "the GPU's own") || strings.Contains(p.String()+p.Sum(), "estimate") {
			t.Errorf("the plan says %s\n%s", p.Sum(), p)
		}
	}
	// It grows with what it depends on, and the longest sequences do not overflow it.
	for what, larger := range map[string]Sizes{"rows": {Context: 100, Lanes: 3, Rows: 4096}, "lanes": {Context: 100, Lanes: 64}, "context": {Context: 1 << 20, Lanes: 3}, "all": {Context: math.MaxInt32, Lanes: 65000, Rows: 65000}} {
		larger.Backend = backend.CUDA
		c := w.Config
		c.MaxPosition = 0
		if p, err := reckon(&c, 0, larger); err != nil || p.Own.Device < own.Own.Device || p.Own.Pinned < own.Own.Pinned || p.Own.Device+p.Own.Pinned == own.Own.Device+own.Own.Pinned {
			t.Errorf("more %s take %+v, fewer %+v, %v", what, p.Own, own.Own, err)
		}
	}
	c := w.Config
	c.Vocab = 248320
	for lanes, rows := range map[int]int64{1: 16, 40: 40, 100: 64} { // 16 rows at least, 64 at most
		p, err := reckon(&c, 0, Sizes{Lanes: lanes, Backend: backend.CUDA})
		if a := rows * 4 * 248320; err != nil || p.Choice < a || p.Choice > a+rows*(100<<10) || !strings.Contains(p.String(), "choice of tokens") {
			t.Errorf("%d lanes: the choice of tokens takes %d bytes, about %d were expected, %v", lanes, p.Choice, a, err)
		}
	}
	c.Vocab = 1 << 20
	if p, err := reckon(&c, 0, Sizes{Backend: backend.CUDA}); err != nil || p.Choice != 0 {
		t.Errorf("a vocabulary that the GPU does not choose from takes %d bytes, %v", p.Choice, err)
	}
}

// TestSettle: what was left open, and what is changed, with a sentence.
func TestSettle(t *testing.T) {
	const state = 1000
	for _, c := range []struct {
		title   string
		z, want Sizes
		most    int
		state   int64
		changed []string
		err     string
	}{
		{title: "nothing given", want: Sizes{Context: 4096, Lanes: 8, Tokens: 8 * 4096, Rows: 512, Outputs: 16}},
		{title: "a model of fewer positions", most: 1000, want: Sizes{Context: 1000, Lanes: 8, Tokens: 8000, Rows: 512, Outputs: 16}, changed: []string{"made for no more"}},
		{title: "a context beyond the model's", z: Sizes{Context: 1001}, most: 1000, err: "cannot give a request 1001 tokens: the model was made for 1000"},
		{title: "as long as the model's", z: Sizes{Context: 1000, Lanes: 1}, most: 1000, want: Sizes{Context: 1000, Lanes: 1, Tokens: 1000, Rows: 512, Outputs: 16}},
		{title: "fewer tokens than a request has", z: Sizes{Context: 100, Lanes: 1, Tokens: 50}, want: Sizes{Context: 100, Lanes: 1, Tokens: 100, Rows: 512, Outputs: 16}, changed: []string{"100 tokens are remembered instead of 50"}},
		{title: "more lanes than rows", z: Sizes{Context: 100, Lanes: 20, Tokens: 100, Rows: 4}, want: Sizes{Context: 100, Lanes: 20, Tokens: 100, Rows: 20, Outputs: 20}, changed: []string{"a step has 20 rows instead of 4"}},
		{title: "below nothing", z: Sizes{Tokens: -1}, err: "below 0"},
		{title: "checkpoints", z: Sizes{Context: 10, Lanes: 2, Checkpoints: 9, CheckpointBytes: 1}, state: state, want: Sizes{Context: 10, Lanes: 2, Tokens: 20, Checkpoints: 9, Rows: 512, Outputs: 16}},
		{title: "checkpoints of a model without states", z: Sizes{Context: 10, Lanes: 2, Checkpoints: 9}, want: Sizes{Context: 10, Lanes: 2, Tokens: 20, Rows: 512, Outputs: 16}, changed: []string{"no checkpoints"}},
		{title: "room for all", z: Sizes{Context: 10, Lanes: 2, CheckpointBytes: 8 * state}, state: state, want: Sizes{Context: 10, Lanes: 2, Tokens: 20, Checkpoints: 8, Rows: 512, Outputs: 16}},
		{title: "room for some", z: Sizes{Context: 10, Lanes: 2, CheckpointBytes: 8*state - 1}, state: state, want: Sizes{Context: 10, Lanes: 2, Tokens: 20, Checkpoints: 7, Rows: 512, Outputs: 16}, changed: []string{"of 8 checkpoints 7 are kept"}},
		{title: "room that a model without states has no use for", z: Sizes{Context: 10, Lanes: 2, CheckpointBytes: 8 * state}, want: Sizes{Context: 10, Lanes: 2, Tokens: 20, Rows: 512, Outputs: 16}},
	} {
		z := c.z
		changed, err := z.settle(&weights.Config{MaxPosition: c.most}, c.state)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v", c.title, err)
			}
			continue
		}
		if err != nil || z != c.want || len(changed) != len(c.changed) {
			t.Errorf("%s: %+v, %q, %v", c.title, z, changed, err)
			continue
		}
		for i, want := range c.changed {
			if !strings.Contains(changed[i], want) {
				t.Errorf("%s: %q does not say %q", c.title, changed[i], want)
			}
		}
	}
}

// TestCheck: to the byte, with the arithmetic and what helps.
func TestCheck(t *testing.T) {
	for _, family := range []string{enginetest.Plain, enginetest.Hybrid} {
		w := open(t, family)
		p, err := Reckon(w, Sizes{Context: 100, Lanes: 3, Checkpoints: 5, Rows: 64})
		if err != nil || p.Check() != nil || strings.Contains(p.String(), "available") {
			t.Errorf("%s: refused without a limit: %v, %v\n%s", family, err, p.Check(), p)
		}
		p.Sizes.Available = p.Total
		if err := p.Check(); err != nil || !strings.Contains(p.String(), "fits: 0.0 KiB are left") {
			t.Errorf("%s: refused though it fits: %v\n%s", family, err, p)
		}
		p.Sizes.Available = p.Total - 1024
		err = p.Check()
		if err == nil || !strings.Contains(p.String(), "does not fit: 1.0 KiB too little") {
			t.Fatalf("%s: a kilobyte too much gives %v\n%s", family, err, p)
		}
		for word, want := range map[string]bool{"fewer lanes or a shorter context": true, "fewer checkpoints": family == enginetest.Hybrid, "recurrent states": family == enginetest.Hybrid,
			bytes(p.Total): true, bytes(p.Pages) + " (300 tokens in f32)": true, "fp8": false, "are available": true} {
			if strings.Contains(err.Error(), word) != want {
				t.Errorf("%s: %q in the refusal: %v, want %v: %v", family, word, !want, want, err)
			}
		}
		p.Sizes.Available = p.Weights + p.Weights/2
		if p.Total <= p.Sizes.Available {
			p.Total = p.Sizes.Available + 1
		}
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), "smaller model") {
			t.Errorf("%s: weights that take most of it give %v", family, err)
		}
		if p.Sizes.Tokens++; !strings.Contains(p.Check().Error(), "fewer tokens remembered") {
			t.Errorf("%s: more tokens than the lanes have give %v", family, p.Check())
		}
		p.Sizes.Lanes, p.Sizes.Backend, p.KV, p.Pages = 1, backend.CUDA, ops.KVBF16, p.Sizes.Available
		if err := p.Check(); err == nil || strings.Contains(err.Error(), "lanes") || !strings.Contains(err.Error(), "keys and values in fp8") {
			t.Errorf("%s: one lane, and pages that take all of it, give %v", family, err)
		}
	}
}

// TestLimits: sizes that no machine has are the largest number and no overflow.
func TestLimits(t *testing.T) {
	c := open(t, enginetest.Hybrid).Config
	c.MaxPosition = 0
	p, err := reckon(&c, math.MaxInt64, Sizes{Lanes: math.MaxInt32, Context: math.MaxInt32, Rows: math.MaxInt32, CheckpointBytes: math.MaxInt64, Available: 1 << 40})
	if err != nil || p.Total != math.MaxInt64 || p.Check() == nil || p.Pages <= 0 || p.States <= 0 || p.Scratch <= 0 {
		t.Errorf("sizes that no machine has add up to %+v, %v", p, err)
	}
}

// TestSum: the line has every part.
func TestSum(t *testing.T) {
	p, err := Reckon(open(t, enginetest.Hybrid), Sizes{Context: 100, Lanes: 1, Checkpoints: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{p.Weights, p.Pages, p.States, p.Checkpoints, p.Scratch} {
		if !strings.Contains(p.Sum(), bytes(n)) {
			t.Errorf("%s does not have %s", p.Sum(), bytes(n))
		}
	}
	if !strings.HasPrefix(p.Sum(), "weights ") || !strings.HasSuffix(p.Sum(), " = "+bytes(p.Total)) {
		t.Errorf("the arithmetic is %s", p.Sum())
	}
}
