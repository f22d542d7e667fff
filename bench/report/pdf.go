package report

import (
	"fmt"
	"image/color"
	"io"
	"strings"
	"time"

	"codeberg.org/go-pdf/fpdf"

	"velo/bench/measure"
	"velo/bench/report/chart"
)

// The page: A4 upright in millimetres, and the sizes of type in points.
const (
	pageWidth, pageHeight = 210.0, 297.0
	marginSide            = 16.0
	marginTop             = 18.0
	marginBottom          = 20.0
	bodyWidth             = pageWidth - 2*marginSide
	gutter                = 4.0
	columnWidth           = (bodyWidth - 3*gutter) / 4

	sizeLabel = 8.0
	sizeText  = 9.5
	sizeHead  = 13.0
	sizeTitle = 18.0
	sizeHero  = 40.0

	mmPerPoint = 25.4 / 72
)

// mostRows is how many rows of one table a PDF shows: a run of 10,000 turns would be hundreds of
// pages that nobody reads. The CSV has them all.
const mostRows = 200

// green is the colour of a good verdict on paper; contrast to white 6.2.
var green = color.RGBA{0x00, 0x70, 0x4f, 0xff}

// writePDF writes the report on A4 pages: vector charts, real text, embedded fonts, a bookmark a
// section. The bytes depend on the session only: the dates in the file are the session's.
func writePDF(w io.Writer, r *Report) error {
	d := newDocument(r)
	d.cover(r)
	for i := range r.Sections {
		if s := &r.Sections[i]; s.ID != "timeline" { // the cover shows it
			d.section(s)
		}
	}
	d.footers(r)
	if d.err != nil {
		return d.err
	}
	return d.pdf.Output(w)
}

// document is a PDF under construction. y is where the next thing goes.
type document struct {
	pdf *fpdf.Fpdf
	p   chart.Palette
	y   float64
	err error
}

func newDocument(r *Report) *document {
	d := &document{pdf: fpdf.New("P", "mm", "A4", ""), p: chart.Light}
	d.pdf.SetCatalogSort(true)
	at := r.Session.Header.Anchor.UTC()
	if at.Year() < 1 || at.Year() > 9999 || at.IsZero() {
		at = time.Unix(0, 0).UTC()
	}
	d.pdf.SetCreationDate(at)
	d.pdf.SetModificationDate(at)
	d.pdf.SetTitle(chart.Printable(r.Title), true)
	d.pdf.SetSubject(chart.Printable(r.Subtitle), true)
	d.pdf.SetCreator(chart.Printable(strings.TrimSpace("Velo "+r.Version)), true)
	d.pdf.SetLang("en")
	d.pdf.SetAutoPageBreak(false, 0)
	d.pdf.SetMargins(marginSide, marginTop, marginSide)
	d.pdf.SetCellMargin(0)
	chart.RegisterFonts(d.pdf)
	d.page()
	return d
}

func (d *document) page() {
	d.pdf.AddPage()
	d.y = marginTop
}

// room makes sure that h millimetres fit on the page, by a new page if need be.
func (d *document) room(h float64) {
	if d.y+h > pageHeight-marginBottom {
		d.page()
	}
}

// cover is what the first page begins with: title, numbers, timeline, findings, facts.
func (d *document) cover(r *Report) {
	d.pdf.Bookmark(chart.Printable("At a glance"), 0, d.y)
	for _, l := range d.wrap(r.Title, "text", "B", sizeTitle, bodyWidth, 2) {
		d.text(l, marginSide, d.y+6, "text", "B", sizeTitle, d.p.Text)
		d.y += 8
	}
	if r.Subtitle != "" {
		for _, l := range d.wrap(r.Subtitle, "text", "", sizeText, bodyWidth, 2) {
			d.text(l, marginSide, d.y+3.4, "text", "", sizeText, d.p.Muted)
			d.y += 4.8
		}
	}
	ink := d.p.Muted
	switch {
	case strings.HasPrefix(r.Status, "failed"):
		ink = d.p.Red
	case r.Status != "finished":
		ink = d.p.Amber
	}
	for _, l := range d.wrap(sentence(r.Status), "text", "", sizeText, bodyWidth, 3) {
		d.text(l, marginSide, d.y+3.4, "text", "", sizeText, ink)
		d.y += 4.8
	}
	d.y += 2
	d.rule()
	d.y += 5
	d.glance(r.Glance)
	if s := r.Section("timeline"); s != nil {
		d.pdf.Bookmark(s.Title, 0, d.y)
		d.paragraphs(s.Text)
		d.charts(s.Charts)
	}
	if len(r.Findings) > 0 {
		d.heading("Findings")
		for _, f := range r.Findings {
			lines := d.wrap(f.Text, "text", "", sizeText, bodyWidth-4, 4)
			d.room(float64(len(lines))*4.6 + 1)
			d.text("–", marginSide, d.y+3.3, "text", "", sizeText, d.p.Muted)
			for _, l := range lines {
				d.text(l, marginSide+4, d.y+3.3, "text", "", sizeText, d.p.Text)
				d.y += 4.6
			}
			d.y += 1
		}
		d.y += 3
	}
	d.facts(r.Facts)
}

// glance shows the hero number over two columns and two rows, and the other tiles around it.
func (d *document) glance(tiles []Tile) {
	if len(tiles) == 0 {
		return
	}
	const rowHeight = 19.0
	top := d.y
	hero := tiles[0]
	d.text(hero.Label, marginSide, top+2.8, "text", "", sizeLabel, d.p.Muted)
	size := sizeHero
	for size > 20 && d.width(hero.Value, "mono", "B", size)+d.width(hero.Unit, "text", "", 14)+8 > 2*columnWidth+gutter {
		size -= 2
	}
	x := marginSide
	base := top + 19
	d.text(hero.Value, x, base, "mono", "B", size, d.p.Text)
	x += d.width(hero.Value, "mono", "B", size) + 2
	d.text(hero.Unit, x, base, "text", "", 14, d.p.Muted)
	x += d.width(hero.Unit, "text", "", 14) + 1.5
	d.text(hero.Mark, x, base, "text", "", 14, d.p.Muted)
	y := base + 6
	for _, l := range d.wrap(hero.Note, "text", "", sizeLabel, 2*columnWidth, 2) {
		d.text(l, marginSide, y, "text", "", sizeLabel, d.p.Muted)
		y += 3.6
	}
	for i, t := range tiles[1:] {
		column, row := i%2+2, i/2
		if i >= 4 {
			column, row = (i-4)%4, 2+(i-4)/4
		}
		d.tile(t, marginSide+float64(column)*(columnWidth+gutter), top+float64(row)*rowHeight)
	}
	rows := 2 + (max(len(tiles)-5, 0)+3)/4
	d.y = top + float64(rows)*rowHeight + 1
}

// tile draws label, value with unit and mark, and note, in one column of the grid.
func (d *document) tile(t Tile, x, y float64) {
	d.text(d.fit(t.Label, "text", "", sizeLabel, columnWidth), x, y+2.8, "text", "", sizeLabel, d.p.Muted)
	const size = 14.0
	at := x
	d.text(t.Value, at, y+9, "mono", "B", size, d.p.Text)
	at += d.width(t.Value, "mono", "B", size) + 1.2
	d.text(t.Unit, at, y+9, "text", "", sizeText, d.p.Muted)
	if t.Unit != "" {
		at += d.width(t.Unit, "text", "", sizeText) + 1
	}
	d.text(t.Mark, at, y+9, "text", "", sizeText, d.p.Muted)
	for i, l := range d.wrap(t.Note, "text", "", 7, columnWidth, 2) {
		d.text(l, x, y+12.4+float64(i)*2.9, "text", "", 7, d.p.Muted)
	}
}

// facts shows what was measured, in two columns.
func (d *document) facts(fs []Fact) {
	if len(fs) == 0 {
		return
	}
	d.heading("What was measured")
	const labelWidth, line = 20.0, 3.7
	width := (bodyWidth - 2*gutter) / 2
	for i := 0; i < len(fs); i += 2 {
		var cells [2][]string
		lines := 1
		for k := range cells {
			if i+k < len(fs) {
				cells[k] = d.wrap(fs[i+k].Value, "text", "", sizeLabel, width-labelWidth, 4)
				lines = max(lines, len(cells[k]))
			}
		}
		d.room(float64(lines) * line)
		for k, c := range cells {
			if i+k == len(fs) {
				break
			}
			x := marginSide + float64(k)*(width+2*gutter)
			d.text(d.fit(fs[i+k].Label, "text", "", sizeLabel, labelWidth-1), x, d.y+2.8, "text", "", sizeLabel, d.p.Muted)
			for n, l := range c {
				d.text(l, x+labelWidth, d.y+2.8+float64(n)*line, "text", "", sizeLabel, d.p.Text)
			}
		}
		d.y += float64(lines)*line + 0.6
	}
	d.y += 4
}

// section draws one section: heading, text, tiles, charts, tables.
func (d *document) section(s *Section) {
	d.room(d.least(s))
	d.pdf.Bookmark(chart.Printable(s.Title), 0, d.y)
	d.heading(s.Title)
	d.paragraphs(s.Text)
	d.tiles(s.Tiles)
	d.charts(s.Charts)
	for i := range s.Tables {
		d.table(&s.Tables[i])
	}
	d.y += 3
}

// least is the height that a section must have on a page to begin there: its heading never stands
// alone, nor with nothing but its text.
func (d *document) least(s *Section) float64 {
	h := 12.0
	for _, p := range strings.Split(s.Text, "\n\n") {
		h += 4.2*float64(len(d.wrap(p, "text", "", sizeLabel+0.5, bodyWidth, 60))) + 1.6
	}
	switch {
	case len(s.Tiles) > 0:
		h += 20
	case len(s.Charts) > 0:
		h += 75
	case len(s.Tables) > 0:
		h += 30
	}
	return min(h, 120)
}

func (d *document) heading(title string) {
	d.room(20)
	d.text(title, marginSide, d.y+4.5, "text", "B", sizeHead, d.p.Text)
	d.y += 6.5
	d.rule()
	d.y += 3
}

func (d *document) rule() {
	d.pdf.SetDrawColor(int(d.p.Grid.R), int(d.p.Grid.G), int(d.p.Grid.B))
	d.pdf.SetLineWidth(0.2)
	d.pdf.Line(marginSide, d.y, pageWidth-marginSide, d.y)
}

func (d *document) paragraphs(text string) {
	if text == "" {
		return
	}
	for _, p := range strings.Split(text, "\n\n") {
		for _, l := range d.wrap(p, "text", "", sizeLabel+0.5, bodyWidth, 60) {
			d.room(4.2)
			d.text(l, marginSide, d.y+3, "text", "", sizeLabel+0.5, d.p.Text)
			d.y += 4.2
		}
		d.y += 1.6
	}
	d.y += 1
}

func (d *document) tiles(ts []Tile) {
	const rowHeight = 19.0
	for i := 0; i < len(ts); i += 4 {
		d.room(rowHeight)
		for k, t := range ts[i:min(i+4, len(ts))] {
			d.tile(t, marginSide+float64(k)*(columnWidth+gutter), d.y)
		}
		d.y += rowHeight
	}
	if len(ts) > 0 {
		d.y += 1
	}
}

// charts draws the charts of a section: one over the whole width, two or more in pairs.
func (d *document) charts(cs []NamedChart) {
	half := (bodyWidth - gutter) / 2
	for i := 0; i < len(cs); i += 2 {
		pair := cs[i:min(i+2, len(cs))]
		width, height := half, 52.0
		if len(pair) == 1 {
			width, height = bodyWidth, 58
		}
		captions := make([][]string, len(pair))
		lines := 0
		for k, c := range pair {
			captions[k] = d.wrap(c.Caption, "text", "", 7, width, 4)
			lines = max(lines, len(captions[k]))
		}
		d.room(6 + height + float64(lines)*3.1 + 4)
		for k, c := range pair {
			x := marginSide + float64(k)*(half+gutter)
			d.text(d.fit(c.Title, "text", "B", sizeText, width), x, d.y+3.4, "text", "B", sizeText, d.p.Text)
			if err := chart.PDF(d.pdf, c.Chart, x, d.y+5, width, height, d.p); err != nil && d.err == nil {
				d.err = err
			}
			for n, l := range captions[k] {
				d.text(l, x, d.y+5+height+3.2+float64(n)*3.1, "text", "", 7, d.p.Muted)
			}
		}
		d.y += 5 + height + float64(lines)*3.1 + 5
	}
}

// footers numbers the pages, when all of them are there.
func (d *document) footers(r *Report) {
	n := d.pdf.PageCount()
	left := strings.TrimSpace("Velo " + r.Version)
	if r.Session.Header.Endpoint.BuiltIn {
		left += " · built-in scripted endpoint, not a real model"
	} else if m := r.Session.Header.Endpoint.Model; m != "" {
		left += " · " + oneLine(m, 60)
	}
	if id := r.Session.Header.ID; id != "" {
		left += " · session " + oneLine(id, 40)
	}
	for i := 1; i <= n; i++ {
		d.pdf.SetPage(i)
		d.pdf.SetFont("mono", "B", sizeHead) // what the page was left with is not what fpdf remembers: make it say so
		y := pageHeight - 10
		d.pdf.SetDrawColor(int(d.p.Grid.R), int(d.p.Grid.G), int(d.p.Grid.B))
		d.pdf.SetLineWidth(0.2)
		d.pdf.Line(marginSide, y-4.5, pageWidth-marginSide, y-4.5)
		d.text(d.fit(left, "text", "", 7, bodyWidth-25), marginSide, y, "text", "", 7, d.p.Muted)
		number := fmt.Sprintf("%d / %d", i, n)
		d.text(number, pageWidth-marginSide-d.width(number, "mono", "", 7), y, "mono", "", 7, d.p.Muted)
	}
}

// sentence begins with a capital letter.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// ink is the colour of a verdict.
func (d *document) ink(l measure.Level) color.RGBA {
	switch l {
	case measure.Green:
		return green
	case measure.Amber:
		return d.p.Amber
	case measure.Red:
		return d.p.Red
	case measure.Unknown:
		return d.p.Muted
	}
	return d.p.Text
}
