package server

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"velo/engine/sched"
)

// TestSmolLM2 asks a real model.
func TestSmolLM2(t *testing.T) {
	path := os.Getenv("VELO_SMOLLM2")
	if path == "" {
		t.Skip("VELO_SMOLLM2 is not set: make test sets it to a GGUF file of SmolLM2-135M-Instruct")
	}
	r := startOn(t, path, 1024, func(o *Options, _ *sched.Options) { o.Model = "smollm2" })
	question := `"messages":[{"role":"user","content":"What is the capital of France?"}],"temperature":0`
	a := r.ask(t, "/v1/chat/completions", `{`+question+`,"max_tokens":30}`)
	if text := *a.Choices[0].Message.Content; text != "The capital of France is Paris." || a.Choices[0].Finish != "stop" || a.Usage.Prompt != 37 {
		t.Errorf("it says %q (%s), %+v", text, a.Choices[0].Finish, a.Usage)
	}
	text, _, finish := said(r.chunks(t, "/v1/chat/completions", `{`+question+`,"max_tokens":30,"stream":true}`), 0)
	if text != "The capital of France is Paris." || finish != "stop" {
		t.Errorf("streamed it says %q (%s)", text, finish)
	}
	a = r.ask(t, "/v1/completions", `{"prompt":"The capital of France is","temperature":0,"max_tokens":1}`)
	if a.Choices[0].Text != " Paris" {
		t.Errorf("it goes on with %q", a.Choices[0].Text)
	}
	a = r.ask(t, "/v1/chat/completions", `{`+question+`,"max_tokens":100,"response_format":{"type":"json_schema","json_schema":{"name":"city","strict":true,"schema":{"type":"object","properties":{"capital":{"enum":["Rome","Paris","Oslo"]},"sure":{"type":"boolean"}},"required":["capital","sure"],"additionalProperties":false}}}}`)
	var v struct {
		Capital string
		Sure    *bool
	}
	if err := json.Unmarshal([]byte(*a.Choices[0].Message.Content), &v); err != nil || v.Capital != "Paris" || v.Sure == nil || a.Choices[0].Finish != "stop" {
		t.Errorf("after a schema it says %q (%s)", *a.Choices[0].Message.Content, a.Choices[0].Finish)
	}
	weather := `{"type":"function","function":{"name":"get_weather","description":"The weather in a city","parameters":{"type":"object","properties":{"city":{"enum":["Paris","Rome"]}},"required":["city"],"additionalProperties":false}}}`
	chunks := r.chunks(t, "/v1/chat/completions", `{"messages":[{"role":"user","content":"How is the weather in Paris?"}],"temperature":0,"max_tokens":100,"stream":true,"parallel_tool_calls":false,"tools":[`+weather+`],"tool_choice":"required"}`)
	name, arguments, deltas := "", "", 0
	for _, c := range chunks {
		for _, ch := range c.Choices {
			if ch.Delta == nil {
				continue
			}
			for _, call := range ch.Delta.Calls {
				name += call.Function.Name
				if arguments += call.Function.Arguments; call.Function.Arguments != "" {
					deltas++
				}
			}
		}
	}
	if _, _, finish := said(chunks, 0); name != "get_weather" || strings.Join(strings.Fields(arguments), "") != `{"city":"Paris"}` || finish != "tool_calls" || deltas < 2 {
		t.Errorf("it calls %s(%s) in %d deltas (%s)", name, arguments, deltas, finish)
	}
}
