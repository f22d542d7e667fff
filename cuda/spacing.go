//go:build linux && cuda && cgo

package cuda

// spacing is how launches may be otherwise, for tests and benchmarks: nothing is the way of
// [Device.Kernels].
type spacing struct {
	teams int  // of a block of a product, if there is room; 0: what its shape wants
	whole bool // prompts of few rows are attended to by blocks that go through all positions
	silu  bool // SiLU happens in the product before it (fused.go)
	conv  bool // the convolution happens in the product before it
	turn  bool // keys and values are stored by the launch that turns q and k
	gate  bool // the sum over partitions is multiplied by its gate
	one   bool // rows that are their sequences' only ones are attended to in one launch, with turn
}
