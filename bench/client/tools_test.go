package client

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestToolMessages: calls and their results are sent as the API has them.
func TestToolMessages(t *testing.T) {
	c, err := New(Options{BaseURL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	call, err := c.Prepare(Chat{Model: "m", Messages: []Message{
		{Role: "user", Content: "Weather?"},
		{Role: "assistant", Calls: []ToolCall{{"c1", "weather", `{"at":"Ulm"}`}, {"c2", "time", "{}"}}},
		{Role: "tool", Content: "rain", CallID: "c1"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var body struct{ Messages json.RawMessage }
	if err := json.Unmarshal(call.Body(), &body); err != nil {
		t.Fatal(err)
	}
	want := `[{"role":"user","content":"Weather?"},` +
		`{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"at\":\"Ulm\"}"}},{"id":"c2","type":"function","function":{"name":"time","arguments":"{}"}}]},` +
		`{"role":"tool","content":"rain","tool_call_id":"c1"}]`
	if got := string(body.Messages); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestCallsComeBack: the pieces of calls are put together, with the identities that results must name.
func TestCallsComeBack(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		want   []ToolCall
	}{
		"in pieces": {`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}}]}
{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]}}]}
{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}]}}]}
{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}`, []ToolCall{{"a", "f", `{"x":1}`}, {"b", "g", "{}"}}},
		"identity first": {`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a"}]}}]}
{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]}}]}`, []ToolCall{{"a", "f", "{}"}}},
		"repeated": {`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"}}]}}]}
{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]}}]}`, []ToolCall{{"a", "f", "{}"}}},
		"none": {`{"choices":[{"delta":{"content":"x"}}]}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for _, line := range strings.Split(c.stream, "\n") {
				b.WriteString("data: " + line + "\n\n")
			}
			b.WriteString("data: [DONE]\n\n")
			got, _, _ := do(t, t.Context(), newClient(t, serve(t, says(whole(200, "text/event-stream", b.String())))))
			if !reflect.DeepEqual(got.Calls(), c.want) {
				t.Errorf("got %+v of %+v", got.Calls(), got.End)
			}
		})
	}
}

// TestErrorsNameTheParameter: which member of the request is refused is part of the message.
func TestErrorsNameTheParameter(t *testing.T) {
	c := &Client{}
	for body, want := range map[string]string{
		`{"error":{"message":"Unrecognized argument.","param":"min_p"}}`:                             "Unrecognized argument. (min_p)",
		`{"error":{"message":"Unknown parameter: 'min_p'.","param":"min_p"}}`:                        "Unknown parameter: 'min_p'.",
		`{"detail":[{"type":"extra_forbidden","loc":["body","min_p"],"msg":"Extra inputs are no"}]}`: "Extra inputs are no (min_p)",
		`{"detail":[{"loc":["body","messages",0,"role"],"msg":"Field required"}]}`:                   "Field required (messages.role)",
		`{"error":{"message":"x","param":null}}`:                                                     "x",
	} {
		if got := c.message([]byte(body)); got != want {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}
