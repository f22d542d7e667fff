package look

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/layout"
)

// Rows puts objects below each other with a gap in units, each as wide as the whole. A child whose
// height depends on its width (a Paragraph, Rows of them) gets the height of the width it is given,
// which Fyne's own boxes do only a frame later.
func Rows(gap float32, objects ...fyne.CanvasObject) *fyne.Container {
	return container.New(rows{gap}, objects...)
}

type rows struct{ gap float32 }

func (l rows) MinSize(objects []fyne.CanvasObject) fyne.Size {
	var s fyne.Size
	n := 0
	for _, o := range objects {
		if !o.Visible() {
			continue
		}
		m := o.MinSize()
		s.Width = fyne.Max(s.Width, m.Width)
		s.Height += m.Height
		n++
	}
	if n > 1 {
		s.Height += l.gap * float32(n-1)
	}
	return s
}

func (l rows) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	var y float32
	for _, o := range objects {
		if !o.Visible() {
			continue
		}
		h := settle(o, size.Width)
		o.Move(fyne.NewPos(0, y))
		y += h + l.gap
	}
}

// settle gives an object a width and the height that it wants at that width.
func settle(o fyne.CanvasObject, width float32) float32 {
	h := o.MinSize().Height
	o.Resize(fyne.NewSize(width, h))
	if again := o.MinSize().Height; again != h {
		h = again
		o.Resize(fyne.NewSize(width, h))
	}
	return h
}

// Line puts objects beside each other with a gap in units, each as wide as it needs, all centred on
// one height.
func Line(gap float32, objects ...fyne.CanvasObject) *fyne.Container {
	return container.New(line{gap}, objects...)
}

// Spacer takes what is left of a Line.
func Spacer() fyne.CanvasObject { return layout.NewSpacer() }

type line struct{ gap float32 }

func (l line) MinSize(objects []fyne.CanvasObject) fyne.Size {
	var s fyne.Size
	n := 0
	for _, o := range objects {
		if !o.Visible() {
			continue
		}
		m := o.MinSize()
		s.Width += m.Width
		s.Height = fyne.Max(s.Height, m.Height)
		n++
	}
	if n > 1 {
		s.Width += l.gap * float32(n-1)
	}
	return s
}

func (l line) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	need := l.MinSize(objects).Width
	spare := size.Width - need
	spacers := 0
	for _, o := range objects {
		if _, ok := o.(layout.SpacerObject); ok && o.Visible() {
			spacers++
		}
	}
	var x float32
	for _, o := range objects {
		if !o.Visible() {
			continue
		}
		m := o.MinSize()
		if _, ok := o.(layout.SpacerObject); ok && spare > 0 {
			m.Width += spare / float32(spacers)
		}
		o.Resize(m)
		o.Move(fyne.NewPos(x, (size.Height-m.Height)/2))
		x += m.Width + l.gap
	}
}

// Columns puts objects beside each other with a gap in units, sharing the width by weight, each as
// high as the whole.
func Columns(gap float32, weights []float32, objects ...fyne.CanvasObject) *fyne.Container {
	return container.New(columns{gap, weights}, objects...)
}

type columns struct {
	gap     float32
	weights []float32
}

func (l columns) weight(i int) float32 {
	if i < len(l.weights) {
		return l.weights[i]
	}
	return 1
}

func (l columns) MinSize(objects []fyne.CanvasObject) fyne.Size {
	var s fyne.Size
	var total, unit float32 // unit: the width of weight 1 that suits every child
	for i, o := range objects {
		m := o.MinSize()
		total += l.weight(i)
		unit = fyne.Max(unit, m.Width/l.weight(i))
		s.Height = fyne.Max(s.Height, m.Height)
	}
	s.Width = unit*total + l.gap*float32(max(len(objects)-1, 0))
	return s
}

func (l columns) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	var total float32
	for i := range objects {
		total += l.weight(i)
	}
	free := size.Width - l.gap*float32(max(len(objects)-1, 0))
	var x float32
	for i, o := range objects {
		w := free * l.weight(i) / total
		settle(o, w)
		o.Resize(fyne.NewSize(w, size.Height))
		o.Move(fyne.NewPos(x, 0))
		x += w + l.gap
	}
}

// Flow puts objects of one width in units beside each other, as many as fit, then starts a new row:
// tiles, fields.
func Flow(gap, width float32, objects ...fyne.CanvasObject) *fyne.Container {
	return container.New(&flow{gap: gap, width: width}, objects...)
}

type flow struct {
	gap, width float32
	last       float32 // the width it was last laid out in
}

func (l *flow) across(width float32) int {
	return max(int((width+l.gap)/(l.width+l.gap)), 1)
}

// heights gives each row the height of its highest object, at the width that objects get.
func (l *flow) heights(objects []fyne.CanvasObject, across int) (seen []fyne.CanvasObject, h []float32) {
	for _, o := range objects {
		if o.Visible() {
			seen = append(seen, o)
		}
	}
	h = make([]float32, (len(seen)+across-1)/across)
	for i, o := range seen {
		h[i/across] = fyne.Max(h[i/across], o.MinSize().Height)
	}
	return seen, h
}

func (l *flow) MinSize(objects []fyne.CanvasObject) fyne.Size {
	across := max(len(objects), 1)
	if l.last > 0 {
		across = l.across(l.last)
	}
	_, rows := l.heights(objects, across)
	height := l.gap * float32(max(len(rows)-1, 0))
	for _, h := range rows {
		height += h
	}
	return fyne.NewSize(l.width, height)
}

func (l *flow) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	l.last = size.Width
	across := l.across(size.Width)
	for _, o := range objects {
		if o.Visible() {
			settle(o, l.width)
		}
	}
	seen, rows := l.heights(objects, across)
	var y float32
	for i, o := range seen {
		if i > 0 && i%across == 0 {
			y += rows[i/across-1] + l.gap
		}
		o.Resize(fyne.NewSize(l.width, rows[i/across]))
		o.Move(fyne.NewPos(float32(i%across)*(l.width+l.gap), y))
	}
}

// Inset leaves room around an object, in units.
func Inset(top, right, bottom, left float32, o fyne.CanvasObject) *fyne.Container {
	return container.New(inset{top, right, bottom, left}, o)
}

type inset struct{ top, right, bottom, left float32 }

func (l inset) MinSize(objects []fyne.CanvasObject) fyne.Size {
	var s fyne.Size
	for _, o := range objects {
		if o.Visible() {
			s = s.Max(o.MinSize())
		}
	}
	return s.AddWidthHeight(l.left+l.right, l.top+l.bottom)
}

func (l inset) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	for _, o := range objects {
		o.Move(fyne.NewPos(l.left, l.top))
		o.Resize(size.SubtractWidthHeight(l.left+l.right, l.top+l.bottom))
	}
}

// Sized gives an object a least size in units; zero leaves a side as it is.
func Sized(width, height float32, o fyne.CanvasObject) *fyne.Container {
	return container.New(sized{width, height}, o)
}

type sized struct{ width, height float32 }

func (l sized) MinSize(objects []fyne.CanvasObject) fyne.Size {
	var s fyne.Size
	for _, o := range objects {
		s = s.Max(o.MinSize())
	}
	if l.width > 0 {
		s.Width = l.width
	}
	if l.height > 0 {
		s.Height = l.height
	}
	return s
}

func (l sized) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	for _, o := range objects {
		o.Move(fyne.Position{})
		o.Resize(size)
	}
}

// Frame puts a bar above, a bar below and a column to the left of what fills the rest, without
// gaps; nil leaves one out.
func Frame(top, bottom, left, centre fyne.CanvasObject) *fyne.Container {
	c := container.New(&frame{top, bottom, left, centre})
	for _, o := range []fyne.CanvasObject{centre, left, top, bottom} {
		if o != nil {
			c.Add(o)
		}
	}
	return c
}

type frame struct{ top, bottom, left, centre fyne.CanvasObject }

func shown(o fyne.CanvasObject) bool { return o != nil && o.Visible() }

func (l *frame) MinSize([]fyne.CanvasObject) fyne.Size {
	s := l.centre.MinSize()
	if shown(l.left) {
		m := l.left.MinSize()
		s.Width += m.Width
		s.Height = fyne.Max(s.Height, m.Height)
	}
	for _, o := range []fyne.CanvasObject{l.top, l.bottom} {
		if shown(o) {
			m := o.MinSize()
			s.Height += m.Height
			s.Width = fyne.Max(s.Width, m.Width)
		}
	}
	return s
}

func (l *frame) Layout(_ []fyne.CanvasObject, size fyne.Size) {
	var x, y float32
	bottom := size.Height
	if shown(l.top) {
		y = settle(l.top, size.Width)
		l.top.Move(fyne.Position{})
	}
	if shown(l.bottom) {
		bottom -= settle(l.bottom, size.Width)
		l.bottom.Move(fyne.NewPos(0, bottom))
	}
	if shown(l.left) {
		x = l.left.MinSize().Width
		l.left.Move(fyne.NewPos(0, y))
		l.left.Resize(fyne.NewSize(x, bottom-y))
	}
	l.centre.Move(fyne.NewPos(x, y))
	l.centre.Resize(fyne.NewSize(size.Width-x, bottom-y))
}

// Over puts objects over each other, each as large as the whole; the hidden ones ask for no room.
func Over(objects ...fyne.CanvasObject) *fyne.Container { return container.New(over{}, objects...) }

type over struct{}

func (over) MinSize(objects []fyne.CanvasObject) fyne.Size {
	var s fyne.Size
	for _, o := range objects {
		if o.Visible() {
			s = s.Max(o.MinSize())
		}
	}
	return s
}

func (over) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	for _, o := range objects {
		o.Move(fyne.Position{})
		o.Resize(size)
	}
}
