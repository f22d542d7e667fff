//go:build linux && cuda && cgo

package cuda

import "fmt"

// arena is device memory that grows by pools and is given back as a whole.
type arena struct {
	device *Device
	pools  []*Pool
}

// arenaPool is the size of a pool; what is larger than a quarter has one of its own.
const arenaPool = 64 << 20

// Reserve takes bytes at once, from which Take hands out until they are used up: nothing is lost
// between pieces, and what will not fit shows before anything was read.
func (a *arena) Reserve(bytes int64) error {
	p, err := a.device.Pool(bytes)
	if err != nil {
		return fmt.Errorf("cannot reserve the model's memory on the GPU: %w", err)
	}
	a.pools = append(a.pools, p)
	return nil
}

// Take hands out bytes of memory, from the first pool that has as many. what says what for in an error.
func (a *arena) Take(what string, bytes int64) (Memory, error) {
	if bytes < 0 { // more than an int64 counts
		return Memory{}, fmt.Errorf("cannot place %s on the GPU: no device has so much memory", what)
	}
	for _, p := range a.pools {
		if p.Left() >= bytes {
			return p.Take(what, bytes)
		}
	}
	size := int64(arenaPool)
	if bytes > arenaPool/4 {
		size = bytes
	}
	p, err := a.device.Pool(size)
	if err != nil {
		return Memory{}, fmt.Errorf("cannot place %s on the GPU: %w", what, err)
	}
	a.pools = append(a.pools, p)
	return p.Take(what, bytes)
}

// Close gives all of it back.
func (a *arena) Close() error {
	var err error
	for _, p := range a.pools {
		err = errorsOf(err, p.Close())
	}
	a.pools = nil
	return err
}
