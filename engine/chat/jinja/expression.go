package jinja

import "strings"

// tuple reads an expression, or several with commas between them.
func (p *parser) tuple(conditions, loop bool) expr {
	one := p.expression
	if !conditions {
		one = p.or
	}
	x := one()
	if !p.op(",") {
		return x
	}
	s := &sequence{place(x.at()), []expr{x}, true}
	for p.skipOp(",") {
		t := p.peek()
		if t.kind == kindPrintEnd || t.kind == kindBlockEnd || p.op(")") || (loop && p.is(kindName, "recursive")) {
			break
		}
		s.items = append(s.items, one())
	}
	return s
}

// expression reads one with "a if b else c".
func (p *parser) expression() expr {
	p.enter()
	defer p.leave()
	x := p.or()
	for p.is(kindName, "if") {
		line := p.next().line
		cond := p.or()
		var other expr
		if p.skipName("else") {
			other = p.expression()
		}
		x = &conditional{place(line), x, cond, other}
	}
	return x
}

func (p *parser) or() expr {
	x := p.and()
	for p.is(kindName, "or") {
		line := p.next().line
		x = &binary{place(line), "or", x, p.and()}
	}
	return x
}

func (p *parser) and() expr {
	x := p.not()
	for p.is(kindName, "and") {
		line := p.next().line
		x = &binary{place(line), "and", x, p.not()}
	}
	return x
}

func (p *parser) not() expr {
	if p.is(kindName, "not") {
		line := p.next().line
		p.enter()
		defer p.leave()
		return &unary{place(line), "not", p.not()}
	}
	return p.compare()
}

func (p *parser) compare() expr {
	x := p.sum()
	c := &comparison{place: place(x.at()), first: x}
	for {
		t := p.peek()
		switch {
		case t.kind == kindOperator && strings.Contains(" == != < > <= >= ", " "+t.text+" "):
			p.next()
			c.ops = append(c.ops, t.text)
		case p.is(kindName, "in"):
			p.next()
			c.ops = append(c.ops, "in")
		case p.is(kindName, "not") && p.tokens[p.pos+1].kind == kindName && p.tokens[p.pos+1].text == "in":
			p.pos += 2
			c.ops = append(c.ops, "not in")
		default:
			if len(c.ops) == 0 {
				return x
			}
			return c
		}
		c.rest = append(c.rest, p.sum())
	}
}

func (p *parser) sum() expr {
	x := p.concat()
	for p.op("+") || p.op("-") {
		t := p.next()
		x = &binary{place(t.line), t.text, x, p.concat()}
	}
	return x
}

func (p *parser) concat() expr {
	x := p.product()
	if !p.op("~") {
		return x
	}
	c := &concat{place(x.at()), []expr{x}}
	for p.skipOp("~") {
		c.parts = append(c.parts, p.product())
	}
	return c
}

func (p *parser) product() expr {
	x := p.power()
	for p.op("*") || p.op("/") || p.op("//") || p.op("%") {
		t := p.next()
		x = &binary{place(t.line), t.text, x, p.power()}
	}
	return x
}

func (p *parser) power() expr {
	x := p.unary(true)
	for p.op("**") {
		t := p.next()
		x = &binary{place(t.line), "**", x, p.unary(true)}
	}
	return x
}

func (p *parser) unary(filtered bool) expr {
	var x expr
	if p.op("-") || p.op("+") {
		t := p.next()
		p.enter()
		x = &unary{place(t.line), t.text, p.unary(false)}
		p.leave()
	} else {
		x = p.primary()
	}
	x = p.postfix(x)
	for filtered {
		switch {
		case p.skipOp("|"):
			x = p.filter(x)
		case p.is(kindName, "is"):
			x = p.test(x)
		case p.op("("):
			x = p.postfix(x)
		default:
			return x
		}
	}
	return x
}
