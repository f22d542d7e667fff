package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"velo/bench/report/chart"
)

//go:embed report.gohtml
var htmlSource string

// page is the template of the HTML report. html/template escapes everything that comes from a
// session; the charts, which this program drew, are the only text that goes in as it is.
var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"charts":     svgPair,
	"paragraphs": paragraphs,
	"level":      levelClass,
	"dash":       func(s string) bool { return s == Dash },
	"hero":       func(ts []Tile) []Tile { return ts[:min(1, len(ts))] },
	"rest":       func(ts []Tile) []Tile { return ts[min(1, len(ts)):] },
	"exact":      exactTitle,
	"wide":       func(cs []NamedChart) bool { return len(cs) == 1 },
	"cut":        func(t Table) cutTable { return cut(t, mostRowsHTML) },
}).Parse(htmlSource))

// mostRowsHTML bounds a table in a browser.
const mostRowsHTML = 1000

// cutTable is a table with at most so many rows.
type cutTable struct {
	Table
	Left string // what was left out, in words
}

func cut(t Table, most int) cutTable {
	c := cutTable{Table: t}
	if n := len(t.Rows); n > most {
		c.Rows = t.Rows[:most]
		c.Left = fmt.Sprintf("The first %s of %s are shown; the CSV export has all of them.", whole(most), plural(n, "row"))
	}
	return c
}

// writeHTML writes the report as one file that needs nothing else: no network, no script. Charts are
// inline SVG, once for a light and once for a dark page.
func writeHTML(w io.Writer, r *Report) error {
	var b bytes.Buffer
	if err := page.Execute(&b, r); err != nil {
		return err
	}
	_, err := b.WriteTo(w)
	return err
}

// svgPair draws a chart for light and for dark pages.
func svgPair(c NamedChart, wide bool) (template.HTML, error) {
	width, height := 520, 320
	if wide {
		width, height = 1080, 380
	}
	var b bytes.Buffer
	for _, p := range []struct {
		class   string
		palette chart.Palette
	}{{"light", chart.Light}, {"dark", chart.Dark}} {
		fmt.Fprintf(&b, "<div class=\"%s\">", p.class)
		if err := chart.SVG(&b, c.Chart, width, height, p.palette); err != nil {
			return "", err
		}
		b.WriteString("</div>")
	}
	return template.HTML(b.String()), nil
}

func paragraphs(s string) []string {
	var out []string
	for _, p := range bytes.Split([]byte(s), []byte("\n\n")) {
		if len(p) > 0 {
			out = append(out, string(p))
		}
	}
	return out
}

// levelClass is the class of a cell by its verdict.
func levelClass(c Cell) string {
	switch {
	case c.Level != "":
		return string(c.Level)
	case c.Grey || c.Text == Dash:
		return "unknown"
	}
	return ""
}

// exactTitle is what hovering over a tile shows.
func exactTitle(t Tile) string {
	s := Exact(t.Metric, t.Raw)
	if t.Metric.Definition != "" {
		s += "\n" + t.Metric.Name + ": " + t.Metric.Definition
	}
	return s
}
