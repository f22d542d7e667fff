package look

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
)

// Wrap puts objects of any width beside each other and begins a new row where the next one does not fit: the bar
// of a window that is narrow, or whose text is large. The last object is at the right of its row.
func Wrap(gap float32, objects ...fyne.CanvasObject) *fyne.Container {
	return container.New(&wrap{gap: gap}, objects...)
}

// WrapLeft is Wrap with every row from the left, the last one too.
func WrapLeft(gap float32, objects ...fyne.CanvasObject) *fyne.Container {
	return container.New(&wrap{gap: gap, left: true}, objects...)
}

type wrap struct {
	gap  float32
	left bool    // the last object is not at the right
	last float32 // the width it was last laid out in
}

// rows parts the objects that are seen; the sizes are the least ones.
func (l *wrap) rows(objects []fyne.CanvasObject, width float32) (rows [][]fyne.CanvasObject) {
	var used float32
	for _, o := range objects {
		if !o.Visible() {
			continue
		}
		w := o.MinSize().Width
		if len(rows) == 0 || width > 0 && used+l.gap+w > width {
			rows = append(rows, nil)
			used = -l.gap
		}
		used += l.gap + w
		rows[len(rows)-1] = append(rows[len(rows)-1], o)
	}
	return rows
}

func highest(row []fyne.CanvasObject) (h float32) {
	for _, o := range row {
		h = fyne.Max(h, o.MinSize().Height)
	}
	return h
}

func (l *wrap) MinSize(objects []fyne.CanvasObject) (s fyne.Size) {
	for _, o := range objects {
		if o.Visible() {
			s.Width = fyne.Max(s.Width, o.MinSize().Width)
		}
	}
	for i, row := range l.rows(objects, l.last) {
		if i > 0 {
			s.Height += l.gap
		}
		s.Height += highest(row)
	}
	return s
}

func (l *wrap) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	l.last = size.Width
	rows := l.rows(objects, size.Width)
	var y float32
	for i, row := range rows {
		h, x := highest(row), float32(0)
		for k, o := range row {
			least := o.MinSize()
			if !l.left && i == len(rows)-1 && k == len(row)-1 {
				x = fyne.Max(x, size.Width-least.Width)
			}
			o.Resize(fyne.NewSize(least.Width, h))
			o.Move(fyne.NewPos(x, y))
			x += least.Width + l.gap
		}
		y += h + l.gap
	}
}
