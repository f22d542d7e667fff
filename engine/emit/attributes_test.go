package emit

import (
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// A status record carries what Attributes gives, over each encoding.
func TestStatusRecordsCarryAttributes(t *testing.T) {
	for _, protobuf := range []bool{false, true} {
		r := &receiver{}
		o := Options{Endpoint: serveHTTP(t, r), Protobuf: protobuf, Attributes: func() []Attribute {
			return []Attribute{{Key: "hw.gpu.utilization", Number: 0.875}, {Key: "hw.gpu.throttled", Text: "power \"cap\""}, {Key: "hw.power"}}
		}}
		e := started(t, o, func(tm *timing) { tm.alive = 10 * time.Millisecond })
		e.Emit(Record{Event: Start, Body: []byte("{}")})
		until(t, "a status record and another one are there", func() bool { return len(r.records()) >= 2 })
		_ = closed(t, e)
		seen := false
		for _, l := range r.records() {
			busy := attribute(l.Attributes, "hw.gpu.utilization")
			if attribute(l.Attributes, "event").GetStringValue() != "status" {
				if busy != nil {
					t.Error("a stream's record carries what the GPU tells")
				}
				continue
			}
			seen = true
			if busy.GetDoubleValue() != 0.875 || attribute(l.Attributes, "hw.gpu.throttled").GetStringValue() != "power \"cap\"" ||
				attribute(l.Attributes, "hw.power") == nil || attribute(l.Attributes, "hw.power").GetDoubleValue() != 0 {
				t.Errorf("protobuf %v: %v", protobuf, l.Attributes)
			}
		}
		if !seen {
			t.Error("there is no status record")
		}
	}
}

func TestHardwareHasTheNamesOfTheConventions(t *testing.T) {
	for name, want := range map[string][2]string{
		"hw_gpu_utilization_ratio": {"hw.gpu.utilization", "1"}, "hw_gpu_memory_usage_bytes": {"hw.gpu.memory.usage", "By"},
		"hw_power_watts": {"hw.power", "W"}, "hw_temperature_celsius": {"hw.temperature", "Cel"}, "hw_gpu_clock_hertz": {"hw.gpu.clock", "Hz"},
		"hw_gpu_power_limit_watts": {"hw.gpu.power_limit", "W"}, "hw_gpu_throttled": {"hw.gpu.throttled", ""},
		"velogb10_process_rss_bytes": {"velogb10_process_rss_bytes", "By"},
	} {
		if got := metricName(name); got != want[0] {
			t.Errorf("%s is %s, want %s", name, got, want[0])
		}
		if got := unit(&dto.MetricFamily{Name: &name}); got != want[1] {
			t.Errorf("%s is in %q, want %q", name, got, want[1])
		}
	}
	key, value := "hw_gpu_clock_domain", "sm"
	if got := labels(&dto.Metric{Label: []*dto.LabelPair{{Name: &key, Value: &value}}}); got[0].Key != "hw.gpu.clock.domain" {
		t.Errorf("label %s", got[0].Key)
	}
}
