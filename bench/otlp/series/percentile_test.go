package series

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"velo/bench/measure"
	"velo/bench/otlp/decode"
)

// told writes a percentile: ~ for an estimate, ≤ and ≥ for a bound, - for what is not known.
func told(p Percentile) string {
	if !p.Value.Ok() {
		return "-"
	}
	mark := p.Bound
	if p.Source == measure.Estimate {
		mark += "~"
	}
	return mark + fmt.Sprintf("%.4g", float64(p.Value))
}

// defaults are the bounds that the SDKs take where nobody chooses any.
var defaults = []float64{0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10000}

// observed is the point of a histogram that took these values; without them where extremes is false.
func observed(bounds []float64, temp decode.Temporality, at uint64, extremes bool, values ...float64) decode.Point {
	p := decode.Point{Name: "h", Kind: decode.Histogram, Temporality: temp, Start: second, Time: at * second, Bounds: bounds, Buckets: make([]uint64, len(bounds)+1),
		Min: math.NaN(), Max: math.NaN()}
	for _, v := range values {
		i, _ := slices.BinarySearch(bounds, v) // the upper bound belongs to the bucket
		p.Buckets[i]++
		p.Count++
		p.Sum += v
	}
	if extremes && len(values) > 0 {
		p.Min, p.Max = slices.Min(values), slices.Max(values)
	}
	return p
}

func TestPercentilesOfBuckets(t *testing.T) {
	twenty := slices.Repeat([]float64{0.1}, 20)
	cumulative := func(extremes bool, first, then []float64) []decode.Point {
		return []decode.Point{observed(defaults, decode.Cumulative, 10, extremes, first...), observed(defaults, decode.Cumulative, 20, extremes, append(slices.Clone(first), then...)...)}
	}
	delta := func(bounds []float64, extremes bool, values ...float64) []decode.Point {
		return []decode.Point{observed(bounds, decode.Delta, 10, extremes, values...)}
	}
	contradicts := delta(defaults, true, twenty...)
	contradicts[0].Min, contradicts[0].Max = 7, 9
	for _, c := range []struct {
		name     string
		points   []decode.Point
		p50, p99 string
	}{
		{"twenty of 0.1 s in the bucket of 5 s", delta(defaults, true, twenty...), "~0.1", "~0.1"},
		{"cumulative", cumulative(true, twenty[:5], twenty), "~0.1", "~0.1"},
		{"no extremes", delta(defaults, false, twenty...), "≤5", "≤5"},
		{"cumulative, the greatest before the interval in another bucket", cumulative(true, []float64{30}, twenty), "≤5", "≤5"},
		{"two buckets without extremes", delta(defaults, false, 1, 2, 7, 8), "~5", "~9.9"},
		{"two buckets with extremes", delta(defaults, true, 1, 2, 7, 8), "~5", "~7.94"},
		{"above the last bound, without extremes", delta([]float64{1, 2}, false, 3, 4), "≥2", "≥2"},
		{"above the last bound", delta([]float64{1, 2}, true, 3, 5), "~4", "~4.98"},
		{"below a bound of zero, without extremes", delta(defaults, false, -3, -4), "≤0", "≤0"},
		{"below a bound of zero", delta(defaults, true, -4, -2), "~-3", "~-2.02"},
		{"zero", delta(defaults, true, 0, 0), "~0", "~0"},
		{"no bounds, without extremes", delta(nil, false, 3, 4), "-", "-"},
		{"no bounds", delta(nil, true, 3, 5), "~4", "~4.98"},
		{"extremes that contradict the buckets", contradicts, "≤5", "≤5"},
	} {
		table := NewTable(Options{})
		for i, p := range c.points {
			put(table, time.Duration(i)*time.Second, p)
		}
		lines, _ := table.Lines(Query{}, 0)
		if l := lines[0]; told(l.P50) != c.p50 || told(l.P99) != c.p99 {
			t.Errorf("%s: p50 %s, p99 %s; want %s, %s", c.name, told(l.P50), told(l.P99), c.p50, c.p99)
		}
	}
}

// TestPercentilesLieWhereTheValuesDo: an estimate lies in the bucket of the value that has that rank,
// clipped to the extremes of all values since the start, and a bound holds.
func TestPercentilesLieWhereTheValuesDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bounds := slices.Compact(slices.Sorted(slices.Values(rapid.SliceOfN(rapid.Float64Range(-20, 100), 0, 6).Draw(t, "bounds"))))
		least := float64(-50)
		extremes := rapid.Bool().Draw(t, "extremes")
		if !extremes {
			least = 0 // of a lowest bucket whose least value is not given it is taken to begin at zero
		}
		draw := func(name string, n int) []float64 {
			return rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(least, 150), rapid.Float64Range(1, 2)), n, 30).Draw(t, name)
		}
		temp := rapid.SampledFrom([]decode.Temporality{decode.Delta, decode.Cumulative}).Draw(t, "temporality")
		before, values := []float64(nil), draw("values", 1)
		table := NewTable(Options{})
		if temp == decode.Cumulative {
			before = draw("before", 0)
			put(table, 0, observed(bounds, temp, 10, extremes, before...))
		}
		all := append(slices.Clone(before), values...)
		put(table, 1, observed(bounds, temp, 20, extremes, all...))
		if len(table.order) != 1 {
			t.Fatal("no series")
		}
		slices.Sort(values)
		for _, q := range []float64{0.01, 0.25, 0.5, 0.9, 0.99, 1} {
			p := table.order[0].interval.quantile(q)
			truth := values[max(1, int(math.Ceil(q*float64(len(values)))))-1]
			i, _ := slices.BinarySearch(bounds, truth)
			low, high := math.Inf(-1), math.Inf(1)
			if i > 0 {
				low = bounds[i-1]
			}
			if i < len(bounds) {
				high = bounds[i]
			}
			if extremes {
				low, high = max(low, slices.Min(all)), min(high, slices.Max(all))
			}
			v, slack := float64(p.Value), 1e-9*(1+math.Abs(truth))
			switch {
			case !p.Value.Ok():
				if extremes || len(bounds) > 0 {
					t.Fatalf("p%v is not known", 100*q)
				}
			case p.Bound == "≤" && truth > v, p.Bound == "≥" && truth < v:
				t.Fatalf("p%v is %v, told as %s", 100*q, truth, told(p))
			case p.Bound != "":
			case v < low-slack || v > high+slack || p.Source != measure.Estimate:
				t.Fatalf("p%v is %v, told as %s, and its bucket is %v to %v", 100*q, truth, told(p), low, high)
			}
		}
	})
}
