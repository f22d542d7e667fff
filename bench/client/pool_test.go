package client

import (
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"velo/bench"
)

// TestReuse: which answers leave a connection that can be used again.
func TestReuse(t *testing.T) {
	ok := streamHead + framed(content("x"), doneEvent)
	for _, c := range []struct {
		name   string
		answer string
		change func(*Options)
		reused bool
	}{
		{"chunks", ok, nil, true},
		{"an error", whole(429, "application/json", `{"error":"slow down"}`, "Retry-After: 2"), nil, true},
		{"not streaming", whole(200, "application/json", answerJSON), nil, true},
		{"connection: close", strings.Replace(ok, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1), nil, false},
		{"HTTP/1.0", strings.Replace(whole(200, "text/event-stream", content("x")+doneEvent), "1.1", "1.0", 1), nil, false},
		{"HTTP/1.0 kept", strings.Replace(whole(200, "text/event-stream", content("x")+doneEvent, "Connection: Keep-Alive"), "1.1", "1.0", 1), nil, true},
		{"more than the body", ok + "HTTP/1.1 200 OK\r\n", nil, false},
		{"no keep-alive", ok, func(o *Options) { o.NoKeepAlive = true }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			change := c.change
			if change == nil {
				change = func(*Options) {}
			}
			cl := newClient(t, serve(t, says(c.answer)), change)
			do(t, t.Context(), cl)
			if _, l, _ := do(t, t.Context(), cl); l.conn().Reused != c.reused {
				t.Errorf("reused: %v", l.conn().Reused)
			}
		})
	}
	t.Run("the server closed it meanwhile", func(t *testing.T) {
		cl := newClient(t, serve(t, func(c net.Conn, _ request) bool {
			_, _ = io.WriteString(c, ok)
			time.Sleep(20 * time.Millisecond)
			return false
		}))
		for range 3 {
			res, l, _ := do(t, t.Context(), cl)
			if res.End.Status != bench.OK || l.conn().Reused {
				t.Errorf("got %+v, %+v", res.End, l.conn())
			}
			time.Sleep(150 * time.Millisecond)
		}
	})
	t.Run("as many as there are streams", func(t *testing.T) {
		var conns atomic.Int64
		cl := newClient(t, serve(t, func(c net.Conn, r request) bool {
			conns.Store(max(conns.Load(), int64(r.conn+1)))
			time.Sleep(20 * time.Millisecond)
			return says(ok)(c, r)
		}), func(o *Options) { o.Connections = 32 })
		k := chat(t, cl)
		for range 3 {
			done := make(chan Result)
			for i := range 32 {
				go func() { done <- k.Do(t.Context(), &bench.Request{Number: i}, &log{}) }()
			}
			for range 32 {
				if r := <-done; r.End.Status != bench.OK {
					t.Errorf("got %+v", r.End)
				}
			}
		}
		if n := conns.Load(); n != 32 {
			t.Errorf("there were %d connections, want 32", n)
		}
	})
}
