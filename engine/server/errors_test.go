package server

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"velo/engine/sched"
)

// refusals are requests that must be refused, each with its code and the member that is named. Between them they
// have every code of 400.
var refusals = []struct {
	path, body string
	code       Code
	param      string
}{
	{"/v1/chat/completions", ``, InvalidBody, ""},
	{"/v1/chat/completions", `   `, InvalidBody, ""},
	{"/v1/chat/completions", `{`, InvalidBody, ""},
	{"/v1/chat/completions", `[]`, InvalidBody, ""},
	{"/v1/chat/completions", `"text"`, InvalidBody, ""},
	{"/v1/chat/completions", `{} {}`, InvalidBody, ""},
	{"/v1/chat/completions", `{"temperature":NaN}`, InvalidBody, ""},
	{"/v1/chat/completions", `{"temperature":Infinity}`, InvalidBody, ""},
	{"/v1/chat/completions", "{\"model\":\"\xff\"}", InvalidBody, ""},
	{"/v1/chat/completions", "{\"model\":\"\x00\"}", InvalidBody, ""},
	{"/v1/chat/completions", strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000), InvalidBody, ""},
	{"/v1/chat/completions", strings.Repeat(`{"a":`, 100_000), InvalidBody, ""},
	{"/v1/chat/completions", `{"n":1,"n":2,` + hello + `}`, InvalidBody, "n"},
	{"/v1/chat/completions", `{` + hello + `,"stream":"yes"}`, InvalidBody, "stream"},
	{"/v1/chat/completions", `{` + hello + `,"stream_options":3}`, InvalidBody, "stream_options"},
	{"/v1/chat/completions", `{` + hello + `,"max_tokens":"10"}`, InvalidBody, "max_tokens"},
	{"/v1/chat/completions", `{` + hello + `,"max_tokens":0}`, InvalidBody, "max_tokens"},
	{"/v1/chat/completions", `{` + hello + `,"max_tokens":1.5}`, InvalidBody, "max_tokens"},
	{"/v1/chat/completions", `{` + hello + `,"max_completion_tokens":-1}`, InvalidBody, "max_completion_tokens"},
	{"/v1/chat/completions", `{` + hello + `,"min_tokens":-1}`, InvalidBody, "min_tokens"},
	{"/v1/chat/completions", `{` + hello + `,"stop":5}`, InvalidBody, "stop"},
	{"/v1/chat/completions", `{` + hello + `,"stop":["a",5]}`, InvalidBody, "stop"},
	{"/v1/chat/completions", `{` + hello + `,"stop":[` + strings.Repeat(`"a",`, 100) + `"a"]}`, InvalidBody, "stop"},
	{"/v1/chat/completions", `{` + hello + `,"truncate_prompt_tokens":0}`, InvalidBody, "truncate_prompt_tokens"},
	{"/v1/chat/completions", `{` + hello + `,"metadata":[]}`, InvalidBody, "metadata"},
	{"/v1/chat/completions", `{` + hello + `,"metadata":{"session_id":7}}`, InvalidBody, "metadata.session_id"},
	{"/v1/chat/completions", `{}`, InvalidMessages, "messages"},
	{"/v1/chat/completions", `{"messages":[]}`, InvalidMessages, "messages"},
	{"/v1/chat/completions", `{"messages":[1]}`, InvalidMessages, "messages[0]"},
	{"/v1/chat/completions", `{"messages":[{}]}`, InvalidMessages, "messages[0].role"},
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":7}]}`, InvalidMessages, "messages[0].content"},
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":["x"]}]}`, InvalidMessages, "messages[0].content[0]"},
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"text":"x"}]}]}`, InvalidMessages, "messages[0].content[0].type"},
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"text"}]}]}`, InvalidMessages, "messages[0].content[0].text"},
	{"/v1/chat/completions", `{"messages":[{"role":"assistant","tool_calls":[{}]}]}`, InvalidMessages, "messages[0].tool_calls[0].function"},
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:"}}]}]}`, UnsupportedContent, "messages[0].content[0]"},
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}]}`, UnsupportedContent, "messages[0].content[0]"},
	{"/v1/chat/completions", `{` + hello + `,"temperature":-1}`, InvalidSampling, "temperature"},
	{"/v1/chat/completions", `{` + hello + `,"temperature":1e999}`, InvalidBody, "temperature"},
	{"/v1/chat/completions", `{` + hello + `,"top_p":2}`, InvalidSampling, "top_p"},
	{"/v1/chat/completions", `{` + hello + `,"top_k":-2}`, InvalidSampling, "top_k"},
	{"/v1/chat/completions", `{` + hello + `,"min_p":1.5}`, InvalidSampling, "min_p"},
	{"/v1/chat/completions", `{` + hello + `,"repetition_penalty":0}`, InvalidSampling, "repetition_penalty"},
	{"/v1/chat/completions", `{` + hello + `,"presence_penalty":3}`, InvalidSampling, "presence_penalty"},
	{"/v1/chat/completions", `{` + hello + `,"frequency_penalty":-3}`, InvalidSampling, "frequency_penalty"},
	{"/v1/chat/completions", `{` + hello + `,"logit_bias":{"x":1}}`, InvalidSampling, "logit_bias"},
	{"/v1/chat/completions", `{` + hello + `,"logit_bias":{"99999":1}}`, InvalidSampling, "logit_bias"},
	{"/v1/chat/completions", `{` + hello + `,"logit_bias":{"1":101}}`, InvalidSampling, "logit_bias"},
	{"/v1/chat/completions", `{` + hello + `,"n":0}`, InvalidSampling, "n"},
	{"/v1/chat/completions", `{` + hello + `,"n":1000}`, InvalidSampling, "n"},
	{"/v1/chat/completions", `{` + hello + `,"logprobs":true,"top_logprobs":21}`, InvalidSampling, "top_logprobs"},
	{"/v1/chat/completions", `{` + hello + `,"top_logprobs":2}`, InvalidSampling, "top_logprobs"},
	{"/v1/chat/completions", `{` + hello + `,"reasoning_effort":"lots"}`, InvalidEffort, "reasoning_effort"},
	{"/v1/chat/completions", `{` + hello + `,"reasoning_effort":5}`, InvalidEffort, "reasoning_effort"},
	{"/v1/chat/completions", `{` + hello + `,"chat_template_kwargs":5}`, InvalidKwargs, "chat_template_kwargs"},
	{"/v1/chat/completions", `{` + hello + `,"chat_template_kwargs":{"enable_thinking":"no"}}`, InvalidKwargs, "chat_template_kwargs.enable_thinking"},
	{"/v1/chat/completions", `{` + hello + `,"chat_template_kwargs":{"messages":[]}}`, InvalidKwargs, "chat_template_kwargs.messages"},
	{"/v1/chat/completions", `{` + hello + `,"tools":{}}`, InvalidBody, "tools"},
	{"/v1/chat/completions", `{` + hello + `,"tools":[{"type":"code"}]}`, InvalidTools, "tools[0].type"},
	{"/v1/chat/completions", `{` + hello + `,"tools":[{"type":"function"}]}`, InvalidTools, "tools[0].function"},
	{"/v1/chat/completions", `{` + hello + `,"tools":[{"type":"function","function":{"name":"a b"}}]}`, InvalidTools, "tools[0].function.name"},
	{"/v1/chat/completions", `{` + hello + `,"tools":[{"type":"function","function":{"name":"a","parameters":3}}]}`, InvalidTools, "tools[0].function.parameters"},
	{"/v1/chat/completions", `{` + hello + `,"tools":[` + toolF + `,` + toolF + `]}`, InvalidTools, "tools[1].function.name"},
	{"/v1/chat/completions", `{` + hello + `,"tool_choice":"required"}`, InvalidToolChoice, "tool_choice"},
	{"/v1/chat/completions", `{` + hello + `,"tool_choice":"some"}`, InvalidToolChoice, "tool_choice"},
	{"/v1/chat/completions", `{` + hello + `,"tools":[` + toolF + `],"tool_choice":{"type":"function","function":{"name":"g"}}}`, InvalidToolChoice, "tool_choice.function.name"},
	{"/v1/chat/completions", `{` + hello + `,"functions":[]}`, UnsupportedParam, "functions"},
	{"/v1/chat/completions", `{` + hello + `,"modalities":["audio"]}`, UnsupportedParam, "modalities"},
	{"/v1/chat/completions", `{` + hello + `,"continue_final_message":true}`, UnsupportedParam, "continue_final_message"},
	{"/v1/chat/completions", `{` + hello + `,"best_of":5}`, UnsupportedParam, "best_of"},
	{"/v1/chat/completions", `{` + hello + `,"response_format":"json"}`, InvalidFormat, "response_format"},
	{"/v1/chat/completions", `{` + hello + `,"response_format":{"type":"xml"}}`, InvalidFormat, "response_format.type"},
	{"/v1/chat/completions", `{` + hello + `,"response_format":{"type":"json_schema"}}`, InvalidFormat, "response_format.json_schema.schema"},
	{"/v1/chat/completions", `{` + hello + `,"response_format":{"type":"json_schema","json_schema":{"strict":true,"schema":{"type":"nothing"}}}}`, InvalidFormat, "response_format.json_schema.schema"},
	{"/v1/chat/completions", `{` + hello + `,"response_format":{"type":"json_object"},"guided_regex":"a"}`, InvalidFormat, "guided_regex"},
	{"/v1/chat/completions", `{` + hello + `,"grammar":"root ::= ["}`, InvalidGrammar, "grammar"},
	{"/v1/chat/completions", `{` + hello + `,"guided_regex":"("}`, InvalidGrammar, "guided_regex"},
	{"/v1/chat/completions", `{` + hello + `,"guided_choice":[]}`, InvalidGrammar, "guided_choice"},
	{"/v1/chat/completions", `{` + hello + `,"guided_choice":[1]}`, InvalidGrammar, "guided_choice"},
	{"/v1/chat/completions", `{` + hello + `,"structured_outputs":{"structural_tag":"x"}}`, UnsupportedParam, "structured_outputs.structural_tag"},
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":"` + strings.Repeat("word ", 1000) + `"}]}`, ContextExceeded, "messages"},
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":"` + strings.Repeat("word ", 1_000_000) + `"}]}`, ContextExceeded, "messages"},
	{"/v1/completions", `{}`, InvalidBody, "prompt"},
	{"/v1/completions", `{"prompt":""}`, InvalidBody, "prompt"},
	{"/v1/completions", `{"prompt":[]}`, InvalidBody, "prompt"},
	{"/v1/completions", `{"prompt":5}`, InvalidBody, "prompt"},
	{"/v1/completions", `{"prompt":[{}]}`, InvalidBody, "prompt[0]"},
	{"/v1/completions", `{"prompt":["a",5]}`, InvalidBody, "prompt[1]"},
	{"/v1/completions", `{"prompt":[5,"a"]}`, InvalidTokens, "prompt"},
	{"/v1/completions", `{"prompt":[5,99999]}`, InvalidTokens, "prompt[1]"},
	{"/v1/completions", `{"prompt":[5,-1]}`, InvalidTokens, "prompt[1]"},
	{"/v1/completions", `{"prompt":[[5],[]]}`, InvalidTokens, "prompt[1]"},
	{"/v1/completions", `{"prompt":[` + strings.Repeat("5,", 500_000) + `5]}`, ContextExceeded, "prompt"},
	{"/v1/completions", `{"prompt":"a","echo":true}`, UnsupportedParam, "echo"},
	{"/v1/completions", `{"prompt":"a","suffix":"b"}`, UnsupportedParam, "suffix"},
	{"/v1/completions", `{"prompt":"a","logprobs":21}`, InvalidSampling, "logprobs"},
	{"/v1/completions", `{"prompt":[` + strings.Repeat(`"a",`, 300) + `"a"]}`, InvalidBody, "prompt"},
	{"/v1/completions", `{"prompt":["a","a","a","a","a","a","a","a","a"],"n":32}`, InvalidBody, "n"},
	{"/v1/tokenize", `{}`, InvalidBody, "prompt"},
	{"/v1/tokenize", `{"prompt":["a"]}`, InvalidBody, "prompt"},
	{"/v1/detokenize", `{}`, InvalidBody, "tokens"},
	{"/v1/detokenize", `{"tokens":"a"}`, InvalidTokens, "tokens"},
	{"/v1/detokenize", `{"tokens":[1e30]}`, InvalidTokens, "tokens[0]"},
}

const toolF = `{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}}}`

// every code that a test has seen.
func checkError(t *testing.T, what string, status_ int, b []byte, code Code, param string) {
	t.Helper()
	a := decode(t, b)
	if a.Error == nil {
		t.Errorf("%.200s gave %d %.200s, not an error", what, status_, b)
		return
	}
	e := a.Error
	if Code(e.Code) != code || status_ != status[code] || e.Param != param {
		t.Errorf("%.200s gave %d %s about %q (%s); want %d %s about %q", what, status_, e.Code, e.Param, e.Message, status[code], code, param)
	}
	if !strings.HasPrefix(e.Message, "cannot ") || len(e.Message) > 400 || e.Type == "" {
		t.Errorf("%.200s says %q of type %q", what, e.Message, e.Type)
	}
}

// TestErrors goes through every code there is: each has a request that gets it.
func TestErrors(t *testing.T) {
	seen := map[Code]bool{}
	r := start(t, nil)
	for _, c := range refusals {
		code, _, b := r.post(t, c.path, c.body)
		checkError(t, c.path+" "+c.body, code, b, c.code, c.param)
		seen[c.code] = true
	}
	if st := r.scheduler.Status(); st.Steps != 0 {
		t.Errorf("refused requests took %d steps", st.Steps)
	}

	code, _, b := r.get(t, "/v1/nothing")
	checkError(t, "another path", code, b, NotFound, "")
	code, _, b = r.get(t, "/v1/models/org/other")
	checkError(t, "another model", code, b, ModelNotFound, "model")
	code, h, b := r.get(t, "/v1/chat/completions")
	checkError(t, "GET", code, b, MethodNotAllowed, "")
	if h.Get("Allow") != "POST" {
		t.Errorf("Allow is %q", h.Get("Allow"))
	}
	code, _, b = r.post(t, "/v1/chat/completions", `{}`, "Content-Encoding", "gzip")
	checkError(t, "gzip", code, b, InvalidBody, "")
	seen[NotFound], seen[ModelNotFound], seen[MethodNotAllowed] = true, true, true

	plain := start(t, func(o *Options, _ *sched.Options) { o.Engine.Template = nil })
	code, _, b = plain.post(t, "/v1/chat/completions", `{`+hello+`}`)
	checkError(t, "no template", code, b, NoTemplate, "messages")
	seen[NoTemplate] = true

	guarded := start(t, func(o *Options, _ *sched.Options) { o.Key = "secret" })
	for _, header := range []string{"", "Bearer wrong", "Bearer", "Basic secret", "secret", "Bearer secret2"} {
		code, h, b = guarded.post(t, "/v1/chat/completions", `{`+hello+`}`, "Authorization", header)
		checkError(t, "key "+header, code, b, InvalidKey, "")
		if h.Get("Www-Authenticate") != "Bearer" {
			t.Errorf("WWW-Authenticate is %q", h.Get("Www-Authenticate"))
		}
	}
	if code, _, b := guarded.post(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":1}`, "Authorization", "Bearer secret"); code != 200 {
		t.Errorf("the right key gave %d %s", code, b)
	}
	if code, _, _ := guarded.get(t, "/health"); code != 200 {
		t.Errorf("health without a key gave %d", code)
	}
	seen[InvalidKey] = true

	broken := start(t, func(o *Options, so *sched.Options) { so.PanicSteps = 3 })
	code, _, b = broken.post(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":50,"ignore_eos":true}`)
	checkError(t, "a step that panics", code, b, GenerationFailed, "")
	if e := decode(t, b).Error; e.Generated == nil || *e.Generated == 0 {
		t.Errorf("a failed answer tells %v tokens", e.Generated)
	}
	code, _, b = broken.post(t, "/v1/chat/completions", `{`+hello+`}`)
	checkError(t, "after that", code, b, Unavailable, "")
	seen[GenerationFailed], seen[Unavailable] = true, true

	r.server.o.Engine = nil // a fault of ours
	code, _, b = r.get(t, "/v1/models")
	r.server.o.Engine = r.engine
	checkError(t, "a fault", code, b, Internal, "")
	seen[Internal] = true

	// These have tests of their own.
	seen[Busy], seen[RequestTimeout], seen[TooLarge] = true, true, true
	for code := range status {
		if !seen[code] {
			t.Errorf("nothing here gets %s", code)
		}
	}
}

// TestStreamFails tells of a failure within a stream.
func TestStreamFails(t *testing.T) {
	r := start(t, func(_ *Options, so *sched.Options) { so.PanicSteps = 4 })
	code, _, b := r.post(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":50,"ignore_eos":true,"stream":true}`)
	if code != 200 {
		t.Fatalf("%d %s", code, b)
	}
	chunks := events_(t, b)
	n := len(chunks)
	if n < 3 || chunks[n-2].Error == nil || chunks[n-2].Error.Code != string(GenerationFailed) || chunks[n-2].Error.Type != "server_error" {
		t.Fatalf("the chunks are %s", b)
	}
	if last := chunks[n-1]; len(last.Choices) != 1 || last.Choices[0].Finish != "stop" {
		t.Errorf("the last chunk is %+v", last)
	}
}

func TestBusy(t *testing.T) {
	r := start(t, func(_ *Options, so *sched.Options) { so.Waiting = -1 })
	ctx := t.Context()
	for range 4 {
		req, err := http.NewRequestWithContext(ctx, "POST", r.URL+"/v1/chat/completions", strings.NewReader(`{`+hello+`,"max_tokens":480,"ignore_eos":true,"stream":true}`))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
	}
	code, h, b := r.post(t, "/v1/chat/completions", `{`+hello+`}`)
	if code == 200 {
		t.Skip("the four were answered before the fifth came")
	}
	checkError(t, "the fifth", code, b, Busy, "")
	if h.Get("Retry-After") != "5" {
		t.Errorf("Retry-After is %q", h.Get("Retry-After"))
	}
}

func TestLargeBodies(t *testing.T) {
	r := start(t, nil)
	req, err := http.NewRequest("POST", r.URL+"/v1/chat/completions", strings.NewReader(`{"x":"`+strings.Repeat("y", maxBody)+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err == nil { // the server may have closed before everything was sent
		defer resp.Body.Close()
		if resp.StatusCode != 413 {
			t.Errorf("a body that is too large gave %d", resp.StatusCode)
		}
	}
	// The same without its length, as chunks.
	conn, err := net.Dial("tcp", r.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
	go func() {
		piece := strings.Repeat("y", 1<<20)
		for range maxBody>>20 + 1 {
			if _, err := fmt.Fprintf(conn, "%x\r\n%s\r\n", len(piece), piece); err != nil {
				return
			}
		}
	}()
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	buf := make([]byte, 4096)
	n, err := conn.Read(buf)
	if err != nil || !strings.HasPrefix(string(buf[:n]), "HTTP/1.1 413") {
		t.Errorf("a body that is too large in chunks gave %q, %v", buf[:n], err)
	}
	// All places are free again.
	if len(r.server.large) != 0 {
		t.Errorf("%d places for large bodies are still taken", len(r.server.large))
	}
}

func TestSlowBody(t *testing.T) {
	r := start(t, nil)
	r.server.bodyTimeout = 100 * time.Millisecond
	conn, err := net.Dial("tcp", r.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"mess")
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	buf := make([]byte, 4096)
	n, err := conn.Read(buf)
	if err != nil || !strings.HasPrefix(string(buf[:n]), "HTTP/1.1 408") || !strings.Contains(string(buf[:n]), string(RequestTimeout)) {
		t.Errorf("a body that stalls gave %q, %v", buf[:n], err)
	}
	// A body that ends early is no request.
	conn, err = net.Dial("tcp", r.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"mess")
	_ = conn.(*net.TCPConn).CloseWrite()
	n, _ = conn.Read(buf)
	if !strings.Contains(string(buf[:n]), string(InvalidBody)) {
		t.Errorf("half a body gave %q", buf[:n])
	}
}
