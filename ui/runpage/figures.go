package runpage

import (
	"fyne.io/fyne/v2"

	"velo/ui/look"
)

// figures puts the hero number beside the tiles, or above them where fewer than two of them fit beside it.
type figures struct{ below bool }

const tileWidth = 168

func (f *figures) MinSize(o []fyne.CanvasObject) fyne.Size {
	a, b := o[0].MinSize(), o[1].MinSize()
	if f.below {
		return fyne.NewSize(fyne.Max(a.Width, b.Width), a.Height+look.Step+b.Height)
	}
	return fyne.NewSize(fyne.Max(a.Width, b.Width), fyne.Max(a.Height, b.Height))
}

func (f *figures) Layout(o []fyne.CanvasObject, size fyne.Size) {
	a := o[0].MinSize()
	rest := size.Width - a.Width - look.Gap
	f.below = rest < 2*tileWidth+look.Gap
	o[0].Move(fyne.Position{})
	at := fyne.NewPos(0, a.Height+look.Step)
	if !f.below {
		at = fyne.NewPos(a.Width+look.Gap, 0)
	} else {
		rest = size.Width
	}
	o[1].Move(at)
	o[0].Resize(fyne.NewSize(a.Width, fyne.Max(a.Height, size.Height-at.Y)))
	if f.below {
		o[0].Resize(a)
	}
	o[1].Resize(fyne.NewSize(rest, size.Height-at.Y))
}
