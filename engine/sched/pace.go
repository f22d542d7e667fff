package sched

import "time"

// Bounds of a step that is cut to a time.
const (
	leastRows = 16 // so that a prompt is read at all
	firstRows = 64 // while nothing is known of the machine
	paceRows  = 8  // a step with fewer rows of prompts says little about them
)

// pace learns how long a row of a prompt takes. What a row computes does not
// depend on the step it is in, so the pace decides when answers come and never
// what they are.
type pace struct{ row float64 } // seconds; 0 = not known

// note takes a step into account, the latest with a weight of 0.3.
func (p *pace) note(s Step) {
	if s.Prefill < paceRows {
		return
	}
	row := s.Took.Seconds() / float64(s.Rows)
	if p.row == 0 {
		p.row = row
	}
	p.row += 0.3 * (row - p.row)
}

// rows is how many rows a step may have.
func (p *pace) rows(limit time.Duration, most int) int {
	switch {
	case limit <= 0:
		return most
	case p.row <= 0:
		return min(most, firstRows)
	}
	return min(most, max(leastRows, int(min(limit.Seconds()/p.row, 1<<20))))
}
