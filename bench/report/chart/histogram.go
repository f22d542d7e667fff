package chart

import (
	"math"

	gochart "github.com/wcharczuk/go-chart/v2"
)

// bin is a bar over an interval of x.
type bin struct{ from, to, count float64 }

// on reports whether any of the bin lies on an axis; touching its end does
// not count, unless the bin has no width itself.
func (b bin) on(lo, hi float64) bool {
	if b.from == b.to {
		return lo <= b.from && b.from <= hi
	}
	return b.to > lo && b.from < hi
}

// bins pairs edges with counts, in the order given, and sums what has no
// place on the axis.
func (c Histogram) bins() (bins []bin, outside float64) {
	for i, count := range c.Counts {
		if !plottable(count) || count < 0 {
			continue
		}
		if i+1 >= len(c.Edges) {
			outside += count
			continue
		}
		from, to := math.Min(c.Edges[i], c.Edges[i+1]), math.Max(c.Edges[i], c.Edges[i+1])
		if !places(from, c.X.Log) || !places(to, c.X.Log) {
			outside += count
			continue
		}
		bins = append(bins, bin{from, to, count})
	}
	return bins, outside
}

func (c Histogram) compose(width, height float64, p Palette) *scene {
	bins, outside := c.bins()
	f := &frame{
		width: width, height: height, palette: p, title: c.Title,
		xLabel: c.X.label(), yLabel: c.Y.label(), xUnit: c.X.Unit, yUnit: c.Y.Unit,
	}
	xs, counts := extent{log: c.X.Log}, extent{log: c.LogCounts}
	whole, total := true, 0.0
	for _, b := range bins {
		xs.add(b.from)
		xs.add(b.to)
		counts.add(b.count)
		whole = whole && b.count == math.Trunc(b.count)
		total += b.count
	}
	if total == 0 {
		return f.empty()
	}
	addMarkers(c.Markers, &xs, &counts)
	y := c.Y
	y.ZeroBased = true
	if y.Log = c.LogCounts; y.Log {
		// Bars of one count must have a height: the axis starts below one.
		if _, _, hasLo, _ := y.fixed(); !hasLo {
			y.Min = math.Min(0.5, counts.lo/2)
			if !(y.Max > y.Min) {
				y.Max = math.NaN()
			}
		}
	}
	x := c.X.scale(xs, 0)
	for _, b := range bins {
		if !b.on(x.min, x.max) {
			outside += b.count
		}
	}
	if outside > 0 {
		note := count(outside) + " outside"
		if f.xLabel != "" {
			note = f.xLabel + " (" + note + ")"
		}
		f.xLabel = note
	}
	f.x = func(w float64, unit string) *scale { return c.X.along(xs, w, unit) }
	f.y = func(h float64, unit string) *scale { return y.up(counts, h, unit, whole) }
	f.names = markerNames(c.Markers, y, p)
	f.captions(nil, c.Markers, x)
	s := f.layout()
	s.series = append(s.series, layer{func(pen *pen, box gochart.Box, xr, yr gochart.Range) {
		drawBins(pen, box, xr, yr, bins, gochart.Style{FillColor: opaque(p.series(0)), StrokeColor: opaque(p.series(0)).WithAlpha(0)})
	}})
	f.drawAxis(s)
	f.drawMarkers(s, c.Markers)
	return s
}

// drawBins draws one box a bin, with a gap where there is room for one. What
// was counted at all is at least a pixel high.
func drawBins(p *pen, box gochart.Box, xr, yr gochart.Range, bins []bin, style gochart.Style) {
	for _, b := range bins {
		if b.count <= 0 || !b.on(xr.GetMin(), xr.GetMax()) {
			continue
		}
		left := box.Left + xr.Translate(math.Max(b.from, xr.GetMin()))
		right := box.Left + xr.Translate(math.Min(b.to, xr.GetMax()))
		if right-left >= 5*unit {
			left, right = left+unit/2, right-unit/2
		}
		if right == left {
			right++
		}
		top := box.Bottom - yr.Translate(math.Min(b.count, yr.GetMax()))
		top = min(top, box.Bottom-unit)
		gochart.Draw.Box(p, gochart.Box{Left: left, Right: right, Top: max(top, box.Top), Bottom: box.Bottom}, style)
	}
}
