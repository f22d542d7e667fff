package client

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// scanChunk reads a chunk as decodeChunk does, several times faster, if it has the shape that nearly
// all of them have: one choice or none, strings or null for text, small whole numbers in usage. It is
// false for any other, and for anything that is not quite plain JSON; decodeChunk decides then. What it
// does read it reads the same: a fuzz test holds the two together.
func scanChunk(b []byte) (delta, bool) {
	s := scanner{b: b}
	d := delta{Exact: -1, Usage: noUsage}
	if !s.top(&d) {
		return d, false
	}
	s.space()
	return d, s.i == len(s.b)
}

type scanner struct {
	b []byte
	i int
}

// deep is how far values that are skipped may nest.
const deep = 24

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// at skips space and tells whether c comes next; if so it is taken.
func (s *scanner) at(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// word takes a literal.
func (s *scanner) word(w string) bool {
	if len(s.b)-s.i >= len(w) && string(s.b[s.i:s.i+len(w)]) == w {
		s.i += len(w)
		return true
	}
	return false
}

// null takes a null.
func (s *scanner) null() bool {
	s.space()
	return s.word("null")
}

// member reads up to the value of an object's next member. Names with escapes or beyond ASCII are left
// to decodeChunk: they could mean a known one.
func (s *scanner) member(first bool) (name []byte, more, ok bool) {
	if s.at('}') {
		return nil, false, true
	}
	if !first && !s.at(',') {
		return nil, false, false
	}
	s.space()
	raw, plain, ok := s.str()
	if !ok || !plain || !s.at(':') {
		return nil, false, false
	}
	s.space()
	return raw, true, true
}

// special marks the bytes at which a string stops being plain text.
var special = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = true
	}
	t['"'], t['\\'] = true, true
	return t
}()

// str reads a string: what is between its quotes, and whether that is plain ASCII without escapes.
func (s *scanner) str() (raw []byte, plain, ok bool) {
	if s.i >= len(s.b) || s.b[s.i] != '"' {
		return nil, false, false
	}
	start, plain := s.i+1, true
	var high byte
	for i := start; i < len(s.b); i++ {
		c := s.b[i]
		high |= c
		if !special[c] {
			continue
		}
		switch c {
		case '"':
			s.i = i + 1
			return s.b[start:i], plain && high < 0x80, true
		case '\\':
			plain = false
			i++
			if i >= len(s.b) {
				return nil, false, false
			}
			switch s.b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if len(s.b)-i < 5 || hex4(s.b[i+1:i+5]) < 0 {
					return nil, false, false
				}
				i += 4
			default:
				return nil, false, false
			}
		default: // a control character
			return nil, false, false
		}
	}
	return nil, false, false
}

func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// text reads a string or null.
func (s *scanner) text() (string, bool) {
	if s.null() {
		return "", true
	}
	raw, plain, ok := s.str()
	if !ok {
		return "", false
	}
	if plain {
		return intern(raw), true
	}
	return unescape(raw)
}

// intern returns the string of some bytes; those that come all the time need no memory.
func intern(b []byte) string {
	switch string(b) {
	case "":
		return ""
	case "stop":
		return "stop"
	case "length":
		return "length"
	case "tool_calls":
		return "tool_calls"
	}
	return string(b)
}

// unescape undoes the escapes of a string that str has read. It leaves to encoding/json what that
// would replace: invalid UTF-8, and halves of surrogate pairs.
func unescape(raw []byte) (string, bool) {
	if !utf8.Valid(raw) {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw), true
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c != '\\' {
			out = append(out, c)
			continue
		}
		i++
		switch raw[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hex4(raw[i+1:])
			i += 4
			if 0xd800 <= r && r < 0xe000 {
				var s string
				if json.Unmarshal(append(append([]byte{'"'}, raw...), '"'), &s) != nil {
					return "", false
				}
				return s, true
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, raw[i])
		}
	}
	return string(out), true
}

// count reads a whole number below 10⁹, or null.
func (s *scanner) count() (int, bool) {
	if s.null() {
		return -1, true
	}
	start, n := s.i, 0
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		n = n*10 + int(s.b[s.i]-'0')
		s.i++
		if s.i-start > 9 {
			return 0, false
		}
	}
	if s.i == start || s.b[start] == '0' && s.i > start+1 {
		return 0, false
	}
	if s.i < len(s.b) && (s.b[s.i] == '.' || s.b[s.i] == 'e' || s.b[s.i] == 'E') {
		return 0, false
	}
	return n, true
}

// skip passes over a value of any kind.
func (s *scanner) skip(depth int) bool {
	s.space()
	if s.i >= len(s.b) || depth > deep {
		return false
	}
	switch s.b[s.i] {
	case '"':
		_, _, ok := s.str()
		return ok
	case '{':
		s.i++
		for first := true; ; first = false {
			if s.at('}') {
				return true
			}
			if !first && !s.at(',') {
				return false
			}
			s.space()
			if _, _, ok := s.str(); !ok || !s.at(':') || !s.skip(depth+1) {
				return false
			}
		}
	case '[':
		s.i++
		for first := true; ; first = false {
			if s.at(']') {
				return true
			}
			if !first && !s.at(',') || !s.skip(depth+1) {
				return false
			}
		}
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

// number passes over a number.
func (s *scanner) number() bool {
	digits := func() bool {
		start := s.i
		for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
			s.i++
		}
		return s.i > start
	}
	if s.b[s.i] == '-' {
		s.i++
	}
	start := s.i
	if !digits() || s.b[start] == '0' && s.i > start+1 {
		return false
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if !digits() {
			return false
		}
	}
	if s.i < len(s.b) && (s.b[s.i] == 'e' || s.b[s.i] == 'E') {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		return digits()
	}
	return true
}

// once notes that a member was seen; a second one of the same name is left to decodeChunk.
func once(seen *uint16, bit uint) bool {
	first := *seen&(1<<bit) == 0
	*seen |= 1 << bit
	return first
}
