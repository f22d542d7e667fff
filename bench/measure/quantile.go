package measure

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Quantile is one percentile of a distribution: by linear interpolation between order statistics
// (Hyndman and Fan's type 7); a value that counts w times stands w times in the order.
type Quantile struct {
	Q         float64 // 0.5, 0.9, 0.95, 0.99, 0.999
	Value     Num     // where it is not supported: the greatest value (the least, for Q < 0.5)
	Supported bool    // n ≥ 1/(1 − q); if not, the value shown is "max of n"
	Interval  Interval
}

// orders are the quantiles that every distribution gives.
var orders = []float64{0.5, 0.9, 0.95, 0.99, 0.999}

// rank splits the place of a quantile among n order statistics, (n − 1)·q, into the lower one's
// index and the weight of the upper one. A weight that differs from a whole number by rounding only
// is that whole number: with a zero weight the upper one, which may be +∞, must not be touched.
func rank(n, q float64) (float64, float64) {
	h := (n - 1) * q
	k := math.Floor(h)
	f := h - k
	if f > 1-1e-9 {
		k, f = k+1, 0
	} else if f < 1e-9 {
		f = 0
	}
	return k, f
}

// interpolate is the value a share f of the way from a to b, a ≤ b.
func interpolate(a, b, f float64) float64 {
	if f == 0 || a == b {
		return a
	}
	return min(b, a+f*(b-a))
}

// quantile is the type 7 quantile of sorted values, NaN for none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	k, f := rank(float64(len(sorted)), q)
	i := int(k)
	return interpolate(sorted[i], sorted[min(i+1, len(sorted)-1)], f)
}

// weightedQuantile is the quantile of sorted values of which the i-th stands cum[i] − cum[i−1]
// times; cum nil = each once.
func weightedQuantile(sorted, cum []float64, q float64) float64 {
	if cum == nil {
		return quantile(sorted, q)
	}
	if len(sorted) == 0 {
		return math.NaN()
	}
	k, f := rank(cum[len(cum)-1], q)
	at := func(k float64) float64 { // the k-th of the repeated values, from 0
		i := sort.Search(len(cum), func(i int) bool { return cum[i] > k })
		return sorted[min(i, len(sorted)-1)]
	}
	return interpolate(at(k), at(k+1), f)
}

// supported tells whether n observations are enough for a quantile: at least one is expected beyond
// it.
func supported(n float64, q float64) bool { return n*min(q, 1-q) >= 1-1e-9 }

// median is the middle of values in any order; it leaves them as they are.
func median(values []float64) Num {
	v := append([]float64(nil), values...)
	sortFloats(v)
	return Num(quantile(v, 0.5))
}

// QuantileOf is the quantile at q of sorted values (Hyndman–Fan 7); Missing where there are none.
func QuantileOf(sorted []float64, q float64) Num {
	if len(sorted) == 0 {
		return Missing
	}
	return Num(quantile(sorted, q))
}

// WeightedQuantileOf is the quantile at q of values of which the i-th stands weights[i] times; weights
// nil = each once. The values need no order; Missing where there are none.
func WeightedQuantileOf(values, weights []float64, q float64) Num {
	order := make([]int, 0, len(values))
	for i := range values {
		if weights == nil || weights[i] > 0 {
			order = append(order, i)
		}
	}
	if len(order) == 0 {
		return Missing
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	sorted, cum, sum := make([]float64, len(order)), make([]float64, len(order)), 0.0
	for i, k := range order {
		w := 1.0
		if weights != nil {
			w = weights[k]
		}
		sum += w
		sorted[i], cum[i] = values[k], sum
	}
	return Num(weightedQuantile(sorted, cum, q))
}
