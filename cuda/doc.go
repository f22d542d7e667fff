// Package cuda computes on an NVIDIA GPU: the device, its memory, modules of
// kernels, graphs of launches, and the kernels themselves (cuda/kernels).
//
// It calls the driver through gorgonia.org/cu and, for what cu does not have,
// through functions looked up in the driver's library; cuda/stub keeps the
// binary free of a link to that library. Nothing touches the driver before
// [Open]. Without the build tag cuda, or elsewhere than on Linux, the package
// builds too and Open says that there is no such backend.
//
// A Device is used from one goroutine at a time. Everything a step needs is
// allocated before the first step; launches allocate nothing.
//
// The package is under the Apache License 2.0, see cuda/LICENSE.
package cuda
