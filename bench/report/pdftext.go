package report

import (
	"image/color"
	"strings"

	"velo/bench/report/chart"
)

// text sets a line with its baseline at y.
func (d *document) text(s string, x, y float64, family, style string, size float64, c color.RGBA) {
	if s == "" {
		return
	}
	d.pdf.SetFont(family, style, size)
	d.pdf.SetTextColor(int(c.R), int(c.G), int(c.B))
	d.pdf.Text(x, y, printable(s))
}

// signs are what definitions use and the embedded fonts lack.
var signs = strings.NewReplacer("\n", " ", "Σ ", "sum of ", "Σ", "sum of ", "⌈", "ceil(", "⌉", ")")

// printable makes a line of text safe for the embedded fonts.
func printable(s string) string { return chart.Printable(signs.Replace(s)) }

// width is the width of a line in millimetres.
func (d *document) width(s, family, style string, size float64) float64 {
	if s == "" {
		return 0
	}
	d.pdf.SetFont(family, style, size)
	return d.pdf.GetStringWidth(printable(s))
}

// fit shortens a line to a width, with an ellipsis.
func (d *document) fit(s, family, style string, size, width float64) string {
	if d.width(s, family, style, size) <= width {
		return s
	}
	rs := []rune(printable(s))
	lo, hi := 0, len(rs) // the most runes that fit with the ellipsis
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if d.width(string(rs[:mid])+"…", family, style, size) <= width {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return strings.TrimRight(string(rs[:lo]), " ") + "…"
}

// wrap breaks text into lines of a width, between words where it can and within a word where one is
// wider than a line. Beyond the most lines it ends in an ellipsis.
func (d *document) wrap(s, family, style string, size, width float64, most int) []string {
	if s == "" {
		return nil
	}
	d.pdf.SetFont(family, style, size)
	wide := func(t string) float64 { return d.pdf.GetStringWidth(t) }
	space := wide(" ")
	var lines []string
	var line strings.Builder
	used := 0.0
	push := func() {
		lines = append(lines, line.String())
		line.Reset()
		used = 0
	}
	for _, w := range strings.Fields(printable(s)) {
		n := wide(w)
		if used > 0 && used+space+n > width {
			push()
		}
		if len(lines) > most {
			break
		}
		if used > 0 {
			line.WriteByte(' ')
			used += space
		}
		if n <= width {
			line.WriteString(w)
			used += n
			continue
		}
		for _, r := range w { // a word wider than a line
			k := wide(string(r))
			if used > 0 && used+k > width {
				push()
			}
			line.WriteRune(r)
			used += k
		}
	}
	if line.Len() > 0 {
		push()
	}
	if len(lines) > most {
		lines = lines[:most]
		lines[most-1] = strings.TrimSuffix(d.fit(lines[most-1], family, style, size, width-wide("…")), "…") + "…"
	}
	return lines
}
