package quantize

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"velo/engine/weights"
)

func TestRecipes(t *testing.T) {
	for _, c := range []struct{ text, want, wrong string }{
		{text: "all", want: "mlp:nvfp4,attn:nvfp4,gdn:nvfp4,lmhead:nvfp4,mtp:nvfp4,router:nvfp4,expert:nvfp4"},
		{text: DefaultRecipe, want: "mlp:nvfp4,attn:nvfp4,gdn:fp8,lmhead:nvfp4,mtp:nvfp4,router:nvfp4,expert:nvfp4"},
		{text: "all:fp8, embed,-router,-expert", want: "mlp:fp8,attn:fp8,gdn:fp8,lmhead:fp8,embed:nvfp4,mtp:fp8"},
		{text: "mlp,attn:fp8,attn:bf16", want: "mlp:nvfp4,attn:bf16"},
		{text: "mlp,-mlp", want: ""},
		{text: "mlp,all", wrong: `"all" must come first`},
		{text: "mlp,,attn", wrong: `"" is empty`},
		{text: "", wrong: `"" is empty`},
		{text: "mlp:int4", wrong: `"mlp:int4" has an unknown format`},
		{text: "mpl", wrong: `"mpl" is an unknown group`},
		{text: "-all", wrong: `"-all" takes out an unknown group`},
	} {
		r, err := ParseRecipe(c.text)
		switch {
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%q: %v, want %q", c.text, err, c.wrong)
		case c.wrong == "" && (err != nil || r.String() != c.want):
			t.Errorf("%q: %q %v, want %q", c.text, r, err, c.want)
		}
	}
}

func FuzzRecipe(f *testing.F) {
	f.Add(DefaultRecipe)
	f.Add("all:fp8,-mlp, attn")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRecipe(text)
		if err != nil || len(r) == 0 {
			return
		}
		again, err := ParseRecipe(r.String())
		if err != nil || again.String() != r.String() {
			t.Fatalf("%q gives %q, which gives %q %v", text, r, again, err)
		}
	})
}

// nearest fails unless code stands for a number closest to v, with ties to the
// even code.
func nearest(t *rapid.T, v float32, code byte, codes int, value func(byte) float32) {
	got := math.Abs(float64(v) - float64(value(code)))
	for c := range codes {
		w := value(byte(c))
		if w != w {
			continue
		}
		d := math.Abs(float64(v) - float64(w))
		if d < got || d == got && w != value(code) && c%2 == 0 {
			t.Fatalf("%v became %v (code %#x), but %v (code %#x) is better", v, value(code), code, w, c)
		}
	}
}

func TestNearestCodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.OneOf(rapid.Float32Range(-600, 600), rapid.Float32Range(-0.05, 0.05), rapid.Float32Range(-1e6, 1e6),
			// Exactly between two e4m3 numbers.
			rapid.Custom(func(t *rapid.T) float32 {
				c := rapid.ByteRange(0, 0x7d).Draw(t, "code")
				return (weights.E4M3(c) + weights.E4M3(c+1)) / 2
			})).Draw(t, "value")
		if v != v {
			return
		}
		nearest(t, v, encodeE4M3(v), 256, weights.E4M3)
		nearest(t, v/64, encodeE2M1(v/64), 16, weights.E2M1)
	})
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.ByteRange(0, 6).Draw(t, "code")
		v := (weights.E2M1(c) + weights.E2M1(c+1)) / 2
		nearest(t, v, encodeE2M1(v), 16, weights.E2M1)
	})
}

// matrix is an F32 tensor of the given values.
func matrix(name string, rows, cols int, value func(i int) float32) *weights.Tensor {
	t := &weights.Tensor{Name: name, Type: weights.F32, Shape: []int{rows, cols}}
	for i := range rows * cols {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(value(i)))
	}
	return t
}

// No value is off by more than half a step of its code, whatever the matrix.
func TestErrorBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		spread := rapid.Float64Range(0, 12).Draw(t, "spread")
		rows := rapid.IntRange(1, 5).Draw(t, "rows")
		w := matrix("w", rows, 48, func(int) float32 {
			if rng.IntN(8) == 0 {
				return 0
			}
			return float32(rng.NormFloat64() * math.Exp(spread*(rng.Float64()-0.5)))
		})
		amax, finite, err := largest(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if !finite || amax == 0 {
			return
		}
		divisor := maxE2M1 * maxE4M3 / amax
		four, err := toNVFP4(t.Context(), w, divisor)
		if err != nil {
			t.Fatal(err)
		}
		eight, err := toFP8(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		a, b, c := make([]float32, 48), make([]float32, 48), make([]float32, 48)
		for i := range rows {
			w.Row(a, i)
			four.Row(b, i)
			eight.Row(c, i)
			scale := math.Float32frombits(binary.LittleEndian.Uint32(eight.Scale[4*i:]))
			for j := range a {
				step := float64(weights.E4M3(four.Scale[i*3+j/16]) / divisor)
				// The widest gap of e2m1 is 2 (4 to 6). A scale that was
				// rounded down by up to 1/16 lets the largest value, up to
				// 6 · 17/16 steps, be cut to 6.
				if d := math.Abs(float64(a[j]) - float64(b[j])); d > step*(1+1e-5) {
					t.Fatalf("NVFP4 [%d %d]: %v became %v, step %v", i, j, a[j], b[j], step)
				}
				limit := math.Max(math.Abs(float64(a[j]))/16, float64(scale)/1024) * (1 + 1e-5)
				if d := math.Abs(float64(a[j]) - float64(c[j])); d > limit {
					t.Fatalf("FP8 [%d %d]: %v became %v, limit %v", i, j, a[j], c[j], limit)
				}
			}
		}
	})
}

// model writes a random Qwen3.5 folder of two layers in bf16 and opens it.
func model(t *testing.T, change func(name string, data []byte)) *weights.Model {
	t.Helper()
	dir := t.TempDir()
	config := `{"model_type":"qwen3_5","text_config":{"model_type":"qwen3_5_text","num_hidden_layers":2,"hidden_size":64,
		"num_attention_heads":2,"num_key_value_heads":1,"head_dim":32,"intermediate_size":96,"vocab_size":64,"max_position_embeddings":128,
		"rms_norm_eps":1e-6,"linear_num_key_heads":2,"linear_num_value_heads":2,"linear_key_head_dim":16,"linear_value_head_dim":16,
		"linear_conv_kernel_dim":4,"full_attention_interval":2,"rope_theta":10000000}}`
	type tensor struct {
		name  string
		shape []int
	}
	const p = "model.language_model."
	list := []tensor{{p + "embed_tokens.weight", []int{64, 64}}, {p + "norm.weight", []int{64}}, {"lm_head.weight", []int{64, 64}}}
	for i := range 2 {
		l := fmt.Sprintf("%slayers.%d.", p, i)
		list = append(list, tensor{l + "input_layernorm.weight", []int{64}}, tensor{l + "post_attention_layernorm.weight", []int{64}},
			tensor{l + "mlp.gate_proj.weight", []int{96, 64}}, tensor{l + "mlp.up_proj.weight", []int{96, 64}}, tensor{l + "mlp.down_proj.weight", []int{64, 96}})
	}
	l := p + "layers.0.linear_attn."
	list = append(list, tensor{l + "in_proj_qkv.weight", []int{96, 64}}, tensor{l + "in_proj_z.weight", []int{32, 64}}, tensor{l + "in_proj_a.weight", []int{2, 64}},
		tensor{l + "in_proj_b.weight", []int{2, 64}}, tensor{l + "conv1d.weight", []int{96, 1, 4}}, tensor{l + "A_log", []int{2}}, tensor{l + "dt_bias", []int{2}},
		tensor{l + "norm.weight", []int{16}}, tensor{l + "out_proj.weight", []int{64, 32}})
	l = p + "layers.1.self_attn."
	list = append(list, tensor{l + "q_proj.weight", []int{128, 64}}, tensor{l + "k_proj.weight", []int{32, 64}}, tensor{l + "v_proj.weight", []int{32, 64}},
		tensor{l + "o_proj.weight", []int{64, 64}}, tensor{l + "q_norm.weight", []int{32}}, tensor{l + "k_norm.weight", []int{32}})
	rng := rand.New(rand.NewPCG(5, 6))
	header := map[string]any{}
	var data []byte
	for _, x := range list {
		n := 1
		for _, d := range x.shape {
			n *= d
		}
		from := len(data)
		for range n {
			data = binary.LittleEndian.AppendUint16(data, encodeBF16(float32(rng.NormFloat64())))
		}
		header[x.name] = map[string]any{"dtype": "BF16", "shape": x.shape, "data_offsets": []int{from, len(data)}}
		if change != nil {
			change(x.name, data[from:])
		}
	}
	raw, _ := json.Marshal(header)
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(raw))), append(raw, data...)...)
	for name, content := range map[string]string{"config.json": config, "model.safetensors": string(file), "tokenizer.json": "{}", "LICENSE": "free", "old.bin": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := weights.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// A quantised folder opens again, in one file or many, with the formats of the
// recipe and the errors that the report states.
func TestWrite(t *testing.T) {
	m := model(t, nil)
	recipe, err := ParseRecipe(DefaultRecipe + ",embed:fp8")
	if err != nil {
		t.Fatal(err)
	}
	for _, shard := range []int64{0, 20_000} {
		path := filepath.Join(t.TempDir(), "small")
		seen := 0
		report, err := Write(t.Context(), m, path, Options{Recipe: recipe, ShardBytes: shard, Progress: func(Loss) { seen++ }})
		if err != nil {
			t.Fatal(err)
		}
		q, err := weights.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if q.Bytes() >= m.Bytes()/2 || report.Before != m.Bytes() || seen != len(report.Losses) || len(report.Kept) != 0 {
			t.Errorf("%d bytes of %d, report %+v", q.Bytes(), m.Bytes(), report)
		}
		losses := map[string]Loss{}
		for _, l := range report.Losses {
			losses[l.Name] = l
		}
		for _, name := range m.Names() {
			before, _ := m.Tensor(name)
			after, ok := q.Tensor(name)
			if !ok {
				t.Errorf("%s is lost", name)
				continue
			}
			want := before.Type
			if g, ok := groupOf(name); ok {
				want = map[Format]weights.Type{NVFP4: weights.NVFP4, FP8: weights.FP8Row}[recipe[g]] // all groups are in it
			}
			if after.Type != want {
				t.Errorf("%s is %v, want %v", name, after.Type, want)
			}
			rms, largest, err := compare(t.Context(), before, after)
			if err != nil {
				t.Fatal(err)
			}
			l := losses[name]
			if math.Abs(rms-l.RMS) > 1e-7 || math.Abs(largest-l.Largest) > 1e-7 {
				t.Errorf("%s: off by %g (%g), the report says %g (%g)", name, rms, largest, l.RMS, l.Largest)
			}
			// Normally distributed weights lose about 9 % in NVFP4 and 2.6 % in FP8.
			switch low, high := rms, rms; {
			case want == weights.NVFP4 && (low < 0.07 || high > 0.12), want == weights.FP8Row && (low < 0.02 || high > 0.03), want == before.Type && rms != 0:
				t.Errorf("%s (%v): error %g", name, want, rms)
			}
		}
		a, _ := q.Tensor("model.layers.1.self_attn.q_proj.weight")
		b, _ := q.Tensor("model.layers.1.self_attn.v_proj.weight")
		if a.Global != b.Global {
			t.Errorf("q and v have factors %v and %v", a.Global, b.Global)
		}
		q.Close()
		for name, want := range map[string]bool{"tokenizer.json": true, "LICENSE": true, "old.bin": false, "model.safetensors": shard == 0, "model.safetensors.index.json": shard > 0} {
			if _, err := os.Stat(filepath.Join(path, name)); (err == nil) != want {
				t.Errorf("shards of %d: %s is there: %v", shard, name, err == nil)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	recipe := Recipe{MLP: NVFP4, Attn: FP8}
	m := model(t, nil)
	path := filepath.Join(t.TempDir(), "small")
	if _, err := Write(t.Context(), m, path, Options{Recipe: recipe}); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(t.Context(), m, path, Options{Recipe: recipe}); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("again: %v", err)
	}
	q, err := weights.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if _, err := Write(t.Context(), q, path+"2", Options{Recipe: recipe}); err == nil || !strings.Contains(err.Error(), "already; give the unquantised model") {
		t.Errorf("quantised twice: %v", err)
	}
	for _, name := range []string{"k_proj", "down_proj"} {
		bad := model(t, func(tensor string, data []byte) {
			if strings.Contains(tensor, name) {
				binary.LittleEndian.PutUint16(data[10:], 0x7f80) // infinity
			}
		})
		out := filepath.Join(t.TempDir(), "bad")
		if _, err := Write(t.Context(), bad, out, Options{Recipe: recipe}); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "infinities") {
			t.Errorf("infinity in %s: %v", name, err)
		}
		if left, _ := filepath.Glob(out + "*"); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// Each group's matrices are matched by its own target and by no other.
func TestTargets(t *testing.T) {
	names := map[string]Group{
		"model.layers.3.mlp.gate_proj": MLP, "model.layers.3.mlp.down_proj": MLP, "model.layers.3.self_attn.q_proj": Attn,
		"model.layers.3.linear_attn.in_proj_qkv": GDN, "model.layers.3.linear_attn.in_proj_a": "", "model.layers.3.linear_attn.out_proj": GDN,
		"lm_head": LMHead, "model.embed_tokens": Embed, "mtp.fc": MTP, "mtp.layers.0.mlp.up_proj": MTP, "mtp.layers.0.self_attn.o_proj": MTP,
		"model.layers.3.mlp.gate": Router, "model.layers.3.mlp.experts.7.up_proj": Expert, "model.norm": "", "model.visual.blocks.0.attn.proj": "",
		"model.layers.3.input_layernorm": "", "mtp.norm": "",
	}
	lookahead := regexp.MustCompile(`\(\?!(.*?)\)`)
	for name, want := range names {
		got, ok := groupOf(name + ".weight")
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("%s is of group %q, want %q", name, got, want)
		}
		var matched []Group
		for g, target := range targets {
			// Go's expressions have no negative look-ahead; those used
			// here stand at the front, so they are checked apart.
			expression := strings.TrimPrefix(target, "re:")
			denied := false
			for _, l := range lookahead.FindAllStringSubmatch(expression, -1) {
				denied = denied || regexp.MustCompile("^"+l[1]).MatchString(name)
			}
			if !denied && regexp.MustCompile(lookahead.ReplaceAllString(expression, "")).MatchString(name) {
				matched = append(matched, g)
			}
		}
		if want == "" && len(matched) > 0 || want != "" && !slices.Equal(matched, []Group{want}) {
			t.Errorf("%s is matched by %v, want %q", name, matched, want)
		}
	}
}

func BenchmarkNVFP4(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	w := matrix("w", 256, 1024, func(int) float32 { return float32(rng.NormFloat64()) })
	b.SetBytes(int64(len(w.Data)))
	for b.Loop() {
		if _, err := toNVFP4(b.Context(), w, 500); err != nil {
			b.Fatal(err)
		}
	}
}
