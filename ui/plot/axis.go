package plot

import (
	"math"
	"strconv"
)

// Axis is a zero-based axis that grows in steps and never shrinks: it does not move while the eye
// follows. The zero value is an axis that has seen nothing.
type Axis struct {
	Top   float64
	steps []float64 // allowed tops; nil: 1, 2, 5 times a power of ten, and between
}

// seconds are the tops of a time axis.
var seconds = []float64{10, 20, 30, 60, 120, 180, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400}

// Reach grows the axis so that v lies on it, and tells whether it grew.
func (a *Axis) Reach(v float64) bool {
	if math.IsNaN(v) || math.IsInf(v, 0) || v <= a.Top && a.Top > 0 {
		return false
	}
	a.Top = a.above(v)
	return true
}

func (a *Axis) above(v float64) float64 {
	for _, s := range a.steps {
		if s >= v {
			return s
		}
	}
	if v <= 0 {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 1.5, 2, 3, 4, 5, 6, 8, 10} {
		if m*p >= v*(1-1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// Ticks returns nice values from 0 to the top, at most n+1 of them; the top is one where a nice step
// leads to it.
func (a *Axis) Ticks(n int) []float64 {
	if a.Top <= 0 || n < 1 {
		return []float64{0}
	}
	step := 0.0
	p := math.Pow(10, math.Floor(math.Log10(a.Top/float64(n))))
	for _, m := range []float64{1, 2, 5, 10, 20, 50, 100} {
		parts := a.Top / (m * p)
		if parts > float64(n)*(1+1e-9) {
			continue
		}
		if step == 0 {
			step = m * p
		}
		if math.Abs(parts-math.Round(parts)) < 1e-6 && parts > 0.5 {
			step = m * p
			break
		}
	}
	var out []float64
	for i := 0; ; i++ {
		v := float64(i) * step
		if v > a.Top*(1+1e-9) {
			return out
		}
		out = append(out, v)
	}
}

// timeTicks are those of a time axis: on seconds, minutes or hours, and written in them.
func timeTicks(top float64, n int) (at []float64, text []string) {
	step := 86400.0
	for _, s := range []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800} {
		if top/s <= float64(n) {
			step = s
			break
		}
	}
	for v := 0.0; v <= top*(1+1e-9); v += step {
		at = append(at, v)
		switch {
		case step >= 3600:
			text = append(text, strconv.FormatFloat(v/3600, 'f', -1, 64)+" h")
		case step >= 60:
			text = append(text, strconv.FormatFloat(v/60, 'f', -1, 64)+" min")
		default:
			text = append(text, strconv.FormatFloat(v, 'f', -1, 64)+" s")
		}
	}
	return at, text
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
