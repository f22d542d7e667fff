package sim

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The tests mostly wait for streams: many of them can do so at once.
func TestMain(m *testing.M) {
	flag.Parse()
	if serveForBenchmark() {
		return
	}
	if flag.Lookup("test.fuzz").Value.String() == "" { // the flag would also set the fuzzing workers
		if err := flag.Set("test.parallel", "16"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

func TestHTTP(t *testing.T) {
	server := start(t, quick(3))
	t.Run("expect", func(t *testing.T) {
		c := dial(t, server)
		c.send("POST", "/v1/chat/completions", chat(""), "Expect: 100-continue")
		if a := c.read(); a.status != 100 {
			t.Errorf("first answer %d", a.status)
		}
	})
	t.Run("close asked for", func(t *testing.T) {
		c := dial(t, server)
		a := c.post("/v1/chat/completions", chat(""), "Connection: close")
		if a.end != "complete" || a.header["connection"] != "close" {
			t.Errorf("%s, %v", a.end, a.lines)
		}
		if _, err := c.in.ReadByte(); err != io.EOF {
			t.Errorf("then %v", err)
		}
	})
	t.Run("HTTP/1.0", func(t *testing.T) {
		c := dial(t, server)
		fmt.Fprintf(c.conn, "POST /v1/chat/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s", len(chat("")), chat(""))
		if a := c.read(); a.end != "eof" || a.header["transfer-encoding"] != "" || !tell(t, a.body).done {
			t.Errorf("%s, %v", a.end, a.lines)
		}
	})
	t.Run("chunked request", func(t *testing.T) {
		c := dial(t, server)
		fmt.Fprintf(c.conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(chat("")), chat(""))
		if a := c.read(); a.end != "complete" || !tell(t, a.body).done {
			t.Errorf("%s", a.end)
		}
	})
	t.Run("pipelined", func(t *testing.T) {
		c := dial(t, server)
		c.send("POST", "/v1/chat/completions", chat(`"max_tokens":1`))
		c.send("POST", "/v1/chat/completions", chat(`"max_tokens":2`))
		a, b := c.read(), c.read()
		if x, y := tell(t, a.body), tell(t, b.body); CountTokens(x.content) != 1 || CountTokens(y.content) != 2 {
			t.Errorf("%q, then %q", x.content, y.content)
		}
	})
	t.Run("not HTTP", func(t *testing.T) {
		c := dial(t, server)
		io.WriteString(c.conn, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n") // a TLS client
		if a := c.read(); a.status != 400 || !bytes.Contains(a.body, []byte("not an HTTP/1 request")) {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
	t.Run("large", func(t *testing.T) {
		c := dial(t, server)
		fmt.Fprintf(c.conn, "POST /tokenize HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", maxBody+1)
		if a := c.read(); a.status != 413 || !bytes.Contains(a.body, []byte("longer than")) {
			t.Errorf("%d, %s", a.status, a.end)
		}
	})
}

func TestFailEvery(t *testing.T) {
	server := start(t, Scenario{Name: "third", Tokens: 2, FailEvery: 3, Status: 429})
	c := dial(t, server)
	for i := 1; i <= 7; i++ {
		want := 200
		if i%3 == 0 {
			want = 429
		}
		if a := c.post("/v1/chat/completions", chat("")); a.status != want {
			t.Errorf("request %d: %d, want %d", i, a.status, want)
		}
		// Requests of another scenario do not count.
		c.post("/v1/chat/completions", chat(""), "X-Sim-Scenario: instant")
	}
	for i := 1; i <= 4; i++ {
		a := c.post("/v1/chat/completions", chat(`"sim":{"fail_every":2,"status":0,"fault":{"kind":"eof"}}`))
		if o := tell(t, a.body); (o.finish == "") != (i%2 == 0) {
			t.Errorf("request %d of the second scenario: %q", i, o.finish)
		}
	}
}

// Requests get slower one by one, and the first ones may be slower still.
func TestDrift(t *testing.T) {
	server := start(t, Scenario{Tokens: 2, ITL: 4 * ms, Drift: 0.5})
	c := dial(t, server)
	for range 3 {
		c.post("/v1/chat/completions", chat(""))
	}
	var got []int64
	for _, w := range server.Truth() {
		if w.Kind == KindContent && w.Due > 0 {
			got = append(got, w.Due)
		}
	}
	if want := []int64{int64(4 * ms), int64(6 * ms), int64(9 * ms)}; !reflect.DeepEqual(got, want) {
		t.Errorf("second tokens due at %v, want %v", got, want)
	}
}

// Who asked, and over which connection, is in the truth.
func TestIdentity(t *testing.T) {
	server := start(t, quick(2))
	a, b := dial(t, server), dial(t, server)
	a.post("/v1/chat/completions", chat(""), "X-Session-Id: one", "X-Request-Id: r1")
	b.post("/v1/chat/completions", chat(""), "X-Session-Id: "+strings.Repeat("s", 400))
	last := a.post("/v1/chat/completions", chat(""))
	type who struct {
		stream, conn int64
		session, id  string
	}
	seen := map[who]bool{}
	for _, w := range server.Truth() {
		seen[who{w.Stream, w.Conn, w.Session, w.ID}] = true
	}
	if want := map[who]bool{{1, 1, "one", "r1"}: true, {2, 2, strings.Repeat("s", 256), ""}: true, {3, 1, "", ""}: true}; !reflect.DeepEqual(seen, want) {
		t.Errorf("%v", seen)
	}
	if m := tell(t, last.body).messages[0]; !strings.HasSuffix(m.ID, "000000000003") {
		t.Errorf("id %q of stream 3", m.ID)
	}
}

// A client that hangs up while it waits for the first token is noticed, and the
// stream ends there.
func TestCancel(t *testing.T) {
	server := start(t, Scenario{Tokens: 3, TTFT: Duration(time.Hour)})
	c := dial(t, server)
	c.send("POST", "/v1/chat/completions", chat(""))
	waitFor(t, func() bool { return len(server.Truth()) == 2 }) // headers and role
	c.conn.Close()
	waitFor(t, func() bool {
		truth := server.Truth()
		return truth[len(truth)-1].Kind == KindCancel
	})
	server.mu.Lock()
	defer server.mu.Unlock()
	if len(server.open) != 0 || len(server.kept) != 1 {
		t.Errorf("%d streams open, %d kept", len(server.open), len(server.kept))
	}
}

// waitFor polls for what another goroutine will do.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatal("it did not happen within 10 s")
		}
		time.Sleep(time.Millisecond)
	}
}

// A client that does not read blocks its own stream, no other one, and gets
// every byte once it reads.
func TestSlowReader(t *testing.T) {
	server := start(t, quick(4))
	c := dial(t, server)
	const lines, size = 24, 1 << 20
	c.send("POST", "/v1/chat/completions", chat(wantUsage+fmt.Sprintf(`,"sim":{"tokens":%d,"line_bytes":%d}`, lines, size)))
	waitFor(t, func() bool { return len(server.Truth()) > 2 })
	for range 3 { // the pacer is free for others
		if o := tell(t, dial(t, server).post("/v1/chat/completions", chat("")).body); !o.done {
			t.Errorf("another stream: %+v", o)
		}
	}
	a := c.read()
	o := tell(t, a.body)
	if CountTokens(o.content) != lines || !o.done || len(a.body) < lines*size {
		t.Errorf("%d bytes, %d tokens", len(a.body), CountTokens(o.content))
	}
	blocked := 0
	for _, w := range server.Truth() {
		if w.Parts > 1 {
			blocked++
		}
		if w.After < w.Before {
			t.Errorf("%+v", w)
		}
	}
	if blocked == 0 {
		t.Error("no write met a full socket: the test shows nothing")
	}
}

// Close ends what hangs, and the log has all of it.
func TestClose(t *testing.T) {
	var log bytes.Buffer
	server, err := Start(Options{Scenario: quick(5), Log: &log, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan answer, 4)
	for i, members := range []string{``, `"sim":{"fault":{"kind":"hang","after":2}}`, `"sim":{"fault":{"kind":"silence"}}`, `"sim":{"ttft":"1h"}`} {
		c := dial(t, server)
		if members != "" {
			members = "," + members
		}
		c.send("POST", "/v1/chat/completions", chat(`"n":1`+members), fmt.Sprintf("X-Session-Id: s%d", i))
		if i == 1 { // a second request behind the hanging one must not keep the server
			c.send("POST", "/v1/chat/completions", chat(""))
		}
		go func() { ended <- c.read() }()
	}
	waitFor(t, func() bool {
		sessions := map[string]int{}
		for _, w := range server.Truth() {
			sessions[w.Session]++
		}
		server.mu.Lock()
		defer server.mu.Unlock()
		return sessions["s0"] == 1+1+5+1+1+1 && sessions["s1"] == 1+1+2 && sessions["s3"] == 2 && len(server.open) == 3
	})
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	for range 4 {
		if a := <-ended; a.end == "timeout" {
			t.Error("a client still waits after Close")
		}
	}
	writes, err := ReadLog(&log)
	if err != nil {
		t.Fatal(err)
	}
	cancels := 0
	for _, w := range writes {
		if w.Kind == KindCancel {
			cancels++
		}
	}
	if cancels != 3 || len(writes) != 10+4+2+3 {
		t.Errorf("%d writes, %d of them cancels", len(writes), cancels)
	}
	if _, err := net.Dial("tcp", server.listener.Addr().String()); err == nil {
		t.Error("the port still answers")
	}
}

func TestStartRefuses(t *testing.T) {
	if _, err := Start(Options{Scenario: Scenario{Name: "mine", Tokens: -1}}); err == nil || !strings.Contains(err.Error(), `scenario "mine": tokens is -1`) {
		t.Errorf("%v", err)
	}
	server := start(t, quick(1))
	if _, err := Start(Options{Addr: server.listener.Addr().String()}); err == nil || !strings.Contains(err.Error(), "cannot start the endpoint") {
		t.Errorf("a port in use: %v", err)
	}
}
