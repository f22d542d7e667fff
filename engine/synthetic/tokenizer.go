package synthetic

import (
	"encoding/json"
	"fmt"
	"strconv"

	"velo/engine/weights"
)

// end is the text of the last id, which ends an answer.
const end = "<|endoftext|>"

// Served is Open with a tokenizer, for an engine that takes texts.
func Served(name string) (*weights.Model, error) {
	m, err := Open(name)
	if err != nil {
		return nil, err
	}
	files, err := tokenizer()
	if err != nil {
		return nil, fmt.Errorf("cannot make a tokenizer for %s: %w", m.Path, err)
	}
	return weights.Shaped(m.Path, &m.Config, typeOf(m), files)
}

// typeOf is the format of a model's matrices.
func typeOf(m *weights.Model) weights.Type {
	t, _ := m.Tensor("model.layers.0.mlp.down_proj.weight")
	return t.Type
}

// tokenizer is byte-level and without merges: a text has as many tokens as bytes. All ids after
// those of the bytes are words of their own, so what the model says can be written out.
func tokenizer() (weights.TokenizerFiles, error) {
	vocab := make(map[string]int, Vocab)
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if b < '!' || b > '~' && b < 0xA1 || b == 0xAD {
			r = next
			next++
		}
		vocab[string(r)] = b
	}
	for id := 256; id < Vocab-1; id++ {
		vocab["Ġw"+strconv.FormatInt(int64(id), 36)] = id
	}
	text, err := json.Marshal(map[string]any{
		"version": "1.0",
		"added_tokens": []map[string]any{{"id": Vocab - 1, "content": end, "single_word": false, "lstrip": false, "rstrip": false,
			"normalized": false, "special": true}},
		"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true},
		"decoder":       map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true},
		"model":         map[string]any{"type": "BPE", "vocab": vocab, "merges": [][]string{}},
	})
	if err != nil {
		return weights.TokenizerFiles{}, err
	}
	config, err := json.Marshal(map[string]any{"eos_token": end, "tokenizer_class": "Qwen2Tokenizer"})
	return weights.TokenizerFiles{JSON: text, Config: config}, err
}
