package chart

import (
	"image/color"
	"io"
	"math"

	"github.com/golang/freetype/truetype"
	gochart "github.com/wcharczuk/go-chart/v2"
	"github.com/wcharczuk/go-chart/v2/drawing"
)

// vec is a point in logical px, y downwards.
type vec struct{ x, y float64 }

// subpath is a polyline; closed ones return to their start.
type subpath struct {
	points []vec
	closed bool
}

type stroke struct {
	color drawing.Color
	width float64   // logical px
	dash  []float64 // logical px on, off, …; empty is solid
}

// backend puts shapes and text on a picture. All lengths are logical px,
// colours are not premultiplied.
type backend interface {
	fill(shape []subpath, c drawing.Color)
	stroke(shape []subpath, s stroke)
	disc(centre vec, radius float64, c drawing.Color)
	// text starts at a point on the baseline; angle is clockwise, radians.
	text(s string, at vec, f *face, size, angle float64, c drawing.Color)
}

// unit is the number of go-chart's integer coordinates in a logical pixel.
// go-chart places on whole numbers; at 16 to the pixel nobody sees them.
const unit = 16

func units(px float64) int { return int(math.Round(px * unit)) }

// pen is a go-chart renderer that gathers paths and hands them to a backend.
// Coordinates arrive in units, widths, dashes, radii and font sizes in
// logical px.
type pen struct {
	backend backend

	strokeColor, fillColor, fontColor drawing.Color
	strokeWidth, fontSize, angle      float64
	dash                              []float64
	face                              *face
	dpi                               float64
	shape                             []subpath
}

var _ gochart.Renderer = (*pen)(nil)

func (p *pen) ResetStyle() {
	*p = pen{backend: p.backend, dpi: p.dpi, shape: p.shape}
}

func (p *pen) GetDPI() float64                      { return p.dpi }
func (p *pen) SetDPI(dpi float64)                   { p.dpi = dpi }
func (p *pen) SetClassName(string)                  {}
func (p *pen) SetStrokeColor(c drawing.Color)       { p.strokeColor = c }
func (p *pen) SetFillColor(c drawing.Color)         { p.fillColor = c }
func (p *pen) SetStrokeWidth(width float64)         { p.strokeWidth = width }
func (p *pen) SetStrokeDashArray(lengths []float64) { p.dash = lengths }
func (p *pen) SetFont(*truetype.Font)               {} // the embedded fonts only
func (p *pen) SetFontColor(c drawing.Color)         { p.fontColor = c }
func (p *pen) SetFontSize(size float64)             { p.fontSize = size }
func (p *pen) SetTextRotation(radians float64)      { p.angle = radians }
func (p *pen) ClearTextRotation()                   { p.angle = 0 }
func (p *pen) Save(io.Writer) error                 { return nil } // the backend's owner writes

func at(x, y int) vec { return vec{float64(x) / unit, float64(y) / unit} }

func (p *pen) MoveTo(x, y int) {
	p.shape = append(p.shape, subpath{points: []vec{at(x, y)}})
}

func (p *pen) LineTo(x, y int) { p.lineTo(at(x, y)) }

func (p *pen) lineTo(to vec) {
	if len(p.shape) == 0 || p.shape[len(p.shape)-1].closed {
		p.shape = append(p.shape, subpath{})
	}
	last := &p.shape[len(p.shape)-1]
	last.points = append(last.points, to)
}

func (p *pen) current() vec {
	if n := len(p.shape); n > 0 {
		points := p.shape[n-1].points
		return points[len(points)-1]
	}
	return vec{}
}

func (p *pen) QuadCurveTo(cx, cy, x, y int) {
	from, control, to := p.current(), at(cx, cy), at(x, y)
	const steps = 12
	for i := 1; i <= steps; i++ {
		t := float64(i) / steps
		a, b, c := (1-t)*(1-t), 2*t*(1-t), t*t
		p.lineTo(vec{a*from.x + b*control.x + c*to.x, a*from.y + b*control.y + c*to.y})
	}
}

func (p *pen) ArcTo(cx, cy int, rx, ry, startAngle, delta float64) {
	steps := int(math.Max(8, math.Min(256, math.Abs(delta)*16)))
	centre := at(cx, cy)
	for i := 0; i <= steps; i++ {
		sin, cos := math.Sincos(startAngle + delta*float64(i)/float64(steps))
		p.lineTo(vec{centre.x + rx*cos/unit, centre.y + ry*sin/unit})
	}
}

func (p *pen) Close() {
	if n := len(p.shape); n > 0 {
		p.shape[n-1].closed = true
	}
}

func (p *pen) Stroke()     { p.paint(true, false) }
func (p *pen) Fill()       { p.paint(false, true) }
func (p *pen) FillStroke() { p.paint(true, true) }

func (p *pen) paint(strokes, fills bool) {
	shape := p.shape
	p.shape = nil
	if len(shape) == 0 {
		return
	}
	if fills && !p.fillColor.IsTransparent() {
		p.backend.fill(shape, p.fillColor)
	}
	if strokes && !p.strokeColor.IsTransparent() && p.strokeWidth > 0 {
		p.backend.stroke(shape, stroke{p.strokeColor, p.strokeWidth, p.dash})
	}
}

func (p *pen) Circle(radius float64, x, y int) {
	if !p.fillColor.IsTransparent() {
		p.backend.disc(at(x, y), radius, p.fillColor)
	}
}

func (p *pen) font() *face {
	if p.face == nil {
		return textRegular
	}
	return p.face
}

func (p *pen) Text(body string, x, y int) {
	if body == "" || p.fontColor.IsTransparent() {
		return
	}
	p.backend.text(Printable(body), at(x, y), p.font(), p.fontSize, p.angle, p.fontColor)
}

// MeasureText returns the box of a text in units, from the top of its
// tallest letters to the baseline as go-chart expects.
func (p *pen) MeasureText(body string) gochart.Box {
	box := gochart.Box{
		Right:  int(math.Ceil(p.font().width(Printable(body), p.fontSize) * unit)),
		Bottom: int(math.Ceil(p.fontSize * capHeight * unit)),
	}
	if p.angle != 0 {
		return box.Corners().Rotate(gochart.RadiansToDegrees(p.angle)).Box()
	}
	return box
}

// line strokes a straight line between two points in px.
func (p *pen) line(from, to vec, c color.RGBA, width float64, dash []float64) {
	p.SetStrokeColor(opaque(c))
	p.SetStrokeWidth(width)
	p.SetStrokeDashArray(dash)
	p.MoveTo(units(from.x), units(from.y))
	p.LineTo(units(to.x), units(to.y))
	p.Stroke()
}

// box fills a rectangle in px.
func (p *pen) box(r rect, c drawing.Color) {
	p.SetFillColor(c)
	p.SetStrokeColor(drawing.ColorTransparent)
	gochart.Draw.Box(p, gochart.Box{
		Left: units(r.left), Top: units(r.top), Right: units(r.right), Bottom: units(r.bottom),
	}, gochart.Style{FillColor: c, StrokeColor: drawing.ColorTransparent})
}

// rect is a rectangle in logical px.
type rect struct{ left, top, right, bottom float64 }

func (r rect) width() float64  { return r.right - r.left }
func (r rect) height() float64 { return r.bottom - r.top }

// rectangle reports whether a shape is one upright rectangle.
func rectangle(shape []subpath) (rect, bool) {
	if len(shape) != 1 {
		return rect{}, false
	}
	q := shape[0].points
	if len(q) == 5 && q[4] == q[0] {
		q = q[:4]
	}
	if len(q) != 4 {
		return rect{}, false
	}
	across := q[0].y == q[1].y && q[1].x == q[2].x && q[2].y == q[3].y && q[3].x == q[0].x
	down := q[0].x == q[1].x && q[1].y == q[2].y && q[2].x == q[3].x && q[3].y == q[0].y
	if !across && !down {
		return rect{}, false
	}
	return rect{
		math.Min(q[0].x, q[2].x), math.Min(q[0].y, q[2].y),
		math.Max(q[0].x, q[2].x), math.Max(q[0].y, q[2].y),
	}, true
}
