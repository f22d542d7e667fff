package weights

import (
	"path/filepath"
	"testing"
)

// FuzzIndex: whatever an index says, it names files of its own folder alone, and each tensor is in one.
func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"metadata":{"total_size":1},"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}`))
	f.Add([]byte(`{"weight_map":{"a":"../b.safetensors"}}`))
	f.Add([]byte(`{"weight_map":{"a":".safetensors","a":"c.safetensors"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		wanted, files, err := readIndex(raw)
		if err != nil {
			if wanted != nil || files != nil {
				t.Fatal("there is an index and an error")
			}
			return
		}
		if len(files) == 0 || len(files) > len(wanted) {
			t.Fatalf("%d files for %d tensors", len(files), len(wanted))
		}
		for _, file := range files {
			if filepath.Dir(filepath.Join("/models/m", file)) != "/models/m" {
				t.Fatalf("%q lies elsewhere", file)
			}
		}
	})
}

// FuzzConfig: a configuration that is taken is one that a model can be sized and listed by, however large
// its numbers are; nothing is taken for them.
func FuzzConfig(f *testing.F) {
	for _, config := range tinyConfigs {
		f.Add([]byte(config), []byte(`{"temperature":0.6,"top_k":20,"eos_token_id":[1,2],"do_sample":true}`))
	}
	f.Add([]byte(`{"model_type":"llama","text_config":{"model_type":"qwen3"},"num_hidden_layers":1024}`), []byte(`{"eos_token_id":9223372036854775807}`))
	f.Fuzz(func(t *testing.T, config, generation []byte) {
		m := &Model{tensors: map[string]*Tensor{}, halves: map[string]int{}}
		if m.configure(config, generation) != nil {
			return
		}
		c := &m.Config
		if len(c.LayerTypes) != c.Layers || c.Layers > 1<<10 || c.Heads < 1 || c.KVHeads < 1 || c.HeadDim < 1 {
			t.Fatalf("it was taken: %+v", c)
		}
		tensors := c.expect()
		if len(tensors) > 64*(c.Layers+2) {
			t.Fatalf("%d tensors for %d layers", len(tensors), c.Layers)
		}
		for _, e := range tensors {
			for _, n := range e.shape {
				if n < 1 {
					t.Fatalf("%s has shape %v", e.name, e.shape)
				}
			}
		}
		if m.check() == nil {
			t.Fatal("a model without a tensor is whole")
		}
	})
}

// FuzzTemplateText: a chat template in any of its forms.
func FuzzTemplateText(f *testing.F) {
	for _, raw := range []string{`"text"`, `null`, ``, `[{"name":"tool_use","template":"a"},{"name":"default","template":"b"}]`, `{"a":1}`, `[[]]`} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		text, err := templateText(raw)
		if err != nil && text != "" {
			t.Fatalf("%q and %v", text, err)
		}
		if len(text) > 3*len(raw) { // an invalid byte becomes a character of three
			t.Fatalf("%d bytes became %d", len(raw), len(text))
		}
	})
}
