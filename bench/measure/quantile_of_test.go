package measure

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A value that stands w times counts as w values do.
func TestWeightedQuantileOf(t *testing.T) {
	if WeightedQuantileOf(nil, nil, 0.5).Ok() || WeightedQuantileOf([]float64{1}, []float64{0}, 0.5).Ok() || QuantileOf(nil, 0.5).Ok() {
		t.Error("nothing has a quantile")
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "n")
		var values, weights, all []float64
		for range n {
			v, w := float64(rapid.IntRange(0, 50).Draw(t, "value")), rapid.IntRange(1, 5).Draw(t, "weight")
			values, weights = append(values, v), append(weights, float64(w))
			for range w {
				all = append(all, v)
			}
		}
		slices.Sort(all)
		q := rapid.SampledFrom([]float64{0, 0.1, 0.25, 0.5, 0.9, 1}).Draw(t, "q")
		got, want := WeightedQuantileOf(values, weights, q), QuantileOf(all, q)
		if d := float64(got - want); d > 1e-9 || d < -1e-9 {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}
