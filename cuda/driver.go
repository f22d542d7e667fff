//go:build linux && cuda && cgo

package cuda

/*
#include "driver.h"
#cgo noescape velo_launch
#cgo nocallback velo_launch
#cgo noescape velo_graph_launch
#cgo nocallback velo_graph_launch
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"gorgonia.org/cu"
	"velo/cuda/stub"
)

// Error is a failure that the driver reports.
type Error struct {
	Code       int // CUresult
	Name, Text string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%s, %d)", e.Text, e.Name, e.Code) }

// result is nil for CUresult 0.
func result(code C.int) error {
	if code == 0 {
		return nil
	}
	return &Error{Code: int(code), Name: C.GoString(C.velo_error_name(code)), Text: C.GoString(C.velo_error_text(code))}
}

// outOfMemory tells whether the device, or the host for page-locked memory, had no memory left.
func outOfMemory(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == C.CUDA_ERROR_OUT_OF_MEMORY || errors.Is(err, cu.OutOfMemory)
}

// load opens the driver's library and looks up what cu lacks.
func load() error {
	code, err := stub.Load()
	if err != nil {
		return fmt.Errorf("%w; is an NVIDIA driver installed?", err)
	}
	missing := C.velo_driver_bind()
	if err := result(C.int(code)); err != nil {
		return fmt.Errorf("cannot start the CUDA driver: %w", err)
	}
	if missing != nil {
		return fmt.Errorf("cannot use the CUDA driver: it has no %s, so it is older than CUDA 12; install a newer one", C.GoString(missing))
	}
	return nil
}

// trim gives memory of the host that the driver has freed back to the system.
func trim() { C.velo_trim() }

// The driver's handles, which cu wraps in structs of one field.

func rawContext(c cu.CUContext) C.CUcontext { return *(*C.CUcontext)(unsafe.Pointer(&c)) }

func rawFunction(f cu.Function) C.CUfunction { return *(*C.CUfunction)(unsafe.Pointer(&f)) }

func rawStream(s cu.Stream) C.CUstream { return *(*C.CUstream)(unsafe.Pointer(&s)) }

// compile makes machine code for the device of context from PTX.
func compile(context C.CUcontext, ptx []byte) ([]byte, error) {
	text := C.CBytes(append(append([]byte(nil), ptx...), 0))
	defer C.free(text)
	const logSize = 16 << 10
	log := (*C.char)(C.malloc(logSize))
	defer C.free(unsafe.Pointer(log))
	var cubin unsafe.Pointer
	var n C.size_t
	if err := result(C.velo_compile(context, text, C.size_t(len(ptx)+1), &cubin, &n, log, logSize)); err != nil {
		if s := C.GoString(log); s != "" {
			err = errors.Join(err, errors.New(s))
		}
		return nil, err
	}
	defer C.free(cubin)
	return C.GoBytes(cubin, C.int(n)), nil
}
