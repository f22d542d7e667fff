package chart

import (
	"math"
)

// along is the scale of an x axis of that width in px; the data fill it.
func (a Axis) along(e extent, width float64, unit string) *scale {
	return fitTicks(width, 76, 12, func(n int) *scale {
		s := a.scale(e, 0)
		values, step := s.tickValues(n)
		s.ticks = withUnit(labelled(values, step, a.Format), unit)
		return s
	}, touchX(width))
}

// up is the scale of a y axis of that height in px, with bounds on ticks.
// Whole counts have no ticks between them.
func (a Axis) up(e extent, height float64, unit string, whole bool) *scale {
	return fitTicks(height, 46, 8, func(n int) *scale {
		s := a.scale(e, n)
		values, step := s.tickValues(n)
		if whole && !a.Log && step < 1 {
			values, step = integers(s), 1
		}
		s.ticks = withUnit(labelled(values, step, a.Format), unit)
		return s
	}, touchY(height))
}

// integers are the whole numbers on a scale.
func integers(s *scale) []float64 {
	var values []float64
	for v := math.Ceil(s.min); v <= s.max && len(values) < 16; v++ {
		values = append(values, v)
	}
	return values
}

// captions gathers the labels that stand above the plot: of markers upright and
// of bands. x tells which of them are on the axis.
func (f *frame) captions(bands []Band, markers []Marker, x *scale) {
	for _, m := range markers {
		if m.Axis == X && m.Label != "" && plottable(m.Value) && x.holds(m.Value) {
			f.markers = append(f.markers, caption{m.Label, m.Value, m.Value})
		}
	}
	for _, b := range bands {
		lo, hi, ok := b.on(x)
		if ok && b.Label != "" {
			f.bands = append(f.bands, caption{b.Label, lo, hi})
		}
	}
}

// on is the part of a band that lies on the axis.
func (b Band) on(x *scale) (lo, hi float64, ok bool) {
	if math.IsNaN(b.X0) || math.IsNaN(b.X1) {
		return 0, 0, false
	}
	lo, hi = math.Max(x.min, math.Min(b.X0, b.X1)), math.Min(x.max, math.Max(b.X0, b.X1))
	return lo, hi, lo < hi
}

func (f *frame) drawBands(s *scene, bands []Band) {
	for _, b := range bands {
		lo, hi, ok := b.on(s.x)
		if !ok {
			continue
		}
		left, right := s.plot.left+s.x.fraction(lo)*s.plot.width(), s.plot.left+s.x.fraction(hi)*s.plot.width()
		c := b.Color
		s.behind = append(s.behind, func(p *pen) {
			p.box(rect{left, s.plot.top, right, s.plot.bottom}, ink(c, tintAlpha))
			// The tint is faint; a line in the full colour tells kin apart.
			p.box(rect{left, s.plot.top - 2, right, s.plot.top}, opaque(c))
		})
	}
}

// drawAxis draws the line under the plot with its ticks, and zero where it
// lies inside.
func (f *frame) drawAxis(s *scene) {
	s.front = append(s.front, func(p *pen) {
		plot := s.plot
		p.line(vec{plot.left, plot.bottom}, vec{plot.right, plot.bottom}, f.palette.Muted, hairline, nil)
		if f.xTicks == nil {
			for _, t := range positions(s.x, plot.width()) {
				x := plot.left + t.at
				p.line(vec{x, plot.bottom}, vec{x, plot.bottom + 4}, f.palette.Muted, hairline, nil)
			}
		}
		if !s.y.log && s.y.min < 0 && s.y.max > 0 {
			y := plot.bottom - s.y.fraction(0)*plot.height()
			p.line(vec{plot.left, y}, vec{plot.right, y}, f.palette.Muted, hairline, nil)
		}
	})
}

func (f *frame) drawMarkers(s *scene, markers []Marker) {
	for _, m := range markers {
		if !plottable(m.Value) {
			continue
		}
		plot, dash, c := s.plot, m.pattern(), f.palette.Text
		if m.Axis == X {
			if !s.x.holds(m.Value) {
				continue
			}
			x := plot.left + s.x.fraction(m.Value)*plot.width()
			s.front = append(s.front, func(p *pen) { p.line(vec{x, plot.top}, vec{x, plot.bottom}, c, hairline, dash) })
			continue
		}
		if !s.y.holds(m.Value) {
			continue
		}
		y := plot.bottom - s.y.fraction(m.Value)*plot.height()
		s.front = append(s.front, func(p *pen) { p.line(vec{plot.left, y}, vec{plot.right, y}, c, hairline, dash) })
	}
}

// empty is the scene of a chart without data: it says so.
func (f *frame) empty() *scene {
	s := &scene{width: f.width, height: f.height, palette: f.palette}
	pad := f.margin()
	s.plot = rect{pad, pad, f.width - pad, f.height - pad}.whole(f)
	s.x, s.y = &scale{min: 0, max: 1}, &scale{min: 0, max: 1}
	if f.title != "" && f.height >= 3*rowHeight {
		text := textBold.fit(Printable(f.title), titleSize, f.width-2*pad)
		if text != "" {
			s.labels = append(s.labels, label{text, pad, pad + ascent*titleSize, titleSize, textBold, f.palette.Text})
		}
	}
	const word = "No data"
	if w := textRegular.width(word, labelSize); w <= f.width && f.height >= rowHeight {
		s.write(word, (f.width-w)/2, middle(f.height/2, labelSize), f.palette.Muted)
	}
	return s
}
