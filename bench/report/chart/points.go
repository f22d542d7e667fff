package chart

import (
	"cmp"
	"math"
	"slices"
)

// runs splits points where y is missing. Points without a finite x, and on a
// logarithmic axis values that have no place on it, count as missing too.
func runs(points []Point, logX, logY bool) [][]Point {
	var all [][]Point
	var run []Point
	for _, p := range points {
		if !places(p.X, logX) {
			continue
		}
		if !places(p.Y, logY) {
			if len(run) > 0 {
				all = append(all, run)
				run = nil
			}
			continue
		}
		run = append(run, p)
	}
	if len(run) > 0 {
		all = append(all, run)
	}
	return all
}

// steps holds each value until the next x.
func steps(run []Point) []Point {
	if len(run) < 2 {
		return run
	}
	out := make([]Point, 0, 2*len(run)-1)
	for i, p := range run {
		if i > 0 && p.Y != run[i-1].Y {
			out = append(out, Point{p.X, run[i-1].Y})
		}
		out = append(out, p)
	}
	return out
}

// value is the inverse of fraction.
func (s *scale) value(f float64) float64 {
	if s.log {
		lo, hi := math.Log10(s.min), math.Log10(s.max)
		return math.Pow(10, lo+f*(hi-lo))
	}
	return s.min*(1-f) + s.max*f
}

func (s *scale) holds(v float64) bool { return v >= s.min && v <= s.max }

// clip cuts a run to the scales: the parts of the polyline, straight as
// drawn, that lie inside the plot.
func clip(run []Point, x, y *scale) [][]Point {
	inside := true
	for _, p := range run {
		if !x.holds(p.X) || !y.holds(p.Y) {
			inside = false
			break
		}
	}
	if inside {
		return [][]Point{run}
	}
	var parts [][]Point
	var part []Point
	flush := func() {
		if len(part) > 0 {
			parts = append(parts, part)
			part = nil
		}
	}
	for i, p := range run {
		in := x.holds(p.X) && y.holds(p.Y)
		if i == 0 {
			if in {
				part = append(part, p)
			}
			continue
		}
		q := run[i-1]
		a := vec{x.fraction(q.X), y.fraction(q.Y)}
		b := vec{x.fraction(p.X), y.fraction(p.Y)}
		from, to, ok := inUnitSquare(a, b)
		if !ok {
			flush()
			continue
		}
		// Whether an end lies inside is asked of the end itself: for values
		// far outside, the share rounds to 0 or 1.
		if !x.holds(q.X) || !y.holds(q.Y) {
			flush()
			part = append(part, between(q, a, b, from, x, y))
		}
		if in {
			part = append(part, p)
		} else {
			part = append(part, between(q, a, b, to, x, y))
			flush()
		}
	}
	flush()
	return parts
}

// between is the value at the share t of the way from a to b, which are
// fractions of the axes.
func between(from Point, a, b vec, t float64, x, y *scale) Point {
	p := from
	if a.x != b.x {
		p.X = math.Max(x.min, math.Min(x.max, x.value(a.x+t*(b.x-a.x))))
	}
	if a.y != b.y {
		p.Y = math.Max(y.min, math.Min(y.max, y.value(a.y+t*(b.y-a.y))))
	}
	return p
}

// inUnitSquare returns the shares of the way from a to b between which the
// segment lies in the unit square (Liang and Barsky 1984).
func inUnitSquare(a, b vec) (from, to float64, ok bool) {
	from, to = 0, 1
	for _, edge := range [4][2]float64{
		{a.x - b.x, a.x}, {b.x - a.x, 1 - a.x}, {a.y - b.y, a.y}, {b.y - a.y, 1 - a.y},
	} {
		p, q := edge[0], edge[1]
		switch {
		case p == 0:
			if q < 0 {
				return 0, 0, false
			}
		case p < 0:
			from = math.Max(from, q/p)
		default:
			to = math.Min(to, q/p)
		}
	}
	return from, to, from <= to
}

// flatten keeps a run whole for an area: what lies above or below the plot
// is moved to its edge, with points added where the line crosses it; what
// lies left or right of it is cut off.
func flatten(run []Point, x, y *scale) [][]Point {
	tall := *y
	for _, p := range run {
		tall.min, tall.max = math.Min(tall.min, p.Y), math.Max(tall.max, p.Y)
	}
	parts := clip(run, x, &tall)
	if tall.min == y.min && tall.max == y.max {
		return parts
	}
	for i, part := range parts {
		var out []Point
		for j, p := range part {
			if j > 0 {
				out = append(out, crossings(part[j-1], p, x, y)...)
			}
			out = append(out, Point{p.X, math.Max(y.min, math.Min(y.max, p.Y))})
		}
		parts[i] = out
	}
	return parts
}

// crossings returns where the segment passes the lower and upper edge, in
// the order of the way.
func crossings(p, q Point, x, y *scale) []Point {
	a, b := vec{x.fraction(p.X), y.fraction(p.Y)}, vec{x.fraction(q.X), y.fraction(q.Y)}
	var out []Point
	edges := [2]float64{0, 1}
	if a.y > b.y {
		edges = [2]float64{1, 0}
	}
	for _, edge := range edges {
		if (a.y-edge)*(b.y-edge) < 0 {
			t := (edge - a.y) / (b.y - a.y)
			at := between(p, a, b, t, x, y)
			if edge == 0 {
				at.Y = y.min
			} else {
				at.Y = y.max
			}
			out = append(out, at)
		}
	}
	return out
}

// decimate thins a run to at most four points a pixel column: the first, the
// lowest, the highest and the last of each, in their order, so that the
// drawn line covers the same pixels (the M4 aggregation of Jugel et al.
// 2014) and no spike or stall is lost. A run that goes back and forth in x so
// often that this leaves too many is taken in the order of x. width is that
// of the plot in px.
func decimate(run []Point, x *scale, width float64) []Point {
	most := 4*int(width) + 8
	if len(run) <= most {
		return run
	}
	out := columns(run, x, width)
	if len(out) > 2*most {
		run = slices.Clone(run)
		slices.SortStableFunc(run, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
		out = columns(run, x, width)
	}
	return out
}

// columns does the thinning of decimate.
func columns(run []Point, x *scale, width float64) []Point {
	out := make([]Point, 0, 4*int(width)+8)
	column := func(p Point) int { return int(math.Floor(x.fraction(p.X) * width)) }
	for start := 0; start < len(run); {
		c := column(run[start])
		end, lowest, highest := start, start, start
		for ; end < len(run) && column(run[end]) == c; end++ {
			if run[end].Y < run[lowest].Y {
				lowest = end
			}
			if run[end].Y > run[highest].Y {
				highest = end
			}
		}
		last := end - 1
		a, b := min(lowest, highest), max(lowest, highest)
		out = append(out, run[start])
		for _, i := range [3]int{a, b, last} {
			if i > start && run[i] != out[len(out)-1] {
				out = append(out, run[i])
			}
		}
		start = end
	}
	return out
}

// sample is one x of an envelope.
type sample struct{ x, lo, hi float64 }

// samples pairs up an envelope, split where it is missing; on a logarithmic
// axis a lowest value ≤ 0 counts as missing.
func (e *Envelope) samples(logX, logY bool) [][]sample {
	if e == nil {
		return nil
	}
	var all [][]sample
	var run []sample
	for i := range min(len(e.X), len(e.Lo), len(e.Hi)) {
		x, lo, hi := e.X[i], math.Min(e.Lo[i], e.Hi[i]), math.Max(e.Lo[i], e.Hi[i])
		if !places(x, logX) {
			continue
		}
		if !places(lo, logY) || !places(hi, logY) {
			if len(run) > 0 {
				all = append(all, run)
				run = nil
			}
			continue
		}
		run = append(run, sample{x, lo, hi})
	}
	if len(run) > 0 {
		all = append(all, run)
	}
	return all
}

// cover thins samples to one a pixel column, with the lowest and the highest
// of the column, moves them into the plot and drops those beside it.
func cover(run []sample, x, y *scale, width float64) []sample {
	var out []sample
	column := math.MinInt
	inside := func(v float64) float64 { return math.Max(y.min, math.Min(y.max, v)) }
	for i, s := range run {
		if !x.holds(s.x) {
			continue
		}
		s.lo, s.hi = inside(s.lo), inside(s.hi)
		c := int(math.Floor(x.fraction(s.x) * width))
		if len(run) > 2*int(width) && c == column && i > 0 {
			first := &out[len(out)-1]
			first.lo, first.hi = math.Min(first.lo, s.lo), math.Max(first.hi, s.hi)
			continue
		}
		column = c
		out = append(out, s)
	}
	return out
}
