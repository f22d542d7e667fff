// Package scan reads JSON text in one pass, without building a tree: the caller walks objects and
// arrays, takes the values that it knows and skips the rest. It is what the OTLP/JSON decoder and the
// reader of chunks that travel inside log records stand on.
//
// A Scanner keeps its first error; after it every method returns zero values and false, so that loops
// end and the caller looks at Err once. Strings without escapes are parts of the text that was given.
//
//	p := scan.New(text)
//	for n, ok := 0, p.Object(); ok; {
//		key, more := p.Key(&n)
//		if !more {
//			break
//		}
//		switch key {
//		case "name":
//			name = p.String()
//		default:
//			p.Skip()
//		}
//	}
//	if err := p.End(); err != nil { … }
package scan

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MostNesting is how deep objects and arrays may lie in each other.
const MostNesting = 100

// Scanner walks a JSON text. Its zero value has an empty text.
type Scanner struct {
	text  string
	at    int
	depth int
	err   error
}

// New returns a scanner at the beginning of the text.
func New(text string) Scanner { return Scanner{text: text} }

// Err is the first thing that was wrong, nil as long as nothing was.
func (p *Scanner) Err() error { return p.err }

// Offset is where the scanner stands, in bytes.
func (p *Scanner) Offset() int { return p.at }

// End tells whether the whole text was one well-formed value: it is to be called after it.
func (p *Scanner) End() error {
	if p.space(); p.err == nil && p.at < len(p.text) {
		p.fail("there is more after the end of the document")
	}
	return p.err
}

// Since is the text from an offset to where the scanner stands; "" after an error.
func (p *Scanner) Since(offset int) string {
	if p.err != nil {
		return ""
	}
	return p.text[offset:p.at]
}

func (p *Scanner) fail(format string, a ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("malformed JSON at byte %d: %s", p.at, fmt.Sprintf(format, a...))
		p.at = len(p.text)
	}
}

// Fail makes the scanner stop with an error of the caller's, with the place added.
func (p *Scanner) Fail(what string) {
	if p.err == nil {
		p.err = fmt.Errorf("at byte %d: %s", p.at, what)
		p.at = len(p.text)
	}
}

func (p *Scanner) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\n', '\r', '\t':
			p.at++
		default:
			return
		}
	}
}

// Next is the kind of the value that comes next: one of { [ " t f n, '0' for a number, 0 where there
// is none.
func (p *Scanner) Next() byte {
	if p.space(); p.at >= len(p.text) {
		return 0
	}
	switch c := p.text[p.at]; {
	case c == '{' || c == '[' || c == '"' || c == 't' || c == 'f' || c == 'n':
		return c
	case c == '-' || c >= '0' && c <= '9':
		return '0'
	}
	return 0
}

// Null takes a null, if one comes next.
func (p *Scanner) Null() bool {
	if p.Next() != 'n' {
		return false
	}
	return p.word("null")
}

func (p *Scanner) word(w string) bool {
	if !strings.HasPrefix(p.text[p.at:], w) {
		p.fail("a value is expected")
		return false
	}
	p.at += len(w)
	return true
}

// Object enters an object. A null is taken as an empty one: it returns false without an error.
func (p *Scanner) Object() bool { return p.enter('{', "an object") }

// Array enters an array. A null is taken as an empty one: it returns false without an error.
func (p *Scanner) Array() bool { return p.enter('[', "an array") }

func (p *Scanner) enter(c byte, what string) bool {
	if p.Null() {
		return false
	}
	if p.space(); p.at >= len(p.text) || p.text[p.at] != c {
		p.fail("%s is expected", what)
		return false
	}
	if p.depth >= MostNesting {
		p.fail("objects and arrays lie in each other more than %d deep", MostNesting)
		return false
	}
	p.depth++
	p.at++
	return true
}

// Item goes to the next item of the array; false at its end. n counts the items: it must be 0 before
// the first call for an array.
func (p *Scanner) Item(n *int) bool { return p.more(n, ']') }

// Key goes to the next member of the object and returns its name; false at the end. n counts the
// members: it must be 0 before the first call for an object.
func (p *Scanner) Key(n *int) (string, bool) {
	if !p.more(n, '}') {
		return "", false
	}
	if p.Next() != '"' {
		p.fail("a member's name is expected")
		return "", false
	}
	k := p.String()
	if p.space(); p.err != nil || p.at >= len(p.text) || p.text[p.at] != ':' {
		p.fail("a colon is expected")
		return "", false
	}
	p.at++
	return k, true
}

func (p *Scanner) more(n *int, end byte) bool {
	if p.space(); p.at >= len(p.text) {
		p.fail("the document ends too early")
		return false
	}
	switch c := p.text[p.at]; {
	case c == end:
		p.at++
		p.depth--
		return false
	case *n == 0:
	case c == ',':
		p.at++
	default:
		p.fail("a comma or %q is expected", end)
		return false
	}
	*n++
	return true
}

// plain are the bytes that stand for themselves inside a string.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

// String takes a string. Invalid escapes of UTF-16 halves become U+FFFD.
func (p *Scanner) String() string {
	if p.Next() != '"' {
		p.fail("a string is expected")
		return ""
	}
	p.at++
	start := p.at
	text := p.text
	for i := start; i < len(text); i++ {
		if c := text[i]; plain[c] {
			continue
		} else if c == '"' {
			p.at = i + 1
			return text[start:i]
		} else if c == '\\' {
			p.at = i
			return p.escaped(start)
		}
		p.at = i
		p.fail("a control character stands in a string")
		return ""
	}
	p.fail("a string does not end")
	return ""
}

// escaped takes the rest of a string that holds an escape; it began at start.
func (p *Scanner) escaped(start int) string {
	b := make([]byte, 0, p.at-start+p.length()+8)
	b = append(b, p.text[start:p.at]...)
	for p.at < len(p.text) {
		c := p.text[p.at]
		switch {
		case c == '"':
			p.at++
			return string(b)
		case c < ' ':
			p.fail("a control character stands in a string")
			return ""
		case c != '\\':
			from, to := p.at, p.at
			for to < len(p.text) && plain[p.text[to]] {
				to++
			}
			b = append(b, p.text[from:to]...)
			p.at = to
			continue
		}
		if p.at+1 >= len(p.text) {
			break
		}
		p.at += 2
		switch e := p.text[p.at-1]; e {
		case '"', '\\', '/':
			b = append(b, e)
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'n':
			b = append(b, '\n')
		case 'r':
			b = append(b, '\r')
		case 't':
			b = append(b, '\t')
		case 'u':
			r, ok := p.hex()
			if !ok {
				p.fail("four hexadecimal digits are expected after \\u")
				return ""
			}
			if utf16.IsSurrogate(r) {
				second := rune(0)
				if at := p.at; strings.HasPrefix(p.text[at:], `\u`) {
					p.at += 2
					second, _ = p.hex()
					if utf16.DecodeRune(r, second) == utf8.RuneError {
						p.at = at
					}
				}
				r = utf16.DecodeRune(r, second)
			}
			b = utf8.AppendRune(b, r)
		default:
			p.fail("\\%c is no escape", e)
			return ""
		}
	}
	p.fail("a string does not end")
	return ""
}

// length is how far it is to the next quotation mark that no backslash precedes, 4 KiB at most: room to
// begin with.
func (p *Scanner) length() int {
	end := min(len(p.text), p.at+4096)
	for i := p.at; i < end; i++ {
		if p.text[i] == '"' && p.text[i-1] != '\\' {
			return i - p.at
		}
	}
	return end - p.at
}

func (p *Scanner) hex() (rune, bool) {
	if p.at+4 > len(p.text) {
		return 0, false
	}
	r := rune(0)
	for _, c := range []byte(p.text[p.at : p.at+4]) {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	p.at += 4
	return r, true
}

// Raw takes any value and returns its text.
func (p *Scanner) Raw() string {
	p.space()
	start := p.at
	p.Skip()
	if p.err != nil {
		return ""
	}
	return p.text[start:p.at]
}

// Skip takes any value.
func (p *Scanner) Skip() {
	switch p.Next() {
	case '{':
		for n, ok := 0, p.Object(); ok; {
			if _, ok = p.Key(&n); ok {
				p.Skip()
			}
		}
	case '[':
		for n, ok := 0, p.Array(); ok; {
			if ok = p.Item(&n); ok {
				p.Skip()
			}
		}
	case '"':
		p.skipString()
	case '0':
		p.number()
	case 't':
		p.word("true")
	case 'f':
		p.word("false")
	case 'n':
		p.word("null")
	default:
		p.fail("a value is expected")
	}
}

// skipString takes a string without making its text, unless an escape has to be looked at.
func (p *Scanner) skipString() {
	p.at++
	for i := p.at; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case plain[c]:
		case c == '"':
			p.at = i + 1
			return
		case c == '\\':
			if i+1 >= len(p.text) {
				p.fail("a string does not end")
				return
			}
			switch p.text[i+1] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				p.at = i + 2
				if _, ok := p.hex(); !ok {
					p.fail("four hexadecimal digits are expected after \\u")
					return
				}
			default:
				p.at = i
				p.fail("\\%c is no escape", p.text[i+1])
				return
			}
			i++
		case c < ' ':
			p.at = i
			p.fail("a control character stands in a string")
			return
		}
	}
	p.fail("a string does not end")
}
