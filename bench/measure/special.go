package measure

import "math"

// normalQuantile is the inverse of the standard normal distribution function.
func normalQuantile(p float64) float64 { return -math.Sqrt2 * math.Erfcinv(2*p) }

// normalCDF is the standard normal distribution function.
func normalCDF(z float64) float64 { return 0.5 * math.Erfc(-z/math.Sqrt2) }

// betaInc is the regularised incomplete beta function I_x(a, b), by its continued fraction with the
// modified Lentz method (DLMF 8.17.22).
func betaInc(a, b, x float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	case x > (a+1)/(a+b+2):
		return 1 - betaInc(b, a, 1-x)
	}
	ga, _ := math.Lgamma(a)
	gb, _ := math.Lgamma(b)
	gab, _ := math.Lgamma(a + b)
	front := math.Exp(gab-ga-gb+a*math.Log(x)+b*math.Log1p(-x)) / a
	const tiny = 1e-300
	f, c, d := 1.0, 1.0, 0.0
	for i := 0; i <= 20000; i++ {
		m := float64(i / 2)
		var k float64
		switch {
		case i == 0:
			k = 1
		case i%2 == 0:
			k = m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		default:
			k = -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		}
		d = 1 + k*d
		if math.Abs(d) < tiny {
			d = tiny
		}
		c = 1 + k/c
		if math.Abs(c) < tiny {
			c = tiny
		}
		d = 1 / d
		f *= c * d
		if math.Abs(1-c*d) < 1e-14 {
			break
		}
	}
	return front * (f - 1)
}

// studentQuantile is the p quantile, p ≥ 1/2, of Student's t with df degrees of freedom.
func studentQuantile(p, df float64) float64 {
	// P(T > t) = I_x(df/2, 1/2)/2 with x = df/(df + t²).
	lo, hi := 0.0, 1.0
	for range 200 {
		mid := (lo + hi) / 2
		if betaInc(df/2, 0.5, mid)/2 < 1-p {
			lo = mid
		} else {
			hi = mid
		}
	}
	x := (lo + hi) / 2
	return math.Sqrt(df * (1 - x) / x)
}

// binomialCDF is P(X ≤ k) for n trials with probability p.
func binomialCDF(k, n int, p float64) float64 {
	switch {
	case k < 0:
		return 0
	case k >= n:
		return 1
	}
	return betaInc(float64(n-k), float64(k+1), 1-p)
}

// binomialQuantile is the smallest k with P(X ≤ k) ≥ u.
func binomialQuantile(u float64, n int, p float64) int {
	lo, hi := 0, n
	for lo < hi {
		mid := lo + (hi-lo)/2
		if binomialCDF(mid, n, p) >= u {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}
