package server

import (
	"net/http/httptest"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"velo/engine/chat"
)

// streamed runs an answer, cut into pieces, through the parser and what follows calls, as a stream
// does, and returns its text and calls, and how many deltas with arguments there were.
func streamed(t *testing.T, s *Server, style chat.Style, pieces []string) (content string, calls []chat.ToolCall, deltas int) {
	t.Helper()
	w := httptest.NewRecorder()
	out := newEvents(w, writeTimeout)
	f := s.chatForm()
	a := &answer{parser: chat.NewParser(style), begun: newCallStream(style), stop: -1}
	a.logprobs.want = -1
	for _, p := range pieces {
		f.say(s, out, a, a.say(p, false))
	}
	f.say(s, out, a, a.say("", true))
	out.send([]byte("[DONE]"))
	if err := out.flush(); err != nil {
		t.Fatal(err)
	}
	for _, c := range events_(t, w.Body.Bytes()) {
		d := c.Choices[0].Delta
		if d.Content != nil {
			content += *d.Content
		}
		for _, call := range d.Calls {
			for len(calls) <= call.Index {
				calls = append(calls, chat.ToolCall{})
			}
			calls[call.Index].Name += call.Function.Name
			if calls[call.Index].Arguments += call.Function.Arguments; call.Function.Arguments != "" {
				deltas++
			}
		}
	}
	return content, calls, deltas
}

// TestCallStream: however the text is cut, calls come out as the parser has them, and those in JSON
// come while they are written.
func TestCallStream(t *testing.T) {
	s := &Server{}
	types := chat.Tools{"f": {}, "g": {}}
	const long = `{"text": "a \"quoted\" } text", "list": [1, {"x": "<tool_call>"}]}`
	for _, c := range []struct {
		name  string
		style chat.Style
		text  string
		least int // deltas with arguments, when each character comes alone
	}{
		{"one", chat.Style{Format: chat.Tagged}, "so:<tool_call>\n{\"name\": \"f\", \"arguments\": " + long + "}\n</tool_call>", 20},
		{"two", chat.Style{Format: chat.Tagged}, "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>\n{\"name\": \"g\", \"arguments\": " + long + "}\n</tool_call>\n", 20},
		{"two in a block", chat.Style{Format: chat.Tagged}, "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}\n{\"name\":\"g\",\"arguments\":{\"b\":2}}</tool_call>", 5},
		{"after reasoning", chat.Style{Format: chat.Tagged, Think: true}, "<think>a <tool_call>{\"name\":\"f\",\"arguments\":{</think>x<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}</tool_call>", 5},
		{"opened", chat.Style{Format: chat.Tagged, Think: true, Opened: true}, "hm</think>\n\n<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}</tool_call>y", 5},
		{"missing bracket", chat.Style{Format: chat.Tagged}, "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":[1,2]</tool_call>", 5},
		{"arguments first", chat.Style{Format: chat.Tagged}, "<tool_call>{\"arguments\":{\"a\":1},\"name\":\"f\"}</tool_call>", 1},
		{"arguments as text", chat.Style{Format: chat.Tagged}, "<tool_call>{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}</tool_call>", 1},
		{"no arguments", chat.Style{Format: chat.Tagged}, "<tool_call>{\"name\":\"f\"}</tool_call>", 1},
		{"another name", chat.Style{Format: chat.Tagged}, "<tool_call>{\"name\":\"h\",\"arguments\":{\"a\":1}}</tool_call>", 1},
		{"function tags", chat.Style{Format: chat.Tagged}, "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>", 1},
		{"no call", chat.Style{Format: chat.Tagged}, "<tool_call> is a tag, {\"name\":", 0},
		{"llama", chat.Style{Format: chat.Llama}, "{\"name\": \"f\", \"parameters\": " + long + "}; {\"name\": \"g\", \"parameters\": {\"b\": 1}}", 20},
		{"llama with a tag", chat.Style{Format: chat.Llama}, "<|python_tag|>{\"name\": \"f\", \"parameters\": {\"b\": 1}}", 5},
		{"llama in JSON", chat.Style{Format: chat.Llama}, "{\"answer\": {\"name\": \"f\"}}", 0},
		{"no tools", chat.Style{}, "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}</tool_call>", 0},
	} {
		if c.style.Format != chat.NoTools {
			c.style.Tools = types
		}
		p := chat.NewParser(c.style)
		var want []chat.ToolCall
		text := ""
		for _, piece := range append(p.Push(c.text), p.Flush()...) {
			switch piece.Kind {
			case chat.Call:
				want = append(want, piece.Call)
			case chat.Text:
				text += piece.Text
			}
		}
		check := func(pieces []string) int {
			content, calls, deltas := streamed(t, s, c.style, pieces)
			if content != text || len(calls) != len(want) {
				t.Fatalf("%s: %q gave %q and %v, not %q and %v", c.name, pieces, content, calls, text, want)
			}
			for i := range calls {
				if calls[i] != want[i] {
					t.Fatalf("%s: call %d is %v, not %v", c.name, i, calls[i], want[i])
				}
			}
			return deltas
		}
		check([]string{c.text})
		if n := check(strings.Split(c.text, "")); n < c.least {
			t.Errorf("%s: %d deltas with arguments", c.name, n)
		}
		rapid.Check(t, func(r *rapid.T) {
			var pieces []string
			for rest := c.text; rest != ""; {
				n := min(len(rest), rapid.IntRange(1, 12).Draw(r, "bytes"))
				pieces, rest = append(pieces, rest[:n]), rest[n:]
			}
			check(pieces)
		})
	}
	// One that is broken after it began comes as the text it is, behind what was sent of it.
	broken := "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":nothing}}</tool_call> so"
	content, calls, _ := streamed(t, s, chat.Style{Format: chat.Tagged, Tools: types}, strings.Split(broken, ""))
	if content != broken || len(calls) != 1 || !strings.HasPrefix(calls[0].Arguments, `{"a":nothing`) {
		t.Errorf("a broken call gave %q and %v", content, calls)
	}
	// And one that is cut off keeps what was sent.
	cut := "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":[1,"
	content, calls, _ = streamed(t, s, chat.Style{Format: chat.Tagged, Tools: types}, strings.Split(cut, ""))
	if content != "" || len(calls) != 1 || calls[0].Arguments != `{"a":[1,` {
		t.Errorf("a call that is cut off gave %q and %v", content, calls)
	}
}
