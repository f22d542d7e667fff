package look

import "fyne.io/fyne/v2"

// PassKey gives a key that a widget with the focus has no use for to the window, as if nothing had the
// focus: F11, Escape and the like then work wherever the focus is.
func PassKey(o fyne.CanvasObject, e *fyne.KeyEvent) {
	if c := fyne.CurrentApp().Driver().CanvasForObject(o); c != nil {
		if f := c.OnTypedKey(); f != nil {
			f(e)
		}
	}
}

// PassRune does the same with a letter.
func PassRune(o fyne.CanvasObject, r rune) {
	if c := fyne.CurrentApp().Driver().CanvasForObject(o); c != nil {
		if f := c.OnTypedRune(); f != nil {
			f(r)
		}
	}
}
