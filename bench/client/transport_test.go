package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"velo/bench"
)

// streamer answers through net/http.
func streamer(pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, p := range pieces {
			_, _ = io.WriteString(w, p)
			w.(http.Flusher).Flush()
		}
		if len(pieces) == 1 { // hangs
			<-r.Context().Done()
		}
	}
}

// h2 starts a server that speaks HTTP/2, over TLS or with prior knowledge.
func h2(t *testing.T, secure bool, h http.HandlerFunc) (url string, pool *x509.CertPool) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("the request came as %s", r.Proto)
		}
		h(w, r)
	}))
	s.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
	if secure {
		s.EnableHTTP2 = true
		s.StartTLS()
	} else {
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
	}
	t.Cleanup(s.Close)
	if secure {
		pool = x509.NewCertPool()
		pool.AddCert(s.Certificate())
	}
	return s.URL, pool
}

func TestHTTP2(t *testing.T) {
	for _, secure := range []bool{true, false} {
		url, pool := h2(t, secure, streamer(roleEvent, content("Hel"), content("lo"), finishEvent, usageEvent, doneEvent))
		c := newClient(t, url, func(o *Options) { o.HTTP2, o.RootCAs = true, pool })
		for i := range 2 {
			res, l, _ := do(t, t.Context(), c)
			k := l.conn()
			if res.End.Status != bench.OK || res.Answer != "Hello" || res.End.Stamp != bench.UserStamp || k.Status != 200 || k.Reused != (i > 0) || (k.TLS == bench.Unset) != (i > 0 || !secure) {
				t.Errorf("secure %v: got %+v, %+v", secure, res.End, k)
			}
		}
		url, pool = h2(t, secure, streamer(content("partial")))
		c = newClient(t, url, func(o *Options) { o.HTTP2, o.RootCAs = true, pool })
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		if res, _, _ := do(t, ctx, c); res.End.Status != bench.Stopped || res.Answer != "partial" {
			t.Errorf("secure %v: got %+v", secure, res.End)
		}
		c = newClient(t, url, func(o *Options) {
			o.HTTP2, o.RootCAs, o.Timeout.Idle = true, pool, 100*time.Millisecond
		})
		if res, _, _ := do(t, t.Context(), c); res.End.Class != "timeout-idle" || res.Answer != "partial" {
			t.Errorf("secure %v: got %+v", secure, res.End)
		}
		c = newClient(t, url, func(o *Options) { o.HTTP2 = true })
		if res, _, _ := do(t, contextOf(t, 200*time.Millisecond), c); secure && res.End.Class != "tls" {
			t.Errorf("got %+v", res.End)
		}
	}
	c := newClient(t, "http://127.0.0.1:1", func(o *Options) { o.HTTP2 = true })
	if res, _, _ := do(t, t.Context(), c); res.End.Class != "connect" || !strings.Contains(res.End.Error, "nothing listens there") {
		t.Errorf("got %+v", res.End)
	}
	c = newClient(t, "http://"+fullListener(t), func(o *Options) { o.HTTP2, o.Timeout.Connect = true, 50*time.Millisecond })
	if res, _, _ := do(t, t.Context(), c); res.End.Class != "timeout-connect" {
		t.Errorf("got %+v", res.End)
	}
}

func contextOf(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// TestALPN: HTTP/1.1 only is offered unless HTTP/2 was asked for.
func TestALPN(t *testing.T) {
	var offered atomic.Value
	s := httptest.NewUnstartedServer(streamer(content("x"), doneEvent))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	s.TLS.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		offered.Store(strings.Join(h.SupportedProtos, ","))
		return nil, nil
	}
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	res, _, _ := do(t, t.Context(), newClient(t, s.URL, func(o *Options) { o.RootCAs = pool }))
	if res.End.Status != bench.OK || offered.Load() != "http/1.1" {
		t.Errorf("offered %v, got %+v", offered.Load(), res.End)
	}
}

// TestProxy: a proxy of the environment is used, with user stamps.
func TestProxy(t *testing.T) {
	var asked atomic.Value
	proxy := serve(t, func(c net.Conn, r request) bool {
		asked.Store(r.Method + " " + r.RequestURI)
		return says(streamHead+framed(content("x"), doneEvent))(c, r)
	})
	t.Setenv("HTTP_PROXY", proxy)
	t.Setenv("NO_PROXY", "direct.example")
	c := newClient(t, "http://model.example:8000")
	res, l, _ := do(t, t.Context(), c)
	if res.Answer != "x" || res.End.Stamp != bench.UserStamp || asked.Load() != "POST http://model.example:8000/v1/chat/completions" || !strings.Contains(proxy, l.conn().Remote) {
		t.Errorf("asked %v, got %+v, %+v", asked.Load(), res.End, l.conn())
	}
	if c := newClient(t, "http://direct.example:8000"); !c.measuresItself() {
		t.Error("NO_PROXY is not heeded")
	}
	t.Setenv("REQUEST_METHOD", "GET") // as in CGI, where HTTP_PROXY is somebody else's header
	if _, err := New(Options{BaseURL: "http://model.example:8000"}); err == nil || !strings.Contains(err.Error(), "correct HTTP_PROXY") {
		t.Errorf("got %v", err)
	}
}

// TestNames: a name is looked up once, and the address that worked is used from then on.
func TestNames(t *testing.T) {
	url := serve(t, says(streamHead+framed(content("x"), doneEvent)))
	c := newClient(t, strings.Replace(url, "127.0.0.1", "model.example", 1), func(o *Options) { o.NoKeepAlive = true })
	lookups := 0
	c.dialer.lookup = func(context.Context, string) ([]netip.Addr, error) {
		lookups++
		return []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1")}, nil
	}
	for i := range 3 {
		res, l, _ := do(t, t.Context(), c)
		k := l.conn()
		if res.Answer != "x" || (k.DNS == bench.Unset) != (i > 0) || !strings.HasPrefix(k.Remote, "127.0.0.1:") {
			t.Errorf("got %+v, %+v", res.End, k)
		}
	}
	if first := c.dialer.known["model.example"].first; lookups != 1 || first.String() != "127.0.0.1" {
		t.Errorf("%d lookups, first %v", lookups, first)
	}
	// Many at once wait for the one lookup; one that is stopped does not take the others along.
	c.dialer.forget("model.example", nil)
	begun := make(chan struct{}, 100)
	c.dialer.lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
		begun <- struct{}{}
		if len(begun) == 1 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	k := chat(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan Result, 9)
	go func() { results <- k.Do(ctx, &bench.Request{}, &log{}) }()
	for len(begun) == 0 {
		time.Sleep(time.Millisecond)
	}
	for range 8 {
		go func() { results <- k.Do(t.Context(), &bench.Request{}, &log{}) }()
	}
	time.Sleep(10 * time.Millisecond)
	cancel()
	count := map[bench.Status]int{}
	for range 9 {
		count[(<-results).End.Status]++
	}
	if count[bench.Stopped] != 1 || count[bench.OK] != 8 || len(begun) != 2 {
		t.Errorf("got %v, %d lookups", count, len(begun))
	}
}

// TestLocalhost: 127.0.0.1 is tried before ::1.
func TestLocalhost(t *testing.T) {
	d := newDialer(Options{Clock: bench.StartClock()})
	d.lookup = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1")}, nil
	}
	if addrs, _, err := d.resolve(t.Context(), "LocalHost"); err != nil || addrs[0].String() != "127.0.0.1" {
		t.Errorf("got %v, %v", addrs, err)
	}
	if addrs, _, _ := d.resolve(t.Context(), "other"); addrs[0].String() != "::1" {
		t.Errorf("got %v", addrs)
	}
}
