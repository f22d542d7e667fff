package backend

import (
	"velo/cuda/nvml"
	"velo/engine/host"
)

// Sensor reads what a GPU tells of itself while it works.
type Sensor struct {
	facts *Facts
	gpu   *nvml.GPU
}

// OpenSensor opens the management library for the GPU of a backend. It is nil, without an error,
// for a backend that is no GPU. An error says why the GPU cannot be read; the backend works all the
// same.
func OpenSensor(b Backend) (*Sensor, error) {
	p, ok := b.(Prober)
	if !ok {
		return nil, nil
	}
	gpu, err := nvml.Open(p.Facts().Bus)
	if err != nil {
		return nil, err
	}
	return &Sensor{facts: p.Facts(), gpu: gpu}, nil
}

// Driver is the driver's version; empty if it is not told.
func (s *Sensor) Driver() string { return s.gpu.Driver() }

// Read reads what the GPU tells now. Of a GPU whose memory is the machine's, memory is that of
// /proc/meminfo.
func (s *Sensor) Read() (host.GPU, error) {
	m, err := s.gpu.Read()
	g := host.GPU{ID: s.facts.Bus, Name: s.facts.Name, Utilisation: m.Utilisation, MemoryBusy: m.MemoryBusy, Power: m.Power, PowerLimit: m.PowerLimit,
		SMClock: m.SMClock, MemoryClock: m.MemoryClock, Temperature: m.Temperature, Used: m.Used, Total: m.Total, Throttled: m.Throttled}
	if s.facts.Integrated || g.Total < 0 {
		if memory, failed := host.ReadMemory(); failed == nil {
			g.UseMachineMemory(memory)
		}
	}
	return g, err
}

// Close gives the library back.
func (s *Sensor) Close() {
	if s != nil {
		s.gpu.Close()
	}
}
