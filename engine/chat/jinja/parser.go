package jinja

import "slices"

const (
	maxSource = 4 << 20 // bytes of a template; the longest real ones have 30 KB
	maxNest   = 200     // brackets and blocks inside one another
)

type parser struct {
	tokens []token
	pos    int
	depth  int
	macros []*macroDef // being parsed, innermost last
	loops  int         // for statements around the place, within the innermost macro
}

func (p *parser) peek() token { return p.tokens[p.pos] }

func (p *parser) next() token {
	t := p.tokens[p.pos]
	if t.kind != kindEnd {
		p.pos++
	}
	return t
}

func (p *parser) is(k kind, text string) bool {
	t := p.peek()
	return t.kind == k && t.text == text
}

func (p *parser) op(text string) bool { return p.is(kindOperator, text) }

func (p *parser) skipOp(text string) bool {
	if p.op(text) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) skipName(text string) bool {
	if p.is(kindName, text) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) wantOp(text string) {
	if !p.skipOp(text) {
		fail(p.peek().line, "expected %q, got %s", text, p.peek().describe())
	}
}

func (p *parser) want(k kind, what string) token {
	if t := p.peek(); t.kind != k {
		fail(t.line, "expected %s, got %s", what, t.describe())
	}
	return p.next()
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxNest {
		panic(&Error{Line: p.peek().line, Limit: true, Reason: "blocks and brackets are nested too deep"})
	}
}

func (p *parser) leave() { p.depth-- }

// body reads statements up to a block whose name is in ends, and returns that name; the tag is
// read up to and including the name.
func (p *parser) body(begun int, ends ...string) ([]stmt, string) {
	p.enter()
	defer p.leave()
	var out []stmt
	for {
		t := p.next()
		switch t.kind {
		case kindText:
			out = append(out, &text{place(t.line), t.text})
		case kindPrintBegin:
			x := p.tuple(true, false)
			p.want(kindPrintEnd, "}}")
			out = append(out, &output{place(t.line), x})
		case kindBlockBegin:
			n := p.want(kindName, "the name of a block")
			if slices.Contains(ends, n.text) {
				return out, n.text
			}
			out = append(out, p.statement(n))
		case kindEnd:
			if len(ends) > 0 {
				fail(begun, "a block that begins here has no %s", ends[len(ends)-1])
			}
			return out, ""
		}
	}
}

func (p *parser) blockEnd() { p.want(kindBlockEnd, "%}") }

func (p *parser) statement(t token) stmt {
	at := place(t.line)
	switch t.text {
	case "if":
		return p.ifStatement(at)
	case "for":
		return p.forStatement(at)
	case "set":
		return p.set(at)
	case "macro":
		m := p.macro(at, p.want(kindName, "the name of the macro").text, "endmacro")
		return &macroStmt{at, m}
	case "call":
		// The parameters of the body come before the call.
		m := &macroDef{name: "caller"}
		if p.skipOp("(") {
			p.parameters(m)
		}
		x, ok := p.unary(true).(*call)
		if !ok {
			fail(t.line, "a call block needs a call")
		}
		p.macroBody(at, m, "endcall")
		return &callBlock{at, x, m}
	case "filter":
		f := p.filters(nil, true)
		p.blockEnd()
		b, _ := p.body(t.line, "endfilter")
		p.blockEnd()
		return &filterBlock{at, f, b}
	case "with":
		w := &withStmt{place: at}
		for p.peek().kind != kindBlockEnd {
			if len(w.targets) > 0 {
				p.wantOp(",")
			}
			w.targets = append(w.targets, p.target(false))
			p.wantOp("=")
			w.values = append(w.values, p.expression())
		}
		p.blockEnd()
		w.body, _ = p.body(t.line, "endwith")
		p.blockEnd()
		return w
	case "generation":
		p.blockEnd()
		b, _ := p.body(t.line, "endgeneration")
		p.blockEnd()
		return &group{at, b}
	case "break", "continue":
		if p.loops == 0 {
			fail(t.line, "%s outside of a loop", t.text)
		}
		p.blockEnd()
		return &jump{at, t.text == "continue"}
	}
	fail(t.line, "unknown block %q", t.text)
	return nil
}

func (p *parser) ifStatement(at place) stmt {
	s := &ifStmt{place: at, cond: p.tuple(false, false)}
	p.blockEnd()
	top := s
	for {
		b, end := p.body(int(at), "elif", "else", "endif")
		s.then = b
		switch end {
		case "elif":
			inner := &ifStmt{place: place(p.peek().line), cond: p.tuple(false, false)}
			p.blockEnd()
			s.last = []stmt{inner}
			s = inner
			continue
		case "else":
			p.blockEnd()
			s.last, _ = p.body(int(at), "endif")
		}
		p.blockEnd()
		return top
	}
}

func (p *parser) forStatement(at place) stmt {
	s := &forStmt{place: at, target: p.target(true)}
	if !p.skipName("in") {
		fail(p.peek().line, "expected \"in\", got %s", p.peek().describe())
	}
	s.over = p.tuple(false, true)
	if p.skipName("if") {
		s.keep = p.expression()
	}
	s.recursive = p.skipName("recursive")
	p.blockEnd()
	p.loops++
	b, end := p.body(int(at), "else", "endfor")
	p.loops--
	s.body = b
	if end == "else" {
		p.blockEnd()
		s.empty, _ = p.body(int(at), "endfor")
	}
	p.blockEnd()
	return s
}

func (p *parser) set(at place) stmt {
	target := p.target(true)
	if p.skipOp("=") {
		v := p.tuple(true, false)
		p.blockEnd()
		return &setStmt{at, target, v}
	}
	if _, ok := target.(*sequence); ok {
		fail(int(at), "set needs = after several names")
	}
	f := p.filters(nil, false)
	p.blockEnd()
	b, _ := p.body(int(at), "endset")
	p.blockEnd()
	return &setBlock{at, target, f, b}
}

// target reads what is assigned to: a name, names, or an attribute of a namespace.
func (p *parser) target(several bool) expr {
	one := func() expr {
		if p.skipOp("(") {
			p.enter()
			defer p.leave()
			x := p.target(true)
			p.wantOp(")")
			return x
		}
		t := p.want(kindName, "a name to assign to")
		switch t.text {
		case "true", "True", "false", "False", "none", "None":
			fail(t.line, "cannot assign to %s", t.text)
		}
		if p.op(".") {
			p.next()
			a := p.want(kindName, "an attribute")
			return &attribute{place(t.line), &name{place(t.line), t.text}, a.text}
		}
		return &name{place(t.line), t.text}
	}
	x := one()
	if !several || !p.op(",") {
		return x
	}
	s := &sequence{place(x.at()), []expr{x}, true}
	for p.skipOp(",") {
		if t := p.peek(); t.kind != kindName && !p.op("(") || p.is(kindName, "in") {
			break
		}
		s.items = append(s.items, one())
	}
	return s
}

func (p *parser) macro(at place, id, end string) *macroDef {
	m := &macroDef{name: id}
	p.wantOp("(")
	p.parameters(m)
	p.macroBody(at, m, end)
	return m
}

func (p *parser) parameters(m *macroDef) {
	for !p.op(")") {
		if len(m.params) > 0 {
			p.wantOp(",")
		}
		m.params = append(m.params, p.want(kindName, "a parameter").text)
		if p.skipOp("=") {
			m.defaults = append(m.defaults, p.expression())
		} else if len(m.defaults) > 0 {
			fail(p.peek().line, "a parameter without a default follows one with a default")
		}
	}
	p.wantOp(")")
}

func (p *parser) macroBody(at place, m *macroDef, end string) {
	p.blockEnd()
	loops := p.loops
	p.loops = 0
	p.macros = append(p.macros, m)
	m.body, _ = p.body(int(at), end)
	p.macros = p.macros[:len(p.macros)-1]
	p.loops = loops
	if p.peek().kind == kindName { // endmacro may repeat the name
		p.next()
	}
	p.blockEnd()
}

// filters reads |a|b(c); the first pipe is left out after "filter".
func (p *parser) filters(of expr, started bool) []*filter {
	var out []*filter
	for started || p.op("|") {
		if !started {
			p.next()
		}
		started = false
		out = append(out, p.filter(of))
	}
	return out
}

func (p *parser) filter(of expr) *filter {
	t := p.want(kindName, "the name of a filter")
	id := t.text
	for p.skipOp(".") {
		id += "." + p.want(kindName, "a name").text
	}
	if _, ok := filters[id]; !ok {
		fail(t.line, "unknown filter %q", id)
	}
	f := &filter{place: place(t.line), of: of, name: id}
	if p.skipOp("(") {
		f.arguments = p.arguments()
	}
	return f
}

// arguments reads up to the closing bracket.
func (p *parser) arguments() arguments {
	p.enter()
	defer p.leave()
	var a arguments
	p.list(")", func() {
		line := p.peek().line
		switch {
		case p.skipOp("*"):
			a.star = p.expression()
		case p.skipOp("**"):
			a.dict = p.expression()
		case p.peek().kind == kindName && p.tokens[p.pos+1].kind == kindOperator && p.tokens[p.pos+1].text == "=":
			a.names = append(a.names, p.next().text)
			p.next()
			a.named = append(a.named, p.expression())
		default:
			if len(a.names) > 0 || a.star != nil || a.dict != nil {
				fail(line, "a positional argument follows a named one")
			}
			a.positional = append(a.positional, p.expression())
		}
	})
	return a
}

// list reads items with commas between them, and after the last if need be, up to the bracket that
// ends them.
func (p *parser) list(end string, item func()) {
	for first := true; !p.op(end); first = false {
		if !first {
			p.wantOp(",")
			if p.op(end) {
				break
			}
		}
		item()
	}
	p.wantOp(end)
}
