package sim

import (
	"syscall"
	"unsafe"
)

// writeNow is one write system call on a non-blocking socket. It bypasses the
// scheduler of Go, whose way out of a system call can take longer than the call
// and would widen the interval that the caller stamps.
func writeNow(fd uintptr, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}
