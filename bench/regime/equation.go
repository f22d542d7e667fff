package regime

import (
	"bytes"
	"unicode/utf8"
)

// How much a line is a formula that has no marks of TeX, in points of mathematics.
const (
	defines = 13 // f(x) = …
	reckons = 13 // 3 km/h * 2 = 6 km/h
	inWords = 12 // Area = width × height
	perSign = 2  // for each operator of the last, up to four
)

// equationOf recognises equations that the lexer takes for sentences or programs, because their operands are
// words, calls or numbers with units: a function of a few letters that is defined by an expression, a name of
// some words that equals an expression of names, numbers that are reckoned with. 0 for other lines.
func equationOf(s []byte) int {
	s = bytes.Trim(s, " *_.")
	for _, w := range []string{"So, ", "Thus, ", "Therefore, ", "Hence, ", "Then, ", "Then ", "So ", "Hence ", "Thus ", "Therefore "} {
		if rest, ok := bytes.CutPrefix(s, []byte(w)); ok {
			s = rest
			break
		}
	}
	left, right, ok := sides(s)
	if !ok || bytes.IndexAny(s, "\"'`;{}[]|&!?\\:$#@<>") >= 0 {
		return 0
	}
	r := sideOf(right)
	l := sideOf(left)
	switch {
	case r.bad:
		return 0
	case functionOf(left) && r.operators+r.products > 0 && r.verbs == 0:
		return defines
	case l.bad:
		return 0
	case l.numbers > 0 && r.numbers > 0 && isDigit(bytes.TrimLeft(left, "(-$€£ ")[0]) && l.reckoned+r.reckoned > 0 && l.verbs+r.verbs == 0 && l.words+r.words <= 8:
		return reckons
	case l.words > 1 && l.words <= 6 && l.operators == 0 && isUpper(s[0]) && r.operators > 0 && r.words+r.numbers > r.operators/2 && l.verbs+r.verbs == 0 && r.longest <= 5:
		return inWords + perSign*min(r.operators, 4)
	}
	return 0
}

// sides cuts a line at its first = that stands alone.
func sides(s []byte) (left, right []byte, ok bool) {
	for i, c := range s {
		if c != '=' {
			continue
		}
		if i == 0 || i+1 == len(s) || s[i+1] == '=' || s[i+1] == '>' || bytes.IndexByte([]byte("=!<>:+-*/%^|&~?."), s[i-1]) >= 0 {
			return nil, nil, false
		}
		if s[i-1] != ' ' || s[i+1] != ' ' {
			return nil, nil, false // name=value
		}
		return bytes.TrimSpace(s[:i]), bytes.TrimSpace(s[i+1:]), true
	}
	return nil, nil, false
}

// side is what one side of an equation is made of.
type side struct {
	words     int // names
	longest   int // most of them in a row
	numbers   int
	operators int // that stand between operands, with spaces around them
	reckoned  int // of these, those behind a number or its unit and before a number
	products  int // two or three letters that are a product: ac
	verbs     int // words of sentences
	bad       bool
}

// verbs are words that an equation does not have.
var verbs = map[string]bool{"is": true, "are": true, "was": true, "be": true, "have": true, "has": true, "we": true, "you": true, "it": true, "this": true,
	"that": true, "if": true, "when": true, "can": true, "will": true, "let": true, "where": true, "which": true, "const": true, "var": true, "return": true,
	"int": true, "float": true, "double": true, "auto": true, "val": true, "set": true, "local": true, "my": true, "string": true, "bool": true, "char": true}

// sideOf reads a side word by word.
func sideOf(s []byte) (o side) {
	run, after := 0, false // words in a row; a number came before, and only its unit since
	fields := bytes.Fields(s)
	for i, f := range fields {
		f = bytes.Trim(f, "(),.")
		switch {
		case len(f) == 0:
			continue
		case isOperator(f):
			if i > 0 && i+1 < len(fields) {
				o.operators++
				if next := bytes.TrimLeft(fields[i+1], "(-$€£"); after && len(next) > 0 && isDigit(next[0]) {
					o.reckoned++
				}
			}
			run, after = 0, false
			continue
		case isDigit(f[0]) || f[0] == '-' && len(f) > 1 && isDigit(f[1]):
			o.numbers++
			run, after = 0, true
			continue
		}
		for k, c := range f {
			switch {
			case c == '_' || c == '.':
				o.bad = true // snake_case, a.b
			case isUpper(c) && k > 0 && !allUpper(f):
				o.bad = true // camelCase
			}
		}
		if verbs[string(bytes.ToLower(f))] {
			o.verbs++
		}
		if n := len(f); n >= 2 && n <= 3 && isLower(f[0]) && bytes.IndexAny(f, "aeiouy") < 0 || n == 2 && (string(f) == "ab" || string(f) == "ac" || string(f) == "ad") {
			o.products++
		}
		o.words++
		run++
		o.longest = max(o.longest, run)
	}
	return o
}

func allUpper(f []byte) bool {
	for _, c := range f {
		if isLower(c) {
			return false
		}
	}
	return true
}

// isOperator tells whether a field is an arithmetic operator; x is one between others.
func isOperator(f []byte) bool {
	r, n := utf8.DecodeRune(f)
	if n != len(f) {
		return false
	}
	switch r {
	case '+', '-', '*', '/', '^', '×', '÷', '−', '·', '⋅', 'x', '±':
		return true
	}
	return false
}

// functionOf tells whether a side is a function of a few letters or numbers: f(x), det(A), P(A, B).
func functionOf(s []byte) bool {
	name := leading(s)
	if len(name) == 0 || len(name) > 5 || len(s) < len(name)+3 || s[len(name)] != '(' || s[len(s)-1] != ')' {
		return false
	}
	for _, c := range name {
		if c == '_' {
			return false
		}
	}
	args := s[len(name)+1 : len(s)-1]
	for _, a := range bytes.Split(args, []byte(",")) {
		if n := len(bytes.TrimSpace(a)); n == 0 || n > 2 {
			return false
		}
	}
	return true
}
