package measure

import "time"

// RollingSample is the rolling decode rate at a moment.
type RollingSample struct {
	At   time.Duration // session time
	Rate float64       // tokens/s over the window that ends there
}

// RollingStats sums up the rolling samples of a request or a run.
type RollingStats struct {
	Samples               []RollingSample
	Now, Median, Min, Max Num // tokens/s
	Stability             Num // median of the last 30 % in time over p95 of all
}
