//go:build !unix

package app

import (
	"os"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// processCPU is the user and system time of this process so far.
func processCPU() time.Duration {
	p, err := process.NewProcess(int32(os.Getpid()))
	if err != nil {
		return 0
	}
	t, err := p.Times()
	if err != nil {
		return 0
	}
	return time.Duration((t.User + t.System) * float64(time.Second))
}

// maxResident is the resident size of this process, in bytes.
func maxResident() int64 {
	p, err := process.NewProcess(int32(os.Getpid()))
	if err != nil {
		return 0
	}
	m, err := p.MemoryInfo()
	if err != nil {
		return 0
	}
	return int64(m.RSS)
}
