package reportpage

import (
	"image"
	"image/color"
	"image/draw"

	"fyne.io/fyne/v2"

	"velo/bench/report/chart"
	"velo/ui/look"
	"velo/ui/plot"
	"velo/ui/thread"
)

// chartView shows a chart of the report at the pixels it covers. It is drawn off the UI thread when
// it first comes into view, and again when its size or the theme changes.
type chartView struct {
	*plot.View
	chart  chart.Chart
	thread *thread.Thread
	busy   bool // a drawing is under way
	again  bool // and is out of date
}

// chartHeight is that of every chart, in units: one on top of the other they read as one figure.
const chartHeight = 264

func newChartView(c chart.Chart, t *thread.Thread) *chartView {
	v := &chartView{View: plot.NewView(fyne.NewSize(240, chartHeight)), chart: c, thread: t}
	v.OnSize = v.draw
	return v
}

func (v *chartView) draw() {
	if v.busy {
		v.again = true
		return
	}
	img, scale := v.Back()
	if img == nil {
		return
	}
	v.busy = true
	p := palette(look.Now())
	v.thread.Work(func() func() {
		err := drawChart(img, v.chart, scale, p)
		return func() {
			v.busy = false
			if err == nil {
				v.Turn()
			}
			if v.again {
				v.again = false
				v.draw()
			}
		}
	})
}

// drawChart fills the image with the chart. Charts have whole logical sizes, screens any number of
// pixels: what is left over at the right and below is background.
func drawChart(img *image.RGBA, c chart.Chart, scale float64, p chart.Palette) error {
	w, h := int(float64(img.Rect.Dx())/scale), int(float64(img.Rect.Dy())/scale)
	drawn, err := chart.Image(c, max(w, 1), max(h, 1), scale, p)
	if err != nil {
		return err
	}
	draw.Draw(img, img.Rect, image.NewUniform(p.Background), image.Point{}, draw.Src)
	draw.Draw(img, img.Rect, drawn, image.Point{}, draw.Src)
	return nil
}

// palette gives charts the colours of the window.
func palette(p look.Palette) chart.Palette {
	c := func(n color.NRGBA) color.RGBA { return color.RGBA{R: n.R, G: n.G, B: n.B, A: 0xff} }
	out := chart.Palette{Background: c(p.Background), Text: c(p.Text), Muted: c(p.Muted), Grid: c(p.Grid),
		Accent: c(p.Accent), Amber: c(p.Amber), Red: c(p.Red)}
	for _, s := range p.Series {
		out.Series = append(out.Series, c(s))
	}
	return out
}
