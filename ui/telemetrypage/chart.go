package telemetrypage

import (
	"image"
	"image/color"
	"math"
	"strconv"
	"time"

	"velo/bench/measure"
	"velo/bench/otlp/series"
	"velo/ui/look"
	"velo/ui/plot"
)

// pen is what the drawings share: a raster, a scale and two fonts.
type pen struct {
	plot.Raster
	scale         float64
	p             look.Palette
	small, digits *plot.Type
	w, h          int
}

func (c *pen) on(img *image.RGBA, scale float64, p look.Palette) {
	c.On(img)
	c.Clear(p.Background)
	c.scale, c.p = scale, p
	c.small, c.digits = plot.TypeOf(false, look.Small*scale), plot.TypeOf(true, look.Small*scale)
	c.w, c.h = img.Rect.Dx(), img.Rect.Dy()
}

func (c *pen) px(units float64) int { return int(units*c.scale + 0.5) }
func (c *pen) hair() int            { return max(c.px(1), 1) }

// title writes what is drawn, and its unit in grey.
func (c *pen) title(text, unit string) {
	x := c.Text(c.small, text, 0, 0, c.p.Text)
	c.Text(c.small, unit, x+c.px(6), 0, c.p.Muted)
}

// shownFor is how far back a chart of a gauge or a metric goes.
const shownFor = 5 * time.Minute

// history draws values over the last minutes. Its axis grows in steps, and is made anew for another
// series; below zero it goes only where values do.
type history struct {
	pen
	y, below plot.Axis
	of       string // what it shows
}

// curve is what a history draws.
type curve struct {
	of          string // names the series
	title, unit string
	points      []series.Sample
	factor      float64       // of values, in the unit
	now         time.Duration // receiver's time
	label       string        // of the latest value
	bare        bool          // no axes and no title: a line under a number
}

func (d *history) draw(img *image.RGBA, scale float64, p look.Palette, c curve) {
	d.on(img, scale, p)
	if c.of != d.of {
		d.of, d.y, d.below = c.of, plot.Axis{}, plot.Axis{}
	}
	if c.factor == 0 {
		c.factor = 1
	}
	from := c.now - shownFor
	first := len(c.points)
	for first > 0 && c.points[first-1].At >= from {
		first--
	}
	points := c.points[first:]
	if len(points) > 0 || !c.bare {
		d.y.Reach(0)
	}
	for _, s := range points {
		if v := s.Value * c.factor; v >= 0 {
			d.y.Reach(v)
		} else {
			d.below.Reach(-v)
		}
	}
	left, right, top, bottom := d.px(56), max(d.px(72), d.digits.Width(c.label)+d.px(16)), d.px(24), d.px(24)
	if c.bare {
		left, right, top, bottom = 0, 0, d.px(2), d.px(2)
	}
	w, h := d.w-left-right, d.h-top-bottom
	if w < d.px(24) || h < d.px(12) {
		return
	}
	low, high := -d.below.Top, d.y.Top
	if high <= low {
		high = low + 1
	}
	X := func(t time.Duration) float32 {
		return float32(left) + float32(float64(t-from)/float64(shownFor))*float32(w)
	}
	Y := func(v float64) float32 { return float32(top+h) - float32((v-low)/(high-low))*float32(h) }
	if c.bare {
		d.Rect(left, int(Y(0)), w, d.hair(), p.Grid)
	} else {
		d.title(c.title, c.unit)
		axis := func(v float64) {
			y := int(Y(v))
			d.Dash(left, left+w, y, d.hair(), w, 0, p.Grid)
			d.TextRight(d.digits, strconv.FormatFloat(v, 'g', 6, 64), left-d.px(8), y-d.digits.Height/2, p.Muted)
		}
		for _, v := range d.y.Ticks(max(h/d.px(32), 1)) {
			axis(v)
		}
		if low < 0 {
			axis(low)
		}
		for m := 0; m <= int(shownFor/time.Minute); m++ {
			x := int(X(from + time.Duration(m)*time.Minute))
			text := "−" + strconv.Itoa(int(shownFor/time.Minute)-m) + " min"
			if m == int(shownFor/time.Minute) {
				text = "now"
			}
			d.Rect(x, top+h, d.hair(), d.px(4), p.Muted)
			d.Text(d.digits, text, x-d.digits.Width(text)/2, top+h+d.px(6), p.Muted)
		}
		if len(points) == 0 {
			d.Text(d.small, "No point came in the last "+span(shownFor), left+d.px(8), top+h/2, p.Muted)
		}
	}
	gap := silence(points)
	d.line(points, gap, X, func(v float64) float32 { return Y(v * c.factor) }, p.Accent)
	if n := len(points); n > 0 && !c.bare && c.label != "" {
		y := int(Y(points[n-1].Value*c.factor)) - d.small.Height/2
		d.Text(d.digits, c.label, left+w+d.px(8), min(max(y, top), top+h-d.small.Height), p.Accent)
	}
}

// silence is the time between two points from which on there is a gap: five times what is usual.
func silence(points []series.Sample) time.Duration {
	if len(points) < 3 {
		return shownFor
	}
	return max(5*(points[len(points)-1].At-points[0].At)/time.Duration(len(points)-1), 5*time.Second)
}

func (d *history) line(points []series.Sample, gap time.Duration, X func(time.Duration) float32, Y func(float64) float32, c color.NRGBA) {
	for i := 0; i < len(points); {
		j := i + 1
		for j < len(points) && points[j].At-points[j-1].At <= gap {
			j++
		}
		part := points[i:j]
		d.Line(len(part), func(k int) (float32, float32) { return X(part[k].At), Y(part[k].Value) }, float32(1.5*d.scale), c)
		i = j
	}
}

// histogram draws how often values occur.
type histogram struct{ pen }

func (d *histogram) draw(img *image.RGBA, scale float64, p look.Palette, title, unit string, h measure.Histogram, factor float64, none string) {
	d.on(img, scale, p)
	d.title(title, unit)
	n := len(h.Counts)
	most := 0.0
	for _, v := range h.Counts {
		most = max(most, v)
	}
	if n == 0 || most <= 0 || !(h.Edges[n] > h.Edges[0]) {
		d.Text(d.small, none, 0, d.px(24), p.Muted)
		return
	}
	top, bottom := d.px(24), d.px(24)
	ht := d.h - top - bottom
	if d.w < d.px(30) || ht < d.px(12) {
		return
	}
	lo, hi := h.Edges[0], h.Edges[n]
	X := func(v float64) int { return int((v-lo)/(hi-lo)*float64(d.w) + 0.5) }
	for i, v := range h.Counts {
		if v > 0 {
			bar := max(int(v/most*float64(ht)+0.5), 1)
			d.Rect(X(h.Edges[i]), top+ht-bar, max(X(h.Edges[i+1])-X(h.Edges[i])-d.hair(), 1), bar, p.Accent)
		}
	}
	d.Rect(0, top+ht, d.w, d.hair(), p.Muted)
	high := short(hi * factor)
	if h.Capped > 0 {
		high = "≥ " + high
	}
	d.Text(d.digits, short(lo*factor), 0, top+ht+d.px(6), p.Muted)
	d.TextRight(d.digits, high, d.w, top+ht+d.px(6), p.Muted)
}

// short writes the end of an axis.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100 || a == 0:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
