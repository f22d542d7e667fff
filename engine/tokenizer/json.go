package tokenizer

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
)

// maxID bounds ids, so that a damaged file cannot ask for any amount of memory.
const maxID = 1 << 24

// mergeList reads merges in both forms: "a b" and ["a", "b"].
type mergeList [][2]string

func (l *mergeList) UnmarshalJSON(data []byte) error {
	var pairs [][2]string
	if rest := bytes.TrimLeft(data, "[ \t\r\n"); len(rest) == 0 || rest[0] != '"' || isPairList(data) {
		if err := json.Unmarshal(data, &pairs); err != nil {
			return err
		}
		*l = pairs
		return nil
	}
	var lines []string
	if err := json.Unmarshal(data, &lines); err != nil {
		return err
	}
	pairs = make([][2]string, len(lines))
	for i, line := range lines {
		pair, err := cutMerge(line)
		if err != nil {
			return fmt.Errorf("merge %d: %w", i, err)
		}
		pairs[i] = pair
	}
	*l = pairs
	return nil
}

// isPairList reports whether a JSON array starts with an array.
func isPairList(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	data = bytes.TrimLeft(data[min(1, len(data)):], " \t\r\n")
	return len(data) > 0 && data[0] == '['
}

// cutMerge cuts "a b" at its space.
func cutMerge(line string) ([2]string, error) {
	// A token may hold a space only in GGUF files of a few models, where it is the first character.
	for i := 1; i < len(line)-1; i++ {
		if line[i] == ' ' {
			return [2]string{line[:i], line[i+1:]}, nil
		}
	}
	return [2]string{}, fmt.Errorf("%q is not two tokens with a space between", foldName(line))
}

// special reads a token of tokenizer_config.json: a string, an object with content, or null.
type specialToken string

func (s *specialToken) UnmarshalJSON(data []byte) error {
	var o struct {
		Content string `json:"content"`
	}
	if bytes.HasPrefix(data, []byte("{")) {
		err := json.Unmarshal(data, &o)
		*s = specialToken(o.Content)
		return err
	}
	return json.Unmarshal(data, (*string)(s))
}

type jsonFile struct {
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         struct {
		Type         string           `json:"type"`
		Dropout      *float64         `json:"dropout"`
		Unk          *string          `json:"unk_token"`
		Prefix       *string          `json:"continuing_subword_prefix"`
		Suffix       *string          `json:"end_of_word_suffix"`
		FuseUnk      bool             `json:"fuse_unk"`
		ByteFallback bool             `json:"byte_fallback"`
		IgnoreMerges bool             `json:"ignore_merges"`
		Vocab        map[string]int32 `json:"vocab"`
		Merges       mergeList        `json:"merges"`
	} `json:"model"`
}

type configFile struct {
	BOS    specialToken          `json:"bos_token"`
	EOS    specialToken          `json:"eos_token"`
	AddBOS *bool                 `json:"add_bos_token"`
	AddEOS *bool                 `json:"add_eos_token"`
	Added  map[string]addedToken `json:"added_tokens_decoder"`
}

// FromJSON reads a Hugging Face tokenizer: tokenizer.json and, where there is one, the
// tokenizer_config.json beside it (nil if not), which names BOS and EOS. The error says which
// component or token is at fault.
func FromJSON(tokenizerJSON, tokenizerConfig []byte) (*Tokenizer, error) {
	var f jsonFile
	if err := json.Unmarshal(tokenizerJSON, &f); err != nil {
		return nil, fmt.Errorf("cannot read tokenizer.json: %w", err)
	}
	var c configFile
	if len(tokenizerConfig) > 0 {
		if err := json.Unmarshal(tokenizerConfig, &c); err != nil {
			return nil, fmt.Errorf("cannot read tokenizer_config.json: %w", err)
		}
	}
	t := &Tokenizer{bos: -1}
	if err := t.fromJSON(&f, &c); err != nil {
		return nil, fmt.Errorf("cannot load tokenizer.json: %w", err)
	}
	sum := sha256.Sum256(tokenizerJSON)
	t.name = fmt.Sprintf("tokenizer.json %x, %d tokens", sum[:4], t.Vocab())
	return t, nil
}

func (t *Tokenizer) fromJSON(f *jsonFile, c *configFile) error {
	m := &f.Model
	if m.Type != "" && m.Type != "BPE" {
		return unknownKind("model", m.Type, "BPE")
	}
	if len(m.Vocab) == 0 {
		return fmt.Errorf("cannot use a BPE model without a vocabulary")
	}
	switch {
	case m.Dropout != nil && *m.Dropout != 0:
		return fmt.Errorf("cannot use a model with dropout: it would encode one text in different ways")
	case m.Prefix != nil && *m.Prefix != "":
		return fmt.Errorf("cannot use continuing_subword_prefix %q: this program knows models without one", *m.Prefix)
	case m.Suffix != nil && *m.Suffix != "":
		return fmt.Errorf("cannot use end_of_word_suffix %q: this program knows models without one", *m.Suffix)
	}
	var err error
	if t.normalizer, err = readNormalizer(f.Normalizer); err != nil {
		return err
	}
	var byteLevel bool
	if t.pre, byteLevel, err = readPreTokenizer(f.PreTokenizer); err != nil {
		return err
	}
	if t.decoder, err = readDecoder(f.Decoder); err != nil {
		return err
	}
	v := vocabulary{tokens: m.Vocab, bytes: byteLevel, fallback: m.ByteFallback, fuseUnk: m.FuseUnk,
		ignoreMerges: m.IgnoreMerges, unk: m.Unk}
	for rank, pair := range m.Merges {
		v.merges = append(v.merges, merge{pair[0], pair[1], int32(rank)})
	}
	added, err := addedTokens(f.AddedTokens, c.Added)
	if err != nil {
		return err
	}
	if err := t.build(&v, added); err != nil {
		return err
	}
	if t.before, t.after, err = readPostProcessor(f.PostProcessor); err != nil {
		return err
	}
	if id, ok := t.ID(string(c.BOS)); ok && c.BOS != "" {
		t.bos = id
	}
	if id, ok := t.ID(string(c.EOS)); ok && c.EOS != "" {
		t.eos = []int32{id}
	}
	if c.AddBOS != nil || c.AddEOS != nil {
		// Said outright, it replaces what tokenizer.json would put around a text.
		t.before, t.after = nil, nil
		if c.AddBOS != nil && *c.AddBOS && t.bos >= 0 {
			t.before = []int32{t.bos}
		}
		if c.AddEOS != nil && *c.AddEOS {
			t.after = t.eos
		}
	}
	if t.bos < 0 && len(t.before) == 1 && len(c.BOS) == 0 {
		t.bos = t.before[0]
	}
	for _, id := range append(append([]int32{}, t.before...), t.after...) {
		if id < 0 || int(id) >= len(t.tokens) || !t.tokens[id].known {
			return fmt.Errorf("cannot use the post_processor: no token has its id %d", id)
		}
	}
	return nil
}

// addedTokens joins the added tokens of tokenizer.json with those that only tokenizer_config.json
// names.
func addedTokens(list []addedToken, more map[string]addedToken) ([]addedToken, error) {
	listed := map[int32]string{}
	for _, a := range list {
		listed[a.ID] = a.Content
	}
	for key, a := range more {
		var id int32
		if err := json.Unmarshal([]byte(key), &id); err != nil {
			return nil, fmt.Errorf("cannot read added_tokens_decoder of tokenizer_config.json: %q is not an id", foldName(key))
		}
		if content, ok := listed[id]; ok {
			if content != a.Content {
				return nil, fmt.Errorf("cannot add token %d: tokenizer.json calls it %q and tokenizer_config.json %q", id, foldName(content), foldName(a.Content))
			}
			continue
		}
		a.ID = id
		list = append(list, a)
	}
	return list, nil
}

// readPostProcessor returns the ids that go before and after one text.
func readPostProcessor(data json.RawMessage) (before, after []int32, err error) {
	kind, err := kindOf(data, "post_processor")
	if err != nil || kind == "" {
		return nil, nil, err
	}
	var c struct {
		Processors []json.RawMessage `json:"processors"`
		Single     []struct {
			Special *struct {
				ID string `json:"id"`
			} `json:"SpecialToken"`
			Sequence *struct {
				ID string `json:"id"`
			} `json:"Sequence"`
		} `json:"single"`
		Tokens map[string]struct {
			IDs []int32 `json:"ids"`
		} `json:"special_tokens"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, nil, fmt.Errorf("cannot read the post_processor %s: %w", kind, err)
	}
	switch kind {
	case "ByteLevel":
		return nil, nil, nil // it moves offsets, not ids
	case "Sequence":
		for _, d := range c.Processors {
			b, a, err := readPostProcessor(d)
			if err != nil {
				return nil, nil, err
			}
			before, after = append(b, before...), append(after, a...)
		}
		return before, after, nil
	case "TemplateProcessing":
		texts := 0
		for _, part := range c.Single {
			switch {
			case part.Sequence != nil && texts == 0:
				texts++
			case part.Special != nil:
				tokens, ok := c.Tokens[part.Special.ID]
				if !ok {
					return nil, nil, fmt.Errorf("cannot use the post_processor TemplateProcessing: its token %q has no ids", foldName(part.Special.ID))
				}
				if texts == 0 {
					before = append(before, tokens.IDs...)
				} else {
					after = append(after, tokens.IDs...)
				}
			default:
				return nil, nil, fmt.Errorf("cannot use the post_processor TemplateProcessing: its single template must hold the text once, among special tokens")
			}
		}
		if texts == 0 {
			return nil, nil, fmt.Errorf("cannot use the post_processor TemplateProcessing: its single template leaves the text out")
		}
		return before, after, nil
	}
	return nil, nil, unknownKind("post_processor", kind, "Sequence, ByteLevel, TemplateProcessing")
}
