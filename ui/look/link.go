package look

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/widget"
)

// Link is a line of small text that leads somewhere: by a click, or by Enter or the space while it has the focus.
type Link struct {
	widget.BaseWidget
	text             *Text
	tapped           func()
	hovered, focused bool
}

var (
	_ fyne.Tappable      = (*Link)(nil)
	_ fyne.Focusable     = (*Link)(nil)
	_ desktop.Hoverable  = (*Link)(nil)
	_ desktop.Cursorable = (*Link)(nil)
)

// NewLink returns a link without words, of a least width.
func NewLink(width float32, tapped func()) *Link {
	l := &Link{text: NewText("").Sized(Small).In(Muted).Fixed(width), tapped: tapped}
	l.ExtendBaseWidget(l)
	return l
}

// Set changes the words.
func (l *Link) Set(text string) { l.text.Set(text) }

// Text is the words.
func (l *Link) Text() string { return l.text.Text() }

// Tapped is Fyne's.
func (l *Link) Tapped(*fyne.PointEvent) { l.tapped() }

// Cursor is Fyne's.
func (l *Link) Cursor() desktop.Cursor { return desktop.PointerCursor }

func (l *Link) turn() {
	ink := Muted
	if l.hovered || l.focused {
		ink = Plain
	}
	l.text.SetIn(l.text.Text(), ink)
	l.Refresh()
}

// MouseIn is Fyne's.
func (l *Link) MouseIn(*desktop.MouseEvent) { l.hovered = true; l.turn() }

// MouseMoved is Fyne's.
func (l *Link) MouseMoved(*desktop.MouseEvent) {}

// MouseOut is Fyne's.
func (l *Link) MouseOut() { l.hovered = false; l.turn() }

// FocusGained is Fyne's.
func (l *Link) FocusGained() { l.focused = true; l.turn(); Reveal(l) }

// FocusLost is Fyne's.
func (l *Link) FocusLost() { l.focused = false; l.turn() }

// TypedRune is Fyne's.
func (l *Link) TypedRune(r rune) { PassRune(l, r) }

// TypedKey is Fyne's.
func (l *Link) TypedKey(e *fyne.KeyEvent) {
	switch e.Name {
	case fyne.KeyReturn, fyne.KeyEnter, fyne.KeySpace:
		l.tapped()
	default:
		PassKey(l, e)
	}
}

// CreateRenderer is Fyne's.
func (l *Link) CreateRenderer() fyne.WidgetRenderer {
	r := &linkRenderer{l: l, ring: canvas.NewRectangle(nil)}
	r.Refresh()
	return r
}

type linkRenderer struct {
	l    *Link
	ring *canvas.Rectangle // while it has the focus
}

func (r *linkRenderer) MinSize() fyne.Size { return r.l.text.MinSize() }

func (r *linkRenderer) Layout(s fyne.Size) {
	r.l.text.Resize(s)
	r.ring.Move(fyne.NewPos(-Half, -2))
	r.ring.Resize(s.AddWidthHeight(2*Half, 4))
}

func (r *linkRenderer) Refresh() {
	p := Now()
	r.ring.FillColor, r.ring.StrokeColor, r.ring.StrokeWidth, r.ring.CornerRadius = alpha(p.Background, 0), p.Accent, 2, Radius/2
	r.ring.Hidden = !r.l.focused
	r.ring.Refresh()
	r.l.text.Refresh()
}

func (r *linkRenderer) Objects() []fyne.CanvasObject { return []fyne.CanvasObject{r.ring, r.l.text} }
func (r *linkRenderer) Destroy()                     {}
