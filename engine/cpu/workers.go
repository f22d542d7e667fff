package cpu

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"velo/engine/weights"
)

// task is work in pieces that may be done in any order and by any worker.
type task interface {
	do(piece, worker int)
}

// workers are goroutines that share the pieces of one task at a time. They
// spin for a moment after each task, because a decode step is hundreds of
// tasks of a few microseconds and waking a goroutine costs as much, and sleep
// after that. A worker that the system does not let run holds nothing up:
// the others take its pieces.
type workers struct {
	n    int
	task task
	size int64
	next atomic.Int64
	// state is generation<<16 | workers inside. An odd generation is open: its
	// task may be joined. Closing needs nobody inside.
	state atomic.Uint64
	rooms []room
	quit  atomic.Bool
	fault atomic.Pointer[any] // the first panic of a task on a mapped file that could not be read
}

// room is where a worker sleeps.
type room struct {
	asleep atomic.Bool
	wake   chan struct{}
	_      [40]byte // a cache line of its own
}

const spins = 300 // about 10 µs: a pause is 40 to 140 cycles

func newWorkers(n int) *workers {
	w := &workers{n: n, rooms: make([]room, n)}
	for i := 1; i < n; i++ {
		w.rooms[i].wake = make(chan struct{}, 1)
		go w.loop(i)
	}
	return w
}

// run does the pieces 0 … size−1 of t and returns when all are done. A fault of a mapped file, on whichever
// worker, is a panic of the caller, see [weights.Recover].
func (w *workers) run(t task, size int) {
	if size == 1 || w.n == 1 {
		for i := range size {
			t.do(i, 0)
		}
		return
	}
	w.task, w.size = t, int64(size)
	w.next.Store(0)
	w.state.Add(1 << 16) // now odd: open
	for i := 1; i < min(w.n, size); i++ {
		if w.rooms[i].asleep.CompareAndSwap(true, false) {
			w.rooms[i].wake <- struct{}{}
		}
	}
	w.take(t, 0)
	open := w.state.Load() &^ 0xffff
	for spin := 0; !w.state.CompareAndSwap(open, open+1<<16); spin++ {
		if pause(); spin > spins {
			runtime.Gosched()
		}
	}
	if w.fault.Load() != nil {
		panic(*w.fault.Swap(nil))
	}
}

// take does pieces until there are none left, or one faults.
func (w *workers) take(t task, worker int) {
	defer w.caught()
	for {
		i := w.next.Add(1) - 1
		if i >= w.size {
			return
		}
		t.do(int(i), worker)
	}
}

// caught keeps a fault for the one who called run; the other workers may still be at their pieces.
func (w *workers) caught() {
	v := recover()
	if v == nil {
		return
	}
	if !weights.Faulted(v) {
		panic(v)
	}
	fault := v // of its own, so that without one nothing is allocated
	w.fault.CompareAndSwap(nil, &fault)
}

func (w *workers) loop(worker int) {
	debug.SetPanicOnFault(true) // weights may lie in mapped files
	room := &w.rooms[worker]
	seen := uint64(0)
	idle := 0
	for !w.quit.Load() {
		state := w.state.Load()
		generation := state >> 16
		if generation&1 == 1 && generation != seen {
			if w.state.CompareAndSwap(state, state+1) {
				seen = generation
				w.take(w.task, worker)
				w.state.Add(^uint64(0))
				idle = 0
			}
			continue
		}
		if idle++; idle < spins {
			pause()
			continue
		}
		idle = 0
		room.asleep.Store(true)
		state = w.state.Load()
		open := (state>>16)&1 == 1 && state>>16 != seen
		if (open || w.quit.Load()) && room.asleep.CompareAndSwap(true, false) {
			continue
		}
		<-room.wake
	}
}

// stop ends the goroutines. The workers must not be used afterwards.
func (w *workers) stop() {
	w.quit.Store(true)
	for i := 1; i < w.n; i++ {
		if w.rooms[i].asleep.CompareAndSwap(true, false) {
			w.rooms[i].wake <- struct{}{}
		}
	}
}
