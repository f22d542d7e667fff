package grammar

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Bounds of a grammar's text.
const (
	maxText   = 1 << 20 // bytes
	maxNested = 200     // groups in groups
	maxRepeat = 10_000  // {m,n}
)

// EBNF compiles a grammar in the notation of llama.cpp (GBNF). A rule is
//
//	name ::= alternatives
//
// and the text is what the rule root allows. Alternatives are separated by |, items by blanks. An
// item is "text", a class [a-z] or [^"\\], any character ., a rule, or a group (…), and may be
// followed by *, +, ?, {m}, {m,}, {,n} or {m,n}. Escapes are \n \r \t \" \\ \[ \] \- \^ \xHH \uHHHH
// \UHHHHHHHH. A # begins a comment. A rule goes on in the next line within parentheses, and where
// the line ends in | or the next begins with it. Left recursion is an error.
func EBNF(text string) (*Grammar, error) {
	g, err := ebnf(text)
	if err != nil {
		return nil, fmt.Errorf("cannot compile the grammar: %w", err)
	}
	return g, nil
}

type ebnfParser struct {
	text  string
	at    int
	ids   map[string]int32
	rules []*rule
	seen  []int // byte where a rule is first named
}

func ebnf(text string) (*Grammar, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("it is longer than %d bytes", maxText)
	}
	p := &ebnfParser{text: text, ids: map[string]int32{}}
	if err := p.parse(); err != nil {
		return nil, err
	}
	root, ok := p.ids["root"]
	if !ok {
		return nil, fmt.Errorf("there is no rule named root")
	}
	for i, r := range p.rules {
		if r.body == nil {
			return nil, p.fail(p.seen[i], "rule %q is not defined", r.name)
		}
	}
	return compile(p.rules, root)
}

// fail is an error with the line and column of a byte.
func (p *ebnfParser) fail(at int, format string, a ...any) error {
	line, column := 1, 1
	for _, c := range p.text[:min(at, len(p.text))] {
		column++
		if c == '\n' {
			line, column = line+1, 1
		}
	}
	return fmt.Errorf("line %d, column %d: %s", line, column, fmt.Sprintf(format, a...))
}

// blanks skips blanks and comments; line breaks too if asked.
func (p *ebnfParser) blanks(breaks bool) {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == ' ' || c == '\t' || breaks && (c == '\n' || c == '\r'):
			p.at++
		case c == '#':
			for p.at < len(p.text) && p.text[p.at] != '\n' && p.text[p.at] != '\r' {
				p.at++
			}
		default:
			return
		}
	}
}

func (p *ebnfParser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

func (p *ebnfParser) name() string {
	from := p.at
	for p.at < len(p.text) && (letterOrDigit(p.text[p.at]) || p.text[p.at] == '-' || p.text[p.at] == '_') {
		p.at++
	}
	return p.text[from:p.at]
}

func (p *ebnfParser) rule(name string, at int) int32 {
	id, ok := p.ids[name]
	if !ok {
		id = int32(len(p.rules))
		p.ids[name] = id
		p.rules = append(p.rules, &rule{name: name})
		p.seen = append(p.seen, at)
	}
	return id
}

func (p *ebnfParser) parse() error {
	for p.blanks(true); p.at < len(p.text); p.blanks(true) {
		at := p.at
		name := p.name()
		if name == "" {
			return p.fail(at, "the name of a rule is missing")
		}
		p.blanks(false)
		if p.at+3 > len(p.text) || p.text[p.at:p.at+3] != "::=" {
			return p.fail(p.at, "::= is missing after %q", name)
		}
		p.at += 3
		id := p.rule(name, at)
		if p.rules[id].body != nil {
			return p.fail(at, "rule %q is defined twice", name)
		}
		p.blanks(true)
		e, err := p.alternatives(0)
		if err != nil {
			return err
		}
		p.rules[id].body = e
		if c := p.peek(); p.at < len(p.text) && c != '\n' && c != '\r' {
			return p.fail(p.at, "%q is not expected here", c)
		}
	}
	return nil
}

func (p *ebnfParser) alternatives(depth int) (expression, error) {
	if depth > maxNested {
		return nil, p.fail(p.at, "groups are nested deeper than %d", maxNested)
	}
	var c choice
	for {
		e, err := p.items(depth)
		if err != nil {
			return nil, err
		}
		c = append(c, e)
		at := p.at
		p.blanks(true)
		if p.peek() != '|' {
			if depth == 0 {
				p.at = at
			}
			break
		}
		p.at++
		p.blanks(true)
	}
	if len(c) == 1 {
		return c[0], nil
	}
	return c, nil
}

func (p *ebnfParser) items(depth int) (expression, error) {
	s := sequence{}
	for {
		p.blanks(depth > 0)
		at := p.at
		var e expression
		switch c := p.peek(); {
		case p.at == len(p.text) || c == '|' || c == ')' || c == '\n' || c == '\r':
			return s, nil
		case c == '"':
			text, err := p.quoted()
			if err != nil {
				return nil, err
			}
			e = literal(text)
		case c == '[':
			set, err := p.class()
			if err != nil {
				return nil, err
			}
			e = set
		case c == '.':
			p.at++
			e = chars{{0, lastChar, 0}}
		case c == '(':
			p.at++
			p.blanks(true)
			var err error
			if e, err = p.alternatives(depth + 1); err != nil {
				return nil, err
			}
			if p.peek() != ')' {
				return nil, p.fail(at, "this ( is not closed")
			}
			p.at++
		default:
			name := p.name()
			if name == "" {
				r, _ := utf8.DecodeRuneInString(p.text[p.at:])
				return nil, p.fail(at, "%q is not expected here", r)
			}
			e = reference(p.rule(name, at))
		}
		e, err := p.repeated(e)
		if err != nil {
			return nil, err
		}
		s = append(s, e)
	}
}

func (p *ebnfParser) repeated(e expression) (expression, error) {
	for depth := 0; ; depth++ {
		p.blanks(false)
		at := p.at
		least, most := 0, -1
		switch p.peek() {
		case '*':
			p.at++
		case '+':
			p.at++
			least = 1
		case '?':
			p.at++
			most = 1
		case '{':
			p.at++
			var err error
			if least, most, err = p.braces(at); err != nil {
				return nil, err
			}
		default:
			return e, nil
		}
		if depth > 8 {
			return nil, p.fail(at, "too many repetitions of a repetition")
		}
		e = repeat{e, least, most}
	}
}

// braces reads what follows the { at a byte, up to and with the }.
func (p *ebnfParser) braces(at int) (least, most int, err error) {
	first, ok, err := p.number()
	if err != nil {
		return 0, 0, err
	}
	least, most = first, first
	if p.peek() == ',' {
		p.at++
		var second bool
		if most, second, err = p.number(); err != nil {
			return 0, 0, err
		}
		if !second {
			most = -1
		}
		ok = ok || second
	}
	if !ok || p.peek() != '}' {
		return 0, 0, p.fail(at, "a repetition is {m}, {m,}, {,n} or {m,n}")
	}
	if most >= 0 && most < least {
		return 0, 0, p.fail(at, "the repetition {%d,%d} is empty", least, most)
	}
	p.at++
	return least, most, nil
}

// number reads a count between blanks; ok is false where there is none.
func (p *ebnfParser) number() (n int, ok bool, err error) {
	p.blanks(false)
	from := p.at
	for p.peek() >= '0' && p.peek() <= '9' {
		p.at++
	}
	digits := p.text[from:p.at]
	p.blanks(false)
	if digits == "" {
		return 0, false, nil
	}
	n, err = strconv.Atoi(digits)
	if err != nil || n > maxRepeat {
		return 0, false, p.fail(from, "a repetition may count up to %d", maxRepeat)
	}
	return n, true, nil
}

func (p *ebnfParser) quoted() (string, error) {
	at := p.at
	var out []byte
	for p.at++; ; {
		switch p.peek() {
		case '"':
			p.at++
			return string(out), nil
		case '\n', 0:
			return "", p.fail(at, "this text is not closed")
		}
		c, err := p.char()
		if err != nil {
			return "", err
		}
		out = utf8.AppendRune(out, c)
	}
}

// char reads a character or an escape.
func (p *ebnfParser) char() (rune, error) {
	at := p.at
	if p.peek() != '\\' {
		r, n := utf8.DecodeRuneInString(p.text[p.at:])
		if r == utf8.RuneError && n <= 1 {
			return 0, p.fail(at, "this is not UTF-8")
		}
		p.at += n
		return r, nil
	}
	p.at++
	e := p.peek()
	p.at++
	count := 0
	switch e {
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case '"', '\\', '[', ']', '-', '^', '/', '\'':
		return rune(e), nil
	case 'x':
		count = 2
	case 'u':
		count = 4
	case 'U':
		count = 8
	default:
		return 0, p.fail(at, `the escape \%c is not known`, e)
	}
	if p.at+count > len(p.text) {
		return 0, p.fail(at, `\%c needs %d hexadecimal digits`, e, count)
	}
	v, bad := strconv.ParseUint(p.text[p.at:p.at+count], 16, 32)
	if bad != nil || count > 2 && !utf8.ValidRune(rune(v)) || v > lastChar {
		return 0, p.fail(at, `\%c needs %d hexadecimal digits of a character`, e, count)
	}
	p.at += count
	return rune(v), nil
}

func (p *ebnfParser) class() (chars, error) {
	at := p.at
	p.at++
	negated := p.peek() == '^'
	if negated {
		p.at++
	}
	n := &nfa{}
	start, end := n.node(), n.node()
	for p.peek() != ']' {
		if p.at >= len(p.text) || p.peek() == '\n' {
			return nil, p.fail(at, "this class is not closed")
		}
		lo, err := p.char()
		if err != nil {
			return nil, err
		}
		hi := lo
		if p.peek() == '-' && p.at+1 < len(p.text) && p.text[p.at+1] != ']' {
			p.at++
			if hi, err = p.char(); err != nil {
				return nil, err
			}
		}
		if hi < lo {
			return nil, p.fail(at, "a range of this class is upside down")
		}
		n.edge(start, lo, hi, end)
	}
	p.at++
	d, err := n.determinise(start, end)
	if err != nil {
		return nil, err
	}
	var set chars
	if len(d.edges) > 0 {
		set = d.edges[0]
	}
	if negated {
		var rest chars
		next := int32(0)
		for _, r := range set {
			if r.lo > next {
				rest = append(rest, edge{next, r.lo - 1, 0})
			}
			next = r.hi + 1
		}
		if next <= lastChar {
			rest = append(rest, edge{next, lastChar, 0})
		}
		set = rest
	}
	return set, nil
}
