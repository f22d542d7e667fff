package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	"velo/bench"
)

// trace is what net/http did to get a connection.
type trace struct {
	got    bool
	reused bool
	remote string
	phases
}

// newTransport makes the net/http transport for what this package does not carry itself.
func (c *Client) newTransport() *http.Transport {
	t := &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			ctx, cancel := c.dialer.limit(ctx)
			defer cancel()
			t, _, err := c.dialer.tcp(ctx, host, port)
			if err != nil {
				return nil, because(ctx, err)
			}
			return t, nil
		},
		TLSClientConfig:     c.tlsConfig(),
		TLSHandshakeTimeout: c.o.Timeout.Connect,
		DisableCompression:  true,
		DisableKeepAlives:   c.o.NoKeepAlive,
		MaxIdleConns:        0,
		MaxIdleConnsPerHost: max(2, c.o.Connections),
		IdleConnTimeout:     90 * time.Second,
		Protocols:           new(http.Protocols),
	}
	if c.proxy != nil {
		t.Proxy = http.ProxyURL(c.proxy)
	}
	if c.o.HTTP2 {
		t.Protocols.SetHTTP2(true)
		if c.base.tls {
			t.Protocols.SetHTTP1(true) // for a server that does not offer h2
		} else {
			t.Protocols.SetUnencryptedHTTP2(true)
		}
	} else {
		t.Protocols.SetHTTP1(true)
	}
	return t
}

// fetch sends a request through net/http and follows its answer to the queue. It returns at once.
func (c *Client) fetch(ctx context.Context, q *queue, address, session string, body []byte) {
	var mu sync.Mutex // net/http calls the trace from goroutines of its own
	var dns, connect, handshake time.Duration
	now := c.o.Clock.Now
	tr := trace{phases: phases{bench.Unset, bench.Unset, bench.Unset}}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart:          func(httptrace.DNSStartInfo) { mu.Lock(); dns = now(); mu.Unlock() },
		DNSDone:           func(httptrace.DNSDoneInfo) { mu.Lock(); tr.dns = now() - dns; mu.Unlock() },
		ConnectStart:      func(string, string) { mu.Lock(); connect = now(); mu.Unlock() },
		ConnectDone:       func(string, string, error) { mu.Lock(); tr.connect = now() - connect; mu.Unlock() },
		TLSHandshakeStart: func() { mu.Lock(); handshake = now(); mu.Unlock() },
		TLSHandshakeDone:  func(tls.ConnectionState, error) { mu.Lock(); tr.tls = now() - handshake; mu.Unlock() },
		GotConn: func(info httptrace.GotConnInfo) {
			mu.Lock()
			defer mu.Unlock()
			tr.got, tr.reused, tr.remote = true, info.Reused, info.Conn.RemoteAddr().String()
			if info.Reused {
				tr.phases = phases{bench.Unset, bench.Unset, bench.Unset}
			}
			q.mu.Lock()
			q.trace = tr
			q.mu.Unlock()
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) { q.written(now(), info.Err) },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		q.fail(err, now())
		return
	}
	req.GetBody = nil // without it net/http cannot send the request again behind our back
	req.Header = c.fields.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("X-Session-Id", session)
	go c.receive(q, req)
}

// receive reads the answer to the queue, stamping what each read of the body returns.
func (c *Client) receive(q *queue, req *http.Request) {
	now := c.o.Clock.Now
	resp, err := c.web.RoundTrip(req)
	if err != nil {
		q.fail(because(req.Context(), err), now())
		return
	}
	defer resp.Body.Close()
	h := &head{
		status: resp.StatusCode, length: resp.ContentLength,
		contentType: resp.Header.Get("Content-Type"), server: resp.Header.Get("Server"),
		location: resp.Header.Get("Location"), retryAfter: resp.Header.Get("Retry-After"),
		challenge: resp.Header.Get("WWW-Authenticate"),
	}
	if e := strings.ToLower(resp.Header.Get("Content-Encoding")); e != "identity" {
		h.encoding = e
	}
	q.answered(h, now())
	b := make([]byte, 16<<10)
	for read := int32(1); ; read++ {
		n, err := resp.Body.Read(b)
		at := now()
		if n > 0 {
			q.push(b[:n], read, 0, at)
			q.waitForRoom()
		}
		if err != nil {
			if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				err = io.EOF
			}
			q.fail(err, at)
			return
		}
	}
}
