package look

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/widget"
)

// Field puts a small name above an input and gives it a width in units.
func Field(name string, width float32, input fyne.CanvasObject) *fyne.Container {
	return Rows(Half, NewText(name).Sized(Small).In(Muted), Sized(width, 0, input))
}

// Entry is a one-line input whose width does not depend on its text.
type Entry struct {
	widget.Entry
	OnEscape func()
	OnKey    func(*fyne.KeyEvent) // a key that is not for a text
}

// NewEntry returns an empty entry.
func NewEntry(placeholder string) *Entry {
	e := &Entry{}
	e.Scroll = container.ScrollNone
	e.Wrapping = fyne.TextWrapOff
	e.Scroll = container.ScrollHorizontalOnly
	e.PlaceHolder = placeholder
	e.ExtendBaseWidget(e)
	return e
}

// NewSecret returns an entry that shows dots.
func NewSecret(placeholder string) *Entry {
	e := NewEntry(placeholder)
	e.Password = true
	return e
}

// TypedKey passes on what an entry has no use for.
func (e *Entry) TypedKey(k *fyne.KeyEvent) {
	switch {
	case k.Name == fyne.KeyEscape && e.OnEscape != nil:
		e.OnEscape()
	case functionKey(k.Name) && e.OnKey != nil:
		e.OnKey(k)
	case k.Name == fyne.KeyEscape, functionKey(k.Name):
		PassKey(e, k)
	default:
		e.Entry.TypedKey(k)
	}
}

// FocusGained brings it into view.
func (e *Entry) FocusGained() {
	e.Entry.FocusGained()
	Reveal(e)
}

// functionKey tells of a key that no text takes.
func functionKey(n fyne.KeyName) bool {
	return len(n) >= 2 && n[0] == 'F' && n[1] >= '1' && n[1] <= '9'
}
