// Package enginetest makes whole small models for tests: random weights, a byte-level tokenizer and
// a chat template with reasoning and tools. They answer with nonsense, always the same.
//
// The package is under the Apache License 2.0, see engine/LICENSE.
package enginetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"velo/engine/weights"
)

// The families of small models.
const (
	Plain  = "qwen3"   // attention in every layer
	Hybrid = "qwen3_5" // recurrent layers among them, and a prediction head
)

// The special tokens, in the order of their ids, which follow those of the bytes and merges.
var Special = []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"}

// merges are pairs that make one token, so that tokens of several bytes are met too.
var merges = [][2]string{{"t", "h"}, {"th", "e"}, {"Ġ", "the"}, {"i", "n"}, {"e", "r"}, {"{", "\""}, {"\"", ":"}, {"}", "}"}, {"Ġ", "a"}, {"a", "n"}, {"an", "d"}}

// First is the id of Special[0].
const First = 256 + 11

// Vocab is how many ids there are.
const Vocab = First + 7

// Template is the models' chat template: ChatML with tools in JSON, and reasoning that
// enable_thinking switches.
const Template = `{%- if tools %}{{- '<|im_start|>system\n' }}{%- if messages[0].role == 'system' %}{{- messages[0].content + '\n\n' }}{%- endif %}{{- "# Tools\n<tools>" }}{%- for tool in tools %}{{- "\n" }}{{- tool | tojson }}{%- endfor %}{{- "\n</tools>\nAnswer with <tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call><|im_end|>\n" }}{%- elif messages[0].role == 'system' %}{{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}{%- endif %}{%- for message in messages %}{%- if message.role == 'user' %}{{- '<|im_start|>user\n' + message.content + '<|im_end|>\n' }}{%- elif message.role == 'assistant' %}{{- '<|im_start|>assistant\n' }}{%- if message.content %}{{- message.content }}{%- endif %}{%- for call in message.tool_calls or [] %}{{- '\n<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' }}{{- call.function.arguments | tojson }}{{- '}\n</tool_call>' }}{%- endfor %}{{- '<|im_end|>\n' }}{%- elif message.role == 'tool' %}{{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' }}{%- endif %}{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}{%- endif %}`

// Folder writes a model of that family into a folder of the test's own and returns its path.
func Folder(t testing.TB, family string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny-"+family)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, family, 2048); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Write writes a model of that family, made for so many tokens, into an existing folder.
func Write(dir, family string, context int) error {
	config := map[string]any{
		"model_type": "qwen3", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
		"intermediate_size": 96, "vocab_size": Vocab, "max_position_embeddings": context, "rms_norm_eps": 1e-6, "tie_word_embeddings": false,
		"rope_parameters": map[string]any{"rope_theta": 10000.0, "rope_type": "default"}, "eos_token_id": First + 2,
	}
	switch family {
	case Plain:
	case Hybrid:
		config["model_type"] = "qwen3_5_text"
		config["num_hidden_layers"] = 4
		config["linear_num_key_heads"], config["linear_num_value_heads"] = 2, 4
		config["linear_key_head_dim"], config["linear_value_head_dim"], config["linear_conv_kernel_dim"] = 16, 16, 4
		config["layer_types"] = []string{weights.LinearAttention, weights.LinearAttention, weights.FullAttention, weights.LinearAttention}
		config["mtp_num_hidden_layers"] = 1
		config["rope_parameters"] = map[string]any{"rope_theta": 10000.0, "rope_type": "default", "partial_rotary_factor": 0.25, "mrope_section": []int{1, 1, 0}}
	default:
		return fmt.Errorf("there is no small model of family %q: there are %s and %s", family, Plain, Hybrid)
	}
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	if err := weights.WriteRandom(dir, text, 1); err != nil {
		return err
	}
	files := map[string]any{"tokenizer.json": tokenizerJSON(), "tokenizer_config.json": map[string]any{
		"chat_template": Template, "eos_token": Special[2], "pad_token": Special[0], "add_bos_token": false, "tokenizer_class": "Qwen2Tokenizer"},
		"generation_config.json": map[string]any{"eos_token_id": []int{First + 2, First}, "do_sample": true, "temperature": 0.7, "top_p": 0.8, "top_k": 20}}
	for name, content := range files {
		text, err := json.Marshal(content)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// tokenizerJSON is a byte-level BPE with few merges.
func tokenizerJSON() map[string]any {
	vocab, ids := map[string]int{}, 0
	add := func(s string) { vocab[s] = ids; ids++ }
	for _, s := range byteNames() {
		add(s)
	}
	pairs := [][]string{}
	for _, m := range merges {
		pairs = append(pairs, m[:])
		add(m[0] + m[1])
	}
	var added []map[string]any
	for i, s := range Special {
		added = append(added, map[string]any{"id": First + i, "content": s, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": i < 3})
	}
	return map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added, "normalizer": nil,
		"pre_tokenizer":  map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true},
		"post_processor": nil, "decoder": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": true},
		"model": map[string]any{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
			"fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": pairs},
	}
}

// byteNames are the characters that a byte-level vocabulary writes the 256 bytes with (Radford et
// al. 2019, GPT-2): printable ones as they are, the others from U+0100 on.
func byteNames() []string {
	names, next := make([]string, 256), 256
	for b := range names {
		r := rune(b)
		if b < '!' || b > '~' && b < 0xA1 || b == 0xAD {
			r = rune(next)
			next++
		}
		names[b] = string(r)
	}
	return names
}
