package chart

import (
	"image/color"

	gochart "github.com/wcharczuk/go-chart/v2"
	"github.com/wcharczuk/go-chart/v2/drawing"

	"github.com/golang/freetype/truetype"
)

// scene is a chart with everything placed: what go-chart draws.
type scene struct {
	width, height float64
	palette       Palette
	plot          rect
	x, y          *scale
	grid          bool // lines across at the ticks of y
	bare          bool // no room for any label beside the title
	upright       bool // grid lines run upright, at the ticks of x

	behind []func(*pen)     // tints, in px
	series []gochart.Series // what the chart is about
	front  []func(*pen)     // axes, markers
	labels []label
}

// label is a text with its place: x is the left end, y the baseline.
type label struct {
	text  string
	x, y  float64
	size  float64
	face  *face
	color color.RGBA
}

const (
	labelSize  = 12.0  // axes, names, markers
	titleSize  = 14.0  // the title, bold
	capHeight  = 0.698 // of the fonts, em
	ascent     = 0.78  // room above the baseline, em: ascenders
	descent    = 0.22  // room below it, em
	rowHeight  = 16.0  // of a line of labels
	lineWidth  = 1.5   // of data
	swatchSize = 12.0  // of the sample beside a name
)

// middle is the baseline of a text whose digits are centred on y.
func middle(y, size float64) float64 { return y + size*capHeight/2 }

// bounds is the box that a label needs for itself.
func (l label) bounds() rect {
	return rect{l.x, l.y - ascent*l.size, l.x + l.face.width(l.text, l.size), l.y + descent*l.size}
}

func (s *scene) write(text string, x, y float64, c color.RGBA) {
	if text != "" {
		s.labels = append(s.labels, label{text, x, y, labelSize, textRegular, c})
	}
}

// chart hands the scene to go-chart: its axes are hidden, since they can only
// sit on the right and their margins are fixed, and everything beside the
// series is drawn by layers on the same renderer.
func (s *scene) chart() gochart.Chart {
	series := []gochart.Series{layer{s.drawBehind}}
	series = append(series, s.series...)
	series = append(series, layer{func(p *pen, _ gochart.Box, _, _ gochart.Range) {
		for _, draw := range s.front {
			draw(p)
		}
	}})
	return gochart.Chart{
		Width: units(s.width), Height: units(s.height), DPI: 72,
		Font: &truetype.Font{}, // keeps go-chart from parsing its own font
		Background: gochart.Style{
			Padding: gochart.NewBox(units(s.plot.top), units(s.plot.left),
				units(s.width)-units(s.plot.right), units(s.height)-units(s.plot.bottom)),
			FillColor: opaque(s.palette.Background), StrokeColor: drawing.ColorTransparent,
		},
		Canvas:         gochart.Style{FillColor: drawing.ColorTransparent, StrokeColor: drawing.ColorTransparent},
		XAxis:          gochart.XAxis{Style: gochart.Hidden(), Range: s.x},
		YAxis:          gochart.YAxis{Style: gochart.Hidden(), Range: s.y},
		YAxisSecondary: gochart.HideYAxis(),
		Series:         series,
		Elements:       []gochart.Renderable{s.drawLabels},
	}
}

func (s *scene) drawBehind(p *pen, box gochart.Box, xr, yr gochart.Range) {
	for _, draw := range s.behind {
		draw(p)
	}
	if !s.grid {
		return
	}
	ticks, ra := s.y.ticks, yr
	if s.upright {
		ticks, ra = s.x.ticks, xr
	}
	style := gochart.Style{StrokeColor: opaque(s.palette.Grid), StrokeWidth: hairline}
	for _, t := range ticks {
		gochart.GridLine{Value: t.Value}.Render(p, box, ra, s.upright, style)
	}
}

func (s *scene) drawLabels(r gochart.Renderer, _ gochart.Box, _ gochart.Style) {
	p := r.(*pen)
	for _, l := range s.labels {
		p.face = l.face
		p.SetFontSize(l.size)
		p.SetFontColor(opaque(l.color))
		p.Text(l.text, units(l.x), units(l.y))
	}
	p.face = nil
}

// layer is a go-chart series that draws freely.
type layer struct {
	draw func(p *pen, box gochart.Box, xr, yr gochart.Range)
}

func (l layer) GetName() string             { return "" }
func (l layer) GetYAxis() gochart.YAxisType { return gochart.YAxisPrimary }
func (l layer) GetStyle() gochart.Style     { return gochart.Style{} }
func (l layer) Validate() error             { return nil }
func (l layer) Render(r gochart.Renderer, box gochart.Box, xr, yr gochart.Range, _ gochart.Style) {
	l.draw(r.(*pen), box, xr, yr)
}

// area is a go-chart series for what lies between two lines.
type area struct {
	samples []sample
	color   drawing.Color
}

func (a area) GetName() string             { return "" }
func (a area) GetYAxis() gochart.YAxisType { return gochart.YAxisPrimary }
func (a area) GetStyle() gochart.Style     { return gochart.Style{} }
func (a area) Validate() error             { return nil }
func (a area) Len() int                    { return len(a.samples) }
func (a area) GetBoundedValues(i int) (x, y1, y2 float64) {
	return a.samples[i].x, a.samples[i].lo, a.samples[i].hi
}
func (a area) Render(r gochart.Renderer, box gochart.Box, xr, yr gochart.Range, _ gochart.Style) {
	style := gochart.Style{FillColor: a.color, StrokeColor: drawing.ColorTransparent}
	gochart.Draw.BoundedSeries(r, box, xr, yr, style, a)
}
