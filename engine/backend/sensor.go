package backend

import (
	"velo/cuda/nvml"
	"velo/engine/host"
)

// Sensor reads what a GPU tells of itself while it works.
type Sensor struct {
	facts  *Facts
	gpu    teller // nil: nothing tells more than the machine does
	memory func() (host.Memory, error)
}

// teller is the management library, open for one GPU.
type teller interface {
	Driver() string
	Read() (nvml.Sample, error)
	Close()
}

// OpenSensor opens the management library for the GPU of a backend. It is nil, without an error,
// for a backend that is no GPU. An error says why the GPU cannot be read; the backend works all the
// same, and of a GPU whose memory is the machine's there is a sensor of that memory alone.
func OpenSensor(b Backend) (*Sensor, error) {
	p, ok := b.(Prober)
	if !ok {
		return nil, nil
	}
	gpu, err := nvml.Open(p.Facts().Bus)
	if err != nil {
		return sensorOf(p.Facts(), nil), err
	}
	return sensorOf(p.Facts(), gpu), nil
}

// sensorOf is nil where there is nothing to read.
func sensorOf(f *Facts, gpu teller) *Sensor {
	if gpu == nil && !f.Integrated {
		return nil
	}
	return &Sensor{facts: f, gpu: gpu, memory: host.ReadMemory}
}

// Driver is the driver's version; empty if it is not told.
func (s *Sensor) Driver() string {
	if s.gpu == nil {
		return ""
	}
	return s.gpu.Driver()
}

// Read reads what the GPU tells now. Of a GPU whose memory is the machine's, memory is that of
// /proc/meminfo. One with memory of its own is never said to use the machine's.
func (s *Sensor) Read() (g host.GPU, err error) {
	g = host.UnknownGPU(s.facts.Bus, s.facts.Name)
	if s.gpu != nil {
		m, failed := s.gpu.Read()
		g.Utilisation, g.MemoryBusy, g.Power, g.PowerLimit = m.Utilisation, m.MemoryBusy, m.Power, m.PowerLimit
		g.SMClock, g.MemoryClock, g.Temperature = m.SMClock, m.MemoryClock, m.Temperature
		g.Used, g.Total, g.Throttled = m.Used, m.Total, m.Throttled
		err = failed
	}
	if s.facts.Integrated {
		if memory, failed := s.memory(); failed == nil {
			g.UseMachineMemory(memory)
		}
	}
	return g, err
}

// Close gives the library back.
func (s *Sensor) Close() {
	if s != nil && s.gpu != nil {
		s.gpu.Close()
	}
}
