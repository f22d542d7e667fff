package measure

import (
	"math"
	"time"
)

// A line is the rolling rate of several streams together, at the lines of a grid: the tokens that
// they received in (t − w, t] over the time in it in which at least one of them was decoding, from
// 0.25 s of such time on. For one stream it is the rolling rate of definitions.md.
//
// It is kept as tokens a grid cell, (k·step, (k+1)·step], so that a stream's counts can be put right
// when the server's usage has come, without the chunks being kept.
type line struct {
	step   time.Duration
	cells  int // of the window
	most   int // cells at most
	base   int // number of the first cell of tokens
	floor  int // cells below it were trimmed
	tokens []int64
}

// mostCells bounds a line: 29 hours of 100 ms. A longer one has a coarser grid. A running line can
// have a quarter of that behind what is settled (see liveLine); what comes later is left out of it.
const mostCells = 1 << 20

// newLine is a line with a grid that is fine enough to hold a length of time in most cells.
func newLine(w, length time.Duration, most int) *line {
	step := tick * (1 + length/tick/time.Duration(most))
	return &line{step: step, cells: int(max(1, (w+step/2)/step)), most: most, floor: math.MinInt}
}

// add counts tokens that arrived at a time. A negative number takes them back.
func (l *line) add(at time.Duration, tokens int) {
	if !known(at) || tokens == 0 {
		return
	}
	k := bucketOf(at, l.step)
	if k < l.floor {
		return
	}
	if len(l.tokens) == 0 {
		l.base = k
	}
	if k < l.base {
		if l.base-k+len(l.tokens) > l.most {
			return
		}
		l.tokens = append(make([]int64, l.base-k, l.base-k+len(l.tokens)), l.tokens...)
		l.base = k
	}
	if k-l.base >= l.most {
		return
	}
	for k-l.base >= len(l.tokens) {
		l.tokens = append(l.tokens, 0)
	}
	l.tokens[k-l.base] += int64(tokens)
}

func (l *line) at(cell int) int64 {
	if cell < l.base || cell-l.base >= len(l.tokens) {
		return 0
	}
	return l.tokens[cell-l.base]
}

// sweep walks along a line and emits its points; it can be copied to go on from where it is.
type sweep struct {
	cell    int   // the next one to end
	tokens  int64 // in the window that ends with the cell before
	head    edge  // at the end of the window
	tail    edge  // at its begin
	entered int   // periods that have begun
	begun   bool
}

// edge knows how much decode time, and how many tokens that open periods, lie before a time.
type edge struct {
	next int // first period that does not end before the time
	busy time.Duration
	open int64
}

// to moves the edge on to t, which must not go back, and returns the busy time and the opening
// tokens before it.
func (e *edge) to(ps periods, t time.Duration) (time.Duration, int64) {
	for e.next < len(ps) && ps[e.next].to <= t {
		e.busy += ps[e.next].to - ps[e.next].from
		e.open += int64(ps[e.next].open)
		e.next++
	}
	if e.next < len(ps) && ps[e.next].from <= t {
		return e.busy + t - ps[e.next].from, e.open + int64(ps[e.next].open)
	}
	return e.busy, e.open
}

// walk emits the points of the line up to the end of a cell. Between two periods the line is zero:
// points at the end of the one and the begin of the next say so; they are no samples.
func (s *sweep) walk(l *line, ps periods, until int, emit func(p RollingSample, sample bool)) {
	if len(ps) == 0 || len(l.tokens) == 0 {
		return
	}
	if !s.begun {
		s.cell = max(bucketOf(ps[0].from, l.step), l.base-l.cells)
		s.begun = s.cell <= until
	}
	until = min(until, l.base+l.most)
	if l.base-s.cell > l.most {
		s.cell, s.tokens = l.base-l.cells, 0
	}
	for ; s.cell <= until; s.cell++ {
		s.tokens += l.at(s.cell) - l.at(s.cell-l.cells)
		end := time.Duration(s.cell+1) * l.step
		busy, opened := s.head.to(ps, end)
		entered := s.head.next
		if entered < len(ps) && ps[entered].from <= end {
			entered++
		}
		for i := max(s.entered, 1); i < entered; i++ {
			if ps[i].from-ps[i-1].to >= l.step {
				emit(RollingSample{ps[i-1].to, 0}, false)
				emit(RollingSample{ps[i].from, 0}, false)
			}
		}
		s.entered = max(s.entered, entered)
		busyBefore, openedBefore := s.tail.to(ps, end-time.Duration(l.cells)*l.step)
		busy -= busyBefore
		at := s.head.next
		decoding := at < len(ps) && ps[at].from < end || at > 0 && ps[at-1].to == end
		if decoding && busy >= settle {
			n := s.tokens - (opened - openedBefore)
			emit(RollingSample{end, float64(n) / busy.Seconds()}, true)
		}
		if !decoding {
			next := until + 1
			if at < len(ps) {
				next = min(next, bucketOf(ps[at].from, l.step))
			}
			s.skip(l, next-1)
		}
	}
}

// skip goes to cell k, over cells in which nothing is decoding.
func (s *sweep) skip(l *line, k int) {
	if k-s.cell <= l.cells {
		return
	}
	s.cell = k
	s.tokens = 0
	for i := k - l.cells + 1; i <= k; i++ {
		s.tokens += l.at(i)
	}
}

// trim forgets the cells that a sweep that has come to a cell no longer needs.
func (l *line) trim(cell int) {
	if d := min(cell-l.cells-l.base, len(l.tokens)); d > 256 {
		l.tokens = l.tokens[:copy(l.tokens, l.tokens[d:])]
		l.base += d
		l.floor = l.base
	}
}
