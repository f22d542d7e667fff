package host

import (
	"errors"
	"math"
	"sync"
	"testing"
	"time"
)

func TestWatchGPU(t *testing.T) {
	var mu sync.Mutex
	clock, n, bad, told := time.Unix(1000, 0), 0, false, 0
	reading := make(chan bool)
	read := func() (GPU, error) {
		<-reading
		mu.Lock()
		defer mu.Unlock()
		n++
		g := UnknownGPU("0000:1b:00.0", "test")
		g.Power = float64(n)
		if bad {
			return g, errors.New("lost")
		}
		return g, nil
	}
	w := watchGPU(read, func(error) { mu.Lock(); told++; mu.Unlock() }, time.Millisecond, func() time.Time { mu.Lock(); defer mu.Unlock(); return clock })
	defer w.Stop()
	if _, ok := w.Last(); ok {
		t.Error("there is a reading before the first")
	}
	reading <- true
	reading <- true // the first one is there
	g, ok := w.Last()
	if !ok || g.Power < 1 || !math.IsNaN(g.Temperature) || g.Used != -1 {
		t.Fatalf("%+v %v", g, ok)
	}
	mu.Lock()
	bad = true
	mu.Unlock()
	for range 4 {
		reading <- true
	}
	mu.Lock()
	if told != 1 {
		t.Errorf("told %d times of the same trouble", told)
	}
	clock = clock.Add(gpuStale + time.Second)
	mu.Unlock()
	if g, ok := w.Last(); ok {
		t.Errorf("an old reading is given: %+v", g)
	}
	mu.Lock()
	bad = false
	mu.Unlock()
	reading <- true
	reading <- true
	if g, ok := w.Last(); !ok || g.Power < 6 {
		t.Errorf("it does not come back: %+v %v", g, ok)
	}
	w.Stop()
	w.Stop()
	close(reading)
	var none *GPUWatch
	none.Stop()
	if _, ok := none.Last(); ok {
		t.Error("no watch has a reading")
	}
}

func TestUseMachineMemory(t *testing.T) {
	g := UnknownGPU("", "GB10")
	g.UseMachineMemory(Memory{Total: 128 << 30, Available: 100 << 30})
	if !g.Unified || g.Total != 128<<30 || g.Used != 28<<30 {
		t.Errorf("%+v", g)
	}
}
