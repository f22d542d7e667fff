package series

import (
	"math"

	"velo/bench/measure"
)

// Percentile is one percentile of what was observed, in the metric's unit, as far as the buckets tell it.
type Percentile struct {
	Value  measure.Num    // Missing = nothing is known
	Bound  string         // "" = Value is the percentile; "≤" or "≥" = no more is known than that it is on this side of Value
	Source measure.Source // Estimate: from buckets; Server: a summary's own, and bounds, which hold
}

// quantile tells a quantile from the buckets, by linear interpolation within the one that it lies in; a
// summary's own where it has it. Edges of buckets are clipped to the lowest and highest value where
// these are given. Of a bucket that is open on the side of its edge, and of one that holds all values and
// whose upper edge is not clipped, only the edge is told: where in it the values lie nobody knows.
func (d *distribution) quantile(q float64) Percentile {
	for _, x := range d.quantiles {
		if x.Q == q {
			return Percentile{Value: measure.Num(x.Value), Source: measure.Server}
		}
	}
	unknown := Percentile{Value: measure.Missing}
	if d.count == 0 {
		return unknown
	}
	rank := q * float64(d.count)
	seen := 0.0
	reached := func(n uint64) bool {
		if n == 0 || seen+float64(n) < rank {
			seen += float64(n)
			return false
		}
		return true
	}
	within := func(n uint64, low, high float64) Percentile {
		return Percentile{Value: measure.Num(low + (high-low)*(rank-seen)/float64(n)), Source: measure.Estimate}
	}
	if d.counts != nil {
		for i, n := range d.counts {
			if reached(n) {
				low, high, known := d.edges(i)
				switch {
				case !math.IsInf(high, 0) && (math.IsInf(low, 0) || n == d.count && !known):
					return Percentile{measure.Num(high), "≤", measure.Server}
				case math.IsInf(low, 0):
					return unknown
				case math.IsInf(high, 0):
					return Percentile{measure.Num(low), "≥", measure.Server}
				}
				return within(n, low, high)
			}
		}
		return unknown
	}
	if !d.exponential {
		return unknown
	}
	base := math.Pow(2, math.Pow(2, -float64(d.scale)))
	for i := len(d.negative.counts) - 1; i >= 0; i-- {
		if n := d.negative.counts[i]; reached(n) {
			at := float64(d.negative.offset + i)
			low, high, _ := d.clip(-math.Pow(base, at+1), -math.Pow(base, at))
			return within(n, low, high)
		}
	}
	if reached(d.zero) {
		return within(d.zero, 0, 0)
	}
	for i, n := range d.positive.counts {
		if reached(n) {
			at := float64(d.positive.offset + i)
			low, high, _ := d.clip(math.Pow(base, at), math.Pow(base, at+1))
			return within(n, low, high)
		}
	}
	return unknown
}

// edges are those of a bucket with bounds, clipped, ±Inf where it is open; known tells whether the upper
// one is that of the values. What starts below a bound above zero starts at zero, as times and sizes do.
func (d *distribution) edges(i int) (low, high float64, known bool) {
	low, high = math.Inf(-1), math.Inf(1)
	if i > 0 {
		low = d.bounds[i-1]
	}
	if i < len(d.bounds) {
		high = d.bounds[i]
	}
	low, high, known = d.clip(low, high)
	if i == 0 && math.IsInf(low, 0) && !math.IsInf(high, 0) && high > 0 && !(d.lowest < 0) {
		low = 0
	}
	return low, high, known
}

// clip narrows the edges of a bucket that is not empty to the lowest and the highest value, and tells
// whether the latter is in it. Values that contradict the bucket say nothing.
func (d *distribution) clip(low, high float64) (l, h float64, known bool) {
	l, h = low, high
	if d.lowest <= high {
		l = max(low, d.lowest)
	}
	if d.highest >= low && d.highest <= high && !math.IsInf(d.highest, 0) {
		h, known = d.highest, true
	}
	return l, h, known
}
