package cuda

import (
	"fmt"

	"velo/cuda/kernels"
)

// Facts is what the driver says of a device.
type Facts struct {
	Name         string
	Major, Minor int    // compute capability
	SMs          int    // streaming multiprocessors
	Threads      int    // resident threads an SM at most
	Memory       int64  // bytes of device memory
	Free         int64  // bytes of it that were free when the device was opened
	L2           int    // bytes of the second cache
	Shared       int    // bytes of shared memory a block may ask for
	SharedSM     int    // bytes of shared memory of an SM
	Clock        int    // peak clock of the SMs in kHz
	MemoryClock  int    // peak clock of the memory in kHz, 0 if not told
	BusWidth     int    // width of the memory bus in bits
	Integrated   bool   // memory is shared with the CPU
	Bus          string // PCI address, as 0000:1b:00.0
	Driver       int    // newest CUDA version the driver knows: 13000 is 13.0
}

// Capability is the compute capability as one number: 90 for 9.0, 121 for 12.1.
func (f *Facts) Capability() int { return 10*f.Major + f.Minor }

// KernelSet is which of the sets of kernels the device runs, and why.
func (f *Facts) KernelSet() (set, why string) {
	if kernels.Dependent(f.Capability()) {
		return "portable, sm_90", fmt.Sprintf("compute capability %d.%d: a kernel may begin before the one ahead has ended", f.Major, f.Minor)
	}
	return "portable, sm_80", fmt.Sprintf("compute capability %d.%d is below 9.0, from which on a kernel may begin before the one ahead has ended", f.Major, f.Minor)
}

// String says the facts in one line.
func (f *Facts) String() string {
	return fmt.Sprintf("%s, compute capability %d.%d, %d SMs at up to %.2f GHz, %.1f GiB, L2 %.0f MiB, CUDA %d.%d",
		f.Name, f.Major, f.Minor, f.SMs, float64(f.Clock)/1e6, float64(f.Memory)/(1<<30), float64(f.L2)/(1<<20),
		f.Driver/1000, f.Driver%1000/10)
}

// Options says how to open a device.
type Options struct {
	// Cache is the folder that keeps compiled modules; empty means the user's
	// cache folder, "-" means none.
	Cache string
	// Wait makes every launch wait for its kernel, so that an error names the
	// kernel that caused it. Slow; captures are not affected.
	Wait bool
}
