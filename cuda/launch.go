//go:build linux && cuda && cgo

package cuda

/*
#include "driver.h"
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"gorgonia.org/cu"
)

// Kernel is a function of a module.
type Kernel struct {
	name      string
	device    *Device
	f         cu.Function
	shared    int  // dynamic shared memory it may ask for
	registers int  // of a thread
	dependent bool // it waits for the launch ahead itself (griddepcontrol), so it may start before that has ended
	launched  bool // once at least
}

// Name is the kernel's name in its module.
func (k *Kernel) Name() string { return k.name }

// Allow lets launches of k ask for up to so many bytes of dynamic shared
// memory; without it the limit is 48 KiB.
func (k *Kernel) Allow(shared int) error {
	if shared > k.device.facts.Shared {
		return fmt.Errorf("cannot give %s %d bytes of shared memory: a block of %s has %d at most",
			k.name, shared, k.device.facts.Name, k.device.facts.Shared)
	}
	if shared <= k.shared {
		return nil
	}
	if err := result(C.velo_function_limit(rawContext(k.device.context), rawFunction(k.f), C.int(shared))); err != nil {
		return fmt.Errorf("cannot give %s %d bytes of shared memory: %w", k.name, shared, err)
	}
	k.shared = shared
	return nil
}

// Registers is how many registers a thread of k holds, and how many bytes of
// local memory, which is where registers are spilled.
func (k *Kernel) Registers() (registers, local int, err error) {
	for _, a := range []struct {
		to   *int
		what C.int
	}{{&registers, C.CU_FUNC_ATTRIBUTE_NUM_REGS}, {&local, C.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES}} {
		var v C.int
		if err := result(C.velo_function_attribute(rawContext(k.device.context), rawFunction(k.f), a.what, &v)); err != nil {
			return 0, 0, fmt.Errorf("cannot ask for the registers of %s: %w", k.name, err)
		}
		*a.to = int(v)
	}
	return registers, local, nil
}

// resident is how many blocks of so many threads and bytes of shared memory an
// SM holds at once: the least of what shared memory (of which a block takes
// 1 KiB for itself), threads and the 64 Ki registers allow, 1 at least.
func (k *Kernel) resident(threads, shared int) int {
	f := &k.device.facts
	return max(1, min(f.SharedSM/(shared+1024), f.Threads/threads, 65536/((max(k.registers, 1)+7)/8*8*threads)))
}

// Args is the arguments of one launch as the kernel's parameters lie in
// memory: each aligned to its own size.
type Args struct {
	bytes [320]byte
	n     int
}

// Reset begins a new list.
func (a *Args) Reset() *Args { a.n = 0; return a }

// Pointer appends a device address; 0 is a null pointer.
func (a *Args) Pointer(p uint64) *Args {
	a.n = (a.n + 7) &^ 7
	binary.NativeEndian.PutUint64(a.bytes[a.n:], p)
	a.n += 8
	return a
}

// Int appends an int.
func (a *Args) Int(v int) *Args {
	a.n = (a.n + 3) &^ 3
	binary.NativeEndian.PutUint32(a.bytes[a.n:], uint32(int32(v)))
	a.n += 4
	return a
}

// Bool appends an int that is 1 or 0.
func (a *Args) Bool(v bool) *Args {
	if v {
		return a.Int(1)
	}
	return a.Int(0)
}

// Float appends a float.
func (a *Args) Float(v float32) *Args { return a.Int(int(int32(math.Float32bits(v)))) }

// Grid is the shape of a launch.
type Grid struct {
	X, Y, Z int // blocks along x, y and z; 0 is 1
	Block   int // threads a block
	Shared  int // bytes of dynamic shared memory
}

// Launch puts k into the device's stream. It allocates nothing unless it fails.
func (k *Kernel) Launch(g Grid, a *Args) error {
	d := k.device
	d.tape.note(k, g, a)
	if g := d.capturing; g != nil {
		g.note(k)
	} else {
		d.remember(&k.name)
	}
	dependent := C.int(0)
	if k.dependent {
		dependent = 1
	}
	code := C.velo_launch(rawContext(d.context), rawFunction(k.f), C.uint(g.X), C.uint(max(g.Y, 1)), C.uint(max(g.Z, 1)), C.uint(g.Block),
		C.uint(g.Shared), rawStream(d.stream), unsafe.Pointer(&a.bytes), C.size_t(a.n), dependent)
	k.launched = true
	if code == 0 && d.options.Wait {
		code = C.velo_synchronize(rawContext(d.context), rawStream(d.stream))
		if code == C.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED {
			code = 0
		}
	}
	if code != 0 {
		return fmt.Errorf("cannot run %s (%d × %d × %d blocks of %d threads, %d bytes shared): %w",
			k.name, g.X, max(g.Y, 1), max(g.Z, 1), g.Block, g.Shared, result(code))
	}
	return nil
}

func (d *Device) synchronize() error {
	return result(C.velo_synchronize(rawContext(d.context), rawStream(d.stream)))
}
