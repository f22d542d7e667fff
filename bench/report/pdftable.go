package report

import (
	"image/color"
	"math"
	"strings"

	"velo/bench/measure"
)

// grid is a table laid out for a page: the size of its type and the width of each column.
type grid struct {
	size   float64
	line   float64 // height of a line of text
	widths []float64
	pad    float64 // between columns
}

const leastWords = 16.0 // mm that a column of words keeps when a table is squeezed

// table draws a table over as many pages as it needs, its head on each.
func (d *document) table(t *Table) {
	if len(t.Rows) == 0 || len(t.Columns) == 0 {
		return
	}
	rows := t.Rows
	note := t.Note
	if len(rows) > mostRows {
		rows = rows[:mostRows]
		note = joinNotes(note, "the first "+whole(mostRows)+" of "+plural(len(t.Rows), "row")+" are shown; the CSV export has all of them")
	}
	g := d.layout(t, rows)
	headLines := d.headLines(t, g)
	headHeight := float64(headLines)*g.line + 1.6
	titleHeight := 0.0
	if t.Title != "" {
		titleHeight = 6
	}
	d.room(titleHeight + headHeight + 2*g.line + 4)
	if t.Title != "" {
		d.text(t.Title, marginSide, d.y+3.4, "text", "B", sizeText, d.p.Text)
		d.y += titleHeight
	}
	d.head(t, g, headLines)
	for _, row := range rows {
		lines, height := d.rowLines(t, g, row)
		if d.y+height > pageHeight-marginBottom {
			d.page()
			d.head(t, g, headLines)
		}
		d.row(t, g, row, lines)
		d.y += height
		d.pdf.SetDrawColor(int(d.p.Grid.R), int(d.p.Grid.G), int(d.p.Grid.B))
		d.pdf.SetLineWidth(0.1)
		d.pdf.Line(marginSide, d.y-0.3, marginSide+g.total(), d.y-0.3)
	}
	d.y += 1
	for _, l := range d.wrap(note, "text", "", 7, bodyWidth, 3) {
		d.room(3.2)
		d.text(l, marginSide, d.y+2.6, "text", "", 7, d.p.Muted)
		d.y += 3.2
	}
	d.y += 4
}

func (g grid) total() float64 {
	sum := -g.pad
	for _, w := range g.widths {
		sum += w + g.pad
	}
	return sum
}

// layout chooses type and widths. Rather than break words over lines the type gets a little smaller;
// where that does not help, columns of words give way down to what can still be read, in the largest
// type in which the page then holds the table.
func (d *document) layout(t *Table, rows [][]Cell) grid {
	for _, size := range []float64{7.5, 7, 6.5} {
		if g, free := d.natural(t, rows, size); free >= 0 {
			g.stretch(t, free)
			return g
		}
	}
	var g grid
	for _, size := range []float64{7.5, 7, 6.5, 6, 5.5, 5} {
		var free float64
		g, free = d.natural(t, rows, size)
		least := leastWords * size / 7.5
		give := 0.0 // what the columns of words can give
		for i, c := range t.Columns {
			if !c.Right && !c.Whole {
				give += math.Max(0, g.widths[i]-least)
			}
		}
		switch {
		case free >= 0:
			g.stretch(t, free)
			return g
		case give >= -free:
			for i, c := range t.Columns {
				if !c.Right && !c.Whole && g.widths[i] > least {
					g.widths[i] += free * (g.widths[i] - least) / give
				}
			}
			return g
		}
	}
	// Wider than a page even in the smallest type: everything gives way alike.
	pads := g.pad * float64(len(t.Columns)-1)
	for i, k := 0, (bodyWidth-pads)/(g.total()-pads); i < len(g.widths); i++ {
		g.widths[i] *= k
	}
	return g
}

// natural is a table in one size of type, each column as wide as its widest cell, and the width that
// is then free on the page.
func (d *document) natural(t *Table, rows [][]Cell, size float64) (g grid, free float64) {
	g = grid{size: size, line: size * mmPerPoint * 1.3, pad: size * 0.28, widths: make([]float64, len(t.Columns))}
	for i, c := range t.Columns {
		g.widths[i] = d.headWidth(c, size)
		for _, row := range rows {
			if i < len(row) {
				g.widths[i] = math.Max(g.widths[i], d.cellWidth(t, i, row[i], size))
			}
		}
	}
	return g, bodyWidth - g.total()
}

// stretch spreads a table of numbers over the page, so that tables begin and end alike; a table of
// words keeps its widths.
func (g *grid) stretch(t *Table, free float64) {
	n := 0
	for _, c := range t.Columns {
		if c.Right {
			n++
		}
	}
	if n < 3 {
		return
	}
	share := math.Min(free/float64(n), 9)
	for i, c := range t.Columns {
		if c.Right {
			g.widths[i] += share
		}
	}
}

// family is the font of a column's cells: numbers stand in the monospace one.
func (c Column) family() string {
	if c.Right {
		return "mono"
	}
	return "text"
}

func (d *document) cellWidth(t *Table, i int, c Cell, size float64) float64 {
	w := d.width(c.Text, cellFamily(t.Columns[i], c), "", size)
	if c.Mark != "" {
		w += markGap + d.width(c.Mark, "text", "", size)
	}
	return w + 0.05
}

// cellFamily: a grey "max of 7" is words, also in a column of numbers.
func cellFamily(col Column, c Cell) string {
	if c.Grey {
		return "text"
	}
	return col.family()
}

const markGap = 0.6

// headWidth is the width of the widest word of a column's head, which may break between words.
func (d *document) headWidth(c Column, size float64) float64 {
	w := d.width(c.Unit, "text", "", size)
	for _, word := range strings.Fields(c.Title) {
		w = math.Max(w, d.width(word, "text", "B", size))
	}
	return w + 0.05
}

func (d *document) headLines(t *Table, g grid) int {
	most := 1
	for i, c := range t.Columns {
		n := len(d.wrap(c.Title, "text", "B", g.size, g.widths[i]+0.1, 4))
		if c.Unit != "" {
			n++
		}
		most = max(most, n)
	}
	return most
}

// head draws the column heads, their last lines aligned, and a line below.
func (d *document) head(t *Table, g grid, lines int) {
	x := marginSide
	for i, c := range t.Columns {
		head := d.wrap(c.Title, "text", "B", g.size, g.widths[i]+0.1, 4)
		n := len(head)
		if c.Unit != "" {
			n++
		}
		y := d.y + float64(lines-n)*g.line + g.line*0.75
		for _, l := range head {
			d.aligned(l, x, y, g.widths[i], c.Right, "text", "B", g.size, d.p.Muted)
			y += g.line
		}
		if c.Unit != "" {
			d.aligned(c.Unit, x, y, g.widths[i], c.Right, "text", "", g.size, d.p.Muted)
		}
		x += g.widths[i] + g.pad
	}
	d.y += float64(lines)*g.line + 0.6
	d.pdf.SetDrawColor(int(d.p.Muted.R), int(d.p.Muted.G), int(d.p.Muted.B))
	d.pdf.SetLineWidth(0.2)
	d.pdf.Line(marginSide, d.y, marginSide+g.total(), d.y)
	d.y += 1
}

func (d *document) aligned(s string, x, y, width float64, right bool, family, style string, size float64, c color.RGBA) {
	if right {
		x += width - d.width(s, family, style, size)
	}
	d.text(s, x, y, family, style, size, c)
}

// rowLines breaks the words of a row into lines and says how high it is.
func (d *document) rowLines(t *Table, g grid, row []Cell) (lines [][]string, height float64) {
	most := 1
	lines = make([][]string, len(t.Columns))
	for i := range t.Columns {
		if i >= len(row) {
			continue
		}
		c := row[i]
		mark := 0.0
		if c.Mark != "" {
			mark = markGap + d.width(c.Mark, "text", "", g.size)
		}
		family := cellFamily(t.Columns[i], c)
		if t.Columns[i].Right {
			lines[i] = []string{d.fit(c.Text, family, "", g.size, g.widths[i]-mark+0.1)}
		} else {
			lines[i] = d.wrap(c.Text, family, "", g.size, g.widths[i]-mark+0.1, 8)
		}
		most = max(most, len(lines[i]))
	}
	return lines, float64(most)*g.line + 1
}

func (d *document) row(t *Table, g grid, row []Cell, lines [][]string) {
	x := marginSide
	for i, col := range t.Columns {
		if i < len(row) {
			c := row[i]
			ink := d.ink(c.Level)
			if c.Grey || c.Text == Dash {
				ink = d.p.Muted
			}
			mark := 0.0
			if c.Mark != "" {
				mark = markGap + d.width(c.Mark, "text", "", g.size)
			}
			style := ""
			if c.Level != "" && c.Level != measure.Unknown {
				style = "B"
			}
			if style == "B" && col.Right {
				style = "" // bold digits are wider than the column was made for
			}
			for n, l := range lines[i] {
				d.aligned(l, x, d.y+g.line*0.78+float64(n)*g.line, g.widths[i]-mark, col.Right, cellFamily(col, c), style, g.size, ink)
			}
			if c.Mark != "" {
				at := x + g.widths[i] - mark + markGap
				if !col.Right {
					at = x + d.width(c.Text, "text", style, g.size) + markGap
				}
				d.text(c.Mark, at, d.y+g.line*0.78, "text", "", g.size, d.p.Muted)
			}
		}
		x += g.widths[i] + g.pad
	}
}
