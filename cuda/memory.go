//go:build linux && cuda && cgo

package cuda

/*
#include "driver.h"
*/
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"

	"gorgonia.org/cu"
	"velo/engine/ops"
)

// Memory is a piece of device memory.
type Memory struct {
	device *Device
	at     uint64
	bytes  int64
}

// Address is where the memory lies on the device.
func (m Memory) Address() uint64 { return m.at }

// Bytes is its size.
func (m Memory) Bytes() int64 { return m.bytes }

// Part is n bytes of m from offset on.
func (m Memory) Part(offset, n int64) Memory {
	if offset < 0 || n < 0 || n > m.bytes || offset > m.bytes-n {
		panic(fmt.Sprintf("cuda: bytes %d to %d of a memory of %d", offset, offset+n, m.bytes))
	}
	return Memory{m.device, m.at + uint64(offset), n}
}

// Upload copies data to the beginning of m and waits for it.
func Upload[T any](m Memory, data []T) error {
	n := int64(len(data)) * int64(unsafe.Sizeof(*new(T)))
	if n > m.bytes {
		return fmt.Errorf("cannot copy %d bytes to the GPU: the memory there has %d", n, m.bytes)
	}
	if n == 0 {
		return nil
	}
	err := m.device.on(func() error {
		if err := cu.MemcpyHtoDAsync(cu.DevicePtr(m.at), unsafe.Pointer(unsafe.SliceData(data)), n, m.device.stream); err != nil {
			return err
		}
		return m.device.stream.Synchronize()
	})
	runtime.KeepAlive(data) // a GPU that shares the host's memory may read it there until then
	if err != nil {
		return fmt.Errorf("cannot copy %d bytes to the GPU: %w", n, err)
	}
	return nil
}

// Download waits for what was launched and copies the beginning of m to data.
func Download[T any](m Memory, data []T) error {
	n := int64(len(data)) * int64(unsafe.Sizeof(*new(T)))
	if n > m.bytes {
		return fmt.Errorf("cannot copy %d bytes from the GPU: the memory there has %d", n, m.bytes)
	}
	if n == 0 {
		return nil
	}
	if err := m.device.Wait(); err != nil {
		return err
	}
	err := m.device.on(func() error {
		return cu.MemcpyDtoH(unsafe.Pointer(unsafe.SliceData(data)), cu.DevicePtr(m.at), n)
	})
	if err != nil {
		return fmt.Errorf("cannot copy %d bytes from the GPU: %w", n, err)
	}
	return nil
}

// Fill sets every byte of m to b, in the device's stream.
func (m Memory) Fill(b byte) error {
	if m.bytes == 0 {
		return nil
	}
	err := m.device.on(func() error { return cu.MemsetD8Async(cu.DevicePtr(m.at), b, m.bytes, m.device.stream) })
	if err != nil {
		return fmt.Errorf("cannot fill %d bytes on the GPU: %w", m.bytes, err)
	}
	return nil
}

// alignment is that of every piece of a pool: a whole line of the second cache
// for the longest prefetch.
const alignment = 256

// aligned is what a piece of n bytes takes of a pool.
func aligned(n int64) int64 { return (n + alignment - 1) &^ (alignment - 1) }

// Pool is device memory allocated at once and handed out in pieces that live
// as long as the pool.
type Pool struct {
	whole Memory
	used  int64
}

// Pool allocates bytes of device memory.
func (d *Device) Pool(bytes int64) (*Pool, error) {
	var at cu.DevicePtr
	err := d.on(func() (err error) {
		at, err = cu.MemAlloc(bytes)
		return err
	})
	if err != nil {
		free, _, _ := d.MemoryInfo()
		all := err
		err = fmt.Errorf("cannot allocate %.2f GiB on %s, of which %.2f GiB are free: %w",
			float64(bytes)/(1<<30), d.facts.Name, float64(free)/(1<<30), err)
		if outOfMemory(all) {
			err = &ops.NoRoom{Err: err}
		}
		return nil, err
	}
	return &Pool{whole: Memory{d, uint64(at), bytes}}, nil
}

// Take hands out the next bytes of the pool. what says what for in an error.
func (p *Pool) Take(what string, bytes int64) (Memory, error) {
	left := p.whole.bytes - p.used
	if bytes < 0 || bytes > left {
		return Memory{}, fmt.Errorf("cannot place %s on the GPU: it takes %.1f MiB and of the %.1f MiB set aside %.1f are left",
			what, float64(bytes)/(1<<20), float64(p.whole.bytes)/(1<<20), float64(left)/(1<<20))
	}
	m := p.whole.Part(p.used, bytes)
	p.used = min(aligned(p.used+bytes), p.whole.bytes)
	return m, nil
}

// Left is how many bytes can still be taken.
func (p *Pool) Left() int64 { return p.whole.bytes - p.used }

// Reset takes all pieces back.
func (p *Pool) Reset() { p.used = 0 }

// Close frees the pool. A second call does nothing.
func (p *Pool) Close() error {
	if p.whole.bytes == 0 {
		return nil
	}
	defer func() { *p = Pool{} }()
	return p.whole.device.on(func() error { return cu.MemFree(cu.DevicePtr(p.whole.at)) })
}

// MemoryInfo is free and total bytes of device memory now.
func (d *Device) MemoryInfo() (free, total int64, err error) {
	err = d.on(func() (err error) {
		free, total, err = cu.MemInfo()
		return err
	})
	return free, total, err
}

// HostMemory is page-locked memory of the host that the device reads and
// writes too.
type HostMemory struct {
	Memory        // as the device sees it
	Host   []byte // as the host sees it
}

// HostMemory allocates bytes of page-locked memory.
func (d *Device) HostMemory(bytes int) (*HostMemory, error) {
	var host unsafe.Pointer
	var device C.ulonglong
	if err := result(C.velo_host_alloc(rawContext(d.context), C.size_t(bytes), &host, &device)); err != nil {
		all := err
		err = fmt.Errorf("cannot allocate %d bytes of page-locked memory (%.1f MiB of this machine's, for what goes to and comes from %s): %w",
			bytes, float64(bytes)/(1<<20), d.facts.Name, err)
		if outOfMemory(all) {
			err = &ops.NoRoom{Err: err}
		}
		return nil, err
	}
	return &HostMemory{Memory{d, uint64(device), int64(bytes)}, unsafe.Slice((*byte)(host), bytes)}, nil
}

// Close frees the memory. A second call does nothing.
func (h *HostMemory) Close() error {
	if h.Host == nil {
		return nil
	}
	defer func() { *h = HostMemory{} }()
	return result(C.velo_host_free(rawContext(h.device.context), unsafe.Pointer(unsafe.SliceData(h.Host))))
}
