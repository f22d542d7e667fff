package chatpage

import "fyne.io/fyne/v2"

// columns gives the list and the panel their widths and the conversation what is left.
type columns struct{}

func (columns) MinSize(o []fyne.CanvasObject) fyne.Size {
	s := fyne.NewSize(listWidth+panelWidth+2, 0)
	for _, c := range o {
		s.Height = fyne.Max(s.Height, c.MinSize().Height)
	}
	s.Width += o[2].MinSize().Width
	return s
}

func (columns) Layout(o []fyne.CanvasObject, size fyne.Size) {
	panel := float32(panelWidth)
	if size.Width > 1500 {
		panel += 80
	}
	x := float32(0)
	for i, w := range []float32{listWidth, 1, size.Width - listWidth - panel - 2, 1, panel} {
		o[i].Move(fyne.NewPos(x, 0))
		o[i].Resize(fyne.NewSize(w, size.Height))
		x += w
	}
}

// margins leaves room at both sides of the conversation, and keeps its lines readable.
type margins struct {
	side, edge, most float32
	resized          func(width float32) // nil: nobody needs to know
}

func (m *margins) MinSize(o []fyne.CanvasObject) fyne.Size {
	return o[0].MinSize().AddWidthHeight(2*m.side, 2*m.edge)
}

func (m *margins) Layout(o []fyne.CanvasObject, size fyne.Size) {
	w := fyne.Min(size.Width-2*m.side, m.most)
	o[0].Move(fyne.NewPos(m.side, m.edge))
	o[0].Resize(fyne.NewSize(w, fyne.Max(size.Height-2*m.edge, 0)))
	if m.resized != nil {
		m.resized(w)
	}
}
