package measure

import (
	"fmt"
	"math"

	"velo/bench"
)

func (r *Request) breaks(format string, a ...any) {
	r.Broken = append(r.Broken, fmt.Sprintf(format, a...))
}

// invariants says which of the invariants of one request do not hold.
func (r *Request) invariants(x *bench.Exchange) []string {
	var broken []string
	if r.TTFT.Ok() && r.E2E.Ok() {
		sum := float64(r.TTFT)
		for _, g := range r.ICL {
			sum += g
		}
		if !near(sum, float64(r.E2E)) {
			broken = append(broken, fmt.Sprintf("TTFT and its gaps add up to %.9g s, the last chunk came after %.9g s", sum, r.E2E))
		}
	}
	if r.Peak.Ok() && float64(r.Peak) < float64(r.Rate)*(1-1e-9) {
		broken = append(broken, fmt.Sprintf("its peak rate %.4g tok/s is below its mean rate %.4g tok/s", r.Peak, r.Rate))
	}
	if s := r.unseen(x); s != "" {
		broken = append(broken, s)
	}
	return broken
}

// unseen checks 0 ≤ U − N ≤ max(2, 2 % of U), where reasoning that the server counted and did not
// stream may explain more.
func (r *Request) unseen(x *bench.Exchange) string {
	if !r.Unseen.Ok() || r.N == 0 {
		return ""
	}
	u, unseen := x.End.Usage.Completion, int(r.Unseen)
	if unseen < 0 {
		return fmt.Sprintf("%d tokens were seen, the server counted %d", r.N, u)
	}
	allowed := max(2, u/50)
	if _, hidden := completionOf(x); hidden > 0 {
		allowed += hidden
	}
	if unseen > allowed {
		return fmt.Sprintf("%d of the %d completion tokens that the server counted were never seen", unseen, u)
	}
	return ""
}

// near tells whether two sums of times are equal but for rounding.
func near(a, b float64) bool {
	return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b))
}
