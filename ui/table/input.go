package table

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"

	"velo/ui/look"
)

func (t *Table) rowAt(p fyne.Position) int {
	r := int(p.Y/t.RowHeight()) - 1
	if p.Y < t.RowHeight() || r >= t.rows {
		return -1
	}
	return r
}

// Tapped selects a row, or tells of a tap on a head.
func (t *Table) Tapped(e *fyne.PointEvent) {
	t.focus()
	if e.Position.Y < t.RowHeight() {
		x := -t.shift + look.Step - t.gap()/2
		for c, w := range t.widths(t.Size().Width) {
			if e.Position.X >= x && e.Position.X < x+w+t.gap() && t.OnHead != nil {
				t.OnHead(c)
			}
			x += w + t.gap()
		}
		return
	}
	t.selectTo(t.rowAt(e.Position), shiftHeld())
}

// DoubleTapped opens a row.
func (t *Table) DoubleTapped(e *fyne.PointEvent) {
	if r := t.rowAt(e.Position); r >= 0 {
		t.selectTo(r, false)
		if t.OnOpen != nil {
			t.OnOpen(r)
		}
	}
}

// MouseDown selects at once: a tap waits to see whether it becomes a double one.
func (t *Table) MouseDown(e *desktop.MouseEvent) {
	if r := t.rowAt(e.Position); r >= 0 && e.Button == desktop.MouseButtonPrimary {
		t.focus()
		t.selectTo(r, e.Modifier&fyne.KeyModifierShift != 0)
	}
}

// MouseUp is Fyne's.
func (t *Table) MouseUp(*desktop.MouseEvent) {}

// TappedSecondary selects a row: what can be done with it is on buttons.
func (t *Table) TappedSecondary(e *fyne.PointEvent) {
	t.focus()
	if r := t.rowAt(e.Position); r >= 0 {
		t.selectTo(r, false)
	}
}

func (t *Table) focus() {
	if c := fyne.CurrentApp().Driver().CanvasForObject(t); c != nil {
		c.Focus(t)
	}
}

func shiftHeld() bool {
	d, ok := fyne.CurrentApp().Driver().(desktop.Driver)
	return ok && d.CurrentKeyModifiers()&fyne.KeyModifierShift != 0
}

// MouseIn is Fyne's.
func (t *Table) MouseIn(e *desktop.MouseEvent) { t.MouseMoved(e) }

// MouseMoved shows the row under the pointer.
func (t *Table) MouseMoved(e *desktop.MouseEvent) {
	if r := t.rowAt(e.Position); r != t.hover {
		t.hover = r
		t.Refresh()
	}
}

// MouseOut is Fyne's.
func (t *Table) MouseOut() {
	if t.hover != -1 {
		t.hover = -1
		t.Refresh()
	}
}

// FocusGained is Fyne's.
func (t *Table) FocusGained() {
	t.focused = true
	t.Refresh()
	if t.OnShow != nil && t.cursor < 0 {
		t.OnShow(0, 2*t.RowHeight())
	}
}

// FocusLost is Fyne's.
func (t *Table) FocusLost() { t.focused = false; t.Refresh() }

// TypedRune is none of a table's business.
func (t *Table) TypedRune(r rune) { look.PassRune(t, r) }

// TypedKey moves the selection and opens a row.
func (t *Table) TypedKey(e *fyne.KeyEvent) {
	page := max(int(t.viewHeight/t.RowHeight())-2, 1)
	extend := shiftHeld()
	switch e.Name {
	case fyne.KeyDown:
		t.selectTo(t.cursor+1, extend)
	case fyne.KeyUp:
		t.selectTo(max(t.cursor-1, 0), extend)
	case fyne.KeyPageDown:
		t.selectTo(t.cursor+page, extend)
	case fyne.KeyPageUp:
		t.selectTo(max(t.cursor-page, 0), extend)
	case fyne.KeyHome:
		t.selectTo(0, extend)
	case fyne.KeyEnd:
		t.selectTo(t.rows-1, extend)
	case fyne.KeyRight:
		t.shiftBy(64)
	case fyne.KeyLeft:
		t.shiftBy(-64)
	case fyne.KeyEscape:
		if t.cursor < 0 {
			look.PassKey(t, e)
		}
		t.selectTo(-1, false)
	case fyne.KeyReturn, fyne.KeyEnter, fyne.KeySpace:
		if t.cursor >= 0 && t.OnOpen != nil {
			t.OnOpen(t.cursor)
		}
	default:
		if t.OnKey != nil {
			t.OnKey(e)
		} else {
			look.PassKey(t, e)
		}
	}
}

// TypedShortcut copies and selects all.
func (t *Table) TypedShortcut(s fyne.Shortcut) {
	switch s := s.(type) {
	case *fyne.ShortcutCopy:
		s.Clipboard.SetContent(t.TSV())
	case *fyne.ShortcutSelectAll:
		if t.rows > 0 {
			t.anchor, t.cursor = 0, t.rows-1
			t.Refresh()
		}
	}
}

// Scrolled moves wide columns sideways and leaves the rest to the page.
func (t *Table) Scrolled(e *fyne.ScrollEvent) {
	if e.Scrolled.DX != 0 && t.overflow() > 0 {
		t.shiftBy(-e.Scrolled.DX)
	}
	if e.Scrolled.DY != 0 && t.OnScroll != nil {
		t.OnScroll(e)
	}
}
