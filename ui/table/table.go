// Package table is a table of text and numbers: it makes objects only for the rows in view, copies
// as tab-separated text at full precision, and is used with keys or pointer.
//
// Unlike Fyne's it does not scroll by itself: it is as high as all of its rows and lies in the
// scroller of its page, which tells it with SetView what is in view. A page with many tables so has
// one scroll bar, and the wheel never gets caught.
package table

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/widget"

	"velo/ui/look"
)

// Column is the head of a column.
type Column struct {
	Title, Unit string
	CopyUnit    string  // of what is copied, where that is in another unit than what is shown
	Right       bool    // numbers
	Stretch     bool    // gives way when the width is short
	Least       float32 // units; no narrower, whatever the cells hold
}

// Cell is what one cell shows.
type Cell struct {
	Text string
	Mark string // source, behind the number
	Copy string // what is copied: full precision; empty = Text
	Ink  look.Ink
}

// Table shows rows of cells.
type Table struct {
	widget.BaseWidget

	columns []Column
	rows    int
	cell    func(row, col int) Cell
	size    float32 // of text

	natural []float32 // width of each column that suits its cells, in units
	marked  []bool    // the column keeps room for marks

	viewTop, viewHeight float32 // of the table's own area that is in view
	shift               float32 // scrolled to the left, where the columns are wider than the table
	cursor, anchor      int     // selected rows, from one to the other; -1 = none
	hover               int
	focused             bool

	OnSelect func(row int)              // -1: nothing is selected any more
	OnOpen   func(row int)              // double tap, enter
	OnHead   func(col int)              // tap on the head of a column
	OnScroll func(ev *fyne.ScrollEvent) // a wheel that is not for this table
	OnShow   func(y, height float32)    // please have this part of the table in view
	OnKey    func(*fyne.KeyEvent)       // a key that is not for this table
}

var (
	_ fyne.Focusable         = (*Table)(nil)
	_ fyne.Tappable          = (*Table)(nil)
	_ fyne.DoubleTappable    = (*Table)(nil)
	_ fyne.Shortcutable      = (*Table)(nil)
	_ fyne.Scrollable        = (*Table)(nil)
	_ desktop.Hoverable      = (*Table)(nil)
	_ desktop.Mouseable      = (*Table)(nil)
	_ fyne.SecondaryTappable = (*Table)(nil)
)

// New returns a table without rows, in a text size of package look.
func New(size float32, columns ...Column) *Table {
	t := &Table{columns: columns, size: size, cursor: -1, anchor: -1, hover: -1, viewHeight: 1200}
	t.ExtendBaseWidget(t)
	return t
}

// SetRows changes what is shown: n rows whose cells the function gives. It is called on the UI
// thread for the cells in view and must answer from memory.
func (t *Table) SetRows(n int, cell func(row, col int) Cell) {
	t.rows, t.cell = n, cell
	if t.cursor >= n || t.anchor >= n {
		t.cursor, t.anchor = -1, -1
		if t.OnSelect != nil {
			t.OnSelect(-1)
		}
	}
	t.measure()
	t.Refresh()
}

// SetHead changes the title of a column: to show by what the rows are sorted.
func (t *Table) SetHead(col int, title string) {
	if t.columns[col].Title != title {
		t.columns[col].Title = title
		t.measure()
		t.Refresh()
	}
}

// Rows is the number of rows.
func (t *Table) Rows() int { return t.rows }

// Cut tells which columns of a row do not show their whole text.
func (t *Table) Cut(row int) []int {
	var out []int
	for c, w := range t.widths(t.Size().Width) {
		if t.marked[c] {
			w -= markWidth
		}
		if text := t.cell(row, c).Text; look.Fit(text, w, t.size, t.style(c)) != text {
			out = append(out, c)
		}
	}
	return out
}

// Columns are the heads.
func (t *Table) Columns() []Column { return t.columns }

// At is the cell of a row and a column.
func (t *Table) At(row, col int) Cell { return t.cell(row, col) }

// SetView says which part of the table is in view, in units from its top.
func (t *Table) SetView(top, height float32) {
	if top == t.viewTop && height == t.viewHeight {
		return
	}
	before := t.first()
	t.viewTop, t.viewHeight = top, height
	if t.first() != before || height > 0 {
		t.Refresh()
	}
}

// RowHeight is that of a row, in units.
func (t *Table) RowHeight() float32 {
	if t.size <= look.Small {
		return 24
	}
	return 28
}

// gap is the room between two columns, in units.
func (t *Table) gap() float32 {
	if t.size <= look.Small {
		return 12
	}
	return look.Gap
}

func (t *Table) first() int {
	return max(int((t.viewTop-t.RowHeight())/t.RowHeight()), 0)
}

func (t *Table) last() int { // one behind
	return min(int((t.viewTop+t.viewHeight)/t.RowHeight())+1, t.rows)
}

// Selected is the selected row, or -1; of several, the one that was selected last.
func (t *Table) Selected() int { return t.cursor }

// Select selects a row; -1 selects none.
func (t *Table) Select(row int) { t.selectTo(row, false) }

func (t *Table) selectTo(row int, extend bool) {
	if row >= t.rows {
		row = t.rows - 1
	}
	if row < 0 {
		row = -1
	}
	if !extend || t.anchor < 0 {
		t.anchor = row
	}
	changed := t.cursor != row
	t.cursor = row
	t.Refresh()
	if row >= 0 && t.OnShow != nil {
		t.OnShow(float32(row+1)*t.RowHeight()-t.RowHeight(), 2*t.RowHeight())
	}
	if changed && t.OnSelect != nil {
		t.OnSelect(row)
	}
}

// selection returns the first and one behind the last selected row.
func (t *Table) selection() (from, to int) {
	if t.cursor < 0 {
		return 0, 0
	}
	return min(t.cursor, t.anchor), max(t.cursor, t.anchor) + 1
}

// TSV is the selected rows, or all of them where none is selected, with their heads, as
// tab-separated text at full precision.
func (t *Table) TSV() string {
	from, to := t.selection()
	if from == to {
		from, to = 0, t.rows
	}
	clean := strings.NewReplacer("\t", " ", "\n", " ", "\r", " ")
	var b strings.Builder
	for i, c := range t.columns {
		if i > 0 {
			b.WriteByte('\t')
		}
		b.WriteString(clean.Replace(c.Title))
		unit := c.Unit
		if c.CopyUnit != "" {
			unit = c.CopyUnit
		}
		if unit != "" {
			b.WriteString(" (" + clean.Replace(unit) + ")")
		}
	}
	b.WriteByte('\n')
	for r := from; r < to; r++ {
		for i := range t.columns {
			if i > 0 {
				b.WriteByte('\t')
			}
			c := t.cell(r, i)
			if c.Copy == "" {
				c.Copy = c.Text
			}
			b.WriteString(clean.Replace(c.Copy))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// measure finds the width of each column from its head and its cells: of long tables from the first
// and the last hundred rows.
func (t *Table) measure() {
	t.natural = make([]float32, len(t.columns))
	t.marked = make([]bool, len(t.columns))
	const sample = 100
	for c, col := range t.columns {
		w := fyne.MeasureText(col.Title, look.Small, bold).Width
		if col.Unit != "" {
			w += fyne.MeasureText(col.Unit, look.Small, fyne.TextStyle{}).Width + look.Half
		}
		mark := false
		for r := 0; r < t.rows; r++ {
			if r == sample && t.rows > 2*sample {
				r = t.rows - sample
			}
			cell := t.cell(r, c)
			text := cell.Text
			if len(text) > 120 {
				text = text[:120]
			}
			w = fyne.Max(w, fyne.MeasureText(text, t.size, t.style(c)).Width)
			mark = mark || cell.Mark != ""
		}
		if mark {
			w += markWidth
		}
		t.marked[c] = mark
		t.natural[c] = fyne.Max(fyne.Max(w, 16), col.Least)
	}
}

const markWidth = 14

var bold = fyne.TextStyle{Bold: true}

func (t *Table) style(col int) fyne.TextStyle { return fyne.TextStyle{Monospace: t.columns[col].Right} }

// leastStretch is the width below which no column gives way.
const leastStretch = 96

// widths shares the width out to the columns: stretching ones give way, down to their least width
// or leastStretch. None gets more than it needs: a number far from its name is hard to read.
func (t *Table) widths(width float32) []float32 {
	w := append([]float32(nil), t.natural...)
	total, stretch := float32(0), 0
	for c := range w {
		total += w[c] + t.gap()
		if t.columns[c].Stretch {
			stretch++
		}
	}
	// What some cannot give, those that have more do.
	for lack := total - width; lack > 0.5 && stretch > 0; {
		share, gave := lack/float32(stretch), float32(0)
		stretch = 0
		for c := range w {
			if !t.columns[c].Stretch {
				continue
			}
			least := fyne.Min(t.natural[c], fyne.Max(t.columns[c].Least, leastStretch))
			next := fyne.Max(w[c]-share, least)
			gave += w[c] - next
			if w[c] = next; next > least {
				stretch++
			}
		}
		lack -= gave
	}
	return w
}

// extent is the width of all columns, or that of the table where it is less.
func (t *Table) extent() float32 {
	total := float32(look.Step)
	for _, w := range t.widths(t.Size().Width) {
		total += w + t.gap()
	}
	return fyne.Min(total, t.Size().Width)
}

// overflow is by how much the columns are wider than the table.
func (t *Table) overflow() float32 {
	var total float32
	for _, w := range t.widths(t.Size().Width) {
		total += w + t.gap()
	}
	return fyne.Max(0, total-t.Size().Width)
}

func (t *Table) shiftBy(dx float32) {
	t.shift = fyne.Max(0, fyne.Min(t.overflow(), t.shift+dx))
	t.Refresh()
}
