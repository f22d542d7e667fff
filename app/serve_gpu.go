package app

import (
	"context"
	"math"
	"strings"

	"velo/engine/emit"
	"velo/engine/host"
)

// watchGPU begins to read the GPU that the model is computed on, once a second. stop ends it. All of
// it is on a goroutine of its own: the library may take as long to open as the driver does.
func (s *service) watchGPU() (stop func()) {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer s.queue.Guard(exitAbort)
		sensor, err := s.engine.Sensor()
		if err != nil {
			s.untold.Store(new(err.Error()))
		}
		switch {
		case err != nil && sensor != nil:
			s.log.Warn("of the GPU's state only memory will be known, which is the machine's", "why", err)
		case err != nil:
			s.log.Warn("nothing will be known of the GPU's state", "why", err)
		}
		if sensor == nil || ctx.Err() != nil {
			return
		}
		if err == nil {
			s.log.Info("reading the GPU's state once a second", "driver", sensor.Driver())
		}
		w := host.WatchGPU(sensor.Read, func(err error) { s.log.Warn("the GPU's state was not read", "why", err) })
		s.gpu.Store(w)
		<-ctx.Done()
		w.Stop() // the library stays open: a reading may still be under way
	}()
	return stop
}

// lastGPU is what the GPU told last.
func (s *service) lastGPU() (host.GPU, bool) { return s.gpu.Load().Last() }

// gpuUntold is why nothing is known of the GPU, or its memory alone; empty: it is, or there is none.
func (s *service) gpuUntold() string {
	if why := s.untold.Load(); why != nil {
		return *why
	}
	return ""
}

// graphs is how many graphs of launches the GPU keeps.
func (s *service) graphs() int {
	if s.engine == nil {
		return 0
	}
	return s.engine.Graphs()
}

// gpuAttributes are those of a status record, by the names of the metrics.
func (s *service) gpuAttributes() []emit.Attribute {
	g, ok := s.lastGPU()
	if !ok {
		return nil
	}
	list := []emit.Attribute{{Key: "hw.id", Text: g.ID}, {Key: "hw.name", Text: g.Name}}
	put := func(key string, v float64) {
		if !math.IsNaN(v) {
			list = append(list, emit.Attribute{Key: key, Number: v})
		}
	}
	put("hw.gpu.utilization", g.Utilisation)
	put("hw.gpu.memory.busy", g.MemoryBusy)
	put("hw.power", g.Power)
	put("hw.gpu.power_limit", g.PowerLimit)
	put("hw.temperature", g.Temperature)
	put("hw.gpu.clock.sm", g.SMClock)
	put("hw.gpu.clock.memory", g.MemoryClock)
	if g.Total > 0 {
		put("hw.gpu.memory.usage", float64(g.Used))
		put("hw.gpu.memory.limit", float64(g.Total))
	}
	if len(g.Throttled) > 0 {
		list = append(list, emit.Attribute{Key: "hw.gpu.throttled", Text: strings.Join(g.Throttled, ", ")})
	}
	return list
}
