package chart

import (
	"fmt"
	"math"

	gochart "github.com/wcharczuk/go-chart/v2"
)

// scale maps values to positions along one axis. It stands in for go-chart's
// ranges, whose logarithm starts at one and whose rounding is upwards, and
// carries the ticks.
type scale struct {
	min, max float64 // plottable, min < max; both > 0 when log
	log      bool
	domain   int     // length of the axis in units
	step     float64 // between ticks where the bounds were chosen for it, else 0
	ticks    []gochart.Tick
}

var (
	_ gochart.Range         = (*scale)(nil)
	_ gochart.TicksProvider = (*scale)(nil)
)

// farthest is how many lengths of the axis a place can lie outside of it.
const farthest = 1e9

// fraction is the place of v between min (0) and max (1).
func (s *scale) fraction(v float64) float64 {
	if s.log {
		if v <= 0 {
			return 0
		}
		lo, hi := math.Log10(s.min), math.Log10(s.max)
		return (math.Log10(v) - lo) / (hi - lo)
	}
	// Bounded, so that differences of places stay exact enough to clip by.
	return math.Max(-farthest, math.Min(farthest, (v-s.min)/(s.max-s.min)))
}

// Translate returns the distance of a value from the start of the axis in
// units, at most one length outside.
func (s *scale) Translate(v float64) int {
	f := math.Max(-1, math.Min(2, s.fraction(v)))
	return int(math.Round(f * float64(s.domain)))
}

func (s *scale) GetTicks(gochart.Renderer, gochart.Style, gochart.ValueFormatter) []gochart.Tick {
	return s.ticks
}

func (s *scale) GetMin() float64      { return s.min }
func (s *scale) GetMax() float64      { return s.max }
func (s *scale) SetMin(v float64)     { s.min = v }
func (s *scale) SetMax(v float64)     { s.max = v }
func (s *scale) GetDelta() float64    { return s.max - s.min }
func (s *scale) GetDomain() int       { return s.domain }
func (s *scale) SetDomain(domain int) { s.domain = domain }
func (s *scale) IsDescending() bool   { return false }
func (s *scale) IsZero() bool         { return false }
func (s *scale) String() string       { return fmt.Sprintf("scale [%g, %g]", s.min, s.max) }

// extent gathers the lowest and highest of the values that an axis can show.
type extent struct {
	lo, hi float64
	log    bool
	some   bool
}

func (e *extent) add(v float64) {
	if !places(v, e.log) {
		return
	}
	if !e.some {
		e.lo, e.hi, e.some = v, v, true
		return
	}
	e.lo, e.hi = math.Min(e.lo, v), math.Max(e.hi, v)
}

// fixed reports the bounds that the axis itself sets.
func (a Axis) fixed() (lo, hi float64, hasLo, hasHi bool) {
	lo, hi = a.Min, a.Max
	hasLo, hasHi = plottable(lo), plottable(hi)
	if hasLo && hasHi && lo >= hi {
		return 0, 0, false, false
	}
	if a.Log {
		hasLo, hasHi = hasLo && places(lo, true), hasHi && places(hi, true)
	}
	return lo, hi, hasLo, hasHi
}

// scale chooses the bounds of an axis that shows the extent e: on ticks about
// n steps apart, or, with n = 0, just around the data.
func (a Axis) scale(e extent, n int) *scale {
	lo, hi := e.lo, e.hi
	if !e.some {
		lo, hi = 0, 1
		if a.Log {
			lo, hi = 1, 10
		}
	}
	if a.ZeroBased && !a.Log {
		lo, hi = math.Min(lo, 0), math.Max(hi, 0)
	}
	fixedLo, fixedHi, hasLo, hasHi := a.fixed()
	if hasLo {
		lo = fixedLo
	}
	if hasHi {
		hi = fixedHi
	}
	lo, hi = apart(lo, hi, hasLo, hasHi, a.Log)
	s := &scale{min: lo, max: hi, log: a.Log}
	if n == 0 {
		return s
	}
	if a.Log {
		if !hasLo {
			s.min = powerBelow(lo)
		}
		if !hasHi {
			s.max = powerAbove(hi)
		}
		if s.min >= s.max {
			s.min, s.max = lo, hi
		}
		return s
	}
	// On a tick where that wastes little of the plot, else on a finer step:
	// a small picture has few ticks.
	s.step = niceStep(lo, hi, n)
	fine := math.Min(s.step, niceStep(lo, hi, max(n, 6)))
	outward := func(v float64, round func(float64) float64) float64 {
		if edge := round(v/s.step) * s.step; math.Abs(edge-v) <= 0.2*(hi-lo) {
			return edge
		}
		return round(v/fine) * fine
	}
	if !hasLo {
		s.min = outward(lo, math.Floor)
	}
	if !hasHi {
		s.max = outward(hi, math.Ceil)
	}
	return s
}

// apart widens a range without width, so that one value or equal values have
// an axis too. A fixed bound stays where it is.
func apart(lo, hi float64, hasLo, hasHi, log bool) (float64, float64) {
	// Closer than a few steps of a float64, positions would be noise.
	if width := hi - lo; width > narrowest && width > 1e-12*math.Max(math.Abs(lo), math.Abs(hi)) {
		return lo, hi
	}
	if log {
		switch {
		case hasLo:
			return lo, lo * 10
		case hasHi:
			return hi / 10, hi
		default:
			return lo / 2, lo * 2
		}
	}
	pad := math.Max(math.Abs(lo), math.Abs(hi)) / 10
	if pad < narrowest {
		pad = 0
	}
	switch {
	case hasLo:
		if pad == 0 {
			pad = 1
		}
		return lo, lo + pad
	case hasHi:
		if pad == 0 {
			pad = 1
		}
		return hi - pad, hi
	}
	if pad == 0 {
		if lo >= 0 {
			return 0, 1
		}
		pad = 1
	}
	return lo - pad, hi + pad
}

func powerBelow(v float64) float64 { return math.Pow10(int(math.Floor(math.Log10(v) + 1e-9))) }
func powerAbove(v float64) float64 { return math.Pow10(int(math.Ceil(math.Log10(v) - 1e-9))) }

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// narrowest is the least width of a linear axis and the least value on a
// logarithmic one: below, a float64 has too few digits left to divide.
const narrowest = 1e-305

// plottable reports whether an axis can hold v: a number, and so far from the
// ends of a float64 that differences and margins are numbers too.
func plottable(v float64) bool { return math.Abs(v) <= 1e305 }

// places reports whether v has a place on an axis.
func places(v float64, log bool) bool { return plottable(v) && (!log || v >= narrowest) }
