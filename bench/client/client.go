// Package client talks to an OpenAI-compatible endpoint and writes down what happens: it sends chat
// completions, follows their streams, and turns them into the raw events of package bench.
//
// What is measured travels over connections of its own, not through net/http: a thread does nothing but
// receive, stamp and queue, so that a token's time is that of the system call that brought it and, on
// Linux, that of the kernel that received it (SO_TIMESTAMPING). Which
// bytes came with which read is then exact, because no buffer of somebody else's lies between. The
// goroutine that called Do takes HTTP apart, cuts events and reads JSON, as far behind as it likes.
//
// HTTP/2, and proxies that the environment asks for, go through net/http and have the time at which
// the body's read returned. So do the questions that are not measured: models, health, tokens.
package client

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http/httpproxy"

	"velo/bench"
)

// Options say how to reach an endpoint.
type Options struct {
	// BaseURL is the endpoint, with or without its /v1. New says what is accepted.
	BaseURL string
	// Key is sent as a bearer token; empty sends none.
	Key string
	// Timeout limits each request. Connect covers name, connection and TLS; FirstByte runs from the
	// moment the connection is there to the first byte of the answer; Idle is the time between two
	// reads after that; Total runs from t0. Zero is no limit.
	Timeout bench.Timeout
	// Clock is the time base of the session.
	Clock bench.Clock
	// Connections is how many streams there are at once. That many idle connections are kept; it
	// never limits how many are opened.
	Connections int
	// HTTP2 speaks HTTP/2: by ALPN over TLS, with prior knowledge over plain TCP. Without it only
	// HTTP/1.1 is offered, one stream a connection, which is what kernel stamps need.
	HTTP2 bool
	// NoKeepAlive opens a connection for each request.
	NoKeepAlive bool
	// ThinkTags moves <think>…</think> within the content to the reasoning channel.
	ThinkTags bool
	// Header is sent with every request.
	Header http.Header
	// RootCAs are the authorities to trust; nil means the system's.
	RootCAs *x509.CertPool
	// Stamps is "auto" (kernel stamps where there are any; also "") or "user".
	Stamps string
}

// A Client sends requests to one endpoint. It may be used by any number of goroutines.
type Client struct {
	o      Options
	base   *endpoint
	dialer *dialer
	pool   *pool
	watch  *watch
	proxy  *url.URL
	web    *http.Transport // what is not measured, and what needs a proxy or HTTP/2
	header []byte          // header lines of every request but those of the request itself
	fields http.Header     // the same, for net/http
	tokens atomic.Pointer[tokenizer]

	readers  atomic.Int64
	inFlight atomic.Int64
}

// New makes a client. Nothing is sent yet. It fails when the base URL, the key or a header cannot be
// used, and when the process may not open as many files as Connections needs.
func New(o Options) (*Client, error) {
	base, err := parseBase(o.BaseURL)
	if err != nil {
		return nil, err
	}
	switch o.Stamps {
	case "", "auto", "user":
	default:
		return nil, fmt.Errorf("cannot use stamps %q: write \"auto\" or \"user\"", o.Stamps)
	}
	if o.Clock == (bench.Clock{}) {
		o.Clock = bench.StartClock()
	}
	if o.Connections < 1 {
		o.Connections = 1
	}
	if err := allowFiles(o.Connections); err != nil {
		return nil, err
	}
	o.Key = strings.TrimSpace(o.Key)
	if !httpguts.ValidHeaderFieldValue(o.Key) {
		return nil, fmt.Errorf("cannot use the API key: it has a line break or another control character in it; copy it again")
	}
	c := &Client{o: o, base: base}
	if err := c.fillHeader(); err != nil {
		return nil, err
	}
	c.proxy, err = httpproxy.FromEnvironment().ProxyFunc()(base.url)
	if err != nil {
		return nil, fmt.Errorf("cannot use the proxy of the environment: %v; correct HTTP_PROXY or HTTPS_PROXY, or add the host to NO_PROXY", err)
	}
	c.dialer = newDialer(o)
	c.pool = newPool(o.Connections)
	c.watch = newWatch(o.Clock)
	c.web = c.newTransport()
	if c.measuresItself() && o.Stamps != "user" {
		switchOn()
	}
	return c, nil
}

// measuresItself tells whether measured requests use this package's own connections.
func (c *Client) measuresItself() bool { return !c.o.HTTP2 && c.proxy == nil }

// BaseURL is the endpoint as it is used: with scheme and /v1, without user info and query.
func (c *Client) BaseURL() string { return c.base.String() }

// Close closes the idle connections. Requests that still run go on; their connections are closed when
// they end.
func (c *Client) Close() {
	c.pool.close()
	c.web.CloseIdleConnections()
}

// Readers is the number of threads and goroutines that receive for streams just now: one thread for all
// plain connections, or a few on a large machine, and a goroutine for each other stream.
func (c *Client) Readers() int {
	alone := int(c.readers.Load())
	if c.InFlight() > alone {
		return alone + pollers()
	}
	return alone
}

// InFlight is the number of requests between t0 and their end.
func (c *Client) InFlight() int { return int(c.inFlight.Load()) }

// Offset is the real-time clock minus the monotonic time of the session, and how far off that can be:
// half the time that taking it took. The offset at the session's beginning is its anchor,
// Clock.Anchor().UnixNano().
func (c *Client) Offset() (offset, halfWidth time.Duration) {
	s := c.watch.look()
	return s.offset, s.half
}

// agent is the User-Agent.
var agent = func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := strings.TrimPrefix(info.Main.Version, "v"); v != "" && v != "(devel)" {
			return "velo/" + v
		}
	}
	return "velo/devel"
}()

// own are the header fields that each request sets itself.
var own = map[string]bool{
	"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Connection": true,
	"Accept-Encoding": true, "X-Session-Id": true, "Trailer": true, "Upgrade": true, "Te": true,
}

// fillHeader puts together the header fields that all requests share.
func (c *Client) fillHeader() error {
	h := http.Header{"User-Agent": {agent}, "Accept": {"text/event-stream, application/json"}}
	if c.o.Key != "" {
		h.Set("Authorization", "Bearer "+c.o.Key)
	} else if c.base.authorization != "" {
		h.Set("Authorization", c.base.authorization)
	}
	for name, values := range c.o.Header {
		name = http.CanonicalHeaderKey(name)
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("cannot send the header %q: that is not a header name", name)
		}
		if own[name] {
			return fmt.Errorf("cannot send the header %s: each request sets it itself; leave it out", name)
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return fmt.Errorf("cannot send the header %s: its value has a line break or another control character in it", name)
			}
		}
		h[name] = values
	}
	var b strings.Builder
	_ = h.Write(&b)
	c.fields, c.header = h, []byte(b.String())
	return nil
}

// tlsConfig is what TLS connections are made with.
func (c *Client) tlsConfig() *tls.Config { return &tls.Config{RootCAs: c.o.RootCAs} }
