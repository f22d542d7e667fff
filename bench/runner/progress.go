package runner

import (
	"sync"
	"sync/atomic"
	"time"

	"velo/bench"
)

// Progress is how far a run is. Rates and tokens are not in it: they are computed from the events.
type Progress struct {
	State      string // Probing, Preparing, WarmingUp, Running, or one of bench.Done, Aborted and Broken
	Step       int    // of the suite's steps that send something, from 1; 0 before the first
	Steps      int
	Section    string
	Title      string // of the step
	Repetition int    // from 0
	Done       int    // measured requests that have ended
	Total      int    // measured requests of the whole run
	Failed     int    // of those that have ended
	LastError  string
	Elapsed    time.Duration // since the run began
	Workers    []WorkerState
}

// The states of a run that goes on.
const (
	Probing   = "probing"   // asking what the server can do
	Preparing = "preparing" // making the requests of a step
	WarmingUp = "warm-up"
	Running   = "running"
)

// WorkerState is what one worker does.
type WorkerState struct {
	Worker  int
	State   string // Queued, Starting, Streaming, Ended, Failed or Stopped
	Request int    // number of its last request in the session; −1 before the first
	Turn    int
	Warmup  bool
	Error   string
}

// The states of a worker.
const (
	Queued    = "queued"    // its request has not been released
	Starting  = "starting"  // sent, no token yet
	Streaming = "streaming" // tokens come
	Ended     = "done"
	Failed    = "failed"
	Stopped   = "stopped"
)

// reportEvery is the least time between two calls of OnProgress.
const reportEvery = 100 * time.Millisecond

// reporter keeps the progress and tells it. The goroutines of requests only set what is theirs.
type reporter struct {
	tell    func(Progress)
	clock   bench.Clock
	began   time.Duration
	news    chan struct{}
	workers []worker

	mu       sync.Mutex
	progress Progress
	ok       int
	begun    int
}

// worker is one worker's state. Its goroutine sets it, the reporter reads it.
type worker struct {
	reporter *reporter
	flowing  atomic.Bool // tokens have come for the present request
	mu       sync.Mutex
	state    WorkerState
}

func newReporter(o Options, steps int) *reporter {
	rep := &reporter{tell: o.OnProgress, clock: o.Clock, began: o.Clock.Now(), news: make(chan struct{}, 1), workers: make([]worker, o.Workers)}
	rep.progress = Progress{State: Probing, Steps: steps, Total: o.Suite.Requests(o.Workers, o.Repeat)}
	for i := range rep.workers {
		rep.workers[i].reporter = rep
		rep.workers[i].state = WorkerState{Worker: i, State: Queued, Request: -1}
	}
	return rep
}

// start begins to call OnProgress. The function it returns ends that, after a last call with the final
// state.
func (rep *reporter) start() (stop func(state string)) {
	if rep.tell == nil {
		return func(string) {}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		pause := time.NewTimer(0)
		defer pause.Stop()
		for {
			select {
			case <-end:
				return
			case <-pause.C:
			}
			select {
			case <-end:
				return
			case <-rep.news:
			}
			rep.tell(rep.now())
			pause.Reset(reportEvery)
		}
	}()
	return func(state string) {
		close(end)
		<-ended
		rep.mu.Lock()
		rep.progress.State = state
		rep.mu.Unlock()
		rep.tell(rep.now())
	}
}

// changed wakes the goroutine that calls OnProgress. It never blocks.
func (rep *reporter) changed() {
	select {
	case rep.news <- struct{}{}:
	default:
	}
}

func (rep *reporter) now() Progress {
	rep.mu.Lock()
	p := rep.progress
	rep.mu.Unlock()
	p.Elapsed = rep.clock.Now() - rep.began
	p.Workers = make([]WorkerState, len(rep.workers))
	for i := range rep.workers {
		w := &rep.workers[i]
		w.mu.Lock()
		p.Workers[i] = w.state
		w.mu.Unlock()
		if p.Workers[i].State == Starting && w.flowing.Load() {
			p.Workers[i].State = Streaming
		}
	}
	return p
}

// at says which step of the suite the run has come to, from 1.
func (rep *reporter) at(step, repetition int) {
	rep.mu.Lock()
	rep.progress.Step, rep.progress.Repetition = step, repetition
	rep.mu.Unlock()
}

// phase says what the run does. Before a step, all workers are queued.
func (rep *reporter) phase(state, section, title string) {
	rep.mu.Lock()
	p := &rep.progress
	p.State, p.Section, p.Title = state, section, title
	rep.mu.Unlock()
	if state == Preparing {
		for i := range rep.workers {
			w := &rep.workers[i]
			w.mu.Lock()
			w.state.State, w.state.Error = Queued, ""
			w.mu.Unlock()
		}
	}
	rep.changed()
}

// worker begins a request.
func (rep *reporter) worker(q *bench.Request) *worker {
	w := &rep.workers[q.Worker]
	w.flowing.Store(false)
	w.mu.Lock()
	w.state = WorkerState{Worker: q.Worker, State: Starting, Request: q.Number, Turn: q.Turn, Warmup: q.Warmup}
	w.mu.Unlock()
	if !q.Warmup {
		rep.mu.Lock()
		rep.begun++
		rep.mu.Unlock()
	}
	rep.changed()
	return w
}

// streams says that tokens come. It is called for every chunk.
func (w *worker) streams() {
	if !w.flowing.Load() {
		w.flowing.Store(true)
		w.reporter.changed()
	}
}

func (w *worker) ended(e *bench.End) {
	w.mu.Lock()
	warmup := w.state.Warmup
	switch {
	case fails(e):
		w.state.State, w.state.Error = Failed, why(e)
	case e.Status == bench.Stopped:
		w.state.State = Stopped
	default:
		w.state.State = Ended
	}
	w.mu.Unlock()
	rep := w.reporter
	rep.mu.Lock()
	if fails(e) {
		rep.progress.LastError = why(e)
	}
	if !warmup {
		rep.progress.Done++
		switch {
		case fails(e):
			rep.progress.Failed++
		case e.Status == bench.OK:
			rep.ok++
		}
	}
	rep.mu.Unlock()
	rep.changed()
}

func (rep *reporter) outcome() Outcome {
	rep.mu.Lock()
	defer rep.mu.Unlock()
	return Outcome{Requests: rep.begun, OK: rep.ok, Failed: rep.progress.Failed}
}

func (rep *reporter) lastError() string {
	rep.mu.Lock()
	defer rep.mu.Unlock()
	return rep.progress.LastError
}
