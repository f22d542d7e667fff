//go:build linux && cuda && cgo

package cuda

import "fmt"

// arena is device memory that grows by pools and is given back as a whole.
type arena struct {
	device *Device
	pools  []*Pool
}

// arenaPool is the size of a pool; what is larger has one of its own.
const arenaPool = 64 << 20

// Take hands out bytes of memory. what says what for in an error.
func (a *arena) Take(what string, bytes int64) (Memory, error) {
	if n := len(a.pools); n > 0 && a.pools[n-1].Left() >= bytes {
		return a.pools[n-1].Take(what, bytes)
	}
	if bytes > arenaPool/4 { // the pool begun stays last, for small pieces
		p, err := a.device.Pool(bytes)
		if err != nil {
			return Memory{}, fmt.Errorf("cannot place %s on the GPU: %w", what, err)
		}
		a.pools = append([]*Pool{p}, a.pools...)
		return p.Take(what, bytes)
	}
	p, err := a.device.Pool(arenaPool)
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
