package look

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"
)

// PushButton is Fyne's button with room beside its words.
type PushButton struct{ widget.Button }

// MinSize is that of the words and the room around them.
func (b *PushButton) MinSize() fyne.Size {
	b.ExtendBaseWidget(b)
	return b.Button.MinSize().AddWidthHeight(Gap, 0)
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
