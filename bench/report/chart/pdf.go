package chart

import (
	"fmt"
	"math"
	"slices"

	"codeberg.org/go-pdf/fpdf"
	"github.com/wcharczuk/go-chart/v2/drawing"

	"velo/assets"
)

const mmPerPixel = 0.2352 // a 12 px label prints at 8 pt

// RegisterFonts adds the embedded fonts to a PDF: the families "text" and
// "mono", each regular ("") and bold ("B"). Text in them must have gone
// through Printable.
func RegisterFonts(pdf *fpdf.Fpdf) {
	// Copies, because fpdf keeps the slice and works on it.
	pdf.AddUTF8FontFromBytes("text", "", slices.Clone(assets.TextRegular))
	pdf.AddUTF8FontFromBytes("text", "B", slices.Clone(assets.TextBold))
	pdf.AddUTF8FontFromBytes("mono", "", slices.Clone(assets.MonoRegular))
	pdf.AddUTF8FontFromBytes("mono", "B", slices.Clone(assets.MonoBold))
}

// PDF draws the chart as vectors and real text onto the current page, into
// the box with its top left corner at x, y and of size w × h, all in mm. The
// document must count in mm and have the fonts of RegisterFonts. Position,
// font, colours, line width, caps and joins of the document are as before
// afterwards; its dash pattern is solid.
func PDF(pdf *fpdf.Fpdf, c Chart, x, y, w, h float64, p Palette) error {
	if pdf == nil {
		return fmt.Errorf("cannot draw chart: there is no PDF document")
	}
	for _, v := range []float64{x, y, w, h} {
		if !finite(v) {
			return fmt.Errorf("cannot draw chart: box %g, %g, %g × %g mm is not finite", x, y, w, h)
		}
	}
	if k := pdf.GetConversionRatio(); math.Abs(k-72/25.4) > 1e-9 {
		return fmt.Errorf("cannot draw chart: the PDF document must count in mm")
	}
	width, height := w/mmPerPixel, h/mmPerPixel
	if err := checkSize(int(width), int(height), 1); err != nil {
		return err
	}
	if pdf.PageNo() == 0 {
		return fmt.Errorf("cannot draw chart: the PDF document has no page yet")
	}
	defer restore(pdf)()
	pdf.SetLineCapStyle("butt")
	pdf.SetLineJoinStyle("round")
	if err := render(c, width, height, p, &page{pdf: pdf, x: x, y: y}); err != nil {
		return err
	}
	if err := pdf.Error(); err != nil {
		return fmt.Errorf("cannot draw chart into PDF: %w", err)
	}
	return nil
}

// restore remembers the drawing state of a document and returns what sets it
// again.
func restore(pdf *fpdf.Fpdf) func() {
	atX, atY := pdf.GetXY()
	family, style := pdf.GetFontFamily(), pdf.GetFontStyle()
	size, _ := pdf.GetFontSize()
	dr, dg, db := pdf.GetDrawColor()
	fr, fg, fb := pdf.GetFillColor()
	tr, tg, tb := pdf.GetTextColor()
	line, cap, join := pdf.GetLineWidth(), pdf.GetLineCapStyle(), pdf.GetLineJoinStyle()
	return func() {
		pdf.SetDrawColor(dr, dg, db)
		pdf.SetFillColor(fr, fg, fb)
		pdf.SetTextColor(tr, tg, tb)
		pdf.SetLineWidth(line)
		pdf.SetLineCapStyle(cap)
		pdf.SetLineJoinStyle(join)
		if family != "" {
			pdf.SetFont(family, style, size)
		}
		pdf.SetXY(atX, atY)
	}
}

// page is the backend of PDF.
type page struct {
	pdf  *fpdf.Fpdf
	x, y float64 // of the chart, mm
}

func (p *page) mm(at vec) (x, y float64) {
	return p.x + at.x*mmPerPixel, p.y + at.y*mmPerPixel
}

func (p *page) trace(shape []subpath, closed bool) {
	for _, sub := range shape {
		for i, at := range sub.points {
			x, y := p.mm(at)
			if i == 0 {
				p.pdf.MoveTo(x, y)
			} else {
				p.pdf.LineTo(x, y)
			}
		}
		if closed || sub.closed {
			p.pdf.ClosePath()
		}
	}
}

// translucent runs draw at the colour's own opacity.
func (p *page) translucent(c drawing.Color, draw func()) {
	if c.A == 0xff {
		draw()
		return
	}
	p.pdf.SetAlpha(float64(c.A)/255, "Normal")
	draw()
	p.pdf.SetAlpha(1, "Normal")
}

func (p *page) fill(shape []subpath, c drawing.Color) {
	p.translucent(c, func() {
		p.pdf.SetFillColor(int(c.R), int(c.G), int(c.B))
		p.trace(shape, true)
		p.pdf.DrawPath("F")
	})
}

func (p *page) stroke(shape []subpath, s stroke) {
	p.translucent(s.color, func() {
		p.pdf.SetDrawColor(int(s.color.R), int(s.color.G), int(s.color.B))
		p.pdf.SetLineWidth(s.width * mmPerPixel)
		if len(s.dash) > 0 {
			dash := make([]float64, len(s.dash))
			for i, d := range s.dash {
				dash[i] = d * mmPerPixel
			}
			p.pdf.SetDashPattern(dash, 0)
		}
		p.trace(shape, false)
		p.pdf.DrawPath("D")
		if len(s.dash) > 0 {
			p.pdf.SetDashPattern(nil, 0)
		}
	})
}

func (p *page) disc(centre vec, radius float64, c drawing.Color) {
	p.translucent(c, func() {
		p.pdf.SetFillColor(int(c.R), int(c.G), int(c.B))
		x, y := p.mm(centre)
		p.pdf.Circle(x, y, radius*mmPerPixel, "F")
	})
}

func (p *page) text(body string, at vec, f *face, size, angle float64, c drawing.Color) {
	style := ""
	if f.bold {
		style = "B"
	}
	p.pdf.SetFont(f.family, style, size*mmPerPixel*72/25.4)
	p.pdf.SetTextColor(int(c.R), int(c.G), int(c.B))
	x, y := p.mm(at)
	if angle != 0 {
		p.pdf.TransformBegin()
		p.pdf.TransformRotate(-angle*180/math.Pi, x, y)
		defer p.pdf.TransformEnd()
	}
	p.translucent(c, func() { p.pdf.Text(x, y, body) })
}
