package measure

import (
	"fmt"
	"math"
)

// Interval is a confidence interval, at 95 % unless the method says otherwise.
type Interval struct {
	Lo, Hi Num
	Method string // "order statistics", "BCa bootstrap by request", "Woodruff, clustered by request", "Student t, df 4"; empty = none
}

// The methods of intervals; that of repetitions names its degrees of freedom.
const (
	orderStatistics = "order statistics"
	bcaBootstrap    = "BCa bootstrap by request"
	woodruff        = "Woodruff, clustered by request"
)

// fewestRequests is what an interval by bootstrap or by clusters needs; with fewer requests the
// spread that can be seen is not that of the next request.
const fewestRequests = 8

// fewestRepetitions is what an interval between repetitions needs.
const fewestRepetitions = 3

func noInterval() Interval { return Interval{Lo: Missing, Hi: Missing} }

// Ok tells whether there is an interval.
func (i Interval) Ok() bool { return i.Method != "" }

// orderInterval is the distribution-free interval of a quantile: the order statistics whose ranks
// hold the number of values below the quantile, a binomial one, with 95 %. There is none where the
// sample is too small to bound it on both sides.
func orderInterval(sorted []float64, q float64) Interval {
	n := len(sorted)
	if n == 0 || !(q > 0 && q < 1) {
		return noInterval()
	}
	// P(X(l) ≤ ξ < X(u)) = P(l ≤ B < u), B binomial(n, q), for ranks from 1.
	l := binomialQuantile(0.025, n, q)
	u := binomialQuantile(0.975, n, q) + 1
	if l < 1 || u > n {
		return noInterval()
	}
	return Interval{Num(sorted[l-1]), Num(sorted[u-1]), orderStatistics}
}

// betweenRuns is Student's interval of the mean of the values that repetitions gave; there is none
// for fewer than three.
func betweenRuns(values []Num) Interval {
	n, mean := 0, 0.0
	for _, v := range values {
		if v.Ok() && !math.IsInf(float64(v), 0) {
			n++
			mean += float64(v)
		}
	}
	if n < fewestRepetitions || n < len(values) {
		return noInterval()
	}
	mean /= float64(n)
	squares := 0.0
	for _, v := range values {
		squares += (float64(v) - mean) * (float64(v) - mean)
	}
	df := float64(n - 1)
	half := studentQuantile(0.975, df) * math.Sqrt(squares/df/float64(n))
	return Interval{Num(mean - half), Num(mean + half), fmt.Sprintf("Student t, df %d", n-1)}
}

// cluster counts, for one request, the weight of its values up to each of some thresholds.
type cluster struct {
	below [8]float64
	total float64
}

// clusterOf counts values against at most eight rising thresholds; weights may be nil.
func clusterOf(values, weights, thresholds []float64) (c cluster) {
	for i, v := range values {
		k := 0
		for k < len(thresholds) && v > thresholds[k] {
			k++
		}
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		c.total += w
		if k < len(thresholds) {
			c.below[k] += w
		}
	}
	for k := 1; k < len(thresholds); k++ {
		c.below[k] += c.below[k-1]
	}
	return c
}

// woodruffInterval is the interval of the k-th threshold, the q quantile of the values of all
// clusters (Woodruff 1952): the share of values below it gets an interval, with the variance of a
// ratio of cluster totals and Student's t, and its ends are taken back through the distribution.
func woodruffInterval(d *Dist, clusters []cluster, k int, q float64) Interval {
	n, weight := 0, 0.0
	for i := range clusters {
		if clusters[i].total > 0 {
			n++
			weight += clusters[i].total
		}
	}
	if n < fewestRequests {
		return noInterval()
	}
	share := 0.0
	for i := range clusters {
		share += clusters[i].below[k]
	}
	share /= weight
	squares := 0.0
	for i := range clusters {
		z := clusters[i].below[k] - share*clusters[i].total
		squares += z * z
	}
	df := float64(n - 1)
	half := studentQuantile(0.975, df) * math.Sqrt(float64(n)/df*squares) / weight
	lo, hi := q-half, q+half
	if lo <= 0 || hi >= 1 {
		return noInterval()
	}
	return Interval{Num(weightedQuantile(d.Values, d.cum, lo)), Num(weightedQuantile(d.Values, d.cum, hi)), woodruff}
}
