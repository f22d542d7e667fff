package quantize

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"velo/engine/weights"
)

// The codes are those that compressed-tensors computes; the file is made by
// engine/weights/testdata/make_quantised.py.
func TestSameCodesAsCompressedTensors(t *testing.T) {
	file, err := os.ReadFile("../weights/testdata/quantised.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(file)
	var header map[string]struct {
		Shape   []int
		Offsets [2]int `json:"data_offsets"`
	}
	if err := json.Unmarshal(file[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	data := func(name string) []byte {
		e, ok := header[name]
		if !ok {
			t.Fatalf("no %s", name)
		}
		return file[8+n:][e.Offsets[0]:e.Offsets[1]]
	}
	source := &weights.Tensor{Name: "source", Type: weights.F32, Shape: header["source"].Shape, Data: data("source")}
	amax, _, err := largest(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	divisor := maxE2M1 * maxE4M3 / amax
	if want := math.Float32frombits(binary.LittleEndian.Uint32(data("packed.weight_global_scale"))); divisor != want {
		t.Errorf("divisor %v, want %v", divisor, want)
	}
	four, err := toNVFP4(t.Context(), source, divisor)
	if err != nil {
		t.Fatal(err)
	}
	scales := data("packed.weight_scale")
	for i, s := range four.Scale {
		// An all-zero group may have any scale: ours is the smallest.
		if zero := bytes.Equal(four.Data[8*i:8*i+8], make([]byte, 8)); s != scales[i] && !zero {
			t.Errorf("scale %d is %#x, want %#x", i, s, scales[i])
		}
	}
	if want := data("packed.weight_packed"); !bytes.Equal(four.Data, want) {
		t.Errorf("NVFP4 codes differ")
	}
	eight, err := toFP8(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range data("row.weight") {
		if eight.Data[i] != want {
			t.Fatalf("FP8 code %d is %#x, want %#x", i, eight.Data[i], want)
		}
	}
	if !bytes.Equal(eight.Scale, data("row.weight_scale")) {
		t.Error("FP8 scales differ")
	}
}

// transformers with compressed-tensors loads a written folder and agrees on
// every weight. It runs where $VELO_TRANSFORMERS_PYTHON is a Python that has
// both.
func TestTransformersAgrees(t *testing.T) {
	python := os.Getenv("VELO_TRANSFORMERS_PYTHON")
	if python == "" {
		t.Skip("not run: set VELO_TRANSFORMERS_PYTHON to a Python with torch, transformers and compressed-tensors")
	}
	m := llama(t)
	recipe, err := ParseRecipe("all,attn:fp8")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "small")
	if _, err := Write(t.Context(), m, path, Options{Recipe: recipe}); err != nil {
		t.Fatal(err)
	}
	q, err := weights.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	header := map[string]any{}
	var data []byte
	for _, name := range q.Names() {
		x, _ := q.Tensor(name)
		from := len(data)
		row := make([]float32, x.Cols())
		for i := range x.Rows() {
			x.Row(row, i)
			for _, v := range row {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
			}
		}
		header[name] = map[string]any{"dtype": "F32", "shape": x.Shape, "data_offsets": []int{from, len(data)}}
	}
	want := filepath.Join(t.TempDir(), "want.safetensors")
	if err := os.WriteFile(want, safetensors(header, data), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "testdata/check_transformers.py", path, want).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", bytes.TrimSpace(out[max(0, len(out)-200):]))
}

// safetensors is a file of that header and data.
func safetensors(header map[string]any, data []byte) []byte {
	raw, _ := json.Marshal(header)
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(raw))), append(raw, data...)...)
}

// llama writes and opens a random Llama folder of two layers, head and
// embedding apart.
func llama(t *testing.T) *weights.Model {
	t.Helper()
	shapes := map[string][]int{"model.embed_tokens.weight": {64, 64}, "model.norm.weight": {64}, "lm_head.weight": {64, 64}}
	for i := range 2 {
		l := fmt.Sprintf("model.layers.%d.", i)
		for name, shape := range map[string][]int{
			"input_layernorm": {64}, "post_attention_layernorm": {64}, "self_attn.q_proj": {64, 64}, "self_attn.k_proj": {32, 64},
			"self_attn.v_proj": {32, 64}, "self_attn.o_proj": {64, 64}, "mlp.gate_proj": {96, 64}, "mlp.up_proj": {96, 64}, "mlp.down_proj": {64, 96},
		} {
			shapes[l+name+".weight"] = shape
		}
	}
	rng := rand.New(rand.NewPCG(8, 9))
	header := map[string]any{}
	var data []byte
	for name, shape := range shapes {
		n := 1
		for _, d := range shape {
			n *= d
		}
		from := len(data)
		for range n {
			data = binary.LittleEndian.AppendUint16(data, encodeBF16(float32(rng.NormFloat64()/8)))
		}
		header[name] = map[string]any{"dtype": "BF16", "shape": shape, "data_offsets": []int{from, len(data)}}
	}
	dir := t.TempDir()
	config := `{"architectures":["LlamaForCausalLM"],"model_type":"llama","num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4,
		"num_key_value_heads":2,"intermediate_size":96,"vocab_size":64,"max_position_embeddings":128,"rms_norm_eps":1e-5,"hidden_act":"silu",
		"tie_word_embeddings":false,"bos_token_id":1,"eos_token_id":2}`
	for name, content := range map[string][]byte{"config.json": []byte(config), "model.safetensors": safetensors(header, data)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
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
