package meter

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"velo/engine/host"
)

// What a GPU tells has the names of OpenTelemetry's semantic conventions for hardware as
// Prometheus writes them (hw.gpu.utilization is hw_gpu_utilization_ratio); the conventions have
// none for a GPU's clocks, the limit of its power and what slows it down, which are hw_gpu_clock,
// hw_gpu_power_limit and hw_gpu_throttled here.
var (
	gpuUtilisation = describeGPU("hw_gpu_utilization_ratio", "Share of the last moments in which a kernel ran on the GPU.")
	gpuMemoryBusy  = describeGPU("hw_gpu_memory_busy_ratio", "Share of the last moments in which the GPU's memory was read or written.")
	gpuUsed        = describeGPU("hw_gpu_memory_usage_bytes", "Memory of the GPU in use; with source=meminfo it is the machine's, which the GPU shares.", "source")
	gpuTotal       = describeGPU("hw_gpu_memory_limit_bytes", "Memory of the GPU; with source=meminfo it is the machine's, which the GPU shares.", "source")
	gpuShare       = describeGPU("hw_gpu_memory_utilization_ratio", "Share of the GPU's memory that is in use.", "source")
	gpuPower       = describeGPU("hw_power_watts", "Power that the GPU takes.")
	gpuPowerLimit  = describeGPU("hw_gpu_power_limit_watts", "Power that the GPU may take.")
	gpuTemperature = describeGPU("hw_temperature_celsius", "Temperature of the GPU.")
	gpuClock       = describeGPU("hw_gpu_clock_hertz", "Clock of the GPU's multiprocessors (sm) and of its memory.", "hw_gpu_clock_domain")
	gpuThrottled   = describeGPU("hw_gpu_throttled", "1 for each reason that keeps the GPU's clocks down, in words.", "reason")
)

var gpuDescriptions = []*prometheus.Desc{gpuUtilisation, gpuMemoryBusy, gpuUsed, gpuTotal, gpuShare, gpuPower, gpuPowerLimit, gpuTemperature, gpuClock, gpuThrottled}

func describeGPU(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, append([]string{"hw_id", "hw_name"}, labels...), prometheus.Labels{"hw_type": "gpu"})
}

// collectGPU gives what the GPU told last. What it does not tell is left out.
func collectGPU(g host.GPU, to chan<- prometheus.Metric) {
	put := func(d *prometheus.Desc, v float64, labels ...string) {
		if !math.IsNaN(v) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{g.ID, g.Name}, labels...)...)
		}
	}
	put(gpuUtilisation, g.Utilisation)
	put(gpuMemoryBusy, g.MemoryBusy)
	put(gpuPower, g.Power)
	put(gpuPowerLimit, g.PowerLimit)
	put(gpuTemperature, g.Temperature)
	put(gpuClock, g.SMClock, "sm")
	put(gpuClock, g.MemoryClock, "memory")
	if g.Total > 0 {
		source := "nvml"
		if g.Unified {
			source = "meminfo"
		}
		put(gpuUsed, float64(g.Used), source)
		put(gpuTotal, float64(g.Total), source)
		put(gpuShare, float64(g.Used)/float64(g.Total), source)
	}
	for _, reason := range g.Throttled {
		put(gpuThrottled, 1, reason)
	}
}
