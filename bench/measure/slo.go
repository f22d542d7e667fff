package measure

import "velo/bench"

// Objective is one SLO and how the run did.
type Objective struct {
	SLO    bench.SLO
	Text   string // "TTFT p95 ≤ 200 ms"
	Value  Num    // seen, in the metric's unit
	Result string // "met", "missed" or "not enough requests"
	N      int
}

// ParseSLO reads NAME[_pQ]=VALUE: ttft_p95=200ms, rate=20, error_rate=1%, goodput=2.
func ParseSLO(s string) (bench.SLO, error) { return bench.SLO{}, nil }
