//go:build unix

package app

import (
	"runtime"
	"syscall"
	"time"
)

// processCPU is the user and system time of this process so far.
func processCPU() time.Duration {
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// maxResident is the largest resident size that this process has had, in bytes.
func maxResident() int64 {
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" { // counts bytes where the others count KiB
		return int64(ru.Maxrss)
	}
	return int64(ru.Maxrss) * 1024
}
