package measure

// A thinner keeps a line of any length in a bounded number of cells: each holds the least and the
// greatest of as many consecutive points as the others, so that no extreme is lost. When the cells
// are full, neighbours are joined. Adding a point costs O(1), amortised.
type thinner struct {
	limit int // of cells; even
	size  int // points a cell
	cells []extremes
}

// extremes are the least and the greatest of n consecutive points.
type extremes struct {
	least, most RollingSample
	n           int
}

// newThinner makes one that gives at most points points.
func newThinner(points int) thinner { return thinner{limit: max(2, points/4*2), size: 1} }

func (t *thinner) add(p RollingSample) {
	if k := len(t.cells) - 1; k >= 0 && t.cells[k].n < t.size {
		t.cells[k].join(extremes{p, p, 1})
		return
	}
	if len(t.cells) == t.limit {
		t.cells = halve(t.cells)
		t.size *= 2
		t.add(p)
		return
	}
	t.cells = append(t.cells, extremes{p, p, 1})
}

func (e *extremes) join(o extremes) {
	if o.least.Rate < e.least.Rate {
		e.least = o.least
	}
	if o.most.Rate > e.most.Rate {
		e.most = o.most
	}
	e.n += o.n
}

// halve joins neighbouring cells in place.
func halve(cells []extremes) []extremes {
	out := cells[:0]
	for i := 0; i < len(cells); i += 2 {
		c := cells[i]
		if i+1 < len(cells) {
			c.join(cells[i+1])
		}
		out = append(out, c)
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
		for 2*len(cells) > limit && len(cells) > 1 {
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
