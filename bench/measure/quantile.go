package measure

// Quantile is one percentile of a distribution.
type Quantile struct {
	Q         float64 // 0.5, 0.9, 0.95, 0.99, 0.999
	Value     Num
	Supported bool // n ≥ 1/(1 − q); if not, the value shown is "max of n"
	Interval  Interval
}
