//go:build linux && cgo

package stub

/*
#cgo LDFLAGS: -L${SRCDIR}/lib -Wl,--as-needed -ldl
#include "stub.h"
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// Library is the file name of the CUDA driver's library.
const Library = "libcuda.so.1"

var loading sync.Mutex

// Load opens the driver's library, once, and initialises it. It returns the
// CUresult of cuInit; an error says that there is no usable library. It may be
// called again: the library stays, cuInit is asked anew.
func Load() (result int, err error) { return load(Library) }

func load(path string) (int, error) {
	loading.Lock()
	defer loading.Unlock()
	runtime.LockOSThread() // why belongs to the thread
	defer runtime.UnlockOSThread()
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var why *C.char
	result := C.velo_stub_load(name, &why)
	if result == C.VELO_NO_LIBRARY {
		return 0, fmt.Errorf("cannot open the CUDA driver's library: %s", C.GoString(why))
	}
	return int(result), nil
}

// Symbol is the driver's function of that name, nil before [Load] or if the
// driver does not have it.
func Symbol(name string) unsafe.Pointer {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	return C.velo_stub_symbol(s)
}

// Functions is how many of the driver's functions the stub answers for.
func Functions() int { return int(C.velo_stub_functions()) }
