package chatpage

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"velo/ui/look"
)

// document is a text laid out: lines from 0 on, and the blocks of code in it.
type document struct {
	lines  []line
	codes  []code
	height float32
}

// code is a block of code; what is in it can be copied.
type code struct {
	y, h     float32 // of its head
	language string
	text     string
}

var (
	body   = style{size: look.Body}
	strong = style{size: look.Body, bold: true}
	codes  = style{size: look.Small, mono: true}
	small  = style{size: look.Small, ink: inkMuted}
)

var parser = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList)).Parser()

// mostMarkdown is the size of text that is laid out as Markdown at once; what is longer is laid out in
// parts of about this size, parted between blocks.
const mostMarkdown = 64 << 10

// markdown lays out a text in a width. It may run on any goroutine.
func markdown(source string, width float32) document {
	var d document
	for _, part := range parts(source, mostMarkdown) {
		src := []byte(part)
		b := builder{source: src, width: width, doc: &d}
		b.blocks(parser.Parse(text.NewReader(src)), 0, 0)
	}
	for len(d.lines) > 0 && len(d.lines[len(d.lines)-1].spans) == 0 && d.lines[len(d.lines)-1].ground == bare {
		d.lines = d.lines[:len(d.lines)-1]
	}
	d.height = 0
	if n := len(d.lines); n > 0 {
		d.height = d.lines[n-1].y + d.lines[n-1].h
	}
	return d
}

// parts cuts a text at empty lines outside of fenced code, at the first one after size bytes.
func parts(source string, size int) []string {
	var out []string
	fence, start := "", 0
	for at := 0; at < len(source); {
		end := strings.IndexByte(source[at:], '\n')
		if end < 0 {
			break
		}
		l := strings.TrimLeft(source[at:at+end], " ")
		at += end + 1
		switch {
		case fence == "" && (strings.HasPrefix(l, "```") || strings.HasPrefix(l, "~~~")):
			fence = l[:len(l)-len(strings.TrimLeft(l, l[:1]))]
		case fence != "" && strings.HasPrefix(l, fence) && strings.Trim(l, fence[:1]+" \r") == "":
			fence = ""
		case fence == "" && strings.TrimSpace(l) == "" && at-start > size:
			out = append(out, source[start:at])
			start = at
		}
	}
	return append(out, source[start:])
}

type builder struct {
	source []byte
	width  float32
	doc    *document
}

func (b *builder) bottom() float32 {
	if n := len(b.doc.lines); n > 0 {
		return b.doc.lines[n-1].y + b.doc.lines[n-1].h
	}
	return 0
}

// add puts lines below what is there, gap units away.
func (b *builder) add(lines []line, gap float32, bars uint8) {
	y := b.bottom()
	if len(b.doc.lines) > 0 {
		y += gap
	}
	for i := range lines {
		lines[i].bars = bars
	}
	stack(lines, y)
	b.doc.lines = append(b.doc.lines, lines...)
}

const (
	indent = 20 // of a level of a list
	inCode = 12 // room at the left of code
	depth  = 12 // levels of nesting that are shown as such
)

// blocks lays out the children of a node, x from the left. Deep nesting is flattened: a text may hold
// any number of levels.
func (b *builder) blocks(parent ast.Node, x float32, bars uint8) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		b.block(n, x, bars, look.Step)
	}
}

func (b *builder) block(n ast.Node, x float32, bars uint8, gap float32) {
	switch n := n.(type) {
	case *ast.Heading:
		s := strong
		if n.Level <= 2 {
			s.size = look.Head
		}
		b.add(wrap(b.inline(n, s, nil), b.width, x, x), look.Gap, bars)
	case *ast.FencedCodeBlock:
		language := string(n.Language(b.source))
		b.code(b.raw(n), language, x, bars, gap)
	case *ast.CodeBlock:
		b.code(b.raw(n), "", x, bars, gap)
	case *ast.HTMLBlock:
		b.add(wrap([]span{{text: strings.TrimRight(b.raw(n), "\n"), style: codes, x: -1}}, b.width, x, x), gap, bars)
	case *ast.ThematicBreak:
		b.add([]line{{h: look.Gap, x: x, ground: ruled, join: "\n"}}, 0, bars)
	case *ast.Blockquote:
		in := x
		if bars < depth {
			in, bars = x+look.Gap, bars+1
		}
		b.blocks(n, in, bars)
	case *ast.List:
		b.list(n, x, bars, gap)
	case *tables.Table:
		b.table(n, x, bars)
	default:
		if n.Type() == ast.TypeBlock && n.HasChildren() && n.FirstChild().Type() == ast.TypeBlock {
			b.blocks(n, x, bars)
			return
		}
		b.add(wrap(b.inline(n, body, nil), b.width, x, x), gap, bars)
	}
}

func (b *builder) raw(n ast.Node) string {
	var out strings.Builder
	for i := range n.Lines().Len() {
		s := n.Lines().At(i)
		out.Write(s.Value(b.source))
	}
	return out.String()
}

func (b *builder) list(n *ast.List, x float32, bars uint8, gap float32) {
	number := n.Start
	in := x
	if x < depth*indent {
		in = x + indent
	}
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "•"
		if n.IsOrdered() {
			mark = strconv.Itoa(number) + string(n.Marker)
			number++
		}
		at := len(b.doc.lines)
		first := true
		left := max(in, x+widthOf(mark+" ", body))
		for c := item.FirstChild(); c != nil; c = c.NextSibling() {
			g := float32(look.Half)
			switch {
			case first && item == n.FirstChild():
				g = gap
			case first && n.IsTight:
				g = 2
			}
			b.block(c, left, bars, g)
			first = false
		}
		if at == len(b.doc.lines) {
			b.add([]line{{h: body.height(), x: x, join: "\n"}}, look.Half, bars)
		}
		l := &b.doc.lines[at]
		if l.ground != bare {
			continue
		}
		if len(l.spans) > 0 && l.spans[0].x < 0 {
			l.spans[0].x = l.x - x
		}
		l.spans = append([]span{{text: mark, style: style{size: look.Body, ink: inkMuted}, x: 0}}, l.spans...)
		l.x = x
	}
}

// code lays out a block of code with a head that names its language and copies it.
func (b *builder) code(source, language string, x float32, bars uint8, gap float32) {
	source = strings.TrimRight(source, "\n")
	head := language
	if head == "" {
		head = "code"
	}
	b.add([]line{{h: 28, x: x, back: x, ground: onCode, join: "\n",
		spans: []span{{text: fit(clean(head), small, b.width-x-120), style: small, x: inCode}}}}, gap, bars)
	top := b.doc.lines[len(b.doc.lines)-1]
	b.doc.codes = append(b.doc.codes, code{y: top.y, h: top.h, language: language, text: source})
	lines := wrapCode(highlight(source, language), b.width-inCode, x+inCode)
	for i := range lines {
		lines[i].ground, lines[i].back = onCode, x
	}
	lines = append(lines, line{h: look.Step, x: x, back: x, ground: onCode, join: "\n"})
	b.add(lines, 0, bars)
}

// wrapCode breaks spans of code into lines, blanks kept: at line ends and at the width.
func wrapCode(spans []span, width, x float32) []line {
	var out []line
	cur := line{x: x, h: codes.height()}
	left := width - x
	end := func(join string) {
		cur.join = join
		out = append(out, cur)
		cur, left = line{x: x, h: codes.height()}, width-x
	}
	for _, s := range spans {
		rest := s.text
		for rest != "" {
			n, next, join, complete := row(rest, s.style, left)
			if complete && join != "\n" { // code is cut anywhere: blanks in it matter
				n, next, join = cutAt(rest, s.style, left), 0, ""
				if n == 0 && len(cur.spans) == 0 {
					n = len(rest) - len(strings.TrimLeft(rest, rest[:1]))
					n = max(n, 1)
				}
				next = n
			}
			if n > 0 {
				cur.spans = append(cur.spans, span{text: clean(rest[:n]), style: s.style, x: -1})
				left -= widthOf(rest[:n], s.style)
			}
			rest = rest[next:]
			if complete {
				end(join)
			}
		}
	}
	if len(cur.spans) > 0 || len(out) == 0 {
		end("\n")
	}
	return out
}

// fit cuts a text that has one line only.
func fit(text string, s style, width float32) string {
	if n := cutAt(text, s, width); n < len(text) {
		return text[:cutAt(text, s, width-s.size)] + "…"
	}
	return text
}

// cutAt is how many bytes of a text fit a width.
func cutAt(text string, s style, width float32) int {
	f := s.face()
	for i, c := range text {
		w := f.advance(c)
		if c == '\t' {
			w = 4 * f.ascii[' ']
		}
		if width -= w * s.size; width < 0 {
			return i
		}
	}
	return len(text)
}

// table lays out a table: columns as wide as their cells where there is room, else in proportion.
func (b *builder) table(n *tables.Table, x float32, bars uint8) {
	var rows [][][]span
	columns := 0
	for r := n.FirstChild(); r != nil; r = r.NextSibling() {
		_, isHead := r.(*tables.TableHeader)
		s := body
		s.bold = isHead
		var cells [][]span
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			cells = append(cells, b.inline(c, s, nil))
		}
		rows = append(rows, cells)
		columns = max(columns, len(cells))
	}
	if columns == 0 {
		return
	}
	widths := make([]float32, columns)
	for _, cells := range rows {
		for c, spans := range cells {
			var w float32
			for _, s := range spans {
				w += widthOf(s.text, s.style)
			}
			widths[c] = max(widths[c], w+2)
		}
	}
	const between = look.Gap
	room := b.width - x - between*float32(columns-1)
	widths = share(widths, max(room, 24*float32(columns)))
	for r, cells := range rows {
		var lines []line
		left := x
		for c, spans := range cells {
			for i, l := range wrap(spans, widths[c], 0, 0) {
				if i == len(lines) {
					lines = append(lines, line{x: x, h: l.h, join: "\n"})
				}
				lines[i].h = max(lines[i].h, l.h)
				for k, s := range l.spans {
					if k == 0 {
						s.x = left - x
					}
					lines[i].spans = append(lines[i].spans, s)
				}
			}
			left += widths[c] + between
		}
		gap := float32(look.Half)
		if r == 0 {
			gap = look.Step
		}
		b.add(lines, gap, bars)
		if r == 0 {
			b.add([]line{{h: 5, x: x, ground: ruled, join: "\n"}}, 0, bars)
		}
	}
}

// share gives columns what they want where the room allows it; else the wide ones give way.
func share(want []float32, room float32) []float32 {
	out := append([]float32(nil), want...)
	fixed := make([]bool, len(want))
	for range want {
		var sum float32
		open := 0
		for i := range out {
			if fixed[i] {
				sum += out[i]
			} else {
				open++
			}
		}
		if open == 0 {
			break
		}
		each := (room - sum) / float32(open)
		changed := false
		for i := range want {
			if !fixed[i] && want[i] <= each {
				out[i], fixed[i], changed = want[i], true, true
			}
		}
		if !changed {
			for i := range out {
				if !fixed[i] {
					out[i] = each
				}
			}
			break
		}
	}
	return out
}

// inline gathers the text in a block, with its styles.
func (b *builder) inline(n ast.Node, s style, out []span) []span {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			t := string(c.Segment.Value(b.source))
			if !c.IsRaw() {
				t = unescape(t)
			}
			if c.HardLineBreak() {
				t += "\n"
			} else if c.SoftLineBreak() {
				t += " "
			}
			out = append(out, span{text: t, style: s, x: -1})
		case *ast.String:
			out = append(out, span{text: string(c.Value), style: s, x: -1})
		case *ast.CodeSpan:
			m := s
			m.mono, m.ink = true, inkCode
			out = b.inline(c, m, out)
		case *ast.Emphasis:
			e := s
			if c.Level >= 2 {
				e.bold = true
			} else {
				e.underline = true // the family has no italics
			}
			out = b.inline(c, e, out)
		case *tables.Strikethrough:
			k := s
			k.struck = true
			out = b.inline(c, k, out)
		case *ast.Link:
			l := s
			l.ink = inkLink
			before := len(out)
			out = b.inline(c, l, out)
			if where := string(c.Destination); where != "" && (len(out) != before+1 || out[before].text != where) {
				out = append(out, span{text: " (" + where + ")", style: style{size: s.size, ink: inkMuted}, x: -1})
			}
		case *ast.AutoLink:
			l := s
			l.ink = inkLink
			out = append(out, span{text: string(c.URL(b.source)), style: l, x: -1})
		case *ast.Image:
			m := s
			m.ink = inkMuted
			out = append(out, span{text: fmt.Sprintf("[picture: %s]", c.Destination), style: m, x: -1})
		case *ast.RawHTML:
			for i := range c.Segments.Len() {
				g := c.Segments.At(i)
				out = append(out, span{text: string(g.Value(b.source)), style: s, x: -1})
			}
		case *tables.TaskCheckBox:
			mark := "[ ] "
			if c.IsChecked {
				mark = "[x] "
			}
			out = append(out, span{text: mark, style: style{size: s.size, mono: true}, x: -1})
		default:
			out = b.inline(c, s, out)
		}
	}
	return out
}
