//go:build linux && cuda && cgo

package cuda

import (
	"testing"

	"velo/engine/ops"
)

// TestBatchOfDeferredStep: the calls of a step whose results nobody reads run when the next one begins,
// and by then its batch has been made anew in the same memory. No device is needed.
func TestBatchOfDeferredStep(t *testing.T) {
	b := &Backend{options: BackendOptions{Rows: 4}, input: input{rows: 4, values: make([]int32, 1024)}}
	batch := &ops.Batch{Tokens: []int32{1, 2, 3}, Positions: []int32{0, 1, 0}, Segments: []ops.Segment{{Rows: 2, Pages: []int32{0}}, {Row: 2, Rows: 1, Pages: []int32{1}, State: 1}}}
	b.Begin(batch)
	batch.Tokens, batch.Positions, batch.Segments = append(batch.Tokens[:0], 4), append(batch.Positions[:0], 1), append(batch.Segments[:0], ops.Segment{Rows: 1, Past: 1, Pages: []int32{1}, State: 1})
	if n := len(b.batch.Tokens); n != 3 {
		t.Errorf("the step has %d rows", n)
	}
	if s := b.batch.Segments; len(s) != 2 || s[0].Rows != 2 || s[0].Past != 0 || s[1].Row != 2 {
		t.Errorf("its segments are %+v", s)
	}
}
