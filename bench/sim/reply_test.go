package sim

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

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
