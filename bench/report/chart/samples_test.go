package chart

import (
	"fmt"
	"math"
	"math/rand"
)

// samples are charts as reports hold them, one and more of each type.
func samples() map[string]Chart {
	nan := math.NaN()
	rate := Axis{Label: "Rate", Unit: "tok/s", ZeroBased: true}
	time := Axis{Label: "Time", Unit: "s"}
	envelope := &Envelope{Name: "range"}
	for i := range 60 {
		x := float64(i) / 2
		envelope.X = append(envelope.X, x)
		envelope.Lo = append(envelope.Lo, 30+3*math.Sin(x))
		envelope.Hi = append(envelope.Hi, 55+4*math.Cos(x))
	}
	one := Lines{
		Title: "Decode rate", X: time, Y: rate, Envelope: envelope,
		Lines: []Line{{Name: "llama-3.1-8b", Points: stalled(1, 120, 42)}},
		Bands: []Band{
			{0, 12, Regime("prose"), "prose"}, {12, 21, Regime("code"), "code"}, {21, 30, Regime("reasoning"), "reasoning"},
		},
		Markers: []Marker{{Value: 43.1, Axis: Y, Label: "median 43.1"}},
	}
	workers := func(n int) Lines {
		c := Lines{Title: fmt.Sprintf("%d workers", n), X: time, Y: rate}
		for i := range n {
			c.Lines = append(c.Lines, Line{Name: fmt.Sprintf("worker %d", i+1), Points: stalled(int64(i), 80, 40+float64(i%3))})
		}
		return c
	}
	five := workers(5)
	five.Lines[2].Points[30].Y = nan
	five.Lines[3].Style = Style{Color: Light.Red, Dash: []float64{4, 2}, Width: 1}
	area := Lines{
		Title: "In flight", X: time, Y: Axis{Label: "Requests"},
		Lines: []Line{{Name: "in flight", Style: Style{Step: true, Fill: true}, Points: []Point{{0, 0}, {1, 4}, {2, 8}, {12, 3}, {13, 0}, {15, 0}}}},
	}
	logarithmic := Lines{
		Title: "TTFT by prompt length", X: Axis{Label: "Prompt", Unit: "tok", Log: true}, Y: Axis{Label: "TTFT", Unit: "ms", Log: true},
		Lines: []Line{{Name: "A"}, {Name: "B"}},
	}
	for x := 128.0; x < 140000; x *= 2 {
		logarithmic.Lines[0].Points = append(logarithmic.Lines[0].Points, Point{x, 20 + x*0.11})
		logarithmic.Lines[1].Points = append(logarithmic.Lines[1].Points, Point{x, 45 + x*0.06})
	}
	gaps := Histogram{
		Title: "Gaps between tokens", X: Axis{Label: "ITL", Unit: "ms"}, Y: Axis{Label: "Tokens"},
		Markers: []Marker{{Value: 22.6, Label: "p50 22.6 ms"}, {Value: 27.9, Label: "p90 27.9 ms"}, {Value: 31.8, Label: "p99 31.8 ms"}},
	}
	for i := range 41 {
		gaps.Edges = append(gaps.Edges, float64(i))
	}
	for i := range 40 {
		d := float64(i) - 23
		gaps.Counts = append(gaps.Counts, math.Round(1800*math.Exp(-d*d/32)))
	}
	counts := gaps
	counts.LogCounts, counts.Title = true, "Gaps between tokens, logarithmic"
	bars := Bars{
		Title: "Decode rate by regime", Y: Axis{Label: "Rate", Unit: "tok/s"},
		Labels: []string{"prose", "code", "mathematics", "structured", "reasoning", "creative writing"},
		Values: []float64{41.2, 55.7, 48.03, nan, 39.9, 37.25},
		Lo:     []float64{39, 52, 47, nan, 39, 34}, Hi: []float64{43, 59.5, 49.5, nan, 41, 39},
	}
	across := bars
	across.Horizontal = true
	change := Bars{
		Title: "Difference to baseline", Y: Axis{Label: "Change", Unit: "%"},
		Labels: []string{"TTFT", "ITL", "rate", "goodput"}, Values: []float64{-12.4, 3.1, -0.7, 8.8},
		Lo: []float64{-14, 1, -2, 6}, Hi: []float64{-10, 5, 0.6, 11},
	}
	changeAcross := change
	changeAcross.Horizontal = true
	return map[string]Chart{
		"lines": one, "five": five, "sixteen": workers(16), "area": area, "logarithmic": logarithmic,
		"histogram": gaps, "counts": counts, "bars": bars, "across": across, "change": change,
		"changeacross": changeAcross, "empty": Lines{Title: "Acceptance"},
	}
}

// stalled is a noisy rate over 30 s that stands still for a while.
func stalled(seed int64, n int, base float64) []Point {
	r := rand.New(rand.NewSource(seed))
	points := make([]Point, n)
	v := base
	for i := range points {
		v += r.NormFloat64()*1.2 + (base-v)*0.05
		points[i] = Point{float64(i) * 30 / float64(n), v}
		if i > n/2 && i < n/2+n/16 {
			points[i].Y = 0
		}
	}
	return points
}

// zigzag alternates from sample to sample, the worst a line can do.
func zigzag(n int) []Point {
	points := make([]Point, n)
	for i := range points {
		points[i] = Point{float64(i), float64(i%2)*90 + 5*math.Sin(float64(i)/500)}
	}
	return points
}
