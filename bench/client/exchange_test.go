package client

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"velo/bench"
)

func TestStream(t *testing.T) {
	url := serve(t, says(streamHead+framed(roleEvent, content("Hel"), content("lo"), finishEvent, usageEvent, doneEvent)))
	c := newClient(t, url)
	for i := range 3 {
		res, l, _ := do(t, t.Context(), c)
		e := res.End
		if e.Status != bench.OK || e.By != bench.EndDone || e.Finish != "stop" || res.Answer != "Hello" {
			t.Fatalf("got %+v, answer %q", e, res.Answer)
		}
		if len(l.chunks()) != 2 || e.Events != 5 || e.Silent != 3 || e.Usage == nil || e.Usage.Completion != 2 || e.Usage.Cached != -1 {
			t.Errorf("got %d chunks, %+v, usage %+v", len(l.chunks()), e, e.Usage)
		}
		if k := l.conn(); k.Reused != (i > 0) || k.Status != 200 || k.Server != "scripted" || (k.Connect == bench.Unset) != (i > 0) || k.DNS != bench.Unset || k.Wrote == bench.Unset {
			t.Errorf("connection %d is %+v", i, k)
		}
		if runtime.GOOS == "linux" && c.o.Stamps != "user" && e.Stamp != bench.KernelStamp {
			t.Errorf("stamps are %s", e.Stamp)
		}
	}
}

func gzipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return b.String()
}

func deflated(s string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return b.String()
}

const answerJSON = `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","reasoning_content":"hm","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`

// TestStatuses sends every kind of answer over a real socket. Each is tried as HTTP/1.1 chunks, which
// the answers of this table are given in unless they say "HTTP/" themselves.
func TestStatuses(t *testing.T) {
	hi, stream := content("Hi"), "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	for _, c := range []struct {
		name   string
		answer string
		status bench.Status
		by     string
		class  string
		says   string // part of the sentence
		text   string // answer
		more   func(r Result) bool
	}{
		{"done", framed(hi, finishEvent, doneEvent), bench.OK, "done", "", "", "Hi", nil},
		{"done without finish", framed(hi, doneEvent), bench.OK, "done", "", "", "Hi", nil},
		{"done with space", framed(hi, "data:  [DONE] \t\r\n\r\n"), bench.OK, "done", "", "", "Hi", nil},
		{"done without its empty line", framed(hi, "data: [DONE]"), bench.OK, "done", "", "", "Hi", nil},
		{"finish without done", framed(hi, finishEvent), bench.OK, "finish", "", "", "Hi", nil},
		{"finish, then the connection is cut", chunkOf(hi) + chunkOf(finishEvent), bench.OK, "finish", "", "", "Hi", nil},
		{"usage after finish", framed(hi, finishEvent, usageEvent, doneEvent), bench.OK, "done", "", "", "Hi", func(r Result) bool { return r.End.Usage.Prompt == 7 }},
		{"usage after done", framed(hi, doneEvent, usageEvent), bench.OK, "done", "", "", "Hi", func(r Result) bool { return r.End.Usage.Prompt == 7 }},
		{"text after done", framed(hi, doneEvent, hi), bench.OK, "done", "", "", "Hi", nil},
		{"EOF, chunks complete", framed(hi), bench.Truncated, "eof", "truncated", "without a finish reason", "Hi", nil},
		{"EOF in a chunk", chunkOf(hi)[:20], bench.Truncated, "eof", "truncated", "connection was lost", "", nil},
		{"EOF between chunks", chunkOf(hi), bench.Truncated, "eof", "truncated", "connection was lost", "Hi", nil},
		{"no token", framed(roleEvent, finishEvent, doneEvent), bench.Empty, "done", "empty", "without a token", "", nil},
		{"usage without a token", framed(usageEvent, doneEvent), bench.Empty, "done", "empty", "without a token", "", nil},
		{"no event at all", framed("no event\n", "\x00\xff\x17 nor here"), bench.Failed, "error", "malformed", "no event in its", "", nil},
		{"nothing", framed(), bench.Truncated, "eof", "truncated", "without a finish reason", "", nil},
		{"only comments", framed(": wait\n\n", ": wait\n\n"), bench.Truncated, "eof", "truncated", "", "", func(r Result) bool { return r.End.Comments == 2 }},
		{"error first", framed(`data: {"error":{"message":"out of memory","code":500}}` + "\n\n"), bench.Failed, "error", "in-stream", "out of memory", "", nil},
		{"error later", framed(hi, `data: {"error":{"message":"out of memory"}}`+"\n\n", doneEvent), bench.Failed, "error", "in-stream", "out of memory", "Hi", nil},
		{"error event", framed(hi, "event: error\ndata: {\"message\":\"lost\"}\n\n"), bench.Failed, "error", "in-stream", "lost", "Hi", nil},
		{"error event in words", framed("event: error\ndata: it broke\n\n"), bench.Failed, "error", "in-stream", "it broke", "", nil},
		{"malformed chunk among others", framed(hi, "data: {oops\n\n", doneEvent), bench.OK, "done", "", "", "Hi", func(r Result) bool { return r.End.Malformed == 1 && r.End.Events == 2 }},
		{"only malformed", framed("data: {oops\n\n", doneEvent), bench.Failed, "error", "malformed", "{oops", "", nil},
		{"JSON", whole(200, "application/json", answerJSON), bench.NotStreaming, "finish", "not-streaming", "as a whole", "Hi", func(r Result) bool {
			return r.End.Usage.Completion == 4 && r.Reasoning == "hm" && r.ToolCalls == `[{"name":"f","arguments":"{}"}]` && r.End.Events == 0
		}},
		{"JSON as event stream", framed(" \n" + answerJSON), bench.NotStreaming, "finish", "not-streaming", "as a whole", "Hi", nil},
		{"JSON cut", framed(answerJSON[:40])[:40], bench.Truncated, "eof", "truncated", "before the answer was complete", "", nil},
		{"error as JSON", whole(200, "application/json", `{"error":"no model"}`), bench.Failed, "error", "in-stream", "no model", "", nil},
		{"page", whole(200, "text/html", "<!DOCTYPE html><title>Hi</title>"), bench.Failed, "error", "html", "this is a web page, not an API: check the base URL", "", nil},
		{"words", whole(200, "application/x-ndjson", "{\"a\":1}\n{\"a\":2}\n"), bench.Failed, "error", "malformed", "not a stream of events", "", nil},
		{"stream of length", stream + "Content-Length: " + "15\r\n\r\ndata: [DONE]\n\n ", bench.Empty, "done", "empty", "", "", nil},
		{"stream to EOF", stream + "\r\n" + hi + finishEvent, bench.OK, "finish", "", "", "Hi", nil},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\n" + hi + doneEvent, bench.OK, "done", "", "", "Hi", nil},
		{"after 100 and 103", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + streamHead + framed(hi, doneEvent), bench.OK, "done", "", "", "Hi", nil},
		{"101", "HTTP/1.1 101 Switching Protocols\r\n\r\n", bench.Failed, "error", "malformed", "another protocol", "", nil},
		{"CRLF stream", framed(strings.ReplaceAll(hi+finishEvent+doneEvent, "\n", "\r\n")), bench.OK, "done", "", "", "Hi", nil},
		{"BOM", framed(byteOrderMark + hi + doneEvent), bench.OK, "done", "", "", "Hi", nil},
		{"gzip", stream + "Content-Encoding: gzip\r\n\r\n" + gzipped(hi+finishEvent+doneEvent), bench.OK, "done", "", "", "Hi", func(r Result) bool { return r.End.Encoding == "gzip" }},
		{"gzip cut", stream + "Content-Encoding: gzip\r\n\r\n" + gzipped(hi + finishEvent + doneEvent)[:90], bench.Truncated, "eof", "truncated", "", "", nil},
		{"deflate", stream + "Content-Encoding: deflate\r\n\r\n" + deflated(hi+doneEvent), bench.OK, "done", "", "", "Hi", func(r Result) bool { return r.End.Encoding == "deflate" }},
		{"not gzip", stream + "Content-Encoding: gzip\r\n\r\n" + hi, bench.Failed, "error", "malformed", "does not decode", "", nil},
		{"brotli", stream + "Content-Encoding: br\r\n\r\n" + hi, bench.Failed, "error", "malformed", "compresses its answer with \"br\"", "", nil},
		{"line too long", stream + "\r\n" + hi + "data: " + strings.Repeat("x", MaxLine+1), bench.Failed, "error", "malformed", "longer than 16 MB", "Hi", nil},
		{"long line", stream + "\r\n" + content(strings.Repeat("x", 1<<20)) + doneEvent, bench.OK, "done", "", "", strings.Repeat("x", 1<<20), nil},
		{"bad chunk", chunkOf(hi) + "zz\r\n", bench.Failed, "error", "malformed", "chunk's size", "Hi", nil},
		{"no HTTP", "HTTP? no\r\n\r\n", bench.Failed, "error", "malformed", "cannot read the server's answer", "", nil},
		{"closed in the head", "HTTP/1.1 200 OK\r\nContent", bench.Failed, "error", "malformed", "ends within its header", "", nil},
		{"closed", "HTTP/", bench.Failed, "error", "malformed", "ends within its header", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := c.answer
			if !strings.HasPrefix(answer, "HTTP") {
				answer = streamHead + answer
			}
			res, _, _ := do(t, t.Context(), newClient(t, serve(t, saysAndCloses(answer))))
			e := res.End
			if e.Status != c.status || e.By != c.by || e.Class != c.class || !strings.Contains(e.Error, c.says) || (e.Error == "") != (c.status == bench.OK) {
				t.Errorf("got %s by %s, class %q: %q", e.Status, e.By, e.Class, e.Error)
			}
			if res.Answer != c.text {
				t.Errorf("answer is %.40q, want %.40q", res.Answer, c.text)
			}
			if c.more != nil && !c.more(res) {
				t.Errorf("got %+v", res)
			}
		})
	}
}

// TestHangsAfterDone: a body that does not end after [DONE] is let go of, and its connection.
func TestHangsAfterDone(t *testing.T) {
	url := serve(t, says(streamHead+chunkOf(content("Hi"))+chunkOf(doneEvent)))
	c := newClient(t, url)
	for range 2 {
		res, l, _ := do(t, t.Context(), c)
		if res.End.Status != bench.OK || l.conn().Reused || res.End.Close-res.End.End < grace/2 {
			t.Errorf("got %+v, %+v", res.End, l.conn())
		}
	}
}

// TestDeltas follows each kind of text to its channel.
func TestDeltas(t *testing.T) {
	delta := func(d string) string { return `data: {"choices":[{"index":0,"delta":{` + d + `}}]}` + "\n\n" }
	url := serve(t, says(streamHead+framed(
		delta(`"reasoning_content":"r1","reasoning":"r1"`),
		delta(`"reasoning":"r2","content":"c1"`),
		delta(`"content":[{"type":"text","text":"c2"}]`),
		delta(`"refusal":"no"`),
		delta(`"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]`),
		delta(`"tool_calls":[{"index":0,"function":{"arguments":"{}"}},{"index":1,"function":{"name":"g","arguments":"1"}}]`),
		`data: {"choices":[{"index":1,"delta":{"content":"other"}}]}`+"\n\n",
		doneEvent)))
	res, l, _ := do(t, t.Context(), newClient(t, url))
	if res.Answer != "c1c2no" || res.Reasoning != "r1r2" || res.ToolCalls != `[{"name":"f","arguments":"{}"},{"name":"g","arguments":"1"}]` {
		t.Errorf("got %+v", res)
	}
	got := ""
	for _, c := range l.chunks() {
		got += c.Channel.String()[:1] + ":" + c.Text + " "
	}
	if want := "r:r1 r:r2 c:c1 c:c2 r:no t:f t:{}g1 "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if res.End.Events != 7 || res.End.Silent != 1 {
		t.Errorf("got %+v", res.End)
	}
}

func TestTokensOfChunks(t *testing.T) {
	event := func(text, more string) string {
		return `data: {"choices":[{"index":0,"delta":{"content":"` + text + `"}` + more + "}\n\n"
	}
	url := serve(t, says(streamHead+framed(
		event("", `,"token_ids":[1,2]}],"usage":{"completion_tokens":2,"prompt_tokens":1}`),
		event("a", `,"token_ids":[3]}],"usage":{"completion_tokens":3,"prompt_tokens":1}`),
		event("b", `}]`),
		event("c", `,"logprobs":{"content":[{},{}]}}],"usage":null`),
		usageEvent, doneEvent)))
	_, l, _ := do(t, t.Context(), newClient(t, url))
	got := l.chunks()
	for i, want := range []struct{ usage, exact int32 }{{3, 3}, {-1, -1}, {-1, 2}} {
		if got[i].Usage != want.usage || got[i].Exact != want.exact {
			t.Errorf("chunk %d is %+v, want %+v", i, got[i], want)
		}
	}
}

func TestThinkTags(t *testing.T) {
	url := serve(t, says(streamHead+framed(content("<th"), content("ink>why</think>yes"), content(" <"), finishEvent, doneEvent)))
	res, l, _ := do(t, t.Context(), newClient(t, url, func(o *Options) { o.ThinkTags = true }))
	if res.Answer != "yes <" || res.Reasoning != "why" || len(l.chunks()) != 4 || l.chunks()[1].Channel != bench.Reasoning {
		t.Errorf("got %+v, %+v", res, l.chunks())
	}
}

// TestRequest looks at what the server gets.
func TestRequest(t *testing.T) {
	got := make(chan request, 1)
	url := serve(t, func(c net.Conn, r request) bool {
		got <- r
		return says(streamHead+framed(content("x"), doneEvent))(c, r)
	})
	c := newClient(t, url+"/sub/v1?a=b", func(o *Options) { o.Key, o.Header = "secret", map[string][]string{"x-more": {"1"}} })
	r := &bench.Request{Session: "abc def"}
	chat(t, c).Do(t.Context(), r, &log{})
	s := <-got
	want := map[string]string{
		"Authorization": "Bearer secret", "X-Session-Id": "abc-def", "Accept-Encoding": "identity", "X-More": "1",
		"Content-Type": "application/json", "User-Agent": agent,
	}
	for name, v := range want {
		if s.Header.Get(name) != v {
			t.Errorf("%s is %q, want %q", name, s.Header.Get(name), v)
		}
	}
	if s.URL.String() != "/sub/v1/chat/completions?a=b" || s.Host != strings.TrimPrefix(url, "http://") || s.Method != "POST" {
		t.Errorf("got %s %s at %s", s.Method, s.URL, s.Host)
	}
	var body struct {
		Stream  bool
		Options struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if json.Unmarshal(s.body, &body) != nil || !body.Stream || !body.Options.Usage {
		t.Errorf("body is %s", s.body)
	}
	if r.Session != "abc-def" || r.PromptBytes != 5 || bytes.Contains(r.Parameters, []byte("hello")) || !bytes.Contains(r.Parameters, []byte(`"max_tokens":16`)) {
		t.Errorf("request is %+v", r)
	}
}

// TestEarlyAnswer: an answer that comes while the request is still being written is the answer.
func TestEarlyAnswer(t *testing.T) {
	for _, close := range []bool{true, false} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1000))
			_, _ = io.WriteString(c, whole(413, "application/json", `{"error":{"message":"too long"}}`))
			if close {
				_ = c.(*net.TCPConn).CloseWrite()
			}
			time.Sleep(500 * time.Millisecond)
			c.Close()
		}()
		c := newClient(t, "http://"+l.Addr().String())
		res, _, _ := doCall(t, t.Context(), chat(t, c, func(ch *Chat) { ch.Messages[0].Content = strings.Repeat("x", 16<<20) }))
		if res.End.Class != "http-413" || !strings.Contains(res.End.Error, "too long") {
			t.Errorf("got %+v", res.End)
		}
	}
}

// TestRedirect: 307 and 308 are followed, with the key only to the same host; others are an error that
// says where to.
func TestRedirect(t *testing.T) {
	var key atomic.Value
	final := serve(t, func(c net.Conn, r request) bool {
		key.Store(r.Header.Get("Authorization") + string(r.body[:1]) + r.URL.Path)
		return says(streamHead+framed(content("there"), doneEvent))(c, r)
	})
	secret := func(o *Options) { o.Key = "secret" }
	redirect := func(status int, to string) string {
		return serve(t, says(whole(status, "text/plain", "go on", "Location: "+to)))
	}
	res, l, _ := do(t, t.Context(), newClient(t, redirect(307, final+"/x/y"), secret))
	if res.Answer != "there" || key.Load() != "Bearer secret{/x/y" || l.conn().Status != 200 {
		t.Errorf("got %+v, key %q", res.End, key.Load())
	}
	other := strings.Replace(final, "127.0.0.1", "localhost", 1)
	res, _, _ = do(t, t.Context(), newClient(t, redirect(308, other+"/x"), secret))
	if res.Answer != "there" || key.Load() != "{/x" {
		t.Errorf("got %+v, key %q", res.End, key.Load())
	}
	for _, c := range []struct{ to, says string }{
		{"/again", "without end"}, {"ftp://x/", "no address"}, {"http://[", "no address"}, {"http:///x", "no address"},
	} {
		res, _, _ = do(t, t.Context(), newClient(t, redirect(308, c.to)))
		if res.End.Class != "http-308" || !strings.Contains(res.End.Error, c.says) {
			t.Errorf("to %s: got %+v", c.to, res.End)
		}
	}
	res, _, _ = do(t, t.Context(), newClient(t, redirect(301, "https://elsewhere/v1")))
	if res.End.Class != "http-301" || !strings.Contains(res.End.Error, "https://elsewhere/v1") {
		t.Errorf("got %+v", res.End)
	}
}

// TestPrepareOnce: a call can be sent by many at once.
func TestPrepareOnce(t *testing.T) {
	c := newClient(t, serve(t, says(streamHead+framed(content("x"), doneEvent))))
	k := chat(t, c)
	errs := make(chan error)
	for i := range 8 {
		go func() {
			for range 20 {
				if r := k.Do(context.Background(), &bench.Request{Number: i}, &log{}); r.Answer != "x" {
					errs <- errors.New(r.End.Error)
					return
				}
			}
			errs <- nil
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
