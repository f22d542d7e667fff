package jinja

import (
	"math/big"
	"strconv"
	"strings"
)

func (p *parser) primary() expr {
	t := p.next()
	at := place(t.line)
	switch t.kind {
	case kindName:
		switch t.text {
		case "true", "True":
			return &literal{at, true}
		case "false", "False":
			return &literal{at, false}
		case "none", "None":
			return &literal{at, nil}
		}
		for _, m := range p.macros {
			m.varargs = m.varargs || t.text == "varargs"
			m.kwargs = m.kwargs || t.text == "kwargs"
			m.caller = m.caller || t.text == "caller"
		}
		return &name{at, t.text}
	case kindString:
		s := t.text
		for p.peek().kind == kindString { // neighbours are one string
			s += p.next().text
		}
		return &literal{at, s}
	case kindInteger:
		if len(t.text) > 1 && t.text[0] == '0' && t.text[1] >= '0' && t.text[1] <= '9' && strings.Trim(t.text, "0") != "" {
			fail(t.line, "%s has leading zeros", t.text) // Go would read it as octal, Jinja does not
		}
		if n, err := strconv.ParseInt(t.text, 0, 64); err == nil {
			return &literal{at, n}
		}
		if n, ok := new(big.Int).SetString(t.text, 0); ok && len(t.text) < 1000 {
			return &literal{at, n}
		}
		fail(t.line, "%s is no integer", t.text)
	case kindFloat:
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil && f == 0 {
			fail(t.line, "%s is no number", t.text)
		}
		return &literal{at, f}
	case kindOperator:
		p.enter()
		defer p.leave()
		switch t.text {
		case "(":
			if p.skipOp(")") {
				return &sequence{at, nil, true}
			}
			x := p.tuple(true, false)
			p.wantOp(")")
			return x
		case "[":
			s := &sequence{place: at}
			p.list("]", func() { s.items = append(s.items, p.expression()) })
			return s
		case "{":
			m := &mapping{place: at}
			p.list("}", func() {
				m.keys = append(m.keys, p.expression())
				p.wantOp(":")
				m.values = append(m.values, p.expression())
			})
			return m
		}
	}
	fail(t.line, "expected an expression, got %s", t.describe())
	return nil
}

// postfix reads .name, [key], [a:b:c] and (arguments).
func (p *parser) postfix(x expr) expr {
	for {
		at := place(p.peek().line)
		switch {
		case p.skipOp("."):
			if t := p.next(); t.kind == kindName {
				x = &attribute{at, x, t.text}
			} else if n, err := strconv.ParseInt(t.text, 10, 64); t.kind == kindInteger && err == nil {
				x = &subscript{at, x, &literal{at, n}}
			} else {
				fail(t.line, "expected a name after the dot, got %s", t.describe())
			}
		case p.skipOp("["):
			x = p.subscript(at, x)
		case p.skipOp("("):
			x = &call{at, x, p.arguments()}
		default:
			return x
		}
	}
}

func (p *parser) subscript(at place, x expr) expr {
	var parts [3]expr
	n := 0
	for !p.op("]") {
		if p.skipOp(":") {
			if n++; n > 2 {
				fail(int(at), "a slice has at most three parts")
			}
			continue
		}
		if parts[n] != nil {
			fail(int(at), "expected \"]\", got %s", p.peek().describe())
		}
		parts[n] = p.expression()
	}
	p.wantOp("]")
	if n > 0 {
		return &slice{at, x, parts[0], parts[1], parts[2]}
	}
	if parts[0] == nil {
		fail(int(at), "a subscript is empty")
	}
	return &subscript{at, x, parts[0]}
}

func (p *parser) test(x expr) expr {
	line := p.next().line
	t := &test{place: place(line), of: x, negated: p.skipName("not")}
	id := p.want(kindName, "the name of a test")
	t.name = id.text
	for p.skipOp(".") {
		t.name += "." + p.want(kindName, "a name").text
	}
	if _, ok := tests[t.name]; !ok {
		fail(id.line, "unknown test %q", t.name)
	}
	next := p.peek()
	switch {
	case p.skipOp("("):
		t.arguments = p.arguments()
	case next.kind == kindString, next.kind == kindInteger, next.kind == kindFloat, p.op("["), p.op("{"),
		next.kind == kindName && next.text != "else" && next.text != "or" && next.text != "and":
		// What follows without brackets is the argument, but for the words that go on with the
		// expression around the test.
		switch {
		case next.kind != kindName:
		case next.text == "is":
			fail(next.line, "tests cannot be chained with is")
		case next.text == "if", next.text == "in", next.text == "not", next.text == "recursive":
			return t
		}
		t.arguments.positional = []expr{p.postfix(p.primary())}
	}
	return t
}
