package ui

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/widget"

	"velo/ui/look"
)

// paletteEntry is where the letters are typed; it hands on the keys that choose.
type paletteEntry struct {
	look.Entry
	move  func(by int)
	take  func()
	leave func()
}

func newPaletteEntry() *paletteEntry {
	e := &paletteEntry{}
	e.Wrapping = fyne.TextWrapOff
	e.PlaceHolder = "What do you want to do? A few letters of it will do."
	e.ExtendBaseWidget(e)
	return e
}

// TypedKey chooses, runs and closes; everything else is for the text.
func (e *paletteEntry) TypedKey(k *fyne.KeyEvent) {
	switch k.Name {
	case fyne.KeyDown:
		e.move(1)
	case fyne.KeyUp:
		e.move(-1)
	case fyne.KeyPageDown:
		e.move(choicesInView)
	case fyne.KeyPageUp:
		e.move(-choicesInView)
	case fyne.KeyReturn, fyne.KeyEnter:
		e.take()
	case fyne.KeyEscape:
		e.leave()
	default:
		e.Entry.TypedKey(k)
	}
}

// curtain dims the page below the palette; a press on it closes the palette.
type curtain struct {
	look.Surface
	tapped func()
}

func newCurtain(tapped func()) *curtain {
	c := &curtain{tapped: tapped}
	c.SetTone(look.Dimmed)
	c.ExtendBaseWidget(c)
	return c
}

// Tapped is Fyne's.
func (c *curtain) Tapped(*fyne.PointEvent) { c.tapped() }

// What the list shows at once, and how high a row is, in units.
const (
	choicesInView = 12
	choiceHeight  = 32
)

// choiceList shows what the palette offers. The entry keeps the focus; this only follows.
type choiceList struct {
	widget.BaseWidget
	rows   []choiceRow
	at     int // the chosen one
	top    int // the first in view
	tapped func(int)
}

var (
	_ fyne.Tappable     = (*choiceList)(nil)
	_ fyne.Scrollable   = (*choiceList)(nil)
	_ desktop.Hoverable = (*choiceList)(nil)
)

func newChoiceList(tapped func(int)) *choiceList {
	l := &choiceList{tapped: tapped}
	l.ExtendBaseWidget(l)
	return l
}

func (l *choiceList) set(rows []choiceRow) {
	l.rows, l.at, l.top = rows, 0, 0
	l.Refresh()
}

func (l *choiceList) chosen() (choiceRow, bool) {
	if l.at >= len(l.rows) {
		return choiceRow{}, false
	}
	return l.rows[l.at], true
}

// move chooses another one; the ends are joined for single steps.
func (l *choiceList) move(by int) {
	n := len(l.rows)
	if n == 0 {
		return
	}
	to := l.at + by
	switch {
	case by == 1 && to == n:
		to = 0
	case by == -1 && to < 0:
		to = n - 1
	}
	l.at = max(0, min(n-1, to))
	l.top = max(min(l.top, l.at), l.at-choicesInView+1)
	l.Refresh()
}

func (l *choiceList) rowAt(p fyne.Position) int {
	r := l.top + int(p.Y/choiceHeight)
	if p.Y < 0 || r >= len(l.rows) {
		return -1
	}
	return r
}

// Tapped runs a row.
func (l *choiceList) Tapped(e *fyne.PointEvent) {
	if r := l.rowAt(e.Position); r >= 0 {
		l.at = r
		l.Refresh()
		l.tapped(r)
	}
}

// Scrolled moves the rows under the pointer.
func (l *choiceList) Scrolled(e *fyne.ScrollEvent) {
	by := 1
	if e.Scrolled.DY > 0 {
		by = -1
	}
	l.top = max(0, min(len(l.rows)-choicesInView, l.top+by))
	l.Refresh()
}

// MouseIn is Fyne's.
func (l *choiceList) MouseIn(e *desktop.MouseEvent) {}

// MouseMoved chooses the row under the pointer.
func (l *choiceList) MouseMoved(e *desktop.MouseEvent) {
	if r := l.rowAt(e.Position); r >= 0 && r != l.at {
		l.at = r
		l.Refresh()
	}
}

// MouseOut is Fyne's.
func (l *choiceList) MouseOut() {}

// CreateRenderer is Fyne's.
func (l *choiceList) CreateRenderer() fyne.WidgetRenderer {
	r := &choiceRenderer{l: l, back: canvas.NewRectangle(nil)}
	r.objects = append(r.objects, r.back)
	for range choicesInView {
		row := [3]*canvas.Text{canvas.NewText("", nil), canvas.NewText("", nil), canvas.NewText("", nil)}
		row[2].Alignment = fyne.TextAlignTrailing
		row[2].TextStyle.Monospace = true
		r.texts = append(r.texts, row)
		r.objects = append(r.objects, row[0], row[1], row[2])
	}
	r.Refresh()
	return r
}

type choiceRenderer struct {
	l       *choiceList
	back    *canvas.Rectangle // of the chosen row
	texts   [][3]*canvas.Text // title, menu, keys
	objects []fyne.CanvasObject
}

func (r *choiceRenderer) MinSize() fyne.Size {
	return fyne.NewSize(320, choicesInView*choiceHeight)
}

// The widths of the columns of menu and keys, in units.
const choiceMenu, choiceKeys = 88, 128

func (r *choiceRenderer) Layout(size fyne.Size) { r.update(size) }

func (r *choiceRenderer) update(size fyne.Size) {
	p := look.Now()
	wide := size.Width - 4*look.Gap - choiceMenu - choiceKeys
	r.back.FillColor = p.Selected
	r.back.Resize(fyne.NewSize(size.Width, choiceHeight))
	r.back.Move(fyne.NewPos(0, float32(r.l.at-r.l.top)*choiceHeight))
	r.back.Hidden = len(r.l.rows) == 0 || r.l.at < r.l.top || r.l.at >= r.l.top+choicesInView
	for i, texts := range r.texts {
		var c choiceRow
		if n := r.l.top + i; n < len(r.l.rows) {
			c = r.l.rows[n]
		}
		ink := look.Plain
		if !c.can {
			ink = look.Faint
		}
		cell := func(t *canvas.Text, text string, size float32, ink look.Ink, x, width float32) {
			t.Text, t.TextSize, t.Color = look.Fit(text, width, size, t.TextStyle), size, p.Ink(ink)
			h := t.MinSize().Height
			t.Move(fyne.NewPos(x, float32(i)*choiceHeight+(choiceHeight-h)/2))
			t.Resize(fyne.NewSize(width, h))
		}
		muted := look.Muted
		if !c.can {
			muted = look.Faint
		}
		cell(texts[0], c.title, look.Body, ink, look.Gap, wide)
		cell(texts[1], c.menu, look.Small, muted, 2*look.Gap+wide, choiceMenu)
		cell(texts[2], c.keys, look.Small, muted, 3*look.Gap+wide+choiceMenu, choiceKeys)
	}
}

func (r *choiceRenderer) Refresh() {
	r.update(r.l.Size())
	for _, o := range r.objects {
		o.Refresh()
	}
}

func (r *choiceRenderer) Objects() []fyne.CanvasObject { return r.objects }
func (r *choiceRenderer) Destroy()                     {}
