//go:build !(linux && cuda && cgo)

package nvml

import "errors"

// GPU is a GPU that is read. There is none in this build.
type GPU struct{}

// Open says that this build cannot read GPUs.
func Open(bus string) (*GPU, error) {
	return nil, errors.New("cannot read the GPU's state: this program was built without CUDA (build tag cuda, on Linux, with cgo)")
}

// Driver is the driver's version.
func (g *GPU) Driver() string { return "" }

// Read reads what the GPU tells now.
func (g *GPU) Read() (Sample, error) { return nothing(), nil }

// Close gives the library back.
func (g *GPU) Close() {}
