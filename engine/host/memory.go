package host

import (
	"fmt"
	"os"

	"github.com/shirou/gopsutil/v4/mem"
	"github.com/shirou/gopsutil/v4/process"
)

// Memory is how much memory there is, bytes.
type Memory struct {
	Total     int64 // of the machine, or what the control group may have if that is less
	Available int64 // may still be used: MemAvailable, or what the control group has left if that is less
	Limited   bool  // by the control group: Available is what that has left
}

// ReadMemory looks at the machine and at the control groups that the process
// is in.
func ReadMemory() (Memory, error) {
	v, err := mem.VirtualMemory()
	if err != nil {
		return Memory{}, fmt.Errorf("cannot read how much memory is available: %w", err)
	}
	m := Memory{Total: int64(v.Total), Available: int64(v.Available)}
	if limit, left, ok := groupMemory(); ok {
		m.Total = min(m.Total, limit)
		if left < m.Available {
			m.Available, m.Limited = left, true
		}
	}
	return m, nil
}

// Process is what this process takes.
type Process struct {
	RSS     int64 // resident memory, bytes
	Threads int
	Files   int // open file descriptors; -1 = cannot be told here
}

// ReadProcess looks at this process.
func ReadProcess() (Process, error) {
	self, err := process.NewProcess(int32(os.Getpid()))
	if err != nil {
		return Process{}, fmt.Errorf("cannot read about this process: %w", err)
	}
	used, err := self.MemoryInfo()
	if err != nil {
		return Process{}, fmt.Errorf("cannot read the memory of this process: %w", err)
	}
	threads, err := self.NumThreads()
	if err != nil {
		return Process{}, fmt.Errorf("cannot count the threads of this process: %w", err)
	}
	p := Process{RSS: int64(used.RSS), Threads: int(threads), Files: -1}
	if n, err := self.NumFDs(); err == nil {
		p.Files = int(n)
	}
	return p, nil
}
