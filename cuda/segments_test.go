//go:build linux && cuda && cgo

package cuda

import (
	"slices"
	"testing"

	"velo/engine/ops"
)

// launchesOf is what layers with a state launch for segments of so many rows. No device is needed: that
// the launches then fail is of no concern.
func launchesOf(sizes ...int) []taped {
	d := &Device{tape: &tape{}}
	k := &Kernels{device: d}
	k.convolve = &Kernel{name: "convolve", device: d}
	for i := range k.delta {
		k.delta[i] = &Kernel{name: "delta", device: d}
	}
	s := &States{Layers: 1, Cols: 256, Taps: 4, KeyHeads: 1, ValueHeads: 1, KeyDim: 128, ValueDim: 128}
	g := &Segments{N: len(sizes)}
	var all []ops.Segment
	for _, n := range sizes {
		all = append(all, ops.Segment{Rows: n})
	}
	g.measure(all)
	view := func(cols int) View { return View{Pitch: cols, Heads: 1, Dim: cols, Stride: cols} }
	_ = k.Convolve(view(256), Memory{}, s, g, 0, nil)
	_ = k.DeltaRule(view(128), &Delta{Q: view(128), K: view(128), V: view(128), A: view(1), B: view(1)}, s, g, 0)
	return d.tape.launches
}

// TestGraphServesAnySegments: a graph is told by the numbers of rows and of segments alone, so what is
// launched must not depend on how the rows are divided.
func TestGraphServesAnySegments(t *testing.T) {
	for _, c := range [][][]int{{{4, 4}, {7, 1}, {1, 7}, {2, 6}}, {{1, 1, 1}}, {{8, 8}, {15, 1}}, {{1, 1, 4}, {2, 2, 2}, {1, 4, 1}}} {
		want := launchesOf(c[0]...)
		if len(want) != 2 {
			t.Fatalf("segments of %v make %d launches", c[0], len(want))
		}
		for _, sizes := range c[1:] {
			if !slices.EqualFunc(launchesOf(sizes...), want, func(a, b taped) bool { return a.kernel.name == b.kernel.name && a.grid == b.grid && a.args == b.args }) {
				t.Errorf("a graph captured with segments of %v is not that of %v", c[0], sizes)
			}
		}
	}
}
