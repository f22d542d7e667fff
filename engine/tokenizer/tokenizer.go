package tokenizer

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// A Tokenizer turns text into token ids and back. It is safe for concurrent use.
type Tokenizer struct {
	name  string
	model bpe

	raw        addedSet // added tokens that are looked for in the text as it came
	normalized addedSet // and in the normalised text
	normalizer normalizer
	pre        preTokenizers

	tokens  []entry // by id
	decoder decoder

	before, after []int32 // what the post-processor puts around a text
	bos           int32   // -1: none
	eos           []int32
	resumable     bool // Prefixes may go on from a place inside the text

	workers sync.Pool
}

// An entry is what is known of one id.
type entry struct {
	text    string // as the vocabulary writes it; "" for ids that no token has
	piece   string // what it adds to decoded text
	known   bool
	isByte  bool // a byte-fallback token; piece is its one byte
	special bool
}

// Encode returns the ids of the text, without the tokens that a model wants around it (Before and
// After). special says whether the text of special tokens, such as <|im_start|>, becomes those
// tokens; leave it off for text from outside, so that nobody can write a control token. Added
// tokens that are not special are recognised either way, as the model was trained. Bytes that are
// not UTF-8 are read as U+FFFD.
func (t *Tokenizer) Encode(text string, special bool) []int32 {
	return t.AppendEncode(make([]int32, 0, len(text)/3+4), text, special)
}

// AppendEncode is Encode, appending to dst.
func (t *Tokenizer) AppendEncode(dst []int32, text string, special bool) []int32 {
	return t.encode(dst, text, start, special)
}

func (t *Tokenizer) encode(dst []int32, text string, where position, special bool) []int32 {
	if !utf8.ValidString(text) {
		text = string(appendLossy(nil, []byte(text)))
	}
	w := t.workers.Get().(*worker)
	leaf := func(word string, _ position) {
		t.model.cuts(word, func(part string) { dst = w.encode(dst, part) })
	}
	words := func(p piece) {
		if p.token != nil {
			dst = append(dst, p.token.ID)
			return
		}
		t.pre.preTokenize(p.text, p.where, leaf)
	}
	t.raw.split(text, where, special, func(p piece) {
		if p.token != nil {
			dst = append(dst, p.token.ID)
			return
		}
		s := p.text
		if t.normalizer != nil {
			s = t.normalizer.normalize(s, p.where)
		}
		t.normalized.split(s, p.where, special, words)
	})
	t.workers.Put(w)
	return dst
}

// Before returns the ids that stand before a text by the model's own rule (a BOS, as a rule), and
// After those behind it. The caller must not change them.
func (t *Tokenizer) Before() []int32 { return t.before }

// After returns the ids that stand behind a text by the model's own rule.
func (t *Tokenizer) After() []int32 { return t.after }

// AddBOS reports whether a text starts with BOS by the model's own rule. A chat template may write
// it itself; then it must not be added again.
func (t *Tokenizer) AddBOS() bool {
	return t.bos >= 0 && len(t.before) > 0 && t.before[0] == t.bos
}

// BOS returns the id of the token that begins a text, -1 if there is none.
func (t *Tokenizer) BOS() int32 { return t.bos }

// EOS returns the ids that end a text as far as the tokenizer's own files say. A model's
// generation_config.json may name more. The caller must not change them.
func (t *Tokenizer) EOS() []int32 { return t.eos }

// Name says which tokenizer it is: its origin, its size, and a fingerprint of its vocabulary.
func (t *Tokenizer) Name() string { return t.name }

// Vocab returns the number of ids, which is one more than the largest; a model's embedding may have
// more rows.
func (t *Tokenizer) Vocab() int { return len(t.tokens) }

// Token returns the bytes that an id adds to a text; they need not be whole characters. It is nil
// for ids that no token has.
func (t *Tokenizer) Token(id int32) []byte {
	if id < 0 || int(id) >= len(t.tokens) || !t.tokens[id].known {
		return nil
	}
	return []byte(t.tokens[id].piece)
}

// Special reports whether an id is a control token rather than text.
func (t *Tokenizer) Special(id int32) bool {
	return id >= 0 && int(id) < len(t.tokens) && t.tokens[id].special
}

// ID returns the id of a token as the vocabulary writes it ("<|im_end|>", "Ġthe").
func (t *Tokenizer) ID(token string) (int32, bool) {
	for _, set := range []*addedSet{&t.raw, &t.normalized} {
		if len(set.next) == 0 {
			continue
		}
		if found, end := set.longest(token, 0); found != nil && end == len(token) {
			return found.ID, true
		}
	}
	if t.model.bytes {
		bytes, ok := alphabetBytes(token)
		if !ok {
			return 0, false
		}
		token = bytes
	}
	id, ok := t.model.vocab[token]
	return id, ok
}

// Count returns the number of tokens of the text, without special tokens.
func (t *Tokenizer) Count(text string) int { return len(t.Encode(text, false)) }

// newWorkers prepares the scratch memory of encodings.
func (t *Tokenizer) newWorkers() {
	t.workers.New = func() any {
		return &worker{model: &t.model, words: make(map[string][2]int32)}
	}
}

// appendLossy appends b to dst with every part that is not UTF-8 as one U+FFFD; a part is a
// character's longest valid beginning, or else one byte (Unicode, "maximal subparts").
func appendLossy(dst, b []byte) []byte {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			n, _ = brokenCharacter(b)
			dst = append(dst, "\uFFFD"...)
		} else {
			dst = append(dst, b[:n]...)
		}
		b = b[n:]
	}
	return dst
}

// brokenCharacter returns the length of the character's beginning at the start of b, which is not a
// whole character, and whether more bytes could still complete it.
func brokenCharacter(b []byte) (n int, open bool) {
	var low, high, size = byte(0x80), byte(0xbf), 0
	switch c := b[0]; {
	case 0xc2 <= c && c <= 0xdf:
		size = 2
	case 0xe0 <= c && c <= 0xef:
		size = 3
		if c == 0xe0 {
			low = 0xa0
		} else if c == 0xed {
			high = 0x9f
		}
	case 0xf0 <= c && c <= 0xf4:
		size = 4
		if c == 0xf0 {
			low = 0x90
		} else if c == 0xf4 {
			high = 0x8f
		}
	default:
		return 1, false
	}
	for n = 1; n < size; n++ {
		if n == len(b) {
			return n, true
		}
		if b[n] < low || b[n] > high {
			break
		}
		low, high = 0x80, 0xbf
	}
	return n, false
}

// foldName shortens text of unknown length for a message or a name.
func foldName(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > 60 {
		for i := range s {
			if i > 57 {
				return s[:i] + "…"
			}
		}
	}
	return s
}
