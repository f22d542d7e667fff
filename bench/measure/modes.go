package measure

import "math"

// Gaps are called two-moded only where the split is plain to see; each limit is what random gaps of
// one mode hardly ever reach (see TestOneMode).
const (
	fewestGaps   = 30   // no verdict below
	fewestSide   = 8    // gaps on either side of the split, and
	fewestShare  = 0.05 // their share
	apart        = 2.0  // ratio of the modes' gaps, at least
	deepestLimit = 0.35 // density at the valley over that of the lower mode, at most
	modeBins     = 64
)

// split looks for two modes among gaps (seconds): engines that verify several drafted tokens at a
// time but send them one by one leave short gaps within a pass and long ones between passes. It
// returns the gap that parts them and the share of gaps below; ok is false where there is one mode.
//
// The density is estimated on the logarithm of the gap, where the spread of either mode does not
// depend on its place, by a Gaussian kernel of Silverman's width; the split is the lowest point
// between the two peaks that stand out most.
func split(gaps []float64) (at, share float64, ok bool) {
	n, lo, hi := 0, math.Inf(1), 0.0
	for _, g := range gaps {
		if g > 0 {
			n++
			lo, hi = min(lo, g), max(hi, g)
		}
	}
	if n < fewestGaps || hi < apart*lo {
		return 0, 0, false
	}
	lo = max(lo, hi*1e-6) // nothing below a microsecond in a second tells modes apart
	from := math.Log(lo)
	width := (math.Log(hi) - from) / modeBins
	var bins [modeBins]float64
	sum, squares := 0.0, 0.0
	for _, g := range gaps {
		if g > 0 {
			x := math.Log(max(g, lo)) - from
			bins[min(int(x/width), modeBins-1)]++
			sum += x
			squares += x * x
		}
	}
	sd := math.Sqrt(max(0, squares/float64(n)-sum*sum/float64(n)/float64(n)))
	h := 0.9 * min(sd, spread(&bins, float64(n))*width/1.34) * math.Pow(float64(n), -0.2) / width
	density := smooth(&bins, max(h, 1.5))
	left, valley, right := peaks(&density)
	if valley < 0 || float64(right-left)*width < math.Log(apart) ||
		density[valley] > deepestLimit*min(density[left], density[right]) {
		return 0, 0, false
	}
	at = math.Exp(from + (float64(valley)+0.5)*width)
	short := 0
	for _, g := range gaps {
		if g > 0 && g < at {
			short++
		}
	}
	if small := min(short, n-short); small < fewestSide || float64(small) < fewestShare*float64(n) {
		return 0, 0, false
	}
	return at, float64(short) / float64(n), true
}

// spread is the distance between the quartiles of a histogram, in bins.
func spread(bins *[modeBins]float64, n float64) float64 {
	var q [2]float64
	for i, p := range []float64{0.25, 0.75} {
		sum := 0.0
		for b, c := range bins {
			if c > 0 && sum+c >= p*n {
				q[i] = float64(b) + (p*n-sum)/c
				break
			}
			sum += c
		}
	}
	return q[1] - q[0]
}

// smooth is the histogram under a Gaussian kernel of standard deviation h bins.
func smooth(bins *[modeBins]float64, h float64) (out [modeBins]float64) {
	reach := min(int(math.Ceil(3*h)), modeBins-1)
	var kernel [modeBins]float64
	for d := 0; d <= reach; d++ {
		kernel[d] = math.Exp(-0.5 * float64(d*d) / (h * h))
	}
	for b, c := range bins {
		if c == 0 {
			continue
		}
		for d := -min(reach, b); d <= min(reach, modeBins-1-b); d++ {
			out[b+d] += c * kernel[max(d, -d)]
		}
	}
	return out
}

// peaks finds the two peaks of a density whose lower one rises most above the valley between them.
// valley is −1 where there is one peak only.
func peaks(f *[modeBins]float64) (left, valley, right int) {
	var tops []int
	for i := range f {
		if f[i] > 0 && (i == 0 || f[i] > f[i-1]) && (i == modeBins-1 || f[i] >= f[i+1]) {
			tops = append(tops, i)
		}
	}
	valley = -1
	best := 0.0
	for a, l := range tops {
		low := l
		for _, r := range tops[a+1:] {
			for i := low; i <= r; i++ {
				if f[i] < f[low] {
					low = i
				}
			}
			if rise := min(f[l], f[r]) - f[low]; rise > best {
				best, left, valley, right = rise, l, low, r
			}
		}
	}
	return left, valley, right
}
