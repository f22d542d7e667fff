package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync"
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

// The lengths that a request asks for are the lengths that it gets.
func TestLength(t *testing.T) {
	server := start(t, quick(20))
	c := dial(t, server)
	for _, l := range []struct {
		members string
		want    int
		finish  string
	}{
		{``, 20, "stop"},
		{`"max_tokens":7`, 7, "length"},
		{`"max_completion_tokens":7`, 7, "length"},
		{`"max_tokens":9,"max_completion_tokens":7`, 7, "length"},
		{`"max_tokens":19`, 19, "length"},
		{`"max_tokens":20`, 20, "length"}, // the end token would be the twenty-first
		{`"max_tokens":21`, 20, "stop"},
		{`"max_tokens":null`, 20, "stop"},
		{`"min_tokens":30`, 30, "stop"},
		{`"min_tokens":5`, 20, "stop"},
		{`"min_tokens":30,"max_tokens":40`, 30, "stop"},
		{`"ignore_eos":true`, 20, "stop"},
		{`"ignore_eos":true,"max_tokens":33`, 33, "length"},
		{`"ignore_eos":true,"max_tokens":3`, 3, "length"},
		{`"ignore_eos":true,"min_tokens":33,"max_tokens":33`, 33, "length"},
		{`"ignore_eos":true,"min_tokens":9`, 9, "length"},
		{`"sim":{"ignore_limits":true},"max_tokens":3`, 20, "stop"},
		{`"sim":{"ignore_limits":true},"min_tokens":40,"max_tokens":50,"ignore_eos":true`, 20, "stop"},
		{`"sim":{"tokens":5}`, 5, "stop"},
		{`"sim":{"reasoning":{"tokens":12}},"max_tokens":8`, 8, "length"},
	} {
		a := c.post("/v1/chat/completions", chat(wantUsage+","+l.members))
		o := tell(t, a.body)
		if l.members == "" {
			a = c.post("/v1/chat/completions", chat(wantUsage))
			o = tell(t, a.body)
		}
		got := CountTokens(o.content) + CountTokens(o.reasoning["reasoning_content"])
		if got != l.want || o.finish != l.finish || len(o.usages) != 1 || o.usages[0].Completion != l.want {
			t.Errorf("%s: %d tokens, %q, usage %+v; want %d, %q (%d %s)", l.members, got, o.finish, o.usages, l.want, l.finish, a.status, o.failure)
		}
	}
}

// What a request may not say is answered with 400 and a sentence that names it.
func TestBadRequests(t *testing.T) {
	server := start(t, quick(4))
	c := dial(t, server)
	message := `"messages":[{"role":"user","content":"x"}]`
	for _, b := range []struct{ path, body, param, want string }{
		{"/v1/chat/completions", ``, "", "not JSON"},
		{"/v1/chat/completions", `{"messages"`, "", "not JSON"},
		{"/v1/chat/completions", `[]`, "", "must be a JSON object"},
		{"/v1/chat/completions", `{}`, "messages", "at least one"},
		{"/v1/chat/completions", `{"messages":[]}`, "messages", "at least one"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":3}]}`, "messages[0].content", "string or an array"},
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"audio"}]}]}`, "messages[0].content[0].type", "audio"},
		{"/v1/chat/completions", `{` + message + `,"max_tokens":"32"}`, "max_tokens", "whole number, got a string"},
		{"/v1/chat/completions", `{` + message + `,"max_tokens":0}`, "max_tokens", "at least 1"},
		{"/v1/chat/completions", `{` + message + `,"min_tokens":-1}`, "min_tokens", "at least 0"},
		{"/v1/chat/completions", `{` + message + `,"min_tokens":9,"max_tokens":8}`, "min_tokens", "at most max_tokens"},
		{"/v1/chat/completions", `{` + message + `,"min_tokens":99999999}`, "min_tokens", "at most"},
		{"/v1/chat/completions", `{` + message + `,"ignore_eos":true,"max_tokens":99999999}`, "max_tokens", "with ignore_eos"},
		{"/v1/chat/completions", `{` + message + `,"ignore_eos":"true"}`, "ignore_eos", "true or false"},
		{"/v1/chat/completions", `{` + message + `,"n":0}`, "n", "between 1"},
		{"/v1/chat/completions", `{` + message + `,"n":100,"ignore_eos":true,"max_tokens":1000000}`, "n", "are more than"},
		{"/v1/chat/completions", `{` + message + `,"sim":{"tokns":3}}`, "sim", "tokns"},
		{"/v1/chat/completions", `{` + message + `,"sim":3}`, "sim", "not a JSON object"},
		{"/v1/chat/completions", `{` + message + `,"sim":{"line_bytes":100000,"tokens":2},"ignore_eos":true,"max_tokens":1000000}`, "sim.line_bytes", "more than"},
		{"/v1/completions", `{}`, "prompt", "missing"},
		{"/v1/completions", `{"prompt":["a","b"]}`, "prompt", "one text"},
		{"/v1/completions", `{"prompt":{}}`, "prompt", "one text"},
		{"/tokenize", `{}`, "prompt", "missing"},
		{"/tokenize", `{"prompt":3}`, "prompt", "got a number"},
		{"/detokenize", `{"tokens":[0]}`, "tokens", "tokens[0] is 0"},
	} {
		a := c.post(b.path, b.body)
		var m message_
		if err := json.Unmarshal(a.body, &m); err != nil {
			t.Errorf("%s %s: %v: %s", b.path, b.body, err, a.body)
			continue
		}
		if a.status != 400 || m.Error.Param != b.param || !strings.Contains(m.Error.Message, b.want) || m.Error.Type != "invalid_request_error" {
			t.Errorf("%s %s: %d, param %q: %s", b.path, b.body, a.status, m.Error.Param, m.Error.Message)
		}
	}
	if a := c.post("/v1/chat/completions", chat(""), "X-Sim-Scenario: usage"); a.status != 400 || !bytes.Contains(a.body, []byte("near it: usage-own")) {
		t.Errorf("unknown scenario: %d %s", a.status, a.body)
	}
	// A file name is never taken from the network.
	if a := c.post("/v1/chat/completions", chat(""), "X-Sim-Scenario: ../../docs/sim.md"); a.status != 400 || !bytes.Contains(a.body, []byte("no built-in scenario")) {
		t.Errorf("file name: %d %s", a.status, a.body)
	}
}

// message_ is an error document.
type message_ struct {
	Error struct{ Message, Type, Param, Code string }
}

func TestStrict(t *testing.T) {
	server := start(t, Scenario{Tokens: 3, Strict: true})
	c := dial(t, server)
	for members, param := range map[string]string{
		`"ignore_eos":true`: "ignore_eos",
		`"min_tokens":3`:    "min_tokens",
		`"stream_options":{"include_usage":true,"continuous_usage_stats":true}`: "stream_options.continuous_usage_stats",
		`"chat_template_kwargs":{}`: "chat_template_kwargs",
	} {
		var m message_
		a := c.post("/v1/chat/completions", chat(members))
		if err := json.Unmarshal(a.body, &m); err != nil || a.status != 400 || m.Error.Param != param || m.Error.Code != "unknown_parameter" {
			t.Errorf("%s: %d %s", members, a.status, a.body)
		}
	}
	if a := c.post("/v1/chat/completions", chat(wantUsage+`,"temperature":0,"seed":3,"max_completion_tokens":9,"sim":{"itl":"1ms"}`)); a.status != 200 {
		t.Errorf("a plain request: %d %s", a.status, a.body)
	}
	if a := c.post("/v1/chat/completions", strings.Replace(chat(""), "velo-sim", "gpt-x", 1)); a.status != 404 || !bytes.Contains(a.body, []byte("model_not_found")) {
		t.Errorf("another model: %d %s", a.status, a.body)
	}
}

func TestStreamOptions(t *testing.T) {
	server := start(t, quick(6))
	c := dial(t, server)
	for members, want := range map[string]int{
		`"n":1`: 0, `"stream_options":{"include_usage":false}`: 0, `"stream_options":null`: 0, wantUsage: 1,
		`"stream_options":{"include_usage":true,"continuous_usage_stats":true}`: 1 + 6 + 1 + 1,
		`"stream_options":{"continuous_usage_stats":true}`:                      0,
	} {
		if o := tell(t, c.post("/v1/chat/completions", chat(members)).body); len(o.usages) != want {
			t.Errorf("%s: %d usages, want %d", members, len(o.usages), want)
		}
	}
}

func TestChoices(t *testing.T) {
	server := start(t, quick(6))
	c := dial(t, server)
	o := tell(t, c.post("/v1/chat/completions", chat(wantUsage+`,"n":3`)).body)
	if len(o.others) != 2 || CountTokens(o.others[2]) != 6 || o.usages[0].Completion != 18 || o.roles != 3 {
		t.Errorf("%+v", o)
	}
	o = tell(t, c.post("/v1/chat/completions", chat(wantUsage+`,"n":3`), "X-Sim-Scenario: n-ignored").body)
	if len(o.others) != 0 || o.usages[0].Completion != 24 {
		t.Errorf("n ignored: %+v", o)
	}
}

func TestTextCompletions(t *testing.T) {
	server := start(t, quick(9))
	c := dial(t, server)
	for body, tokens := range map[string]int{
		`"prompt":"` + prompt + `"`: CountTokens(prompt), `"prompt":["` + prompt + `"]`: CountTokens(prompt), `"prompt":[300,301,302]`: 3, `"prompt":""`: 0,
	} {
		a := c.post("/v1/completions", `{"model":"m","stream":true,`+wantUsage+`,`+body+`}`)
		o := tell(t, a.body)
		if CountTokens(o.content) != 9 || o.finish != "stop" || o.roles != 0 || o.usages[0].Prompt != tokens || !o.done {
			t.Errorf("%s: %+v", body, o)
		}
		if m := o.messages[0]; m.Object != "text_completion" || !strings.HasPrefix(m.ID, "cmpl-") || m.Model != "m" || m.Choices[0].Text == "" {
			t.Errorf("%s: first chunk %+v", body, m)
		}
	}
	a := c.post("/completions", `{"prompt":"x","max_tokens":4,"logprobs":1}`)
	var m struct {
		Choices []struct {
			Text     string
			Logprobs struct{ Tokens []string }
		}
		Usage usage
	}
	if err := json.Unmarshal(a.body, &m); err != nil || len(m.Choices[0].Logprobs.Tokens) != 4 || strings.Join(m.Choices[0].Logprobs.Tokens, "") != m.Choices[0].Text || m.Usage.Completion != 4 {
		t.Errorf("%v: %s", err, a.body)
	}
}

// A reply that is no stream carries what a stream would have.
func TestDocuments(t *testing.T) {
	server := start(t, quick(12))
	c := dial(t, server)
	post := func(members string) (m struct {
		Object  string
		Choices []struct {
			Message struct {
				Role      string
				Content   json.RawMessage
				Reasoning string `json:"reasoning_content"`
				Refusal   string
				ToolCalls []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			FinishReason string `json:"finish_reason"`
			Logprobs     struct {
				Content []struct {
					Token string
					Bytes []int
				}
			}
			TokenIDs []int64 `json:"token_ids"`
		}
		Usage   usage
		Timings map[string]float64
	}) {
		t.Helper()
		a := c.post("/v1/chat/completions", strings.Replace(chat(members), `"stream":true`, `"stream":false`, 1))
		if err := json.Unmarshal(a.body, &m); err != nil || a.status != 200 || a.header["content-type"] != "application/json" {
			t.Fatalf("%s: %v: %d %s", members, err, a.status, a.body)
		}
		return m
	}
	text := func(raw json.RawMessage) (s string) { json.Unmarshal(raw, &s); return s }
	m := post(`"logprobs":true,"return_token_ids":true`)
	c0 := m.Choices[0]
	if CountTokens(text(c0.Message.Content)) != 12 || c0.FinishReason != "stop" || m.Usage.Completion != 12 || len(c0.Logprobs.Content) != 12 || len(c0.TokenIDs) != 12 {
		t.Errorf("%+v", m)
	}
	for i, piece := range Tokens(text(c0.Message.Content)) {
		if l := c0.Logprobs.Content[i]; l.Token != piece || len(l.Bytes) != len(piece) || c0.TokenIDs[i] != tokenID(piece) {
			t.Errorf("token %d is %q: %+v, id %d", i, piece, l, c0.TokenIDs[i])
		}
	}
	if m := post(`"sim":{"reasoning":{"tokens":5}}`); CountTokens(m.Choices[0].Message.Reasoning) != 5 || CountTokens(text(m.Choices[0].Message.Content)) != 7 || m.Usage.Details.Reasoning != 5 {
		t.Errorf("reasoning: %+v", m)
	}
	if m := post(`"sim":{"tool_calls":1}`); m.Choices[0].FinishReason != "tool_calls" || len(m.Choices[0].Message.ToolCalls) != 1 || string(m.Choices[0].Message.Content) != "null" {
		t.Errorf("tools: %+v", m)
	}
	if m := post(`"sim":{"refusal":true,"timings":true}`); CountTokens(m.Choices[0].Message.Refusal) != 12 || m.Timings["predicted_n"] != 12 {
		t.Errorf("refusal: %+v", m)
	}
	if m := post(`"sim":{"content_parts":true}`); !strings.HasPrefix(string(m.Choices[0].Message.Content), `[{"type":"text"`) {
		t.Errorf("parts: %s", m.Choices[0].Message.Content)
	}
	if m := post(`"sim":{"usage":"absent"}`); m.Usage.Prompt != 0 {
		t.Errorf("usage absent: %+v", m.Usage)
	}
	if m := post(`"n":2`); len(m.Choices) != 2 || m.Usage.Completion != 24 {
		t.Errorf("n: %+v", m)
	}
	for fault, want := range map[string]string{"error": "complete", "malformed": "complete", "truncate": "cut", "eof": "cut", "reset": "reset", "hang": "timeout", "silence": "timeout"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			a := dial(t, server).post("/v1/chat/completions", strings.Replace(chat(`"sim":{"fault":{"kind":"`+fault+`"}}`), `"stream":true`, `"stream":false`, 1))
			if a.end != want {
				t.Errorf("ends with %s, want %s", a.end, want)
			}
			if json.Valid(a.body) != (fault == "error") || (a.status == 500) != (fault == "error") {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
}

// Tokens are told apart in streams too, whichever way a client counts.
func TestTokenStream(t *testing.T) {
	server := start(t, Scenario{Tokens: 40, TokensPerChunk: 3, Regime: "unicode"})
	o := tell(t, dial(t, server).post("/v1/chat/completions", chat(`"logprobs":true,"return_token_ids":true`)).body)
	var ids []int64
	said := ""
	for _, m := range o.messages {
		for _, c := range m.Choices {
			ids = append(ids, c.TokenIDs...)
			var l struct{ Content []struct{ Token string } }
			if err := json.Unmarshal(c.Logprobs, &l); err != nil {
				t.Fatal(err)
			}
			if len(l.Content) != len(c.TokenIDs) {
				t.Errorf("%d logprobs and %d ids", len(l.Content), len(c.TokenIDs))
			}
			for _, token := range l.Content {
				said += token.Token
			}
		}
	}
	if len(ids) != 40 || said != o.content || CountTokens(o.content) != 40 {
		t.Errorf("%d ids, logprobs say %q, content %q", len(ids), said, o.content)
	}
}

func TestTokenize(t *testing.T) {
	server := start(t, quick(4))
	c := dial(t, server)
	const text = "Größe 海は 🚢 {\"a\": [1, 22222]}\n\n  x"
	quoted, _ := json.Marshal(text)
	for _, body := range []string{`{"model":"m","prompt":` + string(quoted) + `}`, `{"content":` + string(quoted) + `}`} {
		for _, path := range []string{"/tokenize", "/v1/tokenize"} {
			var m struct {
				Count  int
				Tokens []int64
			}
			a := c.post(path, body)
			if err := json.Unmarshal(a.body, &m); err != nil || a.status != 200 || m.Count != CountTokens(text) || len(m.Tokens) != m.Count {
				t.Fatalf("%v: %d %s", err, a.status, a.body)
			}
			ids, _ := json.Marshal(m.Tokens)
			var back struct{ Prompt string }
			b := c.post("/detokenize", `{"tokens":`+string(ids)+`}`)
			if err := json.Unmarshal(b.body, &back); err != nil || back.Prompt != text {
				t.Errorf("%v: %s", err, b.body)
			}
		}
	}
	if a := c.post("/tokenize", `{"prompt":""}`); !bytes.Contains(a.body, []byte(`"count":0`)) || !bytes.Contains(a.body, []byte(`"tokens":[]`)) {
		t.Errorf("empty text: %s", a.body)
	}
}

func TestOtherPaths(t *testing.T) {
	server, err := Start(Options{Model: "little", Scenario: quick(4)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if !strings.HasPrefix(server.URL(), "http://127.0.0.1:") || !strings.HasSuffix(server.URL(), "/v1") {
		t.Errorf("URL %s", server.URL())
	}
	c := dial(t, server)
	for _, p := range []struct {
		method, path string
		headers      string
		status       int
		want         string
	}{
		{"GET", "/v1/models", "", 200, `"owned_by":"velo-sim"`},
		{"GET", "/models", "", 200, `"id":"little"`},
		{"GET", "/v1/models/little", "", 200, `"id":"little"`},
		{"GET", "/v1/models/other", "", 404, "There is no"},
		{"GET", "/health", "", 200, `"ok"`},
		{"GET", "/v1/health", "", 200, `"ok"`},
		{"GET", "/v1/chat/completions", "", 405, "takes POST, not GET"},
		{"POST", "/v1/models", "", 405, "takes GET, not POST"},
		{"GET", "/", "", 404, "There is no"},
		{"GET", "/v1/models", "X-Sim-Scenario: unauthorized", 401, "API key"},
		{"GET", "/health", "X-Sim-Scenario: unauthorized", 200, "ok"},
		{"GET", "/health", "X-Sim-Scenario: unavailable", 503, "overloaded"},
		{"GET", "/v1/models", "X-Sim-Scenario: key", 401, "API key"},
		{"GET", "/v1/models", "X-Sim-Scenario: key\r\nAuthorization: Bearer velo-sim-key", 200, "little"},
		{"GET", "/v1/models", "X-Sim-Scenario: no-such", 400, "no-such"},
	} {
		c.send(p.method, p.path, "", strings.Split(p.headers+"\r\nA: b", "\r\n")[boolInt(p.headers == ""):]...)
		a := c.read()
		if a.status != p.status || !strings.Contains(string(a.body), p.want) {
			t.Errorf("%s %s (%s): %d %s", p.method, p.path, p.headers, a.status, a.body)
		}
	}
	if a := c.post("/v1/chat/completions", chat(""), "X-Sim-Scenario: key", "Authorization: Bearer velo-sim-key"); a.status != 200 {
		t.Errorf("with the key: %d", a.status)
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
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

func TestToolsAskedFor(t *testing.T) {
	server := start(t, quick(20))
	c := dial(t, server)
	const tools = `"tools":[{"type":"function","function":{"name":"find"}}]`
	if o := tell(t, c.post("/v1/chat/completions", chat(tools+`,"tool_choice":"required"`)).body); len(o.tools) != 1 || o.finish != "tool_calls" {
		t.Errorf("required: %+v", o)
	}
	if o := tell(t, c.post("/v1/chat/completions", chat(tools)).body); len(o.tools) != 0 || o.finish != "stop" {
		t.Errorf("not required: %+v", o)
	}
	if o := tell(t, c.post("/v1/chat/completions", chat(tools+`,"tool_choice":"required","max_tokens":9`)).body); o.finish != "length" || json.Valid([]byte(o.tools[0])) {
		t.Errorf("cut: %+v", o)
	}
}

// Prompt tokens are counted by the rule, template and images included.
func TestPromptTokens(t *testing.T) {
	server := start(t, Scenario{Tokens: 1, Usage: "own"})
	c := dial(t, server)
	for body, want := range map[string]int{
		`{"role":"user","content":"one two"}`:                                                          ReplyTokens + MessageTokens + 2,
		`{"role":"system","content":"one"},{"role":"user","content":"one two"}`:                        ReplyTokens + 2*MessageTokens + 3,
		`{"role":"assistant","content":null}`:                                                          ReplyTokens + MessageTokens,
		`{"role":"user","content":[{"type":"text","text":"a b"},{"type":"text","text":"c"}]}`:          ReplyTokens + MessageTokens + 3,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64"}}]}`: ReplyTokens + MessageTokens + ImageTokens,
	} {
		o := tell(t, c.post("/v1/chat/completions", `{"messages":[`+body+`],"stream":true}`).body)
		if o.usages[0].Prompt != want {
			t.Errorf("%s: %d prompt tokens, want %d", body, o.usages[0].Prompt, want)
		}
	}
}

// A prompt that came before costs no prefill and is reported.
func TestPrefixCache(t *testing.T) {
	server := start(t, Scenario{Tokens: 1, Usage: "own", Prefill: 2000, PrefixCache: true})
	c := dial(t, server)
	post := func(text string) usage {
		return tell(t, c.post("/v1/chat/completions", `{"messages":[{"role":"user","content":"`+text+`"}],"stream":true}`).body).usages[0]
	}
	long := strings.Repeat("word ", 100)
	first, second, other := post(long), post(long), post("salt "+long)
	if first.InPrompt.Cached != 0 || second.InPrompt.Cached != 96 || other.InPrompt.Cached != 0 {
		t.Errorf("%d, then %d, salted %d of %d tokens cached", first.InPrompt.Cached, second.InPrompt.Cached, other.InPrompt.Cached, first.Prompt)
	}
	var due []int64
	for _, w := range server.Truth() {
		if w.Kind == KindContent {
			due = append(due, w.Due)
		}
	}
	if saved := time.Duration(due[0] - due[1]); saved != 96*time.Second/2000 {
		t.Errorf("the cache saved %v", saved)
	}
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

// The log in the file and the truth in memory are the same.
func TestLog(t *testing.T) {
	var log bytes.Buffer
	server, err := Start(Options{Scenario: Scenario{Name: `odd "name"`, Tokens: 9, TokensPerChunk: 2, Choices: 2}, Log: &log, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	var working sync.WaitGroup
	for i := range 20 {
		c := dial(t, server)
		working.Go(func() {
			for range 5 {
				c.post("/v1/chat/completions", chat(""), fmt.Sprintf("X-Session-Id: caf\u00e9 %d", i))
			}
		})
	}
	working.Wait()
	truth := server.Truth()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	writes, err := ReadLog(&log)
	if err != nil {
		t.Fatal(err)
	}
	byStream := map[int64][]Write{}
	for _, w := range writes {
		byStream[w.Stream] = append(byStream[w.Stream], w)
	}
	var ordered []Write
	for i := int64(1); i <= 100; i++ {
		ordered = append(ordered, byStream[i]...)
	}
	if !reflect.DeepEqual(ordered, truth) || len(truth) != 100*(1+2+2*5+2+1+1) {
		t.Errorf("%d lines in the log, %d writes in memory", len(ordered), len(truth))
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestLogFails(t *testing.T) {
	server, err := Start(Options{Scenario: quick(2), Log: brokenWriter{}})
	if err != nil {
		t.Fatal(err)
	}
	if o := tell(t, dial(t, server).post("/v1/chat/completions", chat("")).body); !o.done {
		t.Error("a full disk must not stop a stream")
	}
	if err := server.Close(); err == nil || !strings.Contains(err.Error(), "cannot write the log: no space left") {
		t.Errorf("Close: %v", err)
	}
}

func TestReadLogRefuses(t *testing.T) {
	good := string((&Write{Stream: 1, Kind: KindContent, Chunk: 3}).append(nil))
	for text, want := range map[string]string{
		good + "{":                        "line 2",
		good + "\n\n" + good + "x\n":      "line 5",
		`{"stream":1}`:                    "line 1: stream and kind are missing",
		`{"stream":1,"kind":"x","q":2}`:   "unknown field",
		good[:len(good)-1] + good:         "more than one JSON value",
		strings.Repeat("x", maxLogLine+1): "too long",
	} {
		writes, err := ReadLog(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "cannot read log") {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
		if strings.HasPrefix(text, good) && len(writes) == 0 {
			t.Errorf("%.60q: the good line is lost", text)
		}
	}
	if writes, err := ReadLog(strings.NewReader("\r\n" + good + "  \n")); err != nil || len(writes) != 1 || writes[0].Chunk != 3 {
		t.Errorf("%v, %v", writes, err)
	}
}

func FuzzReadLog(f *testing.F) {
	full := Write{Stream: 7, Conn: 2, Session: "s\"\n", ID: "é", Scenario: "x", Chunk: -1, Kind: KindUsage, Choice: 3, Tokens: 4, Bytes: 5,
		Parts: 6, Request: math.MaxInt64, Due: -8, Before: 9, After: 10, MonoBefore: 11, MonoAfter: 12}
	f.Add(string(full.append(nil)))
	f.Add("{}\n{")
	f.Fuzz(func(t *testing.T, text string) {
		writes, err := ReadLog(strings.NewReader(text))
		if err != nil {
			return
		}
		var again []byte
		for i := range writes {
			again = writes[i].append(again)
		}
		back, err := ReadLog(bytes.NewReader(again))
		if err != nil || !reflect.DeepEqual(back, writes) {
			t.Fatalf("%q reads back as %+v, %v", again, back, err)
		}
	})
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

// The truth is bounded: the oldest streams go.
func TestTruthBound(t *testing.T) {
	s := &Server{keep: true, open: map[*stream]struct{}{}}
	for i := range 40 {
		o := &stream{server: s, number: int64(i + 1), conn: &conn{}, script: &script{chunks: make([]chunk, keepLimit/16)}, stamps: make([]stamp, keepLimit/16)}
		s.retire(o)
	}
	if s.keptSize != keepLimit || len(s.kept) != 16 || s.kept[0].number != 25 {
		t.Errorf("%d chunks of %d streams, the first is %d", s.keptSize, len(s.kept), s.kept[0].number)
	}
}

// Whatever bytes a client sends: an answer or a closed connection, never a
// panic, and the next client is served.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(chat(wantUsage)))
	f.Add([]byte(chat(`"sim":{"split":"bytes","tokens":3},"n":2,"logprobs":true`)))
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"tools":[1],"tool_choice":"required"}`))
	s := &Server{model: "velo-sim", scenario: quick(4), served: map[string]int{}}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, chat := range []bool{true, false} {
			p := s.answer(&http.Request{Method: "POST", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}}, body, 1, time.Now(), false, chat)
			if p == nil || len(p.sends) > 0 && p.sends[len(p.sends)-1].end != len(p.wire) {
				t.Fatalf("%d bytes in the wire, the last write ends at %d", len(p.wire), p.sends[len(p.sends)-1].end)
			}
			completed := 0
			for i, w := range p.sends {
				completed += w.chunks
				if i > 0 && w.end < p.sends[i-1].end {
					t.Fatal("writes out of order")
				}
			}
			if completed != len(p.chunks) {
				t.Fatalf("%d of %d chunks are sent", completed, len(p.chunks))
			}
		}
	})
}
