package chatpage

import (
	"sort"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"

	"velo/ui/look"
)

// place is between two letters of the transcript.
type place struct{ turn, part, line, at int }

func (a place) before(b place) bool {
	switch {
	case a.turn != b.turn:
		return a.turn < b.turn
	case a.part != b.part:
		return a.part < b.part
	case a.line != b.line:
		return a.line < b.line
	}
	return a.at < b.at
}

// selected are the ends of what is selected, the upper one first.
func (t *transcript) selected() (from, to place) {
	if t.head.before(t.anchor) {
		return t.head, t.anchor
	}
	return t.anchor, t.head
}

// placeAt is the place nearest to a position; ok is false where there is no text at all.
func (t *transcript) placeAt(pos fyne.Position) (place, bool) {
	best, found := place{}, false
	i := sort.Search(len(t.turns), func(i int) bool { return t.turns[i].y+t.turns[i].h > pos.Y })
	i = min(i, len(t.turns)-1)
	for ; i >= 0; i-- {
		v := t.turns[i]
		for k := len(v.parts) - 1; k >= 0; k-- {
			c := &v.parts[k]
			y := pos.Y - v.y - c.y
			if len(c.lines) == 0 || y < 0 && k > 0 && !(i == 0 && !textBefore(v, k)) {
				continue
			}
			n := sort.Search(len(c.lines), func(j int) bool { return c.lines[j].y+c.lines[j].h > y })
			n = min(n, len(c.lines)-1)
			best, found = place{i, k, n, offset(&c.lines[n], pos.X)}, true
			return best, found
		}
	}
	return best, found
}

func textBefore(v *turnView, part int) bool {
	for i := range part {
		if len(v.parts[i].lines) > 0 {
			return true
		}
	}
	return false
}

// offset is the byte of the line's text that lies nearest to x.
func offset(l *line, x float32) int {
	at, left := 0, l.x
	for i := range l.spans {
		s := &l.spans[i]
		if s.x >= 0 {
			if i > 0 {
				at++ // the tab between cells
			}
			left = l.x + s.x
		}
		w := fyne.MeasureText(s.text, s.style.size, s.style.fyne()).Width
		last := i == len(l.spans)-1 || l.spans[i+1].x >= 0 && x < l.x+l.spans[i+1].x
		if x < left+w || last {
			for k, c := range s.text {
				cw := widthOf(string(c), s.style)
				if x < left+cw/2 {
					return at + k
				}
				left += cw
			}
			return at + len(s.text)
		}
		at += len(s.text)
		left += w
	}
	return at
}

// xOf is where the byte of a line's text lies.
func xOf(l *line, at int) float32 {
	n, left := 0, l.x
	for i := range l.spans {
		s := &l.spans[i]
		if s.x >= 0 {
			if i > 0 {
				n++
			}
			left = l.x + s.x
		}
		if at <= n+len(s.text) {
			return left + fyne.MeasureText(s.text[:max(at-n, 0)], s.style.size, s.style.fyne()).Width
		}
		n += len(s.text)
		left += fyne.MeasureText(s.text, s.style.size, s.style.fyne()).Width
	}
	return left
}

// selection paints what is selected.
func (r *transcriptRenderer) selection(from, to float32, p look.Palette) {
	t := r.t
	if !t.marked {
		return
	}
	a, b := t.selected()
	col := p.Accent
	col.A = 0x48
	index := map[*turnView]int{}
	for i, v := range t.turns {
		index[v] = i
	}
	t.each(from, to, func(v *turnView, k, first, last int) {
		c := &v.parts[k]
		for j := first; j < last; j++ {
			l := &c.lines[j]
			start, end := place{index[v], k, j, 0}, place{index[v], k, j, len(l.text())}
			if end.before(a) || b.before(start) {
				continue
			}
			if start.before(a) {
				start = a
			}
			if b.before(end) {
				end = b
			}
			x0, x1 := xOf(l, start.at), xOf(l, end.at)
			if x1 > x0 {
				r.fill(x0, v.y+c.y+l.y, x1-x0, l.h, col)
			}
		}
	})
}

// Selected is the text that is selected.
func (t *transcript) Selected() string {
	if !t.marked {
		return ""
	}
	a, b := t.selected()
	var out strings.Builder
	for i := a.turn; i <= b.turn && i < len(t.turns); i++ {
		for k := range t.turns[i].parts {
			c := &t.turns[i].parts[k]
			for j := range c.lines {
				l := &c.lines[j]
				text := l.text()
				start, end := place{i, k, j, 0}, place{i, k, j, len(text)}
				if end.before(a) || b.before(start) {
					continue
				}
				lo, hi := 0, len(text)
				if start.before(a) {
					lo = a.at
				}
				ends := b.before(end)
				if ends {
					hi = b.at
				}
				out.WriteString(text[min(lo, hi):hi])
				if !ends && !(b == end) {
					out.WriteString(l.join)
				}
			}
		}
	}
	return out.String()
}

// selectAll selects every line.
func (t *transcript) selectAll() {
	for i := len(t.turns) - 1; i >= 0; i-- {
		for k := len(t.turns[i].parts) - 1; k >= 0; k-- {
			if n := len(t.turns[i].parts[k].lines); n > 0 {
				t.anchor = place{}
				t.head = place{i, k, n - 1, len(t.turns[i].parts[k].lines[n-1].text())}
				t.marked = true
				t.Refresh()
				return
			}
		}
	}
}

// MouseDown begins a selection.
func (t *transcript) MouseDown(e *desktop.MouseEvent) {
	if c := fyne.CurrentApp().Driver().CanvasForObject(t); c != nil {
		c.Focus(t)
	}
	if e.Button != desktop.MouseButtonPrimary {
		return
	}
	if at, ok := t.placeAt(e.Position); ok {
		if e.Modifier&fyne.KeyModifierShift == 0 {
			t.anchor = at
		}
		t.head = at
		t.marked = t.anchor != t.head
		t.Refresh()
	}
}

// MouseUp is Fyne's.
func (t *transcript) MouseUp(*desktop.MouseEvent) {}

// Dragged goes on with a selection.
func (t *transcript) Dragged(e *fyne.DragEvent) {
	if at, ok := t.placeAt(e.Position); ok && at != t.head {
		t.head = at
		t.marked = t.anchor != t.head
		t.Refresh()
	}
}

// DragEnd is Fyne's.
func (t *transcript) DragEnd() {}

// Cursor is that of text.
func (t *transcript) Cursor() desktop.Cursor { return desktop.TextCursor }

// FocusGained is Fyne's.
func (t *transcript) FocusGained() { t.focused = true; t.Refresh() }

// FocusLost is Fyne's.
func (t *transcript) FocusLost() { t.focused = false; t.Refresh() }

// TypedRune passes a letter on: it is for the next message.
func (t *transcript) TypedRune(c rune) {
	if t.OnRune != nil {
		t.OnRune(c)
	}
}

// TypedKey moves what is in view.
func (t *transcript) TypedKey(e *fyne.KeyEvent) {
	switch e.Name {
	case fyne.KeyUp:
		t.OnScroll(-3 * body.height())
	case fyne.KeyDown:
		t.OnScroll(3 * body.height())
	case fyne.KeyPageUp:
		t.OnScroll(-t.view * 0.9)
	case fyne.KeyPageDown, fyne.KeySpace:
		t.OnScroll(t.view * 0.9)
	case fyne.KeyHome:
		t.OnEnds(false)
	case fyne.KeyEnd:
		t.OnEnds(true)
	default:
		t.OnKey(e)
	}
}

// TypedShortcut copies, or selects all.
func (t *transcript) TypedShortcut(s fyne.Shortcut) {
	switch s.(type) {
	case *fyne.ShortcutCopy:
		t.OnCopy(t.Selected())
	case *fyne.ShortcutSelectAll:
		t.selectAll()
	}
}
