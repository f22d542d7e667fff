package tokenizer

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// base is a small file in which one member at a time is replaced.
var base = map[string]string{
	"added_tokens":   `[{"id":3,"content":"<s>","special":true},{"id":4,"content":"</s>","special":true}]`,
	"normalizer":     `null`,
	"pre_tokenizer":  `{"type":"ByteLevel","add_prefix_space":false}`,
	"post_processor": `null`,
	"decoder":        `{"type":"ByteLevel"}`,
	"model":          `{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}`,
}

func file(member, value string) []byte {
	var b strings.Builder
	for _, key := range []string{"added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model"} {
		v := base[key]
		if key == member {
			v = value
		}
		if b.Len() > 0 {
			b.WriteString(",")
		}
		b.WriteString(`"` + key + `":` + v)
	}
	return []byte("{" + b.String() + "}")
}

// Whatever is unknown or wrong is named in one sentence, never passed over.
func TestFromJSONRefuses(t *testing.T) {
	for _, x := range []struct{ member, value, says string }{
		{"model", `{"type":"Unigram","vocab":{"a":0}}`, `model "Unigram"`},
		{"model", `{"type":"BPE","vocab":{},"merges":[]}`, `without a vocabulary`},
		{"model", `{"type":"BPE","vocab":{"a":0},"merges":["a b"]}`, `"b" is not in the vocabulary`},
		{"model", `{"type":"BPE","vocab":{"a":0,"b":1},"merges":["a b"]}`, `"ab" is not in the vocabulary`},
		{"model", `{"type":"BPE","vocab":{"a":0},"merges":["ab"]}`, `"ab" is not two tokens`},
		{"model", `{"type":"BPE","vocab":{"a":-1},"merges":[]}`, `id -1`},
		{"model", `{"type":"BPE","vocab":{"a":2000000000},"merges":[]}`, `id 2000000000`},
		{"model", `{"type":"BPE","vocab":{"a":9000000},"merges":[]}`, `largest id is 9000000`},
		{"model", `{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}`, `two tokens with id 0`},
		{"model", `{"type":"BPE","vocab":{"a":0},"merges":[],"unk_token":"<u>"}`, `unknown token "<u>"`},
		{"model", `{"type":"BPE","vocab":{"a":0},"merges":[],"dropout":0.1}`, `dropout`},
		{"model", `{"type":"BPE","vocab":{"a":0},"merges":[],"end_of_word_suffix":"</w>"}`, `end_of_word_suffix "</w>"`},
		{"model", `{"type":"BPE","vocab":{"a":0},"merges":[],"continuing_subword_prefix":"##"}`, `continuing_subword_prefix "##"`},
		{"model", `{"type":"BPE","vocab":{"a":0},"merges":[],"byte_fallback":true}`, `byte_fallback`},
		{"model", `{"type":"BPE","vocab":["a"],"merges":[]}`, `cannot read tokenizer.json`},
		{"normalizer", `{"type":"Precompiled"}`, `normalizer "Precompiled"`},
		{"normalizer", `{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Lowercase"}]}`, `normalizer "Lowercase"`},
		{"normalizer", `{"type":"Replace","pattern":{},"content":"x"}`, `neither a String nor a Regex`},
		{"normalizer", `{}`, `it has no type`},
		{"pre_tokenizer", `{"type":"BertPreTokenizer"}`, `pre_tokenizer "BertPreTokenizer"`},
		{"pre_tokenizer", `{"type":"Split","pattern":{"Regex":"(("},"behavior":"Isolated"}`, `regular expression "(("`},
		{"pre_tokenizer", `{"type":"Split","pattern":{"Regex":"a"},"behavior":"Sideways"}`, `behavior "Sideways"`},
		{"pre_tokenizer", `{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"Digits"}]}`, `after ByteLevel`},
		{"pre_tokenizer", `{"type":"Metaspace","replacement":"xy"}`, `one character`},
		{"pre_tokenizer", `{"type":"Metaspace","replacement":"_","prepend_scheme":"often"}`, `"often"`},
		{"post_processor", `{"type":"BertProcessing"}`, `post_processor "BertProcessing"`},
		{"post_processor", `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"X"}},{"Sequence":{"id":"A"}}],"special_tokens":{}}`, `"X" has no ids`},
		{"post_processor", `{"type":"TemplateProcessing","single":[],"special_tokens":{}}`, `leaves the text out`},
		{"post_processor", `{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}},{"SpecialToken":{"id":"X"}}],"special_tokens":{"X":{"ids":[99]}}}`, `id 99`},
		{"decoder", `{"type":"CTC"}`, `decoder "CTC"`},
		{"decoder", `{"type":"Strip","content":" ","start":0,"stop":1}`, `stop 1`},
		{"decoder", `{"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"Replace","pattern":{"String":"a"},"content":"b"}]}`, `decoder Replace after`},
		{"added_tokens", `[{"id":7,"content":"a"}]`, `has it as id 0`},
		{"added_tokens", `[{"id":-7,"content":"x"}]`, `id -7`},
		{"added_tokens", `{}`, `cannot read tokenizer.json`},
	} {
		tok, err := FromJSON(file(x.member, x.value), nil)
		if err == nil {
			t.Errorf("%s %s was taken: %v", x.member, x.value, tok.Name())
		} else if !strings.Contains(err.Error(), x.says) || !strings.HasPrefix(err.Error(), "cannot ") {
			t.Errorf("%s %s: the error is %q, want it to say %q", x.member, x.value, err, x.says)
		}
	}
	if _, err := FromJSON(file("", ""), nil); err != nil {
		t.Errorf("the file itself: %v", err)
	}
	if _, err := FromJSON([]byte(`{"model":`), nil); err == nil {
		t.Error("a file cut short was taken")
	}
}

func TestTokenizerConfig(t *testing.T) {
	template := `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}],"special_tokens":{"<s>":{"ids":[3]}}}`
	for _, x := range []struct {
		config        string
		bos           int32
		eos           []int32
		before, after []int32
	}{
		{``, 3, nil, []int32{3}, nil},
		{`{"bos_token":"<s>","eos_token":{"content":"</s>"}}`, 3, []int32{4}, []int32{3}, nil},
		{`{"bos_token":null,"eos_token":"</s>"}`, 3, []int32{4}, []int32{3}, nil},
		{`{"bos_token":"<s>","eos_token":"</s>","add_bos_token":false}`, 3, []int32{4}, nil, nil},
		{`{"bos_token":"<s>","eos_token":"</s>","add_bos_token":true,"add_eos_token":true}`, 3, []int32{4}, []int32{3}, []int32{4}},
		{`{"bos_token":"<new>","added_tokens_decoder":{"9":{"content":"<new>","special":true}}}`, 9, nil, []int32{3}, nil},
	} {
		tok, err := FromJSON(file("post_processor", template), []byte(x.config))
		if err != nil {
			t.Errorf("%s: %v", x.config, err)
			continue
		}
		if tok.BOS() != x.bos || !slices.Equal(tok.EOS(), x.eos) || !slices.Equal(tok.Before(), x.before) || !slices.Equal(tok.After(), x.after) {
			t.Errorf("%s: BOS %d, EOS %v, before %v, after %v", x.config, tok.BOS(), tok.EOS(), tok.Before(), tok.After())
		}
		if tok.AddBOS() != (len(x.before) > 0 && x.before[0] == x.bos) {
			t.Errorf("%s: adds BOS: %v", x.config, tok.AddBOS())
		}
	}
	for config, says := range map[string]string{
		`{"added_tokens_decoder":{"x":{"content":"y"}}}`:   `"x" is not an id`,
		`{"added_tokens_decoder":{"3":{"content":"<t>"}}}`: `calls it "<s>"`,
		`[]`: "cannot read tokenizer_config.json",
	} {
		if _, err := FromJSON(file("", ""), []byte(config)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: the error is %v, want %q", config, err, says)
		}
	}
}

func ggufOf(t testing.TB, family, model, pre string) map[string]any {
	t.Helper()
	var f jsonFile
	readJSON(t, "testdata/"+family+".json", &f)
	tokens := make([]string, len(f.Model.Vocab)+len(f.AddedTokens))
	types := make([]int32, len(tokens))
	top := 0
	for text, id := range f.Model.Vocab {
		tokens[id], types[id], top = text, typeNormal, max(top, int(id))
		if _, ok := fallbackByte(text); ok && model == "llama" {
			types[id] = typeByte
		}
	}
	for _, a := range f.AddedTokens {
		tokens[a.ID], types[a.ID], top = a.Content, typeUserDefined, max(top, int(a.ID))
		if a.Special {
			types[a.ID] = typeControl
		}
	}
	meta := map[string]any{"tokenizer.ggml.model": model, "tokenizer.ggml.tokens": tokens[:top+1], "tokenizer.ggml.token_type": types[:top+1]}
	if model == "gpt2" {
		meta["tokenizer.ggml.pre"] = pre
		var merges []string
		for _, m := range f.Model.Merges {
			merges = append(merges, m[0]+" "+m[1])
		}
		meta["tokenizer.ggml.merges"] = merges
		return meta
	}
	// A sentencepiece file has scores instead of merges: the earlier a token is made, the higher.
	scores := make([]float32, top+1)
	for rank := len(f.Model.Merges) - 1; rank >= 0; rank-- {
		m := f.Model.Merges[rank]
		scores[f.Model.Vocab[m[0]+m[1]]] = -float32(rank + 1)
	}
	meta["tokenizer.ggml.scores"] = scores
	meta["tokenizer.ggml.unknown_token_id"] = uint32(0)
	meta["tokenizer.ggml.bos_token_id"] = uint32(1)
	meta["tokenizer.ggml.eos_token_id"] = uint32(2)
	return meta
}

// A GGUF vocabulary encodes as the tokenizer.json from which it was made.
func TestFromGGUFAgrees(t *testing.T) {
	rule := nasty(t)
	for _, x := range []struct{ family, model, pre string }{
		{"gpt2", "gpt2", "gpt-2"}, {"smollm", "gpt2", "smollm"}, {"llama3", "gpt2", "llama-bpe"}, {"qwen2", "gpt2", "qwen2"},
		{"qwen35", "gpt2", "qwen35"}, {"gpt4o", "gpt2", "gpt-4o"}, {"tekken", "gpt2", "tekken"}, {"deepseek", "gpt2", "deepseek-v3"},
	} {
		tok, err := FromGGUF(ggufOf(t, x.family, x.model, x.pre))
		if err != nil {
			t.Errorf("%s: %v", x.family, err)
			continue
		}
		want := load(t, "testdata/"+x.family+".json")
		r := splitmix(3)
		for range 1000 {
			s := rule.string(&r, []string{"<|im_start|>", "<think>", "<|begin_of_text|>"})
			if a, b := tok.Encode(s, true), want.Encode(s, true); !slices.Equal(a, b) {
				t.Errorf("%s: %q is %v, from tokenizer.json %v", x.family, s, a, b)
				break
			}
			if ids := want.Encode(s, true); tok.Decode(ids) != want.Decode(ids) {
				t.Errorf("%s: %v is %q, from tokenizer.json %q", x.family, ids, tok.Decode(ids), want.Decode(ids))
				break
			}
		}
	}
}

// Sentencepiece with scores: the pair whose token scores highest first, of equal ones the leftmost;
// a character without a token becomes bytes; a space before the text.
func TestFromGGUFScores(t *testing.T) {
	meta := map[string]any{
		"tokenizer.ggml.model":            "llama",
		"tokenizer.ggml.tokens":           []any{"<unk>", "<s>", "</s>", "▁", "a", "b", "c", "ab", "bc", "▁a", "<0xC3>", "<0xA9>", "abc", "user"},
		"tokenizer.ggml.scores":           []float32{0, 0, 0, -9, -9, -9, -9, -2, -1, -2, 0, 0, -5, 0},
		"tokenizer.ggml.token_type":       []int32{2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 6, 6, 1, 4},
		"tokenizer.ggml.bos_token_id":     uint32(1),
		"tokenizer.ggml.eos_token_id":     uint32(2),
		"tokenizer.ggml.unknown_token_id": uint32(0),
	}
	tok, err := FromGGUF(meta)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int32{
		"abc":       {9, 8},           // ▁ a b c: bc scores highest, then ▁a
		"aab":       {9, 7},           // ▁a and ab score alike and do not meet
		"ab":        {9, 5},           // they meet: the leftmost, ▁a
		"é":         {3, 10, 11},      // bytes
		"x":         {3, 0},           // neither a token nor bytes
		"<s>ab</s>": {1, 9, 5, 2},     // control tokens; each text between has its space
		"a user a":  {9, 3, 13, 3, 9}, // a user's token stands in the text, which goes on with a space of its own
	} {
		if got := tok.Encode(text, true); !slices.Equal(got, want) {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
	if !tok.AddBOS() || !slices.Equal(tok.Before(), []int32{1}) || tok.BOS() != 1 || !slices.Equal(tok.EOS(), []int32{2}) {
		t.Errorf("BOS %d, before %v, EOS %v", tok.BOS(), tok.Before(), tok.EOS())
	}
	if got := tok.Decode(tok.Encode("abc é", false)); got != "abc é" {
		t.Errorf("decoded %q", got)
	}
	meta["tokenizer.ggml.add_bos_token"], meta["tokenizer.ggml.add_eos_token"], meta["tokenizer.ggml.add_space_prefix"] = false, true, false
	if tok, err = FromGGUF(meta); err != nil {
		t.Fatal(err)
	}
	if tok.AddBOS() || !slices.Equal(tok.After(), []int32{2}) || !slices.Equal(tok.Encode("ab", false), []int32{7}) || tok.Decode([]int32{9}) != " a" {
		t.Errorf("adds BOS %v, after %v, ab %v", tok.AddBOS(), tok.After(), tok.Encode("ab", false))
	}
}

func TestFromGGUFRefuses(t *testing.T) {
	for _, x := range []struct {
		key   string
		value any
		says  string
	}{
		{"tokenizer.ggml.model", "t5", `tokenizer.ggml.model "t5"`},
		{"tokenizer.ggml.model", nil, `tokenizer.ggml.model ""`},
		{"tokenizer.ggml.pre", "bloom", `tokenizer.ggml.pre "bloom"`},
		{"tokenizer.ggml.tokens", nil, `cannot find tokenizer.ggml.tokens`},
		{"tokenizer.ggml.tokens", []string{}, `holds 0 tokens`},
		{"tokenizer.ggml.tokens", []string{"\xff"}, `entry 0 is not UTF-8`},
		{"tokenizer.ggml.tokens", []any{1}, `holds a int`},
		{"tokenizer.ggml.tokens", 5, `is a int`},
		{"tokenizer.ggml.token_type", []int32{1}, `1 types for`},
		{"tokenizer.ggml.token_type", "x", `not a list of numbers`},
		{"tokenizer.ggml.merges", nil, `cannot find tokenizer.ggml.merges`},
		{"tokenizer.ggml.merges", []string{"xyz"}, `merge 0: "xyz" is not two tokens`},
		{"tokenizer.ggml.merges", []string{"中 文"}, `not in the vocabulary`},
		{"tokenizer.ggml.bos_token_id", uint32(100000), `no token has id 100000`},
	} {
		meta := ggufOf(t, "qwen2", "gpt2", "qwen2")
		if meta[x.key] = x.value; x.value == nil {
			delete(meta, x.key)
		}
		if _, err := FromGGUF(meta); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s = %v: the error is %v, want %q", x.key, x.value, err, x.says)
		}
	}
	meta := ggufOf(t, "llama2", "llama", "")
	meta["tokenizer.ggml.scores"] = []float32{1}
	if _, err := FromGGUF(meta); err == nil || !strings.Contains(err.Error(), "1 scores for") {
		t.Errorf("too few scores: %v", err)
	}
}

// Whatever loads must also work.
func use(t *testing.T, tok *Tokenizer, text string) {
	for _, special := range []bool{false, true} {
		ids := tok.Encode(text, special)
		for _, id := range ids {
			if id < 0 || int(id) >= tok.Vocab() {
				t.Fatalf("id %d of a vocabulary of %d", id, tok.Vocab())
			}
		}
		tok.Decode(ids)
	}
	half := len(text) / 2
	if got, want := tok.Prefixes([]string{text[:half], text[half:]}), tok.Count(text); got[1] != want {
		t.Fatalf("%q counts %d tokens in parts, %d whole", text, got[1], want)
	}
}

func FuzzFromJSON(f *testing.F) {
	for _, family := range families {
		var x map[string]json.RawMessage
		readJSON(f, "testdata/"+family+".json", &x)
		x["model"] = json.RawMessage(`{"type":"BPE","unk_token":"a","vocab":{"a":0,"b":1,"ab":2,"▁":3},"merges":[["a","b"]]}`)
		x["added_tokens"] = json.RawMessage(`[{"id":4,"content":"<s>","lstrip":true,"rstrip":true,"normalized":true}]`)
		data, _ := json.Marshal(x)
		f.Add(data, []byte(`{"bos_token":"<s>"}`), "ab <s> a")
	}
	for member, value := range base {
		f.Add(file(member, value), []byte(nil), "ab\n<s>")
	}
	f.Fuzz(func(t *testing.T, data, config []byte, text string) {
		if tok, err := FromJSON(data, config); err == nil {
			use(t, tok, text)
		}
	})
}

func FuzzFromGGUF(f *testing.F) {
	f.Add("gpt2", "qwen2", "a b c ab <s>", "a b", []byte{1, 1, 1, 1, 3}, "abc <s>", uint32(4))
	f.Add("llama", "", "a b c ab <s> ▁ <0x41>", "", []byte{1, 1, 1, 1, 3, 1, 6}, "abc <s>A", uint32(4))
	f.Fuzz(func(t *testing.T, model, pre, tokens, merges string, types []byte, text string, bos uint32) {
		list := strings.Fields(tokens)
		kinds, scores := make([]int32, len(types)), make([]float32, len(types))
		for i, b := range types {
			kinds[i], scores[i] = int32(b&7), float32(b>>3)
		}
		tok, err := FromGGUF(map[string]any{"tokenizer.ggml.model": model, "tokenizer.ggml.pre": pre, "tokenizer.ggml.tokens": list,
			"tokenizer.ggml.merges": strings.Split(merges, "\n"), "tokenizer.ggml.token_type": kinds, "tokenizer.ggml.scores": scores,
			"tokenizer.ggml.bos_token_id": bos, "tokenizer.ggml.unknown_token_id": bos})
		if err == nil {
			use(t, tok, text)
		}
	})
}

// FuzzEncode encodes any text, streams it back with every kind of vocabulary, and counts it in
// parts of the given length.
func FuzzEncode(f *testing.F) {
	var all []*Tokenizer
	for _, family := range families {
		all = append(all, load(f, "testdata/"+family+".json"))
	}
	for _, s := range nasty(f).Fragments {
		f.Add(s+" "+s, byte(3))
	}
	f.Fuzz(func(t *testing.T, text string, size byte) {
		var split []string
		for rest := text; rest != ""; {
			n := min(len(rest), int(size)+1)
			split, rest = append(split, rest[:n]), rest[n:]
		}
		for i, tok := range all {
			ids := tok.Encode(text, true)
			s := tok.NewStream()
			var b strings.Builder
			for _, id := range ids {
				b.WriteString(s.Push(id))
			}
			b.WriteString(s.Flush())
			if got, want := b.String(), tok.Decode(ids); got != want && !strings.Contains(want, "\uFFFD") {
				t.Fatalf("%s: streamed %q, decoded %q", families[i], got, want)
			}
			if len(split) > 0 {
				if got, want := tok.Prefixes(split)[len(split)-1], tok.Count(text); got != want {
					t.Fatalf("%s: %d tokens in parts, %d whole", families[i], got, want)
				}
			}
		}
	})
}

// Benchmarks read and write megabytes a second; the text is this package's own source and tests.
func benchmarkText(b *testing.B) string {
	b.Helper()
	var text strings.Builder
	for _, name := range []string{"pattern.go", "json.go", "testdata/make_tokenizers.py", "load_test.go", "doc.go", "added.go"} {
		data, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		text.Write(data)
	}
	return text.String()
}

func BenchmarkEncode(b *testing.B) {
	text := benchmarkText(b)
	for _, family := range families {
		tok := load(b, "testdata/"+family+".json")
		b.Run(family, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			var ids []int32
			for b.Loop() {
				ids = tok.AppendEncode(ids[:0], text, false)
			}
		})
	}
	b.Run("smollm2-real", func(b *testing.B) {
		tok := smolLM2(b)
		b.SetBytes(int64(len(text)))
		var ids []int32
		for b.Loop() {
			ids = tok.AppendEncode(ids[:0], text, false)
		}
	})
}

func BenchmarkOneLetter(b *testing.B) {
	tok := load(b, "testdata/qwen2.json")
	text := strings.Repeat("a", 1<<20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tok.Count(text)
	}
}

func BenchmarkStream(b *testing.B) {
	tok := load(b, "testdata/qwen2.json")
	text := benchmarkText(b)
	ids := tok.Encode(text, false)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s := tok.NewStream()
		for _, id := range ids {
			s.Push(id)
		}
	}
}
