package regime

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// lineKind is what a line is to the structure of the text.
type lineKind uint8

const (
	textLine lineKind = iota
	blankLine
	fenceLine     // could open or close a fence
	delimiterLine // does
)

// delimiter is what encloses display mathematics.
type delimiter uint8

const (
	none        delimiter = iota
	dollars               // $$ … $$
	brackets              // \[ … \]
	environment           // \begin{align} … \end{align}
)

// quote is what holds several lines of a program that are no statements.
type quote uint8

const (
	unquoted   quote = iota
	starred          // /* … */
	docstring        // """ … """
	docstring1       // ''' … '''
)

// marker is what an item of a list begins with.
type marker uint8

const (
	noMarker marker = iota
	bullet
	numbered
)

// line is all that is kept of a line of text.
type line struct {
	size   int // bytes, with the line's end
	kind   lineKind
	indent int // columns; a tab is 4
	fence  fence

	opens, closes delimiter // of display mathematics
	both          bool      // opens and closes it
	alone         bool      // and has nothing else on it
	display       bool      // lies within, set by the block

	marker  marker
	number  uint8 // of the item, at most 255
	row     bool  // of a table
	rule    bool  // |---|---|
	section bool  // [section]
	pair    bool  // key: value
	record  int   // separators of a line of values, 0 = none
	tag     bool  // <tag
	member  bool  // "key": of JSON
	style   bool  // selector { or property: value;
	query   bool  // SQL
	heading bool
	comment bool  // # …, a heading or a comment
	begins  quote // a comment or text over several lines begins
	ends    quote
	quoted  bool // lies within, set by the block
	diff    bool // + or − in the first column

	grammar  int // how well it parses as a statement; see statement.go
	equation int // how surely it is an equation of words, calls or numbers; see equation.go
	lexemes
}

// blanks are bytes that may begin a line.
const blanks = " \t\r\f\v"

// readLine reads a line, with or without its end.
func readLine(text []byte) line {
	l := line{size: len(text)}
	s := text
	if len(s) > maxLine {
		s = s[:maxLine]
		for i := 0; i < utf8.UTFMax && len(s) > 0 && !utf8.RuneStart(text[len(s)]); i++ {
			s = s[:len(s)-1]
		}
	}
	s = bytes.TrimRight(s, " \t\r\n\f\v")
	for len(s) > 0 {
		if s[0] == '\t' {
			l.indent += 4
		} else if s[0] == ' ' {
			l.indent++
		} else if bytes.IndexByte([]byte(blanks), s[0]) < 0 {
			break
		}
		s = s[1:]
	}
	if s = bytes.TrimPrefix(s, []byte("> ")); len(s) == 0 { // a quotation is what it quotes
		l.kind = blankLine
		return l
	}
	if l.readFence(s) {
		return l
	}
	l.readDisplay(s)
	rest := l.readMarker(s)
	l.lex(rest)
	l.readShape(s, rest)
	l.grammar = statement(rest, &l.lexemes)
	if l.grammar < certain && l.tex == 0 {
		l.equation = equationOf(rest)
	}
	l.readQuotes(s)
	if l.marker == bullet && s[0] != '*' && l.grammar == 0 {
		l.diff = l.indent == 0 && statement(rest, &l.lexemes) > 0
	}
	return l
}

// readFence recognises three or more backticks or tildes.
func (l *line) readFence(s []byte) bool {
	if s[0] != '`' && s[0] != '~' {
		return false
	}
	n := 0
	for n < len(s) && s[n] == s[0] {
		n++
	}
	info := bytes.TrimSpace(s[n:])
	if n < 3 || bytes.IndexByte(info, '`') >= 0 {
		return false
	}
	if i := bytes.IndexAny(info, " \t{,:"); i >= 0 {
		info = info[:i]
	}
	if len(info) > 32 {
		info = info[:32]
	}
	l.kind = fenceLine
	l.fence = fence{mark: s[0], length: n, info: string(bytes.ToLower(info))}
	return true
}

// environments are those of LaTeX that hold mathematics.
var environments = []string{"equation", "align", "gather", "multline", "eqnarray", "displaymath", "math", "flalign", "alignat", "array", "cases",
	"matrix", "pmatrix", "bmatrix", "vmatrix", "split", "aligned", "gathered"}

// readDisplay looks for the delimiters of display mathematics.
func (l *line) readDisplay(s []byte) {
	set := func(open, end bool, d delimiter) {
		if open && l.opens == none {
			l.opens = d
		}
		if end && l.closes == none {
			l.closes = d
		}
		l.both = l.both || open && end
	}
	if i := bytes.IndexByte(s, '$'); i >= 0 {
		if n := bytes.Count(s[i:], []byte("$$")); n >= 2 {
			set(true, true, dollars)
			l.alone = bytes.HasPrefix(s, []byte("$$")) && bytes.HasSuffix(s, []byte("$$"))
		} else if n == 1 && (bytes.HasPrefix(s, []byte("$$")) || bytes.HasSuffix(s, []byte("$$"))) {
			set(true, true, dollars)
			l.both = false
		}
	}
	if bytes.IndexByte(s, '\\') < 0 {
		return
	}
	set(bytes.Contains(s, []byte(`\[`)), bytes.Contains(s, []byte(`\]`)), brackets)
	l.alone = l.alone || bytes.HasPrefix(s, []byte(`\[`)) && bytes.HasSuffix(s, []byte(`\]`))
	set(environmentIn(s, `\begin{`), environmentIn(s, `\end{`), environment)
}

func environmentIn(s []byte, command string) bool {
	_, name, ok := bytes.Cut(s, []byte(command))
	if !ok {
		return false
	}
	name, _, ok = bytes.Cut(name, []byte("}"))
	if !ok {
		return false
	}
	name = bytes.TrimSuffix(name, []byte("*"))
	for _, e := range environments {
		if string(name) == e {
			return true
		}
	}
	return false
}

// readMarker recognises an item of a list and gives what follows the marker.
func (l *line) readMarker(s []byte) []byte {
	switch {
	case len(s) > 2 && (s[0] == '-' || s[0] == '*' || s[0] == '+') && s[1] == ' ':
		l.marker = bullet
		return bytes.TrimLeft(s[2:], " ")
	case bytes.HasPrefix(s, []byte("• ")), bytes.HasPrefix(s, []byte("– ")), bytes.HasPrefix(s, []byte("☐ ")):
		l.marker = bullet
		return s[4:]
	}
	n, value := 0, 0
	for n < len(s) && n < 3 && s[n] >= '0' && s[n] <= '9' {
		value = value*10 + int(s[n]-'0')
		n++
	}
	if n == 0 && len(s) > 3 { // a. or IV.
		for n < 5 && n < len(s) && (bytes.IndexByte([]byte("IVX"), s[n]) >= 0) {
			n++
		}
		if n == 0 && (s[0] >= 'a' && s[0] <= 'h' || s[0] >= 'A' && s[0] <= 'H') {
			n = 1
		}
	}
	if n > 0 && n+2 < len(s) && (s[n] == '.' || s[n] == ')') && s[n+1] == ' ' {
		l.marker = numbered
		l.number = uint8(min(value, 255))
		return bytes.TrimLeft(s[n+2:], " ")
	}
	return s
}

// readShape recognises what structured text is made of. s is the line, rest what follows a list's marker.
func (l *line) readShape(s, rest []byte) {
	pipes := bytes.Count(s, []byte("|"))
	double := 2 * bytes.Count(s, []byte("||"))
	edged := s[0] == '|' && s[len(s)-1] == '|' && pipes >= 2
	l.row = edged || pipes-double >= 2 && l.codeMarks() < 3 || s[0] == '|' && pipes >= 2
	l.rule = (pipes > 0 || s[0] == '+') && bytes.IndexFunc(s, func(r rune) bool { return bytes.IndexByte([]byte("|-:+= "), byte(r)) < 0 || r > 127 }) < 0
	l.row = l.row || l.rule
	l.section = len(s) > 2 && s[0] == '[' && s[len(s)-1] == ']' && l.words <= 4 && l.number == 0 && sectionName(s[1:len(s)-1])
	n := 0
	for n < len(s) && s[n] == '#' {
		n++
	}
	l.comment = n > 0 && n < 7 && len(s) > n && s[n] == ' '
	l.heading = l.comment && (n > 1 || !isLower(s[n+1]) && l.words <= 8 && l.last != '.')
	l.member = memberOf(s)
	l.tag = tagAt(s)
	l.readPair(rest)
	l.record = l.separators(s)
	l.style = styleAt(s)
	l.query = queryAt(s)
}

// readQuotes looks for the delimiters of comments and texts over several lines.
func (l *line) readQuotes(s []byte) {
	if bytes.HasPrefix(s, []byte("/*")) {
		l.begins = starred
	}
	if bytes.Contains(s, []byte("*/")) {
		l.ends = starred
	}
	for i, mark := range []string{`"""`, "'''"} {
		if n := bytes.Count(s, []byte(mark)); n == 1 && (bytes.HasPrefix(s, []byte(mark)) || bytes.HasSuffix(s, []byte(mark))) {
			l.begins, l.ends = docstring+quote(i), docstring+quote(i)
		}
	}
}

// sectionName tells whether it can name a section of an INI or TOML file.
func sectionName(s []byte) bool {
	s = bytes.Trim(s, "[] ")
	for _, c := range s {
		if !(c == '.' || c == '-' || c == '_' || c == ' ' || c == '"' || c == ':' || c == '/' || isLetter(c) || isDigit(c)) {
			return false
		}
	}
	return len(s) > 0 && isLetter(s[0])
}

// memberOf tells whether a line is a member of a JSON object: "key": …
func memberOf(s []byte) bool {
	if s[0] == '{' {
		s = bytes.TrimLeft(s[1:], " ")
	}
	if len(s) < 4 || s[0] != '"' {
		return false
	}
	i := bytes.IndexByte(s[1:], '"')
	return i >= 0 && len(s) > i+2 && s[i+2] == ':'
}

// tagAt tells whether a line begins with a tag of XML or HTML, or ends with one that closes.
func tagAt(s []byte) bool {
	if s[0] != '<' || len(s) < 3 {
		i := bytes.LastIndex(s, []byte("</"))
		return i > 0 && s[len(s)-1] == '>' && bytes.IndexByte(s, '<') < i
	}
	c := s[1]
	if c == '/' {
		c = s[2]
	}
	return (isLetter(c) || c == '!' || c == '?') && bytes.IndexByte(s, '>') > 1
}

// readPair recognises key: value. A value that goes on for long, or ends like a sentence, is speech.
func (l *line) readPair(s []byte) {
	for _, emphasis := range []string{"**", "__"} {
		s = bytes.TrimPrefix(s, []byte(emphasis))
	}
	i := bytes.IndexByte(s, ':')
	if i < 1 || i > 40 || i+1 < len(s) && s[i+1] != ' ' && s[i+1] != '*' || bytes.IndexAny(s[:i], ".,;(){}[]<>=\"'`\\$|/?!") >= 0 || bytes.Count(s[:i], []byte(" ")) > 3 {
		return
	}
	value := bytes.Trim(s[i+1:], " *")
	if len(value) == 0 {
		l.pair = bytes.IndexByte(s[:i], ' ') < 0 && !isUpper(s[0])
		return
	}
	end := value[len(value)-1]
	l.pair = bytes.Count(value, []byte(" ")) < 8 && end != '?' && end != '!' && (end != '.' || bytes.Count(value, []byte(" ")) < 3) && end != '{' && end != ';'
}

// separators counts those of a line of a CSV or TSV file, 0 for other lines.
func (l *line) separators(s []byte) int {
	if n := bytes.Count(s, []byte("\t")); n >= 2 {
		return n
	}
	n := bytes.Count(s, []byte(","))
	if n < 2 || l.stops > 1 || s[len(s)-1] == ',' || s[len(s)-1] == '.' || l.calls > 0 || l.codeMarks() > 0 {
		return 0
	}
	if tight := n - bytes.Count(s, []byte(", ")); tight*2 < n {
		return 0
	}
	return n
}

// styleAt recognises rules of CSS.
func styleAt(s []byte) bool {
	end := s[len(s)-1]
	if end == '{' {
		return s[0] == '.' || s[0] == '#' || s[0] == '@' || bytes.IndexAny(s, "()=") < 0 && isLower(s[0]) && bytes.Count(s, []byte(" ")) <= 2 && !braceWord(s)
	}
	i := bytes.IndexByte(s, ':')
	if end != ';' || i < 2 || i+1 >= len(s) || s[i+1] != ' ' {
		return false
	}
	for _, c := range s[:i] {
		if c != '-' && !isLower(c) {
			return false
		}
	}
	return bytes.IndexByte(s, '=') < 0
}

// braceWord tells whether a word before a brace belongs to a program.
func braceWord(s []byte) bool {
	word, _, _ := bytes.Cut(s, []byte(" "))
	switch string(word) {
	case "else", "do", "try", "finally", "struct", "enum", "union", "loop", "class", "interface", "impl", "type", "unsafe", "static", "namespace", "public",
		"trait", "mod", "switch", "export", "import", "package", "select", "default", "extern", "match", "object", "data", "if", "for", "while", "return":
		return true
	}
	return false
}

// queryAt recognises clauses of SQL.
func queryAt(s []byte) bool {
	word, rest, _ := bytes.Cut(s, []byte(" "))
	switch string(word) {
	case "SELECT", "FROM", "WHERE", "GROUP", "ORDER", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP", "JOIN", "LEFT", "INNER", "HAVING", "LIMIT", "VALUES", "UNION":
	case "select", "insert", "create", "delete":
		return bytes.Contains(rest, []byte(" from ")) && s[len(s)-1] == ';' || bytes.HasPrefix(rest, []byte("into ")) && bytes.IndexByte(s, '(') > 0 || bytes.HasPrefix(rest, []byte("table ")) && bytes.IndexByte(s, '(') > 0
	default:
		return false
	}
	return len(rest) > 0
}

func isLower(c byte) bool  { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool  { return c >= 'A' && c <= 'Z' }
func isLetter(c byte) bool { return isLower(c) || isUpper(c) }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

func isMathRune(r rune) bool {
	return r >= 0x2190 && r <= 0x22ff && r != '−' || r == '√' || r == 'π' || r == '×' || r == '÷' || r == '²' || r == '³' || r == '≈' || r == '⋅' ||
		r >= 0x2080 && r <= 0x2089 || r >= 0x1d400 && r <= 0x1d7ff
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }
