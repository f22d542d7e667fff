//go:build !amd64 && !arm64

package cpu

// available are the kernels that the processor runs, the fastest first.
func available() []*kernels { return []*kernels{&portable} }
