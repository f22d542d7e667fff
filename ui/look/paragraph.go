package look

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/widget"
)

// Paragraph is text that wraps at its width. An empty line in the text is an empty line on screen.
// Its least height is that of the width it was last given.
type Paragraph struct {
	widget.BaseWidget

	text  string
	size  float32
	style fyne.TextStyle
	ink   Ink
	most  int // lines; 0 = all

	lines []string
	width float32
}

// NewParagraph returns wrapping body text.
func NewParagraph(text string) *Paragraph {
	p := &Paragraph{text: text, size: Body}
	p.ExtendBaseWidget(p)
	return p
}

// Sized sets the text size.
func (p *Paragraph) Sized(size float32) *Paragraph { p.size = size; return p }

// In sets the colour's role.
func (p *Paragraph) In(i Ink) *Paragraph { p.ink = i; return p }

// Mono takes the family of numbers, code and logs.
func (p *Paragraph) Mono() *Paragraph { p.style.Monospace = true; return p }

// AtMost bounds the number of lines.
func (p *Paragraph) AtMost(lines int) *Paragraph { p.most = lines; return p }

// Text returns the whole text.
func (p *Paragraph) Text() string { return p.text }

// SetIn changes the text and its role.
func (p *Paragraph) SetIn(text string, ink Ink) {
	if text == p.text && ink == p.ink {
		return
	}
	p.text, p.ink = text, ink
	p.lines, p.width = nil, 0
	p.Refresh()
}

// Set changes the text.
func (p *Paragraph) Set(text string) { p.SetIn(text, p.ink) }

// Resize wraps the text anew where the width changed.
func (p *Paragraph) Resize(s fyne.Size) {
	p.wrap(s.Width)
	p.BaseWidget.Resize(s)
}

func (p *Paragraph) wrap(width float32) {
	if width == p.width && p.lines != nil {
		return
	}
	p.width = width
	p.lines = p.lines[:0:0]
	for _, line := range strings.Split(p.text, "\n") {
		p.lines = append(p.lines, wrapLine(line, width, p.size, p.style)...)
	}
	if p.most > 0 && len(p.lines) > p.most {
		last := p.lines[p.most-1] + " …"
		p.lines = append(p.lines[:p.most-1:p.most-1], Fit(last, width, p.size, p.style))
	}
}

func wrapLine(line string, width, size float32, style fyne.TextStyle) []string {
	if width <= 0 {
		return []string{line}
	}
	fits := func(s string) bool { return fyne.MeasureText(s, size, style).Width <= width }
	var out []string
	var cur string
	for _, word := range strings.Fields(line) {
		next := word
		if cur != "" {
			next = cur + " " + word
		}
		if fits(next) {
			cur = next
			continue
		}
		if cur != "" {
			out = append(out, cur)
		}
		for !fits(word) { // a word longer than the line: a path, an address
			head := strings.TrimSuffix(Fit(word, width, size, style), "…")
			if head == "" {
				break
			}
			out = append(out, head)
			word = word[len(head):]
		}
		cur = word
	}
	return append(out, cur)
}

// CreateRenderer is Fyne's.
func (p *Paragraph) CreateRenderer() fyne.WidgetRenderer {
	r := &paragraphRenderer{p: p}
	r.Refresh()
	return r
}

type paragraphRenderer struct {
	p       *Paragraph
	texts   []*canvas.Text
	objects []fyne.CanvasObject
}

// lineHeight is that of the text and a quarter of its size between lines.
func (r *paragraphRenderer) lineHeight() float32 {
	return fyne.MeasureText("Mg", r.p.size, r.p.style).Height + 2
}

func (r *paragraphRenderer) MinSize() fyne.Size {
	if r.p.lines == nil {
		r.p.wrap(r.p.Size().Width)
	}
	return fyne.NewSize(64, r.lineHeight()*float32(len(r.p.lines)))
}

func (r *paragraphRenderer) Layout(size fyne.Size) {
	if len(r.texts) != len(r.p.lines) {
		r.Refresh()
	}
	h := r.lineHeight()
	for i, t := range r.texts {
		if t.Text != r.p.lines[i] {
			t.Text = r.p.lines[i]
			t.Refresh()
		}
		t.Move(fyne.NewPos(0, float32(i)*h))
		t.Resize(fyne.NewSize(size.Width, h))
	}
}

func (r *paragraphRenderer) Refresh() {
	if r.p.lines == nil {
		r.p.wrap(r.p.Size().Width)
	}
	for len(r.texts) < len(r.p.lines) {
		t := canvas.NewText("", nil)
		r.texts = append(r.texts, t)
		r.objects = append(r.objects, t)
	}
	r.texts, r.objects = r.texts[:len(r.p.lines)], r.objects[:len(r.p.lines)]
	ink := Now().Ink(r.p.ink)
	for i, t := range r.texts {
		t.Text, t.TextSize, t.TextStyle, t.Color = r.p.lines[i], r.p.size, r.p.style, ink
		t.Refresh()
	}
	r.Layout(r.p.Size())
}

func (r *paragraphRenderer) Objects() []fyne.CanvasObject { return r.objects }
func (r *paragraphRenderer) Destroy()                     {}
