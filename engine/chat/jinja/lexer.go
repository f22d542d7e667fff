package jinja

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind uint8

const (
	kindText kind = iota // template text outside of tags
	kindBlockBegin
	kindBlockEnd
	kindPrintBegin
	kindPrintEnd
	kindName
	kindString
	kindInteger
	kindFloat
	kindOperator
	kindEnd
)

type token struct {
	kind kind
	text string // name, operator, or the value of a text or string
	line int
}

func (t token) describe() string {
	switch t.kind {
	case kindText:
		return "text"
	case kindBlockBegin, kindPrintBegin:
		return "the start of a tag"
	case kindBlockEnd:
		return "%}"
	case kindPrintEnd:
		return "}}"
	case kindEnd:
		return "the end of the template"
	}
	return strconv.Quote(t.text)
}

// lexer cuts a template into tokens. The rules of white space are jinja2's with trim_blocks and
// lstrip_blocks: a newline right after a block or comment goes, and so does white space between
// the start of a line and a block or comment; "-" strips everything, "+" keeps everything.
type lexer struct {
	src    string
	pos    int
	line   int
	tokens []token
	// lineStart: what was read last ended with a newline, so blanks from here on are at the
	// start of a line.
	lineStart bool
}

func lex(src string) []token {
	src = strings.ReplaceAll(src, "\r\n", "\n")
	src = strings.ReplaceAll(src, "\r", "\n")
	src = strings.TrimSuffix(src, "\n") // jinja2's keep_trailing_newline is off
	l := &lexer{src: src, line: 1, lineStart: true}
	for l.pos < len(l.src) {
		l.data()
	}
	l.add(kindEnd, "")
	return l.tokens
}

func (l *lexer) add(k kind, text string) {
	l.tokens = append(l.tokens, token{k, text, l.line})
}

// advance moves past n bytes, counting lines.
func (l *lexer) advance(n int) {
	s := l.src[l.pos : l.pos+n]
	l.line += strings.Count(s, "\n")
	l.pos += n
	if n > 0 {
		l.lineStart = s[n-1] == '\n'
	}
}

// data reads text up to the next tag, and the tag.
func (l *lexer) data() {
	rest := l.src[l.pos:]
	start := -1
	for from := 0; ; {
		i := strings.IndexByte(rest[from:], '{')
		if i < 0 || from+i+1 >= len(rest) {
			break
		}
		if c := rest[from+i+1]; c == '{' || c == '%' || c == '#' {
			start = from + i
			break
		}
		from += i + 1
	}
	if start < 0 {
		l.add(kindText, rest)
		l.advance(len(rest))
		return
	}
	text, open := rest[:start], rest[start+1]
	sign := byte(0)
	if start+2 < len(rest) && (rest[start+2] == '-' || rest[start+2] == '+') {
		sign = rest[start+2]
	}
	switch {
	case sign == '-':
		text = strings.TrimRightFunc(text, isSpace)
	case sign != '+' && open != '{':
		bol := strings.LastIndexByte(text, '\n') + 1
		if (bol > 0 || l.lineStart) && strings.TrimFunc(text[bol:], isSpace) == "" {
			text = text[:bol]
		}
	}
	if text != "" {
		l.add(kindText, text)
	}
	l.advance(start + 2)
	if sign != 0 {
		l.advance(1)
	}
	switch open {
	case '#':
		l.comment()
	case '{':
		l.add(kindPrintBegin, "")
		l.expression(kindPrintEnd, "}}")
	default:
		if l.raw() {
			return
		}
		l.add(kindBlockBegin, "")
		l.expression(kindBlockEnd, "%}")
	}
}

// trimNewline drops the newline after a block or a comment.
func (l *lexer) trimNewline() {
	if l.pos < len(l.src) && l.src[l.pos] == '\n' {
		l.advance(1)
	}
}

func (l *lexer) skipSpace() {
	rest := l.src[l.pos:]
	l.advance(len(rest) - len(strings.TrimLeftFunc(rest, isSpace)))
}

func (l *lexer) comment() {
	i := strings.Index(l.src[l.pos:], "#}")
	if i < 0 {
		fail(l.line, "a comment that starts with {# does not end with #}")
	}
	sign := byte(0)
	if i > 0 {
		sign = l.src[l.pos+i-1]
	}
	l.advance(i + 2)
	l.afterTag(sign)
}

func (l *lexer) afterTag(sign byte) {
	switch sign {
	case '-':
		l.skipSpace()
	case '+':
	default:
		l.trimNewline()
	}
}

// raw reads {% raw %}…{% endraw %} where the tag just opened is one.
func (l *lexer) raw() bool {
	rest := strings.TrimLeftFunc(l.src[l.pos:], isSpace)
	after, ok := strings.CutPrefix(rest, "raw")
	if !ok {
		return false
	}
	after = strings.TrimLeftFunc(after, isSpace)
	strip := false
	if a, ok := strings.CutPrefix(after, "-%}"); ok {
		after, strip = a, true
	} else if a, ok := strings.CutPrefix(after, "%}"); ok {
		after = a
	} else {
		return false
	}
	begun := l.line
	l.advance(len(l.src) - l.pos - len(after))
	if strip {
		l.skipSpace()
	}
	for from := 0; ; {
		i := strings.Index(l.src[l.pos+from:], "{%")
		if i < 0 {
			fail(begun, "raw has no endraw")
		}
		i += from
		tag := l.src[l.pos+i+2:]
		sign := byte(0)
		if tag != "" && (tag[0] == '-' || tag[0] == '+') {
			sign, tag = tag[0], tag[1:]
		}
		tag = strings.TrimLeftFunc(tag, isSpace)
		if t, ok := strings.CutPrefix(tag, "endraw"); ok {
			t = strings.TrimLeftFunc(t, isSpace)
			end := byte(0)
			if t != "" && (t[0] == '-' || t[0] == '+') {
				end, t = t[0], t[1:]
			}
			if t, ok := strings.CutPrefix(t, "%}"); ok {
				text := l.src[l.pos : l.pos+i]
				bol := strings.LastIndexByte(text, '\n') + 1
				if sign == '-' {
					text = strings.TrimRightFunc(text, isSpace)
				} else if sign == 0 && (bol > 0 || l.lineStart) && strings.TrimFunc(text[bol:], isSpace) == "" {
					text = text[:bol]
				}
				l.add(kindText, text)
				l.advance(len(l.src) - l.pos - len(t))
				l.afterTag(end)
				return true
			}
		}
		from = i + 2
	}
}

// operators, longest first.
var operators = []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "[", "]",
	"(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"}

// expression reads the inside of a tag up to its end.
func (l *lexer) expression(end kind, closing string) {
	begun := l.line
	var open []byte // brackets still to be closed: inside of them "}}" is two braces
	for {
		l.skipSpace()
		rest := l.src[l.pos:]
		if rest == "" {
			fail(begun, "a tag has no %s", closing)
		}
		if len(open) == 0 {
			sign := byte(0)
			r := rest
			if r[0] == '-' || (r[0] == '+' && end == kindBlockEnd) {
				sign, r = r[0], r[1:]
			}
			if strings.HasPrefix(r, closing) {
				l.add(end, "")
				l.advance(len(rest) - len(r) + 2)
				if end == kindBlockEnd {
					l.afterTag(sign)
				} else if sign == '-' {
					l.skipSpace()
				}
				return
			}
		}
		c, size := utf8.DecodeRuneInString(rest)
		switch {
		case c == '"' || c == '\'':
			l.str(byte(c))
		case c >= '0' && c <= '9':
			l.number()
		case c == '_' || unicode.IsLetter(c):
			n := size
			for n < len(rest) {
				c, size := utf8.DecodeRuneInString(rest[n:])
				if c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
					break
				}
				n += size
			}
			l.add(kindName, rest[:n])
			l.advance(n)
		default:
			l.operator(&open)
		}
	}
}

func (l *lexer) operator(open *[]byte) {
	rest := l.src[l.pos:]
	for _, op := range operators {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		switch op {
		case "(", "[", "{":
			if len(*open) == maxNest {
				panic(&Error{Line: l.line, Limit: true, Reason: "brackets are nested too deep"})
			}
			*open = append(*open, map[string]byte{"(": ')', "[": ']', "{": '}'}[op])
		case ")", "]", "}":
			if n := len(*open); n == 0 || (*open)[n-1] != op[0] {
				fail(l.line, "unexpected %q", op)
			}
			*open = (*open)[:len(*open)-1]
		}
		l.add(kindOperator, op)
		l.advance(len(op))
		return
	}
	c, _ := utf8.DecodeRuneInString(rest)
	fail(l.line, "unexpected character %q", c)
}

func (l *lexer) number() {
	rest := l.src[l.pos:]
	digits := func(i int, is func(byte) bool) int {
		for i < len(rest) && (is(rest[i]) || (rest[i] == '_' && i+1 < len(rest) && is(rest[i+1]))) {
			i++
		}
		return i
	}
	dec := func(c byte) bool { return c >= '0' && c <= '9' }
	if len(rest) > 2 && rest[0] == '0' && strings.IndexByte("xXoObB", rest[1]) >= 0 {
		hex := func(c byte) bool { return dec(c) || (c|0x20 >= 'a' && c|0x20 <= 'f') }
		n := digits(2, hex)
		l.add(kindInteger, rest[:n])
		l.advance(n)
		return
	}
	n, k := digits(0, dec), kindInteger
	if n+1 < len(rest) && rest[n] == '.' && dec(rest[n+1]) {
		n, k = digits(n+1, dec), kindFloat
	}
	if n < len(rest) && rest[n]|0x20 == 'e' {
		m := n + 1
		if m < len(rest) && (rest[m] == '+' || rest[m] == '-') {
			m++
		}
		if m < len(rest) && dec(rest[m]) {
			n, k = digits(m, dec), kindFloat
		}
	}
	l.add(k, strings.ReplaceAll(rest[:n], "_", ""))
	l.advance(n)
}

// str reads a string literal; escapes are Python's.
func (l *lexer) str(quote byte) {
	rest := l.src[l.pos:]
	var b strings.Builder
	for i := 1; i < len(rest); i++ {
		c := rest[i]
		if c == quote {
			l.add(kindString, b.String())
			l.advance(i + 1)
			return
		}
		if c != '\\' || i+1 >= len(rest) {
			b.WriteByte(c)
			continue
		}
		i++
		switch c = rest[i]; c {
		case '\n':
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'a':
			b.WriteByte(7)
		case 'b':
			b.WriteByte(8)
		case 'f':
			b.WriteByte(12)
		case 'v':
			b.WriteByte(11)
		case '\\', '\'', '"':
			b.WriteByte(c)
		case 'x', 'u', 'U':
			width := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			if i+width >= len(rest) {
				fail(l.line, "an escape in a string is cut short")
			}
			v, err := strconv.ParseUint(rest[i+1:i+1+width], 16, 32)
			if err != nil || v > unicode.MaxRune {
				fail(l.line, "\\%c%s is no character", c, rest[i+1:i+1+width])
			}
			b.WriteRune(rune(v))
			i += width
		case '0', '1', '2', '3', '4', '5', '6', '7':
			v, n := rune(0), 0
			for n < 3 && i+n < len(rest) && rest[i+n] >= '0' && rest[i+n] <= '7' {
				v = v*8 + rune(rest[i+n]-'0')
				n++
			}
			b.WriteRune(v)
			i += n - 1
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	fail(l.line, "a string has no closing %c", quote)
}

// isSpace is Python's str.isspace for one character.
func isSpace(c rune) bool {
	return unicode.IsSpace(c) || (c >= 0x1c && c <= 0x1f)
}
