package measure

import "math"

// Dist is a distribution of one metric over requests, or over tokens.
type Dist struct {
	Metric         string // Metric.ID
	Source         Source // the least of the requests' sources; Clock where times alone are involved
	N              int    // observations: requests, gaps, or tokens
	Mean, SD       Num    // SD is the sample's
	Min, Max       Num
	MeanInterval   Interval
	Quantiles      []Quantile // p50, p90, p95, p99, p99.9
	Values         []float64  // sorted
	Weights        []float64  // how often each of Values counts; nil = once
	BetweenRuns    Interval   // of the mean, over ≥ 3 repetitions; preferred to MeanInterval
	RepetitionMean []Num      // one a repetition

	cum []float64 // running sums of Weights
}

// newDist is the distribution of sorted values; weights may be nil. +∞ among the values stands for
// failures: then there is no mean.
func newDist(metric string, sorted, weights []float64) Dist {
	d := Dist{Metric: metric, Mean: Missing, SD: Missing, Min: Missing, Max: Missing, Values: sorted, Weights: weights}
	n := float64(len(sorted))
	if weights != nil {
		d.cum = runningSums(weights)
		n = 0
		if len(weights) > 0 {
			n = d.cum[len(weights)-1]
		}
	}
	d.N = int(n)
	if len(sorted) > 0 {
		d.Min, d.Max = Num(sorted[0]), Num(sorted[len(sorted)-1])
		d.moments(n)
	}
	for _, q := range orders {
		d.Quantiles = append(d.Quantiles, d.quantile(q))
	}
	return d
}

func (d *Dist) moments(n float64) {
	weight := func(i int) float64 { return 1 }
	if d.Weights != nil {
		weight = func(i int) float64 { return d.Weights[i] }
	}
	if math.IsInf(float64(d.Max), 0) || n <= 0 {
		return
	}
	sum, squares := 0.0, 0.0
	for i, v := range d.Values {
		sum += v * weight(i)
	}
	mean := sum / n
	for i, v := range d.Values {
		squares += (v - mean) * (v - mean) * weight(i)
	}
	d.Mean = Num(min(max(mean, float64(d.Min)), float64(d.Max))) // rounding must not lead outside
	if n > 1 {
		d.SD = Num(math.Sqrt(squares / (n - 1)))
	}
}

func (d *Dist) quantile(q float64) Quantile {
	x := Quantile{Q: q, Value: Missing, Interval: noInterval()}
	if d.N == 0 || !(q >= 0 && q <= 1) {
		return x
	}
	x.Supported = supported(float64(d.N), q)
	switch {
	case x.Supported:
		x.Value = Num(weightedQuantile(d.Values, d.cum, q))
	case q < 0.5:
		x.Value = d.Min
	default:
		x.Value = d.Max
	}
	return x
}

// Q returns the quantile of that order, computing it if it is not in the list.
func (d *Dist) Q(q float64) Quantile {
	for _, x := range d.Quantiles {
		if x.Q == q {
			return x
		}
	}
	if d.cum == nil && d.Weights != nil { // the distribution was read from a file
		d.cum = runningSums(d.Weights)
	}
	return d.quantile(q)
}

func runningSums(v []float64) []float64 {
	sums := make([]float64, len(v))
	sum := 0.0
	for i, x := range v {
		sum += x
		sums[i] = sum
	}
	return sums
}
