package look

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/widget"
)

// Tone is the part of the palette that a surface shows.
type Tone int

// The tones.
const (
	OnBackground Tone = iota
	OnSurface
	OnLine
	OnAccent
	OnAmber
	OnRed
	OnGreen
	OnFaint
	Dimmed // lets what is below shine through: behind a question
)

func (p Palette) tone(t Tone) color.NRGBA {
	switch t {
	case OnSurface:
		return p.Surface
	case OnLine:
		return p.Line
	case OnAccent:
		return p.Accent
	case OnAmber:
		return p.Amber
	case OnRed:
		return p.Red
	case OnGreen:
		return p.Green
	case OnFaint:
		return p.Faint
	case Dimmed:
		return color.NRGBA{A: 0x66}
	}
	return p.Background
}

// Surface is a plain area of one tone.
type Surface struct {
	widget.BaseWidget

	tone   Tone
	radius float32
	least  fyne.Size
}

// NewSurface returns an area that fills whatever it is given.
func NewSurface(t Tone) *Surface {
	s := &Surface{tone: t}
	s.ExtendBaseWidget(s)
	return s
}

// Rule is a line of one unit, for between two things: it stretches, and asks for one unit.
func Rule() *Surface {
	s := NewSurface(OnLine)
	s.least = fyne.NewSquareSize(1)
	return s
}

// Dot is a small round mark of eight units.
func Dot(t Tone) *Surface {
	s := NewSurface(t)
	s.radius = Half
	s.least = fyne.NewSquareSize(Step)
	return s
}

// SetTone changes the tone.
func (s *Surface) SetTone(t Tone) {
	if s.tone == t {
		return
	}
	s.tone = t
	s.Refresh()
}

// CreateRenderer is Fyne's.
func (s *Surface) CreateRenderer() fyne.WidgetRenderer {
	r := &surfaceRenderer{s: s, r: canvas.NewRectangle(nil)}
	r.update()
	return r
}

type surfaceRenderer struct {
	s *Surface
	r *canvas.Rectangle
}

func (r *surfaceRenderer) update() {
	r.r.FillColor = Now().tone(r.s.tone)
	r.r.CornerRadius = r.s.radius
}

func (r *surfaceRenderer) MinSize() fyne.Size           { return r.s.least }
func (r *surfaceRenderer) Layout(size fyne.Size)        { r.r.Resize(size) }
func (r *surfaceRenderer) Refresh()                     { r.update(); r.r.Refresh() }
func (r *surfaceRenderer) Objects() []fyne.CanvasObject { return []fyne.CanvasObject{r.r} }
func (r *surfaceRenderer) Destroy()                     {}

// Panel puts an object on a surface.
func Panel(t Tone, o fyne.CanvasObject) *fyne.Container {
	return container.NewStack(NewSurface(t), o)
}

// Scroll is a vertical scroller that gives its content the width before it asks for the height, so
// that text which wraps is right in the first frame.
type Scroll struct {
	widget.BaseWidget

	content  fyne.CanvasObject
	scroll   *wheel
	OnScroll func(top, height float32) // the visible part of the content, in units
}

// NewScroll returns a scroller over content.
func NewScroll(content fyne.CanvasObject) *Scroll {
	s := &Scroll{content: content, scroll: &wheel{}}
	s.scroll.Content, s.scroll.Direction = content, container.ScrollVerticalOnly
	s.scroll.ExtendBaseWidget(s.scroll)
	s.scroll.OnScrolled = func(fyne.Position) { s.tell() }
	s.ExtendBaseWidget(s)
	return s
}

// wheel is Fyne's scroller with longer steps: a report is many screens long.
type wheel struct{ container.Scroll }

// Scrolled takes a wheel.
func (w *wheel) Scrolled(e *fyne.ScrollEvent) {
	far := *e
	far.Scrolled.DY *= 2.5
	w.Scroll.Scrolled(&far)
}

func (s *Scroll) tell() {
	if s.OnScroll != nil {
		s.OnScroll(s.scroll.Offset.Y, s.scroll.Size().Height)
	}
}

// Offset is how far the content is scrolled, in units.
func (s *Scroll) Offset() float32 { return s.scroll.Offset.Y }

// To scrolls so that y is at the top.
func (s *Scroll) To(y float32) {
	s.scroll.ScrollToOffset(fyne.NewPos(0, y))
	s.tell()
}

// Reveal scrolls no further than needed to have the part from y on in view.
func (s *Scroll) Reveal(y, height float32) {
	top, h := s.scroll.Offset.Y, s.scroll.Size().Height
	switch {
	case y < top:
		s.To(y)
	case y+height > top+h:
		s.To(y + height - h)
	}
}

// Settle lays the content out again, after it changed.
func (s *Scroll) Settle() {
	size := s.Size()
	if size.Width <= 0 {
		return
	}
	settle(s.content, size.Width)
	s.scroll.Resize(size)
	s.scroll.Refresh()
	s.tell()
}

// CreateRenderer is Fyne's.
func (s *Scroll) CreateRenderer() fyne.WidgetRenderer { return &scrollRenderer{s} }

type scrollRenderer struct{ s *Scroll }

func (r *scrollRenderer) MinSize() fyne.Size {
	return fyne.NewSize(r.s.content.MinSize().Width, 64)
}

func (r *scrollRenderer) Layout(size fyne.Size) {
	settle(r.s.content, size.Width)
	r.s.scroll.Resize(size)
	r.s.tell()
}

func (r *scrollRenderer) Refresh()                     { r.s.scroll.Refresh() }
func (r *scrollRenderer) Objects() []fyne.CanvasObject { return []fyne.CanvasObject{r.s.scroll} }
func (r *scrollRenderer) Destroy()                     {}

// Scrolled takes a wheel: for a child that caught one that was not for it.
func (s *Scroll) Scrolled(e *fyne.ScrollEvent) { s.scroll.Scrolled(e) }
