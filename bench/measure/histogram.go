package measure

// Histogram bins values into bins of equal width; the last bin takes everything above cap.
type Histogram struct {
	Edges  []float64 // n+1
	Counts []float64 // n
	Capped int       // values above the last edge, put into the last bin
}

// HistogramOf bins values (weights may be nil). width 0 chooses the number of bins by the
// Freedman–Diaconis rule, at least 4 and at most 200.
func HistogramOf(values, weights []float64, width, cap float64) Histogram { return Histogram{} }
