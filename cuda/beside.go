//go:build linux && cuda && cgo

package cuda

import "fmt"

// A product of up to 8 rows may leave half of each SM to the launch behind it, so that this
// one's blocks are there, with their first weights on the way, when the product ends. Shared
// memory, threads and registers all count: with all of an SM in use, programmatic dependent
// launch hides nothing. The bits are those of any other way, since the splits are.

// spacing is how products are divided to that end; nothing is the way of plan alone.
type spacing struct {
	blocks int  // of a product on an SM, which take half of it together; 0: all of it is used
	carved bool // all kernels prefer shared memory to the first cache
	whole  bool // prompts of few rows are attended to by blocks that go through all positions
	thin   bool // splits of long rows in blocks of no more threads than they need
	silu   bool // of a single row, SiLU happens in the product before it (fused.go)
	conv   bool // of a single row, the convolution happens in the product before it
	turn   bool // keys and values are stored by the launch that turns q and k
	gate   bool // the sum over partitions is multiplied by its gate
	one    bool // rows that are their sequences' only ones are attended to in one launch, with turn
	fat    bool // products of a row that was left for them take all of an SM, whatever blocks says
	gates  int  // most blocks of a product with SiLU on an SM; 0: as many as there is room for
}

// besideStages are the units of weights on their way that kernels are compiled for.
var besideStages = [...]int{3, 4, 5}

// besideWarps is the most warps of a product on an SM: half of its registers at 64 a thread.
const besideWarps = 16

// besideKernels are products of one row tile a warp.
type besideKernels struct {
	ready [len(besideStages)]*Kernel // of rows that are there
	owned [len(besideStages)][len(sources)]*Kernel
}

func (b *besideKernels) find(find func(**Kernel, string)) {
	for i, stages := range besideStages {
		name := fmt.Sprintf("beside_nvfp4_s%d", stages)
		find(&b.ready[i], name)
		for j, source := range sources {
			if j != siluSource {
				find(&b.owned[i][j], name+"_own"+source)
			}
		}
	}
}

func (b *besideKernels) all() []*Kernel {
	var all []*Kernel
	for i := range besideStages {
		for _, kernel := range append([]*Kernel{b.ready[i]}, b.owned[i][:]...) {
			if kernel != nil {
				all = append(all, kernel)
			}
		}
	}
	return all
}

// besideOf is c divided so that it leaves half of an SM, with own bytes of shared memory for
// rows that each block prepares: not ok if the matrix is not one for it. Where an SM has
// 100 KiB of shared memory one block of 8 warps has half of that.
func besideOf(c choice, m *Matrix, n, own int, f *Facts, blocks int) (choice, bool) {
	if blocks == 0 || m.format != NVFP4 || n > 8 || m.out >= 1<<17 {
		return c, false
	}
	warps := besideWarps
	if f.SharedSM < 128<<10 {
		blocks, warps = 1, besideWarps/2
	}
	c.blocks, c.abreast = blocks, warps/blocks/c.splits
	if c.abreast == 0 {
		return c, false
	}
	for c.shape = len(besideStages) - 1; c.shape >= 0; c.shape-- {
		if c.besideShared(n)+own <= besideRoom(f, blocks) {
			return c, true
		}
	}
	return c, false
}

// besideRoom is the dynamic shared memory of one of so many blocks that have half of an SM:
// each takes 1 KiB for itself, and 1.5 KiB that kernels have of fixed size.
func besideRoom(f *Facts, blocks int) int {
	return min(portableShared, f.SharedSM/2/blocks-1024-1536) &^ 127
}

// besideShared is what units on their way and sums of n columns, twice, take of a block.
func (c choice) besideShared(n int) int {
	return c.splits * c.abreast * (besideStages[c.shape]*formats[NVFP4].bytes + 2*16*4*(n|1))
}

// carve makes all kernels prefer so many percent of an SM's first level as shared memory, as
// products do with 100, so that they can be there beside each other; −1 leaves it to the driver.
func (k *Kernels) carve(percent int) error {
	for _, m := range k.device.modules {
		for _, kernel := range m.kernels {
			if err := kernel.carve(percent); err != nil {
				return err
			}
		}
	}
	return nil
}

// launchBeside launches such a product. All blocks ask for their whole share, so that no SM
// gets more of them than others.
func (k *Kernels) launchBeside(kernel *Kernel, out int, c choice, a *Args) error {
	rows := 16 * c.abreast
	return kernel.Launch(Grid{X: min((out+rows-1)/rows, k.device.facts.SMs*c.blocks), Block: 32 * c.splits * c.abreast,
		Shared: besideRoom(&k.device.facts, c.blocks)}, a)
}
