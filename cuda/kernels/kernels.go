// Package kernels holds the GPU kernels of Velo: their sources, which nvcc
// compiles (the script build), and the PTX that comes out, which travels in
// the binary and which the driver compiles for the device it finds.
//
// The PTX is of the portable set: it says sm_80 or sm_90, so it runs on every
// device since, and no kernel asks for more than 99 KiB of shared memory a
// block. One module besides is of one architecture alone, see [FP4].
//
// The package is under the Apache License 2.0, see cuda/LICENSE.
package kernels

import "embed"

//go:embed *.ptx
var files embed.FS

// Modules are the names of the modules: products of 1 to 16 rows with a matrix, those of one
// row and two with what is before and behind them, the forms that they take their operands in,
// operations on rows of activations, attention over a paged cache of few rows and of many, the
// sum over its parts, how keys and values are stored, layers that keep a state, these layers and products
// for prompts, the choice of tokens, memory.
var Modules = []string{"linear", "fused", "pack", "elements", "attend", "prompt", "combine", "store", "recurrent", "chunks", "product", "sample", "memory"}

// PTX is a module for a device of a compute capability, 90 for 9.0. From 90 on
// its kernels may be launched before the launch ahead of them has ended; they
// wait for it themselves.
func PTX(module string, capability int) []byte {
	suffix := ".ptx"
	if Dependent(capability) {
		suffix = "90.ptx"
	}
	ptx, err := files.ReadFile(module + suffix)
	if err != nil {
		panic("kernels: no module " + module)
	}
	return ptx
}

// FP4Capability is the compute capability that the kernels of [FP4] are for, and no other.
const FP4Capability = 121

// FP4 is the module of products of NVFP4 with NVFP4. Its kernels wait for the launch ahead
// themselves.
func FP4() []byte {
	ptx, err := files.ReadFile("fp4_121a.ptx")
	if err != nil {
		panic("kernels: " + err.Error()) // embedded
	}
	return ptx
}

// Dependent tells whether kernels for a compute capability wait for the launch
// ahead themselves.
func Dependent(capability int) bool { return capability >= 90 }
