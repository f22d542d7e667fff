package client

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// unanswered makes an address on which connecting hangs: a listener that accepts nothing, its backlog
// filled up.
func unanswered(t *testing.T) (string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return "", err
	}
	if err := unix.Listen(fd, 0); err != nil {
		return "", err
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return "", err
	}
	for range 4 {
		c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return "", err
		}
		t.Cleanup(func() { unix.Close(c) })
		_ = unix.Connect(c, name)
	}
	return fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port), nil
}
