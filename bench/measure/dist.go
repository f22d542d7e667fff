package measure

// Dist is a distribution of one metric over requests, or over tokens.
type Dist struct {
	Metric         string // Metric.ID
	N              int
	Mean, SD       Num // SD is the sample's
	Min, Max       Num
	MeanInterval   Interval
	Quantiles      []Quantile // p50, p90, p95, p99, p99.9
	Values         []float64  // sorted
	BetweenRuns    Interval   // of the mean, over ≥ 3 repetitions; preferred to MeanInterval
	RepetitionMean []Num      // one a repetition
}

// Q returns the quantile of that order, computing it if it is not in the list.
func (d *Dist) Q(q float64) Quantile {
	for _, x := range d.Quantiles {
		if x.Q == q {
			return x
		}
	}
	return Quantile{Q: q, Value: Missing}
}
