package look

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
)

// Fold is Trailing where both objects fit beside each other; where they do not, in a window that is narrow or
// whose text is large, the second one goes below the first. Folds within a Fold give way after it.
func Fold(gap float32, rest, right fyne.CanvasObject) *fyne.Container {
	return container.New(&fold{gap: gap}, rest, right)
}

type fold struct {
	gap  float32
	last float32 // the width it was last laid out in
}

// natural is the width that an object takes when nothing in it is folded.
func natural(o fyne.CanvasObject) float32 {
	if !o.Visible() {
		return 0
	}
	c, ok := o.(*fyne.Container)
	if !ok {
		return o.MinSize().Width
	}
	if f, ok := c.Layout.(*fold); ok {
		a, b := natural(c.Objects[0]), natural(c.Objects[1])
		return a + f.between(c.Objects) + b
	}
	return c.MinSize().Width
}

// least is what an object takes at least: nothing while it is hidden.
func least(o fyne.CanvasObject) fyne.Size {
	if !o.Visible() {
		return fyne.Size{}
	}
	return o.MinSize()
}

// between is the gap, where there is something at both sides of it.
func (l *fold) between(o []fyne.CanvasObject) float32 {
	if least(o[0]).Width == 0 || least(o[1]).Width == 0 {
		return 0
	}
	return l.gap
}

func (l *fold) folded(o []fyne.CanvasObject, width float32) bool {
	return width > 0 && natural(o[0])+l.between(o)+natural(o[1]) > width
}

func (l *fold) MinSize(o []fyne.CanvasObject) fyne.Size {
	a, b := least(o[0]), least(o[1])
	s := a.Max(b)
	if l.folded(o, l.last) {
		s.Height = a.Height + Step + b.Height
	}
	return s
}

func (l *fold) Layout(o []fyne.CanvasObject, size fyne.Size) {
	l.last = size.Width
	if l.folded(o, size.Width) {
		h := settle(o[0], size.Width)
		o[0].Move(fyne.Position{})
		settle(o[1], fyne.Min(size.Width, fyne.Max(natural(o[1]), least(o[1]).Width)))
		o[1].Move(fyne.NewPos(0, h+Step))
		return
	}
	w := natural(o[1])
	right := settle(o[1], w)
	h := settle(o[0], size.Width-w-l.between(o))
	o[0].Move(fyne.NewPos(0, fyne.Max(0, (size.Height-h)/2)))
	o[1].Move(fyne.NewPos(size.Width-w, fyne.Max(0, (size.Height-right)/2)))
}

// Aside puts a column to the left of what fills the rest. The column is as wide as it is meant to be, in units,
// where the rest has room beside it, and gives way down to least where it has not.
func Aside(width, least float32, left, centre fyne.CanvasObject) *fyne.Container {
	return container.New(aside{width, least}, left, centre)
}

type aside struct{ width, least float32 }

func (l aside) MinSize(o []fyne.CanvasObject) fyne.Size {
	a, b := o[0].MinSize(), o[1].MinSize()
	return fyne.NewSize(fyne.Max(l.least, a.Width)+b.Width, fyne.Max(a.Height, b.Height))
}

func (l aside) Layout(o []fyne.CanvasObject, size fyne.Size) {
	w := fyne.Max(fyne.Min(l.width, size.Width-o[1].MinSize().Width), fyne.Max(l.least, o[0].MinSize().Width))
	o[0].Move(fyne.Position{})
	o[0].Resize(fyne.NewSize(w, size.Height))
	o[1].Move(fyne.NewPos(w, 0))
	o[1].Resize(fyne.NewSize(size.Width-w, size.Height))
}
