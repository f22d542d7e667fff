package otlp

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"velo/bench"
	"velo/bench/measure"
	"velo/bench/otlp/offset"
	"velo/bench/otlp/stream"
)

// Options are what a receiver is made with. The zero value is the usual one.
type Options struct {
	// Listen opens a listener; nil = net.Listen with "tcp".
	Listen func(address string) (net.Listener, error)
	// Clocks are the machine's; the zero value is what it has. Tests set them.
	Clocks Clocks
}

// Receiver is a receiver, its listeners and its state. New makes one.
type Receiver struct {
	clock     *clock
	hub       *hub
	admission *admission
	counters  counters
	listeners *listeners
	token     atomic.Pointer[string]
	reading   chan struct{} // gRPC messages that are being read
	pollers   pollers

	mu         sync.Mutex
	config     Config
	recordings []*Recording
	closed     bool

	views sync.Mutex
	cache stream.Cache

	end   chan struct{}
	ended chan struct{}
}

// New returns a receiver that is off: Configure turns it on.
func New(o Options) *Receiver {
	c := newClock(o.Clocks)
	r := &Receiver{clock: c, admission: newAdmission(c.now), hub: newHub(Config{}), reading: make(chan struct{}, 2),
		end: make(chan struct{}), ended: make(chan struct{})}
	r.admission.configure(Limits{})
	r.pollers = pollers{receiver: r}
	if o.Listen == nil {
		o.Listen = func(a string) (net.Listener, error) { return net.Listen("tcp", a) }
	}
	r.listeners = &listeners{now: c.now, listen: o.Listen, serve: r.serve, owner: portOwner}
	go r.watch()
	return r
}

// Configure says what is wanted. When it returns, what could be opened is open and what was not wanted
// any more is closed; an address that could not be had is in the state, and tried again until it can.
// An error is one of the configuration itself, and then nothing has changed.
func (r *Receiver) Configure(c Config) error {
	if err := c.Check(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		c.Enabled = false
	}
	r.config = c
	r.token.Store(&c.Token)
	r.admission.configure(c.Limits)
	r.hub.lock()
	r.hub.streams.Configure(c.Streams)
	r.hub.raw.resize(c.Raw)
	r.hub.mu.Unlock()
	r.listeners.set(&c)
	r.pollers.set(&c)
	return nil
}

// Configuration is what is wanted now.
func (r *Receiver) Configuration() Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.config
}

// Clear empties the views of these streams; without any, all views: streams, charts, raw records. Listeners,
// settings, counters, last data, last status, recordings and what is kept for them stay; a stream that runs
// appears again with its next record.
func (r *Receiver) Clear(streams ...stream.Key) {
	r.hub.lock()
	defer r.hub.mu.Unlock()
	if len(streams) > 0 {
		r.hub.streams.ClearOnly(streams)
		return
	}
	r.hub.clear()
}

// Close ends listeners, polling and recordings. Recordings are saved as they are.
func (r *Receiver) Close() {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		<-r.ended
		return
	}
	r.closed = true
	r.config.Enabled = false
	c := r.config
	r.listeners.set(&c)
	r.pollers.set(&c)
	recordings := append([]*Recording(nil), r.recordings...)
	close(r.end)
	r.mu.Unlock()
	<-r.ended
	for _, rec := range recordings {
		rec.finish(ByClose)
	}
}

// watch looks at clocks, listeners and bounds from time to time.
func (r *Receiver) watch() {
	defer close(r.ended)
	t := time.NewTicker(firstRetry)
	defer t.Stop()
	for n := 1; ; n++ {
		select {
		case <-r.end:
			return
		case <-t.C:
		}
		r.listeners.reconcile()
		if n%4 != 0 {
			continue
		}
		if c := r.Configuration(); c.Enabled && c.Certificate != nil {
			go c.Certificate.Look() // what is wrong with it is told before a sender finds out
		}
		if j, ok := r.clock.look(); ok {
			r.hub.lock()
			r.hub.jumps = append(r.hub.jumps[max(0, len(r.hub.jumps)-19):], j)
			r.hub.mu.Unlock()
			go r.listeners.probe()
		}
		now := r.clock.now()
		r.hub.lock()
		r.hub.streams.Sweep(now)
		r.hub.series.Sweep(now)
		r.hub.mu.Unlock()
	}
}

// serve runs a server on a listener until stop is called. stop lets requests that are under way end.
func (r *Receiver) serve(protocol string, l net.Listener, t *tls.Config) (stop func()) {
	limit := &capped{Listener: l, most: func() int { return r.admission.current().Connections }, refused: func() { r.counters.conns.Add(1) }}
	if protocol == "gRPC" {
		g := r.grpcServer(t)
		go func() { _ = g.Serve(limit) }()
		return func() {
			late := time.AfterFunc(2*time.Second, g.Stop)
			g.GracefulStop()
			late.Stop()
		}
	}
	h := r.httpServer()
	var from net.Listener = limit
	if t != nil {
		from = tls.NewListener(limit, t)
	}
	go func() { _ = h.Serve(from) }()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if h.Shutdown(ctx) != nil {
			_ = h.Close()
		}
	}
}

// Measured returns a sink for what the client of this process measures: requests that it sends with
// X-Session-Id are joined with the streams that the engine reports, and bound the clock offset. clock
// is that of the client's session.
func (r *Receiver) Measured(clock bench.Clock) bench.Sink {
	shift := clock.At(r.clock.zero) // session time of this receiver's zero
	wall := func(t time.Duration) int64 { return r.clock.wall(t - shift) }
	f := offset.NewFollower(func(session string, t0, first time.Duration) {
		r.hub.join.Client(r.clock.now(), session, wall(t0), wall(first))
	}, func(session string, ttft measure.Num) { r.hub.join.ClientTTFT(session, ttft) })
	return locked{r.hub, f}
}

// locked is a sink under a lock.
type locked struct {
	hub *hub
	to  bench.Sink
}

func (l locked) Append(e bench.Event) {
	l.hub.lock()
	defer l.hub.mu.Unlock()
	l.to.Append(e)
}

// textOf is bytes as text, without a copy: the bytes must not be written to any more.
func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
