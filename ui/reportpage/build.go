package reportpage

import (
	"strconv"
	"strings"

	"fyne.io/fyne/v2"

	"velo/bench/measure"
	"velo/bench/report"
	"velo/ui/look"
	"velo/ui/table"
)

// build makes the widgets of a report.
func (g *Page) build(r *report.Report) {
	g.body.Objects, g.index.Objects = nil, nil
	g.sections, g.indexItems, g.tables, g.charts = nil, nil, nil, nil

	g.add("At a glance", g.glance(r)...)
	for i := range r.Sections {
		g.section(r, &r.Sections[i])
		if i == 0 {
			g.add("What was measured", facts(r))
		}
	}
	g.body.Refresh()
	g.index.Refresh()
}

// add appends a section and its entry in the index.
func (g *Page) add(title string, parts ...fyne.CanvasObject) {
	n := len(g.sections)
	objects := append([]fyne.CanvasObject{look.Rows(look.Step, look.NewText(title).Sized(look.Head).Bold(), look.Rule())}, parts...)
	box := look.Rows(look.Gap, objects...)
	g.sections = append(g.sections, box)
	for i := range g.tables { // tables of this section learn where it lies
		if len(g.tables[i].in) > 0 && g.tables[i].in[len(g.tables[i].in)-1] == nil {
			g.tables[i].in[len(g.tables[i].in)-1] = box
		}
	}
	item := look.NewItem(title, "", func() {
		g.scroll.To(g.sections[n].Position().Y)
		g.mark(n)
	})
	g.indexItems = append(g.indexItems, item)
	g.index.Add(item)
	g.body.Add(box)
}

func (g *Page) glance(r *report.Report) []fyne.CanvasObject {
	var parts []fyne.CanvasObject
	if len(r.Glance) > 0 {
		hero := tile(look.NewTile(r.Glance[0].Label).Hero(), r.Glance[0])
		parts = append(parts, look.Frame(nil, nil, look.Inset(0, look.Gap, 0, 0, hero), tiles(r.Glance[1:])))
	}
	if len(r.Findings) > 0 {
		list := look.Rows(look.Half)
		for _, f := range r.Findings {
			list.Add(look.Frame(nil, nil, look.Sized(look.Gap, 0, look.Rows(0, look.NewText("–").In(look.Muted))), look.NewParagraph(f.Text)))
		}
		parts = append(parts, list)
	}
	return parts
}

func facts(r *report.Report) fyne.CanvasObject {
	box := look.Flow(look.Gap, factWidth)
	for _, f := range r.Facts {
		box.Add(look.Rows(0, look.NewText(f.Label).Sized(look.Small).In(look.Muted), look.NewParagraph(f.Value).AtMost(3)))
	}
	return box
}

// Widths, in units: the notes of a tile are longer than those of a live one.
const (
	tileWidth = 176
	factWidth = 288
)

func tiles(list []report.Tile) fyne.CanvasObject {
	box := look.Flow(look.Gap, tileWidth)
	for _, t := range list {
		box.Add(tile(look.NewTile(t.Label).Wide(tileWidth).Notes(2), t))
	}
	return box
}

func tile(t *look.Tile, r report.Tile) *look.Tile {
	t.Set(r.Value, r.Unit, r.Mark, r.Note, look.Plain)
	return t
}

func (g *Page) section(r *report.Report, s *report.Section) {
	var parts []fyne.CanvasObject
	for _, text := range strings.Split(s.Text, "\n\n") {
		if text = strings.TrimSpace(text); text != "" {
			parts = append(parts, look.NewParagraph(text).In(look.Muted))
		}
	}
	if len(s.Tiles) > 0 {
		parts = append(parts, tiles(s.Tiles))
	}
	for _, c := range s.Charts {
		parts = append(parts, g.chart(c))
	}
	for i := range s.Tables {
		if s.Tables[i].ID == "trust" {
			parts = append(parts, g.trust(r, &s.Tables[i]))
			continue
		}
		parts = append(parts, g.table(&s.Tables[i]))
	}
	g.add(s.Title, parts...)
}

func (g *Page) chart(c report.NamedChart) fyne.CanvasObject {
	v := newChartView(c.Chart, g.Thread)
	g.charts = append(g.charts, v)
	box := look.Rows(look.Half, v)
	if c.Caption != "" {
		box.Add(look.NewParagraph(c.Caption).Sized(look.Small).In(look.Muted))
	}
	return box
}

// trust shows the lines of the trust panel as a table, and below it what the ones mean that are not
// green: long sentences, which a cell would cut.
func (g *Page) trust(r *report.Report, t *report.Table) fyne.CanvasObject {
	narrow := *t
	narrow.Columns = nil
	keep := []int{}
	for i, c := range t.Columns {
		if c.Title != "What it means" {
			keep = append(keep, i)
			narrow.Columns = append(narrow.Columns, c)
		}
	}
	narrow.Rows = make([][]report.Cell, len(t.Rows))
	for i, row := range t.Rows {
		for _, c := range keep {
			narrow.Rows[i] = append(narrow.Rows[i], row[c])
		}
	}
	box := look.Rows(look.Gap, g.table(&narrow))
	g.tables[len(g.tables)-1].in = append([]fyne.CanvasObject{box.Objects[0]}, append([]fyne.CanvasObject{box}, nil)...)
	for _, c := range r.Run.Trust {
		if c.Level == measure.Green || c.Detail == "" {
			continue
		}
		lamp := look.NewLamp(72)
		lamp.Set(tone(c.Level), string(c.Level))
		box.Add(look.Rows(look.Half, look.Line(look.Step, lamp.Container, look.NewText(c.Name).Bold()),
			look.Inset(0, 0, 0, look.Gap, look.NewParagraph(c.Detail).In(look.Muted))))
	}
	return box
}

func tone(l measure.Level) look.Tone {
	switch l {
	case measure.Green:
		return look.OnGreen
	case measure.Amber:
		return look.OnAmber
	case measure.Red:
		return look.OnRed
	}
	return look.OnFaint
}

func ink(l measure.Level) look.Ink {
	switch l {
	case measure.Green:
		return look.Green
	case measure.Amber:
		return look.Amber
	case measure.Red:
		return look.Red
	case measure.Unknown:
		return look.Muted
	}
	return look.Plain
}

// table shows a table of the report; the row that is selected is written out below it where a cell
// does not show all of its text.
func (g *Page) table(r *report.Table) fyne.CanvasObject {
	columns := make([]table.Column, len(r.Columns))
	for i, c := range r.Columns {
		columns[i] = table.Column{Title: c.Title, Unit: c.Unit, Right: c.Right, Stretch: !c.Right, CopyUnit: stored(c.Unit)}
	}
	t := table.New(look.Small, columns...)
	rows := r.Rows
	t.SetRows(len(rows), func(row, col int) table.Cell {
		c := rows[row][col]
		out := table.Cell{Text: c.Text, Mark: c.Mark, Ink: ink(c.Level)}
		if c.Grey || c.Text == report.Dash {
			out.Ink = look.Faint
		}
		if c.Raw.Ok() {
			out.Copy = strconv.FormatFloat(float64(c.Raw), 'g', -1, 64)
		}
		return out
	})
	whole := look.NewParagraph("").Sized(look.Small)
	whole.Hide()
	t.OnSelect = func(row int) {
		var parts []string
		if row >= 0 {
			for _, c := range t.Cut(row) {
				parts = append(parts, columns[c].Title+": "+rows[row][c].Text)
			}
		}
		whole.Set(strings.Join(parts, "\n"))
		if was := whole.Visible(); len(parts) > 0 {
			whole.Show()
		} else if was {
			whole.Hide()
		}
		g.scroll.Settle()
	}
	box := look.Rows(look.Half)
	if r.Title != "" {
		box.Add(look.NewText(r.Title).Bold())
	}
	box.Add(t)
	box.Add(whole)
	if r.Note != "" {
		box.Add(look.NewParagraph(r.Note).Sized(look.Small).In(look.Muted))
	}
	p := placed{table: t, in: []fyne.CanvasObject{box, nil}}
	at := len(g.tables)
	g.tables = append(g.tables, p)
	t.OnShow = func(y, h float32) { g.scroll.Reveal(g.tables[at].y()+look.Gap+y, h) }
	t.OnScroll = g.scroll.Scrolled
	return box
}

// stored is the unit in which the numbers of a column are kept, and copied.
func stored(unit string) string {
	switch unit {
	case "ms", "µs":
		return string(measure.Seconds)
	case "%":
		return string(measure.Fraction)
	}
	return ""
}
