package otlp

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"time"

	"golang.org/x/net/http/httpguts"

	"velo/bench/otlp/stream"
)

// Config is what the settings want. It holds no state of the receiver.
type Config struct {
	Enabled bool
	GRPC    []string // HOST:PORT to take gRPC on; an empty host is 127.0.0.1
	HTTP    []string // HOST:PORT to take HTTP on; an empty host is 127.0.0.1
	Token   string   // senders must show it ("Authorization: Bearer …"); "" = none is asked for
	TLS     *tls.Config
	// Certificate is what TLS is spoken with instead of TLS; nil = TLS has it, or plain text is taken.
	Certificate *Certificate
	Limits      Limits
	Streams     stream.Options // Keep is the "last minutes kept anyway", Bytes their bound
	Raw         int            // raw records kept for the viewer; 0 = 2,000
	Poll        []Poll         // metrics pages to read while Enabled
}

// Poll is a metrics page in the Prometheus text format.
type Poll struct {
	URL   string
	Every time.Duration // between two readings; 0 = PollEvery, at least 200 ms and at most a minute
	Token string        // sent as a bearer token; "" = none
}

// PollEvery is the time between two readings of a metrics page where none is chosen.
const PollEvery = 2 * time.Second

// tls is what listeners speak; nil = plain text.
func (c *Config) tls() *tls.Config {
	if c.Certificate != nil {
		return c.Certificate.config
	}
	return c.TLS
}

// Default listens on the usual ports of loopback: gRPC on 4317, HTTP on 4318, and on 9381, where
// existing emitters are pointed at.
func Default() Config {
	return Config{Enabled: true, GRPC: []string{"127.0.0.1:4317"}, HTTP: []string{"127.0.0.1:4318", "127.0.0.1:9381"}}
}

// Limits bound what senders can ask for. The zero value has usual ones.
type Limits struct {
	Body        int64         // bytes of a body, also after decompression; 0 = 64 MiB
	InFlight    int64         // bytes of bodies held at a time; 0 = 128 MiB
	Waiting     int           // requests taken in at a time, worked on or waiting; 0 = 256
	Connections int           // a listener; 0 = 256
	Records     float64       // a second; 0 = 200,000
	Wait        time.Duration // how long a request may wait for its turn; 0 = 2 s
	Core        float64       // share of one core that records may take; 0 = 1. Less is for a running measurement
}

func (l Limits) complete() Limits {
	set := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&l.Body, 64<<20)
	set(&l.InFlight, 128<<20)
	l.InFlight = max(l.InFlight, l.Body)
	if l.Waiting <= 0 {
		l.Waiting = 256
	}
	if l.Connections <= 0 {
		l.Connections = 256
	}
	if l.Records <= 0 {
		l.Records = 200_000
	}
	if l.Wait <= 0 {
		l.Wait = 2 * time.Second
	}
	if l.Core <= 0 || l.Core > 1 {
		l.Core = 1
	}
	return l
}

// Check tells what is wrong with a configuration.
func (c *Config) Check() error {
	seen := map[string]bool{}
	for _, a := range slices.Concat(c.GRPC, c.HTTP) {
		host, port, err := net.SplitHostPort(a)
		if err != nil {
			return fmt.Errorf("cannot listen on %q: it must be HOST:PORT, such as 127.0.0.1:4318", a)
		}
		if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
			return fmt.Errorf("cannot listen on %q: %q is no port from 0 to 65535", a, port)
		}
		if host != "" && host != "localhost" && net.ParseIP(host) == nil {
			return fmt.Errorf("cannot listen on %q: the host must be an IP address of this machine, such as 127.0.0.1, or 0.0.0.0 for all", a)
		}
		if port != "0" && seen[address(a)] {
			return fmt.Errorf("cannot listen on %s twice", a)
		}
		seen[address(a)] = true
	}
	for _, p := range c.Poll {
		u, err := url.Parse(p.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("cannot read %q: a metrics page has a URL such as http://127.0.0.1:8000/metrics", p.URL)
		}
		if p.Every != 0 && (p.Every < leastPoll || p.Every > mostPoll) {
			return fmt.Errorf("cannot read %s every %v: the time between two readings is %v to %v", shown(p.URL), p.Every, leastPoll, mostPoll)
		}
		if !httpguts.ValidHeaderFieldValue(p.Token) {
			return fmt.Errorf("cannot read %s with this token: it has characters that cannot be sent, such as a new line", shown(p.URL))
		}
	}
	return nil
}

// address is where to listen: loopback where no host is given.
func address(a string) string {
	if host, port, err := net.SplitHostPort(a); err == nil && (host == "" || host == "localhost") {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return a
}
