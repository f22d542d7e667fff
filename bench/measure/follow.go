package measure

import (
	"math"
	"slices"

	"velo/bench"
)

// A Follower watches one request of a Live more closely than Snapshot does: its tokens by channel and
// the distribution of its gaps so far. What has been looked at is not looked at again, so a look costs
// as much as has come since the last one. It is for one goroutine at a time.
type Follower struct {
	live   *Live
	number int

	seen  int // arrivals
	user  bool
	gaps  *rateBins // of microseconds
	state Following
}

// Following is what a Follower knows of its request.
type Following struct {
	Answer, Thought        int // tokens so far, by channel
	Source                 Source
	TTFT, TTFO             Num
	GapP50, GapP90, GapMax Num // of gaps between chunks so far, seconds; the quantiles to 0.1 %
}

// Follow returns a follower of the request with that number. It may begin later.
func (l *Live) Follow(number int) *Follower {
	f := &Follower{live: l, number: number, gaps: newRateBins()}
	f.restart()
	return f
}

func (f *Follower) restart() {
	*f.gaps = rateBins{counts: f.gaps.counts, least: math.Inf(1), most: math.Inf(-1)}
	clear(f.gaps.counts)
	f.seen = 0
	f.state = Following{TTFT: Missing, TTFO: Missing, GapP50: Missing, GapP90: Missing, GapMax: Missing}
}

// Now is the state of the request. Once it has ended Now goes on giving the last state that was looked
// at; Followed says more.
func (f *Follower) Now() Following {
	l := f.live
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[f.number]
	if s == nil || s.ended {
		return f.state
	}
	if s.user != f.user { // its times were changed
		f.restart()
		f.user = s.user
	}
	if f.seen == len(s.arrivals) {
		return f.state
	}
	o := &f.state
	for i := f.seen; i < len(s.arrivals); i++ {
		a := &s.arrivals[i]
		if a.Channel == bench.Reasoning {
			o.Thought += a.Tokens
		} else {
			o.Answer += a.Tokens
			if !o.TTFO.Ok() {
				o.TTFO = between(s.x.Request.Start, a.At)
			}
		}
		if i > 0 {
			f.gaps.add(float64(a.At-s.arrivals[i-1].At)/1e3, 1)
		}
	}
	f.seen = len(s.arrivals)
	o.Source, o.TTFT = s.source, s.ttft
	o.GapP50, o.GapP90 = f.gaps.quantile(0.5)/1e6, f.gaps.quantile(0.9)/1e6
	if f.gaps.n > 0 {
		o.GapMax = Num(f.gaps.most) / 1e6
	}
	return f.state
}

// Gaps are the gaps between chunks that Now has seen, in seconds, to 0.1 %, and how often each came.
func (f *Follower) Gaps() (gaps, counts []float64) {
	f.live.mu.Lock()
	defer f.live.mu.Unlock()
	b := f.gaps
	if b.zeros > 0 {
		gaps, counts = append(gaps, 0), append(counts, float64(b.zeros))
	}
	if b.n == b.zeros {
		return gaps, counts
	}
	first := max(0, binOf(max(b.least, math.SmallestNonzeroFloat64)))
	for i := first; i < len(b.counts); i++ {
		if c := b.counts[i]; c > 0 {
			gaps, counts = append(gaps, float64(b.middle(i))/1e6), append(counts, float64(c))
		}
		if i > binOf(b.most) {
			break
		}
	}
	return gaps, counts
}

// Followed is the same of a request that has ended, exactly.
func Followed(r *Request) Following {
	gaps := slices.Clone(r.ICL)
	sortFloats(gaps)
	return Following{Answer: r.Answer, Thought: r.Thought, Source: r.Source, TTFT: r.TTFT, TTFO: r.TTFO,
		GapP50: Num(quantile(gaps, 0.5)), GapP90: Num(quantile(gaps, 0.9)), GapMax: r.MaxGap}
}

// quantile is the middle of the bin in which the order statistic at q lies.
func (b *rateBins) quantile(q float64) Num {
	if b.n == 0 {
		return Missing
	}
	rank := q * float64(b.n)
	seen := b.zeros
	if float64(seen) >= rank {
		return 0
	}
	for i, c := range b.counts {
		if seen += int(c); float64(seen) >= rank {
			return b.middle(i)
		}
	}
	return Num(b.most)
}

// middle is the middle of bin i, within what was seen.
func (b *rateBins) middle(i int) Num {
	low := math.Ldexp(1+float64(i%binsPerOctave)/binsPerOctave, i/binsPerOctave+lowestOctave)
	return Num(min(max(low*(1+0.5/binsPerOctave), b.least), b.most))
}
