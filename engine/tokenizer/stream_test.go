package tokenizer

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func streamed(t *rapid.T, tok *Tokenizer, ids []int32) string {
	s := tok.NewStream()
	var b strings.Builder
	for _, id := range ids {
		text := s.Push(id)
		if !utf8.ValidString(text) {
			t.Fatalf("half a character after id %d: %q", id, text)
		}
		b.WriteString(text)
	}
	return b.String() + s.Flush()
}

// A stream of encoded text gives the text, and no character before it is whole.
func TestStreamOfText(t *testing.T) {
	rule := nasty(t)
	for _, family := range families {
		tok := load(t, "testdata/"+family+".json")
		t.Run(family, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				text := anyText(t, rule)
				ids := tok.Encode(text, true)
				whole := tok.Decode(ids)
				got := streamed(t, tok, ids)
				if got != whole && !(tok.decoder.fallback && strings.Contains(whole, "\uFFFD")) {
					t.Fatalf("streamed %q, decoded %q", got, whole)
				}
			})
		})
	}
}

// Any ids at all: a byte-level stream is what Decode makes of them, broken characters included.
func TestStreamOfAnyIDs(t *testing.T) {
	for _, family := range []string{"qwen2", "llama3", "deepseek"} {
		tok := load(t, "testdata/"+family+".json")
		rapid.Check(t, func(t *rapid.T) {
			ids := rapid.SliceOfN(rapid.Int32Range(-2, int32(tok.Vocab())+2), 0, 40).Draw(t, "ids")
			if got, want := streamed(t, tok, ids), tok.Decode(ids); got != want {
				t.Fatalf("streamed %q, decoded %q", got, want)
			}
		})
	}
}

func TestStreamHoldsHalfCharacters(t *testing.T) {
	tok := load(t, "testdata/qwen2.json")
	var ids []int32
	for _, b := range []byte("é👍") {
		ids = append(ids, tok.model.byteID[b])
	}
	s := tok.NewStream()
	for i, want := range []string{"", "é", "", "", "", "👍"} {
		if got := s.Push(ids[i]); got != want {
			t.Errorf("id %d gave %q, want %q", i, got, want)
		}
	}
	if got := s.Push(ids[2]) + s.Push(ids[3]) + s.Flush(); got != "\uFFFD" {
		t.Errorf("a character that never ended gave %q", got)
	}
	if got := s.Flush(); got != "" {
		t.Errorf("a second flush gave %q", got)
	}
}

// Byte tokens: good characters are shown at once, and one U+FFFD stands for each byte of a bad one.
func TestStreamByteTokens(t *testing.T) {
	tok := load(t, "testdata/llama2.json")
	id := func(b byte) int32 { return tok.model.byteID[b] }
	s := tok.NewStream()
	got := s.Push(id(0xc3)) + s.Push(id(0xa9)) + "|" + s.Push(id(0xe4)) + s.Push(id(0xb8)) + "|"
	word, _ := tok.ID("▁a")
	got += s.Push(word)
	if want := "é||\uFFFD\uFFFD a"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := tok.Decode([]int32{word, id(0xc3), id(0xa9), id(0xe4)}), "a\uFFFD\uFFFD\uFFFD"; got != want {
		t.Errorf("decoded %q, want %q", got, want)
	}
}
