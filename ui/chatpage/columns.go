package chatpage

import "fyne.io/fyne/v2"

// columns gives the list and the panel their widths and the conversation what is left. Where there is no
// room for both, one of them is left out: the list, unless it is wanted.
type columns struct {
	chats  bool // where one is left out, it is the panel
	narrow bool
	folded func(narrow bool) // it became narrow, or wide again
}

func (c *columns) MinSize(o []fyne.CanvasObject) fyne.Size {
	s := fyne.NewSize(panelWidth+1, 0)
	for _, c := range o {
		s.Height = fyne.Max(s.Height, c.MinSize().Height)
	}
	s.Width += o[2].MinSize().Width
	return s
}

func (c *columns) Layout(o []fyne.CanvasObject, size fyne.Size) {
	list, panel := float32(listWidth), float32(panelWidth)
	if size.Width > 1500 {
		panel += 80
	}
	narrow := size.Width < list+panel+2+o[2].MinSize().Width
	showIf(o[0], !narrow || c.chats)
	showIf(o[1], !narrow || c.chats)
	showIf(o[3], !narrow || !c.chats)
	showIf(o[4], !narrow || !c.chats)
	rest := size.Width
	for i, w := range []float32{list, 1, 0, 1, panel} {
		if o[i].Visible() {
			rest -= w
		}
	}
	x := float32(0)
	for i, w := range []float32{list, 1, rest, 1, panel} {
		if !o[i].Visible() {
			continue
		}
		o[i].Move(fyne.NewPos(x, 0))
		o[i].Resize(fyne.NewSize(w, size.Height))
		x += w
	}
	if narrow != c.narrow {
		c.narrow = narrow
		c.folded(narrow)
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
