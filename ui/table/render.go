package table

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"

	"velo/ui/look"
)

// CreateRenderer is Fyne's.
func (t *Table) CreateRenderer() fyne.WidgetRenderer {
	if t.natural == nil {
		t.measure()
	}
	r := &renderer{t: t, rule: canvas.NewRectangle(nil), hover: canvas.NewRectangle(nil),
		selected: canvas.NewRectangle(nil), slide: canvas.NewRectangle(nil)}
	for range t.columns {
		r.heads = append(r.heads, canvas.NewText("", nil))
		r.units = append(r.units, canvas.NewText("", nil))
	}
	r.Refresh()
	return r
}

// line is the pooled objects of one row.
type line struct {
	texts, marks []*canvas.Text
	rule         *canvas.Rectangle
}

type renderer struct {
	t                     *Table
	rule, hover, selected *canvas.Rectangle
	slide                 *canvas.Rectangle // where the view is, of columns wider than the table
	heads, units          []*canvas.Text
	pool                  []*line
	objects               []fyne.CanvasObject
}

func (r *renderer) MinSize() fyne.Size {
	return fyne.NewSize(200, float32(r.t.rows+1)*r.t.RowHeight())
}

func (r *renderer) Layout(fyne.Size) { r.arrange() }

func (r *renderer) Refresh() {
	r.arrange()
	canvas.Refresh(r.t)
}

// clip tells whether a cell lies wholly inside the table; where the columns overflow, cells that do
// not are cut or left out.
func (r *renderer) put(c *canvas.Text, text string, x, y, w, h float32, right bool, style fyne.TextStyle, size float32) {
	width := r.t.Size().Width
	if x+w > width {
		w = width - x
		right = false
	}
	if x < -1 || w < 1 || x+w >= width-1 && w < 8 {
		c.Hide()
		return
	}
	c.Show()
	c.Text = look.Fit(text, w, size, style)
	c.TextSize, c.TextStyle = size, style
	c.Alignment = fyne.TextAlignLeading
	if right {
		c.Alignment = fyne.TextAlignTrailing
	}
	th := c.MinSize().Height
	c.Move(fyne.NewPos(x, y+(h-th)/2))
	c.Resize(fyne.NewSize(w, th))
}

func (r *renderer) arrange() {
	t, p := r.t, look.Now()
	size, rowH := t.Size(), t.RowHeight()
	widths, across := t.widths(size.Width), t.extent()
	t.shift = fyne.Min(t.shift, t.overflow())

	xs := make([]float32, len(widths))
	x := look.Step - t.shift
	for c, w := range widths {
		xs[c] = x
		x += w + t.gap()
		col := t.columns[c]
		head, unit := r.heads[c], r.units[c]
		head.Color, unit.Color = p.Muted, p.Muted
		uw := float32(0)
		if col.Unit != "" {
			uw = fyne.MeasureText(col.Unit, look.Small, fyne.TextStyle{}).Width + look.Half
		}
		room := w
		if t.marked[c] && col.Right {
			room -= markWidth
		}
		hw := fyne.Min(fyne.MeasureText(col.Title, look.Small, bold).Width, room-uw)
		at := xs[c]
		if col.Right {
			at += room - hw - uw
		}
		r.put(head, col.Title, at, 0, hw, rowH, false, bold, look.Small)
		r.put(unit, col.Unit, at+hw+look.Half, 0, uw, rowH, false, fyne.TextStyle{}, look.Small)
		if col.Unit == "" {
			unit.Hide()
		}
	}
	r.rule.FillColor = p.Line
	r.rule.Move(fyne.NewPos(0, rowH-1))
	r.rule.Resize(fyne.NewSize(across, 1))

	r.objects = append(r.objects[:0], r.rule, r.hover, r.selected)
	r.hover.Hide()
	if t.hover >= 0 && t.hover < t.rows {
		r.hover.FillColor = p.Surface
		r.hover.Move(fyne.NewPos(0, float32(t.hover+1)*rowH))
		r.hover.Resize(fyne.NewSize(across, rowH))
		r.hover.Show()
	}
	r.selected.Hide()
	if from, to := t.selection(); from < to {
		r.selected.FillColor = p.Selected
		r.selected.CornerRadius = look.Radius / 2
		r.selected.StrokeWidth = 0
		if t.focused {
			r.selected.StrokeColor, r.selected.StrokeWidth = p.Accent, 1
		}
		r.selected.Move(fyne.NewPos(0, float32(from+1)*rowH))
		r.selected.Resize(fyne.NewSize(across, float32(to-from)*rowH))
		r.selected.Show()
	}
	if from, to := t.selection(); t.focused && from >= to { // the head stands for the table: no row is selected
		r.selected.FillColor = color.Transparent
		r.selected.CornerRadius, r.selected.StrokeColor, r.selected.StrokeWidth = look.Radius/2, p.Accent, 1
		r.selected.Move(fyne.Position{})
		r.selected.Resize(fyne.NewSize(across, rowH))
		r.selected.Show()
	}
	for c := range t.columns {
		r.objects = append(r.objects, r.heads[c], r.units[c])
	}
	r.slide.Hide()
	if over := t.overflow(); over > 0 && size.Width > 0 {
		whole := size.Width + over
		r.slide.FillColor, r.slide.CornerRadius = p.Border, 1.5
		r.slide.Move(fyne.NewPos(t.shift/whole*size.Width, rowH-3))
		r.slide.Resize(fyne.NewSize(size.Width/whole*size.Width, 3))
		r.slide.Show()
		r.objects = append(r.objects, r.slide)
	}

	used := 0
	for row := t.first(); row < t.last(); row++ {
		if used == len(r.pool) {
			l := &line{rule: canvas.NewRectangle(nil)}
			for range t.columns {
				l.texts = append(l.texts, canvas.NewText("", nil))
				l.marks = append(l.marks, canvas.NewText("", nil))
			}
			r.pool = append(r.pool, l)
		}
		l := r.pool[used]
		used++
		y := float32(row+1) * rowH
		l.rule.FillColor = p.Line
		l.rule.Move(fyne.NewPos(0, y+rowH-1))
		l.rule.Resize(fyne.NewSize(across, 1))
		r.objects = append(r.objects, l.rule)
		for c := range t.columns {
			cell := t.cell(row, c)
			text, mark := l.texts[c], l.marks[c]
			text.Color, mark.Color = p.Ink(cell.Ink), p.Muted
			w := widths[c]
			if t.marked[c] {
				w -= markWidth
			}
			r.put(text, cell.Text, xs[c], y, w, rowH, t.columns[c].Right, t.style(c), t.size)
			r.objects = append(r.objects, text)
			if t.marked[c] {
				r.put(mark, cell.Mark, xs[c]+w+3, y, markWidth, rowH, false, fyne.TextStyle{}, look.Small)
				if cell.Mark == "" {
					mark.Hide()
				}
				r.objects = append(r.objects, mark)
			}
		}
	}
}

func (r *renderer) Objects() []fyne.CanvasObject { return r.objects }
func (r *renderer) Destroy()                     {}
