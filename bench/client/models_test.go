package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestModels(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		want         []Model
		says         string
	}{
		{"vLLM", whole(200, "application/json", `{"object":"list","data":[{"id":"a","owned_by":"vllm","max_model_len":4096},{"id":"b","owned_by":"vllm"}]}`),
			[]Model{{"a", "vllm", 4096}, {"b", "vllm", 0}}, ""},
		{"llama.cpp", whole(200, "application/json", `{"data":[{"id":"a","owned_by":"llamacpp","meta":{"n_ctx_train":32768}}]}`), []Model{{"a", "llamacpp", 32768}}, ""},
		{"twice", whole(200, "application/json", `{"data":[{"id":"a"},{"id":"a"},{"owned_by":"x"},5]}`), []Model{{"a", "", 0}}, ""},
		{"bare list", whole(200, "application/json", `[{"id":"a"}]`), []Model{{"a", "", 0}}, ""},
		{"none", whole(200, "application/json", `{"data":[]}`), nil, ""},
		{"page", whole(200, "text/html", "<html>"), nil, "this is a web page, not an API"},
		{"words", whole(200, "text/plain", "hello"), nil, `not a list of models but "hello"`},
		{"object", whole(200, "application/json", `{"models":5}`), nil, "not a list of models"},
		{"401", whole(401, "application/json", `{"error":{"message":"no"}}`), nil, "the server wants an API key"},
		{"404", whole(404, "text/plain", "nope"), nil, "/v1/models: check the base URL"},
		{"no HTTP", "hello", nil, "before it answered"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := newClient(t, serve(t, saysAndCloses(c.answer))).Models(t.Context())
			if c.says == "" && (err != nil || !reflect.DeepEqual(got, c.want)) {
				t.Errorf("got %+v, %v", got, err)
			}
			if c.says != "" && (err == nil || !strings.HasPrefix(err.Error(), "cannot list models: ") || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("stopped", func(t *testing.T) {
		c := newClient(t, "http://"+silentListener(t))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		if _, err := c.Models(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("connect timeout", func(t *testing.T) {
		c := newClient(t, "http://"+fullListener(t), func(o *Options) { o.Timeout.Connect = 30 * time.Millisecond })
		if _, err := c.Models(t.Context()); err == nil || !strings.Contains(err.Error(), "within 30ms: nothing answers there") {
			t.Errorf("got %v", err)
		}
	})
}

func TestHealth(t *testing.T) {
	for _, c := range []struct{ answer, says string }{
		{whole(200, "text/plain", ""), ""},
		{whole(404, "text/plain", ""), ""},
		{whole(405, "text/plain", ""), ""},
		{whole(503, "application/json", `{"error":{"message":"Loading model"}}`), "the server is not well: the server is not ready or overloaded: wait until it has loaded the model"},
		{whole(401, "application/json", `{}`), "wants an API key"},
		{"", "cannot reach the server: the server closed the connection"},
	} {
		path := ""
		cl := newClient(t, serve(t, func(k net.Conn, r request) bool {
			path = r.URL.Path
			return saysAndCloses(c.answer)(k, r)
		}))
		err := cl.Health(t.Context())
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%.20q: got %v", c.answer, err)
		}
		if path != "/health" {
			t.Errorf("asked for %s", path)
		}
	}
}

// TestTokenize speaks to servers of each form, at each place.
func TestTokenize(t *testing.T) {
	words := func(body map[string]any, name string) (int, bool) {
		s, ok := body[name].(string)
		return len(strings.Fields(s)), ok
	}
	vllm := func(body map[string]any) string {
		n, ok := words(body, "prompt")
		if !ok {
			return whole(422, "application/json", `{"detail":"prompt: field required"}`)
		}
		if body["add_special_tokens"] != false || body["model"] != "m" {
			return whole(400, "application/json", "{}")
		}
		return whole(200, "application/json", fmt.Sprintf(`{"count":%d,"max_model_len":10}`, n))
	}
	llama := func(body map[string]any) string { // answers an unknown member with no tokens
		n, _ := words(body, "content")
		list := strings.TrimSuffix(strings.Repeat("7,", n), ",")
		return whole(200, "application/json", `{"tokens":[`+list+`]}`)
	}
	for _, c := range []struct {
		name, path string
		answer     func(map[string]any) string
	}{
		{"vLLM", "/tokenize", vllm}, {"vLLM below", "/v1/tokenize", vllm},
		{"llama.cpp", "/tokenize", llama}, {"llama.cpp below", "/v1/tokenize", llama},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked := 0
			cl := newClient(t, serve(t, func(k net.Conn, r request) bool {
				asked++
				if r.URL.Path != c.path {
					return says(whole(404, "text/plain", "no"))(k, r)
				}
				var body map[string]any
				if json.Unmarshal(r.body, &body) != nil {
					return false
				}
				return says(c.answer(body))(k, r)
			}))
			for text, want := range map[string]int{"one two three": 3, "": 0, "one": 1} {
				if n, err := cl.Tokenize(t.Context(), "m", text); err != nil || n != want {
					t.Errorf("%q: got %d, %v", text, n, err)
				}
			}
			asked = 0
			if _, err := cl.Tokenize(t.Context(), "m", "a b"); err != nil || asked != 1 {
				t.Errorf("it asked %d times: %v", asked, err)
			}
		})
	}
	for _, c := range []struct {
		answer string
		none   bool
		says   string
	}{
		{whole(404, "text/plain", ""), true, ""},
		{whole(501, "text/plain", ""), true, ""},
		{whole(200, "text/html", "<html>"), true, ""},
		{whole(200, "application/json", `{"count":-1}`), true, ""},
		{whole(401, "application/json", "{}"), false, "cannot count tokens: the server wants an API key"},
		{"", false, "cannot count tokens: the server closed the connection"},
	} {
		n, err := newClient(t, serve(t, saysAndCloses(c.answer))).Tokenize(t.Context(), "m", "a b")
		if err == nil || errors.Is(err, ErrNoTokenizer) != c.none || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.30q: got %d, %v", c.answer, n, err)
		}
	}
}
