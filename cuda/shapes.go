//go:build linux && cuda && cgo

package cuda

import (
	"slices"
	"sync/atomic"
	"unsafe"
)

// captured is a step of some shape, with its graph from the second time on.
type captured struct {
	rows, segments, partitions int
	calls                      []call
	graph                      *Graph
	refused                    bool // there was no memory for a graph: it is made of single launches
}

// mostGraphs is how many shapes of steps have a graph, seenShapes how many are remembered that came
// once, so that they get one when they come again.
const mostGraphs, seenShapes = 64, 32

// stepShapes remembers steps: those with a graph and those without, in each list the last used first. A
// step that never comes again takes no graph's place; a new graph takes that of the one which was not
// used for the longest time.
type stepShapes struct {
	graphs, seen []*captured
	count        atomic.Int32 // of graphs, for whoever asks meanwhile
}

// find is the step of that shape, from now on the last used of its list; nil if it was not seen lately.
func (s *stepShapes) find(rows, segments, partitions int, calls []call) *captured {
	for _, list := range [...][]*captured{s.graphs, s.seen} {
		for i, c := range list {
			if c.rows == rows && c.segments == segments && c.partitions == partitions && same(c.calls, calls) {
				copy(list[1:i+1], list[:i])
				list[0] = c
				return c
			}
		}
	}
	return nil
}

// note remembers a step that was not found.
func (s *stepShapes) note(rows, segments, partitions int, calls []call) {
	c := &captured{rows: rows, segments: segments, partitions: partitions}
	if n := len(s.seen); n == seenShapes { // its memory is used again
		c.calls = s.seen[n-1].calls[:0]
		s.seen = s.seen[:n-1]
	}
	c.calls = append(c.calls, calls...)
	s.seen = slices.Insert(s.seen, 0, c)
}

// keep takes over a graph that was made of c, which find has just found among those without one.
func (s *stepShapes) keep(c *captured, g *Graph) {
	c.graph = g
	s.seen = slices.DeleteFunc(s.seen, func(o *captured) bool { return o == c })
	s.graphs = slices.Insert(s.graphs, 0, c)
	s.count.Store(int32(len(s.graphs)))
}

// drop forgets the graphs that were not used for the longest time but for most of them, and gives them
// to be closed. Nothing that was launched may use them any more.
func (s *stepShapes) drop(most int) []*Graph {
	var dropped []*Graph
	for len(s.graphs) > most {
		last := len(s.graphs) - 1
		dropped = append(dropped, s.graphs[last].graph)
		s.graphs[last] = nil
		s.graphs = s.graphs[:last]
	}
	s.count.Store(int32(len(s.graphs)))
	return dropped
}

// same compares calls as bytes.
func same(a, b []call) bool {
	if len(a) != len(b) {
		return false
	}
	bytes := func(c []call) string {
		return unsafe.String((*byte)(unsafe.Pointer(unsafe.SliceData(c))), len(c)*int(unsafe.Sizeof(call{})))
	}
	return bytes(a) == bytes(b)
}
