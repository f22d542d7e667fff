package measure

import "time"

// A thinner keeps a line of any length in a bounded number of cells: each holds the least and the
// greatest of the points of a stretch of time that is as long as the others', so that no extreme is
// lost, and no end of a long stretch without points. When the cells are full, neighbours are joined.
// Adding a point costs O(1), amortised.
type thinner struct {
	limit int           // of cells; even
	size  time.Duration // time a cell
	cells []extremes
}

// extremes are the least and the greatest of the points in (slot·size, (slot+1)·size].
type extremes struct {
	least, most RollingSample
	slot        int
}

// newThinner makes one that gives at most points points.
func newThinner(points int) thinner { return thinner{limit: max(4, points/4*2), size: tick} }

// add takes the next point, which must not be earlier than the one before.
func (t *thinner) add(p RollingSample) {
	slot := bucketOf(p.At, t.size)
	if k := len(t.cells) - 1; k >= 0 && slot <= t.cells[k].slot {
		t.cells[k].join(extremes{p, p, slot})
		return
	}
	if len(t.cells) == t.limit {
		t.cells = halve(t.cells)
		t.size *= 2
		t.add(p)
		return
	}
	t.cells = append(t.cells, extremes{p, p, slot})
}

func (e *extremes) join(o extremes) {
	if o.least.Rate < e.least.Rate {
		e.least = o.least
	}
	if o.most.Rate > e.most.Rate {
		e.most = o.most
	}
}

// halve makes cells of twice the time of them, in place.
func halve(cells []extremes) []extremes {
	out := cells[:0]
	for _, c := range cells {
		c.slot >>= 1
		if k := len(out) - 1; k >= 0 && out[k].slot == c.slot {
			out[k].join(c)
		} else {
			out = append(out, c)
		}
	}
	return out
}

// copyFrom makes t a copy of o in t's own memory.
func (t *thinner) copyFrom(o *thinner) {
	t.limit, t.size = o.limit, o.size
	t.cells = append(t.cells[:0], o.cells...)
}

// points are the extremes of the cells in order of time, at most limit of them.
func (t *thinner) points(limit int) []RollingSample {
	cells := t.cells
	if 2*len(cells) > limit {
		cells = append([]extremes(nil), cells...)
		for 2*len(cells) > limit && len(cells) > 2 { // the first can lie before time zero
			cells = halve(cells)
		}
	}
	out := make([]RollingSample, 0, 2*len(cells))
	for _, c := range cells {
		a, b := c.least, c.most
		if b.At < a.At {
			a, b = b, a
		}
		out = append(out, a)
		if b != a {
			out = append(out, b)
		}
	}
	return out
}
