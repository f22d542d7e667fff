package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// step is one chunk of each choice: its tokens and when it is due, counted from
// the moment the request was read.
type step struct {
	tokens int
	due    time.Duration
}

// schedule is the plan of a reply.
type schedule struct {
	ttft     time.Duration // to the first token, whether or not there is one
	steps    []step
	drafted  int
	accepted int
}

// last is when the last token is due.
func (p *schedule) last() time.Duration {
	if len(p.steps) == 0 {
		return p.ttft
	}
	return p.steps[len(p.steps)-1].due
}

// plan draws the schedule of n tokens, of which the first boundary are
// reasoning; a chunk never holds both. index is the number of the request among
// those of its scenario, uncached its prompt tokens that need prefill.
func plan(s *Scenario, n, boundary, index, uncached int, rng *rand.Rand) schedule {
	ttft := time.Duration(s.TTFT)
	if s.Prefill > 0 {
		ttft += time.Duration(min(float64(uncached)/s.Prefill*float64(time.Second), maxDue))
	}
	slow := min(math.Pow(1+s.Drift, float64(index)), maxSlowdown)
	if index < s.Cold.Requests {
		ttft += time.Duration(s.Cold.TTFT)
		slow *= s.Cold.Slowdown
	}
	ttft = max(ttft, time.Duration(s.HeaderDelay))
	p := schedule{ttft: ttft}
	chance := positionChance(s.Speculation.Draft, s.Speculation.Acceptance)
	due := float64(ttft)
	for done := 0; done < n; {
		size, accepted := s.TokensPerChunk, 0
		if s.Speculation.Draft > 0 {
			size = 1
			if done > 0 { // the first token comes out of prefill, not out of a verify step
				for size <= s.Speculation.Draft && rng.Float64() < chance {
					size++
				}
			}
		}
		if done == 0 && s.FirstChunkTokens > 0 {
			size = s.FirstChunkTokens
		}
		size = min(size, n-done)
		if done < boundary {
			size = min(size, boundary-done)
		}
		if done > 0 {
			if s.Speculation.Draft > 0 {
				accepted = size - 1
				p.drafted += s.Speculation.Draft
				p.accepted += accepted
			}
			due += gap(s, done, size, rng) * decaySlowdown(s.Decay, float64(done)/float64(n)) * slow
			due = max(float64(ttft), min(due, maxDue))
		}
		p.steps = append(p.steps, step{tokens: size, due: time.Duration(due)})
		done += size
	}
	return p
}

// maxSlowdown and maxDue keep a long drift within the range of a duration.
const (
	maxSlowdown = 1e9
	maxDue      = float64(1000 * 24 * time.Hour)
)

// gap is the time in nanoseconds before the chunk that starts with token at.
func gap(s *Scenario, at, size int, rng *rand.Rand) float64 {
	base := float64(s.ITL)
	if s.Speculation.Draft == 0 {
		base *= float64(size)
	}
	switch g := s.Gaps; g.Kind {
	case "normal":
		return max(0, base+rng.NormFloat64()*float64(g.SD))
	case "bimodal":
		if rng.Float64() < g.FastShare {
			return float64(g.Fast)
		}
		return float64(g.Slow)
	case "stall":
		// The chunk may reach over the token at which the stall is due.
		for token := at; token < at+size; token++ {
			if token == g.At || (g.Every > 0 && token > g.At && (token-g.At)%g.Every == 0) {
				base += float64(g.Stall)
			}
		}
	}
	return base
}

// decaySlowdown is how many times longer a gap is at share u of the tokens when
// the rate falls linearly in time from 1 to end. With r(t) = 1 − (1−end)·t/T
// the tokens by t are its integral; eliminating t gives r(u) = √(1 − (1−end²)·u).
func decaySlowdown(end, u float64) float64 {
	return 1 / math.Sqrt(1-(1-end*end)*u)
}

// positionChance is the chance p of each draft position, given that those
// before it were accepted, with which accepted/drafted is expected to be
// acceptance: (p + p² + … + p^k)/k = acceptance, solved by bisection.
func positionChance(k int, acceptance float64) float64 {
	if k == 0 || acceptance <= 0 {
		return 0
	}
	low, high := 0.0, 1.0
	for range 60 {
		p := (low + high) / 2
		sum, power := 0.0, 1.0
		for range k {
			power *= p
			sum += power
		}
		if sum/float64(k) < acceptance {
			low = p
		} else {
			high = p
		}
	}
	return high
}
