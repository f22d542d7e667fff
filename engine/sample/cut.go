package sample

import (
	"math"
	"slices"
)

const (
	binCount = 1024
	binsPer  = 32 // bins per unit of the logarithm: together they reach down to exp(-32)
)

// bin holds the tokens whose weights are within about 3 % of each other.
type bin struct {
	count int
	mass  float64
}

func binOf(x float32) int { return int(min(-x*binsPer, binCount-1)) }

// cut shortens s.kept to its likeliest tokens: to count of them, or to the first ones whose weights
// together reach mass, whichever comes first, and returns the sum of what is left. Instead of
// sorting the vocabulary it counts tokens into bins by weight and sorts the one bin that the cut
// goes through.
func (s *Sampler) cut(count int, mass float64) float64 {
	clear(s.bins[:])
	for _, id := range s.kept {
		b := &s.bins[binOf(s.x[id])]
		b.count++
		b.mass += float64(s.weight[id])
	}
	edge, n, sum := 0, 0, 0.0
	for edge < binCount-1 && n+s.bins[edge].count < count && sum+s.bins[edge].mass < mass {
		n += s.bins[edge].count
		sum += s.bins[edge].mass
		edge++
	}
	s.edge = s.edge[:0]
	for _, id := range s.kept {
		if binOf(s.x[id]) == edge {
			s.edge = append(s.edge, id)
		}
	}
	slices.SortFunc(s.edge, func(a, b int32) int {
		switch {
		case s.x[a] > s.x[b]:
			return -1
		case s.x[a] < s.x[b]:
			return 1
		}
		return int(a) - int(b)
	})
	// The last token kept says which of the rest are in: those above it.
	var last int32 = -1
	for _, id := range s.edge {
		if n >= count || (sum >= mass && last >= 0) {
			break
		}
		n++
		sum += float64(s.weight[id])
		last = id
	}
	kept := s.kept[:0]
	for _, id := range s.kept {
		b := binOf(s.x[id])
		if b < edge || (b == edge && last >= 0 && (s.x[id] > s.x[last] || (s.x[id] == s.x[last] && id <= last))) {
			kept = append(kept, id)
		}
	}
	s.kept = kept
	return sum
}

// underflow is where weights end: a token with exp(-87) of the likeliest one's probability is
// never drawn.
const underflow = -87

// exp is e to the power of x for x in (-87, 0], to within 2 units in the last place of a float32:
// 2^n · e^r with r in ±ln2/2, e^r by its Taylor polynomial of degree 7.
func exp(x float32) float32 {
	const (
		log2e = 1.44269504088896341
		ln2hi = 0.693359375
		ln2lo = -2.12194440e-4
	)
	n := float32(int32(x*log2e - 0.5)) // to the nearest: x is not positive
	r := x - n*ln2hi - n*ln2lo
	p := float32(1.0 / 5040)
	p = p*r + 1.0/720
	p = p*r + 1.0/120
	p = p*r + 1.0/24
	p = p*r + 1.0/6
	p = p*r + 0.5
	p = p*r*r + r + 1
	return p * math.Float32frombits(uint32(int32(n)+127)<<23)
}
