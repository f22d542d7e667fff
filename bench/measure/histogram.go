package measure

import (
	"math"
)

// Histogram bins values into bins of equal width; the last bin takes everything above cap.
type Histogram struct {
	Edges  []float64 // n+1
	Counts []float64 // n
	Capped int       // values above the last edge, put into the last bin
}

// The bounds of a histogram's number of bins.
const (
	fewestBins = 4
	mostBins   = 200
)

// HistogramOf bins values (weights may be nil: each counts once). width 0 chooses the number of bins
// by the Freedman–Diaconis rule, at least 4 and at most 200; else the edges are multiples of width,
// or of a multiple of it where there would be too many. cap is the greatest value with a bin of its
// own; 0 = the greatest there is. What is not finite, or beyond 1e300, is left out.
func HistogramOf(values, weights []float64, width, cap float64) Histogram {
	type pair struct{ v, w float64 }
	var all []pair
	for i, v := range values {
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		if math.Abs(v) < 1e300 && w > 0 && w < 1e300 {
			all = append(all, pair{v, w})
		}
	}
	if len(all) == 0 {
		return Histogram{}
	}
	sorted := make([]float64, len(all))
	n, lo, hi := 0.0, all[0].v, all[0].v
	for i, p := range all {
		sorted[i] = p.v
		n += p.w
		lo, hi = min(lo, p.v), max(hi, p.v)
	}
	if cap > lo && cap < hi {
		hi = cap
	}
	if !(width > 0) || math.IsInf(width, 0) {
		var weight []float64
		if weights != nil {
			weight = make([]float64, len(all))
			for i, p := range all {
				weight[i] = p.w
			}
		}
		width = 2 * float64(WeightedQuantileOf(sorted, weight, 0.75)-WeightedQuantileOf(sorted, weight, 0.25)) / math.Cbrt(n)
		bins := float64(mostBins)
		if width > 0 {
			bins = math.Ceil((hi - lo) / width)
		}
		width = (hi - lo) / min(max(bins, fewestBins), mostBins)
		if hi-lo <= math.Abs(hi)*1e-9 { // all alike but for rounding: a bin around the value
			width = max(math.Abs(lo)/1000, 1e-9)
			lo -= width / 2
		}
	} else {
		for start := lo; ; width *= max(2, math.Ceil((hi-lo)/width/mostBins)) {
			lo = math.Floor(start/width) * width
			if !((hi-lo)/width > mostBins) {
				break
			}
		}
	}
	bins := int(min(max(math.Ceil((hi-lo)/width*(1-1e-12)), 1), mostBins))
	h := Histogram{Edges: make([]float64, bins+1), Counts: make([]float64, bins)}
	for i := range h.Edges {
		h.Edges[i] = lo + float64(i)*width
	}
	h.Edges[bins] = max(h.Edges[bins], hi)
	for _, p := range all {
		if p.v > h.Edges[bins] {
			h.Capped++
		}
		i := min(max(int(math.Floor(min((p.v-lo)/width, mostBins))), 0), bins-1)
		h.Counts[i] += p.w
	}
	return h
}
