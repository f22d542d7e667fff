package host

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// GPU is what a GPU told of itself at one time. A number that it does not tell is NaN, bytes −1.
type GPU struct {
	At          time.Time
	ID          string   // PCI address, as 0000:1b:00.0
	Name        string   // as the driver has it
	Utilisation float64  // share of the last moments in which it computed, 0 to 1
	MemoryBusy  float64  // share of them in which its memory was read or written, 0 to 1
	Power       float64  // W
	PowerLimit  float64  // W
	SMClock     float64  // Hz
	MemoryClock float64  // Hz
	Temperature float64  // °C
	Used, Total int64    // bytes of memory
	Unified     bool     // the memory is the machine's: Used and Total are of that, from /proc/meminfo
	Throttled   []string // what keeps its clocks down, in words; nil: it does not tell, empty: nothing does
}

// UnknownGPU is a GPU that tells nothing but what it is.
func UnknownGPU(id, name string) GPU {
	n := math.NaN()
	return GPU{ID: id, Name: name, Utilisation: n, MemoryBusy: n, Power: n, PowerLimit: n, SMClock: n, MemoryClock: n, Temperature: n, Used: -1, Total: -1}
}

// UseMachineMemory fills in the machine's memory, for a GPU that has none of its own.
func (g *GPU) UseMachineMemory(m Memory) {
	g.Unified, g.Total, g.Used = true, m.Total, max(0, m.Total-m.Available)
}

const (
	gpuEvery = time.Second
	// A reading that is older says nothing any more: the driver does not answer.
	gpuStale = 10 * time.Second
)

// GPUWatch reads a GPU once a second, on a goroutine of its own: a driver that does not answer
// holds up nothing else.
type GPUWatch struct {
	last atomic.Pointer[GPU]
	stop chan struct{}
	once sync.Once
	now  func() time.Time
}

// WatchGPU begins to read. A reading that fails is left out; failed is told of the first one of
// several in a row, and may be nil.
func WatchGPU(read func() (GPU, error), failed func(error)) *GPUWatch {
	return watchGPU(read, failed, gpuEvery, time.Now)
}

func watchGPU(read func() (GPU, error), failed func(error), every time.Duration, now func() time.Time) *GPUWatch {
	w := &GPUWatch{stop: make(chan struct{}), now: now}
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		well := true
		for {
			g, err := read()
			if err == nil {
				g.At = now()
				w.last.Store(&g)
			} else if well && failed != nil {
				failed(err)
			}
			well = err == nil
			select {
			case <-tick.C:
			case <-w.stop:
				return
			}
		}
	}()
	return w
}

// Last is the latest reading; false if there is none, or none of the last 10 seconds. A nil
// GPUWatch has none.
func (w *GPUWatch) Last() (GPU, bool) {
	if w == nil {
		return GPU{}, false
	}
	g := w.last.Load()
	if g == nil || w.now().Sub(g.At) > gpuStale {
		return GPU{}, false
	}
	return *g, true
}

// Stop ends the watch. It does not wait: a reading may be under way for as long as the driver takes.
func (w *GPUWatch) Stop() {
	if w != nil {
		w.once.Do(func() { close(w.stop) })
	}
}
