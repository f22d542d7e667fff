package grammar

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf16"
)

// maxPattern is the longest regular expression that is read, in bytes.
const maxPattern = 1 << 16

// Regex allows the texts that the regular expression matches as a whole. The syntax is that of
// ECMAScript without what is not regular: look-around, back references and \b are errors.
func Regex(pattern string) (*Grammar, error) {
	d, err := regex(pattern, false)
	if err == nil {
		d, err = d.encode(asUTF8)
	}
	var g *Grammar
	if err == nil {
		g, err = compile([]*rule{{automaton: d}}, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot compile the regular expression: %w", err)
	}
	return g, nil
}

// regex returns the automaton over code points of the texts that a pattern matches: as a whole, or
// somewhere.
func regex(pattern string, somewhere bool) (*dfa, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("it is longer than %d bytes", maxPattern)
	}
	text, err := ecmascript(pattern)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		var se *syntax.Error
		if errors.As(err, &se) {
			return nil, fmt.Errorf("%s: %q", se.Code, se.Expr)
		}
		return nil, err
	}
	n := &nfa{}
	start, end := n.node(), n.node()
	from, to := start, end
	if somewhere {
		for _, p := range []*int32{&from, &to} {
			loop := n.node()
			n.edge(loop, 0, lastChar, loop)
			if p == &from {
				in := n.node()
				n.skip(start, loop)
				n.skip(loop, in)
				from = in
			} else {
				n.skip(loop, end)
				to = loop
			}
		}
	}
	n.regex(tree, from, to)
	return n.determinise(start, end)
}

func (n *nfa) regex(re *syntax.Regexp, from, to int32) {
	if n.err != nil {
		return
	}
	switch re.Op {
	case syntax.OpNoMatch:
	case syntax.OpEmptyMatch:
		n.skip(from, to)
	case syntax.OpLiteral:
		for i, r := range re.Rune {
			next := to
			if i+1 < len(re.Rune) {
				next = n.node()
			}
			n.edge(from, r, r, next)
			if re.Flags&syntax.FoldCase != 0 {
				for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
					n.edge(from, f, f, next)
				}
			}
			from = next
		}
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			n.edge(from, re.Rune[i], re.Rune[i+1], to)
		}
	case syntax.OpAnyChar:
		n.edge(from, 0, lastChar, to)
	case syntax.OpAnyCharNotNL:
		at := int32(0)
		for _, r := range []int32{'\n', '\r', 0x2028, 0x2029, lastChar + 1} {
			if at < r {
				n.edge(from, at, r-1, to)
			}
			at = r + 1
		}
	case syntax.OpBeginText:
		n.skips[from] = append(n.skips[from], skip{to, atBegin})
	case syntax.OpEndText:
		n.skips[from] = append(n.skips[from], skip{to, atEnd})
	case syntax.OpCapture:
		n.regex(re.Sub[0], from, to)
	case syntax.OpStar:
		n.times(re.Sub[0], 0, -1, from, to)
	case syntax.OpPlus:
		n.times(re.Sub[0], 1, -1, from, to)
	case syntax.OpQuest:
		n.times(re.Sub[0], 0, 1, from, to)
	case syntax.OpRepeat:
		n.times(re.Sub[0], re.Min, re.Max, from, to)
	case syntax.OpConcat:
		for i, s := range re.Sub {
			next := to
			if i+1 < len(re.Sub) {
				next = n.node()
			}
			n.regex(s, from, next)
			from = next
		}
	case syntax.OpAlternate:
		for _, s := range re.Sub {
			n.regex(s, from, to)
		}
	default:
		n.err = fmt.Errorf("%q is not supported", re.String())
	}
}

func (n *nfa) times(re *syntax.Regexp, least, most int, from, to int32) {
	for i := 0; i < least && n.err == nil; i++ {
		next := n.node()
		n.regex(re, from, next)
		from = next
	}
	if most < 0 {
		in, out := n.node(), n.node()
		n.skip(from, in)
		n.regex(re, in, out)
		n.skip(out, in)
		n.skip(in, to)
		return
	}
	for i := least; i < most && n.err == nil; i++ {
		n.skip(from, to)
		next := n.node()
		n.regex(re, from, next)
		from = next
	}
	n.skip(from, to)
}

// What \s and \S are in ECMAScript, as members of a class.
const (
	spaces   = `\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	nonSpace = `\x{0}-\x{8}\x{e}-\x{1f}!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}` +
		`\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
)

// ecmascript writes a pattern as package syntax reads it: where the two agree nothing changes.
func ecmascript(pattern string) (string, error) {
	var out strings.Builder
	class := false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		if c == '[' && !class {
			class = true
			if strings.HasPrefix(pattern[i:], "[]") || strings.HasPrefix(pattern[i:], "[^]") {
				return "", errors.New("an empty class [] is not supported")
			}
		} else if c == '[' {
			out.WriteByte('\\') // package syntax would look for [:name:]
		} else if c == ']' {
			class = false
		}
		if c != '\\' {
			out.WriteByte(c)
			continue
		}
		if i++; i == len(pattern) {
			return "", errors.New(`it ends in a \`)
		}
		switch c = pattern[i]; {
		case c == 's' || c == 'S':
			set := spaces
			if c == 'S' {
				set = nonSpace
			}
			if !class {
				set = "[" + set + "]"
			}
			out.WriteString(set)
		case c == 'u':
			r, n := codePoint(pattern[i+1:])
			if n == 0 {
				return "", fmt.Errorf(`\u needs four hexadecimal digits or a number in braces, at byte %d`, i)
			}
			i += n
			fmt.Fprintf(&out, `\x{%x}`, r)
		case c == 'x':
			if i+2 >= len(pattern) {
				return "", fmt.Errorf(`\x needs two hexadecimal digits, at byte %d`, i)
			}
			out.WriteString(`\x`)
		case c == 'c' && i+1 < len(pattern) && (pattern[i+1]|32) >= 'a' && (pattern[i+1]|32) <= 'z':
			i++
			fmt.Fprintf(&out, `\x{%x}`, pattern[i]&31)
		case c == '0' && (i+1 == len(pattern) || pattern[i+1] < '0' || pattern[i+1] > '9'):
			out.WriteString(`\x{0}`)
		case c == 'b' && class:
			out.WriteString(`\x{8}`)
		case strings.IndexByte("dDwWtnrfvpPk", c) >= 0, c < 0x80 && !letterOrDigit(c):
			out.WriteByte('\\')
			out.WriteByte(c)
		default:
			return "", fmt.Errorf(`\%c is not supported`, c)
		}
	}
	return out.String(), nil
}

func letterOrDigit(c byte) bool { return c >= '0' && c <= '9' || c|32 >= 'a' && c|32 <= 'z' }

// codePoint reads what follows \u, a surrogate pair included, and returns its length.
func codePoint(s string) (rune, int) {
	hex := func(digits string) rune {
		var r rune
		for _, c := range []byte(digits) {
			d := strings.IndexByte("0123456789abcdef", c|32)
			if d < 0 || r > 0x10FFFF {
				return -1
			}
			r = r<<4 | rune(d)
		}
		if digits == "" || r > lastChar {
			return -1
		}
		return r
	}
	if strings.HasPrefix(s, "{") {
		digits, _, ok := strings.Cut(s[1:], "}")
		if r := hex(digits); ok && r >= 0 {
			return r, len(digits) + 2
		}
		return 0, 0
	}
	if len(s) < 4 {
		return 0, 0
	}
	r := hex(s[:4])
	if r < 0 {
		return 0, 0
	}
	if utf16.IsSurrogate(r) && len(s) >= 10 && s[4:6] == `\u` {
		if pair := utf16.DecodeRune(r, hex(s[6:10])); pair != unicode.ReplacementChar {
			return pair, 10
		}
	}
	return r, 4
}
