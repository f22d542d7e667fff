//go:build unix && !linux

package sim

import (
	"errors"
	"syscall"
)

// writeNow is one write system call on a non-blocking socket.
func writeNow(fd uintptr, b []byte) (int, syscall.Errno) {
	n, err := syscall.Write(int(fd), b)
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return 0, errno
	}
	return n, 0
}
