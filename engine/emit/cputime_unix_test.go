//go:build unix

package emit_test

import (
	"syscall"
	"time"
)

// cpuTime is what the process has computed so far, all threads together.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
