package startpage

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
)

// narrow keeps an object from becoming wider than that, in units; it stays at the left.
func narrow(width float32, o fyne.CanvasObject) *fyne.Container {
	return container.New(narrowed(width), o)
}

type narrowed float32

func (w narrowed) MinSize(o []fyne.CanvasObject) fyne.Size { return o[0].MinSize() }

func (w narrowed) Layout(o []fyne.CanvasObject, size fyne.Size) {
	size.Width = fyne.Min(size.Width, float32(w))
	o[0].Resize(size)
	if again := o[0].MinSize().Height; again > size.Height { // it wraps at this width
		size.Height = again
		o[0].Resize(size)
	}
}
