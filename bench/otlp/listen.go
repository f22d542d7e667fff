package otlp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"
)

// quiet is the log of the HTTP servers: what they would say is in the counters.
var quiet = log.New(io.Discard, "", 0)

// Listener is one address that is wanted, and how it stands there.
type Listener struct {
	Protocol string // "gRPC" or "HTTP"
	Wanted   string // HOST:PORT as configured
	// Address is where it listens now; "" = it does not.
	Address string
	TLS     bool          // senders must speak TLS there
	Since   time.Duration // receiver's time from which it listens
	Error   string        // why it does not listen
	Owner   string        // who has the port: "otelcol (process 4711)"; "" = not known
	Advice  string        // the way out
	Retry   time.Duration // receiver's time of the next attempt
	Tries   int           // that failed in a row
}

// Times between attempts to listen.
const (
	firstRetry = 250 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// listeners keep what listens equal to what is wanted. All of it happens in reconcile, which is called
// when something changed and from time to time, and never waits.
type listeners struct {
	now    func() time.Duration
	listen func(address string) (net.Listener, error)
	serve  func(protocol string, l net.Listener, t *tls.Config) (stop func())
	owner  func(port string) string

	mu    sync.Mutex
	want  []Listener // Protocol and Wanted only
	tls   *tls.Config
	slots []*slot
}

// slot is one wanted address.
type slot struct {
	Listener
	tls  *tls.Config
	ln   *watched
	stop func()
}

// watched is a net.Listener that tells when it stopped accepting on its own.
type watched struct {
	net.Listener
	mu     sync.Mutex
	dead   error
	closed bool
	died   func()
}

func (w *watched) Accept() (net.Conn, error) {
	c, err := w.Listener.Accept()
	if err != nil {
		var temporary interface{ Temporary() bool }
		if errors.As(err, &temporary) && temporary.Temporary() {
			return c, err // too many open files, say: the servers try again
		}
		w.mu.Lock()
		tell := w.dead == nil && !w.closed
		if tell { // a server closes its listener after such an error: dead is what came first
			w.dead = err
		}
		w.mu.Unlock()
		if tell && w.died != nil {
			go w.died()
		}
	}
	return c, err
}

func (w *watched) Close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	return w.Listener.Close()
}

func (w *watched) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead
}

// set says what is wanted, and makes it so.
func (s *listeners) set(c *Config) {
	s.mu.Lock()
	s.want, s.tls = nil, c.tls()
	if c.Enabled {
		for _, a := range c.GRPC {
			s.want = append(s.want, Listener{Protocol: "gRPC", Wanted: a})
		}
		for _, a := range c.HTTP {
			s.want = append(s.want, Listener{Protocol: "HTTP", Wanted: a})
		}
	}
	for _, x := range s.slots { // somebody asked: what failed is tried again at once
		x.Retry, x.Tries = 0, 0
	}
	s.mu.Unlock()
	s.reconcile()
}

// reconcile closes what is not wanted, notices what died, and opens what is missing and due.
func (s *listeners) reconcile() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var kept []*slot
	for _, x := range s.slots {
		wanted := false
		for _, w := range s.want {
			wanted = wanted || w.Protocol == x.Protocol && w.Wanted == x.Wanted && x.tls == s.tls
		}
		if !wanted {
			x.close()
			continue
		}
		if x.ln != nil {
			if err := x.ln.failed(); err != nil {
				x.close()
				x.Error, x.Advice = fmt.Sprintf("cannot listen on %s any more: %v", address(x.Wanted), err), "It is tried again."
				x.Retry = now
			}
		}
		kept = append(kept, x)
	}
	s.slots = kept
	ordered := make([]*slot, 0, len(s.want))
	for _, w := range s.want {
		var x *slot
		for _, y := range s.slots {
			if y.Protocol == w.Protocol && y.Wanted == w.Wanted {
				x = y
			}
		}
		if x == nil {
			x = &slot{Listener: w, tls: s.tls}
		}
		ordered = append(ordered, x)
	}
	s.slots = ordered
	for _, x := range s.slots {
		if x.ln == nil && now >= x.Retry {
			s.open(x, now)
		}
	}
}

func (s *listeners) open(x *slot, now time.Duration) {
	l, err := s.listen(address(x.Wanted))
	if err != nil {
		x.Tries++
		x.Retry = now + min(firstRetry<<min(x.Tries-1, 10), lastRetry)
		x.Error, x.Advice = explain(address(x.Wanted), err)
		if !errors.Is(err, syscall.EADDRINUSE) {
			x.Owner = ""
		} else if s.owner != nil && (x.Tries == 1 || x.Tries%16 == 0) {
			go s.find(x, x.Wanted)
		}
		if x.Owner != "" {
			x.Advice = ownedBy(x.Owner)
		}
		return
	}
	w := &watched{Listener: l, died: s.reconcile}
	x.ln = w
	x.Address, x.TLS, x.Since = l.Addr().String(), x.tls != nil, now
	x.Error, x.Advice, x.Owner, x.Tries, x.Retry = "", "", "", 0, 0
	x.stop = s.serve(x.Protocol, w, x.tls)
}

// find looks for the process that has a port, which can take a while.
func (s *listeners) find(x *slot, wanted string) {
	_, port, _ := net.SplitHostPort(wanted)
	name := s.owner(port)
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.ln == nil && name != "" {
		x.Owner, x.Advice = name, ownedBy(name)
	}
}

func ownedBy(name string) string {
	return fmt.Sprintf("The port belongs to %s: end it, or choose another port here and in the emitter. It is tried again until then.", name)
}

// explain says why an address cannot be had, and what to do.
func explain(wanted string, err error) (problem, advice string) {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Sprintf("cannot listen on %s: the port is in use", wanted),
			"Another program has the port, perhaps a second Velo or a collector: end it, or choose another port here and in the emitter. It is tried again until then."
	case errors.Is(err, syscall.EACCES):
		return fmt.Sprintf("cannot listen on %s: this needs more rights", wanted), "Choose a port from 1024 on."
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Sprintf("cannot listen on %s: no network interface has this address", wanted),
			"It comes back when the network does; 127.0.0.1 is always there, 0.0.0.0 is all addresses."
	}
	return fmt.Sprintf("cannot listen on %s: %v", wanted, strings.TrimPrefix(err.Error(), "listen tcp ")), "It is tried again."
}

func (x *slot) close() {
	if x.ln == nil {
		return
	}
	_ = x.ln.Close() // the port is free from here on
	stop := x.stop
	x.ln, x.stop, x.Address, x.TLS, x.Since = nil, nil, "", false, 0
	go stop()
}

// probe connects to every listener: one whose interface is gone, after a sleep perhaps, cannot be
// reached any more although it has seen no error. It is opened anew.
func (s *listeners) probe() {
	s.mu.Lock()
	var addresses []string
	for _, x := range s.slots {
		if x.ln != nil {
			addresses = append(addresses, x.Address)
		}
	}
	s.mu.Unlock()
	for _, a := range addresses {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", reachable(a))
		cancel()
		if err == nil {
			_ = c.Close()
			continue
		}
		s.mu.Lock()
		for _, x := range s.slots {
			if x.ln != nil && x.Address == a {
				x.close()
				x.Error, x.Advice = fmt.Sprintf("cannot be reached on %s any more: %v", a, err), "It is tried again."
			}
		}
		s.mu.Unlock()
	}
	s.reconcile()
}

// reachable is an address at which a listener of all addresses can be reached.
func reachable(a string) string {
	host, port, err := net.SplitHostPort(a)
	if err == nil && (host == "::" || host == "0.0.0.0" || host == "") {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return a
}

// state is how each wanted address stands.
func (s *listeners) state() []Listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Listener, len(s.slots))
	for i, x := range s.slots {
		out[i] = x.Listener
	}
	return out
}

// URL is where a client on this machine sends to: http, https, grpc or grpcs; "" where nothing listens.
func (l *Listener) URL() string {
	if l.Address == "" {
		return ""
	}
	scheme := strings.ToLower(l.Protocol)
	if l.TLS {
		scheme += "s"
	}
	return scheme + "://" + reachable(l.Address)
}

// capped is a listener that takes only so many connections at a time and closes the rest.
type capped struct {
	net.Listener
	most    func() int
	refused func()

	mu   sync.Mutex
	open int
}

func (c *capped) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		full := c.open >= c.most()
		if !full {
			c.open++
		}
		c.mu.Unlock()
		if full {
			c.refused()
			_ = conn.Close()
			continue
		}
		return &counted{Conn: conn, release: func() {
			c.mu.Lock()
			c.open--
			c.mu.Unlock()
		}}, nil
	}
}

type counted struct {
	net.Conn
	once    sync.Once
	release func()
}

func (c *counted) Close() error {
	c.once.Do(c.release)
	return c.Conn.Close()
}
