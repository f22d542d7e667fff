package regime

import (
	"bytes"
	"unicode/utf8"
)

// lexemes are the numbers of what a lexer finds in a line.
type lexemes struct {
	words    int // of letters only, one letter or more
	foreign  int // of these, written in no Latin letters
	stops    int // of these, small words that no sentence can do without
	pairs    int // words that follow a word, with nothing but a space between them
	singles  int // words of one letter, but a and I
	upper    int // words in capitals
	idents   int // snake_case, camelCase, x1, a.b
	calls    int // f(
	numbers  int
	strings  int
	spans    int // `inline code`, which counts as nothing else
	strong   int // operators that only programs have: == != += -> => := :: && || ++
	assigns  int // = that stands alone
	arith    int // + - * / ^ % between operands
	relation int // = ≈ < > ≤ ≥ between operands that could be of an equation
	tex      int // commands of TeX
	dollars  int // inline formulas
	symbols  int // mathematical characters
	braces   int
	last     byte
	lastWord bool // a word, a number or a string ends the line, before its punctuation
	capital  bool // the line begins with a capital letter
	punct    int  // bytes of punctuation
	flags    int  // -x or --long, as commands have them
	columns  int  // gaps of several spaces
	implicit int  // 2x, a number times a letter
	trailer  bool // a comment ends the line
	length   int
}

// codeMarks counts what sets programs apart from everything else.
func (x *lexemes) codeMarks() int { return x.calls + x.strong + x.braces }

const (
	isNothing = iota
	isWord
	isOperand // number, single letter, closing bracket
	isOther
)

// lex counts the lexemes of a line without its indentation.
func (x *lexemes) lex(s []byte) {
	x.length = len(s)
	if len(s) == 0 {
		return
	}
	x.last = s[len(s)-1]
	x.capital = isUpper(s[0])
	before, spaced := isNothing, false // what came last, and whether a space followed it
	one := false                       // it was a single one
	short := false                     // what came last is a word that could be a variable
	pendingOp := false                 // an arithmetic operator or relation waits for its right operand
	relation := false
	operand := func() {
		if pendingOp {
			if relation {
				x.relation++
			} else {
				x.arith++
			}
		}
		pendingOp = false
	}
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == ' ' || c == '\t':
			one = !spaced && c == ' '
			if spaced && (i < 2 || s[i-2] != '.') && (i+1 == len(s) || s[i+1] != ' ') {
				x.columns++
			}
			spaced = true
			i++
			continue
		case isLetter(c) || c == '_' || c >= utf8.RuneSelf:
			n, class := x.word(s, i)
			if n == 0 { // a character of no word
				r, size := utf8.DecodeRune(s[i:])
				if r == '·' && before == isOperand {
					relation, pendingOp = false, true
				} else if isMathRune(r) {
					x.symbols++
					relation = r == '≈' || r >= 0x2260 && r <= 0x2265
					pendingOp = true
				}
				i += size
				before, spaced = isOther, false
				continue
			}
			if class == isWord && before == isWord && spaced && one {
				x.pairs++
			}
			if class == isWord && n == 1 && followedByOperator(s[i+n:]) {
				class = isOperand // a = 1
				x.singles++
				x.words--
			}
			short = n <= 3 && class == isWord
			if class == isOperand || short {
				operand()
			}
			pendingOp = false
			i += n
			if i < len(s) && s[i] == '(' && s[i-1] != '_' {
				if i+1 < len(s) && !(i+2 < len(s) && s[i+1] == 's' && s[i+2] == ')') && n > 1 {
					x.calls++
				}
			}
			before, spaced = class, false
			continue
		case isDigit(c):
			for i < len(s) && (isDigit(s[i]) || (s[i] == '.' || s[i] == ',') && i+1 < len(s) && isDigit(s[i+1])) {
				i++
			}
			x.numbers++
			operand()
			before, spaced = isOperand, false
			if i < len(s) && isLetter(s[i]) && (i+1 == len(s) || !isLetter(s[i+1])) && s[i] != 'x' || i+1 < len(s) && s[i] == 'x' && !isDigit(s[i+1]) && !isLetter(s[i+1]) {
				x.implicit++
			}
			continue
		case c == '`':
			n := 1
			for i+n < len(s) && s[i+n] == '`' {
				n++
			}
			if end := bytes.Index(s[i+n:], s[i:i+n]); end >= 0 {
				x.spans++
				i += 2*n + end
				if before == isWord && spaced {
					x.pairs++
				}
				before, spaced = isWord, false
				continue
			}
			i += n
			before = isOther
			continue
		case c == '"' || c == '\'' && before != isWord && before != isOperand:
			if end := bytes.IndexByte(s[i+1:], c); end >= 0 && (c == '"' || end < 40) {
				if bytes.Count(s[i+1:i+1+end], []byte(" ")) < 4 {
					x.strings++
					i += end + 2
					before, spaced = isOther, false
					x.punct += 2
					continue
				}
			}
		case c == '\\' && i+1 < len(s):
			n := 1
			for i+n < len(s) && isLetter(s[i+n]) {
				n++
			}
			if n > 1 && !(n == 2 && (s[i+1] == 'n' || s[i+1] == 't' || s[i+1] == 'd' || s[i+1] == 'w' || s[i+1] == 's' || s[i+1] == 'b')) {
				x.tex++
				operand()
				before = isOperand
			} else {
				if c := s[i+1]; c == '(' || c == '[' {
					x.dollars++
				}
				before = isOther
				n = 2
			}
			i += n
			spaced = false
			continue
		case c == '$' && i+1 < len(s) && s[i+1] == '(':
			x.calls++
		case c == '$':
			if n := formula(s[i:]); n > 0 {
				x.dollars++
				x.tex += bytes.Count(s[i:i+n], []byte(`\`))
				i += n
				before, spaced = isOther, false
				continue
			}
		case c == '{' || c == '}':
			x.braces++
		case c == '=' || c == '<' || c == '>' || c == '!' || c == '&' || c == '|' || c == ':' || c == '+' || c == '-':
			if i+1 < len(s) {
				if n := operator(c, s[i+1]); n {
					x.strong++
					x.punct += 2
					i += 2
					pendingOp = false
					before, spaced = isOther, false
					continue
				}
			}
			if c == '-' && spaced && i+2 < len(s) && (s[i+1] == '-' && isLetter(s[i+2]) || isLetter(s[i+1]) && before != isOperand) {
				x.flags++
			}
			if c == '=' {
				x.assigns++
			}
			if c == '=' || (c == '<' || c == '>') && spaced {
				relation, pendingOp = true, before == isOperand || short && before == isWord
			} else if (c == '+' || c == '-') && (before == isOperand || short && spaced && before == isWord) {
				relation, pendingOp = false, true
			}
		case c == '*' || c == '/' || c == '^' || c == '%':
			if c == '/' && (spaced || i == 0) && i+1 < len(s) && (s[i+1] == '/' || s[i+1] == '*') {
				x.trailer = true
				x.last = 0
				if before := bytes.TrimRight(s[:i], " \t"); len(before) > 0 { // blanks alone after the mark of a quotation
					x.last = before[len(before)-1]
				}
				return
			}
			if c == '*' && before == isOperand && spaced && i+2 < len(s) && s[i+1] == '*' && s[i+2] == ' ' {
				x.strong++
				i += 2
				before, spaced = isOther, false
				continue
			}
			if before == isOperand {
				relation, pendingOp = false, true
			}
		}
		x.punct++
		if c == ')' || c == ']' {
			before = isOperand
		} else if !(c == '(' || c == '[') {
			if before != isNothing || c != '-' {
				before = isOther
			}
		}
		spaced = false
		i++
	}
	x.lastWord = before == isWord
	if n := len(s); before == isOther && n > 1 && (x.last == '.' || x.last == '!' || x.last == '?' || x.last == ',' || x.last == ':' || x.last == '"' || x.last == '*') {
		c := s[n-2]
		x.lastWord = isLetter(c) || isDigit(c) || c >= utf8.RuneSelf || c == ')' || c == '`' || c == '"' || c == '*' || c == '.'
	}
	if n := len(s); n > 3 && s[n-3] == 0xe3 && s[n-2] == 0x80 && s[n-1] == 0x82 { // 。
		x.lastWord = true
	}
}

// operator tells whether two characters are an operator of programs.
func operator(a, b byte) bool {
	switch a {
	case '=':
		return b == '=' || b == '>'
	case '!', '+', '<', '>', ':':
		return b == '=' || b == a && a != '!' || a == '<' && b == '-'
	case '-':
		return b == '=' || b == '>' || b == '-' && false
	case '&', '|':
		return b == a
	}
	return false
}

// followedByOperator tells whether an operator comes next, after a space.
func followedByOperator(s []byte) bool {
	return len(s) > 2 && s[0] == ' ' && (s[1] == '=' || s[1] == '+' || s[1] == '*' || s[1] == '/' || s[1] == '-' && s[2] == ' ')
}

// formula gives the length of an inline formula $…$, 0 if there is none: no space inside the dollars, no
// digit after them, so that sums of money are none.
func formula(s []byte) int {
	end := bytes.IndexByte(s[1:], '$')
	if end < 1 || end > 200 || s[1] == ' ' || s[end] == ' ' {
		return 0
	}
	if end+2 < len(s) && isDigit(s[end+2]) {
		return 0
	}
	return end + 2
}

// word reads a word or an identifier at i and gives its length and class.
func (x *lexemes) word(s []byte, i int) (n, class int) {
	start, ident, letters, latin := i, false, 0, true
	for i < len(s) {
		c := s[i]
		if isLetter(c) {
			if isUpper(c) && i > start && isLower(s[i-1]) && i+1 < len(s) && isLower(s[i+1]) {
				ident = true // camelCase
			}
			letters++
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(s[i:])
			if !isWordRune(r) {
				if r == '’' && i > start && i+size < len(s) && isLetter(s[i+size]) {
					i += size
					continue
				}
				break
			}
			if r > 0x24f {
				latin = false
			}
			letters++
			i += size
			continue
		}
		if c == '\'' && i > start && i+1 < len(s) && isLetter(s[i+1]) && s[i-1] != '\'' {
			i++
			continue
		}
		if c == '_' && !(i == start || i+1 < len(s) && !isLetter(s[i+1]) && !isDigit(s[i+1]) && s[i+1] != '_') || c == '_' && i == start && i+1 < len(s) && s[i+1] == '_' {
			ident = true
			i++
			continue
		}
		if isDigit(c) {
			if i-start > 0 {
				ident = ident || i-start > 1
				i++
				continue
			}
		}
		if c == '.' && i > start && i+1 < len(s) && isLetter(s[i+1]) && isLower(s[i-1]) && !(isUpper(s[i+1])) {
			ident = true // a.b
			i++
			continue
		}
		break
	}
	n = i - start
	if n == 0 {
		if s[start] == '_' {
			return 1, isOther
		}
		return 0, isOther
	}
	w := s[start:i]
	switch {
	case ident:
		x.idents++
		return n, isOther
	case letters == 1 && latin:
		if w[0] != 'a' && w[0] != 'I' && w[0] != 'A' {
			x.singles++
			return n, isOperand
		}
	}
	x.words++
	if !latin {
		x.foreign++
	}
	if isStop(w) {
		x.stops++
	}
	if n > 1 && isUpper(w[0]) && isUpper(w[n-1]) {
		x.upper++
	}
	return n, isWord
}

// isStop tells whether a word is one of the small words of a language, English above all.
func isStop(w []byte) bool {
	if len(w) > 5 {
		return false
	}
	var low [5]byte
	for i, c := range w {
		if isUpper(c) {
			c += 'a' - 'A'
		}
		low[i] = c
	}
	return stops[string(low[:len(w)])]
}

var stops = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range bytes.Fields([]byte("the of and to a in that it is was i for on you he be with as by at have are this not but had his they " +
		"her she from which or we an there were been has when who will more no if out so what up its about into them can only other my your " +
		"their would could than then these those de la el en y que los las un una es por con se del le les des et est une dans du que der die " +
		"das und ist ein eine zu den von mit im nicht sich auf")) {
		m[string(w)] = true
	}
	return m
}()
