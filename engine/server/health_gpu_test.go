package server

import (
	"encoding/json"
	"testing"
	"time"

	"velo/engine/host"
)

func TestGPUOfHealth(t *testing.T) {
	at := time.Unix(1000, 0)
	g := host.UnknownGPU("0000:1b:00.0", "NVIDIA GB10")
	g.At, g.Temperature, g.Throttled = at, 61, []string{"power cap"}
	g.UseMachineMemory(host.Memory{Total: 100, Available: 25})
	b, err := json.Marshal(gpuOf(g, at.Add(500*time.Millisecond)))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"id":"0000:1b:00.0","name":"NVIDIA GB10","age_seconds":0.5,"temperature_c":61,"memory_used_bytes":75,"memory_total_bytes":100,"memory_source":"meminfo","throttled":["power cap"]}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	g = host.UnknownGPU("", "x")
	g.At, g.Utilisation, g.Used, g.Total = at, 0, 0, 5
	b, _ = json.Marshal(gpuOf(g, at))
	if want := `{"id":"","name":"x","age_seconds":0,"utilization":0,"memory_used_bytes":0,"memory_total_bytes":5,"memory_source":"nvml"}`; string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	// That nothing keeps the clocks down is something else than that nothing is told.
	g.Throttled = []string{}
	b, _ = json.Marshal(gpuOf(g, at))
	if want := `{"id":"","name":"x","age_seconds":0,"utilization":0,"memory_used_bytes":0,"memory_total_bytes":5,"memory_source":"nvml","throttled":[]}`; string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}
