package chart

import (
	"math"
	"sort"
)

// spread moves wanted positions apart to at least the given distance within
// [lo, hi], each as little as that needs, and reports whether they fit.
func spread(wanted []float64, distance, lo, hi float64) ([]float64, bool) {
	n := len(wanted)
	if n == 0 {
		return nil, true
	}
	if float64(n-1)*distance > hi-lo+1e-9 {
		return nil, false
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return wanted[order[a]] < wanted[order[b]] })
	// Blocks of labels that touch; each sits at the mean of what its members
	// want, less their offset in the block (pool adjacent violators).
	type block struct {
		sum   float64
		count int
		start float64
	}
	place := func(b block) float64 {
		size := float64(b.count-1) * distance
		return math.Max(lo, math.Min(hi-size, b.sum/float64(b.count)))
	}
	var blocks []block
	for _, i := range order {
		b := block{sum: wanted[i], count: 1}
		b.start = place(b)
		for len(blocks) > 0 {
			above := blocks[len(blocks)-1]
			if above.start+float64(above.count)*distance <= b.start+1e-9 {
				break
			}
			merged := block{count: above.count + b.count}
			merged.sum = above.sum + b.sum - float64(b.count)*float64(above.count)*distance
			merged.start = place(merged)
			blocks = blocks[:len(blocks)-1]
			b = merged
		}
		blocks = append(blocks, b)
	}
	out := make([]float64, n)
	k := 0
	for _, b := range blocks {
		for j := 0; j < b.count; j++ {
			out[order[k]] = b.start + float64(j)*distance
			k++
		}
	}
	return out, true
}

// tag is a label that belongs to an x position in a row above the plot.
type tag struct {
	text   string
	centre float64 // px
	width  float64
	row    int // 0 is the lowest; −1 found no room
	left   float64
}

// stack gives each tag, in order of its centre, a row in which it keeps gap
// px away from its neighbours, and reports how many rows that took. A tag
// takes the lowest row where it can stand centred; where none is left it
// moves to the right of what is there, as little as that needs. Tags stay
// within [lo, hi]; what finds no room is left out.
func stack(tags []tag, lo, hi, gap float64, maxRows int) int {
	order := make([]int, len(tags))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return tags[order[a]].centre < tags[order[b]].centre })
	var ends []float64
	for _, i := range order {
		t := &tags[i]
		t.row = -1
		if t.width > hi-lo {
			continue
		}
		wanted := math.Max(lo, math.Min(hi-t.width, t.centre-t.width/2))
		for row, end := range ends {
			left := math.Max(wanted, end+gap)
			if left+t.width <= hi && (t.row < 0 || left < t.left) {
				t.row, t.left = row, left
			}
		}
		if (t.row < 0 || t.left > wanted) && len(ends) < maxRows {
			t.row, t.left = len(ends), wanted
			ends = append(ends, 0)
		}
		if t.row >= 0 {
			ends[t.row] = t.left + t.width
		}
	}
	return len(ends)
}
