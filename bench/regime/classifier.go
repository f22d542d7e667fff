package regime

import (
	"bytes"
	"sort"

	"velo/bench"
)

// Bounds on what is still open, so that asking for the spans after every chunk stays cheap however long a
// text goes on without a blank line.
const (
	maxLines = 256  // lines of an open block; then what there is of it is settled
	maxLine  = 4096 // bytes of a line that are looked at; the rest of it goes with them
)

// Classifier finds the regimes of a text that grows. The zero value is ready. It is not safe for concurrent
// use: it belongs to whoever follows the stream, well away from what stamps.
type Classifier struct {
	settled []Span // of neighbours with different regimes
	size    int    // bytes pushed
	channel bench.Channel

	block block
	text  []byte // of the open block: everything after the settled spans
	line  int    // where its unfinished line begins, in text
	seen  int    // how far text was searched for the end of that line
}

// Push adds text of a channel. Reasoning is the regime of its channel, and the arguments of tool calls are
// structured; both end whatever block of the answer was open, but not an open fence.
func (c *Classifier) Push(text string, channel bench.Channel) {
	if text == "" {
		return
	}
	if kind(channel) != kind(c.channel) {
		c.settle(true)
	}
	c.channel = channel
	c.size += len(text)
	switch channel {
	case bench.Reasoning:
		c.add(len(text), Reasoning)
		return
	case bench.Tool:
		c.add(len(text), Structured)
		return
	}
	for len(text) > maxLine { // a little at a time, because what is left moves to the front with each block
		c.push(text[:maxLine])
		text = text[maxLine:]
	}
	c.push(text)
}

// push adds text of the answer.
func (c *Classifier) push(text string) {
	c.text = append(c.text, text...)
	for {
		i := bytes.IndexByte(c.text[c.seen:], '\n')
		if i < 0 {
			c.seen = len(c.text)
			return
		}
		end := c.seen + i + 1
		l := readLine(c.text[c.line:end])
		if c.block.begins(&l) {
			keep := c.line
			c.settleLines(false)
			end -= keep
		}
		c.block.take(l)
		c.line, c.seen = end, end
		if len(c.block.lines) >= maxLines {
			c.settleLines(true)
		}
	}
}

// kind puts the channels that form one text together.
func kind(c bench.Channel) bench.Channel {
	if c == bench.Refusal {
		return bench.Content
	}
	return c
}

// settleLines settles the finished lines of the open block; cut says that the block goes on.
func (c *Classifier) settleLines(cut bool) {
	c.addAll(c.block.decide(c.text[:c.line]))
	c.block.reset(cut)
	n := copy(c.text, c.text[c.line:])
	c.text = c.text[:n]
	c.seen -= c.line
	c.line = 0
}

// settle settles everything, as if the text ended here.
func (c *Classifier) settle(cut bool) {
	if c.line < len(c.text) {
		l := readLine(c.text[c.line:])
		if c.block.begins(&l) {
			c.settleLines(false)
		}
		c.block.take(l)
		c.line, c.seen = len(c.text), len(c.text)
	}
	c.settleLines(cut)
}

func (c *Classifier) addAll(runs []run) {
	for _, r := range runs {
		c.add(r.size, r.regime)
	}
}

func (c *Classifier) add(size int, r Regime) { c.settled = appendSpan(c.settled, size, r) }

// appendSpan adds size bytes at the end.
func appendSpan(spans []Span, size int, r Regime) []Span {
	if size == 0 {
		return spans
	}
	n := len(spans)
	if n > 0 && spans[n-1].Regime == r {
		spans[n-1].To += size
		return spans
	}
	from := 0
	if n > 0 {
		from = spans[n-1].To
	}
	return append(spans, Span{from, from + size, r})
}

// Size is how many bytes were pushed.
func (c *Classifier) Size() int { return c.size }

// Settled is the offset before which no more text can change anything: the begin of the open block (a
// paragraph, a list, a display formula or the recent lines of a fence). It only grows.
func (c *Classifier) Settled() int {
	if n := len(c.settled); n > 0 {
		return c.settled[n-1].To
	}
	return 0
}

// Spans are the regimes of all text so far, in order and without gaps; neighbours differ. From Settled on they
// are what would hold if the text ended here. The slice is the caller's.
func (c *Classifier) Spans() []Span {
	spans := make([]Span, len(c.settled), len(c.settled)+4)
	copy(spans, c.settled)
	return c.appendOpen(spans)
}

// appendOpen adds what the open block looks like now and leaves the classifier as it is.
func (c *Classifier) appendOpen(spans []Span) []Span {
	if len(c.text) == 0 {
		return spans
	}
	b := c.block
	b.lines = b.lines[:len(b.lines):len(b.lines)] // what is appended goes elsewhere
	text := c.text
	if c.line < len(c.text) {
		l := readLine(c.text[c.line:])
		if b.begins(&l) {
			for _, r := range b.decide(c.text[:c.line]) {
				spans = appendSpan(spans, r.size, r.regime)
			}
			b.reset(false)
			b.lines = nil
			text = c.text[c.line:]
		}
		b.take(l)
	}
	for _, r := range b.decide(text) {
		spans = appendSpan(spans, r.size, r.regime)
	}
	return spans
}

// At is the regime of the byte at an offset. Before the first byte it is that of the first, after the last
// that of the last; with no text it is Prose.
func (c *Classifier) At(offset int) Regime {
	spans := c.settled
	if offset >= c.Settled() {
		var open []Span
		if n := len(spans); n > 0 {
			open = append(open, spans[n-1])
		}
		spans = c.appendOpen(open)
	}
	return at(spans, offset)
}

func at(spans []Span, offset int) Regime {
	if len(spans) == 0 {
		return Prose
	}
	i := sort.Search(len(spans), func(i int) bool { return spans[i].To > offset })
	return spans[min(i, len(spans)-1)].Regime
}
