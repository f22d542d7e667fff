package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"velo/engine/emit"
	"velo/engine/meter"
	"velo/engine/sched"
)

// metered is a server whose requests are counted.
func metered(t testing.TB, change func(*Options, *sched.Options)) *rig {
	var s *sched.Scheduler
	m := meter.New(meter.Build{}, func() sched.Status {
		if s == nil {
			return sched.Status{}
		}
		return s.Status()
	}, meter.Sources{})
	r := start(t, func(o *Options, so *sched.Options) {
		o.Meter, so.Observer = m, m
		if change != nil {
			change(o, so)
		}
	})
	s = r.scheduler
	return r
}

// metric is the value of one of the server's metrics.
func (r *rig) metric(t testing.TB, name string) string {
	t.Helper()
	_, _, b := r.get(t, "/metrics")
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "velogb10_"+name+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatalf("there is no metric %s in %s", name, b)
	return ""
}

// eventually waits for what another goroutine does.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for range 2000 {
		if is() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("after ten seconds: %s", what)
}

func TestMetrics(t *testing.T) {
	r := metered(t, nil)
	r.ask(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":5,"n":3,"ignore_eos":true}`)
	r.ask(t, "/v1/completions", `{"prompt":"a","max_tokens":5,"guided_choice":["b"]}`)
	eventually(t, "one request of three answers ended by length", func() bool { return r.metric(t, `requests_total{finish="length"}`) == "1" })
	eventually(t, "and one by itself", func() bool { return r.metric(t, `requests_total{finish="stop"}`) == "1" })
	if n := r.metric(t, "engine_alive"); n != "1" {
		t.Errorf("engine_alive is %s", n)
	}
	if r.server.o.Meter = nil; true {
		if code, _, b := r.get(t, "/metrics"); code != 404 || decode(t, b).Error.Code != string(NotFound) {
			t.Errorf("without a meter /metrics gave %d %s", code, b)
		}
	}
}

// TestDisconnect: a client that leaves frees its lane, and is counted as cancelled.
func TestDisconnect(t *testing.T) {
	for _, stream := range []bool{true, false} {
		r := metered(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "POST", r.URL+"/v1/chat/completions", strings.NewReader(fmt.Sprintf(`{%s,"max_tokens":490,"ignore_eos":true,"stream":%v,"n":4}`, hello, stream)))
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			resp, err := http.DefaultClient.Do(req)
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}()
		eventually(t, "it runs", func() bool { return r.scheduler.Status().Steps > 3 })
		cancel()
		<-gone
		eventually(t, "nothing runs any more", func() bool { return r.scheduler.Status().Running == 0 })
		eventually(t, "it counts as cancelled", func() bool { return r.metric(t, `requests_total{finish="cancelled"}`) == "1" })
		if st := r.scheduler.Status(); st.PagesUsed != 0 {
			t.Errorf("%d pages are still held", st.PagesUsed)
		}
	}
}

// narrow is a listener whose connections hold few bytes, so that a reader who does not read is felt
// at once.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetWriteBuffer(1024)
	}
	return c, err
}

// TestSlowReader: who reads nothing loses the answer when too much of it waits, and the others do
// not notice.
func TestSlowReader(t *testing.T) {
	r := metered(t, func(_ *Options, so *sched.Options) { so.Backlog = 8 })
	r.server.writeTimeout = time.Second
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := HTTP(r.server.Handler(), nil)
	go func() { _ = server.Serve(narrow{l}) }()
	defer server.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(1024)
	body := `{` + hello + `,"max_tokens":480,"ignore_eos":true,"stream":true,"logprobs":true,"top_logprobs":20}`
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	eventually(t, "the slow reader's answer is ended", func() bool { return r.metric(t, "streams_cancelled_backlog_total") == "1" })
	eventually(t, "it counts as cancelled", func() bool { return r.metric(t, `requests_total{finish="cancelled"}`) == "1" })
	if a := r.ask(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":5,"ignore_eos":true}`); a.Usage.Completion != 5 {
		t.Errorf("another request got %+v", a.Usage)
	}
}

// TestIdleConnections: a thousand connections that say nothing keep nobody from being served.
func TestIdleConnections(t *testing.T) {
	r := start(t, nil)
	for i := range 1000 {
		conn, err := net.Dial("tcp", r.Listener.Addr().String())
		if err != nil {
			t.Skipf("this machine does not take %d connections: %v", i, err)
		}
		defer conn.Close()
		if i%2 == 0 {
			fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
		}
	}
	if a := r.ask(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":2,"ignore_eos":true}`); a.Usage.Completion != 2 {
		t.Errorf("beside idle connections: %+v", a.Usage)
	}
}

// TestTogether: many at once, whatever they ask, get what they would get alone.
func TestTogether(t *testing.T) {
	r := metered(t, nil)
	want := *r.ask(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":30,"seed":9}`).Choices[0].Message.Content
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			switch i % 4 {
			case 0, 1:
				got := ""
				if i%4 == 0 {
					got = *r.ask(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":30,"seed":9}`).Choices[0].Message.Content
				} else {
					got, _, _ = said(r.chunks(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":30,"seed":9,"stream":true}`), 0)
				}
				if got != want {
					t.Errorf("together it is %q, alone %q", got, want)
				}
			case 2:
				if code, _, b := r.post(t, "/v1/chat/completions", `{"messages":3}`); code != 400 {
					t.Errorf("%d %s", code, b)
				}
			case 3:
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, "POST", r.URL+"/v1/chat/completions", strings.NewReader(`{`+hello+`,"max_tokens":400,"ignore_eos":true,"stream":true}`))
				if err != nil {
					t.Error(err)
					return
				}
				if resp, err := http.DefaultClient.Do(req); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			}
		})
	}
	wg.Wait()
	eventually(t, "nothing runs any more", func() bool { st := r.scheduler.Status(); return st.Running+st.Waiting == 0 && st.PagesUsed == 0 })
}

func TestOrigin(t *testing.T) {
	r := start(t, nil)
	req, err := http.NewRequest("OPTIONS", r.URL+"/v1/chat/completions", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", "http://page.example")
	req.Header.Set("Access-Control-Request-Headers", "authorization,x-stainless-os")
	code, h, _ := do(t, req)
	if code != 204 || h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Allow-Headers") != "authorization,x-stainless-os" || !strings.Contains(h.Get("Access-Control-Allow-Methods"), "POST") {
		t.Errorf("a page that asks gets %d %v", code, h)
	}
	if _, h, _ := r.post(t, "/v1/chat/completions", `{}`); h.Get("Access-Control-Allow-Origin") != "*" {
		t.Error("a page may not read an error")
	}
	closed := start(t, func(o *Options, _ *sched.Options) { o.Origin = "" })
	if _, h, _ := closed.post(t, "/v1/chat/completions", `{}`); h.Get("Access-Control-Allow-Origin") != "" {
		t.Error("pages may call although none should")
	}
}

// TestLoading is what is served before the model is there.
func TestLoading(t *testing.T) {
	s := httptest.NewServer(Loading("*"))
	defer s.Close()
	r := &rig{Server: s}
	if code, _, b := r.get(t, "/health"); code != 503 || !bytes.Contains(b, []byte(`"loading"`)) {
		t.Errorf("health is %d %s", code, b)
	}
	code, h, b := r.post(t, "/v1/chat/completions", `{}`)
	checkError(t, "while loading", code, b, Unavailable, "")
	if h.Get("Retry-After") != "5" {
		t.Errorf("Retry-After is %q", h.Get("Retry-After"))
	}
}

// TestEmitter: the receiver gets each chunk of a conversation as the client does, in order.
func TestEmitter(t *testing.T) {
	type record struct{ event, body, request, generation, index string }
	var mu sync.Mutex
	var got []record
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		var v struct {
			ResourceLogs []struct {
				ScopeLogs []struct {
					LogRecords []struct {
						Body       struct{ StringValue string }
						Attributes []struct {
							Key   string
							Value struct{ StringValue, IntValue string }
						}
					}
				}
			}
		}
		b, _ := io.ReadAll(q.Body)
		if err := json.Unmarshal(b, &v); err != nil {
			t.Errorf("the receiver got %s: %v", b, err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, rl := range v.ResourceLogs {
			for _, sl := range rl.ScopeLogs {
				for _, l := range sl.LogRecords {
					r := record{body: l.Body.StringValue}
					for _, a := range l.Attributes {
						switch a.Key {
						case "event":
							r.event = a.Value.StringValue
						case "request.id":
							r.request = a.Value.StringValue
						case "generation.id":
							r.generation = a.Value.StringValue
						case "token.index":
							r.index = a.Value.IntValue
						}
					}
					if r.event != "status" {
						got = append(got, r)
					}
				}
			}
		}
	}))
	defer receiver.Close()
	e, err := emit.New(emit.Options{Endpoint: receiver.URL, IncludeTokens: true, Interval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, func(o *Options, _ *sched.Options) { o.Emitter = e })
	_, _, b := r.post(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":8,"ignore_eos":true,"stream":true}`, "X-Session-Id", "mine")
	r.ask(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":3}`)                // does not stream
	r.chunks(t, "/v1/completions", `{"prompt":"a","stream":true,"max_tokens":2}`) // is no conversation
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := e.Close(ctx); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	var sent []string
	for line := range strings.Lines(string(b)) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok && strings.Contains(data, `"choices":[{`) {
			sent = append(sent, data)
		}
	}
	if len(got) != len(sent) {
		t.Fatalf("%d records of %d chunks", len(got), len(sent))
	}
	for i, g := range got {
		want := "stream_delta"
		switch i {
		case 0:
			want = "stream_start"
		case len(got) - 1:
			want = "stream_end"
		}
		if g.body != sent[i] || g.event != want || g.request != "mine" || !strings.HasPrefix(g.generation, "gen-") || g.index != fmt.Sprint(i) {
			t.Errorf("record %d is %+v, the chunk %s", i, g, sent[i])
		}
	}
}
