package look

import (
	"slices"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"
)

// PushButton is Fyne's button with room beside its words.
type PushButton struct {
	widget.Button
	focused bool
}

// MinSize is that of the words and the room around them.
func (b *PushButton) MinSize() fyne.Size {
	b.ExtendBaseWidget(b)
	return b.Button.MinSize().AddWidthHeight(Gap, 0)
}

// FocusGained shows that the keys are its.
func (b *PushButton) FocusGained() {
	b.focused = true
	b.Button.FocusGained()
	Reveal(b)
}

// FocusLost is Fyne's.
func (b *PushButton) FocusLost() {
	b.focused = false
	b.Button.FocusLost()
}

// CreateRenderer is Fyne's, with a ring while it has the focus: Fyne shows that with a tint alone, which a button in
// the accent's colour does not show.
func (b *PushButton) CreateRenderer() fyne.WidgetRenderer {
	b.ExtendBaseWidget(b)
	r := &buttonRenderer{WidgetRenderer: b.Button.CreateRenderer(), b: b, ring: canvas.NewRectangle(nil)}
	r.turn()
	return r
}

type buttonRenderer struct {
	fyne.WidgetRenderer
	b    *PushButton
	ring *canvas.Rectangle
}

func (r *buttonRenderer) turn() {
	p := Now()
	r.ring.FillColor, r.ring.StrokeColor, r.ring.StrokeWidth, r.ring.CornerRadius = alpha(p.Background, 0), p.Accent, 2, Radius
	if r.b.Importance == widget.HighImportance {
		r.ring.StrokeColor = p.Text
	}
	r.ring.Hidden = !r.b.focused
	r.ring.Refresh()
}

func (r *buttonRenderer) Layout(s fyne.Size) {
	r.WidgetRenderer.Layout(s)
	r.ring.Resize(s)
}

func (r *buttonRenderer) Refresh() {
	r.turn()
	r.WidgetRenderer.Refresh()
}

func (r *buttonRenderer) Objects() []fyne.CanvasObject {
	return append(slices.Clone(r.WidgetRenderer.Objects()), r.ring)
}

// TypedKey presses it with the space or the enter key.
func (b *PushButton) TypedKey(e *fyne.KeyEvent) {
	switch e.Name {
	case fyne.KeySpace:
		b.Button.TypedKey(e)
	case fyne.KeyReturn, fyne.KeyEnter:
		if !b.Disabled() {
			b.Tapped(nil)
		}
	default:
		PassKey(b, e)
	}
}

// TypedRune is none of a button's business.
func (b *PushButton) TypedRune(r rune) { PassRune(b, r) }

// SetEnabled makes it one that can be pressed, or not.
func (b *PushButton) SetEnabled(on bool) {
	if on == !b.Disabled() {
		return
	}
	if on {
		b.Enable()
	} else {
		b.Disable()
	}
}

// Button returns a button with a verb on it.
func Button(text string, tapped func()) *PushButton {
	b := &PushButton{}
	b.Text, b.OnTapped = text, tapped
	b.ExtendBaseWidget(b)
	return b
}

// MainButton returns the one button of a page that does what the page is for.
func MainButton(text string, tapped func()) *PushButton {
	b := Button(text, tapped)
	b.Importance = widget.HighImportance
	return b
}

// StopButton returns the button that ends something.
func StopButton(text string, tapped func()) *PushButton {
	b := Button(text, tapped)
	b.Icon = theme.MediaStopIcon()
	return b
}
