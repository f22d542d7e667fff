package backend

import (
	"math"
	"testing"

	"velo/cuda/nvml"
	"velo/engine/host"
)

// library is a management library that tells one sample.
type library struct{ sample nvml.Sample }

func (l library) Driver() string             { return "580.1" }
func (l library) Read() (nvml.Sample, error) { return l.sample, nil }
func (l library) Close()                     {}

// TestSensor: memory is the GPU's own where it has any, the machine's where it shares that, and otherwise
// unknown; so is everything else without the management library.
func TestSensor(t *testing.T) {
	n := math.NaN()
	tells := func(used, total int64) teller {
		return library{nvml.Sample{Utilisation: 0.5, MemoryBusy: n, Power: n, PowerLimit: n, SMClock: n, MemoryClock: n, Temperature: 61, Used: used, Total: total, Throttled: []string{}}}
	}
	for _, c := range []struct {
		title       string
		integrated  bool
		library     teller
		used, total int64
		unified     bool
		temperature float64
		none        bool
	}{
		{"memory of its own", false, tells(3, 10), 3, 10, false, 61, false},
		{"memory of its own that is not told", false, tells(-1, -1), -1, -1, false, 61, false},
		{"the machine's", true, tells(-1, -1), 75, 100, true, 61, false},
		{"the machine's, without the library", true, nil, 75, 100, true, n, false},
		{"memory of its own, without the library", false, nil, 0, 0, false, 0, true},
	} {
		s := sensorOf(&Facts{Name: "x", Bus: "0000:1b:00.0", Integrated: c.integrated}, c.library)
		if (s == nil) != c.none {
			t.Errorf("%s: a sensor: %v", c.title, s != nil)
			continue
		}
		if s == nil {
			s.Close()
			continue
		}
		s.memory = func() (host.Memory, error) { return host.Memory{Total: 100, Available: 25}, nil }
		g, err := s.Read()
		same := g.Temperature == c.temperature || math.IsNaN(g.Temperature) && math.IsNaN(c.temperature)
		if err != nil || g.Used != c.used || g.Total != c.total || g.Unified != c.unified || !same || g.ID != "0000:1b:00.0" || g.Name != "x" {
			t.Errorf("%s: %+v, %v", c.title, g, err)
		}
		if (g.Throttled == nil) != (c.library == nil) || (s.Driver() == "") != (c.library == nil) {
			t.Errorf("%s: throttled %#v, driver %q", c.title, g.Throttled, s.Driver())
		}
		s.Close()
	}
}
