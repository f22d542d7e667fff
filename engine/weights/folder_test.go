package weights

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Every architecture opens from one file, from two with an index and from two
// without, and all give the same bytes.
func TestFolders(t *testing.T) {
	for arch := range tinyConfigs {
		t.Run(arch, func(t *testing.T) {
			one, list := tinyFolder(t, arch)
			half := len(list) / 2
			index := map[string]string{}
			for i, s := range list {
				index[s.name] = "a.safetensors"
				if i >= half {
					index[s.name] = "b.safetensors"
				}
			}
			rawIndex, _ := json.Marshal(map[string]any{"weight_map": index})
			parts := func(withIndex bool) files {
				f := files{"config.json": one["config.json"], "a.safetensors": safetensorsFile(list[:half]), "b.safetensors": safetensorsFile(list[half:])}
				if withIndex {
					f["model.safetensors.index.json"] = rawIndex
					// A file that the index does not mention is not read.
					f["consolidated.safetensors"] = []byte("not a safetensors file")
				}
				return f
			}
			for name, f := range map[string]files{"one": one, "index": parts(true), "no index": parts(false)} {
				m, err := Open(f.write(t))
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if got := len(m.Names()); got != len(list) {
					t.Errorf("%s: %d tensors, want %d", name, got, len(list))
				}
				for _, s := range list {
					x, ok := m.Tensor(strings.Replace(s.name, "language_model.", "", 1))
					if !ok || x.Type != F32 || !slices.Equal(x.Shape, s.shape) || !bytes.Equal(x.Data, s.data) {
						t.Errorf("%s: %s is missing or differs", name, s.name)
					}
				}
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// What config.json says arrives in Config.
func TestConfigs(t *testing.T) {
	read := func(arch string) Config {
		var m Model
		if err := m.configure([]byte(tinyConfigs[arch]), []byte(`{"eos_token_id":[2,7],"temperature":0.6,"top_k":20}`)); err != nil {
			t.Fatal(err)
		}
		if *m.Generation.Temperature != 0.6 || *m.Generation.TopK != 20 || m.Generation.TopP != nil {
			t.Errorf("generation %+v", m.Generation)
		}
		return m.Config
	}
	c := read("llama")
	if c.HeadDim != 8 || c.RopeTheta != 50000 || c.RopeScaling.Type != "llama3" || c.RopeScaling.HighFreqFactor != 4 ||
		c.BOS != 1 || !slices.Equal(c.EOS, []int{2, 3, 7}) || c.TieEmbeddings || c.AttentionBias || c.QKNorm || c.NormOnePlus || c.RotaryDim() != 8 {
		t.Errorf("llama: %+v", c)
	}
	c = read("qwen2")
	if !c.AttentionBias || c.OutputBias || !c.TieEmbeddings || c.BOS != -1 || c.SlidingWindow != 0 || !slices.Equal(c.LayerTypes, []string{FullAttention}) {
		t.Errorf("qwen2: %+v", c)
	}
	c = read("qwen3")
	if !c.QKNorm || c.HeadDim != 16 || c.RopeTheta != 1e6 || c.RopeScaling.Type != "yarn" || c.RopeScaling.BetaFast != 32 ||
		c.RopeScaling.AttentionFactor < 1.1386 || c.RopeScaling.AttentionFactor > 1.1387 { // 0.1 ln 4 + 1
		t.Errorf("qwen3: %+v", c)
	}
	c = read("qwen3_5")
	if !c.AttentionGate || !c.NormOnePlus || c.LinearTiled || c.RotaryDim() != 4 || c.MTPLayers != 1 || c.LinearValueHeads != 4 || c.ConvKernel != 4 ||
		!slices.Equal(c.LayerTypes, []string{LinearAttention, LinearAttention, LinearAttention, FullAttention}) {
		t.Errorf("qwen3_5: %+v", c)
	}
}

// A prediction head that the configuration mentions but the files lack is no
// error; half of one is.
func TestPredictionHead(t *testing.T) {
	f, list := tinyFolder(t, "qwen3_5")
	bare := slices.DeleteFunc(slices.Clone(list), func(s stored) bool { return strings.HasPrefix(s.name, "mtp.") })
	f["model.safetensors"] = safetensorsFile(bare)
	m, err := Open(f.write(t))
	if err != nil {
		t.Fatal(err)
	}
	if m.Config.MTPLayers != 0 {
		t.Errorf("%d prediction layers", m.Config.MTPLayers)
	}
	m.Close()
	f["model.safetensors"] = safetensorsFile(without(list, "mtp.norm.weight"))
	if err := opening(t, f.write(t)); err == nil || !strings.Contains(err.Error(), "mtp.norm.weight is missing") {
		t.Errorf("error %v", err)
	}
}

func TestChatTemplates(t *testing.T) {
	f, _ := tinyFolder(t, "qwen2")
	for _, c := range []struct {
		name, file, content, want string
	}{
		{"text", "tokenizer_config.json", `{"chat_template":"one"}`, "one"},
		{"list", "tokenizer_config.json", `{"chat_template":[{"name":"tool_use","template":"x"},{"name":"default","template":"two"}]}`, "two"},
		{"none", "tokenizer_config.json", `{}`, ""},
		{"null", "tokenizer_config.json", `{"chat_template":null}`, ""},
		{"own file", "chat_template.jinja", "three\n", "three\n"},
		{"JSON file", "chat_template.json", `{"chat_template":"four"}`, "four"},
	} {
		g := files{"tokenizer_config.json": []byte("{}")}
		for name, data := range f {
			if _, set := g[name]; !set {
				g[name] = data
			}
		}
		g[c.file] = []byte(c.content)
		m, err := Open(g.write(t))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if m.ChatTemplate() != c.want {
			t.Errorf("%s: %q, want %q", c.name, m.ChatTemplate(), c.want)
		}
		if string(m.TokenizerFiles().JSON) != `{"version":"1.0"}` {
			t.Errorf("%s: tokenizer.json is %q", c.name, m.TokenizerFiles().JSON)
		}
		m.Close()
	}
}

// What is wrong with a folder is said with file, tensor and reason.
func TestWrongFolders(t *testing.T) {
	good, list := tinyFolder(t, "llama")
	const q = "model.layers.1.self_attn.q_proj.weight"
	rng := rand.New(rand.NewPCG(3, 4))
	shaped := func(name, dtype string, size int, shape ...int) stored {
		n := size
		for _, d := range shape {
			n *= d
		}
		return stored{name: name, dtype: dtype, shape: shape, data: floatBytes(rng, n/4+1)[:n]}
	}
	weights := func(changed []stored) files { return files{"model.safetensors": safetensorsFile(changed)} }
	for _, c := range []struct {
		name   string
		change files // nil content removes a file
		want   []string
	}{
		{"no config", files{"config.json": nil}, []string{"no config.json"}},
		{"no weights", files{"model.safetensors": nil}, []string{"no safetensors files"}},
		{"weights of PyTorch", files{"model.safetensors": nil, "pytorch_model.bin": []byte("x")}, []string{"no safetensors files; weights in PyTorch's own format"}},
		{"a GGUF file beside nothing", files{"config.json": nil, "m.gguf": []byte("x")}, []string{"no config.json; if ", "m.gguf is meant, give that file"}},
		{"no family", files{"config.json": []byte("{}")}, []string{"config.json: it names no model_type"}},
		{"damaged config", files{"config.json": []byte(`{"model_type":`)}, []string{"config.json is damaged"}},
		{"unknown model", files{"config.json": []byte(`{"model_type":"gpt2"}`)}, []string{"config.json", `"gpt2"`}},
		{"huge model", files{"config.json": []byte(strings.Replace(tinyConfigs["llama"], `"vocab_size":64`, `"vocab_size":99999999999`, 1))}, []string{"vocabulary size is 99999999999"}},
		{"odd heads", files{"config.json": []byte(strings.Replace(tinyConfigs["llama"], `"num_key_value_heads":2`, `"num_key_value_heads":3`, 1))}, []string{"share 3 key/value heads"}},
		{"gptq", files{"config.json": []byte(strings.Replace(tinyConfigs["llama"], `{`, `{"quantization_config":{"quant_method":"gptq"},`, 1))}, []string{`quantised with "gptq"`}},
		{"experts", files{"config.json": []byte(strings.Replace(tinyConfigs["llama"], `{`, `{"num_experts":8,`, 1))}, []string{"8 experts"}},
		{"gelu", files{"config.json": []byte(strings.Replace(tinyConfigs["llama"], `"silu"`, `"gelu"`, 1))}, []string{`hidden_act "gelu"`}},
		{"longrope", files{"config.json": []byte(strings.Replace(tinyConfigs["llama"], `"llama3"`, `"longrope"`, 1))}, []string{`type "longrope"`}},
		{"token out of range", files{"config.json": []byte(strings.Replace(tinyConfigs["llama"], `[2,3]`, `[2,64]`, 1))}, []string{"token 64", "vocabulary of 64"}},
		{"missing tensor", weights(without(list, q)), []string{q + " is missing"}},
		{"wrong shape", weights(with(list, shaped(q, "F32", 4, 32, 31))), []string{q, "[32 31]", "[32 32]"}},
		{"integers", weights(with(list, shaped(q, "I32", 4, 32, 32))), []string{"model.safetensors", q, "I32"}},
		{"unknown tensor", weights(with(list, shaped("model.layers.1.self_attn.sinks", "F32", 4, 4))), []string{"self_attn.sinks", "no part of a llama model"}},
		{"layer too many", weights(with(list, shaped("model.layers.2.input_layernorm.weight", "F32", 4, 32))), []string{"model.layers.2.input_layernorm.weight"}},
		{"FP8 without scale", weights(with(list, shaped(q, "F8_E4M3", 1, 32, 32))), []string{q, "lacks its scales"}},
		{"FP8 with wrong scale", weights(with(list, shaped(q, "F8_E4M3", 1, 32, 32), shaped(q+"_scale", "F32", 4, 31))), []string{q, "scales of shape [31]"}},
		{"FP8 with integer scale", weights(with(list, shaped(q, "F8_E4M3", 1, 32, 32), shaped(q+"_scale", "I32", 4, 32))), []string{q, "number type I32"}},
		{"FP8 norm", weights(with(list, shaped("model.norm.weight", "F8_E4M3", 1, 32), shaped("model.norm.weight_scale", "F32", 4, 1))), []string{"model.norm.weight", "two dimensions"}},
		{"NVFP4 without scales", weights(with(without(list, q), shaped(q+"_packed", "U8", 1, 32, 16), stored{q + "_global_scale", "F32", []int{1}, []byte{0, 0, 128, 63}, ""})), []string{q, "lacks its scales"}},
		{"NVFP4 without global scale", weights(with(without(list, q), shaped(q+"_packed", "U8", 1, 32, 16), shaped(q+"_scale", "F8_E4M3", 1, 32, 2))), []string{"_global_scale"}},
		{"NVFP4 with global scale 0", weights(with(without(list, q), shaped(q+"_packed", "U8", 1, 32, 16), shaped(q+"_scale", "F8_E4M3", 1, 32, 2), stored{q + "_global_scale", "F32", []int{1}, make([]byte, 4), ""})), []string{"not one positive number"}},
		{"NVFP4 with wrong scales", weights(with(without(list, q), shaped(q+"_packed", "U8", 1, 32, 16), shaped(q+"_scale", "F8_E4M3", 1, 32, 1), stored{q + "_global_scale", "F32", []int{1}, []byte{0, 0, 128, 63}, ""})), []string{q, "[32 1]", "[32 2]"}},
		{"packed integers", weights(with(without(list, q), shaped(q+"_packed", "I32", 4, 32, 4))), []string{q, "only NVFP4"}},
		{"packed twice", weights(with(list, shaped(q+"_packed", "U8", 1, 32, 16), shaped(q+"_scale", "F8_E4M3", 1, 32, 2), stored{q + "_global_scale", "F32", []int{1}, []byte{0, 0, 128, 63}, ""})), []string{q}},
		{"stray scale", weights(with(list, shaped(q+"_scale", "F32", 4, 32))), []string{q + "_scale", "not stored in a quantised type"}},
		{"truncated", files{"model.safetensors": good["model.safetensors"][:len(good["model.safetensors"])-1]}, []string{"model.safetensors", "lm_head.weight", "truncated"}},
		{"index to a missing file", files{"model.safetensors.index.json": []byte(`{"weight_map":{"x":"y.safetensors"}}`)}, []string{"y.safetensors is missing"}},
		{"index leaves the folder", files{"model.safetensors.index.json": []byte(`{"weight_map":{"x":"../y.safetensors"}}`)}, []string{"index.json", "../y.safetensors"}},
		{"index to a missing tensor", files{"model.safetensors.index.json": []byte(`{"weight_map":{"x":"model.safetensors"}}`)}, []string{`"x" is missing`}},
		{"damaged index", files{"model.safetensors.index.json": []byte(`[`)}, []string{"index.json is damaged"}},
		{"empty index", files{"model.safetensors.index.json": []byte(`{}`)}, []string{"lists no tensors"}},
		{"twice without index", files{"model.safetensors": nil, "a.safetensors": good["model.safetensors"], "b.safetensors": good["model.safetensors"]}, []string{"both in a.safetensors and in b.safetensors"}},
		{"two names for one", weights(with(list, shaped("language_model."+q, "F32", 4, 32, 32))), []string{"are the same one"}},
	} {
		f := files{}
		for name, data := range good {
			f[name] = data
		}
		for name, data := range c.change {
			if f[name] = data; data == nil {
				delete(f, name)
			}
		}
		dir := f.write(t)
		err := opening(t, dir)
		if err == nil {
			t.Errorf("%s: it opened", c.name)
			continue
		}
		for _, w := range append(c.want, "cannot open model "+dir+": ") {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q lacks %q", c.name, err, w)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q is not one sentence", c.name, err)
		}
	}
}
