package model

import (
	"math"

	"velo/engine/ops"
	"velo/engine/weights"
)

// rope works out the inverse frequencies of a configuration: θ^(−2i/d) for
// pair i of d rotated dimensions, stretched as transformers'
// modeling_rope_utils.py defines for each type.
func rope(c *weights.Config) *ops.Rope {
	dim := c.RotaryDim()
	r := &ops.Rope{Inverse: make([]float32, dim/2), Scale: 1}
	s := &c.RopeScaling
	for i := range r.Inverse {
		f := math.Pow(c.RopeTheta, -float64(2*i)/float64(dim))
		switch s.Type {
		case "linear":
			f /= s.Factor
		case "llama3":
			f = llama3(f, s)
		case "yarn":
			f = yarn(f, float64(i), dim, c.RopeTheta, s)
		}
		if i < len(s.FreqDivisors) {
			f /= float64(s.FreqDivisors[i])
		}
		r.Inverse[i] = float32(f)
	}
	if s.Type == "yarn" && s.AttentionFactor > 0 {
		r.Scale = float32(s.AttentionFactor)
	}
	return r
}

// llama3 divides long waves by the factor, leaves short ones and blends
// between.
func llama3(f float64, s *weights.RopeScaling) float64 {
	old := float64(s.OriginalMaxPosition)
	wave := 2 * math.Pi / f
	switch {
	case wave > old/s.LowFreqFactor:
		return f / s.Factor
	case wave < old/s.HighFreqFactor:
		return f
	}
	smooth := (old/wave - s.LowFreqFactor) / (s.HighFreqFactor - s.LowFreqFactor)
	return (1-smooth)*f/s.Factor + smooth*f
}

// yarn blends from whole frequencies to divided ones over the pairs whose
// number of turns within the old context lies between BetaFast and BetaSlow
// (Peng et al., arXiv 2309.00071).
func yarn(f, pair float64, dim int, theta float64, s *weights.RopeScaling) float64 {
	at := func(turns float64) float64 {
		return float64(dim) * math.Log(float64(s.OriginalMaxPosition)/(turns*2*math.Pi)) / (2 * math.Log(theta))
	}
	low := math.Max(math.Floor(at(s.BetaFast)), 0)
	high := math.Min(math.Ceil(at(s.BetaSlow)), float64(dim-1))
	if low == high {
		high += 0.001
	}
	ramp := math.Min(math.Max((pair-low)/(high-low), 0), 1)
	return f/s.Factor*ramp + f*(1-ramp)
}
