package chatpage

import (
	"image/color"
	"sort"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/widget"

	"velo/ui/look"
)

// part is a piece of a turn: lines of text, or a widget that is made when it comes into view.
type part struct {
	y, h  float32 // in the turn
	x, w  float32 // of a widget
	lines []line
	make  func() fyne.CanvasObject
	over  bool // it lies over another part, dy below its top, and takes no height
	base  int  // that part
	dy    float32

	made fyne.CanvasObject
}

// turnView is a turn laid out.
type turnView struct {
	id     string
	y, h   float32
	parts  []part
	answer int // the index of the first part that a live turn replaces; < 0: it has ended
}

// restack gives the parts their places. The height of a part with lines is that of the lines.
func (t *turnView) restack() {
	var y float32
	for i := range t.parts {
		p := &t.parts[i]
		if p.over {
			p.y = t.parts[p.base].y + p.dy
			continue
		}
		p.y = y
		if n := len(p.lines); n > 0 {
			p.h = p.lines[n-1].y + p.lines[n-1].h
		}
		y += p.h
	}
	t.h = y
}

// transcript shows turns, laid out elsewhere. It makes objects only for what is in view, so that its
// cost does not depend on how long they are. It lies in a scroller, which tells it what is in view.
type transcript struct {
	widget.BaseWidget

	turns   []*turnView
	height  float32
	top     float32 // of what is in view
	view    float32 // its height
	focused bool
	anchor  place // of the selection
	head    place
	marked  bool // something is selected

	OnScroll func(dy float32) // a key moves the view
	OnEnds   func(end bool)   // to the start, or to the end
	OnCopy   func(text string)
	OnKey    func(*fyne.KeyEvent)
	OnRune   func(rune)
}

var (
	_ fyne.Focusable     = (*transcript)(nil)
	_ fyne.Shortcutable  = (*transcript)(nil)
	_ fyne.Draggable     = (*transcript)(nil)
	_ desktop.Mouseable  = (*transcript)(nil)
	_ desktop.Cursorable = (*transcript)(nil)
)

func newTranscript() *transcript {
	t := &transcript{view: 1200}
	t.ExtendBaseWidget(t)
	return t
}

// set shows other turns.
func (t *transcript) set(turns []*turnView) {
	t.turns = turns
	t.marked = false
	t.restack()
	t.Refresh()
}

// restack gives the turns their places, after one changed its height.
func (t *transcript) restack() {
	var y float32
	for _, v := range t.turns {
		v.y = y
		y += v.h
	}
	t.height = y
}

// setView says what is in view.
func (t *transcript) setView(top, height float32) {
	if top != t.top || height != t.view {
		t.top, t.view = top, height
		t.Refresh()
	}
}

// CreateRenderer is Fyne's.
func (t *transcript) CreateRenderer() fyne.WidgetRenderer {
	r := &transcriptRenderer{t: t, ring: canvas.NewRectangle(nil)}
	return r
}

type transcriptRenderer struct {
	t       *transcript
	ring    *canvas.Rectangle
	rects   []*canvas.Rectangle
	texts   []*canvas.Text
	usedR   int
	usedT   int
	objects []fyne.CanvasObject
	widgets map[*part]bool
}

func (r *transcriptRenderer) MinSize() fyne.Size           { return fyne.NewSize(200, r.t.height) }
func (r *transcriptRenderer) Layout(fyne.Size)             { r.draw() }
func (r *transcriptRenderer) Objects() []fyne.CanvasObject { return r.objects }
func (r *transcriptRenderer) Destroy()                     {}
func (r *transcriptRenderer) Refresh() {
	r.draw()
	canvas.Refresh(r.t)
}

// draw gives objects to what is in view, and a little more.
func (r *transcriptRenderer) draw() {
	t := r.t
	p := look.Now()
	r.usedR, r.usedT = 0, 0
	var widgets []fyne.CanvasObject
	seen := map[*part]bool{}
	from, to := t.top-40, t.top+t.view+40
	width := t.Size().Width
	t.each(from, to, func(v *turnView, i int, first, last int) {
		c := &v.parts[i]
		y := v.y + c.y
		for k := first; k < last; k++ {
			r.line(&c.lines[k], y+c.lines[k].y, width, p)
		}
		if c.make == nil {
			return
		}
		if c.made == nil {
			c.made = c.make()
		}
		w := c.w
		if w <= 0 {
			w = width - c.x
		}
		c.made.Move(fyne.NewPos(c.x, y))
		c.made.Resize(fyne.NewSize(w, c.h))
		widgets = append(widgets, c.made)
		seen[c] = true
	})
	for c := range r.widgets {
		if !seen[c] {
			c.made = nil // out of view: it is made again
		}
	}
	r.widgets = seen
	r.selection(from, to, p)
	r.objects = r.objects[:0:0]
	for _, o := range r.rects[:r.usedR] {
		r.objects = append(r.objects, o)
	}
	for _, o := range r.texts[:r.usedT] {
		r.objects = append(r.objects, o)
	}
	r.objects = append(r.objects, widgets...)
	if t.focused {
		r.ring.FillColor, r.ring.StrokeColor, r.ring.StrokeWidth = nil, p.Accent, 2
		r.ring.Move(fyne.NewPos(-look.Step-2, t.top)) // in the margin
		r.ring.Resize(fyne.NewSize(2, t.view))
		r.objects = append(r.objects, r.ring)
	}
}

// each calls back for the parts that lie between two heights, with the lines of them that do.
func (t *transcript) each(from, to float32, f func(v *turnView, part, first, last int)) {
	for i := sort.Search(len(t.turns), func(i int) bool { return t.turns[i].y+t.turns[i].h >= from }); i < len(t.turns); i++ {
		v := t.turns[i]
		if v.y > to {
			return
		}
		for k := range v.parts {
			c := &v.parts[k]
			y := v.y + c.y
			if y+c.h < from || y > to {
				continue
			}
			first := sort.Search(len(c.lines), func(j int) bool { return y+c.lines[j].y+c.lines[j].h >= from })
			last := first + sort.Search(len(c.lines)-first, func(j int) bool { return y+c.lines[first+j].y > to })
			f(v, k, first, last)
		}
	}
}

func (r *transcriptRenderer) rect() *canvas.Rectangle {
	if r.usedR == len(r.rects) {
		r.rects = append(r.rects, canvas.NewRectangle(nil))
	}
	r.usedR++
	return r.rects[r.usedR-1]
}

func (r *transcriptRenderer) text() *canvas.Text {
	if r.usedT == len(r.texts) {
		r.texts = append(r.texts, canvas.NewText("", nil))
	}
	r.usedT++
	return r.texts[r.usedT-1]
}

func (r *transcriptRenderer) fill(x, y, w, h float32, c color.NRGBA) {
	o := r.rect()
	if o.FillColor != c {
		o.FillColor = c
		o.Refresh()
	}
	o.Move(fyne.NewPos(x, y))
	o.Resize(fyne.NewSize(w, h))
}

func (s style) fyne() fyne.TextStyle { return fyne.TextStyle{Bold: s.bold, Monospace: s.mono} }

func (r *transcriptRenderer) line(l *line, y, width float32, p look.Palette) {
	switch l.ground {
	case onCode, onPrompt:
		r.fill(l.back, y, width-l.back, l.h, p.Surface)
	case ruled:
		r.fill(l.x, y+l.h/2, width-l.x, 1, p.Line)
	}
	for i := range l.bars {
		r.fill(float32(i)*look.Gap, y, 3, l.h, p.Line)
	}
	x := l.x
	for i := range l.spans {
		s := &l.spans[i]
		if s.x >= 0 {
			x = l.x + s.x
		}
		c := r.text()
		st := s.style.fyne()
		col := s.style.ink.color(p)
		m := fyne.MeasureText(s.text, s.style.size, st)
		if c.Text != s.text || c.TextSize != s.style.size || c.TextStyle != st || c.Color != col {
			c.Text, c.TextSize, c.TextStyle, c.Color = s.text, s.style.size, st, col
			c.Refresh()
		}
		c.Resize(m)
		c.Move(fyne.NewPos(x, y+(l.h-m.Height)/2))
		if s.style.underline {
			r.fill(x, y+l.h/2+m.Height/2-3, m.Width, 1, col)
		}
		if s.style.struck {
			r.fill(x, y+l.h/2+1, m.Width, 1, col)
		}
		x += m.Width
	}
}
