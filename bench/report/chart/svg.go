package chart

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/wcharczuk/go-chart/v2/drawing"
)

// SVG writes the chart as a vector image of width × height logical px. Text
// stays text; where the fonts are missing it is set in another one at the
// same width.
func SVG(w io.Writer, c Chart, width, height int, p Palette) error {
	if err := checkSize(width, height, 1); err != nil {
		return err
	}
	var out bytes.Buffer // a chart that fails leaves no half of a file behind
	fmt.Fprintf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" font-kerning=\"none\">\n",
		width, height, width, height)
	if title := titleOf(c); title != "" {
		fmt.Fprintf(&out, "<title>%s</title>\n", escape(Printable(title)))
	}
	if err := render(c, float64(width), float64(height), p, &svg{&out}); err != nil {
		return err
	}
	out.WriteString("</svg>\n")
	if _, err := out.WriteTo(w); err != nil {
		return fmt.Errorf("cannot write SVG chart: %w", err)
	}
	return nil
}

func titleOf(c Chart) string {
	switch c := c.(type) {
	case Lines:
		return c.Title
	case Histogram:
		return c.Title
	case Bars:
		return c.Title
	}
	return ""
}

// svg is the backend of SVG.
type svg struct{ out *bytes.Buffer }

func (s *svg) fill(shape []subpath, c drawing.Color) {
	if r, ok := rectangle(shape); ok {
		fmt.Fprintf(s.out, "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" %s/>\n",
			short(r.left), short(r.top), short(r.width()), short(r.height()), paint("fill", c))
		return
	}
	fmt.Fprintf(s.out, "<path d=\"%s\" %s/>\n", data(shape, true), paint("fill", c))
}

func (s *svg) stroke(shape []subpath, st stroke) {
	dash := ""
	if len(st.dash) > 0 {
		parts := make([]string, len(st.dash))
		for i, d := range st.dash {
			parts[i] = short(d)
		}
		dash = " stroke-dasharray=\"" + strings.Join(parts, " ") + "\""
	}
	fmt.Fprintf(s.out, "<path d=\"%s\" fill=\"none\" %s stroke-width=\"%s\" stroke-linejoin=\"round\"%s/>\n",
		data(shape, false), paint("stroke", st.color), short(st.width), dash)
}

func (s *svg) disc(centre vec, radius float64, c drawing.Color) {
	fmt.Fprintf(s.out, "<circle cx=\"%s\" cy=\"%s\" r=\"%s\" %s/>\n",
		short(centre.x), short(centre.y), short(radius), paint("fill", c))
}

func (s *svg) text(body string, at vec, f *face, size, angle float64, c drawing.Color) {
	family := "'Velo Sans','IBM Plex Sans','Helvetica Neue',Arial,sans-serif"
	if f.family == "mono" {
		family = "'Velo Mono','IBM Plex Mono',Menlo,Consolas,monospace"
	}
	weight, turn := "", ""
	if f.bold {
		weight = " font-weight=\"700\""
	}
	if angle != 0 {
		turn = fmt.Sprintf(" transform=\"rotate(%s %s %s)\"", short(angle*180/math.Pi), short(at.x), short(at.y))
	}
	fmt.Fprintf(s.out, "<text x=\"%s\" y=\"%s\" textLength=\"%s\" lengthAdjust=\"spacingAndGlyphs\" font-family=\"%s\" font-size=\"%s\"%s%s %s>%s</text>\n",
		short(at.x), short(at.y), short(f.width(body, size)), family, short(size), weight, turn, paint("fill", c), escape(body))
}

// data writes a path with absolute moves and lines.
func data(shape []subpath, closed bool) string {
	var b strings.Builder
	for _, sub := range shape {
		for i, at := range sub.points {
			if i == 0 {
				b.WriteByte('M')
			} else {
				b.WriteByte('L')
			}
			b.WriteString(short(at.x))
			b.WriteByte(' ')
			b.WriteString(short(at.y))
		}
		if closed || sub.closed {
			b.WriteByte('Z')
		}
	}
	return b.String()
}

func paint(attribute string, c drawing.Color) string {
	s := fmt.Sprintf("%s=\"#%02x%02x%02x\"", attribute, c.R, c.G, c.B)
	if c.A != 0xff {
		s += fmt.Sprintf(" %s-opacity=\"%s\"", attribute, short(float64(c.A)/255))
	}
	return s
}

// short writes a number with at most two decimals: a hundredth of a pixel.
func short(v float64) string {
	s := strconv.FormatFloat(v, 'f', 2, 64)
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	if s == "-0" || s == "" {
		return "0"
	}
	return s
}

var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\"", "&quot;")

func escape(s string) string { return entities.Replace(s) }
