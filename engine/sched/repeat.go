package sched

// repeats notices an answer that goes round in circles: its last window tokens
// are three or more repeats of the same period. Whole windows are asked for,
// so that a row of dashes or a table does not count.
type repeats struct {
	window int
	recent []int32 // the last tokens, a ring as long as the longest period
	run    []int   // run[p-1]: how many last tokens equal the one p before them
	n      int
}

// longestPeriod bounds what a token costs.
const longestPeriod = 100

// newRepeats looks for at least times repeats, of up to longestPeriod tokens,
// within window tokens.
func newRepeats(window, times int) *repeats {
	longest := min(max(window/times, 1), longestPeriod)
	return &repeats{window: window, recent: make([]int32, longest), run: make([]int, longest)}
}

// add takes the next token and tells whether the answer is a loop.
func (r *repeats) add(id int32) (loop bool) {
	longest := len(r.recent)
	for p := 1; p <= min(longest, r.n); p++ {
		if r.recent[(r.n-p)%longest] != id {
			r.run[p-1] = 0
			continue
		}
		r.run[p-1]++
		loop = loop || r.run[p-1]+p >= r.window
	}
	r.recent[r.n%longest] = id
	r.n++
	return loop
}
