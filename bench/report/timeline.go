package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"velo/bench/report/chart"
)

// timeline: the rate of each worker and their sum, on true times.
func (b *builder) timeline() Section {
	s := Section{ID: "timeline", Title: "Timeline"}
	sum, workers := b.lines()
	if sum == nil && len(workers) == 0 {
		if len(b.run.Requests) > 0 {
			s.Text = "No request ran long enough for a rolling rate (from 0.25 s after its first chunk on), so there is no timeline."
		} else {
			s.Text = "The session holds no request, so there is no timeline."
		}
		return s
	}
	c := chart.Lines{X: chart.Axis{Label: "time since the first request", Unit: "s", ZeroBased: true}, Y: chart.Axis{Label: "decode rate", Unit: "tok/s", ZeroBased: true}}
	caption := "Rolling decode rate over windows of " + b.windowWords() + "."
	switch {
	case len(workers) > 1:
		thin := 1.0
		if len(workers) > 8 {
			thin = 0.75
		}
		for i, w := range workers {
			l := chart.Line{Points: w.points, Style: chart.Style{Width: thin, Index: 2 + i%6}}
			if len(workers) <= 4 {
				l.Name = fmt.Sprintf("worker %d", w.worker+1)
			}
			c.Lines = append(c.Lines, l)
		}
		if sum != nil {
			c.Lines = append(c.Lines, chart.Line{Name: "sum", Points: sum.points, Style: chart.Style{Width: 2, Index: 1}})
		}
		caption = fmt.Sprintf("Rolling rate of each of %s over windows of %s, and their sum (thick), on true times.", plural(len(workers), "worker"), b.windowWords())
	case len(workers) == 1:
		c.Lines = []chart.Line{{Points: workers[0].points, Style: chart.Style{Index: 1}}}
	default:
		c.Lines = []chart.Line{{Points: sum.points, Style: chart.Style{Index: 1}}}
	}
	if m := b.run.Rolling.Median; m.Ok() && len(workers) <= 1 {
		c.Markers = []chart.Marker{{Value: float64(m), Axis: chart.Y, Label: "median"}}
	}
	c.Bands = b.bands()
	if len(c.Bands) > 0 {
		caption += " Bands are the steps of the suite, by number; w is warm-up."
	}
	s.Charts = []NamedChart{{ID: "timeline", Title: "Decode rate over time", Caption: caption + b.estimateSentence(), Chart: c}}
	return s
}

// windowWords is the window of the rolling rate: "1 s", "250 ms".
func (b *builder) windowWords() string {
	scale, unit := timeScale(b.window.Seconds())
	return strconv.FormatFloat(b.window.Seconds()*scale, 'g', 4, 64) + " " + unit
}

type line struct {
	worker int
	points []chart.Point
}

// lines turns the timeline into lines of a chart, with x in seconds since the first request.
func (b *builder) lines() (sum *line, workers []line) {
	for _, t := range b.run.Timeline {
		l := line{worker: t.Worker}
		some := false
		for _, p := range t.Points {
			l.points = append(l.points, chart.Point{X: seconds(p.At - b.began), Y: p.Rate})
			some = some || !math.IsNaN(p.Rate)
		}
		switch {
		case !some:
		case t.Worker < 0:
			sum = &l
		default:
			workers = append(workers, l)
		}
	}
	slices.SortFunc(workers, func(a, b line) int { return a.worker - b.worker })
	return sum, workers
}

// bands shows when each step ran: from its release to the last that is known of its requests.
func (b *builder) bands() []chart.Band {
	last := map[int]time.Duration{}
	for i := range b.run.Requests {
		q := &b.run.Requests[i]
		if n := len(q.Arrivals); n > 0 && q.Arrivals[n-1].At > last[q.Step] {
			last[q.Step] = q.Arrivals[n-1].At
		}
	}
	for _, x := range b.s.Exchanges {
		if x.End != nil && x.End.End > last[x.Request.Step] {
			last[x.Request.Step] = x.End.End
		}
	}
	var bands []chart.Band
	for _, st := range b.s.Steps {
		end, ok := last[st.Number]
		if !ok || end <= st.Released {
			continue
		}
		band := chart.Band{X0: seconds(st.Released - b.began), X1: seconds(end - b.began), Label: fmt.Sprint(st.Index + 1), Color: chart.Light.Muted}
		switch {
		case st.Warmup:
			band.Label = "w"
		case b.place(st.Index)%2 == 0:
			band.Color = chart.Light.Accent
		default:
			band.Color = chart.Light.Series[2]
		}
		bands = append(bands, band)
	}
	const most = 400 // beyond this they are one grey
	if len(bands) > most {
		return nil
	}
	return bands
}

// place is the place of a suite's step among those that ran.
func (b *builder) place(index int) int {
	for i := range b.run.Steps {
		if b.run.Steps[i].Index == index {
			return i
		}
	}
	return 0
}
