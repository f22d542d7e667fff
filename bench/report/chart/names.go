package chart

import (
	"fmt"
	"image/color"
	"math"
)

// maxDirect is the largest number of lines that are named at their ends; more
// go into a legend.
const maxDirect = 5

// beside reports whether the names stand right of the plot, at the ends of
// their lines, rather than in a legend above it.
func (f *frame) beside() bool {
	lines := 0
	for _, n := range f.names {
		if !n.muted && !n.block {
			lines++
		}
	}
	return lines <= maxDirect && swatchSize+f.widestName() <= 0.3*f.width &&
		float64(len(f.names))*rowHeight <= 0.45*f.height
}

func (f *frame) widestName() float64 {
	w := 0.0
	for _, n := range f.names {
		w = math.Max(w, textRegular.width(n.text, labelSize))
	}
	return w
}

// namesBeside writes each name at the height of its line's end, moved apart
// where lines end close together, and reports whether there was room.
func (f *frame) namesBeside(s *scene) bool {
	wanted := make([]float64, len(f.names))
	for i, n := range f.names {
		v := math.Max(s.y.min, math.Min(s.y.max, n.value))
		if !plottable(v) {
			v = s.y.max
		}
		wanted[i] = s.plot.bottom - s.y.fraction(v)*s.plot.height()
	}
	centres, ok := spread(wanted, rowHeight-1, s.plot.top+3, s.plot.bottom-3)
	if !ok {
		return false
	}
	for i, n := range f.names {
		x, y := s.plot.right+nameGap, centres[i]
		f.swatch(s, n, x, y)
		if n.linked && math.Abs(y-wanted[i]) > 1 {
			from, to := vec{s.plot.right + 1, wanted[i]}, vec{x - 1, y}
			c := n.color
			s.front = append(s.front, func(p *pen) { p.line(from, to, c, 0.75, nil) })
		}
		s.write(n.text, x+swatchSize+4, middle(y, labelSize), f.nameColor(n))
	}
	return true
}

func (f *frame) nameColor(n name) color.RGBA {
	if n.muted {
		return f.palette.Muted
	}
	return f.palette.Text
}

// swatch draws the sample of a name, centred on y.
func (f *frame) swatch(s *scene, n name, x, y float64) {
	s.front = append(s.front, func(p *pen) {
		if n.block {
			p.box(rect{x, y - 5, x + swatchSize, y + 5}, ink(n.color, tintAlpha))
			return
		}
		width := lineWidth
		if n.muted {
			width = hairline
		}
		p.line(vec{x, y}, vec{x + swatchSize, y}, n.color, width, n.dash)
	})
}

// legend writes the names in rows above the plot, from top on, and returns
// where they end. What does not fit in a quarter of the picture is counted.
func (f *frame) legend(s *scene, top float64) float64 {
	pad := f.margin()
	rows := max(1, min(4, int(f.height*0.25/rowHeight)))
	swatch := swatchSize + 6
	type spot struct {
		x    float64
		row  int
		text string
	}
	var spots []spot
	x, row := pad, 0
	room := f.width - pad
	rest := func(n int) string { return fmt.Sprintf("+ %d more", n) }
	for i, n := range f.names {
		text := textRegular.fit(n.text, labelSize, math.Min(220, room-pad-swatch))
		w := swatch + textRegular.width(text, labelSize)
		// The last row keeps room to say how many are missing.
		limit := room
		if left := len(f.names) - i - 1; left > 0 && row == rows-1 {
			limit -= textRegular.width(rest(left), labelSize) + 12
		}
		if x > pad && x+w > limit && row < rows-1 {
			x, row = pad, row+1
			limit = room
			if left := len(f.names) - i - 1; left > 0 && row == rows-1 {
				limit -= textRegular.width(rest(left), labelSize) + 12
			}
		}
		if x+w > limit || text == "" {
			break
		}
		spots = append(spots, spot{x, row, text})
		x += w + 14
	}
	for i, sp := range spots {
		y := top + (float64(sp.row)+0.5)*rowHeight
		f.swatch(s, f.names[i], sp.x, y)
		s.write(sp.text, sp.x+swatch, middle(y, labelSize), f.nameColor(f.names[i]))
	}
	if missing := len(f.names) - len(spots); missing > 0 {
		if text := textRegular.fit(rest(missing), labelSize, room-x); text != "" {
			s.write(text, x, middle(top+(float64(row)+0.5)*rowHeight, labelSize), f.palette.Muted)
		}
	}
	return top + float64(row+1)*rowHeight + 2
}
