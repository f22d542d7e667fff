package tokenizer

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Types of GGUF tokens (tokenizer.ggml.token_type).
const (
	typeNormal      = 1
	typeUnknown     = 2
	typeControl     = 3
	typeUserDefined = 4
	typeByte        = 6
)

// preset is what tokenizer.ggml.pre stands for: a byte-level pipeline whose parts a GGUF file does
// not carry.
type preset struct {
	nfc          bool
	digits       bool // each digit a word of its own, before the pattern
	patterns     []string
	ignoreMerges bool
	addBOS       bool // where the file does not say
}

var presets = func() map[string]preset {
	gpt2 := preset{patterns: []string{patternGPT2}}
	llama3 := preset{patterns: []string{patternLlama3}, ignoreMerges: true, addBOS: true}
	qwen2 := preset{nfc: true, patterns: []string{patternQwen2}}
	single := preset{digits: true, patterns: []string{patternGPT2}}
	deepseek := preset{patterns: []string{patternNumber3, patternKanaHan, patternDeepSeek}}
	return map[string]preset{
		"gpt-2":            gpt2,
		"llama3":           llama3,
		"llama-v3":         llama3,
		"llama-bpe":        llama3,
		"qwen2":            qwen2,
		"deepseek-r1-qwen": qwen2,
		"qwen35":           {nfc: true, patterns: []string{patternQwen35}},
		"smollm":           single,
		"starcoder":        single,
		"refact":           single,
		"gpt-4o":           {patterns: []string{patternGPT4o}},
		"llama4":           {patterns: []string{patternGPT4o}},
		"tekken":           {patterns: []string{patternTekken}, ignoreMerges: true, addBOS: true},
		"deepseek-v3":      deepseek,
		"hunyuan-dense":    deepseek,
	}
}()

// FromGGUF reads the vocabulary of a GGUF file from its metadata (keys tokenizer.ggml.*; arrays as
// slices of their element type or of any). Two models are known: gpt2, byte-level BPE with the
// pre-tokenizer that tokenizer.ggml.pre names, and llama, sentencepiece BPE with scores. A GGUF file
// does not say whether text is normalised: for Qwen it is to NFC, as the model was trained.
func FromGGUF(meta map[string]any) (*Tokenizer, error) {
	g := ggufMeta(meta)
	t := &Tokenizer{bos: -1}
	if err := t.fromGGUF(g); err != nil {
		return nil, fmt.Errorf("cannot load the tokenizer of the GGUF file: %w", err)
	}
	return t, nil
}

func (t *Tokenizer) fromGGUF(g ggufMeta) error {
	tokens, err := g.texts("tokenizer.ggml.tokens")
	if err != nil {
		return err
	}
	if len(tokens) == 0 || len(tokens) >= maxID {
		return fmt.Errorf("cannot use tokenizer.ggml.tokens: it holds %d tokens", len(tokens))
	}
	types, err := g.numbers("tokenizer.ggml.token_type")
	if err != nil {
		return err
	}
	if types != nil && len(types) != len(tokens) {
		return fmt.Errorf("cannot use tokenizer.ggml.token_type: %d types for %d tokens", len(types), len(tokens))
	}
	v := vocabulary{tokens: make(map[string]int32, len(tokens))}
	var added []addedToken
	for i, text := range tokens {
		kind := float64(typeNormal)
		if types != nil {
			kind = types[i]
		}
		if _, twice := v.tokens[text]; twice {
			// Files pad their vocabulary with tokens that repeat; the first one is meant.
			continue
		}
		v.tokens[text] = int32(i)
		if kind == typeControl || kind == typeUserDefined || kind == typeUnknown {
			added = append(added, addedToken{ID: int32(i), Content: text, Special: kind != typeUserDefined})
		}
	}
	var addBOS bool
	switch model, _ := g["tokenizer.ggml.model"].(string); model {
	case "gpt2":
		addBOS, err = t.gpt2(g, &v)
	case "llama":
		addBOS, err = t.llama(g, &v, tokens, types)
	default:
		return unknownKind("tokenizer.ggml.model", model, "gpt2, llama")
	}
	if err != nil {
		return err
	}
	if err := t.build(&v, added); err != nil {
		return err
	}
	t.name = fmt.Sprintf("GGUF vocabulary %s, %d tokens", fingerprint(tokens), len(tokens))
	return t.ends(g, addBOS)
}

// gpt2 sets up a byte-level model and returns whether it adds BOS where the file does not say.
func (t *Tokenizer) gpt2(g ggufMeta, v *vocabulary) (bool, error) {
	name, _ := g["tokenizer.ggml.pre"].(string)
	p, ok := presets[name]
	if !ok {
		names := make([]string, 0, len(presets))
		for n := range presets {
			names = append(names, n)
		}
		sort.Strings(names)
		return false, unknownKind("tokenizer.ggml.pre", name, strings.Join(names, ", "))
	}
	lines, err := g.texts("tokenizer.ggml.merges")
	if err != nil {
		return false, err
	}
	for i, line := range lines {
		pair, err := cutMerge(line)
		if err != nil {
			return false, fmt.Errorf("cannot use tokenizer.ggml.merges: merge %d: %w", i, err)
		}
		v.merges = append(v.merges, merge{pair[0], pair[1], int32(i)})
	}
	v.bytes, v.ignoreMerges = true, p.ignoreMerges
	if p.nfc {
		t.normalizer = unicodeForm{norm.NFC}
	}
	if add, _ := g["tokenizer.ggml.add_space_prefix"].(bool); add {
		t.pre = append(t.pre, leadingSpace{})
	}
	if p.digits {
		t.pre = append(t.pre, split{matcher(isNumeric), isolated, false})
	}
	for _, expr := range p.patterns {
		t.pre = append(t.pre, split{matchers[expr], isolated, false})
	}
	t.decoder = decoder{bytes: true}
	return p.addBOS, nil
}

// llama sets up a sentencepiece model. Its merges are all the ways to make a token of two others, in
// the order of the tokens' scores.
func (t *Tokenizer) llama(g ggufMeta, v *vocabulary, tokens []string, types []float64) (bool, error) {
	scores, err := g.numbers("tokenizer.ggml.scores")
	if err != nil {
		return false, err
	}
	if len(scores) != len(tokens) {
		return false, fmt.Errorf("cannot use tokenizer.ggml.scores: %d scores for %d tokens", len(scores), len(tokens))
	}
	var order []int
	for i, s := range scores {
		if math.IsNaN(s) {
			return false, fmt.Errorf("cannot use tokenizer.ggml.scores: score %d is not a number", i)
		}
		if types == nil || types[i] == typeNormal {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return 0
	})
	rank := int32(-1)
	last := math.Inf(1)
	for n, i := range order {
		if n == 0 || scores[i] != last {
			rank, last = rank+1, scores[i]
		}
		text := tokens[i]
		for at := range text {
			if at == 0 {
				continue
			}
			_, left := v.tokens[text[:at]]
			_, right := v.tokens[text[at:]]
			if left && right {
				v.merges = append(v.merges, merge{text[:at], text[at:], rank})
			}
		}
	}
	v.fallback, v.fuseUnk = true, true
	if id, ok := g.id("tokenizer.ggml.unknown_token_id"); ok && id < len(tokens) {
		v.unk = &tokens[id]
	}
	prefix := true
	if add, ok := g["tokenizer.ggml.add_space_prefix"].(bool); ok {
		prefix = add
	}
	spaces := replace{literal(" "), spaceMarker}
	t.normalizer = normalizers{spaces}
	t.decoder = decoder{fallback: true, steps: []tokenStep{func(s string) string {
		return strings.ReplaceAll(s, spaceMarker, " ")
	}}}
	if prefix {
		t.normalizer = normalizers{prepend(spaceMarker), spaces}
		t.decoder.trim, t.decoder.trimMost = " ", 1
	}
	return true, nil
}

// ends reads which tokens begin and end a text.
func (t *Tokenizer) ends(g ggufMeta, addBOS bool) error {
	read := func(key string) (int32, bool, error) {
		id, ok := g.id(key)
		if ok && (id >= len(t.tokens) || !t.tokens[id].known) {
			return 0, false, fmt.Errorf("cannot use %s: no token has id %d", key, id)
		}
		return int32(id), ok, nil
	}
	if id, ok, err := read("tokenizer.ggml.bos_token_id"); err != nil {
		return err
	} else if ok {
		t.bos = id
	}
	for _, key := range []string{"eos", "eot", "eom"} {
		id, ok, err := read("tokenizer.ggml." + key + "_token_id")
		if err != nil {
			return err
		}
		if ok && !slices.Contains(t.eos, id) {
			t.eos = append(t.eos, id)
		}
	}
	if add, ok := g["tokenizer.ggml.add_bos_token"].(bool); ok {
		addBOS = add
	}
	if addBOS && t.bos >= 0 {
		t.before = []int32{t.bos}
	}
	if add, _ := g["tokenizer.ggml.add_eos_token"].(bool); add && len(t.eos) > 0 {
		t.after = t.eos[:1]
	}
	return nil
}

// fingerprint names a list of tokens.
func fingerprint(tokens []string) string {
	h := sha256.New()
	for _, s := range tokens {
		h.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(s))))
		h.Write([]byte(s))
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:4])
}

// ggufMeta reads values of the several types in which metadata may come.
type ggufMeta map[string]any

func (g ggufMeta) texts(key string) ([]string, error) {
	var list []string
	switch x := g[key].(type) {
	case nil:
		return nil, fmt.Errorf("cannot find %s: the file carries no such vocabulary", key)
	case []string:
		list = x
	case []any:
		for _, v := range x {
			s, ok := v.(string)
			if !ok {
				return nil, fmt.Errorf("cannot use %s: it holds a %T", key, v)
			}
			list = append(list, s)
		}
	default:
		return nil, fmt.Errorf("cannot use %s: it is a %T, not a list of texts", key, x)
	}
	for i, s := range list {
		if !utf8.ValidString(s) {
			return nil, fmt.Errorf("cannot use %s: entry %d is not UTF-8", key, i)
		}
	}
	return list, nil
}

// numbers returns a list of numbers, nil where the key is absent.
func (g ggufMeta) numbers(key string) ([]float64, error) {
	switch x := g[key].(type) {
	case nil:
		return nil, nil
	case []float64:
		return x, nil
	case []float32:
		return floats(x), nil
	case []int8:
		return floats(x), nil
	case []int16:
		return floats(x), nil
	case []int32:
		return floats(x), nil
	case []int64:
		return floats(x), nil
	case []uint8:
		return floats(x), nil
	case []uint16:
		return floats(x), nil
	case []uint32:
		return floats(x), nil
	case []uint64:
		return floats(x), nil
	case []any:
		list := make([]float64, len(x))
		for i, v := range x {
			n, ok := number64(v)
			if !ok {
				return nil, fmt.Errorf("cannot use %s: it holds a %T", key, v)
			}
			list[i] = n
		}
		return list, nil
	default:
		return nil, fmt.Errorf("cannot use %s: it is a %T, not a list of numbers", key, x)
	}
}

func (g ggufMeta) id(key string) (int, bool) {
	n, ok := number64(g[key])
	if !ok || !(n >= 0 && n < maxID) {
		return 0, false
	}
	return int(n), true
}

type numeric interface {
	int | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

func floats[T numeric](x []T) []float64 {
	list := make([]float64, len(x))
	for i, v := range x {
		list[i] = float64(v)
	}
	return list
}

func number64(v any) (float64, bool) {
	switch n := v.(type) {
	case int:
		return float64(n), true
	case int8:
		return float64(n), true
	case int16:
		return float64(n), true
	case int32:
		return float64(n), true
	case int64:
		return float64(n), true
	case uint8:
		return float64(n), true
	case uint16:
		return float64(n), true
	case uint32:
		return float64(n), true
	case uint64:
		return float64(n), true
	case float32:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
