package regime

import "bytes"

// How surely a line is a statement of some programming language.
const (
	notStatement   = 0
	maybeStatement = 2
	likely         = 4
	certain        = 7
)

// statement parses a line with a small grammar of what statements of many languages look like: a keyword and
// what it demands after it, a call, an assignment, a closing bracket, a prompt. English uses many of the
// keywords too ("for the first time", "import the data"), so each has to be followed as in a program.
func statement(s []byte, x *lexemes) int {
	if len(s) == 0 {
		return notStatement
	}
	switch s[0] {
	case '}', ')', ']':
		return closing(s)
	case '@':
		if len(s) > 2 && isLetter(s[1]) && x.words+x.idents <= 4 {
			return likely
		}
		return notStatement
	case '#':
		return directive(s)
	case '/':
		if bytes.HasPrefix(s, []byte("//")) || bytes.HasPrefix(s, []byte("/*")) {
			return certain
		}
	case '$', '>', '%':
		return prompt(s)
	case '<':
		if bytes.HasPrefix(s, []byte("<?php")) {
			return certain
		}
	}
	if bytes.HasPrefix(s, []byte(`"""`)) || bytes.HasPrefix(s, []byte("'''")) {
		return likely
	}
	word := leading(s)
	rest := bytes.TrimLeft(s[len(word):], " ")
	if g := keyword(string(word), rest, s, x); g > 0 {
		return g
	}
	if x.pairs > 2 && x.codeMarks() < 2 || x.stops > 2 && x.strong == 0 {
		return notStatement
	}
	return expression(word, s, x)
}

// leading is the word that a line begins with.
func leading(s []byte) []byte {
	n := 0
	for n < len(s) && (isLetter(s[n]) || s[n] == '_' || n > 0 && isDigit(s[n])) {
		n++
	}
	return s[:n]
}

// closing is the end of a block, and what may follow on its line.
func closing(s []byte) int {
	rest := bytes.TrimLeft(s, "})];, ")
	switch {
	case len(rest) == 0:
		if bytes.HasSuffix(s, []byte(";")) || bytes.IndexByte(s, ')') > 0 {
			return likely
		}
		return maybeStatement
	case bytes.HasPrefix(rest, []byte("else")), bytes.HasPrefix(rest, []byte("catch")), bytes.HasPrefix(rest, []byte("finally")),
		bytes.HasPrefix(rest, []byte("while")), rest[0] == '.', bytes.HasPrefix(rest, []byte("//")), bytes.HasPrefix(rest, []byte("=>")):
		return certain
	}
	return notStatement
}

// directive is a line that begins with #.
func directive(s []byte) int {
	for _, p := range []string{"#include", "#define", "#ifdef", "#ifndef", "#if ", "#endif", "#pragma", "#!/", "#undef", "#else", "#[derive", "#["} {
		if bytes.HasPrefix(s, []byte(p)) {
			return certain
		}
	}
	return notStatement
}

// prompt is a line of a transcript of a shell.
func prompt(s []byte) int {
	switch {
	case bytes.HasPrefix(s, []byte(">>> ")):
		return certain
	case bytes.HasPrefix(s, []byte("$ ")) && len(s) > 3 && (isLower(s[2]) || s[2] == '.' || s[2] == '/'):
		return certain
	case bytes.HasPrefix(s, []byte("% ")) && len(s) > 3 && isLower(s[2]):
		return maybeStatement
	case s[0] == '$' && len(s) > 2 && isLetter(s[1]) && (bytes.Contains(s, []byte(" = ")) || bytes.Contains(s, []byte("->"))):
		return certain // PHP, Perl
	case s[0] == '%' && len(s) > 2 && s[1] == ' ':
		return maybeStatement // a comment of MATLAB
	}
	return notStatement
}

// keyword parses what follows a keyword.
func keyword(word string, rest, s []byte, x *lexemes) int {
	has := func(p string) bool { return bytes.HasPrefix(rest, []byte(p)) }
	ends := func(p string) bool { return bytes.HasSuffix(s, []byte(p)) }
	contains := func(p string) bool { return bytes.Contains(rest, []byte(p)) }
	plain := x.pairs > 3 || x.stops > 2 // reads like a sentence
	switch word {
	case "def", "function", "func", "fn", "fun", "sub", "proc", "defp", "defmodule", "procedure":
		if contains("(") || ends("{") || ends(":") && !plain || word == "def" && !plain {
			return certain
		}
	case "class", "struct", "interface", "enum", "trait", "impl", "module", "namespace", "object", "protocol", "extension", "record":
		if ends("{") || ends(":") && !plain && len(rest) > 0 && isUpper(rest[0]) || x.pairs <= 1 && word != "record" && word != "object" && len(rest) > 0 && isUpper(rest[0]) {
			return certain
		}
	case "import", "use", "using", "require", "include", "package", "mod", "extern":
		if plain {
			break
		}
		if ends(";") || has("\"") || has("'") || has("(") || has("{") || x.idents > 0 || contains(" as ") || contains(" from ") || contains("::") || x.words == 2 && !ends(".") {
			return certain
		}
	case "from":
		if contains(" import ") {
			return certain
		}
	case "public", "private", "protected", "static", "final", "abstract", "override", "virtual", "async", "export", "pub", "internal", "inline", "data", "sealed", "open":
		if x.codeMarks() > 0 || ends(";") && x.stops == 0 {
			return certain
		}
	case "const", "let", "var", "val", "my", "local", "mut", "auto", "dim":
		if contains("=") || ends(";") && !plain || word == "var" && !plain {
			return certain
		}
	case "int", "void", "float", "double", "char", "long", "bool", "boolean", "string", "String", "unsigned", "size_t", "byte", "short", "uint8_t", "uint32_t", "vector":
		if ends(";") || ends("{") || contains("(") && !plain || contains("=") && !plain || has("*") || has("main(") {
			return certain
		}
	case "return", "yield", "raise", "throw", "await", "assert", "defer", "del", "throws", "panic", "goto", "delete", "new":
		if ends(";") || x.strong > 0 || x.idents > 0 || x.calls > 0 || x.stops == 0 && x.pairs <= 2 && !ends(".") {
			return likely
		}
	case "if", "while", "for", "switch", "foreach", "elif", "elsif", "unless", "until", "with", "match", "catch", "select", "when", "case", "except", "try", "else", "finally", "do", "loop", "begin":
		switch {
		case ends("{"), ends(":") && (!plain || x.codeMarks()+x.idents > 0) && (x.stops <= 2 || x.calls > 0), has("(") && (ends(")") || ends(";") || ends("{")), has("[") && ends("then") || has("[["), ends("; do"), ends("; then"):
			return certain
		case len(rest) == 0:
			return likely
		case (ends("then") || ends("do")) && !plain:
			return likely
		case word == "case" && ends(")"):
			return maybeStatement
		}
	case "end", "fi", "done", "esac", "endif", "pass", "break", "continue", "next", "then", "begin;":
		if len(rest) == 0 || has(";") || x.words <= 2 && has("#") {
			return likely
		}
	case "print", "println", "printf", "echo", "puts", "console", "fmt", "System", "std", "cout", "scanf", "assertEqual", "self", "this", "super":
		if has("(") || has(".") || has("::") || has("<<") || word == "echo" && (has("\"") || has("$") || has("'")) || (word == "puts" || word == "print") && (has("\"") || has("'")) {
			return certain
		}
	case "sudo", "git", "pip", "pip3", "npm", "npx", "yarn", "cd", "ls", "mkdir", "curl", "wget", "docker", "kubectl", "apt", "apt-get", "brew", "python", "python3", "gcc", "make", "cargo", "grep",
		"awk", "sed", "cat", "chmod", "export;", "source", "ssh", "scp", "tar", "rm", "cp", "mv", "find", "du", "bash", "node", "perl", "conda", "systemctl":
		if plain || len(rest) == 0 || ends(".") && x.stops > 0 || isUpper(rest[0]) {
			break
		}
		if x.stops == 0 && x.words+x.idents >= 3 && !bytes.ContainsAny(rest, ",;:") || x.flags > 0 {
			return certain
		}
		if contains(" -") || has("-") || contains("/") || x.idents > 0 || contains(" | ") || x.stops == 0 && x.words <= 4 {
			return likely
		}
	case "FROM", "RUN", "CMD", "COPY", "WORKDIR", "EXPOSE", "ENTRYPOINT", "ENV", "ADD", "ARG":
		if !plain && x.stops == 0 && len(rest) > 0 && (word != "FROM" || x.pairs == 0 && !ends(";") && (contains(":") || contains(" AS "))) {
			return certain
		}
	case "Traceback":
		return certain
	case "at":
		if x.calls > 0 && contains(":") {
			return likely
		}
	case "File":
		if has("\"") && contains(", line ") {
			return certain
		}
	case "mov", "add", "sub;", "push", "pop", "call", "jmp", "xor", "cmp", "lea", "ret", "section", "global", "syscall", "inc", "dec", "je", "jne", "jz":
		if x.stops == 0 && x.words <= 4 && x.pairs <= 1 && (contains(", ") || contains("%") || x.idents > 0 || x.words <= 2 && word != "call" && word != "section" && word != "add") && !ends(".") {
			return likely
		}
	case "diff":
		if has("--git") {
			return certain
		}
	case "index":
		if contains("..") && x.stops == 0 {
			return likely
		}
	}
	return notStatement
}

// expression parses assignments, calls and lines that end as statements do.
func expression(word, s []byte, x *lexemes) int {
	last := s[len(s)-1]
	i := bytes.IndexByte(s, '=')
	assigned := i > 0 && len(word) > 0 && x.strong == 0 && target(s[:i]) && i+1 < len(s)
	called := x.calls > 0 && len(word) > 0 && callee(s)
	switch {
	case last == ';' && (x.codeMarks() > 0 || x.assigns > 0 || x.idents > 0 || x.pairs == 0) && x.stops <= 1:
		return certain
	case last == '{' && x.pairs <= 3 && x.stops <= 1:
		return likely
	case called && (last == ')' || last == ']' || last == ',' || last == '(' || last == ':' || bytes.Contains(s, []byte(") #")) || bytes.Contains(s, []byte(") //"))) && x.pairs <= 2:
		return likely + 1
	case assigned && x.implicit > 0:
		return notStatement
	case assigned && (x.calls > 0 || x.strings > 0 || x.idents > 0 || last == '[' || last == '{' || last == '(' || last == ']'):
		return likely + 1
	case assigned && x.pairs == 0 && len(word) > 1:
		return maybeStatement
	case x.strong > 0 && x.pairs <= 2 && x.stops <= 1 && x.row2() == 0:
		return likely
	case x.idents+x.calls >= 2 && x.pairs <= 1 && x.stops == 0:
		return maybeStatement
	}
	return notStatement
}

// row2 tells two bars of a table from an operator.
func (x *lexemes) row2() int {
	if x.strong == 1 && x.idents+x.calls+x.assigns+x.braces == 0 && x.words > 3 {
		return 1
	}
	return 0
}

// target tells whether what is before = can be assigned to: a name, with a type, members or an index.
func target(s []byte) bool {
	s = bytes.TrimSpace(s)
	s = bytes.TrimRight(s, "+-*/|&%:")
	if len(s) == 0 || bytes.Count(s, []byte(" ")) > 2 || bytes.IndexAny(s, "\"'!?;\\^+*/()") >= 0 {
		return false
	}
	return true
}

// callee tells whether a line begins with a call: name( or a.b(, or with await or a type before it.
func callee(s []byte) bool {
	i := bytes.IndexByte(s, '(')
	return i > 0 && bytes.Count(s[:i], []byte(" ")) <= 1 && s[i-1] != ' ' && bytes.IndexByte(s[:i], '\'') < 0
}
