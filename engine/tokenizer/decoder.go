package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A decoder is how the tokens of a text are put together. What it does to each token alone is done
// once, when the vocabulary is loaded; what is left are the rules that span tokens.
type decoder struct {
	steps     []tokenStep // in order
	bytes     bool        // byte-level: tokens are bytes in the byte alphabet
	fallback  bool        // byte tokens <0xNN> next to each other make characters
	separator string      // between tokens; a space where there is no decoder at all
	metaspace string      // this character is dropped from the first token
	trim      string      // this character is taken off the start of the whole text …
	trimMost  int         // … at most so many times
}

// A tokenStep rewrites the text of one token.
type tokenStep func(string) string

// readDecoder reads the "decoder" member of tokenizer.json.
func readDecoder(data json.RawMessage) (decoder, error) {
	kind, err := kindOf(data, "decoder")
	if err != nil {
		return decoder{}, err
	}
	if kind == "" {
		return decoder{separator: " "}, nil
	}
	var d decoder
	fused := false
	return d, d.read(data, kind, &fused)
}

// read adds one component; fused says that the tokens have become one text already.
func (d *decoder) read(data json.RawMessage, kind string, fused *bool) error {
	var c struct {
		Decoders       []json.RawMessage `json:"decoders"`
		Pattern        patternSource     `json:"pattern"`
		Content        string            `json:"content"`
		Start          int               `json:"start"`
		Stop           int               `json:"stop"`
		Replacement    string            `json:"replacement"`
		AddPrefixSpace *bool             `json:"add_prefix_space"`
		PrependScheme  *string           `json:"prepend_scheme"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("cannot read the decoder %s: %w", kind, err)
	}
	late := func() error {
		return fmt.Errorf("cannot use the decoder %s after the tokens were fused to one text: it could not be streamed", kind)
	}
	switch kind {
	case "Sequence":
		for _, part := range c.Decoders {
			kind, err := kindOf(part, "decoder")
			if err != nil {
				return err
			}
			if kind == "" {
				return fmt.Errorf("cannot read the decoder: a part of its Sequence is null")
			}
			if err := d.read(part, kind, fused); err != nil {
				return err
			}
		}
		return nil
	case "ByteLevel":
		if *fused || d.fallback || len(d.steps) > 0 || d.metaspace != "" {
			return late()
		}
		d.bytes, *fused = true, true
		return nil
	case "Fuse":
		*fused = true
		return nil
	case "ByteFallback":
		if *fused {
			return late()
		}
		d.fallback = true
		return nil
	case "Replace":
		if *fused || d.fallback {
			return late()
		}
		p, err := c.Pattern.compile()
		if err != nil {
			return err
		}
		d.steps = append(d.steps, func(s string) string { return replace{p, c.Content}.normalize(s, inside) })
		return nil
	case "Strip":
		if utf8.RuneCountInString(c.Content) != 1 || c.Start < 0 || c.Stop != 0 {
			return fmt.Errorf("cannot use the decoder Strip with content %q, start %d, stop %d: this program strips one kind of character, at the start", c.Content, c.Start, c.Stop)
		}
		if *fused {
			if d.trim != "" {
				return late()
			}
			d.trim, d.trimMost = c.Content, c.Start
			return nil
		}
		if d.fallback {
			return fmt.Errorf("cannot use the decoder Strip between ByteFallback and Fuse")
		}
		d.steps = append(d.steps, func(s string) string { return trimStart(s, c.Content, c.Start) })
		return nil
	case "Metaspace":
		if *fused || d.fallback || d.metaspace != "" || len(d.steps) > 0 {
			return late()
		}
		m := metaspace{replacement: c.Replacement, scheme: "always"}
		if c.PrependScheme != nil {
			m.scheme = *c.PrependScheme
		}
		if err := m.check(c.AddPrefixSpace); err != nil {
			return err
		}
		if m.scheme != "never" {
			d.metaspace = m.replacement
		}
		d.steps = append(d.steps, func(s string) string { return strings.ReplaceAll(s, m.replacement, " ") })
		return nil
	}
	return unknownKind("decoder", kind, "Sequence, ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace")
}

func trimStart(s, character string, most int) string {
	for ; most > 0 && strings.HasPrefix(s, character); most-- {
		s = s[len(character):]
	}
	return s
}

// prepare works out what a token adds to decoded text.
func (d *decoder) prepare(e *entry) {
	e.piece, e.known = e.text, true
	if d.bytes {
		e.piece, _ = alphabetBytes(e.text)
		return
	}
	e.piece = d.step(e.text)
	if d.fallback {
		if b, ok := fallbackByte(e.piece); ok {
			e.piece, e.isByte = string([]byte{b}), true
		}
	}
}

func (d *decoder) step(s string) string {
	for _, f := range d.steps {
		s = f(s)
	}
	return s
}

// first returns what a token adds if it is the first one of a text.
func (d *decoder) first(e *entry) string {
	if d.metaspace == "" {
		return e.piece
	}
	return strings.ReplaceAll(e.text, d.metaspace, "")
}

// fallbackByte returns the byte of a token <0xNN>.
func fallbackByte(s string) (byte, bool) {
	if len(s) != 6 || s[:3] != "<0x" || s[5] != '>' {
		return 0, false
	}
	var b byte
	for _, c := range []byte(s[3:5]) {
		switch {
		case '0' <= c && c <= '9':
			b = b<<4 | (c - '0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			b = b<<4 | (c | 0x20 - 'a' + 10)
		default:
			return 0, false
		}
	}
	return b, true
}

// Decode returns the text of the ids, special tokens included; ids that no token has add nothing.
// Bytes that make no character become U+FFFD as the model's own decoder does it: one for each broken
// character of a byte-level vocabulary, one for each byte of a run of byte tokens that holds a
// broken character.
func (t *Tokenizer) Decode(ids []int32) string {
	var out, run []byte
	first := true
	flush := func() {
		if len(run) == 0 {
			return
		}
		if utf8.Valid(run) {
			out = append(out, run...)
		} else {
			for range run {
				out = append(out, "\uFFFD"...)
			}
		}
		run = run[:0]
	}
	for _, id := range ids {
		if id < 0 || int(id) >= len(t.tokens) || !t.tokens[id].known {
			continue
		}
		e := &t.tokens[id]
		if e.isByte {
			run = append(run, e.piece...)
			first = false
			continue
		}
		flush()
		if first {
			out = append(out, t.decoder.first(e)...)
		} else {
			out = append(out, t.decoder.separator...)
			out = append(out, e.piece...)
		}
		first = false
	}
	flush()
	if t.decoder.bytes {
		out = appendLossy(nil, out)
	}
	return trimStart(string(out), t.decoder.trim, t.decoder.trimMost)
}

// A Stream decodes ids one at a time.
type Stream struct {
	t       *Tokenizer
	pending []byte // the beginning of a character
	first   bool
	trim    int // how many more characters may be taken off the start
}

// NewStream returns a decoder of one text.
func (t *Tokenizer) NewStream() *Stream {
	return &Stream{t: t, first: true, trim: t.decoder.trimMost}
}

// Push adds one id and returns the text that is certain now: whole characters only. All of a
// stream's texts together are what Decode returns, except that a run of byte tokens with a broken
// character in it keeps its good characters here, since they were shown before the bad one came.
func (s *Stream) Push(id int32) string {
	t := s.t
	if id < 0 || int(id) >= len(t.tokens) || !t.tokens[id].known {
		return ""
	}
	e := &t.tokens[id]
	var out []byte
	if !e.isByte && !t.decoder.bytes {
		// A token of whole characters ends what byte tokens have begun.
		out = s.rest(out)
	}
	switch {
	case s.first:
		s.pending = append(s.pending, t.decoder.first(e)...)
	case e.isByte:
		s.pending = append(s.pending, e.piece...)
	default:
		s.pending = append(append(s.pending, t.decoder.separator...), e.piece...)
	}
	s.first = false
	for len(s.pending) > 0 {
		r, n := utf8.DecodeRune(s.pending)
		if r != utf8.RuneError || n > 1 {
			out = append(out, s.pending[:n]...)
			s.pending = s.pending[n:]
			continue
		}
		n, open := brokenCharacter(s.pending)
		if open {
			break
		}
		out = s.broken(out, n)
	}
	return s.start(out)
}

// Flush ends the stream and returns what was held back: U+FFFD for a character that never came
// whole, or nothing.
func (s *Stream) Flush() string { return s.start(s.rest(nil)) }

// rest writes pending as it is.
func (s *Stream) rest(out []byte) []byte {
	for len(s.pending) > 0 {
		n, _ := brokenCharacter(s.pending)
		out = s.broken(out, n)
	}
	return out
}

// broken writes n pending bytes that make no character.
func (s *Stream) broken(out []byte, n int) []byte {
	times := 1
	if s.t.decoder.fallback {
		times = n
	}
	for range times {
		out = append(out, "\uFFFD"...)
	}
	s.pending = s.pending[n:]
	return out
}

// start takes off what the decoder strips from the start of the text.
func (s *Stream) start(out []byte) string {
	text := string(out)
	for s.trim > 0 && text != "" {
		cut := trimStart(text, s.t.decoder.trim, 1)
		if len(cut) == len(text) {
			s.trim = 0
			break
		}
		text = cut
		s.trim--
	}
	return text
}
