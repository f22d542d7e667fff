package client

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"velo/bench"
)

// A dialer makes connections. A name is looked up once; afterwards the address that worked is used,
// so that no request pays for a resolver, or for an address family on which nobody listens.
type dialer struct {
	clock   bench.Clock
	timeout time.Duration // for everything up to the end of the TLS handshake
	kernel  bool          // ask for kernel stamps
	lookup  func(ctx context.Context, host string) ([]netip.Addr, error)

	mu    sync.Mutex
	known map[string]*names
}

// names are the addresses of a host.
type names struct {
	ready chan struct{} // closed when the rest is there
	addrs []netip.Addr
	err   error
	dns   time.Duration
	first netip.Addr // that worked; guarded by the dialer's lock
}

// phases are what making a connection took; bench.Unset where there was no such phase.
type phases struct{ dns, connect, tls time.Duration }

func newDialer(o Options) *dialer {
	return &dialer{
		clock: o.Clock, timeout: o.Timeout.Connect, kernel: o.Stamps != "user",
		known: map[string]*names{},
		lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
	}
}

// resolve returns the addresses of a host, the best first. The first to ask looks the name up, the
// others wait for it; dns is the time this took the caller.
func (d *dialer) resolve(ctx context.Context, host string) (addrs []netip.Addr, dns time.Duration, err error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, bench.Unset, nil
	}
	start := d.clock.Now()
	for {
		d.mu.Lock()
		n := d.known[host]
		if n == nil {
			n = &names{ready: make(chan struct{})}
			d.known[host] = n
			d.mu.Unlock()
			n.addrs, n.err = d.lookup(ctx, host)
			for i, a := range n.addrs {
				n.addrs[i] = a.Unmap()
			}
			if strings.EqualFold(host, "localhost") {
				// Servers listen on 127.0.0.1 far more often than on ::1.
				slices.SortStableFunc(n.addrs, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
			}
			if n.err == nil && len(n.addrs) == 0 {
				n.err = &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
			}
			if n.err != nil {
				d.forget(host, n)
			}
			close(n.ready)
			return n.addrs, d.clock.Now() - start, n.err
		}
		first := n.first
		d.mu.Unlock()
		select {
		case <-n.ready:
			if n.err != nil {
				if ctx.Err() == nil && isCancelled(n.err) {
					continue // the one that looked it up was stopped, this one was not
				}
				return nil, d.clock.Now() - start, n.err
			}
		default:
			select {
			case <-n.ready:
				continue
			case <-ctx.Done():
				return nil, d.clock.Now() - start, context.Cause(ctx)
			}
		}
		dns = bench.Unset // known already
		if waited := d.clock.Now() - start; waited > time.Millisecond {
			dns = waited
		}
		if first.IsValid() {
			return []netip.Addr{first}, dns, nil
		}
		return n.addrs, dns, nil
	}
}

// forget makes the next request look the name up again.
func (d *dialer) forget(host string, n *names) {
	d.mu.Lock()
	if d.known[host] == n || n == nil {
		delete(d.known, host)
	}
	d.mu.Unlock()
}

// keep remembers the address that worked.
func (d *dialer) keep(host string, a netip.Addr) {
	d.mu.Lock()
	if n := d.known[host]; n != nil {
		n.first = a
	}
	d.mu.Unlock()
}

// tcp connects to a host and port.
func (d *dialer) tcp(ctx context.Context, host, port string) (*net.TCPConn, phases, error) {
	p := phases{bench.Unset, bench.Unset, bench.Unset}
	addrs, dns, err := d.resolve(ctx, host)
	p.dns = dns
	if err != nil {
		return nil, p, &dialError{"dns", err}
	}
	start := d.clock.Now()
	var c net.Conn
	for i, a := range addrs {
		c, err = d.address(ctx, net.JoinHostPort(a.String(), port), len(addrs)-i)
		if err == nil {
			if len(addrs) > 1 {
				d.keep(host, a)
			}
			break
		}
		if ctx.Err() != nil {
			break
		}
	}
	p.connect = d.clock.Now() - start
	if err != nil {
		d.forget(host, nil)
		return nil, p, &dialError{"connect", err}
	}
	t := c.(*net.TCPConn)
	_ = t.SetNoDelay(true) // the default, but the measurement rests on it
	return t, p, nil
}

// address connects to one address. Where more are left to try it gives this one its share of the time
// only, and never more than three seconds.
func (d *dialer) address(ctx context.Context, address string, left int) (net.Conn, error) {
	if left > 1 {
		share := 3 * time.Second
		if deadline, ok := ctx.Deadline(); ok {
			share = min(share, time.Until(deadline)/time.Duration(left))
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, share)
		defer cancel()
	}
	var nd net.Dialer
	return nd.DialContext(ctx, "tcp", address)
}

// limit is a context that ends with the connect timeout.
func (d *dialer) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d.timeout, errConnectTimeout)
}

// dial makes a connection that is ready for requests to e.
func (c *Client) dial(ctx context.Context, e *endpoint) (*conn, phases, error) {
	ctx, cancel := c.dialer.limit(ctx)
	defer cancel()
	t, p, err := c.dialer.tcp(ctx, e.host, e.port)
	if err != nil {
		return nil, p, because(ctx, err)
	}
	k := &conn{queue: newQueue(), origin: e.origin, remote: t.RemoteAddr().String()}
	if !e.tls {
		if k.line, err = newLine(t, c.o.Clock, c.dialer.kernel, k.queue); err != nil {
			return nil, p, &dialError{"connect", err}
		}
		return k, p, nil
	}
	config := c.tlsConfig()
	config.ServerName = e.host
	config.NextProtos = []string{"http/1.1"}
	start := c.o.Clock.Now()
	s := newSocket(t, c.o.Clock, c.dialer.kernel)
	secure := tls.Client(s, config)
	err = secure.HandshakeContext(ctx)
	p.tls = c.o.Clock.Now() - start
	if err != nil {
		_ = s.Close()
		return nil, p, because(ctx, &dialError{"tls", err})
	}
	k.line = newNetLine(s, secure, k.queue)
	return k, p, nil
}

// because replaces an error that a cancelled context caused by the reason for the cancellation.
func because(ctx context.Context, err error) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done() // a dialer sets the deadline itself, and can be a moment ahead
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// dialError says in which phase a connection failed: "dns", "connect" or "tls".
type dialError struct {
	phase string
	err   error
}

func (e *dialError) Error() string { return fmt.Sprintf("%s: %v", e.phase, e.err) }
func (e *dialError) Unwrap() error { return e.err }
