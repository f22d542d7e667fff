package measure

import (
	"fmt"
	"slices"
	"time"

	"velo/bench"
)

// flow is a stretch of steps between two barriers: one step that drains before the next begins, or
// several that run into each other with the same number of workers.
type flow struct {
	steps    []*bench.Step
	requests []*Request // of the steps, warm-up included
	measured []*Request
	curve    curve
}

// flows cuts the session's steps at the barriers.
func (c *computation) flows() []*flow {
	steps := slices.Clone(c.session.Steps)
	slices.SortStableFunc(steps, func(a, b *bench.Step) int { return a.Number - b.Number })
	var out []*flow
	of := map[int]*flow{}
	for i, s := range steps {
		if i == 0 || steps[i-1].Barrier || steps[i-1].Workers != s.Workers {
			out = append(out, &flow{})
		}
		f := out[len(out)-1]
		f.steps = append(f.steps, s)
		of[s.Number] = f
	}
	for i := range c.run.Requests {
		r := &c.run.Requests[i]
		if f := of[r.Step]; f != nil {
			f.requests = append(f.requests, r)
			if r.Measured() {
				f.measured = append(f.measured, r)
			}
		}
	}
	for _, f := range out {
		f.curve = c.curveOf(f.requests)
	}
	return out
}

// pauses are the stretches that warm-up steps take which drain before the next step begins: from the
// end of the measured requests before them to the first t0 of those after them.
func (c *computation) pauses(flows []*flow) []reach {
	var out []reach
	end, begun, warm := -farthest, false, false
	for _, f := range flows {
		from, to, ok := c.limits(f.measured)
		if !ok {
			warm = warm || len(f.requests) > 0
			continue
		}
		if begun && warm && from > end {
			out = append(out, reach{end, from})
		}
		end, begun, warm = max(end, to), true, false
	}
	return out
}

// target is the number of streams that were to run together.
func (f *flow) target() int { return max(1, f.steps[0].Workers) }

// steady finds the steady state of a closed loop among flows, each looked at within its limits: the
// longest span in which at least max(1, ⌊0.95 · target⌋) requests are in flight, dips under 50 ms
// ignored, and at least max(30, 2 · target) requests complete.
func (c *computation) steady(flows []*flow, limits func(*flow) (from, to time.Duration, ok bool)) Span {
	var best, longest reach
	var of *flow
	short := "no steady state: the streams asked for never ran together"
	for _, f := range flows {
		from, to, ok := limits(f)
		if !ok {
			continue
		}
		enough, need := max(1, f.target()*95/100), max(30, 2*f.target())
		for _, part := range f.curve.atLeast(enough) {
			part.from, part.to = max(part.from, from), min(part.to, to)
			if part.to <= part.from || part.length() <= best.length() {
				continue
			}
			if n := c.completed(part); n >= need {
				best, of = part, f
			} else if part.length() > longest.length() {
				longest = part
				short = fmt.Sprintf("no steady state: %s completed while at least %d of %d streams ran, %d are needed",
					plural(n, "request"), enough, f.target(), need)
			}
		}
	}
	if of == nil {
		return noSpan(short)
	}
	return c.span(best.from, best.to, of.curve)
}

// steadyOpen is the steady state of an open loop: from the first to the last planned arrival of the
// measured requests.
func (c *computation) steadyOpen(requests []*Request, v curve) Span {
	from, to := farthest, -farthest
	for _, r := range requests {
		if known(r.Planned) {
			from, to = min(from, r.Planned), max(to, r.Planned)
		}
	}
	if from >= to {
		return noSpan("no steady state: fewer than two arrivals were planned")
	}
	s := c.span(from, to, v)
	if s.Requests < 30 {
		return noSpan(fmt.Sprintf("no steady state: %s completed between the first and the last planned arrival, 30 are needed", plural(s.Requests, "request")))
	}
	return s
}

// plural is a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
