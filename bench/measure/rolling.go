package measure

import (
	"math"
	"time"
)

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

// mostSamples bounds the rolling samples of one request: nearly three hours of them. Beyond it the
// grid is coarser.
const mostSamples = 100_000

// rolling samples the rolling rate of a request: at each line t of the 100 ms grid of session time,
// from c1 + 0.25 s to cm, the tokens in (t − w′, t] that arrived after c1, over w′ = min(w, t − c1).
func rolling(a []Arrival, w time.Duration) []RollingSample {
	if len(a) < 2 {
		return nil
	}
	first, last := a[0].At, a[len(a)-1].At
	step := tick
	if n := (last - first) / tick; n > mostSamples {
		step = tick * (1 + n/mostSamples)
	}
	t := gridUp(first+settle, step)
	if t > last {
		return nil
	}
	out := make([]RollingSample, 0, (last-t)/step+1)
	r := roller{w: w, first: first}
	for ; t <= last; t += step {
		out = append(out, RollingSample{t, r.rate(a, t)})
	}
	return out
}

// roller slides a window over the arrivals of a request.
type roller struct {
	w, first time.Duration
	lo, hi   int // arrivals [lo, hi) are in the window
	tokens   int
}

// rate is the rolling rate at t, which must not be less than at the call before.
func (r *roller) rate(a []Arrival, t time.Duration) float64 {
	for r.hi < len(a) && a[r.hi].At <= t {
		r.tokens += a[r.hi].Tokens
		r.hi++
	}
	w := min(r.w, t-r.first)
	for r.lo < r.hi && a[r.lo].At <= t-w { // at first itself, at the latest
		r.tokens -= a[r.lo].Tokens
		r.lo++
	}
	return float64(r.tokens) / w.Seconds()
}

// statsOf sums up samples, which must be in order of time.
func statsOf(s []RollingSample) RollingStats {
	st := RollingStats{Samples: s, Now: Missing, Median: Missing, Min: Missing, Max: Missing, Stability: Missing}
	if len(s) == 0 {
		return st
	}
	v := ratesOf(s)
	late := ratesOf(s[len(s)-(3*len(s)+9)/10:])
	sortFloats(v)
	sortFloats(late)
	st.Now = Num(s[len(s)-1].Rate)
	st.Median = Num(quantile(v, 0.5))
	st.Min, st.Max = Num(v[0]), Num(v[len(v)-1])
	if high := quantile(v, 0.95); high > 0 {
		st.Stability = Num(quantile(late, 0.5) / high)
	}
	return st
}

func ratesOf(s []RollingSample) []float64 {
	v := make([]float64, len(s))
	for i := range s {
		v[i] = s[i].Rate
	}
	return v
}

// peakRate is the highest rate over consecutive windows of length T/⌈T/w⌉ in (c1, cm], T = cm − c1.
// The windows cover all of the decode time, so that the peak cannot be below the mean. Tokens after
// the first chunk that bear its very time count in the first window, as they do in the mean.
func peakRate(a []Arrival, w time.Duration) Num {
	if len(a) < 2 {
		return Missing
	}
	first, last := a[0].At, a[len(a)-1].At
	total := last - first
	if total <= 0 {
		return Missing
	}
	n := int64((total + w - 1) / w)
	// The i-th window ends at ⌊total·i/n⌋ after c1; total·i may not fit 64 bits.
	length := float64(total) / float64(n)
	best, tokens, at := 0, 0, int64(0)
	for _, x := range a[1:] {
		i := int64(math.Ceil(float64(x.At-first)/length)) - 1
		i = min(max(i, 0), n-1)
		if i != at {
			best, tokens, at = max(best, tokens), 0, i
		}
		tokens += x.Tokens
	}
	best = max(best, tokens)
	return Num(float64(best) / (length / 1e9))
}
