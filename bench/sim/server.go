package sim

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Options say where the endpoint listens and what it does.
type Options struct {
	// Addr is HOST:PORT; "" means 127.0.0.1:0, a free port.
	Addr string
	// Scenario answers requests that choose none; the zero value means steady.
	Scenario Scenario
	// Log receives one JSON line a chunk (Write), when a stream ends; nil for none.
	Log io.Writer
	// Model is the id of the only model; "" means velo-sim.
	Model string
	// Keep holds the writes in memory for Truth.
	Keep bool
}

// keepLimit bounds the chunks that Truth holds; the oldest streams go first.
const keepLimit = 1 << 20

// Server is a running endpoint.
type Server struct {
	model    string
	scenario Scenario
	keep     bool
	listener net.Listener
	began    time.Time
	pacers   []*pacer
	prefixes prefixCache
	log      *logger
	working  sync.WaitGroup
	closing  chan struct{} // closed by Close

	mu       sync.Mutex
	closed   bool
	conns    map[*conn]struct{}
	accepted int64
	streams  int64 // requests read
	open     map[*stream]struct{}
	kept     []*stream
	keptSize int            // chunks in kept
	served   map[string]int // requests by scenario
}

// Start listens and serves in the background. It returns once the port is open.
func Start(o Options) (*Server, error) {
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	if o.Model == "" {
		o.Model = "velo-sim"
	}
	if o.Scenario == (Scenario{}) {
		o.Scenario, _ = builtin("steady")
	}
	if err := o.Scenario.Validate(); err != nil {
		return nil, fmt.Errorf("cannot start the endpoint: scenario %q: %w", o.Scenario.Name, err)
	}
	listener, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("cannot start the endpoint: %w", err)
	}
	s := &Server{
		model: o.Model, scenario: o.Scenario, keep: o.Keep, listener: listener, began: time.Now(), closing: make(chan struct{}),
		conns: map[*conn]struct{}{}, open: map[*stream]struct{}{}, served: map[string]int{},
	}
	for range max(1, min(8, runtime.GOMAXPROCS(0)/2)) {
		p, err := newPacer(s.clock)
		if err != nil {
			for _, p := range s.pacers {
				p.bell.close()
			}
			listener.Close()
			return nil, fmt.Errorf("cannot start the endpoint: %w", err)
		}
		s.pacers = append(s.pacers, p)
	}
	vocabulary() // not during the first request
	if o.Log != nil {
		s.log = newLogger(o.Log)
	}
	for _, p := range s.pacers {
		s.working.Go(p.run)
	}
	s.working.Go(s.accept)
	return s, nil
}

// clock is the monotonic time of the server in ns.
func (s *Server) clock() int64 { return int64(time.Since(s.began)) }

// URL is the base URL of the API, http://HOST:PORT/v1.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/v1" }

// Close stops listening, closes all connections, streams under way included,
// and writes what is left of the log. It returns the first error of the log.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.closing)
	s.listener.Close()
	for c := range s.conns {
		c.net.Close() // its reader ends the stream
	}
	s.mu.Unlock()
	for _, p := range s.pacers {
		p.stop()
	}
	s.working.Wait()
	if s.log != nil {
		return s.log.close()
	}
	return nil
}

// Truth gives the writes of all streams, those under way included, in order of
// stream and chunk. Whatever a client has received is in it. It is empty
// without Options.Keep. At most 2^20 chunks of ended streams are held; beyond
// that the oldest streams are dropped.
func (s *Server) Truth() []Write {
	s.mu.Lock()
	list := slices.Clone(s.kept)
	if s.keep {
		for o := range s.open {
			list = append(list, o)
		}
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b *stream) int { return cmp.Compare(a.number, b.number) })
	var writes []Write
	for _, o := range list {
		o.mu.Lock()
		writes = o.writes(writes)
		o.mu.Unlock()
	}
	return writes
}

// retire moves a stream that ended to the log and to what is kept.
func (s *Server) retire(o *stream) {
	if s.log != nil {
		s.log.put(o)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, o)
	if !s.keep {
		return
	}
	s.kept = append(s.kept, o)
	s.keptSize += len(o.stamps)
	for s.keptSize > keepLimit && len(s.kept) > 1 {
		s.keptSize -= len(s.kept[0].stamps)
		s.kept[0] = nil
		s.kept = s.kept[1:]
	}
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors, say: some will come back
			time.Sleep(10 * time.Millisecond)
			continue
		}
		s.mu.Lock()
		s.accepted++
		k, err := newConn(s.accepted, c)
		if err != nil || s.closed {
			s.mu.Unlock()
			c.Close()
			continue
		}
		s.conns[k] = struct{}{}
		s.working.Go(func() {
			s.serve(k)
			k.net.Close()
			s.mu.Lock()
			delete(s.conns, k)
			s.mu.Unlock()
		})
		s.mu.Unlock()
	}
}

// count numbers a request among those of its scenario, from 0. Scenarios made
// up by requests are counted one by one only as far as the table goes.
func (s *Server) count(key string) int {
	const most = 4096
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.served[key]; !known && len(s.served) >= most {
		key = ""
	}
	n := s.served[key]
	s.served[key]++
	return n
}
