package regime

import (
	"bytes"
	"encoding/json"
)

// block is the part of the answer that is still open: a fence, a list, or a paragraph with the blank lines
// that follow it.
type block struct {
	lines    []line
	previous Regime // of the line before the first, Prose at the beginning of a text
	loose    bool   // that line was code without a fence
	quote    quote  // the comment or text that is open
	fence    fence
	display  delimiter // of the display formula that is open
	list     marker    // of the first line, if the block is a list
	content  bool      // a line is not blank
	blank    bool      // the last line is
	ended    bool      // a fence that was never opened closed it
	tally    tally
}

// tally counts lines that mean something only in number.
type tally struct {
	items    int // of a list; its highest number, if they have numbers
	rows     int // of a table
	pairs    int // key: value
	records  int // comma- or tab-separated
	sections int // [section]
	assigned int // name = value
	aligned  int // columns
	tags     int // <tag>
}

// run is the regime of so many bytes.
type run struct {
	size   int
	regime Regime
}

// begins tells whether a line starts another block.
func (b *block) begins(l *line) bool {
	switch {
	case !b.content && b.fence.length == 0:
		return false
	case b.fence.closed:
		return l.kind != blankLine
	case b.fence.length > 0:
		return false
	case b.ended:
		return l.kind != blankLine
	case l.kind == fenceLine && b.display == none:
		return !b.endsBy(l)
	case l.kind == blankLine || !b.blank || b.display == environment:
		return false
	case b.list != noMarker && (l.marker == b.list || l.indent >= 2 && l.marker != noMarker || l.indent >= 3):
		return false
	}
	return true
}

// endsBy tells whether a fence closes code that no fence opened: models forget to.
func (b *block) endsBy(l *line) bool {
	if !b.content || b.blank || l.fence.info != "" || b.fence.length > 0 || b.ended {
		return false
	}
	c := *b
	runs := c.sequence()
	return runs[len(runs)-1].regime == Code
}

// take adds a line.
func (b *block) take(l line) {
	switch {
	case b.fence.length > 0 && !b.fence.closed:
		if l.kind == fenceLine && l.fence.closes(b.fence) {
			b.fence.closed = true
			l.kind = delimiterLine
		} else if l.kind == fenceLine {
			l.kind = textLine
		}
		b.content = true
	case l.kind == fenceLine && b.display == none && b.endsBy(&l):
		b.ended = true
		l.kind = delimiterLine
	case l.kind == fenceLine && b.display == none:
		b.fence = l.fence
		l.kind = delimiterLine
		b.content = true
	case l.kind == blankLine:
		if b.display != environment {
			b.display = none
		}
	default:
		if !b.content {
			b.list = l.marker
		}
		b.content = true
		l.display = b.display != none || l.opens != none
		b.takeQuote(&l)
		switch {
		case b.display != none && l.closes == b.display, b.display == dollars && l.opens == dollars && !l.both:
			b.display = none
		case b.display == none && l.opens != none && !l.both:
			b.display = l.opens
		}
	}
	b.blank = l.kind == blankLine
	if b.fence.length == 0 {
		b.tally.add(&l)
	}
	b.lines = append(b.lines, l)
}

// takeQuote follows comments and texts over several lines.
func (b *block) takeQuote(l *line) {
	switch {
	case b.quote == unquoted && l.begins != unquoted && (l.begins != starred || l.ends != starred):
		b.quote = l.begins
		l.quoted = true
	case b.quote != unquoted:
		l.quoted = true
		if l.ends == b.quote {
			b.quote = unquoted
		}
	}
	if l.quoted {
		l.marker = noMarker
	}
}

func (t *tally) add(l *line) {
	if l.marker != noMarker {
		t.items = max(t.items+1, min(int(l.number), 3))
	}
	switch {
	case l.row:
		t.rows++
	case l.section:
		t.sections++
	case l.pair:
		t.pairs++
	case l.record > 0:
		t.records++
	}
	if l.tag {
		t.tags++
	}
	if l.assigns > 0 && l.strong == 0 {
		t.assigned++
	}
	if l.columns > 0 {
		t.aligned++
	}
}

// reset forgets the lines. If the block goes on after a cut, what it is stays.
func (b *block) reset(goesOn bool) {
	previous, loose, lines := b.previous, b.loose, b.lines[:0]
	if goesOn {
		b.lines = lines
		return
	}
	*b = block{previous: previous, loose: loose, lines: lines}
}

// decide gives the regimes of the lines, whose text it is. It changes previous, and the fence's regime.
func (b *block) decide(text []byte) []run {
	if len(b.lines) == 0 {
		return nil
	}
	var regime Regime
	switch {
	case b.fence.length > 0:
		if !b.fence.decided {
			b.fence.regime, b.fence.decided = b.fence.judge(b.lines), true
		}
		regime = b.fence.regime
	case isJSON(text):
		regime = Structured
	default:
		return b.sequence()
	}
	size := 0
	for i := range b.lines {
		size += b.lines[i].size
	}
	b.previous, b.loose = regime, false
	return []run{{size, regime}}
}

// isJSON tells whether the text is an object or an array, however it is laid out.
func isJSON(text []byte) bool {
	text = bytes.TrimSpace(text)
	n := len(text)
	if n < 2 || n > 1<<20 || !(text[0] == '{' && text[n-1] == '}' || text[0] == '[' && text[n-1] == ']') {
		return false
	}
	if text[0] == '[' && bytes.IndexAny(text, "\",{") < 0 {
		return false // [1] is rather a reference
	}
	return json.Valid(text)
}

// The price of a change of regime from one line to the next, within a block and from block to block.
const (
	changeWithin  = 5
	changeBetween = 1
)

// unit is how many regimes lines can have by their looks: Prose, Code, Mathematics and Structured.
const unit = 4

// sequence finds the regimes of lines that together score best.
func (b *block) sequence() []run {
	var best [unit]int
	for r := range best {
		if Regime(r) != b.previous && b.previous < unit {
			best[r] = -changeBetween
		}
	}
	from := make([][unit]uint8, len(b.lines))
	for i := range b.lines {
		price := changeWithin
		if i == 0 {
			price = 0
		}
		score := b.lines[i].score(b)
		top := 0
		for r := 1; r < unit; r++ {
			if best[r] > best[top] {
				top = r
			}
		}
		var next [unit]int
		for r := range next {
			next[r], from[i][r] = best[r], uint8(r)
			if best[top]-price > best[r] && i > 0 {
				next[r], from[i][r] = best[top]-price, uint8(top)
			}
			next[r] += score[r]
		}
		best = next
	}
	at := 0
	for r := 1; r < unit; r++ {
		if best[r] > best[at] {
			at = r
		}
	}
	b.previous, b.loose = Regime(at), Regime(at) == Code
	runs := make([]run, 0, 4)
	for i := len(b.lines) - 1; i >= 0; i-- {
		if n := len(runs); n > 0 && runs[n-1].regime == Regime(at) {
			runs[n-1].size += b.lines[i].size
		} else {
			runs = append(runs, run{b.lines[i].size, Regime(at)})
		}
		at = int(from[i][at])
	}
	for i, j := 0, len(runs)-1; i < j; i, j = i+1, j-1 {
		runs[i], runs[j] = runs[j], runs[i]
	}
	return runs
}
