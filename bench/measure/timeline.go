package measure

import "slices"

// Rates is a rate over time.
type Rates struct {
	Worker int             // −1 for the sum
	Points []RollingSample // the rolling rate; zero at the ends of a pause; at most TimelinePoints
}

// TimelinePoints is the greatest number of points of a line of Run.Timeline. A longer line is
// thinned, its extremes kept.
const TimelinePoints = 2000

// timeline draws a line a worker, of its requests' rolling rates, and the line of all streams
// together.
func (c *computation) timeline() []Rates {
	byWorker := map[int]*streams{}
	first, last := farthest, -farthest
	for i := range c.run.Requests {
		if p, ok := c.run.Requests[i].decoding(); ok {
			first, last = min(first, p.from), max(last, p.to)
		}
	}
	streamsOf := func() *streams {
		return &streams{line: newLine(c.options.window(), max(0, last-first), mostCells)}
	}
	all := streamsOf()
	for i := range c.run.Requests {
		r := &c.run.Requests[i]
		p, ok := r.decoding()
		if !ok {
			continue
		}
		w := byWorker[r.Worker]
		if w == nil {
			w = streamsOf()
			byWorker[r.Worker] = w
		}
		w.add(r, p)
		all.add(r, p)
	}
	var workers []int
	for w := range byWorker {
		workers = append(workers, w)
	}
	slices.Sort(workers)
	var out []Rates
	for _, w := range workers {
		out = append(out, Rates{w, byWorker[w].points()})
	}
	if len(out) > 0 {
		out = append(out, Rates{-1, all.points()})
	}
	return out
}

// streams are some requests whose rates are drawn as one line.
type streams struct {
	line    *line
	periods periods
}

func (s *streams) add(r *Request, p period) {
	s.periods.add(p)
	for _, a := range r.Arrivals {
		s.line.add(a.At, a.Tokens)
	}
}

func (s *streams) points() []RollingSample {
	t := newThinner(TimelinePoints)
	var w sweep
	if n := len(s.periods); n > 0 {
		w.walk(s.line, s.periods, bucketOf(s.periods[n-1].to, s.line.step), func(p RollingSample, _ bool) { t.add(p) })
	}
	return t.points(TimelinePoints)
}
