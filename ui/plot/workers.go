package plot

import (
	"image"
	"image/color"
	"strconv"

	"velo/bench/measure"
	"velo/ui/look"
)

// Worker is one row of Workers; its numbers are already written, with their units in the head.
type Worker struct {
	Number int    // from 1
	State  string // as measure.WorkerSnapshot.State
	Rate   string // tok/s
	Tokens string
	TTFT   string // with its unit
	Points []measure.RollingSample
}

// Workers draws a row for each worker, in as many columns as fit.
type Workers struct {
	y    Axis // of the small lines
	r    Raster
	last image.Point
}

// Sizes of a row, in units.
const (
	rowHeight   = 22
	columnWidth = 332
	columnGap   = 24
)

// Reset forgets the axis, between runs.
func (w *Workers) Reset() { w.y = Axis{} }

// across is how many columns fit a width in units.
func across(width float32) int { return max(int((width+columnGap)/(columnWidth+columnGap)), 1) }

// HeightFor is the height in units that n workers need in a width.
func HeightFor(n int, width float32) float32 {
	if n == 0 {
		return 0
	}
	down := (n + across(width) - 1) / across(width)
	return float32(down+1) * rowHeight
}

// Draw draws onto an image; scale is pixels a unit.
func (w *Workers) Draw(img *image.RGBA, scale float64, p look.Palette, rows []Worker) {
	w.r.On(img)
	r := &w.r
	r.Clear(p.Background)
	px := func(units float64) int { return int(units*scale + 0.5) }
	mono, small := TypeOf(true, look.Small*scale), TypeOf(false, look.Small*scale)
	for _, row := range rows {
		for _, s := range row.Points {
			w.y.Reach(s.Rate)
		}
	}
	n := across(float32(float64(r.w) / scale))
	down := (len(rows) + n - 1) / max(n, 1)
	pad := (px(rowHeight) - mono.Height) / 2
	for col := 0; col < n && col*down < len(rows); col++ {
		x := col * px(columnWidth+columnGap)
		c := columnsAt(x, px)
		r.TextRight(small, "worker", c.number+px(14), pad, p.Muted)
		r.Text(small, "state", c.state, pad, p.Muted)
		r.TextRight(small, "tok/s", c.rate, pad, p.Muted)
		r.TextRight(small, "tokens", c.tokens, pad, p.Muted)
		r.TextRight(small, "TTFT", c.ttft, pad, p.Muted)
		r.Rect(x, px(rowHeight)-1, px(columnWidth), 1, p.Line)
	}
	for i, row := range rows {
		x := i / max(down, 1) * px(columnWidth+columnGap)
		y := (i%max(down, 1) + 1) * px(rowHeight)
		c := columnsAt(x, px)
		r.TextRight(mono, strconv.Itoa(row.Number), c.number, y+pad, p.Muted)
		ink := stateColor(p, row.State)
		r.Rect(c.state-px(12), y+px(rowHeight/2)-px(3), px(6), px(6), ink)
		r.Text(small, row.State, c.state, y+pad, p.Text)
		r.TextRight(mono, row.Rate, c.rate, y+pad, p.Text)
		r.TextRight(mono, row.Tokens, c.tokens, y+pad, p.Text)
		r.TextRight(mono, row.TTFT, c.ttft, y+pad, p.Text)
		w.spark(row.Points, c.spark, y+px(3), x+px(columnWidth)-c.spark, px(rowHeight)-px(6), float32(scale), p.Accent)
	}
}

type columns struct{ number, state, rate, tokens, ttft, spark int }

func columnsAt(x int, px func(float64) int) columns {
	return columns{x + px(26), x + px(46), x + px(146), x + px(200), x + px(264), x + px(276)}
}

func stateColor(p look.Palette, state string) color.NRGBA {
	switch state {
	case "decode":
		return p.Accent
	case "prefill":
		return p.Amber
	case "failed":
		return p.Red
	case "done":
		return p.Green
	}
	return p.Faint
}

// spark draws the latest rates of a worker, without axes.
func (w *Workers) spark(points []measure.RollingSample, x, y, width, height int, scale float32, c color.NRGBA) {
	if len(points) < 2 || width < 4 || w.y.Top <= 0 {
		return
	}
	first, last := points[0].At.Seconds(), points[len(points)-1].At.Seconds()
	if last <= first {
		return
	}
	w.r.Line(len(points), func(i int) (float32, float32) {
		s := points[i]
		return float32(x) + float32((s.At.Seconds()-first)/(last-first))*float32(width-1),
			float32(y+height) - float32(s.Rate/w.y.Top)*float32(height)
	}, scale, c)
}
