// Package share splits what was measured of requests by the kind of text that came: tokens, decode rate
// and gaps of prose, of code and so on. A chunk has one regime (regime.Classify); its tokens, and the gap
// before it, are that regime's.
package share

import (
	"slices"
	"time"

	"velo/bench"
	"velo/bench/measure"
	"velo/bench/regime"
)

// Share is what is known of one regime over some requests.
type Share struct {
	Regime   regime.Regime
	Requests int // that have any of it
	Chunks   int
	Tokens   int
	Decoded  int           // of these, all but those of the first chunk of a request: they have no gap
	Time     time.Duration // of the gaps before the decoded ones
	Rate     measure.Num   // Decoded over Time, tokens/s of one stream; Missing where Time is 0
	GapP50   measure.Num   // seconds, over the chunks that have a gap
	GapP90   measure.Num
	MaxGap   measure.Num
	Source   measure.Source // the weakest of its counts of tokens
}

// Splitter collects requests.
type Splitter struct {
	shares   [regimes]Share
	gaps     [regimes][]float64
	requests int
}

const regimes = int(regime.Creative) + 1

// Of gives the regime of each arrival of a request; nil where its chunks have no text, or are not those
// that it was computed from.
func Of(x *bench.Exchange, r *measure.Request) []regime.Regime {
	if x == nil || len(x.Chunks) == 0 || len(x.Chunks) != len(r.Arrivals) ||
		!slices.ContainsFunc(x.Chunks, func(c bench.Chunk) bool { return c.Text != "" }) {
		return nil
	}
	return regime.Classify(x.Chunks)
}

// Add takes a request with the regimes of its arrivals, as Of gives them.
func (s *Splitter) Add(r *measure.Request, of []regime.Regime) {
	if len(of) == 0 || len(of) != len(r.Arrivals) {
		return
	}
	s.requests++
	var has [regimes]bool
	for i := range r.Arrivals {
		if int(of[i]) >= regimes {
			continue
		}
		a, o := &r.Arrivals[i], &s.shares[of[i]]
		if !has[of[i]] {
			has[of[i]] = true
			o.Requests++
			o.Source = weaker(o.Source, r.Source)
		}
		o.Chunks++
		o.Tokens += a.Tokens
		if i > 0 {
			gap := a.At - r.Arrivals[i-1].At
			o.Decoded += a.Tokens
			o.Time += gap
			s.gaps[of[i]] = append(s.gaps[of[i]], gap.Seconds())
		}
	}
}

// Requests is how many requests were taken.
func (s *Splitter) Requests() int { return s.requests }

// Shares are the regimes that came, in the order of regime.All.
func (s *Splitter) Shares() []Share {
	var out []Share
	for i := range s.shares {
		o := s.shares[i]
		if o.Chunks == 0 {
			continue
		}
		o.Regime = regime.Regime(i)
		o.Rate, o.MaxGap = measure.Missing, measure.Missing
		if o.Time > 0 {
			o.Rate = measure.Num(float64(o.Decoded) / o.Time.Seconds())
		}
		gaps := slices.Clone(s.gaps[i])
		slices.Sort(gaps)
		o.GapP50, o.GapP90 = measure.QuantileOf(gaps, 0.5), measure.QuantileOf(gaps, 0.9)
		if n := len(gaps); n > 0 {
			o.MaxGap = measure.Num(gaps[n-1])
		}
		out = append(out, o)
	}
	return out
}

// weaker is the source that says less: a server's count is better than a tokenizer's, and that than an
// estimate.
func weaker(a, b measure.Source) measure.Source {
	rank := func(s measure.Source) int {
		switch s {
		case measure.Server:
			return 1
		case measure.Tokenizer:
			return 2
		case measure.Estimate:
			return 3
		}
		return 0
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}
