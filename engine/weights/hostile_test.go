package weights

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Headers of safetensors files that lie.
func TestHostileSafetensors(t *testing.T) {
	entry := func(rest string) string {
		return `{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":` + rest + `}`
	}
	data := make([]byte, 64)
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "it is empty"},
		{"a pointer", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:00\n"), "git lfs pull"},
		{"a web page", []byte("\n<!DOCTYPE html><html>"), "it is a web page"},
		{"short", []byte("1234567"), "too short"},
		{"huge header", binary.LittleEndian.AppendUint64(nil, 1<<62), "header claims 4611686018427387904 bytes"},
		{"header past the end", binary.LittleEndian.AppendUint64(nil, 1), "but only 0 follow"},
		{"no JSON", headed("hello", data), "not a JSON object"},
		{"half JSON", headed(`{"a":`, data), "damaged entry"},
		{"open object", headed(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}`, data), "not valid JSON"},
		{"array", headed(`[1]`, data), "not a JSON object"},
		{"entry is text", headed(entry(`"x"`), data), `"b" has a damaged entry`},
		{"twice", headed(strings.Replace(entry(`{"dtype":"F32","shape":[2],"data_offsets":[8,16]}`), `"b"`, `"a"`, 1), data), `"a" is there twice`},
		{"unknown type", headed(entry(`{"dtype":"F7","shape":[2],"data_offsets":[8,16]}`), data), `"b" has the unknown number type "F7"`},
		{"overlap", headed(entry(`{"dtype":"F32","shape":[2],"data_offsets":[4,12]}`), data), `"a" and "b" overlap`},
		{"identical", headed(entry(`{"dtype":"F32","shape":[2],"data_offsets":[0,8]}`), data), `overlap`},
		{"reversed", headed(entry(`{"dtype":"F32","shape":[2],"data_offsets":[16,8]}`), data), `"b" lies at bytes 16 to 8`},
		{"past the end", headed(entry(`{"dtype":"F32","shape":[2],"data_offsets":[60,68]}`), data), `"b" lies at bytes 60 to 68`},
		{"offset overflow", headed(entry(`{"dtype":"F32","shape":[2],"data_offsets":[8,18446744073709551615]}`), data), `"b" lies at bytes`},
		{"negative", headed(entry(`{"dtype":"F32","shape":[-2],"data_offsets":[8,16]}`), data), `"b" has a damaged entry`},
		{"fraction", headed(entry(`{"dtype":"F32","shape":[2.5],"data_offsets":[8,16]}`), data), `"b" has a damaged entry`},
		{"shape overflow", headed(entry(`{"dtype":"F32","shape":[2147483647,2147483647,2147483647],"data_offsets":[8,16]}`), data), `larger than any file`},
		{"shape wraps to fit", headed(entry(`{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[8,8]}`), data), `larger than any file`},
		{"too small", headed(entry(`{"dtype":"F32","shape":[3],"data_offsets":[8,16]}`), data), `needs 12 bytes but has 8`},
		{"dimensions", headed(entry(`{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[8,12]}`), data), `9 dimensions`},
		{"one offset", headed(entry(`{"dtype":"F32","shape":[2],"data_offsets":[8]}`), data), `1 offsets`},
	} {
		_, err := parseSafetensors(c.file)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// tinyGGUF is a small Llama model as a GGUF file: metadata and tensors.
func tinyGGUF(t testing.TB) ([]meta, []ggufSource) {
	t.Helper()
	list := tinyTensors(t, tinyConfigs["llama"])
	names := map[string]string{}
	for from, to := range ggufNames {
		names[to] = from
	}
	layer := map[string]string{}
	for _, from := range []string{"attn_norm", "ffn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"} {
		layer[ggufLayerNames[from]] = from
	}
	var tensors []ggufSource
	for _, s := range list {
		name, ok := names[s.name]
		if rest, isLayer := strings.CutPrefix(s.name, "model.layers."); isLayer {
			number, part, _ := strings.Cut(rest, ".")
			name, ok = "blk."+number+"."+layer[strings.TrimSuffix(part, ".weight")]+".weight", true
		}
		if !ok {
			t.Fatalf("no GGUF name for %s", s.name)
		}
		x := ggufSource{name: name, data: s.data, offset: -1}
		for i := range s.shape {
			x.dims = append(x.dims, uint64(s.shape[len(s.shape)-1-i]))
		}
		tensors = append(tensors, x)
	}
	return []meta{
		{"general.architecture", "llama"}, {"llama.block_count", uint32(2)}, {"llama.embedding_length", uint32(32)},
		{"llama.attention.head_count", uint32(4)}, {"llama.attention.head_count_kv", []uint32{2, 2}},
		{"llama.feed_forward_length", uint32(48)}, {"llama.context_length", uint32(128)},
		{"llama.attention.layer_norm_rms_epsilon", float32(1e-5)}, {"llama.rope.freq_base", float32(50000)},
		{"llama.rope.dimension_count", uint32(8)},
		{"tokenizer.ggml.tokens", []string{"a", "b"}}, {"tokenizer.ggml.eos_token_id", uint32(2)}, {"tokenizer.chat_template", "hi"},
	}, tensors
}

func writeGGUF(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A small GGUF model opens; q and k come in transformers' order.
func TestGGUFModel(t *testing.T) {
	metadata, tensors := tinyGGUF(t)
	m, err := Open(writeGGUF(t, ggufFile(metadata, tensors)))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if c := m.Config; c.KVHeads != 2 || c.HeadDim != 8 || c.RMSEps != 1e-5 || c.TieEmbeddings || c.Vocab != 64 || c.BOS != -1 || m.ChatTemplate() != "hi" {
		t.Errorf("config %+v", c)
	}
	for _, s := range tensors {
		if !strings.Contains(s.name, "attn_k.weight") && !strings.Contains(s.name, "attn_v.weight") {
			continue
		}
		name, _ := m.Config.canonical(s.name)
		x, _ := m.Tensor(name)
		file := &Tensor{Type: F32, Shape: x.Shape, Data: s.data}
		got, want := make([]float32, 32), make([]float32, 32)
		for i := range x.Rows() {
			from := i
			if strings.Contains(s.name, "attn_k") {
				// Two heads of eight rows, stored 0 4 1 5 2 6 3 7.
				from = i/8*8 + []int{0, 2, 4, 6, 1, 3, 5, 7}[i%8]
			}
			x.Row(got, i)
			file.Row(want, from)
			for j := range got {
				if got[j] != want[j] {
					t.Fatalf("%s row %d is not row %d of the file", name, i, from)
				}
			}
		}
	}
}

// GGUF files that lie.
func TestHostileGGUF(t *testing.T) {
	metadata, tensors := tinyGGUF(t)
	set := func(key string, value any) func([]meta, []ggufSource) ([]meta, []ggufSource) {
		return func(m []meta, s []ggufSource) ([]meta, []ggufSource) {
			for i := range m {
				if m[i].key == key {
					m[i].value = value
					return m, s
				}
			}
			return append(m, meta{key, value}), s
		}
	}
	first := func(change func(*ggufSource)) func([]meta, []ggufSource) ([]meta, []ggufSource) {
		return func(m []meta, s []ggufSource) ([]meta, []ggufSource) { change(&s[1]); return m, s }
	}
	name := tensors[1].name // blk.0.attn_norm.weight
	for _, c := range []struct {
		name   string
		change func([]meta, []ggufSource) ([]meta, []ggufSource)
		want   []string
	}{
		{"unknown architecture", set("general.architecture", "mamba"), []string{`"mamba"`}},
		{"many layers", set("llama.block_count", uint32(1<<31)), []string{"llama.block_count"}},
		{"layers missing", set("llama.block_count", uint32(3)), []string{"model.layers.2.", "missing"}},
		{"layers too few", set("llama.block_count", uint32(1)), []string{`"blk.1.`, "no part"}},
		{"no heads", set("llama.attention.head_count", uint32(0)), []string{"0 attention heads"}},
		{"heads differ", set("llama.attention.head_count_kv", []uint32{2, 1}), []string{"head_count_kv", "same for all layers"}},
		{"head count is text", set("llama.attention.head_count", "four"), []string{"llama.attention.head_count is four"}},
		{"wide keys", set("llama.attention.key_length", uint32(1<<20)), []string{"rotates 8 of 1048576"}},
		{"unequal keys and values", set("llama.attention.value_length", uint32(16)), []string{"keys have 8 dimensions and its values 16"}},
		{"odd rotation", set("llama.rope.dimension_count", uint32(7)), []string{"rotates 7 of 8"}},
		{"no epsilon", set("llama.attention.layer_norm_rms_epsilon", float32(0)), []string{"epsilon"}},
		{"experts", set("llama.expert_count", uint32(8)), []string{"llama.expert_count is 8"}},
		{"scaling", set("llama.rope.scaling.type", "longrope"), []string{`"longrope"`}},
		{"alignment 0", set("general.alignment", uint32(0)), []string{"general.alignment is 0"}},
		{"alignment 48", set("general.alignment", uint32(48)), []string{"general.alignment is 48"}},
		{"key twice", func(m []meta, s []ggufSource) ([]meta, []ggufSource) { return append(m, m[0]), s }, []string{"there twice"}},
		{"part of a split", set("split.count", uint32(3)), []string{"one of 3 parts"}},
		{"unknown type", first(func(s *ggufSource) { s.kind = 99 }), []string{name, "number 99"}},
		{"unread type", first(func(s *ggufSource) { s.kind = 10 }), []string{name, "Q2_K"}},
		{"quantised norm", first(func(s *ggufSource) { s.kind = 8; s.data = make([]byte, 34) }), []string{"input_layernorm", "Q8_0", "must be F32"}},
		{"half a block", first(func(s *ggufSource) { s.kind = 12 }), []string{name, "multiple of the 256"}},
		{"no dimensions", first(func(s *ggufSource) { s.dims = nil }), []string{name, "0 dimensions"}},
		{"five dimensions", first(func(s *ggufSource) { s.dims = []uint64{1, 1, 1, 1, 32} }), []string{name, "5 dimensions"}},
		{"dimension 0", first(func(s *ggufSource) { s.dims = []uint64{0} }), []string{name, "size 0"}},
		{"huge", first(func(s *ggufSource) { s.dims = []uint64{1 << 40, 1 << 40} }), []string{name, "larger than any file"}},
		{"past the end", first(func(s *ggufSource) { s.dims = []uint64{1 << 40} }), []string{name, "truncated"}},
		{"offset past the end", first(func(s *ggufSource) { s.offset = 1 << 60 }), []string{name, "truncated"}},
		{"offset not aligned", first(func(s *ggufSource) { s.offset = 1 }), []string{name, "multiple of 32"}},
		{"overlap", first(func(s *ggufSource) { s.offset = 32 }), []string{name, "overlap"}},
		{"twice", first(func(s *ggufSource) { s.name = "token_embd.weight" }), []string{"token_embd.weight", "twice"}},
		{"wrong shape", first(func(s *ggufSource) { s.dims = []uint64{16} }), []string{"input_layernorm", "[16]", "[32]"}},
		{"unknown tensor", first(func(s *ggufSource) { s.name = "blk.0.attn_sinks.weight" }), []string{"blk.0.attn_sinks.weight", "no part"}},
		{"layer 01", first(func(s *ggufSource) { s.name = "blk.00.attn_norm.weight" }), []string{"blk.00.attn_norm.weight"}},
		{"rope divisors", func(m []meta, s []ggufSource) ([]meta, []ggufSource) {
			return m, append(s, ggufSource{name: "rope_freqs.weight", dims: []uint64{3}, data: make([]byte, 12), offset: -1})
		}, []string{"3 rotary frequency divisors for 4"}},
	} {
		m, s := c.change(append([]meta{}, metadata...), append([]ggufSource{}, tensors...))
		path := writeGGUF(t, ggufFile(m, s))
		err := opening(t, path)
		if err == nil {
			t.Errorf("%s: it opened", c.name)
			continue
		}
		for _, w := range append(c.want, "cannot open model "+path) {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q lacks %q", c.name, err, w)
			}
		}
	}
	whole := ggufFile(metadata, tensors)
	for n := range len(whole) {
		if n > 4096 && n%997 != 0 {
			continue
		}
		if g, err := parseGGUF(whole[:n]); err == nil {
			t.Fatalf("cut to %d of %d bytes it still has %d tensors", n, len(whole), len(g.tensors))
		}
	}
}

// A count in a header must not make memory be taken that the file does not
// back.
func TestNoMemoryForPromises(t *testing.T) {
	le := binary.LittleEndian
	start := func(tensors, keys uint64) []byte {
		return le.AppendUint64(le.AppendUint64(le.AppendUint32([]byte("GGUF"), 3), tensors), keys)
	}
	array := func(kind uint32, n uint64) []byte {
		b := le.AppendUint32(ggufString(start(0, 1), "k"), 9)
		return append(le.AppendUint64(le.AppendUint32(b, kind), n), make([]byte, 64)...)
	}
	for name, file := range map[string][]byte{
		"tensors":      start(1<<20, 0),
		"all tensors":  start(1<<63, 0),
		"keys":         start(0, 1<<16),
		"name":         le.AppendUint64(start(1, 0), 1<<40),
		"numbers":      array(10, 1<<61),
		"bytes":        array(0, 1<<40),
		"strings":      array(8, 1<<60),
		"arrays":       array(9, 1<<60),
		"unknown kind": array(77, 4),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := parseGGUF(file)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
			t.Errorf("%s: %d bytes were allocated for a file of %d", name, got, len(file))
		}
	}
}

func TestOpenWhatIsNoModel(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, content, want string }{
		{"missing.gguf", "", "no such file"},
		{"empty.gguf", "", "does not begin with the letters GGUF"},
		{"text.gguf", "hello", "does not begin with the letters GGUF"},
		{"empty2.gguf", "", "it is empty, so download or copy it again"},
		{"pointer.gguf", "version https://git-lfs.github.com/spec/v1\n", "git lfs pull"},
		{"page.gguf", "<html><head>", "it is a web page"},
		{"config.json", "{}", "a model is a .gguf file, or a folder with config.json and safetensors"},
		{"big.gguf", "GGUF\x00\x00\x00\x03", "big-endian"},
		{"old.gguf", "GGUF\x01\x00\x00\x00", "version 1"},
		{"x.safetensors", "hello", "give the folder"},
	} {
		path := filepath.Join(dir, c.name)
		if c.name != "missing.gguf" {
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := opening(t, path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// However a file is damaged, opening it neither panics nor hangs, and what
// opens can be read to the last row.
func FuzzGGUF(f *testing.F) {
	metadata, tensors := tinyGGUF(f)
	f.Add(ggufFile(metadata, tensors))
	f.Add(readFile(f, "testdata/types.gguf"))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := parseGGUF(data)
		if err != nil {
			return
		}
		for _, x := range g.tensors {
			w := &Tensor{Name: x.name, Type: x.kind, Shape: x.shape, Data: x.data}
			if len(w.Data) != w.Rows()*w.RowBytes() {
				t.Fatalf("%s: %d bytes for %d rows of %d", x.name, len(w.Data), w.Rows(), w.RowBytes())
			}
			if w.Rows() > 0 && w.Cols() < 1<<20 {
				w.Row(make([]float32, w.Cols()), w.Rows()-1)
			}
		}
		m := &Model{tensors: map[string]*Tensor{}, halves: map[string]int{}}
		if m.configureGGUF(g) == nil && m.Config.valid() == nil {
			for i := range g.tensors {
				if m.addGGUF(&g.tensors[i]) != nil {
					return
				}
			}
			if m.check() == nil {
				for name := range m.tensors {
					m.Tensor(name)
				}
			}
		}
	})
}

func FuzzSafetensors(f *testing.F) {
	folder, _ := tinyFolder(f, "qwen2")
	f.Add(folder["model.safetensors"], []byte(tinyConfigs["qwen2"]))
	small := []stored{
		{name: "a.weight", dtype: "F8_E4M3", shape: []int{2, 2}, data: make([]byte, 4)},
		{name: "a.weight_scale", dtype: "F32", shape: []int{2, 1}, data: make([]byte, 8)},
		{name: "b.weight_packed", dtype: "U8", shape: []int{1, 8}, data: make([]byte, 8)},
		{name: "b.weight_scale", dtype: "F8_E4M3", shape: []int{1, 1}, data: make([]byte, 1)},
		{name: "b.weight_global_scale", dtype: "F32", shape: []int{1}, data: []byte{0, 0, 128, 63}},
	}
	f.Add(safetensorsFile(small), []byte(tinyConfigs["qwen3_5"]))
	f.Fuzz(func(t *testing.T, data, config []byte) {
		m := &Model{tensors: map[string]*Tensor{}, halves: map[string]int{}}
		configured := m.configure(config, nil) == nil
		list, err := parseSafetensors(data)
		if err != nil || m.addFolder(list) != nil {
			return
		}
		for _, w := range m.tensors {
			if w.Rows() > 0 && w.Cols() < 1<<20 {
				w.Row(make([]float32, w.Cols()), w.Rows()-1)
			}
		}
		if configured {
			_ = m.check()
		}
	})
}
