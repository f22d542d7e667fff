//go:build linux && cuda && cgo

package cuda

// ways is how launches may be otherwise, for tests and benchmarks: nothing is the usual way.
type ways struct {
	teams int  // of a block of a product, if there is room; 0: what its shape wants
	apart bool // no operation happens within another's launch (fused.go)
	whole bool // prompts of few rows are attended to by blocks that go through all positions
}
