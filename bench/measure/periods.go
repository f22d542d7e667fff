package measure

import (
	"slices"
	"sort"
	"time"
)

// period is a time in which at least one of some streams was decoding, from a first chunk to a last.
// The tokens that arrived at the very instant it opened took none of its time, and a rolling rate
// leaves them out, as that of a single request leaves out its first chunk.
type period struct {
	from, to time.Duration
	open     int // tokens that arrived at from
}

// decoding is the period of one request; ok is false where no token came.
func (r *Request) decoding() (p period, ok bool) {
	n := len(r.Arrivals)
	if n == 0 || !known(r.Arrivals[0].At) {
		return period{}, false
	}
	p.from, p.to = r.Arrivals[0].At, r.Arrivals[n-1].At
	for _, a := range r.Arrivals {
		if a.At > p.from {
			break
		}
		p.open += a.Tokens
	}
	return p, true
}

// periods are disjoint periods in order of time.
type periods []period

// add puts a period in, joined with those that it meets.
func (ps *periods) add(p period) {
	s := *ps
	i := sort.Search(len(s), func(i int) bool { return s[i].to >= p.from })
	j := i
	for j < len(s) && s[j].from <= p.to {
		switch {
		case s[j].from < p.from:
			p.from, p.open = s[j].from, s[j].open
		case s[j].from == p.from:
			p.open += s[j].open
		}
		p.to = max(p.to, s[j].to)
		j++
	}
	*ps = slices.Replace(s, i, j, p)
}
