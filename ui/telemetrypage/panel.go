package telemetrypage

import (
	"math"
	"time"

	"fyne.io/fyne/v2"

	"velo/bench/measure"
	"velo/bench/otlp/stream"
	"velo/ui/look"
	"velo/ui/plot"
)

// How often what changes slowly is shown anew.
const (
	distributionsEvery = 500 * time.Millisecond
	listEvery          = 250 * time.Millisecond
	explorerEvery      = time.Second
)

// Measures of a panel, in units.
const (
	textLines  = 6
	plotHeight = 128
	tileWidth  = 96
)

// panel is one stream: its text, its numbers and its charts.
type panel struct {
	page   *Page
	view   *fyne.Container
	lamp   *look.Lamp
	title  *look.Text
	place  *look.Text
	record *look.PushButton
	hold   *look.PushButton
	text   *textWindow

	rate, median, ttft, gap, tokens, prompt, total *look.Tile
	timeline, rates, gaps                          *plot.View

	key       stream.Key
	away      bool // scrolled out of view: it need not be drawn
	has       bool
	recording string // of this stream alone, that runs
	wide      int    // columns of the text, as the UI thread last knew them

	frozen            *stream.Panel // of Prepare, as the next ones: what a stream that is paused alone shows
	drawn             stream.Key
	last              int  // tokens that were drawn
	still             bool // and the stream had ended
	line              plot.Timeline
	rateBars, gapBars histogram
}

func newPanel(g *Page) *panel {
	v := &panel{page: g, wide: 80}
	v.lamp = look.NewLamp(0)
	v.title = look.NewText("").Bold().Fixed(160)
	v.place = look.NewText("").Sized(look.Small).In(look.Muted).Fixed(160)
	v.record = look.Button("Record", v.press)
	v.hold = look.Button("Hold", func() { v.with(g.Hold) })
	tile := func(label string) *look.Tile { return look.NewTile(label).Wide(tileWidth).Notes(0) }
	v.rate, v.median, v.ttft, v.gap = tile("Rate now"), tile("Decode rate"), tile("TTFT"), tile("Longest gap")
	v.tokens, v.prompt, v.total = tile("Tokens"), tile("Prompt"), tile("E2E")
	v.text = newTextWindow(textLines)
	chart := func(least float32) *plot.View {
		c := plot.NewView(fyne.NewSize(least, plotHeight))
		c.OnSize = g.drawAgain
		return c
	}
	v.timeline, v.rates, v.gaps = chart(192), chart(64), chart(64)
	v.view = look.Rows(look.Step,
		look.Trailing(look.Gap, look.Rows(0, v.title, v.place), v.lamp.Container),
		look.WrapLeft(look.Step, v.record, v.hold, look.Button("Clear stream", func() { v.with(g.ClearStream) }),
			look.Button("Raw records", func() { v.with(g.RecordsOf) })),
		look.Flow(look.Step, tileWidth, v.rate, v.median, v.ttft, v.gap, v.tokens, v.prompt, v.total),
		look.Panel(look.OnSurface, look.Inset(look.Half, look.Step, look.Half, look.Step, v.text.view)),
		look.Columns(look.Gap, []float32{3, 1, 1}, v.timeline, v.rates, v.gaps), look.Rule())
	v.view.Hide()
	return v
}

// with does something with the stream that is shown.
func (v *panel) with(f func(stream.Key)) {
	if v.has {
		f(v.key)
	}
}

func (v *panel) press() {
	switch {
	case v.recording != "":
		v.page.Stop(v.recording)
	case v.has:
		v.page.Record(v.key)
	}
}

// prepare draws a stream, off the UI thread; figures and distributions tell whether the numbers and the
// histograms are due: what changes faster cannot be read.
func (v *panel) prepare(s *stream.Panel, figures, distributions bool, p look.Palette) (show func()) {
	if s == nil {
		v.frozen = nil
		return func() { v.has = false }
	}
	switch held := v.page.holds(s.Key); {
	case !held:
		v.frozen = nil
	case v.frozen == nil || v.frozen.Key != s.Key:
		v.frozen = s
	default:
		s = v.frozen
	}
	if v.away && v.has {
		return func() { v.key = s.Key }
	}
	other := s.Key != v.drawn
	if other {
		v.drawn = s.Key
		v.line.Reset()
	}
	still := s.State != stream.Running && s.State != stream.Waiting
	if !other && still && v.still && s.Tokens == v.last && !v.page.whole {
		return func() { v.key, v.has = s.Key, true }
	}
	v.still, v.last = still, s.Tokens
	figures = figures || other || still
	lines := tail(s.Text, v.wide, textLines)
	live := s.Live
	now := write(measure.PerSec, live.Rate, s.Source.Mark())
	middle := write(measure.PerSec, live.Median, s.Source.Mark())
	turnLine := false
	if img, scale := v.timeline.Back(); img != nil {
		r := plot.Rates{Sum: live.Sum, Median: math.NaN(), Now: math.NaN(), Label: now.value, Middle: "median " + middle.value}
		if live.Median.Ok() {
			r.Median = float64(live.Median)
		}
		if live.Rate.Ok() && len(live.Sum) > 0 && s.State == stream.Running {
			r.Now = live.Sum[len(live.Sum)-1].Rate
		}
		v.line.Draw(img, scale, p, r)
		turnLine = true
	}
	turnRates, turnGaps := false, false
	if distributions || other || still {
		values := make([]float64, len(s.Request.Rolling.Samples))
		for i, x := range s.Request.Rolling.Samples {
			values[i] = x.Rate
		}
		turnRates = v.bars(v.rates, &v.rateBars, p, "Rates", "tok/s", measure.HistogramOf(values, nil, 0, 0), 1)
		turnGaps = v.bars(v.gaps, &v.gapBars, p, "Gaps", "ms", measure.HistogramOf(s.Request.ICL, nil, 0, 0), 1e3)
	}
	return func() {
		v.key, v.has = s.Key, true
		v.wide = v.text.columns()
		v.text.show(lines)
		for _, c := range []struct {
			turn bool
			view *plot.View
		}{{turnLine, v.timeline}, {turnRates, v.rates}, {turnGaps, v.gaps}} {
			if c.turn {
				c.view.Turn()
			}
		}
		if !figures {
			return
		}
		title := at(s.Model, s.Topology)
		if title == "" {
			title = s.Service
		}
		v.title.Set(title)
		v.place.Set(place(&s.Summary))
		v.lamp.Set(streamTone(s.State), condition(&s.Summary))
		mark := s.Source.Mark()
		put := func(t *look.Tile, f figure) { t.Set(f.value, f.unit, f.mark, "", look.Plain) }
		put(v.rate, now)
		put(v.median, write(measure.PerSec, s.Rate, mark))
		put(v.ttft, write(measure.Seconds, s.TTFT, ""))
		put(v.gap, write(measure.Seconds, s.MaxGap, ""))
		put(v.tokens, figure{group(s.Tokens), "", mark})
		put(v.prompt, write(measure.Tokens, s.Prompt, measure.Server.Mark()))
		put(v.total, write(measure.Seconds, s.E2E, ""))
	}
}

func (v *panel) bars(view *plot.View, d *histogram, p look.Palette, title, unit string, h measure.Histogram, factor float64) bool {
	img, scale := view.Back()
	if img == nil {
		return false
	}
	d.draw(img, scale, p, title, unit, h, factor, "Not enough yet")
	return true
}

// settle shows or hides the panel, says whether its stream is recorded, and tells whether it came or went.
func (v *panel) settle(recorded map[stream.Key]string) bool {
	v.recording = recorded[v.key]
	text := "Record"
	if v.recording != "" {
		text = "Stop recording"
	}
	hold := "Hold"
	if v.page.holds(v.key) {
		hold = "Follow"
	}
	if v.record.Text != text || v.hold.Text != hold {
		v.record.SetText(text)
		v.hold.SetText(hold)
		v.view.Refresh()
	}
	return showIf(v.view, v.has)
}
