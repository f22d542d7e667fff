package otlp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// ports is a network of its own: listeners by address, some of them other programs'.
type ports struct {
	mu    sync.Mutex
	ours  map[string]*pipeListener
	taken map[string]bool
}

type pipeListener struct {
	net     *ports
	address string
	conns   chan net.Conn
	broken  chan struct{}
	closed  chan struct{}
	once    sync.Once
}

func (p *ports) listen(address string) (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[address] || p.ours[address] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
	}
	l := &pipeListener{net: p, address: address, conns: make(chan net.Conn), broken: make(chan struct{}), closed: make(chan struct{})}
	p.ours[address] = l
	return l, nil
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.broken:
		return nil, errors.New("the network is gone")
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.net.mu.Lock()
		if l.net.ours[l.address] == l {
			delete(l.net.ours, l.address)
		}
		l.net.mu.Unlock()
	})
	return nil
}

func (l *pipeListener) Addr() net.Addr { a, _ := net.ResolveTCPAddr("tcp", l.address); return a }

func (p *ports) dial(_ context.Context, _, address string) (net.Conn, error) {
	p.mu.Lock()
	l := p.ours[address]
	p.mu.Unlock()
	if l == nil {
		return nil, syscall.ECONNREFUSED
	}
	a, b := net.Pipe()
	select {
	case l.conns <- b:
		return a, nil
	case <-l.closed:
		return nil, syscall.ECONNREFUSED
	}
}

// world is what the receiver's state has to be equal to.
type world struct {
	enabled    bool
	http, grpc string
	taken      map[string]bool
	data       bool
	logs       uint64
	visible    map[string]bool
}

func (w *world) config() Config {
	return Config{Enabled: w.enabled, GRPC: []string{w.grpc}, HTTP: []string{w.http}}
}

// TestTenThousandCycles: at random, views are cleared, the receiver is disabled, enabled and moved to
// other ports, other programs take and free ports, listeners break, senders connect anew. After each
// step the state says what is so.
func TestTenThousandCycles(t *testing.T) {
	const cycles = 10_000
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	p := &ports{ours: map[string]*pipeListener{}, taken: map[string]bool{}}
	r := New(Options{Listen: p.listen})
	defer r.Close()
	var skew atomic.Int64
	r.listeners.mu.Lock()
	r.listeners.owner = func(string) string { return "" }
	r.listeners.now = func() time.Duration { return r.clock.now() + time.Duration(skew.Load()) }
	r.listeners.mu.Unlock()
	client := &http.Client{Transport: &http.Transport{DialContext: p.dial, DisableKeepAlives: true}}
	w := &world{http: "127.0.0.1:4318", grpc: "127.0.0.1:4317", taken: p.taken, visible: map[string]bool{}}
	set := func() {
		if err := r.Configure(w.config()); err != nil {
			t.Fatal(err)
		}
	}
	other := func() string { return fmt.Sprintf("127.0.0.1:%d", 4000+random.IntN(6)) }
	for n := range cycles {
		what := ""
		switch k := random.IntN(9); k {
		case 0:
			what = "clear"
			r.Clear()
			clear(w.visible)
		case 1:
			what, w.enabled = "disable", false
			set()
		case 2, 3:
			what, w.enabled = "enable", true
			set()
		case 4:
			what = "move"
			w.http, w.grpc = other(), other()
			if w.http == w.grpc {
				w.http = "127.0.0.1:4318"
			}
			set()
		case 5:
			a := []string{w.http, w.grpc, other()}[random.IntN(3)]
			what = "take " + a
			p.mu.Lock()
			if p.ours[a] == nil {
				p.taken[a] = true
			}
			p.mu.Unlock()
		case 6:
			a := []string{w.http, w.grpc, other()}[random.IntN(3)]
			what = "free " + a
			p.mu.Lock()
			delete(p.taken, a)
			p.mu.Unlock()
		case 7:
			what = "break " + w.http
			p.mu.Lock()
			l := p.ours[w.http]
			p.mu.Unlock()
			if l != nil {
				close(l.broken)
				<-l.closed // the receiver notices by itself and gives it up
			}
		case 8:
			what = "send"
			session := fmt.Sprintf("s%d", random.IntN(5))
			body := logsOf(record(int64(n+1), "stream_delta", session, "g", n, `{"choices":[{"delta":{"content":"x"}}]}`))
			a, err := client.Post("http://"+w.http+"/v1/logs", "application/json", strings.NewReader(body))
			if listens := w.enabled && !p.has(w.http); (err == nil) != listens {
				t.Fatalf("cycle %d: sending to %s: %v, listening %v", n, w.http, err, listens)
			}
			if err == nil {
				_, _ = io.Copy(io.Discard, a.Body)
				a.Body.Close()
				if a.StatusCode != 200 {
					t.Fatalf("cycle %d: status %d", n, a.StatusCode)
				}
				w.data, w.visible[session] = true, true
				w.logs++
			}
		}
		skew.Add(int64(10 * time.Second)) // whatever waits for its next attempt is due
		r.listeners.reconcile()
		if problem := w.compare(r, p); problem != "" {
			t.Fatalf("cycle %d, after %s: %s", n, what, problem)
		}
	}
	w.enabled = true
	p.mu.Lock()
	clear(p.taken)
	p.mu.Unlock()
	set()
	if problem := w.compare(r, p); problem != "" || !r.State().Listening() {
		t.Fatalf("at the end: %s", problem)
	}
}

// has tells whether another program has a port.
func (p *ports) has(a string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken[a]
}

func (w *world) compare(r *Receiver, p *ports) string {
	s := r.State()
	if s.Wanted != w.enabled || s.Data != w.data || s.Counters.Logs != w.logs {
		return fmt.Sprintf("wanted %v, data %v, %d logs; it should be %v, %v, %d", s.Wanted, s.Data, s.Counters.Logs, w.enabled, w.data, w.logs)
	}
	want := map[string]bool{}
	if w.enabled {
		want[w.http], want[w.grpc] = true, true
	}
	if len(s.Listeners) != len(want) {
		return fmt.Sprintf("%d listeners instead of %d", len(s.Listeners), len(want))
	}
	open := map[string]bool{}
	for _, l := range s.Listeners {
		switch free := !p.has(l.Wanted); {
		case !want[l.Wanted]:
			return l.Wanted + " is not wanted"
		case free && (l.Address != l.Wanted || l.Error != ""):
			return fmt.Sprintf("%s is free, and the state says %+v", l.Wanted, l)
		case !free && (l.Address != "" || !strings.Contains(l.Error, "in use") || l.Advice == ""):
			return fmt.Sprintf("%s is taken, and the state says %+v", l.Wanted, l)
		case free:
			open[l.Wanted] = true
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for a := range p.ours {
		if !open[a] {
			return a + " is still open"
		}
	}
	if len(p.ours) != len(open) {
		return "a listener that the state speaks of is not there"
	}
	view := r.Snapshot(Query{})
	var shown []string
	for _, x := range view.Streams {
		shown = append(shown, x.Conversation)
	}
	slices.Sort(shown)
	if len(shown) != len(w.visible) || slices.ContainsFunc(shown, func(x string) bool { return !w.visible[x] }) {
		return fmt.Sprintf("streams %v are shown instead of %v", shown, w.visible)
	}
	return ""
}

// TestPortsOfThisMachine does the same things once with real ports.
func TestPortsOfThisMachine(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer other.Close()
	address := other.Addr().String()
	r := New(Options{})
	defer r.Close()
	_, port, _ := net.SplitHostPort(address)
	check(t, r.Configure(Config{Enabled: true, HTTP: []string{":" + port}}))
	l := r.State().Listeners[0]
	if l.Address != "" || !strings.Contains(l.Error, address+": the port is in use") || l.Advice == "" {
		t.Fatalf("the port is in use, and the state says %+v", l)
	}
	self := fmt.Sprintf("(process %d)", os.Getpid())
	waitFor(t, "the owner of the port", func() bool { return strings.Contains(r.State().Listeners[0].Owner, self) })
	tries := r.State().Listeners[0].Tries
	waitFor(t, "the next tries", func() bool { return r.State().Listeners[0].Tries > tries+1 })
	if l := r.State().Listeners[0]; !strings.Contains(l.Advice, self) || l.Owner == "" {
		t.Errorf("after it was tried again the advice does not name the owner: %s", l.Advice)
	}
	other.Close()
	waitFor(t, "the port once it is free", func() bool { return r.State().Listening() })
	for range 50 {
		check(t, r.Configure(Config{HTTP: []string{address}}))
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			t.Fatal("it listens although it was disabled")
		}
		check(t, r.Configure(Config{Enabled: true, HTTP: []string{address}}))
		if status, _, _ := post(t, "http://"+address+"/v1/logs", "application/json", []byte("{}"), "Connection", "close"); status != 200 {
			t.Fatal(status)
		}
	}
	r.listeners.probe()
	if s := r.State(); !s.Listening() {
		t.Errorf("a look at sound listeners closed them: %+v", s.Listeners)
	}
}

// TestLoopbackUnlessTold: no host means this machine only.
func TestLoopbackUnlessTold(t *testing.T) {
	r := started(t, Config{Enabled: true, GRPC: []string{":0"}, HTTP: []string{"localhost:0"}})
	for _, l := range r.State().Listeners {
		if !strings.HasPrefix(l.Address, "127.0.0.1:") {
			t.Errorf("%s listens on %s", l.Wanted, l.Address)
		}
	}
}

func TestConfigurationsAreChecked(t *testing.T) {
	r := started(t, loopback())
	for _, c := range []Config{
		{HTTP: []string{"4318"}}, {HTTP: []string{"127.0.0.1:99999"}}, {GRPC: []string{"example.com:4317"}},
		{HTTP: []string{"127.0.0.1:4318"}, GRPC: []string{":4318"}}, {Poll: []Poll{{URL: "127.0.0.1:8000/metrics"}}},
		{Poll: []Poll{{URL: "http://a/metrics", Every: 61 * time.Second}}}, {Poll: []Poll{{URL: "http://a/metrics", Every: time.Millisecond}}},
		{Poll: []Poll{{URL: "http://a/metrics", Every: -time.Second}}}, {Poll: []Poll{{URL: "http://a/metrics", Token: "a\nb"}}},
	} {
		if err := r.Configure(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	if s := r.State(); !s.Wanted || !s.Listening() {
		t.Error("a configuration that was refused changed something")
	}
}

// TestClockJumps: the wall clock is set, or the machine sleeps; listeners are looked at and the jump is
// told.
func TestClockJumps(t *testing.T) {
	c := newClock(Clocks{})
	if j, ok := c.look(); ok {
		t.Errorf("a jump out of nothing: %+v", j)
	}
	c.stray -= time.Hour // as if the wall clock had been set an hour ahead since
	if j, ok := c.look(); !ok || j.Set < 59*time.Minute {
		t.Errorf("not noticed: %+v", j)
	}
	before := c.now()
	c.first -= time.Minute // as if the machine had slept a minute
	j, ok := c.look()
	if !ok || j.Slept < 59*time.Second || c.now()-before < 59*time.Second {
		t.Errorf("not noticed: %+v, the clock went on by %v", j, c.now()-before)
	}
}
