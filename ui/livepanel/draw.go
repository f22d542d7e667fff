package livepanel

import (
	"image"
	"image/color"
	"math"
	"strconv"
	"time"

	"velo/bench/measure"
	"velo/bench/report/chart"
	"velo/ui/look"
	"velo/ui/plot"
)

// Sizes of the drawings, in units.
const (
	timelineHeight  = 152
	histogramHeight = 112
)

// canvasOf is what the drawings share: a raster, a scale and two fonts.
type canvasOf struct {
	r      *plot.Raster
	scale  float64
	p      look.Palette
	small  *plot.Type
	digits *plot.Type
	w, h   int
}

func on(r *plot.Raster, img *image.RGBA, scale float64, p look.Palette) canvasOf {
	r.On(img)
	r.Clear(p.Background)
	return canvasOf{r: r, scale: scale, p: p, small: plot.TypeOf(false, look.Small*scale), digits: plot.TypeOf(true, look.Small*scale),
		w: img.Rect.Dx(), h: img.Rect.Dy()}
}

func (c *canvasOf) px(units float64) int { return int(units*c.scale + 0.5) }
func (c *canvasOf) hair() int            { return max(c.px(1), 1) }

// title writes what a drawing shows, and its unit in grey.
func (c *canvasOf) title(text, unit string) {
	x := c.r.Text(c.small, text, 0, 0, c.p.Text)
	c.r.Text(c.small, unit, x+c.px(6), 0, c.p.Muted)
}

// say writes a sentence in the middle, instead of a drawing.
func (c *canvasOf) say(text string) {
	c.r.Text(c.small, text, 0, c.px(24), c.p.Muted)
}

// band is a time of one regime, in seconds from the start.
type band struct {
	from, to float64
	regime   string
}

// rates are what the timeline shows.
type rates struct {
	points []measure.RollingSample // from 0
	bands  []band
	starts []time.Duration // of requests, where there are several
	median measure.Num
	now    string // at the end of the line; empty: it has ended
}

// timeline draws the rolling rate over time, on the colours of the regimes. Its axes grow in steps and
// shrink when it is reset only.
type timeline struct {
	r      plot.Raster
	x      float64
	y      plot.Axis
	points []measure.RollingSample
}

func (t *timeline) reset() { t.x, t.y = 0, plot.Axis{} }

// spans are the ends that a time axis may have, seconds.
var spans = []float64{5, 10, 20, 30, 60, 120, 180, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400}

func reach(top, v float64) float64 {
	if v <= top {
		return top
	}
	for _, s := range spans {
		if s >= v {
			return s
		}
	}
	return v
}

func (t *timeline) draw(img *image.RGBA, scale float64, p look.Palette, d rates) {
	c := on(&t.r, img, scale, p)
	c.title("Decode rate", "tok/s, rolling 1 s")
	left, right, top, bottom := c.px(36), c.px(44), c.px(24), c.px(40)
	w, h := c.w-left-right, c.h-top-bottom
	if w < c.px(40) || h < c.px(24) {
		return
	}
	t.x = reach(t.x, 5)
	t.y.Reach(1)
	for _, s := range d.points {
		t.x = reach(t.x, s.At.Seconds())
		t.y.Reach(s.Rate)
	}
	for _, b := range d.bands {
		if !math.IsInf(b.to, 0) {
			t.x = reach(t.x, b.to)
		}
	}
	X := func(v float64) float32 { return float32(left) + float32(min(v/t.x, 1))*float32(w) }
	Y := func(v float64) float32 { return float32(top+h) - float32(v/t.y.Top)*float32(h) }
	seen := map[string]bool{}
	for _, b := range d.bands {
		x0, x1 := int(X(b.from)), int(X(b.to))
		if x1 <= x0 {
			continue
		}
		col := regimeColor(b.regime)
		col.A = 0x30
		t.r.Rect(x0, top, x1-x0, h, col)
		col.A = 0xff
		t.r.Rect(x0, top+h+c.hair(), x1-x0, c.px(3), col)
		seen[b.regime] = true
	}
	for _, v := range t.y.Ticks(max(h/c.px(32), 1)) {
		y := int(Y(v))
		t.r.Dash(left, left+w, y, c.hair(), w, 0, p.Grid)
		t.r.TextRight(c.digits, strconv.FormatFloat(v, 'g', 6, 64), left-c.px(6), y-c.digits.Height/2, p.Muted)
	}
	for _, v := range ticks(t.x, max(w/c.px(64), 1)) {
		x := int(X(v))
		t.r.Rect(x, top+h, c.hair(), c.px(6), p.Muted)
		text := seconds(v, t.x)
		tw := c.digits.Width(text)
		t.r.Text(c.digits, text, min(x-tw/2, c.w-tw), top+h+c.px(8), p.Muted)
	}
	for i, s := range d.starts {
		if i > 0 { // a rule where the next request begins
			t.r.Rect(int(X(s.Seconds())), top, c.hair(), h, p.Line)
		}
	}
	if d.median.Ok() {
		y := int(Y(float64(d.median)))
		t.r.Dash(left, left+w, y, c.hair(), c.px(6), c.px(4), p.Muted)
	}
	t.r.Line(len(d.points), func(i int) (float32, float32) {
		s := d.points[i]
		return X(s.At.Seconds()), Y(s.Rate)
	}, float32(1.5*scale), p.Accent)
	if n := len(d.points); n > 0 && d.now != "" {
		y := int(Y(d.points[n-1].Rate)) - c.small.Height/2
		t.r.Text(c.digits, d.now, left+w+c.px(6), min(max(y, top), top+h-c.small.Height), p.Accent)
	}
	t.legend(&c, seen)
	if len(d.points) == 0 {
		t.r.Text(c.small, "No samples yet", left+c.px(6), top+h/4-c.small.Height/2, p.Muted)
	}
}

// regimes in the order of the legend.
var order = []string{"reasoning", "prose", "code", "mathematics", "structured", "creative"}

func (t *timeline) legend(c *canvasOf, seen map[string]bool) {
	x := 0
	for _, name := range order {
		if !seen[name] {
			continue
		}
		y := c.h - c.small.Height
		t.r.Rect(x, y+c.small.Height/2-c.px(4), c.px(8), c.px(8), regimeColor(name))
		said := name
		if name == "mathematics" {
			said = "maths" // all of them beside each other, at the least width
		}
		x = t.r.Text(c.small, said, x+c.px(12), y, c.p.Muted) + c.px(12)
	}
}

func regimeColor(name string) color.NRGBA {
	c := chart.Regime(name)
	return color.NRGBA{R: c.R, G: c.G, B: c.B, A: 0xff}
}

// ticks are at most n+1 moments on seconds, minutes or hours.
func ticks(top float64, n int) []float64 {
	step := 86400.0
	for _, s := range []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800} {
		if top/s <= float64(n) {
			step = s
			break
		}
	}
	var out []float64
	for v := 0.0; v <= top*(1+1e-9); v += step {
		out = append(out, v)
	}
	return out
}

func seconds(v, top float64) string {
	switch {
	case top > 2*3600:
		return strconv.FormatFloat(v/3600, 'f', -1, 64) + " h"
	case top > 180:
		return strconv.FormatFloat(v/60, 'f', -1, 64) + " min"
	}
	return strconv.FormatFloat(v, 'f', -1, 64) + " s"
}

// histogram draws how often values occur.
type histogram struct{ r plot.Raster }

// marker is a value that is pointed out in a histogram.
type marker struct {
	at   float64
	text string
}

func (g *histogram) draw(img *image.RGBA, scale float64, p look.Palette, title, unit string, h measure.Histogram, factor float64, m []marker, none string) {
	c := on(&g.r, img, scale, p)
	c.title(title, unit)
	n := len(h.Counts)
	if n == 0 {
		c.say(none)
		return
	}
	left, right, top, bottom := c.px(2), c.px(2), c.px(38), c.px(20)
	w, ht := c.w-left-right, c.h-top-bottom
	if w < c.px(30) || ht < c.px(16) {
		return
	}
	lo, hi := h.Edges[0], h.Edges[n]
	most := 0.0
	for _, v := range h.Counts {
		most = max(most, v)
	}
	if !(hi > lo) || most <= 0 {
		c.say(none)
		return
	}
	X := func(v float64) int { return left + int((v-lo)/(hi-lo)*float64(w)+0.5) }
	g.r.Rect(left, top+ht, w, c.hair(), p.Muted)
	for i, v := range h.Counts {
		if v <= 0 {
			continue
		}
		x0, x1 := X(h.Edges[i]), X(h.Edges[i+1])
		bar := max(int(v/most*float64(ht)+0.5), 1)
		g.r.Rect(x0, top+ht-bar, max(x1-x0-c.hair(), 1), bar, p.Accent)
	}
	low, high := short(lo*factor), short(hi*factor)
	if h.Capped > 0 {
		high = "≥ " + high
	}
	g.r.Text(c.digits, low, left, top+ht+c.px(4), p.Muted)
	g.r.TextRight(c.digits, high, left+w, top+ht+c.px(4), p.Muted)
	end := 0
	for _, k := range m {
		if math.IsNaN(k.at) || k.at < lo || k.at > hi {
			continue
		}
		x := X(k.at)
		for y := top - c.px(4); y < top+ht; y += c.px(5) {
			g.r.Rect(x, y, c.hair(), c.px(3), p.Text)
		}
		tw := c.small.Width(k.text)
		at := max(min(x-tw/2, c.w-tw), 0)
		if at < end {
			continue // no room beside the one before
		}
		g.r.Text(c.small, k.text, at, top-c.px(4)-c.small.Height, p.Text)
		end = at + tw + c.px(6)
	}
}

// bars draws a value a request; what was not measured has none.
type bars struct{ r plot.Raster }

// mostBars is how many requests are shown: the latest.
const mostBars = 32

func (b *bars) draw(img *image.RGBA, scale float64, p look.Palette, title, unit string, values []float64, factor float64, none string) {
	c := on(&b.r, img, scale, p)
	c.title(title, unit)
	first := 0
	if len(values) > mostBars {
		first = len(values) - mostBars
		values = values[first:]
	}
	var y plot.Axis
	known := 0
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			y.Reach(v * factor)
			known++
		}
	}
	if known == 0 {
		c.say(none)
		return
	}
	left, top, bottom := c.px(44), c.px(24), c.px(20)
	w, h := c.w-left, c.h-top-bottom
	if w < c.px(30) || h < c.px(16) {
		return
	}
	for _, v := range y.Ticks(max(h/c.px(28), 1)) {
		at := top + h - int(v/y.Top*float64(h)+0.5)
		b.r.Dash(left, c.w, at, c.hair(), w, 0, p.Grid)
		b.r.TextRight(c.digits, strconv.FormatFloat(v, 'g', 6, 64), left-c.px(6), at-c.digits.Height/2, p.Muted)
	}
	slot := min(float64(w)/float64(len(values)), 28*scale)
	for i, v := range values {
		x := left + int(float64(i)*slot)
		label := strconv.Itoa(first + i + 1)
		if tw := c.digits.Width(label); slot > float64(tw+c.px(4)) || (first+i+1)%5 == 0 {
			b.r.Text(c.digits, label, x+int(slot)/2-tw/2, top+h+c.px(4), p.Muted)
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		bar := max(int(v*factor/y.Top*float64(h)+0.5), c.hair())
		b.r.Rect(x+c.px(2), top+h-bar, max(int(slot)-c.px(4), 1), bar, p.Accent)
	}
}

// short writes the end of an axis.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
