// Package supervise runs the engine as a child process and says at every moment how it is: it reads
// the child's state lines and log, counts it as ready only when its health check has passed, follows
// its figures while it serves, ends it without leaving anything behind, and explains in a sentence
// why it ended when nobody asked it to.
//
// The child holds the reading end of a pipe as its standard input. When this process is gone,
// however it went, that pipe ends, and the child with it.
package supervise

import (
	"errors"
	"net/http"
	"sync"
	"time"
)

// State is what the engine does.
type State int

// The states. Every engine begins and ends as Stopped or Crashed.
const (
	Stopped  State = iota
	Starting       // the process runs and has not said anything yet
	Loading        // it takes over the weights, or has done so and its health check has not passed yet
	Ready          // it answers
	Stopping       // it was asked to end
	Crashed        // it ended by itself
)

// String is the state in a word.
func (s State) String() string {
	return [...]string{"stopped", "starting", "loading", "ready", "stopping", "crashed"}[s]
}

// Running tells whether there is a process.
func (s State) Running() bool { return s != Stopped && s != Crashed }

// Status is how the engine is.
type Status struct {
	State State
	Since time.Time // of the state
	PID   int       // 0 = there is no process

	Done, Total int64   // bytes of weights taken over, while loading
	Rate        float64 // of that, bytes/s over the last seconds; 0 = not known yet
	Checking    bool    // loaded; its health check has not passed yet

	URL            string // while ready or stopping: without /v1
	Model          string
	Context, Lanes int

	Figures Figures  // while ready
	Ill     string   // while it is checked or ready: why it does not answer its health check
	Note    string   // while stopped: how it ended, where that was out of the ordinary
	Failure *Failure // while crashed
}

// Share is how much of the weights was taken over, 0 to 1.
func (s Status) Share() float64 {
	if s.Total <= 0 {
		return 0
	}
	return float64(s.Done) / float64(s.Total)
}

// Command is how the engine is started. The flags of the protocol are added to Args.
type Command struct {
	Path string   // of the program
	Args []string // after its name: serve --model-dir …
	Env  []string // added to this process's
	Key  string   // that the engine asks its clients for; empty = none
	Host string   // that it listens on: to find a free port where its own is taken
	Port int
}

// Options is how an engine is supervised. The zero value is right but for tests.
type Options struct {
	Changed   func()        // the state changed; called on any goroutine, must not block
	Drain     time.Duration // after being asked to end, before it is terminated; 5 s
	Terminate time.Duration // after that, before its process group is killed; 3 s
	Poll      time.Duration // between two readings of the figures; 1 s
	Check     time.Duration // between two health checks until one passes; 100 ms
	Kills     func() uint64 // how many processes the kernel has killed for want of memory
}

// Supervisor runs one engine at a time. Its methods may be called from any goroutine and return at
// once, Wait and Close excepted.
type Supervisor struct {
	o      Options
	log    *Log
	client *http.Client

	mu     sync.Mutex
	status Status
	proc   *process // nil: none runs
	next   *Command // is started when proc has ended
	closed bool
	ended  chan struct{} // closed while none runs and none will
	wg     sync.WaitGroup
}

// New returns a supervisor of no engine yet.
func New(o Options) *Supervisor {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&o.Drain, 5*time.Second)
	set(&o.Terminate, 3*time.Second)
	set(&o.Poll, time.Second)
	set(&o.Check, 100*time.Millisecond)
	if o.Kills == nil {
		o.Kills = kernelKills
	}
	if o.Changed == nil {
		o.Changed = func() {}
	}
	s := &Supervisor{o: o, log: newLog(logLines), ended: make(chan struct{})}
	close(s.ended)
	s.status.Since = time.Now()
	// The engine is on this machine: no proxy has a say.
	s.client = &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{Proxy: nil, MaxIdleConns: 2, IdleConnTimeout: 5 * time.Second}}
	return s
}

// Status is how the engine is now.
func (s *Supervisor) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Log is what the engine has said, of all its starts.
func (s *Supervisor) Log() *Log { return s.log }

// Start starts the engine, or, while one is stopping, has it started after that. An engine that
// cannot be started at all is a crashed one; an error says that there is nothing to start.
func (s *Supervisor) Start(c Command) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errors.New("cannot start the engine: the program is closing")
	case s.proc == nil:
		s.launch(c)
	case s.proc.asked:
		s.next = &c
	default:
		return errors.New("cannot start the engine: it runs already; stop it first, or restart it")
	}
	return nil
}

// Restart stops the engine, if it runs, and starts it again.
func (s *Supervisor) Restart(c Command) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errors.New("cannot restart the engine: the program is closing")
	case s.proc == nil:
		s.launch(c)
	default:
		s.next = &c
		s.stop()
	}
	return nil
}

// Stop asks the engine to end: it drains, is terminated after Drain, and killed with its process
// group after Terminate more. Without an engine it does nothing but to forget a crash.
func (s *Supervisor) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = nil
	switch {
	case s.proc != nil:
		s.stop()
	case s.status.State == Crashed && !s.closed:
		s.become(Status{State: Stopped})
	}
}

// stop asks the process to end, once. The lock is held.
func (s *Supervisor) stop() {
	p := s.proc
	if p.asked {
		return
	}
	p.asked = true
	next := s.status
	next.State, next.Figures, next.Ill, next.Checking = Stopping, Figures{}, "", false
	s.become(next)
	p.unwatch()
	s.wg.Go(func() { s.drain(p) })
}

// become changes the state and tells of it. The lock is held.
func (s *Supervisor) become(next Status) {
	if next.State != s.status.State || next.Since.IsZero() {
		next.Since = time.Now()
	}
	s.status = next
	// Not under the lock: whoever is told may well ask for the status.
	s.wg.Go(s.o.Changed)
}

// Wait returns when no engine runs and none is about to be started.
func (s *Supervisor) Wait() {
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	<-ended
}

// Close stops the engine and returns when it and everything here has ended: within Drain and
// Terminate and a moment. No engine starts any more.
func (s *Supervisor) Close() {
	s.mu.Lock()
	s.closed, s.next = true, nil
	if s.proc != nil {
		s.stop()
	}
	s.mu.Unlock()
	s.Wait()
	s.wg.Wait()
	s.client.CloseIdleConnections()
}
