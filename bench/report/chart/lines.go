package chart

import (
	"image/color"
	"math"

	gochart "github.com/wcharczuk/go-chart/v2"
	"github.com/wcharczuk/go-chart/v2/drawing"
)

// label is the text of an axis.
func (a Axis) label() string {
	switch {
	case a.Label == "":
		return a.Unit
	case a.Unit == "":
		return a.Label
	}
	return a.Label + ", " + a.Unit
}

// prepared is a line split at its gaps.
type prepared struct {
	Line
	runs  [][]Point
	color color.RGBA
	width float64
	dash  []float64
}

func (c Lines) prepare(p Palette) []prepared {
	legend := len(c.Lines) > maxDirect
	out := make([]prepared, len(c.Lines))
	for i, line := range c.Lines {
		place := i
		if line.Style.Index > 0 {
			place = line.Style.Index - 1
		}
		q := prepared{
			Line: line, runs: runs(line.Points, c.X.Log, c.Y.Log),
			color: p.series(place), width: line.Style.Width, dash: line.Style.Dash,
		}
		if line.Style.Color != (color.RGBA{}) {
			q.color = line.Style.Color
		}
		if !(q.width > 0) || q.width > 64 {
			q.width = lineWidth
		}
		if q.dash == nil && legend {
			q.dash = dashes[place%len(dashes)]
		}
		if line.Style.Step {
			for j, run := range q.runs {
				q.runs[j] = steps(run)
			}
		}
		out[i] = q
	}
	return out
}

func (c Lines) compose(width, height float64, p Palette) *scene {
	lines := c.prepare(p)
	envelope := c.Envelope.samples(c.X.Log, c.Y.Log)
	xs, ys, some := c.extents(lines, envelope)
	f := &frame{
		width: width, height: height, palette: p, title: c.Title,
		xLabel: c.X.label(), yLabel: c.Y.label(), xUnit: c.X.Unit, yUnit: c.Y.Unit,
	}
	if !some {
		return f.empty()
	}
	f.x = func(w float64, unit string) *scale { return c.X.along(xs, w, unit) }
	f.y = func(h float64, unit string) *scale { return c.Y.up(ys, h, unit, false) }
	f.names = c.names(lines, p, xs)
	f.captions(c.Bands, c.Markers, c.X.scale(xs, 0))
	s := f.layout()

	f.drawBands(s, c.Bands)
	if c.Envelope != nil {
		tint := ink(c.envelopeColor(lines, p), tintAlpha)
		for _, run := range envelope {
			if part := cover(run, s.x, s.y, s.plot.width()); len(part) > 0 {
				s.series = append(s.series, area{part, tint})
			}
		}
	}
	for _, line := range lines {
		if line.Style.Fill {
			s.series = append(s.series, line.areas(s)...)
		}
	}
	for _, line := range lines {
		s.series = append(s.series, line.strokes(s)...)
	}
	f.drawAxis(s)
	f.drawMarkers(s, c.Markers)
	return s
}

// extents gathers what the axes must hold. Values of y count only where x is
// on the axis.
func (c Lines) extents(lines []prepared, envelope [][]sample) (xs, ys extent, some bool) {
	xs, ys = extent{log: c.X.Log}, extent{log: c.Y.Log}
	for _, line := range lines {
		for _, run := range line.runs {
			for _, p := range run {
				xs.add(p.X)
			}
		}
	}
	for _, run := range envelope {
		for _, s := range run {
			xs.add(s.x)
		}
	}
	some = xs.some
	for _, b := range c.Bands { // a band before the first point still counts
		xs.add(b.X0)
		xs.add(b.X1)
	}
	addMarkers(c.Markers, &xs, &ys)
	x := c.X.scale(xs, 0)
	for _, line := range lines {
		for _, run := range line.runs {
			for _, p := range run {
				if x.holds(p.X) {
					ys.add(p.Y)
				}
			}
		}
	}
	for _, run := range envelope {
		for _, s := range run {
			if x.holds(s.x) {
				ys.add(s.lo)
				ys.add(s.hi)
			}
		}
	}
	return xs, ys, some
}

func addMarkers(markers []Marker, xs, ys *extent) {
	for _, m := range markers {
		if m.Axis == X {
			xs.add(m.Value)
		} else {
			ys.add(m.Value)
		}
	}
}

// names lists what stands beside or above the plot: the lines, the envelope
// and the markers across.
func (c Lines) names(lines []prepared, p Palette, xs extent) []name {
	x := c.X.scale(xs, 0)
	var names []name
	for _, line := range lines {
		if line.Name == "" {
			continue
		}
		n := name{text: Printable(line.Name), color: line.color, dash: line.dash, value: math.NaN()}
		if k := len(line.runs); k > 0 {
			last := line.runs[k-1][len(line.runs[k-1])-1]
			n.value = last.Y
			n.linked = x.fraction(last.X) > 0.99 && x.fraction(last.X) < 1.01
		}
		names = append(names, n)
	}
	if e := c.Envelope; e != nil && e.Name != "" {
		value := math.NaN()
		for i := range min(len(e.X), len(e.Lo), len(e.Hi)) {
			if plottable(e.Hi[i]) {
				value = e.Hi[i]
			}
		}
		names = append(names, name{text: Printable(e.Name), color: c.envelopeColor(lines, p), block: true, value: value})
	}
	return append(names, markerNames(c.Markers, c.Y, p)...)
}

// markerNames lists the labelled markers across the plot.
func markerNames(markers []Marker, y Axis, p Palette) []name {
	lo, hi, hasLo, hasHi := y.fixed()
	var names []name
	for _, m := range markers {
		if m.Axis != Y || m.Label == "" || !places(m.Value, y.Log) || hasLo && m.Value < lo || hasHi && m.Value > hi {
			continue
		}
		names = append(names, name{text: Printable(m.Label), color: p.Text, dash: m.pattern(), value: m.Value, linked: true, muted: true})
	}
	return names
}

func (m Marker) pattern() []float64 {
	if m.Dash == nil {
		return []float64{4, 3}
	}
	return m.Dash
}

func (c Lines) envelopeColor(lines []prepared, p Palette) color.RGBA {
	switch {
	case c.Envelope.Color != (color.RGBA{}):
		return c.Envelope.Color
	case len(lines) > 0:
		return lines[0].color
	}
	return p.series(0)
}

// strokes are the go-chart series of a line: one for each part without a gap.
func (l prepared) strokes(s *scene) []gochart.Series {
	style := gochart.Style{StrokeColor: opaque(l.color), StrokeWidth: l.width, StrokeDashArray: l.dash}
	var out []gochart.Series
	for _, run := range l.runs {
		for _, part := range clip(run, s.x, s.y) {
			part = decimate(part, s.x, s.plot.width())
			if len(part) == 1 { // a line of one point is a dot
				style := style
				style.StrokeColor, style.DotColor, style.DotWidth = drawing.ColorTransparent, opaque(l.color), math.Max(2, l.width)
				out = append(out, continuous(part, style))
				continue
			}
			out = append(out, continuous(part, style))
		}
	}
	return out
}

func continuous(points []Point, style gochart.Style) gochart.ContinuousSeries {
	series := gochart.ContinuousSeries{Style: style, XValues: make([]float64, len(points)), YValues: make([]float64, len(points))}
	for i, p := range points {
		series.XValues[i], series.YValues[i] = p.X, p.Y
	}
	return series
}

// areas tint what lies between a line and zero.
func (l prepared) areas(s *scene) []gochart.Series {
	base := math.Max(s.y.min, math.Min(s.y.max, 0))
	if s.y.log {
		base = s.y.min
	}
	var out []gochart.Series
	for _, run := range l.runs {
		for _, part := range flatten(run, s.x, s.y) {
			part = decimate(part, s.x, s.plot.width())
			samples := make([]sample, len(part))
			for i, p := range part {
				samples[i] = sample{p.X, base, p.Y}
			}
			if len(samples) > 1 {
				out = append(out, area{samples, ink(l.color, tintAlpha)})
			}
		}
	}
	return out
}
