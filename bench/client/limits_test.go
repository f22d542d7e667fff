package client

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"velo/bench"
)

// TestCancel stops a request while it connects, before its first byte, and within its stream.
func TestCancel(t *testing.T) {
	stop := func(t *testing.T, c *Client, ready func(cancel func())) (Result, *log, time.Duration) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		var at time.Time
		ready(func() { at = time.Now(); cancel() })
		res, l, _ := do(t, ctx, c)
		took := time.Since(at)
		if res.End.Status != bench.Stopped || res.End.By != bench.EndCancel || res.End.Class != "" {
			t.Errorf("got %+v", res.End)
		}
		if c.InFlight() != 0 || c.Readers() != 0 {
			t.Errorf("%d requests and %d readers are left", c.InFlight(), c.Readers())
		}
		return res, l, took
	}
	soon := func(cancel func()) { time.AfterFunc(50*time.Millisecond, cancel) }
	t.Run("before", func(t *testing.T) {
		c := newClient(t, serve(t, says("")))
		_, l, _ := stop(t, c, func(cancel func()) { cancel() })
		if l.conn() != nil {
			t.Error("it connected")
		}
	})
	t.Run("name", func(t *testing.T) {
		c := newClient(t, "http://slow.example:8000")
		c.dialer.lookup = blockedLookup
		_, l, took := stop(t, c, soon)
		if l.conn() != nil || took > time.Second {
			t.Errorf("%+v, %v", l.conn(), took)
		}
	})
	t.Run("connect", func(t *testing.T) {
		c := newClient(t, "http://"+fullListener(t))
		_, l, took := stop(t, c, soon)
		if l.conn() != nil || took > time.Second {
			t.Errorf("%+v, %v", l.conn(), took)
		}
	})
	t.Run("TLS", func(t *testing.T) {
		c := newClient(t, "https://"+silentListener(t))
		_, _, took := stop(t, c, soon)
		if took > time.Second {
			t.Errorf("it took %v", took)
		}
	})
	gone := make(chan struct{}, 1)
	hangs := func(answer string) script {
		return func(c net.Conn, _ request) bool {
			_, _ = io.WriteString(c, answer)
			_, _ = c.Read(make([]byte, 1)) // until the client goes
			gone <- struct{}{}
			return false
		}
	}
	t.Run("prefill", func(t *testing.T) {
		c := newClient(t, serve(t, hangs("")))
		_, l, took := stop(t, c, soon)
		if k := l.conn(); k == nil || k.Status != 0 || k.FirstByte != bench.Unset || k.Wrote == bench.Unset || took > time.Second {
			t.Errorf("%+v, %v", k, took)
		}
		<-gone // the server notices, so that it can stop computing
	})
	t.Run("stream", func(t *testing.T) {
		c := newClient(t, serve(t, hangs(streamHead+chunkOf(content("partial")))))
		res, _, took := stop(t, c, soon)
		if res.Answer != "partial" || took > time.Second {
			t.Errorf("%+v, %v", res, took)
		}
		<-gone
	})
	t.Run("large request", func(t *testing.T) {
		block := make(chan struct{})
		l, _ := net.Listen("tcp", "127.0.0.1:0")
		go func() {
			if c, err := l.Accept(); err == nil {
				<-block // reads nothing
				c.Close()
			}
		}()
		defer l.Close()
		defer close(block)
		c := newClient(t, "http://"+l.Addr().String())
		k := chat(t, c, func(ch *Chat) { ch.Messages[0].Content = strings.Repeat("x", 16<<20) })
		ctx, cancel := context.WithCancel(t.Context())
		lg := &log{came: make(chan struct{}, 9)}
		go func() {
			<-lg.came // the request has been handed over
			time.Sleep(50 * time.Millisecond)
			cancel()
		}()
		res := k.Do(ctx, &bench.Request{}, lg)
		if conn := lg.conn(); res.End.Status != bench.Stopped || conn == nil || conn.Wrote != bench.Unset {
			t.Errorf("%+v, %+v", res.End, conn)
		}
	})
}

// blockedLookup never finds a name.
func blockedLookup(ctx context.Context, _ string) (a []netip.Addr, err error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// silentListener is an address that takes connections and says nothing.
func silentListener(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// fullListener is an address that does not answer: its backlog is full.
func fullListener(t *testing.T) string {
	t.Helper()
	address, err := unanswered(t)
	if err != nil {
		t.Skip("cannot make an address that does not answer: ", err)
	}
	return address
}

func TestTimeouts(t *testing.T) {
	const limit = 60 * time.Millisecond
	drip := func(c net.Conn, _ request) bool { // a comment every 10 ms
		_, err := io.WriteString(c, streamHead+chunkOf(content("a")))
		for err == nil {
			time.Sleep(10 * time.Millisecond)
			_, err = io.WriteString(c, chunkOf(": wait\n\n"))
		}
		return false
	}
	hang := func(answer string) script {
		return func(c net.Conn, _ request) bool {
			_, _ = io.WriteString(c, answer)
			_, _ = c.Read(make([]byte, 1))
			return false
		}
	}
	for _, c := range []struct {
		name, class, says string
		url               string
		limits            bench.Timeout
		text              string
		conn              bool
	}{
		{"connect", "timeout-connect", "within 60ms", "http://" + fullListener(t), bench.Timeout{Connect: limit}, "", false},
		{"connect, total", "timeout-total", "after 60ms", "http://" + fullListener(t), bench.Timeout{Total: limit}, "", false},
		{"TLS", "timeout-connect", "within 60ms", "https://" + silentListener(t), bench.Timeout{Connect: limit}, "", false},
		{"first byte", "timeout-first-byte", "within 60ms", serve(t, hang("")), bench.Timeout{FirstByte: limit}, "", true},
		{"first byte, total", "timeout-total", "after 60ms", serve(t, hang("")), bench.Timeout{FirstByte: time.Minute, Total: limit}, "", true},
		{"idle in the head", "timeout-idle", "silent for 60ms", serve(t, hang("HTTP/1.1 200 OK\r\n")), bench.Timeout{Idle: limit}, "", true},
		{"idle in the stream", "timeout-idle", "silent for 60ms", serve(t, hang(streamHead+chunkOf(content("a")))), bench.Timeout{Idle: limit, FirstByte: time.Hour}, "a", true},
		{"total in the stream", "timeout-total", "after 150ms", serve(t, drip), bench.Timeout{Idle: 100 * time.Second, Total: 150 * time.Millisecond}, "a", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, l, r := do(t, t.Context(), newClient(t, c.url, func(o *Options) { o.Timeout = c.limits }))
			e := res.End
			if e.Status != bench.TimedOut || e.Class != c.class || e.By != bench.EndCancel || !strings.Contains(e.Error, c.says) || res.Answer != c.text {
				t.Errorf("got %+v, answer %q", e, res.Answer)
			}
			if (l.conn() != nil) != c.conn {
				t.Errorf("connection is %+v", l.conn())
			}
			if e.End-r.Start < limit {
				t.Errorf("it ended after %v", e.End-r.Start)
			}
		})
	}
	t.Run("deadline of the caller", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		res, _, _ := do(t, ctx, newClient(t, serve(t, hang(""))))
		if res.End.Status != bench.TimedOut || res.End.Class != "timeout-total" {
			t.Errorf("got %+v", res.End)
		}
	})
	t.Run("reads push idle back", func(t *testing.T) {
		url := serve(t, func(c net.Conn, r request) bool {
			_, _ = io.WriteString(c, streamHead)
			for range 12 {
				_, _ = io.WriteString(c, chunkOf(content("a")))
				time.Sleep(50 * time.Millisecond)
			}
			_, err := io.WriteString(c, framed(doneEvent))
			return err == nil
		})
		res, _, _ := do(t, t.Context(), newClient(t, url, func(o *Options) { o.Timeout.Idle = 500 * time.Millisecond }))
		if res.End.Status != bench.OK {
			t.Errorf("got %+v", res.End)
		}
	})
}
