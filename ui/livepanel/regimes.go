package livepanel

import (
	"sort"

	"velo/bench"
	"velo/bench/measure"
	"velo/bench/regime"
)

// mark notes how much text there was at a moment.
type mark struct {
	at   float64 // seconds from the start
	size int     // bytes of all channels
}

// follower gives the text of a turn that runs to a classifier and notes when it came. What kind a text
// is may be clear only later: its time is kept until then.
type follower struct {
	turn              string
	of                *regime.Classifier
	reasoning, answer int // bytes that were given
	marks             []mark
	begun             bool
	first, last       float64
}

// look takes the text as it is now.
func (f *follower) look(turn, reasoning, answer string, at float64) {
	if f.turn != turn || len(reasoning) < f.reasoning || len(answer) < f.answer {
		*f = follower{turn: turn, of: &regime.Classifier{}}
	}
	if len(reasoning)+len(answer) == f.reasoning+f.answer {
		return
	}
	if !f.begun {
		f.begun, f.first = true, at
	}
	f.last = at
	f.of.Push(reasoning[f.reasoning:], bench.Reasoning)
	f.of.Push(answer[f.answer:], bench.Content)
	f.reasoning, f.answer = len(reasoning), len(answer)
	f.marks = append(f.marks, mark{at, f.reasoning + f.answer})
}

// time is when the text had that many bytes, between the looks that saw less and more.
func (f *follower) time(size int) float64 {
	i := sort.Search(len(f.marks), func(i int) bool { return f.marks[i].size >= size })
	if i == len(f.marks) {
		return f.last
	}
	before := mark{f.first, 0}
	if i > 0 {
		before = f.marks[i-1]
	}
	m := f.marks[i]
	if m.size == before.size {
		return m.at
	}
	return before.at + (m.at-before.at)*float64(size-before.size)/float64(m.size-before.size)
}

// bands are the times of the regimes so far.
func (f *follower) bands() []band {
	if !f.begun {
		return nil
	}
	var out []band
	for _, s := range f.of.Spans() {
		out = add(out, band{f.time(s.From), f.time(s.To), s.Regime.String()})
	}
	return out
}

// add joins a band to the last one of the same regime.
func add(out []band, b band) []band {
	if b.to < b.from {
		b.to = b.from
	}
	if n := len(out); n > 0 && out[n-1].regime == b.regime && b.from <= out[n-1].to+1e-9 {
		out[n-1].to = max(out[n-1].to, b.to)
		return out
	}
	return append(out, b)
}

// bandsOfArrivals are the times of the regimes of a turn that has ended, from those of its arrivals: each
// has the gap before it. start is where the request begins on the line, seconds.
func bandsOfArrivals(r *measure.Request, kinds []regime.Regime, start float64) []band {
	if len(kinds) != len(r.Arrivals) || r.Start == bench.Unset {
		return nil
	}
	at := func(i int) float64 { return start + (r.Arrivals[i].At - r.Start).Seconds() }
	var out []band
	for i, k := range kinds {
		out = add(out, band{at(max(i-1, 0)), at(i), k.String()})
	}
	return out
}

// bandsAt are the times of the regimes of turn i of those that have ended: arrival by arrival where the
// session has its texts, else from the turn's.
func (e *Ended) bandsAt(i int) []band {
	st := &e.Statistics
	if i >= len(st.Starts) {
		return nil
	}
	start := st.Starts[i].Seconds()
	if i < len(st.Kinds) && st.Kinds[i] != nil {
		return bandsOfArrivals(&st.Requests[i], st.Kinds[i], start)
	}
	if i < len(e.Texts) {
		return bandsOf(&st.Requests[i], e.Texts[i].Reasoning, e.Texts[i].Answer, start)
	}
	return nil
}

// bandsOf are the times of the regimes of a turn that has ended, from its text and its arrivals: within
// a channel the text is taken to have come in step with the tokens. start is where the request begins on
// the line, seconds.
func bandsOf(r *measure.Request, reasoning, answer string, start float64) []band {
	if len(r.Arrivals) == 0 || r.Start == bench.Unset {
		return nil
	}
	c := &regime.Classifier{}
	c.Push(reasoning, bench.Reasoning)
	c.Push(answer, bench.Content)
	at := func(i int) float64 { return start + (r.Arrivals[i].At - r.Start).Seconds() }
	// The bytes that had come with each arrival, by channel, on one axis: reasoning first.
	var tokens, total [2]int
	side := func(i int) int {
		if r.Arrivals[i].Channel == bench.Reasoning {
			return 0
		}
		return 1
	}
	for i := range r.Arrivals {
		total[side(i)] += r.Arrivals[i].Tokens
	}
	size := [2]int{len(reasoning), len(answer)}
	type point struct {
		at   float64
		size int
	}
	var points [2][]point
	for i := range r.Arrivals {
		k := side(i)
		tokens[k] += r.Arrivals[i].Tokens
		if total[k] > 0 {
			points[k] = append(points[k], point{at(i), int(float64(size[k]) * float64(tokens[k]) / float64(total[k]))})
		}
	}
	when := func(k, n int) float64 {
		p := points[k]
		i := sort.Search(len(p), func(i int) bool { return p[i].size >= n })
		switch {
		case len(p) == 0:
			return at(0)
		case i == len(p):
			return p[len(p)-1].at
		}
		return p[i].at
	}
	var out []band
	for _, s := range c.Spans() {
		k, off := 0, 0
		if s.From >= size[0] {
			k, off = 1, size[0]
		}
		out = add(out, band{when(k, s.From-off), when(k, min(s.To-off, size[k])), s.Regime.String()})
	}
	return out
}
