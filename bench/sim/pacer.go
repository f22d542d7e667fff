package sim

import (
	"math"
	"runtime"
	"sync"
	"time"
)

// pacer sends the writes of its streams when they are due. It is one system
// thread with a heap of streams: a goroutine a stream would wake a millisecond
// late (the network poller of Go sleeps in whole milliseconds) and cost twice
// the CPU.
type pacer struct {
	clock func() int64 // monotonic ns
	bell  *bell

	mu     sync.Mutex
	heap   []entry
	until  int64 // what the thread sleeps for; 0 while it is awake
	closed bool
}

// entry is a stream and when it wants to go on, in ns of the clock.
type entry struct {
	due    int64
	stream *stream
}

func newPacer(clock func() int64) (*pacer, error) {
	b, err := newBell()
	if err != nil {
		return nil, err
	}
	p := &pacer{clock: clock, bell: b}
	return p, nil
}

// add schedules a stream.
func (p *pacer) add(due int64, s *stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.push(entry{due, s})
	if due < p.until {
		p.bell.ring() // under the lock: the bell is there until run has seen closed
	}
}

// stop ends the thread; streams still on the heap are left as they are.
func (p *pacer) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		p.bell.ring()
	}
}

// run is the thread. It never unlocks itself from the thread, so that the
// thread, whose timer slack it changed, ends with it.
func (p *pacer) run() {
	runtime.LockOSThread()
	sharpenTimer()
	defer p.bell.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed {
		p.until = math.MaxInt64
		if len(p.heap) > 0 {
			p.until = p.heap[0].due
		}
		if now := p.clock(); p.until > now {
			wait := time.Duration(math.MaxInt64)
			if p.until < math.MaxInt64 {
				wait = time.Duration(p.until - now)
			}
			p.mu.Unlock()
			p.bell.wait(wait)
			p.mu.Lock()
			continue
		}
		p.until = 0
		s := p.pop().stream
		p.mu.Unlock()
		due, more := s.step()
		p.mu.Lock()
		if more {
			p.push(entry{due, s})
		}
	}
}

// push and pop keep the heap with the earliest due on top.
func (p *pacer) push(e entry) {
	h := append(p.heap, e)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].due <= e.due {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
	p.heap = h
}

func (p *pacer) pop() entry {
	h := p.heap
	top, e := h[0], h[len(h)-1]
	h[len(h)-1] = entry{} // let the stream go
	h = h[:len(h)-1]
	p.heap = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].due < h[child].due {
			child++
		}
		if h[child].due >= e.due {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = e
	return top
}
