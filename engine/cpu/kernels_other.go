//go:build !amd64

package cpu

// best is the fastest kernels that the processor runs.
func best() *kernels { return &generic }
