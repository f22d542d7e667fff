package measure

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Gaps of one mode, of whatever shape, hardly ever pass for two.
func TestOneMode(t *testing.T) {
	for _, c := range []struct {
		name string
		draw func(r *rand.Rand) float64
	}{
		{"normal", func(r *rand.Rand) float64 { return math.Abs(0.010 + 0.002*r.NormFloat64()) }},
		{"lognormal", func(r *rand.Rand) float64 { return 0.010 * math.Exp(0.8*r.NormFloat64()) }},
		{"exponential", func(r *rand.Rand) float64 { return 0.010 * r.ExpFloat64() }},
		{"uniform", func(r *rand.Rand) float64 { return 0.020 * r.Float64() }},
	} {
		r := rand.New(rand.NewPCG(5, 6))
		for _, n := range []int{30, 100, 1000, 20000} {
			trials, wrong := 500, 0
			if n > 1000 {
				trials = 20
			}
			for range trials {
				v := make([]float64, n)
				for i := range v {
					v[i] = c.draw(r)
				}
				if _, _, ok := split(v); ok {
					wrong++
				}
			}
			if 100*wrong > trials {
				t.Errorf("%d %s gaps: two modes in %d of %d trials", n, c.name, wrong, trials)
			}
		}
	}
}

// Drafted tokens that are sent one by one leave short gaps, and their share is found.
func TestTwoModes(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, c := range []struct{ share, short, long float64 }{
		{0.5, 0.001, 0.020}, {0.75, 0.0005, 0.030}, {0.2, 0.002, 0.020}, {0.44, 0.004, 0.025}, {0.1, 0.0002, 0.015}, {0.9, 0.001, 0.030},
	} {
		for _, n := range []int{100, 1000, 50000} {
			v := make([]float64, n)
			short := 0
			for i := range v {
				mean := c.long
				if r.Float64() < c.share {
					mean = c.short
					short++
				}
				v[i] = mean * math.Exp(0.15*r.NormFloat64())
			}
			if min(short, n-short) < fewestSide {
				continue
			}
			at, share, ok := split(v)
			if !ok || math.Abs(share-float64(short)/float64(n)) > 0.01 || at < c.short || at > c.long {
				t.Errorf("%d gaps, %.0f %% of %v s among %v s: split at %v, share %.3f, %v", n, 100*c.share, c.short, c.long, at, share, ok)
			}
		}
	}
	if _, _, ok := split([]float64{0, 0, 0, math.NaN()}); ok {
		t.Error("two modes of nothing")
	}
}
