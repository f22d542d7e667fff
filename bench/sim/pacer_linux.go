package sim

import (
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// bell is a sleep with nanosecond resolution that another thread can end.
type bell struct{ fd int }

func newBell() (*bell, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("cannot create an eventfd for the pacer: %w", err)
	}
	return &bell{fd}, nil
}

// wait sleeps for d, or until somebody rings.
func (b *bell) wait(d time.Duration) {
	fds := []unix.PollFd{{Fd: int32(b.fd), Events: unix.POLLIN}}
	var timeout *unix.Timespec
	if d < math.MaxInt64 {
		t := unix.NsecToTimespec(int64(d))
		timeout = &t
	}
	// EINTR (a signal of the Go scheduler) is a wake-up like any other: the
	// pacer looks at the clock and sleeps again.
	if n, _ := unix.Ppoll(fds, timeout, nil); n > 0 {
		var count [8]byte
		unix.Read(b.fd, count[:])
	}
}

func (b *bell) ring() {
	one := [8]byte{1}
	unix.Write(b.fd, one[:]) // fails only when enough rings are waiting already
}

func (b *bell) close() { unix.Close(b.fd) }

// sharpenTimer asks the kernel to wake this thread on time; by default it may
// come 50 µs late to save power.
func sharpenTimer() { unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }
