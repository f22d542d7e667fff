package app

import (
	"os"
	"runtime"
	"strings"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/mem"

	"velo/bench"
)

// environment describes the machine that measures. What cannot be found out stays empty.
func environment() bench.Environment {
	e := bench.Environment{
		Velo:  version,
		Go:    runtime.Version(),
		OS:    runtime.GOOS + "/" + runtime.GOARCH,
		Cores: runtime.NumCPU(),
	}
	e.Host, _ = os.Hostname()
	if v, err := host.KernelVersion(); err == nil {
		e.Kernel = v
	}
	if infos, err := cpu.Info(); err == nil && len(infos) > 0 {
		e.CPU = strings.Join(strings.Fields(infos[0].ModelName), " ")
	}
	if m, err := mem.VirtualMemory(); err == nil {
		e.MemoryGB = float64(m.Total) / (1 << 30)
	}
	if b, err := os.ReadFile("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"); err == nil {
		e.Governor = strings.TrimSpace(string(b))
	}
	return e
}
