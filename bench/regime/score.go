package regime

// score says how much a line looks like each regime, in points. Only differences count. Points are whole
// numbers, so that every machine finds the same.
func (l *line) score(b *block) (s [unit]int) {
	switch {
	case l.kind != textLine:
		return s
	case l.display:
		s[Mathematics] = 30
		if l.both && !l.alone || l.opens != none && l.closes != none && !l.alone { // on one line, with words around it
			s[Mathematics] = 8 + 2*l.tex - l.pairs
		}
		s[Prose] = min(l.pairs, 8)
		return s
	}
	s[Prose] = l.prose()
	s[Code] = l.code()
	s[Mathematics] = l.mathematics()
	s[Structured] = l.structured(&b.tally)
	if l.comment && !l.heading || l.comment && b.loose && l.grammar == 0 {
		s[Prose] = min(s[Prose], 4)
		s[Code] += 3
	}
	if l.marker != noMarker && b.tally.items >= 3 && !l.diff {
		s[Structured] = max(s[Structured], s[Prose]+3)
	}
	if l.grammar >= certain && l.last != '.' {
		s[Prose] = min(s[Prose], 3)
	}
	if l.equation > 0 && l.marker == noMarker {
		s[Mathematics] = max(s[Mathematics], l.equation)
		s[Prose] = min(s[Prose], 2)
		s[Code] = min(s[Code], 4)
	}
	if l.quoted {
		s[Prose] = min(s[Prose], 2)
		s[Code] = max(s[Code], 8)
	}
	return s
}

// prose counts what sentences have: words in a row, small words, a full stop.
func (l *line) prose() int {
	p := min(l.pairs, 5) + min(l.stops, 4)
	if l.words >= 3 && l.idents+l.calls+l.strong == 0 {
		p++
	}
	if l.foreign > 0 && l.foreign*2 >= l.words {
		p += 3 + min(l.foreign, 3)
	}
	if l.lastWord && (l.last == '.' || l.last == '!' || l.last == '?' || l.last == ':' || l.last == 0x82) && l.pairs > 0 {
		p += 2
	}
	if l.capital && l.words > 1 {
		p++
	}
	if l.heading {
		p += 3
	}
	if l.indent >= 4 {
		p -= 2
	}
	if l.last == ':' && l.lastWord && l.capital {
		p += 2
	}
	if l.words > 0 && l.words <= 3 && l.punct == 0 && l.indent < 2 {
		p++
	}
	return p
}

// code counts how well the line parses and what marks programs.
func (l *line) code() int {
	c := l.grammar
	if l.grammar > 0 {
		c += min(l.idents+l.calls+l.strong, 3)
	} else {
		c += min(l.idents+2*l.calls+l.strong, 4) - min(l.stops, 4)
	}
	if l.indent >= 2 && l.marker == noMarker && l.grammar > 0 {
		c++
	}
	if l.comment {
		c += 3
	}
	if l.trailer {
		c += 3
	}
	c += 2 * min(l.flags, 3)
	if l.last == '|' && l.marker == noMarker && !l.row {
		c += 3
	}
	if l.diff {
		c += 4
	}
	if l.marker != noMarker && !l.diff {
		c -= 3
	}
	if l.spans > 0 && l.pairs > 1 {
		c -= 3
	}
	return c
}

// mathematics counts formulas, and equations that are no assignments.
func (l *line) mathematics() int {
	m := 2*min(l.tex, 6) + 2*min(l.symbols, 3)
	if l.dollars >= 2 {
		m += 3
	} else if l.dollars == 1 && l.pairs <= 2 {
		m += 3
	}
	equation := min(l.assigns, 2) > 0 && l.relation > 0
	m += 2 * min(l.implicit, 2)
	if equation && l.grammar < likely {
		m += min(1+l.arith+l.implicit+l.singles, 8)
		if l.words == 0 && l.numbers > 1 {
			m += 3
		}
	} else if l.arith >= 2 && l.strong == 0 && l.grammar < likely {
		m += 2 + min(l.singles, 2)
	}
	m -= l.pairs / 3
	m -= l.stops / 2
	if l.idents+l.calls > 0 && l.tex == 0 {
		m -= 2 * (l.idents + l.calls)
	}
	if l.strong > 0 && l.tex == 0 {
		m -= 2
	}
	return max(m, 0)
}

// structured counts what layout says: rows, items, pairs, members, tags. Some of it means something only if
// the block has more of it.
func (l *line) structured(t *tally) int {
	p := 0
	switch {
	case l.rule:
		p = 10
	case l.row && t.rows >= 2:
		p = 9
	case l.member:
		p = 9
	case l.query:
		p = 8
	case l.section && t.sections+t.pairs+t.assigned > 1:
		p = 7
	case l.tag:
		p = 9
	case l.style:
		p = 8
	case l.marker != noMarker && t.items >= 3 && !l.diff:
		p = 12
	case l.record > 0 && t.records >= 2:
		p = 8
	case l.pair && t.pairs >= 3:
		p = 8
	case l.pair && t.pairs >= 2:
		p = 4
	case l.indent >= 2 && t.items >= 3:
		p = 7
	case t.sections > 0 && l.assigns == 1 && l.strong == 0:
		p = 9
	case l.columns > 0 && t.aligned >= 3 && l.grammar == 0 && (l.pairs > 0 || l.columns > 1):
		p = 8
	case t.tags >= 2 && l.indent >= 2 && l.grammar < certain:
		p = 4
	}
	if p == 0 && l.words+l.numbers == 0 && l.length <= 3 && l.braces > 0 {
		p = 2 // a lone bracket belongs to whatever is around it
	}
	return p
}
