package meter

import (
	"math"
	"strings"
	"testing"

	"velo/engine/host"
)

func TestGPU(t *testing.T) {
	gpu, there := host.UnknownGPU("0000:1b:00.0", "NVIDIA H200"), true
	m := fixed(func(g *gauges) { g.sources.GPU = func() (host.GPU, bool) { return gpu, there } })
	labels := `hw_id="0000:1b:00.0",hw_name="NVIDIA H200",hw_type="gpu"`
	// What it does not tell is not there.
	if got := text(t, m); strings.Contains(got, "hw_") {
		t.Errorf("a GPU that tells nothing has metrics:\n%s", got)
	}
	gpu.Utilisation, gpu.MemoryBusy, gpu.Power, gpu.PowerLimit, gpu.Temperature, gpu.SMClock, gpu.MemoryClock = 0.87, 0.64, 653.5, 700, 61, 1755e6, 3201e6
	gpu.Used, gpu.Total, gpu.Throttled = 30e9, 120e9, []string{"power cap", "thermal slowdown"}
	got := text(t, m)
	for _, want := range []string{
		"hw_gpu_utilization_ratio{" + labels + "} 0.87\n", "hw_gpu_memory_busy_ratio{" + labels + "} 0.64\n",
		"hw_power_watts{" + labels + "} 653.5\n", "hw_gpu_power_limit_watts{" + labels + "} 700\n", "hw_temperature_celsius{" + labels + "} 61\n",
		`hw_gpu_clock_hertz{hw_gpu_clock_domain="sm",` + labels + "} 1.755e+09\n",
		`hw_gpu_clock_hertz{hw_gpu_clock_domain="memory",` + labels + "} 3.201e+09\n",
		"hw_gpu_memory_usage_bytes{" + labels + `,source="nvml"} 3e+10` + "\n",
		"hw_gpu_memory_limit_bytes{" + labels + `,source="nvml"} 1.2e+11` + "\n",
		"hw_gpu_memory_utilization_ratio{" + labels + `,source="nvml"} 0.25` + "\n",
		"hw_gpu_throttled{" + labels + `,reason="power cap"} 1` + "\n", "hw_gpu_throttled{" + labels + `,reason="thermal slowdown"} 1` + "\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %s in\n%s", want, got[:strings.Index(got, "velogb10_")])
		}
	}
	gpu.Unified, gpu.Power, gpu.Throttled = true, math.NaN(), nil
	got = text(t, m)
	if !strings.Contains(got, `source="meminfo"`) || strings.Contains(got, "hw_power_watts") || strings.Contains(got, "hw_gpu_throttled") {
		t.Errorf("of unified memory:\n%s", got)
	}
	there = false
	if strings.Contains(text(t, m), "hw_") {
		t.Error("what is no longer known is still told")
	}
}
