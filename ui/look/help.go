package look

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/widget"
)

// Help shows what an object means while the pointer is on it or it has the focus: Fyne has no
// tooltips. Ctrl+C copies what the object stands for.
type Help struct {
	widget.BaseWidget

	object  fyne.CanvasObject
	layer   *HelpLayer
	title   string
	text    string
	copied  string
	focused bool
	hovered bool
}

var (
	_ fyne.Focusable    = (*Help)(nil)
	_ fyne.Shortcutable = (*Help)(nil)
	_ desktop.Hoverable = (*Help)(nil)
)

// NewHelp puts help on an object. What it says is shown in the layer.
func NewHelp(layer *HelpLayer, object fyne.CanvasObject, title, text string) *Help {
	h := &Help{object: object, layer: layer, title: title, text: text}
	h.ExtendBaseWidget(h)
	return h
}

// SetText changes what is said, and what Ctrl+C copies; empty: nothing.
func (h *Help) SetText(text, copied string) {
	if text == h.text && copied == h.copied {
		return
	}
	h.text, h.copied = text, copied
	if h.layer.shows == h {
		h.layer.show(h)
	}
}

// Title is what is explained.
func (h *Help) Title() string { return h.title }

// Text is what is said.
func (h *Help) Text() string { return h.text }

func (h *Help) turn() {
	if h.hovered || h.focused {
		h.layer.show(h)
	} else {
		h.layer.hide(h)
	}
	h.Refresh()
}

// MouseIn is Fyne's.
func (h *Help) MouseIn(*desktop.MouseEvent) { h.hovered = true; h.turn() }

// MouseMoved is Fyne's.
func (h *Help) MouseMoved(*desktop.MouseEvent) {}

// MouseOut is Fyne's.
func (h *Help) MouseOut() { h.hovered = false; h.turn() }

// FocusGained is Fyne's.
func (h *Help) FocusGained() { h.focused = true; h.turn() }

// FocusLost is Fyne's.
func (h *Help) FocusLost() { h.focused = false; h.turn() }

// TypedRune is Fyne's.
func (h *Help) TypedRune(rune) {}

// TypedKey takes the bubble away with the escape key.
func (h *Help) TypedKey(e *fyne.KeyEvent) {
	if e.Name == fyne.KeyEscape {
		h.layer.hide(h)
	}
}

// TypedShortcut copies.
func (h *Help) TypedShortcut(s fyne.Shortcut) {
	if c, ok := s.(*fyne.ShortcutCopy); ok && h.copied != "" {
		c.Clipboard.SetContent(h.copied)
	}
}

// CreateRenderer is Fyne's.
func (h *Help) CreateRenderer() fyne.WidgetRenderer {
	r := &helpRenderer{h: h, ring: canvas.NewRectangle(nil)}
	r.Refresh()
	return r
}

type helpRenderer struct {
	h    *Help
	ring *canvas.Rectangle
}

func (r *helpRenderer) MinSize() fyne.Size { return r.h.object.MinSize() }
func (r *helpRenderer) Layout(s fyne.Size) {
	r.h.object.Resize(s)
	r.ring.Move(fyne.NewPos(-Half, -2))
	r.ring.Resize(s.AddWidthHeight(2*Half, 4))
}

func (r *helpRenderer) Refresh() {
	p := Now()
	r.ring.FillColor = alpha(p.Background, 0)
	r.ring.StrokeColor, r.ring.StrokeWidth, r.ring.CornerRadius = p.Accent, 2, Radius/2
	r.ring.Hidden = !r.h.focused // not a colour of no opacity: Fyne paints that, over all of a drawing
	r.ring.Refresh()
	r.h.object.Refresh()
}

func (r *helpRenderer) Objects() []fyne.CanvasObject {
	return []fyne.CanvasObject{r.ring, r.h.object}
}
func (r *helpRenderer) Destroy() {}

// HelpLayer is where help is shown: a bubble over the content, beside what it explains. It catches no
// pointer and no key.
type HelpLayer struct {
	*fyne.Container
	bubble *fyne.Container
	title  *Text
	text   *Paragraph
	shows  *Help
}

// HelpOver returns a layer for content; its Container holds both.
func HelpOver() *HelpLayer {
	l := &HelpLayer{title: NewText("").Bold(), text: NewParagraph("").Sized(Small)}
	edge := NewSurface(OnLine)
	edge.radius = Radius
	face := NewSurface(OnSurface)
	face.radius = Radius
	l.bubble = Over(edge, Inset(1, 1, 1, 1, face), Inset(Step, 12, Step, 12, Rows(Half, l.title, l.text)))
	l.bubble.Hide()
	l.Container = container.NewWithoutLayout(l.bubble)
	return l
}

// Shown is the help that is in view, nil if there is none.
func (l *HelpLayer) Shown() *Help { return l.shows }

func (l *HelpLayer) hide(h *Help) {
	if l.shows == h {
		l.shows = nil
		l.bubble.Hide()
		l.Container.Refresh()
	}
}

// show puts the bubble below the object, or above it where there is no room below.
func (l *HelpLayer) show(h *Help) {
	if h.text == "" {
		return
	}
	l.shows = h
	l.title.Set(h.title)
	l.text.Set(h.text)
	size := l.Container.Size()
	width := fyne.Min(size.Width-2*Step, 320)
	l.bubble.Show()
	height := settle(l.bubble, width)
	height = settle(l.bubble, width)
	d := fyne.CurrentApp().Driver()
	at := d.AbsolutePositionForObject(h).Subtract(d.AbsolutePositionForObject(l.Container))
	x := fyne.Max(Step, fyne.Min(at.X, size.Width-width-Step))
	y := at.Y + h.Size().Height + Half
	if y+height > size.Height && at.Y-height-Half >= 0 {
		y = at.Y - height - Half
	}
	l.bubble.Move(fyne.NewPos(x, fyne.Max(0, y)))
	l.Container.Refresh()
}
