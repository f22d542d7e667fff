//go:build !(linux && cuda && cgo)

package cuda

import "errors"

// Device is an open GPU. There is none in this build.
type Device struct{}

// Open says that this build has no CUDA.
func Open(ordinal int, o Options) (*Device, error) {
	return nil, errors.New("cannot open a GPU: this program was built without CUDA (build tag cuda, on Linux, with cgo)")
}

// Facts is what the driver says of the device.
func (d *Device) Facts() *Facts { return &Facts{} }

// Close gives the device back.
func (d *Device) Close() error { return nil }
