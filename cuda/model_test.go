//go:build linux && cuda && cgo

package cuda

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"velo/engine/cpu"
	"velo/engine/kv"
	"velo/engine/model"
	"velo/engine/ops"
	"velo/engine/weights"
)

// models are the small random models of engine/model, one a family.
var models = []string{"llama", "llama3", "qwen2", "qwen3", "qwen3yarn", "qwen3_5"}

// folder is where a small model and what transformers says of it lie.
func folder(name string) string {
	return filepath.Join("..", "engine", "model", "testdata", name)
}

// newBackend makes a backend for a test.
func newBackend(t testing.TB, o BackendOptions) *Backend {
	t.Helper()
	if o.Cache == "" {
		o.Cache = os.Getenv("VELO_KERNELS")
	}
	b, err := NewBackend(o)
	if err != nil {
		if os.Getenv("VELO_GPU") == "" {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	launchOtherwise(t, b.k)
	t.Cleanup(func() {
		noteLaunched(t, b.device)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func openModel(t testing.TB, name string) *weights.Model {
	t.Helper()
	w, err := weights.Open(folder(name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// bind makes the model on a backend.
func bind(t testing.TB, w *weights.Model, source model.Source, b ops.Backend) *model.Model {
	t.Helper()
	m, err := model.New(&w.Config, source, b, model.Options{Tokens: 900, Sequences: 8, Outputs: 128})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func sequence(t testing.TB, m *model.Model) *kv.Sequence {
	t.Helper()
	s, err := m.Pool().NewSequence()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func logitsOf(t testing.TB, m *model.Model, step *model.Step) (rows [][]float32) {
	t.Helper()
	logits, err := m.Run(step)
	if err != nil {
		t.Fatal(err)
	}
	for row := range slices.Chunk(logits, m.Config.Vocab) {
		rows = append(rows, slices.Clone(row))
	}
	return rows
}

func feed(t testing.TB, m *model.Model, s *kv.Sequence, tokens []int32) [][]float32 {
	t.Helper()
	step := m.NewStep()
	if err := step.Add(s, tokens, len(tokens)); err != nil {
		t.Fatal(err)
	}
	return logitsOf(t, m, step)
}

func words(m *model.Model, seed uint64, n int) []int32 {
	r := rand.New(rand.NewPCG(seed, 2))
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(r.IntN(m.Config.Vocab))
	}
	return out
}

// sameBits fails unless two lists of logits are the same bits, and all are numbers.
func sameBits(t testing.TB, what string, got, want [][]float32) {
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

// apart is the largest and the root mean square difference, and the size of want.
func apart[T float32 | float64](got [][]float32, want [][]T) (largest, rms, size float64) {
	n := 0.0
	for i, row := range want {
		for j, w := range row {
			d := math.Abs(float64(got[i][j]) - float64(w))
			if d != d {
				d = math.Inf(1)
			}
			largest = max(largest, d)
			rms += d * d
			size += float64(w) * float64(w)
			n++
		}
	}
	return largest, math.Sqrt(rms / n), math.Sqrt(size / n)
}

// jittered is a model whose matrices are off by up to 2⁻¹¹ of each weight, at random.
type jittered struct{ model.Source }

func (s jittered) Tensor(name string) (*weights.Tensor, bool) {
	t, ok := s.Source.Tensor(name)
	if !ok || len(t.Shape) != 2 {
		return t, ok
	}
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	n := &weights.Tensor{Name: name, Type: weights.F32, Shape: t.Shape}
	row := make([]float32, t.Cols())
	for i := range t.Rows() {
		t.Row(row, i)
		for _, v := range row {
			v *= float32(1 + (2*r.Float64()-1)/(1<<11))
			n.Data = binary.LittleEndian.AppendUint32(n.Data, math.Float32bits(v))
		}
	}
	return n, true
}

// roundings is how far logits may be from exact ones, as a root mean square relative to
// their own. Each activation of a product is off by at most 2⁻¹¹ of itself; what that does
// to logits is a matter of the model, and the same as if weights were off by as much, which
// the processor tells: three times that, since both are one draw and texts differ.
func roundings(t testing.TB, c *weights.Config, source model.Source, tokens []int32) float64 {
	t.Helper()
	var logits [2][][]float32
	for i, s := range []model.Source{source, jittered{source}} {
		processor := cpu.New(cpu.Options{Workers: 4, Exact: true})
		defer processor.Close()
		m, err := model.New(c, s, processor, model.Options{Tokens: 900, Sequences: 8, Outputs: 128})
		if err != nil {
			t.Fatal(err)
		}
		logits[i] = feed(t, m, sequence(t, m), tokens)
	}
	_, rms, size := apart(logits[1], logits[0])
	return 3 * rms / size
}

// TestGoldens compares logits with those of transformers, as the processor's are.
func TestGoldens(t *testing.T) {
	for _, name := range models {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(folder(name), "golden.json"))
			if err != nil {
				t.Fatal(err)
			}
			var g struct {
				Tokens          []int32
				Rows            []int
				Logits, Drafted [][]float64
			}
			if err := json.Unmarshal(data, &g); err != nil {
				t.Fatal(err)
			}
			w := openModel(t, name)
			m := bind(t, w, w, newBackend(t, BackendOptions{}))
			step := m.NewStep()
			if err := step.Add(sequence(t, m), g.Tokens, len(g.Tokens)); err != nil {
				t.Fatal(err)
			}
			all := logitsOf(t, m, step)
			var got [][]float32
			for _, row := range g.Rows {
				got = append(got, all[row])
			}
			relative := roundings(t, &w.Config, w, g.Tokens)
			check := func(what string, got [][]float32, want [][]float64) {
				largest, rms, size := apart(got, want)
				t.Logf("%s: largest difference %.2g, root mean square %.2g of %.2g", what, largest, rms, size)
				if most := relative * size; !(rms < most) {
					t.Errorf("%s are off by %g, more than %g", what, rms, most)
				}
			}
			check("logits", got, g.Logits)
			if g.Drafted == nil {
				return
			}
			var drafted [][]float32
			for _, row := range g.Rows {
				logits, err := m.Draft(step, [][]int32{g.Tokens[1 : row+2]})
				if err != nil {
					t.Fatal(err)
				}
				drafted = append(drafted, slices.Clone(logits))
			}
			check("drafts", drafted, g.Drafted)
		})
	}
}

// TestSteps: a text in steps of any size, as graphs or as launches, gives the same bits
// as token by token; sequences in one step give the same bits as alone; and a sequence
// restored or taken back goes on as if it had never left.
func TestSteps(t *testing.T) {
	for _, name := range models {
		for kv := ops.KVF32; kv <= ops.KVQ8; kv++ {
			if kv != ops.KVF32 && name != "qwen3_5" {
				continue
			}
			t.Run(name+"/"+kv.String(), func(t *testing.T) {
				w := openModel(t, name)
				b := newBackend(t, BackendOptions{Rows: 300, KV: kv})
				steps(t, b, bind(t, w, w, b), w)
			})
		}
	}
	// Heads as wide as those of models that are served.
	for _, dim := range widths {
		for kv := ops.KVF32; kv <= ops.KVQ8; kv++ {
			t.Run(fmt.Sprintf("%d/%s", dim, kv), func(t *testing.T) {
				b := newBackend(t, BackendOptions{Rows: 300, KV: kv})
				c := &weights.Config{Architecture: weights.Qwen3, Layers: 2, Hidden: 128, Heads: 6, KVHeads: 2, HeadDim: dim, Intermediate: 96,
					Vocab: 300, MaxPosition: 4096, RopeTheta: 1e6, PartialRotary: 1, RMSEps: 1e-6, QKNorm: true}
				m, err := model.New(c, made{c}, b, model.Options{Tokens: 900, Sequences: 8, Outputs: 128})
				if err != nil {
					t.Fatal(err)
				}
				steps(t, b, m, made{c})
			})
		}
	}
	// Keys of the delta rule that go in chunks.
	for _, dim := range []int{64, 128} {
		t.Run(fmt.Sprintf("delta rule/%d", dim), func(t *testing.T) {
			b := newBackend(t, BackendOptions{Rows: 300})
			c := &weights.Config{Architecture: weights.Qwen35, Layers: 2, Hidden: 128, Heads: 4, KVHeads: 2, HeadDim: 64, Intermediate: 96, Vocab: 300,
				MaxPosition: 4096, RopeTheta: 1e6, PartialRotary: 1, RMSEps: 1e-6, QKNorm: true, NormOnePlus: true, LinearKeyHeads: 2, LinearValueHeads: 4,
				LinearKeyDim: dim, LinearValueDim: dim, ConvKernel: 4, LayerTypes: []string{weights.LinearAttention, weights.FullAttention}}
			m, err := model.New(c, made{c}, b, model.Options{Tokens: 900, Sequences: 8, Outputs: 128})
			if err != nil {
				t.Fatal(err)
			}
			steps(t, b, m, made{c})
		})
	}
}

// made is a model of Qwen3's family with random weights.
type made struct{ c *weights.Config }

func (s made) Tensor(name string) (*weights.Tensor, bool) {
	c := s.c
	queries, pairs, gates := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim, 0
	if c.AttentionGate {
		gates = queries
	}
	keys, values := c.LinearKeyHeads*c.LinearKeyDim, c.LinearValueHeads*c.LinearValueDim
	parts := strings.Split(name, ".")
	shape, ok := map[string][]int{
		"embed_tokens": {c.Vocab, c.Hidden}, "lm_head": {c.Vocab, c.Hidden}, "norm": {c.Hidden},
		"input_layernorm": {c.Hidden}, "post_attention_layernorm": {c.Hidden}, "q_norm": {c.HeadDim}, "k_norm": {c.HeadDim},
		"q_proj": {queries + gates, c.Hidden}, "k_proj": {pairs, c.Hidden}, "v_proj": {pairs, c.Hidden}, "o_proj": {c.Hidden, queries},
		"gate_proj": {c.Intermediate, c.Hidden}, "up_proj": {c.Intermediate, c.Hidden}, "down_proj": {c.Hidden, c.Intermediate},
		"in_proj_qkv": {keys + keys + values, c.Hidden}, "in_proj_z": {values, c.Hidden}, "out_proj": {c.Hidden, values},
		"in_proj_a": {c.LinearValueHeads, c.Hidden}, "in_proj_b": {c.LinearValueHeads, c.Hidden}, "conv1d": {keys + keys + values, 1, c.ConvKernel},
	}[parts[max(0, len(parts)-2)]]
	switch last := parts[len(parts)-1]; {
	case last == "A_log" || last == "dt_bias":
		shape, ok = []int{c.LinearValueHeads}, true
	case strings.HasSuffix(name, "linear_attn.norm.weight"):
		shape = []int{c.LinearValueDim}
	case last != "weight":
		ok = false
	}
	if !ok {
		return nil, false
	}
	seed, n := uint64(0), 1
	for _, c := range name {
		seed = seed*31 + uint64(c)
	}
	for _, d := range shape {
		n *= d
	}
	t, r := &weights.Tensor{Name: name, Type: weights.BF16, Shape: shape}, rand.New(rand.NewPCG(seed, 1))
	for range n {
		t.Data = binary.LittleEndian.AppendUint16(t.Data, uint16(math.Float32bits(float32(r.NormFloat64()*0.3))>>16))
	}
	return t, true
}

func steps(t *testing.T, b *Backend, m *model.Model, source model.Source) {
	tokens := words(m, 1, 60)
	var want [][]float32
	s := sequence(t, m)
	for i := range tokens {
		want = append(want, feed(t, m, s, tokens[i:i+1])...)
	}
	s.Free()
	if len(b.shapes.graphs) == 0 || b.shapes.graphs[0].graph == nil {
		t.Error("steps of one row were not captured")
	}
	if slices.Equal(want[0], want[1]) {
		t.Error("two tokens have the same logits")
	}
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 12 {
		b.options.Eager = r.IntN(2) == 0
		s := sequence(t, m)
		var got [][]float32
		for left := tokens; len(left) > 0; {
			n := 1 + r.IntN(min(len(left), MaxRows))
			got = append(got, feed(t, m, s, left[:n])...)
			left = left[n:]
		}
		s.Free()
		sameBits(t, "up to 16 rows at a time", got, want)
	}
	b.options.Eager = false
	// In steps of more than 16 rows sums are taken in another order, and the delta rule goes
	// in chunks: a prompt is as near to the exact logits, so it is near these.
	for range 4 {
		s := sequence(t, m)
		var got [][]float32
		for left := tokens; len(left) > 0; {
			n := min(len(left), 1+r.IntN(60))
			got = append(got, feed(t, m, s, left[:n])...)
			left = left[n:]
		}
		s.Free()
		_, rms, size := apart(got, want)
		if most := math.Sqrt2 * roundings(t, &m.Config, source, tokens) * size; !(rms < most) || size == 0 {
			t.Errorf("a prompt's logits are off by %g of %g from those of single tokens, more than %g", rms, size, most)
		}
	}
	// Each prompt is a step of more than 16 rows by itself too, and the second step is not.
	lengths, more := []int{18, 17, 25, 22, 30, 170}, []int{1, 2, 3, 4, 5, 1}
	want = nil
	for i, n := range lengths {
		s := sequence(t, m)
		prompt(t, m, s, words(m, uint64(i), n))
		want = append(want, feed(t, m, s, words(m, uint64(10+i), more[i]))...)
		s.Free()
	}
	first, second := m.NewStep(), m.NewStep()
	var all []*kv.Sequence
	for i, n := range lengths {
		s := sequence(t, m)
		all = append(all, s)
		if err := first.Add(s, words(m, uint64(i), n), 0); err != nil {
			t.Fatal(err)
		}
	}
	logitsOf(t, m, first)
	for i, s := range all {
		if err := second.Add(s, words(m, uint64(10+i), more[i]), more[i]); err != nil {
			t.Fatal(err)
		}
	}
	sameBits(t, "batch", logitsOf(t, m, second), want)
	for _, s := range all {
		s.Free()
	}

	start, other, rest := words(m, 1, 21), words(m, 2, 30), words(m, 3, 14)
	s = sequence(t, m)
	prompt(t, m, s, start)
	want = feed(t, m, s, rest)
	s.Free()
	s = sequence(t, m)
	prompt(t, m, s, start)
	shot, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	prompt(t, m, s, other)
	back, err := shot.Restore()
	if err != nil {
		t.Fatal(err)
	}
	sameBits(t, "restored", feed(t, m, back, rest), want)
	for range 3 { // the third time a graph
		s.Rewind(shot)
		sameBits(t, "taken back", feed(t, m, s, rest), want)
	}
}

// prompt runs tokens without looking at any logits.
func prompt(t *testing.T, m *model.Model, s *kv.Sequence, tokens []int32) {
	t.Helper()
	step := m.NewStep()
	if err := step.Add(s, tokens, 0); err != nil {
		t.Fatal(err)
	}
	logitsOf(t, m, step)
}

// typed is a model whose matrices are stored in another type, made of random numbers.
type typed struct {
	*weights.Model
	t weights.Type
}

func (s typed) Tensor(name string) (*weights.Tensor, bool) {
	t, ok := s.Model.Tensor(name)
	if !ok || len(t.Shape) != 2 {
		return t, ok
	}
	values, octets := s.t.Block()
	if t.Shape[1]%values != 0 {
		return t, ok
	}
	n := &weights.Tensor{Name: name, Type: s.t, Shape: t.Shape, Global: 0.01}
	seed := uint64(0)
	for _, c := range name {
		seed = seed*31 + uint64(c)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	rows, cols := t.Shape[0], t.Shape[1]
	n.Data = make([]byte, rows*cols/values*octets)
	for i := range n.Data {
		n.Data[i] = byte(r.IntN(256))
		if b := n.Data[i] & 0x7f; octets == 1 && b > 0x50 { // no large e4m3
			n.Data[i] ^= 0x40
		}
	}
	half := func(at int) { binary.LittleEndian.PutUint16(n.Data[at:], uint16(0x1c00+r.IntN(0x200))) }
	for at := 0; at < len(n.Data); at += octets {
		switch s.t {
		case weights.F16, weights.BF16:
			f := float32(r.NormFloat64() * 0.1)
			b := uint16(math.Float32bits(f) >> 16)
			if s.t == weights.F16 {
				b = halfBits(f)
			}
			binary.LittleEndian.PutUint16(n.Data[at:], b)
		case weights.Q8_0:
			half(at)
			n.Data[at+1] -= 8 // a quarter of it
		case weights.Q4_0:
			half(at)
		case weights.Q4_1, weights.Q4_K, weights.Q5_K:
			half(at)
			half(at + 2)
		case weights.Q6_K:
			half(at + 208)
		}
	}
	switch s.t {
	case weights.FP8Row:
		for range rows {
			n.Scale = binary.LittleEndian.AppendUint32(n.Scale, math.Float32bits(float32(0.02+0.02*r.Float64())))
		}
	case weights.FP8Block:
		for range (rows + 127) / 128 * ((cols + 127) / 128) {
			n.Scale = binary.LittleEndian.AppendUint32(n.Scale, math.Float32bits(float32(0.02+0.02*r.Float64())))
		}
	case weights.NVFP4:
		for range rows * cols / 16 {
			n.Scale = append(n.Scale, byte(0x30+r.IntN(20)))
		}
	}
	return n, true
}

// TestTypes compares logits with the processor's exact ones, with weights of every
// type, of each family: a prompt of several steps, then single tokens.
func TestTypes(t *testing.T) {
	for _, name := range models {
		for _, kind := range []weights.Type{weights.F32, weights.F16, weights.BF16, weights.FP8Row, weights.FP8Block, weights.NVFP4, weights.Q8_0, weights.Q4_0, weights.Q4_1} {
			t.Run(name+"/"+kind.String(), func(t *testing.T) {
				w := openModel(t, name)
				var source model.Source = w
				if kind != weights.F32 {
					source = typed{w, kind}
				}
				gpu := newBackend(t, BackendOptions{})
				processor := cpu.New(cpu.Options{Workers: 4, Exact: true})
				defer processor.Close()
				a, b := bind(t, w, source, gpu), bind(t, w, source, processor)
				seed := rand.Uint64()
				t.Logf("seed %d", seed)
				tokens := words(a, seed, 90)
				var got, want [][]float32
				x, y := sequence(t, a), sequence(t, b)
				for i, n := 0, 0; i < len(tokens); i += n {
					n = min([]int{40, 3, 30}[i%3], len(tokens)-i)
					if i > 70 {
						n = 1
					}
					got, want = append(got, feed(t, a, x, tokens[i:i+n])...), append(want, feed(t, b, y, tokens[i:i+n])...)
				}
				largest, rms, size := apart(got, want)
				t.Logf("largest difference %.2g, root mean square %.2g of %.2g", largest, rms, size)
				most := roundings(t, &w.Config, source, tokens)
				switch kind {
				case weights.Q8_0, weights.Q4_0, weights.Q4_1, weights.FP8Block:
					most *= math.Sqrt2 // weights have 11 bits too
				}
				if !(rms < most*size) || size == 0 {
					t.Errorf("logits are off by %g of %g, more than %g", rms, size, most*size)
				}
			})
		}
	}
}

// TestCacheSaysWhatIsPossible: shapes that the kernels do not have are errors of loading.
func TestCacheSaysWhatIsPossible(t *testing.T) {
	b := newBackend(t, BackendOptions{})
	for what, s := range map[string]ops.CacheShape{
		"heads": {Attention: 1, KVHeads: 1, HeadDim: 512}, "keys": {Recurrent: 1, KeyHeads: 1, ValueHeads: 1, KeyDim: 512, ValueDim: 64},
		"taps": {Recurrent: 1, KeyHeads: 1, ValueHeads: 1, KeyDim: 64, ValueDim: 64, ConvCols: 192, ConvKernel: 9}, "pages": {Attention: 1, KVHeads: 8, HeadDim: 256},
		"positions": {Attention: 1, KVHeads: 1, HeadDim: 64, Longest: mostPositions + 1},
	} {
		pages := 1
		if what == "pages" {
			pages = 1 << 24 // 4 TiB
		}
		if _, err := b.Cache(s, pages, 1); err == nil || !strings.HasPrefix(err.Error(), "cannot ") || !strings.Contains(err.Error(), what) && what != "pages" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestKVTypes tells what 16 and 8 bits a key and value change: logits against those with
// float32, and what the text's own next tokens are worth, in nats a token.
func TestKVTypes(t *testing.T) {
	for _, name := range models {
		w := openModel(t, name)
		var exact [][]float32
		var tokens []int32
		loss := func(rows [][]float32) (sum float64) {
			for i := range len(rows) - 1 {
				all := 0.0
				for _, v := range rows[i] {
					all += math.Exp(float64(v))
				}
				sum += math.Log(all) - float64(rows[i][tokens[i+1]])
			}
			return sum / float64(len(rows)-1)
		}
		for kv := ops.KVF32; kv <= ops.KVQ8; kv++ {
			m := bind(t, w, w, newBackend(t, BackendOptions{KV: kv}))
			s := sequence(t, m)
			if m.Pool().Shape().KV != kv {
				t.Errorf("a cache of %s says that it is %s", kv, m.Pool().Shape().KV)
			}
			if exact == nil {
				tokens = words(m, 9, 120)
				exact = feed(t, m, s, tokens)
				continue
			}
			got := feed(t, m, s, tokens)
			_, rms, size := apart(got, exact)
			t.Logf("%s, %s: root mean square %.2g of %.2g, nats a token %+.5f of %.4f", name, kv, rms, size, loss(got)-loss(exact), loss(exact))
			// Half of the last bit of a value, some layers.
			if bound := map[ops.KVType]float64{ops.KVBF16: 0.025, ops.KVFP8: 0.3, ops.KVQ8: 0.07}[kv]; !(rms < bound*size) || rms == 0 {
				t.Errorf("%s: logits with keys and values in %s are off by %g of %g", name, kv, rms, size)
			}
		}
	}
}

// TestGreedy: the likeliest text is the processor's, token by token, but where that holds
// two tokens for all but equal.
func TestGreedy(t *testing.T) {
	for _, name := range models {
		t.Run(name, func(t *testing.T) {
			w := openModel(t, name)
			processor := cpu.New(cpu.Options{Workers: 4, Exact: true})
			defer processor.Close()
			a, b := bind(t, w, w, newBackend(t, BackendOptions{})), bind(t, w, w, processor)
			x, y := sequence(t, a), sequence(t, b)
			next := words(a, 5, 12)
			ties := 0
			var here, there [][]float32
			for range 120 {
				got, want := feed(t, a, x, next), feed(t, b, y, next)
				_, rms, _ := apart(got, want)
				here, there = append(here, got...), append(there, want...)
				mine, theirs := got[len(got)-1], want[len(want)-1]
				best := func(v []float32) int {
					at := 0
					for i := range v {
						if v[i] > v[at] {
							at = i
						}
					}
					return at
				}
				i, j := best(mine), best(theirs)
				if i != j {
					ties++
					if gap := float64(theirs[j] - theirs[i]); gap > 3*math.Sqrt2*rms { // three times what their difference is off by
						t.Fatalf("after %d tokens it is %d and not %d, which the processor has ahead by %g", y.Len(), i, j, gap)
					}
				}
				next = []int32{int32(j)}
			}
			_, rms, size := apart(here, there)
			t.Logf("%d ties, root mean square difference %.2g of %.2g", ties, rms, size)
			if most := roundings(t, &w.Config, w, words(a, 6, 120)) * size; !(rms < most) {
				t.Errorf("logits are off by %g, more than %g", rms, most)
			}
		})
	}
}

// TestStepsAllocateNothing once everything has its size.
func TestStepsAllocateNothing(t *testing.T) {
	for _, name := range models {
		w := openModel(t, name)
		m := bind(t, w, w, newBackend(t, BackendOptions{}))
		a, b := sequence(t, m), sequence(t, m)
		prompt(t, m, a, words(m, 1, 40))
		prompt(t, m, b, words(m, 2, 3))
		step, one := m.NewStep(), []int32{5}
		decode := func() {
			step.Reset()
			for _, s := range []*kv.Sequence{a, b} {
				if err := step.Add(s, one, 1); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := m.Run(step); err != nil {
				t.Fatal(err)
			}
		}
		decode()
		decode()
		if n := testing.AllocsPerRun(10, decode); n >= 1 {
			t.Errorf("%s: a decode step allocates %v times", name, n)
		}
	}
}
