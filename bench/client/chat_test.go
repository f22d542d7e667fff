package client

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestPrepare(t *testing.T) {
	c := newClient(t, "http://127.0.0.1:1")
	half, seed := 0.5, int64(7)
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	hello := []Message{{Role: "system", Content: "sys"}, {Role: "user", Content: "héllo <&>"}}
	for _, k := range []struct {
		name string
		chat Chat
		body string
		size int
	}{
		{"least", Chat{Model: "m", Messages: hello},
			`{"model":"m","messages":[{"role":"system","content":"sys"},{"role":"user","content":"héllo <&>"}],"stream":true,"stream_options":{"include_usage":true}}`, 13},
		{"all", Chat{Model: "m", Messages: hello[:1], MaxTokens: 9, MinTokens: 8, IgnoreEOS: true, Temperature: &half, TopP: &half, Seed: &seed, ReasoningEffort: "low", ContinuousUsage: true, Logprobs: true},
			`{"model":"m","messages":[{"role":"system","content":"sys"}],"stream":true,"stream_options":{"continuous_usage_stats":true,"include_usage":true},"max_tokens":9,"min_tokens":8,"ignore_eos":true,"temperature":0.5,"top_p":0.5,"seed":7,"reasoning_effort":"low","logprobs":true}`, 3},
		{"completion", Chat{Model: "m", Messages: hello, Completion: true, Logprobs: true},
			`{"model":"m","prompt":"héllo <&>","stream":true,"stream_options":{"include_usage":true},"logprobs":1}`, 10},
		{"extra", Chat{Model: "m", Messages: hello[:1], MaxTokens: 9, Temperature: &half, Extra: map[string]json.RawMessage{"temperature": raw("1"), "b": raw(` {"x" : [1]} `), "a": raw("true"), "stream_options": raw("null"), "n": raw("1")}},
			`{"model":"m","messages":[{"role":"system","content":"sys"}],"stream":true,"max_tokens":9,"temperature":1,"a":true,"b":{"x":[1]},"n":1}`, 3},
		{"max_completion_tokens", Chat{Model: "m", Messages: hello[:1], MaxTokens: 9, Extra: map[string]json.RawMessage{"max_completion_tokens": raw("9")}},
			`{"model":"m","messages":[{"role":"system","content":"sys"}],"stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":9}`, 3},
		{"image", Chat{Model: "m", Messages: []Message{{Role: "user", Content: "see", Images: []Image{{"a.png", "image/png", []byte{1, 2, 3}}}}}},
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQID"}}]}],"stream":true,"stream_options":{"include_usage":true}}`, 3},
	} {
		t.Run(k.name, func(t *testing.T) {
			call, err := c.Prepare(k.chat)
			if err != nil {
				t.Fatal(err)
			}
			if string(call.body) != k.body {
				t.Errorf("got  %s\nwant %s", call.body, k.body)
			}
			if call.Bytes() != k.size {
				t.Errorf("%d bytes, want %d", call.Bytes(), k.size)
			}
			var whole, parameters map[string]json.RawMessage
			if json.Unmarshal(call.body, &whole) != nil || json.Unmarshal(call.Parameters(), &parameters) != nil {
				t.Fatal("not JSON")
			}
			delete(whole, "messages")
			delete(whole, "prompt")
			a, _ := json.Marshal(whole)
			b, _ := json.Marshal(parameters)
			if string(a) != string(b) {
				t.Errorf("parameters are %s, want %s", b, a)
			}
		})
	}
}

func TestBadChat(t *testing.T) {
	c := newClient(t, "http://127.0.0.1:1")
	nan := math.NaN()
	hello := []Message{{Role: "user", Content: "x"}}
	picture := []Message{{Role: "user", Images: []Image{{"a.png", "image/png", []byte{1}}}}}
	extra := func(name, value string) map[string]json.RawMessage {
		return map[string]json.RawMessage{name: json.RawMessage(value)}
	}
	for says, chat := range map[string]Chat{
		"it has no message":                              {},
		"message 1: it has no role":                      {Messages: []Message{{Content: "x"}}},
		"temperature is not a number":                    {Messages: hello, Temperature: &nan},
		"/completions takes no images":                   {Messages: picture, Completion: true},
		`the image "b" cannot be sent: it has 0 bytes`:   {Messages: []Message{{Role: "user", Images: []Image{{"b", "image/png", nil}}}}},
		`parameter "x" is not JSON`:                      {Messages: hello, Extra: extra("x", "{")},
		`parameter "n" must be 1`:                        {Messages: hello, Extra: extra("n", "2")},
		`parameter "stream" must be true`:                {Messages: hello, Extra: extra("stream", "false")},
		`parameter "messages" is set by the request`:     {Messages: hello, Extra: extra("messages", "[]")},
		`parameter "prompt" is set by the request itsel`: {Messages: hello, Extra: extra("prompt", `""`)},
	} {
		if _, err := c.Prepare(chat); err == nil || !strings.HasPrefix(err.Error(), "cannot prepare a request: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}
