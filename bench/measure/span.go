package measure

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// Span is a time window of the session and what arrived in it.
type Span struct {
	From, To    time.Duration
	None        string // why there is no such window: "no steady state: …"; empty = there is one
	Tokens      int    // received in the window, whichever request they belong to
	Requests    int    // completed in the window
	OutputRate  Num    // tokens/s, system
	RequestRate Num    // requests/s
	InFlight    Num    // mean, time-weighted
	InFlightMax int
	Paused      time.Duration // drained warm-up steps within, which nothing here counts
}

// Time is how long the window lasts, without the warm-up steps in it.
func (s Span) Time() time.Duration { return s.To - s.From - s.Paused }

// noSpan is a window that does not exist.
func noSpan(why string) Span {
	return Span{None: why, OutputRate: Missing, RequestRate: Missing, InFlight: Missing}
}

// curve is the number of requests in flight over time, by a sweep over their exact intervals: n[i]
// of them from at[i] on.
type curve struct {
	at []time.Duration
	n  []int
}

// stay is the time for which a request was in flight: from its start to its end, to its last chunk
// where no end was seen, and to the end of the session where it still ran.
func (c *computation) stay(r *Request) (from, to time.Duration, ok bool) {
	if !known(r.Start) {
		return 0, 0, false
	}
	to = r.Ended
	if !known(to) {
		to = c.last
		if r.Status != "" && len(r.Arrivals) > 0 {
			to = r.Arrivals[len(r.Arrivals)-1].At
		}
	}
	return r.Start, to, known(to) && to > r.Start
}

// curveOf sweeps the intervals of requests. Of what happens at one instant the ends come first: a
// worker's next request may start at the very end of the one before.
func (c *computation) curveOf(requests []*Request) curve {
	type edge struct {
		at time.Duration
		d  int
	}
	edges := make([]edge, 0, 2*len(requests))
	for _, r := range requests {
		if from, to, ok := c.stay(r); ok {
			edges = append(edges, edge{from, 1}, edge{to, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	var v curve
	n := 0
	for i, e := range edges {
		n += e.d
		if i+1 < len(edges) && edges[i+1].at == e.at {
			continue
		}
		v.at, v.n = append(v.at, e.at), append(v.n, n)
	}
	return v
}

// from is the index of the first step of the curve after t.
func (v curve) after(t time.Duration) int {
	return sort.Search(len(v.at), func(i int) bool { return v.at[i] > t })
}

// over is the time-weighted mean and the greatest number in flight between two times.
func (v curve) over(from, to time.Duration) (mean Num, most int) {
	i, n, at, area := v.after(from), 0, from, 0.0
	if i > 0 {
		n = v.n[i-1]
	}
	for ; i < len(v.at) && v.at[i] < to; i++ {
		most = max(most, n)
		area += float64(n) * float64(v.at[i]-at)
		at, n = v.at[i], v.n[i]
	}
	most = max(most, n)
	area += float64(n) * float64(to-at)
	if to <= from {
		return Missing, most
	}
	return Num(area / float64(to-from)), most
}

// most is the greatest number in flight.
func (v curve) most() int {
	if len(v.n) == 0 {
		return 0
	}
	return slices.Max(v.n)
}

// reach is a stretch of time.
type reach struct{ from, to time.Duration }

func (r reach) length() time.Duration { return r.to - r.from }

// atLeast are the stretches in which at least n are in flight, with dips below 50 ms ignored.
func (v curve) atLeast(n int) []reach {
	var out []reach
	for i := 0; i < len(v.at); i++ {
		if v.n[i] < n {
			continue
		}
		from := v.at[i]
		for i < len(v.at) && v.n[i] >= n {
			i++
		}
		to := from
		if i < len(v.at) {
			to = v.at[i]
		}
		if k := len(out) - 1; k >= 0 && from-out[k].to < dip {
			out[k].to = to
		} else {
			out = append(out, reach{from, to})
		}
	}
	return out
}

// span counts what arrived in (from, to], and at from itself where it is the start of the run.
func (c *computation) span(from, to time.Duration, v curve) Span {
	return c.spanWithout(from, to, nil, v)
}

// spanWithout leaves out pauses, which are in order and do not overlap.
func (c *computation) spanWithout(from, to time.Duration, pauses []reach, v curve) Span {
	s := Span{From: from, To: to, OutputRate: Missing, RequestRate: Missing, InFlight: Missing}
	area := 0.0
	count := func(part reach) {
		tokens, requests := c.received(part.from, part.to)
		mean, most := v.over(part.from, part.to)
		s.Tokens, s.Requests, s.InFlightMax = s.Tokens+tokens, s.Requests+requests, max(s.InFlightMax, most)
		if part.length() > 0 {
			area += float64(mean) * float64(part.length())
		}
	}
	at := from
	for _, p := range pauses {
		p.from, p.to = max(p.from, at), min(p.to, to)
		if p.length() <= 0 {
			continue
		}
		count(reach{at, p.from})
		s.Paused += p.length()
		at = p.to
	}
	count(reach{at, to})
	if t := seconds(s.Time()); t > 0 {
		s.OutputRate = Num(s.Tokens) / t
		s.RequestRate = Num(s.Requests) / t
		s.InFlight = Num(area / float64(s.Time()))
	}
	return s
}

// completed is the number of measured requests that completed in (from, to].
func (c *computation) completed(r reach) int {
	return sort.Search(len(c.completions), func(i int) bool { return c.completions[i] > r.to }) -
		sort.Search(len(c.completions), func(i int) bool { return c.completions[i] > r.from })
}

// received counts the tokens that arrived in (from, to], whichever request they belong to, and the
// measured requests that completed in it.
func (c *computation) received(from, to time.Duration) (tokens, requests int) {
	requests = c.completed(reach{from, to})
	for i := range c.run.Requests {
		r := &c.run.Requests[i]
		n := len(r.Arrivals)
		if n == 0 || r.Arrivals[n-1].At <= from || r.Arrivals[0].At > to {
			continue
		}
		if r.Arrivals[0].At > from && r.Arrivals[n-1].At <= to {
			tokens += r.N
			continue
		}
		for _, a := range r.Arrivals[arrivalAfter(r.Arrivals, from):arrivalAfter(r.Arrivals, to)] {
			tokens += a.Tokens
		}
	}
	return tokens, requests
}

// arrivalAfter is the index of the first arrival after t.
func arrivalAfter(a []Arrival, t time.Duration) int {
	return sort.Search(len(a), func(i int) bool { return a[i].At > t })
}

// bounds is the time from the first t0 to the last cm of requests; ok is false where no token came.
func bounds(requests []*Request) (from, to time.Duration, ok bool) {
	from, to = farthest, -farthest
	for _, r := range requests {
		if known(r.Start) {
			from = min(from, r.Start)
		}
		if n := len(r.Arrivals); n > 0 && known(r.Arrivals[n-1].At) {
			to = max(to, r.Arrivals[n-1].At)
		}
	}
	return from, to, from < to && from > -farthest && to < farthest
}
