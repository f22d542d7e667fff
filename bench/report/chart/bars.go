package chart

import (
	"math"
	"strings"

	gochart "github.com/wcharczuk/go-chart/v2"
)

// bar is one value with its label and, where both are finite, its whiskers.
type bar struct {
	label  string
	value  float64
	lo, hi float64 // NaN without whiskers
}

func (c Bars) bars() []bar {
	element := func(values []float64, i int) float64 {
		if i < len(values) && plottable(values[i]) {
			return values[i]
		}
		return math.NaN()
	}
	out := make([]bar, max(len(c.Labels), len(c.Values)))
	for i := range out {
		b := bar{value: element(c.Values, i), lo: element(c.Lo, i), hi: element(c.Hi, i)}
		if i < len(c.Labels) {
			b.label = Printable(c.Labels[i])
		}
		if !places(b.value, c.Y.Log) {
			b.value = math.NaN()
		}
		if math.IsNaN(b.value) || !places(b.lo, c.Y.Log) || !places(b.hi, c.Y.Log) {
			b.lo, b.hi = math.NaN(), math.NaN()
		} else {
			b.lo, b.hi = math.Min(b.lo, b.hi), math.Max(b.lo, b.hi)
		}
		out[i] = b
	}
	return out
}

// end is the far end of a bar or of its whisker on the side where the number
// stands.
func (b bar) end() float64 {
	v := math.Max(b.value, 0)
	if plottable(b.hi) {
		v = math.Max(v, b.hi)
	}
	return v
}

const (
	maxBarWidth = 56 // px
	minSlot     = 13 // px of a bar that lies down, with its label
)

func (c Bars) compose(width, height float64, p Palette) *scene {
	bars := c.bars()
	f := &frame{width: width, height: height, palette: p, title: c.Title}
	values := extent{log: c.Y.Log}
	for _, b := range bars {
		values.add(b.value)
		values.add(b.lo)
		values.add(b.hi)
	}
	if !values.some {
		return f.empty()
	}
	axis := c.Y
	axis.ZeroBased = true
	if _, _, hasLo, _ := axis.fixed(); axis.Log && !hasLo {
		axis.Min = values.lo / 2 // the lowest bar has a height too
		if !(axis.Max > axis.Min) {
			axis.Max = math.NaN()
		}
	}
	category := &scale{min: 0, max: float64(len(bars))}
	if c.Horizontal {
		c.composeAcross(f, bars, axis, values, category)
	} else {
		c.composeUpright(f, bars, axis, values, category)
	}
	s := f.layout()
	if c.Horizontal {
		s.upright = true
		drawAcross(s, bars, c.Y.Format)
		s.front = append(s.front, func(pen *pen) {
			x := s.plot.left + math.Max(0, s.x.fraction(0))*s.plot.width()
			if s.x.log {
				x = s.plot.left
			}
			pen.line(vec{x, s.plot.top}, vec{x, s.plot.bottom}, p.Muted, hairline, nil)
		})
		return s
	}
	drawUpright(s, bars, c.Y.Format)
	f.drawAxis(s)
	return s
}

func numbers(bars []bar, format func(float64) string) ([]string, float64) {
	if format == nil {
		format = number
	}
	texts, widest := make([]string, len(bars)), 0.0
	for i, b := range bars {
		texts[i] = "—"
		if plottable(b.value) {
			texts[i] = Printable(format(b.value))
		}
		widest = math.Max(widest, textRegular.width(texts[i], labelSize))
	}
	return texts, widest
}

// composeUpright sets up the frame of bars side by side.
func (c Bars) composeUpright(f *frame, bars []bar, axis Axis, values extent, category *scale) {
	f.yLabel, f.yUnit = axis.label(), axis.Unit
	f.topRoom = 6 + rowHeight // numbers stand on the bars
	f.x = func(float64, string) *scale { sc := *category; return &sc }
	f.y = func(h float64, unit string) *scale { return axis.up(values, h, unit, false) }
	f.xTicks = func(length float64) []tick {
		slot := length / float64(len(bars))
		// Where a slot is too narrow for a word only every k-th is named.
		every := max(1, int(math.Ceil(28/slot)))
		room := slot*float64(every) - 6
		staggered := false
		for i := 0; i < len(bars); i += every {
			for _, line := range wrap(bars[i].label, room) {
				staggered = staggered || strings.HasSuffix(line, "…") && !strings.HasSuffix(bars[i].label, "…")
			}
		}
		var ticks []tick
		for i := 0; i < len(bars); i += every {
			t := tick{at: (float64(i) + 0.5) * slot, lines: wrap(bars[i].label, room)}
			if staggered { // two rows in turn: each label has the room of two
				t.lines = []string{textRegular.fit(bars[i].label, labelSize, room*2+6)}
				t.row = i / every % 2
			}
			ticks = append(ticks, t)
		}
		return ticks
	}
}

// composeAcross sets up the frame of bars one below the other, the first on
// top.
func (c Bars) composeAcross(f *frame, bars []bar, axis Axis, values extent, category *scale) {
	f.xLabel, f.xUnit = axis.label(), axis.Unit
	_, f.rightRoom = numbers(bars, axis.Format)
	f.rightRoom += 6
	f.minHeight = math.Min(minSlot*float64(len(bars)), 0.7*f.height)
	f.y = func(float64, string) *scale { sc := *category; return &sc }
	f.x = func(w float64, unit string) *scale {
		return fitTicks(w, 76, 12, func(n int) *scale {
			s := axis.scale(values, n)
			marks, step := s.tickValues(n)
			s.ticks = withUnit(labelled(marks, step, axis.Format), unit)
			return s
		}, touchX(w))
	}
	f.yTicks = func(length float64) []tick {
		slot := length / float64(len(bars))
		every := max(1, int(math.Ceil(minSlot/slot-1e-9)))
		var ticks []tick
		for i := 0; i < len(bars); i += every {
			ticks = append(ticks, tick{at: length - (float64(i)+0.5)*slot, lines: []string{textRegular.fit(bars[i].label, labelSize, f.width*0.35)}})
		}
		return ticks
	}
}

// wrap breaks a label into at most two lines of a width in px, at a space or
// behind a separator, and shortens what still does not fit.
func wrap(text string, width float64) []string {
	if textRegular.width(text, labelSize) <= width {
		return []string{text}
	}
	best, cut := math.Inf(1), -1
	for i, r := range text {
		if !strings.ContainsRune(" -_/·:", r) || i == 0 {
			continue
		}
		first, second := text[:i+len(string(r))], text[i+len(string(r)):]
		w := math.Max(textRegular.width(strings.TrimSpace(first), labelSize), textRegular.width(strings.TrimSpace(second), labelSize))
		if strings.TrimSpace(second) != "" && w < best {
			best, cut = w, i+len(string(r))
		}
	}
	if cut < 0 {
		return []string{textRegular.fit(text, labelSize, width)}
	}
	return []string{
		textRegular.fit(strings.TrimSpace(text[:cut]), labelSize, width),
		textRegular.fit(strings.TrimSpace(text[cut:]), labelSize, width),
	}
}

// drawUpright adds bars, whiskers and numbers.
func drawUpright(s *scene, bars []bar, format func(float64) string) {
	plot := s.plot
	slot := plot.width() / float64(len(bars))
	half := math.Min(maxBarWidth, math.Max(slot*0.64, math.Min(1, slot))) / 2
	y := func(v float64) float64 {
		return plot.bottom - math.Max(0, math.Min(1, s.y.fraction(v)))*plot.height()
	}
	base := plot.bottom
	if !s.y.log {
		base = y(0)
	}
	colour := opaque(s.palette.series(0))
	s.series = append(s.series, layer{func(p *pen, _ gochart.Box, _, _ gochart.Range) {
		for i, b := range bars {
			if !plottable(b.value) {
				continue
			}
			x := plot.left + (float64(i)+0.5)*slot
			top, bottom := math.Min(y(b.value), base), math.Max(y(b.value), base)
			if bottom-top < 1 && b.value != 0 {
				top = bottom - 1
			}
			p.box(rect{x - half, top, x + half, bottom}, colour)
			if plottable(b.hi) {
				tip := math.Min(4, half)
				p.line(vec{x, y(b.lo)}, vec{x, y(b.hi)}, s.palette.Text, hairline, nil)
				p.line(vec{x - tip, y(b.lo)}, vec{x + tip, y(b.lo)}, s.palette.Text, hairline, nil)
				p.line(vec{x - tip, y(b.hi)}, vec{x + tip, y(b.hi)}, s.palette.Text, hairline, nil)
			}
		}
	}})
	texts, widest := numbers(bars, format)
	if s.bare || widest > slot-6 {
		return // numbers that touch are worse than none: the axis has them
	}
	for i, b := range bars {
		w := textRegular.width(texts[i], labelSize)
		x := plot.left + (float64(i)+0.5)*slot - w/2
		end := base
		color := s.palette.Muted
		if plottable(b.value) {
			end, color = math.Min(base, y(b.end())), s.palette.Text
		}
		s.write(texts[i], x, end-4, color)
	}
}

// drawAcross is drawUpright on its side.
func drawAcross(s *scene, bars []bar, format func(float64) string) {
	plot := s.plot
	slot := plot.height() / float64(len(bars))
	half := math.Min(maxBarWidth/2, math.Max(slot*0.64, math.Min(1, slot))) / 2
	x := func(v float64) float64 { return plot.left + math.Max(0, math.Min(1, s.x.fraction(v)))*plot.width() }
	base := plot.left
	if !s.x.log {
		base = x(0)
	}
	colour := opaque(s.palette.series(0))
	s.series = append(s.series, layer{func(p *pen, _ gochart.Box, _, _ gochart.Range) {
		for i, b := range bars {
			if !plottable(b.value) {
				continue
			}
			y := plot.top + (float64(i)+0.5)*slot
			left, right := math.Min(x(b.value), base), math.Max(x(b.value), base)
			if right-left < 1 && b.value != 0 {
				right = left + 1
			}
			p.box(rect{left, y - half, right, y + half}, colour)
			if plottable(b.hi) {
				tip := math.Min(4, half)
				p.line(vec{x(b.lo), y}, vec{x(b.hi), y}, s.palette.Text, hairline, nil)
				p.line(vec{x(b.lo), y - tip}, vec{x(b.lo), y + tip}, s.palette.Text, hairline, nil)
				p.line(vec{x(b.hi), y - tip}, vec{x(b.hi), y + tip}, s.palette.Text, hairline, nil)
			}
		}
	}})
	if s.bare || slot < minSlot {
		return
	}
	texts, _ := numbers(bars, format)
	for i, b := range bars {
		y := plot.top + (float64(i)+0.5)*slot
		end := base
		color := s.palette.Muted
		if plottable(b.value) {
			end, color = math.Max(base, x(b.end())), s.palette.Text
		}
		s.write(texts[i], end+6, middle(y, labelSize), color)
	}
}
