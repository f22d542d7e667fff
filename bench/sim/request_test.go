package sim

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

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
