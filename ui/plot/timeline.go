package plot

import (
	"image"
	"image/color"
	"math"
	"sort"

	"velo/bench/measure"
	"velo/ui/look"
)

// Rates is what a Timeline shows: rates over session time.
type Rates struct {
	Sum     []measure.RollingSample   // of all streams
	Workers [][]measure.RollingSample // of each; drawn where there is more than one
	Median  float64                   // of Sum; NaN: none
	Now     float64                   // the latest; NaN: none
	Label   string                    // of the latest, at the end of the line: "123"
	Middle  string                    // of the median: "median 120"
}

// Timeline draws decode rates over time. It keeps its axes between drawings: they grow in steps, and
// shrink only when Reset is called between runs.
type Timeline struct {
	x, y Axis
	r    Raster
}

// Reset forgets the axes.
func (t *Timeline) Reset() { t.x, t.y = Axis{}, Axis{} }

// Tops are the ends of the axes, in seconds and tokens/s.
func (t *Timeline) Tops() (seconds, rate float64) { return t.x.Top, t.y.Top }

// Draw draws onto an image; scale is pixels a unit.
func (t *Timeline) Draw(img *image.RGBA, scale float64, p look.Palette, d Rates) {
	t.r.On(img)
	r := &t.r
	r.Clear(p.Background)
	px := func(units float64) int { return int(units*scale + 0.5) }
	small := TypeOf(false, look.Small*scale)
	digits := TypeOf(true, look.Small*scale)

	t.x.steps = seconds
	t.x.Reach(1)
	t.y.Reach(1)
	for _, s := range d.Sum {
		t.x.Reach(s.At.Seconds())
		t.y.Reach(s.Rate)
	}
	for _, w := range d.Workers {
		for _, s := range w {
			t.y.Reach(s.Rate)
		}
	}

	left, right, top, bottom := px(56), px(104), px(24), px(24)
	w, h := r.w-left-right, r.h-top-bottom
	if w < px(40) || h < px(24) {
		return
	}
	hair := max(px(1), 1)
	X := func(v float64) float32 { return float32(left) + float32(v/t.x.Top)*float32(w) }
	Y := func(v float64) float32 { return float32(top+h) - float32(v/t.y.Top)*float32(h) }

	r.Text(small, "tok/s", 0, 0, p.Muted)
	for _, v := range t.y.Ticks(max(h/px(40), 1)) {
		y := int(Y(v))
		r.Dash(left, left+w, y, hair, w, 0, p.Grid)
		r.TextRight(digits, number(v), left-px(8), y-digits.Height/2, p.Muted)
	}
	at, text := timeTicks(t.x.Top, max(w/px(88), 1))
	for i, v := range at {
		x := int(X(v))
		r.Rect(x, top+h, hair, px(4), p.Muted)
		tw := digits.Width(text[i])
		r.Text(digits, text[i], min(x-tw/2, r.w-tw), top+h+px(6), p.Muted)
	}

	labels := make([]label, 0, 8)
	if len(d.Workers) > 1 {
		for i, points := range d.Workers {
			c := p.Series[i%len(p.Series)]
			c.A = 0x99
			t.line(points, X, Y, float32(scale), c)
			if len(d.Workers) <= 5 && len(points) > 0 {
				labels = append(labels, label{Y(points[len(points)-1].Rate), workerName(i), p.Series[i%len(p.Series)]})
			}
		}
	}
	if !math.IsNaN(d.Median) {
		y := int(Y(d.Median))
		r.Dash(left, left+w, y, hair, px(6), px(4), p.Muted)
		labels = append(labels, label{float32(y), d.Middle, p.Muted})
	}
	t.line(d.Sum, X, Y, float32(1.5*scale), p.Accent)
	if !math.IsNaN(d.Now) {
		labels = append(labels, label{Y(d.Now), d.Label, p.Accent})
	}
	for _, l := range spread(labels, float32(small.Height), float32(top), float32(top+h)) {
		r.Text(small, l.text, left+w+px(8), int(l.y)-small.Height/2, l.c)
	}
}

func (t *Timeline) line(points []measure.RollingSample, X, Y func(float64) float32, width float32, c color.NRGBA) {
	t.r.Line(len(points), func(i int) (float32, float32) {
		s := points[i]
		return X(s.At.Seconds()), Y(s.Rate)
	}, width, c)
}

func workerName(i int) string { return "worker " + number(float64(i+1)) }

// label is a text beside the end of a line; y is its middle.
type label struct {
	y    float32
	text string
	c    color.NRGBA
}

// spread moves labels apart so that none covers another, keeping their order.
func spread(l []label, height, top, bottom float32) []label {
	sort.SliceStable(l, func(i, j int) bool { return l[i].y < l[j].y })
	for i := range l {
		l[i].y = max(l[i].y, top)
		if i > 0 {
			l[i].y = max(l[i].y, l[i-1].y+height)
		}
	}
	limit := bottom
	for i := len(l) - 1; i >= 0; i-- {
		l[i].y = min(l[i].y, limit)
		limit = l[i].y - height
	}
	return l
}
