package client

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"velo/bench"
)

// request is what a scripted server was asked.
type request struct {
	*http.Request
	body []byte
	conn int // number of the connection, from 0
}

// script answers one request on a connection; the connection is closed when it returns false.
type script func(c net.Conn, r request) bool

// serveOn answers the connections of a listener by the script.
func serveOn(t testing.TB, l net.Listener, answer script) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	wg.Go(func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				b := bufio.NewReader(c)
				for {
					r, err := http.ReadRequest(b)
					if err != nil {
						return
					}
					body, err := io.ReadAll(r.Body)
					if err != nil || !answer(c, request{r, body, n}) {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
}

// serve starts a scripted server and returns its base URL.
func serve(t testing.TB, answer script) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, l, answer)
	return "http://" + l.Addr().String()
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nServer: scripted\r\nTransfer-Encoding: chunked\r\n\r\n"

// framed is a body of one HTTP chunk a piece, with the last one.
func framed(pieces ...string) string {
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(chunkOf(p))
	}
	return b.String() + "0\r\n\r\n"
}

func chunkOf(p string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(p), p) }

// whole answers with a body of known length.
func whole(status int, contentType, body string, fields ...string) string {
	s := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n", status, http.StatusText(status), contentType, len(body))
	for _, f := range fields {
		s += f + "\r\n"
	}
	return s + "\r\n" + body
}

// says is a script that writes the same to each request and keeps the connection.
func says(answer string) script {
	return func(c net.Conn, _ request) bool {
		_, err := io.WriteString(c, answer)
		return err == nil
	}
}

// saysAndCloses is a script that writes and closes.
func saysAndCloses(answer string) script {
	return func(c net.Conn, _ request) bool {
		_, _ = io.WriteString(c, answer)
		return false
	}
}

// content is the event of a token.
func content(text string) string {
	return fmt.Sprintf(`data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":%q},"logprobs":null,"finish_reason":null}]}`, text) + "\n\n"
}

const (
	roleEvent   = `data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	finishEvent = `data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usageEvent  = `data: {"id":"x","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}` + "\n\n"
	doneEvent   = "data: [DONE]\n\n"
)

// log is a sink that keeps what it gets.
type log struct {
	mu     sync.Mutex
	events []bench.Event
	came   chan struct{} // one token for each event, if it is not nil
}

func (l *log) Append(e bench.Event) {
	l.mu.Lock()
	l.events = append(l.events, e)
	l.mu.Unlock()
	if l.came != nil {
		l.came <- struct{}{}
	}
}

func (l *log) conn() *bench.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if c, ok := e.(*bench.Conn); ok {
			return c
		}
	}
	return nil
}

func (l *log) chunks() bench.Chunks {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all bench.Chunks
	for _, e := range l.events {
		if c, ok := e.(bench.Chunks); ok {
			all = append(all, c...)
		}
	}
	return all
}

// newClient makes a client that is closed with the test.
func newClient(t testing.TB, url string, change ...func(*Options)) *Client {
	t.Helper()
	o := Options{BaseURL: url, Clock: bench.StartClock(), Connections: 4}
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// chat prepares a short request.
func chat(t testing.TB, c *Client, change ...func(*Chat)) *Call {
	t.Helper()
	ch := Chat{Model: "m", Messages: []Message{{Role: "user", Content: "hello"}}, MaxTokens: 16}
	for _, f := range change {
		f(&ch)
	}
	k, err := c.Prepare(ch)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// do sends a short request and checks what holds for every one: the order of events, and that times
// do not run backwards.
func do(t testing.TB, ctx context.Context, c *Client) (Result, *log, *bench.Request) {
	t.Helper()
	return doCall(t, ctx, chat(t, c))
}

func doCall(t testing.TB, ctx context.Context, k *Call) (Result, *log, *bench.Request) {
	t.Helper()
	l, r := &log{}, &bench.Request{Number: 3}
	began := k.client.o.Clock.Now()
	res := k.Do(ctx, r, l)
	check(t, l, r, res, began, k.client.o.Clock.Now())
	return res, l, r
}

func check(t testing.TB, l *log, r *bench.Request, res Result, began, ended time.Duration) {
	t.Helper()
	order := ""
	for _, e := range l.events {
		switch e.(type) {
		case *bench.Request:
			order += "r"
		case *bench.Conn:
			order += "c"
		case bench.Chunks:
			order += "k"
		case *bench.End:
			order += "e"
		}
	}
	shape := strings.TrimRight(strings.TrimSuffix(order, "e"), "k")
	if shape != "rc" && shape != "r" || !strings.HasSuffix(order, "e") || strings.Count(order, "e") != 1 || shape == "r" && strings.Contains(order, "k") {
		t.Errorf("order of events is %q", order)
	}
	if l.events[0] != bench.Event(r) || l.events[len(l.events)-1] != bench.Event(res.End) {
		t.Error("the request does not come first, or its end not last")
	}
	if r.Start < began || r.Start > ended || r.Session == "" {
		t.Errorf("start %v is not within %v…%v, or session %q is empty", r.Start, began, ended, r.Session)
	}
	last := r.Start
	if c := l.conn(); c != nil && c.FirstByte != bench.Unset {
		if c.FirstByte < r.Start {
			t.Errorf("first byte %v came before the start %v", c.FirstByte, r.Start)
		}
		last = c.FirstByte
	}
	read := int32(0)
	for _, c := range l.chunks() {
		at := c.User
		if res.End.Stamp == bench.KernelStamp {
			at = c.Kernel
		}
		if at < last || c.Kernel > c.User+stepBound || c.Read < read || c.Text == "" || c.Request != r.Number || c.User > ended {
			t.Errorf("chunk %+v does not follow %v", c, last)
		}
		last, read = at, c.Read
	}
	if res.End.End < last-time.Millisecond || res.End.Close > ended || res.End.Request != r.Number {
		t.Errorf("end %v, close %v after last chunk %v, before %v", res.End.End, res.End.Close, last, ended)
	}
	if n := res.End.Events - res.End.Silent - res.End.Malformed; n < 0 || n > len(l.chunks()) {
		t.Errorf("%d events carry text, there are %d chunks", n, len(l.chunks()))
	}
}
