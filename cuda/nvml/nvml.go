//go:build linux && cuda && cgo

package nvml

/*
#cgo LDFLAGS: -ldl
#include "nvml.h"
#include <stdlib.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// GPU is a GPU that is read. Its methods may be called from any goroutine.
type GPU struct {
	mu      sync.Mutex
	library *C.velo_nvml // in C's memory; nil after Close
	device  unsafe.Pointer
	driver  string
}

// Open opens the management library and finds the GPU at a PCI address, as in "0000:1b:00.0"; an
// empty one is the first GPU.
func Open(bus string) (*GPU, error) { return open(Library, bus) }

func open(path, bus string) (*GPU, error) {
	g := &GPU{library: (*C.velo_nvml)(C.calloc(1, C.sizeof_velo_nvml))}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	runtime.LockOSThread() // why belongs to the thread
	defer runtime.UnlockOSThread()
	var why *C.char
	code := C.velo_nvml_open(g.library, name, &why)
	if code < 0 {
		err := fmt.Errorf("cannot open the GPU's management library: %s", C.GoString(why))
		g.Close()
		return nil, err
	}
	if err := g.result(code); err != nil {
		g.library.shutdown = nil // it was never started
		g.Close()
		return nil, fmt.Errorf("cannot start the GPU's management library: %w", err)
	}
	if bus == "" {
		code = C.velo_nvml_by_index(g.library, 0, &g.device)
	} else {
		at := C.CString(bus)
		defer C.free(unsafe.Pointer(at))
		code = C.velo_nvml_by_bus(g.library, at, &g.device)
	}
	if err := g.result(code); err != nil {
		g.Close()
		return nil, fmt.Errorf("cannot find the GPU %s in the management library: %w", bus, err)
	}
	var text [96]C.char
	if C.velo_nvml_driver(g.library, &text[0], C.uint(len(text))) == 0 {
		text[len(text)-1] = 0
		g.driver = C.GoString(&text[0])
	}
	return g, nil
}

func (g *GPU) result(code C.int) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("%s (%d)", C.GoString(C.velo_nvml_error(g.library, code)), int(code))
}

// Driver is the driver's version, as "580.159.03"; empty if it is not told.
func (g *GPU) Driver() string { return g.driver }

// Read reads what the GPU tells now. What it does not tell is missing from the sample; an error
// is one that came from asking, beside what was told all the same. It may take as long as the
// driver does.
func (g *GPU) Read() (Sample, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := nothing()
	if g.library == nil {
		return s, errors.New("cannot read the GPU's state: it was closed")
	}
	var c C.velo_nvml_sample
	err := g.result(C.velo_nvml_read(g.library, g.device, &c))
	if err != nil {
		err = fmt.Errorf("cannot read the GPU's state: %w", err)
	}
	told := func(bit int) bool { return c.told&(1<<bit) != 0 }
	set := func(bit int, to *float64, v C.uint, unit float64) {
		if told(bit) {
			*to = float64(v) * unit
		}
	}
	set(0, &s.Utilisation, c.busy, 0.01)
	set(0, &s.MemoryBusy, c.memory_busy, 0.01)
	set(1, &s.Power, c.power, 1e-3)
	set(2, &s.PowerLimit, c.power_limit, 1e-3)
	set(3, &s.SMClock, c.sm_clock, 1e6)
	set(4, &s.MemoryClock, c.memory_clock, 1e6)
	set(5, &s.Temperature, c.temperature, 1)
	if told(6) && c.total > 0 {
		s.Used, s.Total = int64(c.used), int64(c.total)
	}
	if told(7) {
		s.Throttled = throttled(uint64(c.reasons))
	}
	return s, err
}

// Close gives the library back.
func (g *GPU) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.library != nil {
		C.velo_nvml_close(g.library)
		C.free(unsafe.Pointer(g.library))
		g.library = nil
	}
}
