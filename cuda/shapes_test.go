//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"velo/engine/kv"
	"velo/engine/model"
)

// step does with a shape what a step of the backend does, without a device, and tells whether it is the
// launch of a graph. closed counts graphs that were closed.
func (s *stepShapes) step(rows int, closed map[*Graph]int) bool {
	calls := []call{{kind: normCall, rows: int32(rows)}}
	c := s.find(rows, 1, 1, calls)
	if c == nil {
		s.note(rows, 1, 1, calls)
		return false
	}
	if c.graph == nil {
		for _, g := range s.drop(mostGraphs - 1) {
			closed[g]++
		}
		s.keep(c, &Graph{})
	}
	return true
}

// TestShapes: a shape that comes again has a graph, also where the list of graphs is full and two new
// ones take turns; what is used stays, and what comes once takes nobody's place.
func TestShapes(t *testing.T) {
	var s stepShapes
	closed := map[*Graph]int{}
	for range 2 {
		for n := range mostGraphs {
			s.step(n, closed)
			s.step(n, closed)
		}
	}
	if len(s.graphs) != mostGraphs || len(closed) != 0 {
		t.Fatalf("%d shapes have a graph, %d were closed", len(s.graphs), len(closed))
	}
	oldest := s.graphs[mostGraphs-1].graph
	// Two new ones by turns: the first time each is noted, from then on they are graphs.
	for i := range 6 {
		for _, n := range []int{1000, 1001} {
			if got := s.step(n, closed); got != (i > 0) {
				t.Errorf("time %d of shape %d: a graph: %v", i, n, got)
			}
		}
	}
	if len(s.graphs) != mostGraphs || int(s.count.Load()) != mostGraphs || len(closed) != 2 || closed[oldest] != 1 {
		t.Errorf("%d graphs, %d closed, the oldest %d times", len(s.graphs), len(closed), closed[oldest])
	}
	// What comes once.
	kept := s.graphs[mostGraphs-1]
	for n := range 10 * mostGraphs {
		if s.step(2000+n, closed) {
			t.Errorf("shape %d had a graph the first time", 2000+n)
		}
	}
	if len(closed) != 2 || s.graphs[mostGraphs-1] != kept || len(s.seen) != seenShapes {
		t.Errorf("%d graphs closed, %d shapes seen once", len(closed), len(s.seen))
	}
	// What was used is not what goes.
	s.step(2, closed)
	s.step(3000, closed)
	s.step(3000, closed)
	if s.find(2, 1, 1, []call{{kind: normCall, rows: 2}}) == nil || closed[kept.graph] != 0 && kept.rows == 2 {
		t.Error("the graph that was used last but one is gone")
	}
	if s.find(2, 1, 2, []call{{kind: normCall, rows: 2}}) != nil || s.find(2, 2, 1, []call{{kind: normCall, rows: 2}}) != nil ||
		s.find(2, 1, 1, []call{{kind: siluCall, rows: 2}}) != nil {
		t.Error("a shape is taken for another")
	}
}

// TestShapesAnyOrder: for any steps, a shape is in one list at most, the lists are bounded, every graph
// is in the list or was closed once, and a shape of the last seenShapes different ones has a graph when
// it comes again.
func TestShapesAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s stepShapes
		closed, made := map[*Graph]int{}, map[*Graph]bool{}
		var order []int // shapes by their last use, the newest last
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 150), 0, 600).Draw(t, "shapes") {
			recent := false
			for i := len(order) - 1; i >= max(0, len(order)-seenShapes); i-- {
				recent = recent || order[i] == n
			}
			graph := s.step(n, closed)
			if recent && !graph {
				t.Fatalf("shape %d was seen lately and has no graph", n)
			}
			for i, o := range order {
				if o == n {
					order = append(order[:i], order[i+1:]...)
					break
				}
			}
			order = append(order, n)
			there := map[int]bool{}
			for _, list := range [][]*captured{s.graphs, s.seen} {
				for _, c := range list {
					if there[c.rows] {
						t.Fatalf("shape %d is there twice", c.rows)
					}
					there[c.rows] = true
					if c.graph != nil {
						made[c.graph] = true
					}
				}
			}
			if len(s.graphs) > mostGraphs || len(s.seen) > seenShapes || len(made) != len(s.graphs)+len(closed) {
				t.Fatalf("%d graphs, %d shapes seen once, %d made, %d closed", len(s.graphs), len(s.seen), len(made), len(closed))
			}
		}
		for g, n := range closed {
			if n != 1 {
				t.Fatalf("graph %p was closed %d times", g, n)
			}
		}
	})
}

// TestGraphsOfSteps: on a driver, more shapes than there are graphs, with two that take turns at the
// end, and a device that has no memory for graphs: steps go on, and every graph is given back.
func TestGraphsOfSteps(t *testing.T) {
	h, ok := onHollow(t)
	if !ok {
		return
	}
	b, m, _ := hollowModel(t, "llama", BackendOptions{Rows: 16}, model.Options{Tokens: 600, Sequences: 8, Outputs: 16})
	step := m.NewStep()
	run := func(rows, sequences int) {
		t.Helper()
		var list []*kv.Sequence
		step.Reset()
		for i := range sequences {
			s := sequence(t, m)
			list = append(list, s)
			n := rows / sequences
			if i == 0 {
				n += rows % sequences
			}
			if err := step.Add(s, words(m, 1, n), 1); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := m.Run(step); err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			s.Free()
		}
	}
	graphs := func() (made, closed int) { l := h.log(t); return count(l, "graph"), count(l, "graph closed") }
	shapes := 0
	for range 2 {
		shapes = 0
		for rows := 1; rows <= 16; rows++ {
			for sequences := 1; sequences <= min(rows, 8); sequences++ {
				run(rows, sequences)
				run(rows, sequences)
				shapes++
			}
		}
	}
	if made, closed := graphs(); shapes <= mostGraphs || len(b.shapes.graphs) != mostGraphs || made-closed != mostGraphs {
		t.Fatalf("%d shapes, %d graphs kept, %d made, %d closed", shapes, len(b.shapes.graphs), made, closed)
	}
	run(1, 1)
	run(2, 1)
	run(1, 1)
	run(2, 1)
	made, _ := graphs()
	for range 5 {
		run(1, 1)
		run(2, 1)
	}
	if again, _ := graphs(); again != made {
		t.Errorf("two shapes that take turns are captured %d times more", again-made)
	}
	h.set(t, "full", "")
	for range 3 {
		run(3, 2) // was dropped by now
	}
	if len(b.shapes.graphs) > mostGraphs/2 {
		t.Errorf("without memory for more, %d graphs are kept", len(b.shapes.graphs))
	}
	h.unset(t, "full")
	for range 2 {
		run(9, 1)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if made, closed := graphs(); made != closed {
		t.Errorf("%d graphs were made and %d closed", made, closed)
	}
	if n := fmt.Sprint(outstanding(t, h.log(t), "device"), outstanding(t, h.log(t), "pinned")); n != "0 0" {
		t.Errorf("bytes of the device and page-locked ones that were not given back: %s", n)
	}
}

// TestLaunchedNames: what was launched last is told by name, graphs with the end of theirs and what was
// launched before them; what was captured was not launched.
func TestLaunchedNames(t *testing.T) {
	_, ok := onHollow(t)
	if !ok {
		return
	}
	d := open(t, Options{})
	if got := d.launched(); got != "none" {
		t.Errorf("at first: %s", got)
	}
	k := loadKernels(t, d)
	launch := func(k *Kernel) error { return k.Launch(Grid{X: 1, Block: 32}, new(Args)) }
	if err := launch(k.read); err != nil {
		t.Fatal(err)
	}
	g, err := d.Capture(func() error {
		for _, k := range []*Kernel{k.fill, k.fill, k.norm, k.rope, k.add, k.silu} {
			if err := launch(k); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := d.launched(); got != "read_memory" {
		t.Errorf("after a capture: %s", got)
	}
	if err := g.Launch(); err != nil {
		t.Fatal(err)
	}
	if got := d.launched(); got != "a graph of 6 kernels (at its end silu, add, rope, rms_norm), read_memory" {
		t.Errorf("after a graph: %s", got)
	}
	for i := range 10 {
		if err := launch([]*Kernel{k.sigmoid, k.add}[i%2]); err != nil {
			t.Fatal(err)
		}
	}
	if got := d.launched(); got != "add, sigmoid" {
		t.Errorf("after others: %s", got)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a panic within a capture is lost")
			}
		}()
		_, _ = d.Capture(func() error { panic("within") })
	}()
	if err := launch(k.read); err != nil || !strings.HasPrefix(d.launched(), "read_memory, add, sigmoid") {
		t.Errorf("after a capture that panicked: %v, %s", err, d.launched())
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}
