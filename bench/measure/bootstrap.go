package measure

import (
	"hash/fnv"
	"math"
	"slices"
)

// replicates is B, the number of bootstrap resamples.
const replicates = 2000

// ratio is a mean or a ratio over requests, Σ num / Σ den, whose interval is wanted. A request that
// does not have the metric has 0 in both. A nil den is one for every request.
type ratio struct {
	num, den []float64
	out      *Interval
}

// bootstrap computes the 95 % BCa intervals (Efron 1987) of all the ratios over the same n requests.
// One resample of the requests serves every ratio, so that the draws, which cost most, are made once;
// the sums are then products of the counts of the draws with the columns.
func bootstrap(ratios []ratio, n int, seed uint64) {
	var spread []ratio
	for i := range ratios {
		var varies bool
		if *ratios[i].out, varies = ratios[i].alike(n); varies {
			spread = append(spread, ratios[i])
		}
	}
	ratios = spread
	if len(ratios) == 0 {
		return
	}
	columns, nums, dens := layout(ratios)
	estimates := make([][]float64, len(ratios))
	for i := range estimates {
		estimates[i] = make([]float64, 0, replicates)
	}
	sums := make([]float64, len(columns))
	counts := make([]float64, n)
	random := source(seed)
	for range replicates {
		random.draw(counts)
		products(counts, columns, sums)
		for i := range ratios {
			den := float64(n)
			if dens[i] >= 0 {
				den = sums[dens[i]]
			}
			if den > 0 {
				estimates[i] = append(estimates[i], sums[nums[i]]/den)
			}
		}
	}
	for i := range ratios {
		*ratios[i].out = bca(&ratios[i], estimates[i])
	}
}

// layout lists the distinct columns of the ratios, a multiple of four of them, and where each
// ratio's numerator and denominator are (−1 = the number of requests).
func layout(ratios []ratio) (columns [][]float64, nums, dens []int) {
	find := func(c []float64) int {
		if c == nil {
			return -1
		}
		for i := range columns {
			if slices.Equal(columns[i], c) {
				return i
			}
		}
		columns = append(columns, c)
		return len(columns) - 1
	}
	for i := range ratios {
		nums = append(nums, find(ratios[i].num))
		dens = append(dens, find(ratios[i].den))
	}
	for len(columns)%4 != 0 {
		columns = append(columns, columns[0])
	}
	return columns, nums, dens
}

// products sets sums to the products of the counts with the columns, four at a time.
func products(counts []float64, columns [][]float64, sums []float64) {
	n := len(counts)
	for k := 0; k+3 < len(columns); k += 4 {
		a, b, c, d := columns[k][:n], columns[k+1][:n], columns[k+2][:n], columns[k+3][:n]
		var sa, sb, sc, sd float64
		for i, f := range counts {
			sa += f * a[i]
			sb += f * b[i]
			sc += f * c[i]
			sd += f * d[i]
		}
		sums[k], sums[k+1], sums[k+2], sums[k+3] = sa, sb, sc, sd
	}
}

// alike deals with the ratios that need no resampling: there is no interval for fewer than eight
// requests, and none but the value itself where all requests are alike.
func (r *ratio) alike(n int) (i Interval, varies bool) {
	theta, present := r.estimate()
	squares, _ := r.influence(theta)
	scale := math.Abs(theta * r.total() / float64(n))
	switch {
	case present < fewestRequests || math.IsNaN(theta) || math.IsInf(squares, 0):
		return noInterval(), false
	case squares <= 1e-24*scale*scale*float64(n): // but for rounding
		return Interval{Num(theta), Num(theta), bcaBootstrap}, false
	}
	return noInterval(), true
}

// estimate is Σ num / Σ den and the number of requests that have the metric.
func (r *ratio) estimate() (theta float64, present int) {
	num := 0.0
	for i, v := range r.num {
		num += v
		if r.den == nil || r.den[i] > 0 {
			present++
		}
	}
	return num / r.total(), present
}

// total is Σ den.
func (r *ratio) total() float64 {
	if r.den == nil {
		return float64(len(r.num))
	}
	sum := 0.0
	for _, d := range r.den {
		sum += d
	}
	return sum
}

// influence sums up the squares and cubes of the requests' influence on the ratio.
func (r *ratio) influence(theta float64) (squares, cubes float64) {
	for i, v := range r.num {
		d := 1.0
		if r.den != nil {
			d = r.den[i]
		}
		u := v - theta*d
		squares += u * u
		cubes += u * u * u
	}
	return squares, cubes
}

// bca takes the interval from the estimates of the resamples: bias corrected by the share of them
// below the estimate, accelerated by the skewness of the requests' influence (the infinitesimal
// jackknife).
func bca(r *ratio, estimates []float64) Interval {
	if len(estimates) < replicates/2 {
		return noInterval()
	}
	theta, _ := r.estimate()
	squares, cubes := r.influence(theta)
	acceleration := cubes / (6 * math.Pow(squares, 1.5))
	sortFloats(estimates)
	b := float64(len(estimates))
	below, _ := slices.BinarySearch(estimates, theta)
	upTo := below
	for upTo < len(estimates) && estimates[upTo] == theta {
		upTo++
	}
	share := (float64(below) + float64(upTo)) / 2 / b
	bias := normalQuantile(min(max(share, 1/(2*b)), 1-1/(2*b)))
	end := func(p float64) Num {
		z := bias + normalQuantile(p)
		at := normalCDF(bias + z/(1-acceleration*z))
		return Num(quantile(estimates, min(max(at, 0), 1)))
	}
	return Interval{end(0.025), end(0.975), bcaBootstrap}
}

// source is a splitmix64 generator: the same seed always gives the same draws, on every machine.
type source uint64

func (s *source) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// draw sets counts to how often each of len(counts) requests is drawn in as many draws.
func (s *source) draw(counts []float64) {
	clear(counts)
	n := uint64(len(counts))
	for i := uint64(0); i < n; i += 2 {
		z := s.next()
		counts[z&math.MaxUint32*n>>32]++
		if i+1 < n {
			counts[z>>32*n>>32]++
		}
	}
}

// seedOf makes a seed of a session's identity and a number within it.
func seedOf(id string, part int) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	s := source(h.Sum64() + uint64(part)*0xd1342543de82ef95)
	return s.next()
}
