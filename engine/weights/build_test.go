package weights

import (
	"bytes"
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
)

// Writers of small model files, correct or wrong at will.

// safetensorsFile lays tensors out one after another.
func safetensorsFile(list []stored) []byte {
	var header, data bytes.Buffer
	header.WriteString(`{"__metadata__":{"format":"pt"}`)
	for _, s := range list {
		shape, _ := json.Marshal(append([]int{}, s.shape...))
		fmt.Fprintf(&header, `,%q:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, s.name, s.dtype, shape, data.Len(), data.Len()+len(s.data))
		data.Write(s.data)
	}
	header.WriteByte('}')
	return headed(header.String(), data.Bytes())
}

// headed is a safetensors file with the given header.
func headed(header string, data []byte) []byte {
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(file, header...), data...)
}

// meta is one entry of GGUF metadata.
type meta struct {
	key   string
	value any
}

// ggufSource is a tensor to be written, dims in the file's order, innermost
// first.
type ggufSource struct {
	name   string
	dims   []uint64
	kind   uint32
	data   []byte
	offset int64 // where it claims to lie; −1 for where it does
}

func ggufString(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
}

func ggufFile(metadata []meta, tensors []ggufSource) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32([]byte("GGUF"), 3)
	b = le.AppendUint64(b, uint64(len(tensors)))
	b = le.AppendUint64(b, uint64(len(metadata)))
	for _, m := range metadata {
		b = ggufString(b, m.key)
		switch v := m.value.(type) {
		case uint32:
			b = le.AppendUint32(le.AppendUint32(b, 4), v)
		case float32:
			b = le.AppendUint32(le.AppendUint32(b, 6), math.Float32bits(v))
		case string:
			b = ggufString(le.AppendUint32(b, 8), v)
		case []uint32:
			b = le.AppendUint32(le.AppendUint32(b, 9), 4)
			b = le.AppendUint64(b, uint64(len(v)))
			for _, n := range v {
				b = le.AppendUint32(b, n)
			}
		case []string:
			b = le.AppendUint32(le.AppendUint32(b, 9), 8)
			b = le.AppendUint64(b, uint64(len(v)))
			for _, s := range v {
				b = ggufString(b, s)
			}
		default:
			panic(fmt.Sprintf("no metadata of type %T", v))
		}
	}
	var data []byte
	for _, t := range tensors {
		b = ggufString(b, t.name)
		b = le.AppendUint32(b, uint32(len(t.dims)))
		for _, d := range t.dims {
			b = le.AppendUint64(b, d)
		}
		b = le.AppendUint32(b, t.kind)
		data = append(data, make([]byte, (32-len(data)%32)%32)...)
		offset := uint64(len(data))
		if t.offset >= 0 {
			offset = uint64(t.offset)
		}
		b = le.AppendUint64(b, offset)
		data = append(data, t.data...)
	}
	b = append(b, make([]byte, (32-len(b)%32)%32)...)
	return append(b, data...)
}

// floatBytes are random values around zero in single precision.
func floatBytes(rng *rand.Rand, n int) []byte {
	var b []byte
	for range n {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(rng.NormFloat64())))
	}
	return b
}

// tinyConfigs are config.json for a small model of each architecture.
var tinyConfigs = map[string]string{
	"llama": `{"model_type":"llama","num_hidden_layers":2,"hidden_size":32,"num_attention_heads":4,"num_key_value_heads":2,
		"intermediate_size":48,"vocab_size":64,"max_position_embeddings":128,"rms_norm_eps":1e-5,"rope_theta":50000,
		"hidden_act":"silu","bos_token_id":1,"eos_token_id":[2,3],
		"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":32}}`,
	"qwen2": `{"model_type":"qwen2","num_hidden_layers":1,"hidden_size":32,"num_attention_heads":4,"num_key_value_heads":4,
		"intermediate_size":48,"vocab_size":64,"max_position_embeddings":128,"rms_norm_eps":1e-6,"tie_word_embeddings":true,
		"use_sliding_window":false,"sliding_window":64,"max_window_layers":1,"eos_token_id":5}`,
	"qwen3": `{"model_type":"qwen3","num_hidden_layers":2,"hidden_size":32,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,
		"intermediate_size":48,"vocab_size":64,"max_position_embeddings":128,"rms_norm_eps":1e-6,
		"rope_parameters":{"rope_theta":1000000,"rope_type":"yarn","factor":4,"original_max_position_embeddings":64}}`,
	"qwen3_5": `{"model_type":"qwen3_5","tie_word_embeddings":false,"text_config":{"model_type":"qwen3_5_text","num_hidden_layers":4,"hidden_size":32,
		"num_attention_heads":2,"num_key_value_heads":1,"head_dim":16,"intermediate_size":48,"vocab_size":64,"max_position_embeddings":128,
		"rms_norm_eps":1e-6,"linear_num_key_heads":2,"linear_num_value_heads":4,"linear_key_head_dim":8,"linear_value_head_dim":8,
		"linear_conv_kernel_dim":4,"mtp_num_hidden_layers":1,
		"rope_parameters":{"rope_theta":10000000,"rope_type":"default","partial_rotary_factor":0.25,"mrope_section":[1,1,0]}}}`,
}

// tinyTensors makes all tensors that a configuration calls for, F32.
func tinyTensors(t testing.TB, config string) []stored {
	t.Helper()
	var m Model
	if err := m.configure([]byte(config), nil); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var list []stored
	for _, e := range m.Config.expect() {
		n := 1
		for _, d := range e.shape {
			n *= d
		}
		name := e.name
		if m.Config.Architecture == Qwen35 {
			if rest, ok := strings.CutPrefix(name, "model."); ok {
				name = "model.language_model." + rest
			}
		}
		list = append(list, stored{name: name, dtype: "F32", shape: e.shape, data: floatBytes(rng, n)})
	}
	return list
}

// files is a folder: names and contents.
type files map[string][]byte

// write puts the files into a new folder.
func (f files) write(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range f {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tinyFolder is a whole small model in one safetensors file.
func tinyFolder(t testing.TB, arch string) (files, []stored) {
	t.Helper()
	list := tinyTensors(t, tinyConfigs[arch])
	return files{
		"config.json":           []byte(tinyConfigs[arch]),
		"model.safetensors":     safetensorsFile(list),
		"tokenizer.json":        []byte(`{"version":"1.0"}`),
		"tokenizer_config.json": []byte(`{"chat_template":"hello"}`),
	}, list
}

// with replaces or adds tensors by name.
func with(list []stored, changes ...stored) []stored {
	list = slices.Clone(list)
next:
	for _, c := range changes {
		for i := range list {
			if list[i].name == c.name {
				list[i] = c
				continue next
			}
		}
		list = append(list, c)
	}
	return list
}

// without leaves tensors out.
func without(list []stored, names ...string) []stored {
	return slices.DeleteFunc(slices.Clone(list), func(s stored) bool { return slices.Contains(names, s.name) })
}

// opening opens and closes a model and returns the error.
func opening(t testing.TB, path string) error {
	t.Helper()
	m, err := Open(path)
	if err == nil {
		err = m.Close()
	}
	return err
}
