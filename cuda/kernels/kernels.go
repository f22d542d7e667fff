// Package kernels holds the GPU kernels of Velo: their sources, which nvcc
// compiles (the script build), and the PTX that comes out, which travels in
// the binary and which the driver compiles for the device it finds.
//
// The PTX is of the portable set: it says sm_80 or sm_90, so it runs on every
// device since, and no kernel asks for more than 99 KiB of shared memory a block.
//
// The package is under the Apache License 2.0, see cuda/LICENSE.
package kernels

import _ "embed"

// The modules, as PTX.
var (
	//go:embed linear.ptx
	Linear []byte // products of 1 to 16 rows with a matrix
	//go:embed linear90.ptx
	Linear90 []byte // the same for compute capability 9.0 and on
	//go:embed pack.ptx
	Pack []byte // the forms that they take their operands in
	//go:embed elements.ptx
	Elements []byte // operations on rows of activations
	//go:embed attention.ptx
	Attention []byte // attention of single rows over a paged cache
	//go:embed recurrent.ptx
	Recurrent []byte // layers that keep a state
	//go:embed memory.ptx
	Memory []byte // reading and filling memory
)
