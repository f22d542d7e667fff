package server

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"velo/engine/chat"
	"velo/engine/sched"
)

// TestFormats: whatever the model would say, the answer is what was asked for.
func TestFormats(t *testing.T) {
	r := start(t, nil)
	for _, c := range []struct{ format, header, want string }{
		{`"guided_regex":"[0-9]{4}-[0-9]{2}"`, "", `^[0-9]{4}-[0-9]{2}$`},
		{`"guided_choice":["yes","no"]`, "", `^(yes|no)$`},
		{`"grammar":"root ::= \"x\" [0-9] [0-9] \"y\""`, "", `^x[0-9][0-9]y$`},
		{`"guided_grammar":"root ::= \"x\""`, "", `^x$`},
		{`"structured_outputs":{"regex":"[ab]{3}"}`, "", `^[ab]{3}$`},
		{`"structured_outputs":{"choice":["red"]}`, "", `^red$`},
		{`"structured_outputs":{"json":{"type":"integer","minimum":0,"maximum":9}}`, "strict", `^[0-9]$`},
		{`"guided_json":"{\"enum\":[\"a\",\"b\"]}"`, "strict", `^"[ab]"$`},
		{`"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object","properties":{"ok":{"type":"boolean"},"n":{"type":"integer","minimum":0,"maximum":99}},"required":["ok","n"],"additionalProperties":false}}}`, "strict", `^\{\s*"ok"\s*:\s*(true|false)\s*,\s*"n"\s*:\s*[0-9]{1,2}\s*\}$`},
		{`"response_format":{"type":"text"}`, "", ``},
	} {
		for _, stream := range []bool{false, true} {
			for _, thinking := range []string{`,"chat_template_kwargs":{"enable_thinking":false}`, ""} {
				body := `{` + hello + `,"max_tokens":200,"temperature":1,"seed":3,` + c.format + thinking
				if stream {
					body += `,"stream":true`
				}
				code, h, b := r.post(t, "/v1/chat/completions", body+`}`)
				if code != 200 || h.Get("X-Json-Schema-Enforced") != c.header {
					t.Fatalf("%s gave %d %q %s", c.format, code, h.Get("X-Json-Schema-Enforced"), b)
				}
				var content, finish string
				if stream {
					content, _, finish = said(events_(t, b), 0)
				} else {
					choice := decode(t, b).Choices[0]
					content, finish = *choice.Message.Content, choice.Finish
				}
				if c.want == "" || thinking == "" && finish == "length" { // a random model reasons on and on
					continue
				}
				if finish != "stop" || !regexp.MustCompile(c.want).MatchString(content) {
					t.Errorf("%s (stream %v) gave %q (%s)", c.format, stream, content, finish)
				}
			}
		}
	}
	// What cannot be enforced is said, and a JSON object comes all the same.
	code, h, b := r.post(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":30,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"nothing"}}},"chat_template_kwargs":{"enable_thinking":false}}`)
	if code != 200 || h.Get("X-Json-Schema-Enforced") != "json" || !strings.HasPrefix(strings.TrimSpace(*decode(t, b).Choices[0].Message.Content), "{") {
		t.Errorf("a schema that is not enforced gave %d %q %s", code, h.Get("X-Json-Schema-Enforced"), b)
	}
	a := r.ask(t, "/v1/completions", `{"prompt":"the","max_tokens":30,"guided_regex":"[0-9]{3}"}`)
	if !regexp.MustCompile(`^[0-9]{3}$`).MatchString(a.Choices[0].Text) || a.Choices[0].Finish != "stop" {
		t.Errorf("a plain completion gave %q (%s)", a.Choices[0].Text, a.Choices[0].Finish)
	}
}

// TestReasoning: text between the tags is reasoning, streamed or not.
func TestReasoning(t *testing.T) {
	r := start(t, nil)
	body := `{` + hello + `,"max_tokens":60,"guided_choice":["<think>\nhm, so\n</think>\n\nyes"],"chat_template_kwargs":{"enable_thinking":false}`
	c := r.ask(t, "/v1/chat/completions", body+`}`).Choices[0]
	if c.Message.Reasoning != "hm, so" || *c.Message.Content != "yes" || c.Finish != "stop" {
		t.Errorf("the message is %+v (%s)", c.Message, c.Finish)
	}
	content, reasoning, _ := said(r.chunks(t, "/v1/chat/completions", body+`,"stream":true}`), 0)
	if reasoning != "hm, so" || content != "yes" {
		t.Errorf("streamed it is %q and %q", reasoning, content)
	}
}

const toolG = `{"type":"function","function":{"name":"g","parameters":{"type":"object","properties":{"s":{"enum":["a","b"]}},"required":["s"],"additionalProperties":false}}}`

// strictF is toolF without room for more.
var strictF = strings.Replace(toolF, `"required":["x"]`, `"required":["x"],"additionalProperties":false`, 1)

// TestToolChoice: a forced call is a call, with arguments after its schema.
func TestToolChoice(t *testing.T) {
	r := startOn(t, folders(), 1024, nil)
	off := `,"chat_template_kwargs":{"enable_thinking":false}`
	check := func(what, name, arguments, finish string, names ...string) {
		t.Helper()
		if finish == "length" {
			t.Logf("%s: the random model went on too long", what)
			return
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(arguments), &v); err != nil || finish != "tool_calls" || !strings.Contains(strings.Join(names, " "), name) {
			t.Errorf("%s gave %s(%s), %s", what, name, arguments, finish)
			return
		}
		if name == "f" && v["x"] == nil || name == "g" && v["s"] != "a" && v["s"] != "b" {
			t.Errorf("%s gave the arguments %s", what, arguments)
		}
	}
	done := 0
	for seed := range 6 {
		for _, choice := range []struct {
			json  string
			names []string
		}{
			{`"required"`, []string{"f", "g"}},
			{`{"type":"function","function":{"name":"g"}}`, []string{"g"}},
			{`{"type":"function","function":{"name":"f"}}`, []string{"f"}},
		} {
			body := `{` + hello + `,"max_tokens":100,"temperature":1,"seed":` + fmt.Sprint(seed) + `,"parallel_tool_calls":false,"tools":[` + strictF + `,` + toolG + `],"tool_choice":` + choice.json + off
			c := r.ask(t, "/v1/chat/completions", body+`}`).Choices[0]
			if c.Finish == "tool_calls" {
				done++
				if len(c.Message.Calls) != 1 || c.Message.Content != nil || c.Message.Calls[0].Type != "function" || !strings.HasPrefix(c.Message.Calls[0].ID, "call_") {
					t.Errorf("the message is %+v", c.Message)
				}
				check(choice.json, c.Message.Calls[0].Function.Name, c.Message.Calls[0].Function.Arguments, c.Finish, choice.names...)
			}
			var name, arguments, id string
			chunks := r.chunks(t, "/v1/chat/completions", body+`,"stream":true}`)
			for _, chunk := range chunks {
				for _, ch := range chunk.Choices {
					if ch.Delta == nil {
						continue
					}
					for _, call := range ch.Delta.Calls {
						if name == "" && call.Function.Arguments != "" {
							t.Errorf("arguments came before the name")
						}
						name += call.Function.Name
						id += call.ID
						arguments += call.Function.Arguments
					}
				}
			}
			_, _, finish := said(chunks, 0)
			if finish != c.Finish {
				t.Errorf("streamed it ended with %s, whole with %s", finish, c.Finish)
			}
			if finish == "tool_calls" {
				check("streamed "+choice.json, name, arguments, finish, choice.names...)
				if arguments != c.Message.Calls[0].Function.Arguments || id == c.Message.Calls[0].ID {
					t.Errorf("streamed it is %s %s, whole %+v", id, arguments, c.Message.Calls[0])
				}
			}
		}
	}
	if done == 0 {
		t.Error("no forced call came to its end")
	}
	// None: no call whatever the model says, and no tools in the prompt.
	with := r.ask(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":1,"tools":[`+toolF+`]}`)
	without := r.ask(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":1}`)
	none := r.ask(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":1,"tools":[`+toolF+`],"tool_choice":"none"}`)
	if none.Usage.Prompt != without.Usage.Prompt || with.Usage.Prompt <= without.Usage.Prompt {
		t.Errorf("prompts have %d tokens with tools, %d without and %d with none", with.Usage.Prompt, without.Usage.Prompt, none.Usage.Prompt)
	}
	keep := start(t, func(o *Options, _ *sched.Options) { o.KeepTools = true })
	kept := keep.ask(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":1,"tools":[`+toolF+`],"tool_choice":"none"}`)
	if kept.Usage.Prompt <= with.Usage.Prompt {
		t.Errorf("kept tools make a prompt of %d tokens, and %d without the line that forbids calls", kept.Usage.Prompt, with.Usage.Prompt)
	}
	// Auto, with a model that calls: text, two calls, and ids of their own.
	body := `{` + hello + `,"max_tokens":200,"temperature":1,"tools":[` + toolF + `,` + toolG + `],"guided_choice":["so:<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>\n<tool_call>\n{\"name\": \"g\", \"arguments\": {\"s\": \"a\"}}\n</tool_call>"]` + off
	said := false
	for seed := range 40 { // it may call at once, or say what the choice has
		c := r.ask(t, "/v1/chat/completions", fmt.Sprintf(`%s,"seed":%d}`, body, seed)).Choices[0]
		if c.Message.Content == nil || *c.Message.Content != "so:" {
			continue
		}
		said = true
		if len(c.Message.Calls) != 2 || c.Message.Calls[0].ID == c.Message.Calls[1].ID || c.Message.Calls[1].Function.Arguments != `{"s": "a"}` || c.Finish != "tool_calls" {
			t.Errorf("the message is %+v (%s)", c.Message, c.Finish)
		}
		break
	}
	if !said {
		t.Error("of 40 answers none said what the choice has")
	}
}

// TestHistory: arguments of earlier calls are objects when the template sees them.
func TestHistory(t *testing.T) {
	r := start(t, nil)
	body := `{"messages":[{"role":"developer","content":"rules"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"z\": 1, \"a\": 2}"}}]},` +
		`{"role":"tool","tool_call_id":"call_1","content":"3"}]}`
	o, e := newObject([]byte(body), InvalidBody, "", "")
	if e != nil {
		t.Fatal(e)
	}
	p, e := r.server.readPrompt(o)
	if e != nil {
		t.Fatal(e)
	}
	want := "<|im_start|>system\nrules<|im_end|>\n<|im_start|>user\na\nb<|im_end|>\n<|im_start|>assistant\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"z\": 1, \"a\": 2}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\n3\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
	if p.text != want {
		t.Errorf("the prompt is\n%s\nnot\n%s", p.text, want)
	}
}

// TestCallGrammars: in each format of calls the grammar allows what the parser of answers reads.
func TestCallGrammars(t *testing.T) {
	r := start(t, nil)
	tools := []tool{
		{name: "f", parameters: json.RawMessage(`{"properties":{"n":{"type":"integer"},"text":{"type":"string"},"way":{"enum":["up","down"]},"list":{"type":"array","items":{"$ref":"#/$defs/item"}}},"required":["n","text"],"$defs":{"item":{"type":"boolean"}}}`)},
		{name: "bare"},
	}
	types, err := chat.ParseTools([]byte(`[{"type":"function","function":{"name":"f","parameters":` + string(tools[0].parameters) + `}},{"type":"function","function":{"name":"bare"}}]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name          string
		format        chat.Format
		functionTags  bool
		text          string
		want          []chat.ToolCall
		refusedAnswer string
	}{
		{"json", chat.Tagged, false, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"n\":1,\"text\":\"x\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"bare\", \"arguments\": {}}\n</tool_call>",
			[]chat.ToolCall{{Name: "f", Arguments: `{"n":1,"text":"x"}`}, {Name: "bare", Arguments: "{}"}}, "<tool_call>\n{\"name\": \"other\""},
		{"tags", chat.Tagged, true, "<tool_call>\n<function=f>\n<parameter=n>\n12\n</parameter>\n<parameter=text>\na\n<b>\n</parameter>\n<parameter=way>\nup\n</parameter>\n<parameter=list>\n[true]\n</parameter>\n</function>\n</tool_call>",
			[]chat.ToolCall{{Name: "f", Arguments: `{"n": 12, "text": "a\n<b>", "way": "up", "list": [true]}`}}, "<tool_call>\n<function=f>\n<parameter=text>"},
		{"llama", chat.Llama, false, `{"name": "f", "parameters": {"n":1,"text":"x"}}; {"name": "bare", "parameters": {}}`,
			[]chat.ToolCall{{Name: "f", Arguments: `{"n":1,"text":"x"}`}, {Name: "bare", Arguments: "{}"}}, `{"name": "f", "parameters": {"n":"`},
	} {
		g, e := callGrammar(tools, c.format, c.functionTags, true)
		if e != nil {
			t.Fatalf("%s: %v", c.name, e)
		}
		m := g.NewMatcher(r.server.vocabulary())
		for i, id := range r.engine.Tokenizer.Encode(c.text, true) {
			if !m.Mask().Allows(id) {
				t.Fatalf("%s: token %d, %q, is not allowed", c.name, i, r.engine.Tokenizer.Token(id))
			}
			if err := m.Accept(id); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		if mask := m.Mask(); mask != nil && !mask.Allows(r.engine.EOS[0]) {
			t.Errorf("%s: the answer may not end", c.name)
		}
		p := chat.NewParser(chat.Style{Format: c.format, Tools: types})
		var calls []chat.ToolCall
		for _, piece := range append(p.Push(c.text), p.Flush()...) {
			if piece.Kind == chat.Call {
				calls = append(calls, piece.Call)
			}
		}
		if len(calls) != len(c.want) {
			t.Fatalf("%s: the calls are %v", c.name, calls)
		}
		for i := range calls {
			if calls[i] != c.want[i] {
				t.Errorf("%s: call %d is %v, not %v", c.name, i, calls[i], c.want[i])
			}
		}
		m = g.NewMatcher(r.server.vocabulary())
		allowed := true
		for _, id := range r.engine.Tokenizer.Encode(c.refusedAnswer, true) {
			if allowed = allowed && m.Mask().Allows(id); allowed {
				_ = m.Accept(id)
			}
		}
		if allowed {
			t.Errorf("%s: %q is allowed", c.name, c.refusedAnswer)
		}
	}
}

// TestConstraintsAreKept: what was compiled serves the next request that wants the same, and no
// other.
func TestConstraintsAreKept(t *testing.T) {
	r := start(t, nil)
	of := func(body string) constraint {
		t.Helper()
		o, e := newObject([]byte(body), InvalidBody, "", "")
		if e != nil {
			t.Fatal(e)
		}
		p, e := r.server.readPrompt(o)
		if e != nil {
			t.Fatal(e)
		}
		k, e := r.server.constraintOf(o, p)
		if e != nil {
			t.Fatal(e)
		}
		return k
	}
	if k := of(`{` + hello + `}`); k.grammar != nil {
		t.Error("a request that wants nothing is held to something")
	}
	different := []string{
		`"guided_regex":"a"`, `"guided_regex":"b"`, `"grammar":"root ::= \"a\""`, `"guided_grammar":"root ::= \"a\""`, `"guided_choice":["a"]`,
		`"guided_regex":"a","chat_template_kwargs":{"enable_thinking":false}`, `"guided_regex":"a","tools":[` + toolF + `]`, `"guided_regex":"a","tools":[` + toolG + `]`,
		`"tools":[` + toolF + `],"tool_choice":"required"`, `"tools":[` + toolF + `,` + toolG + `],"tool_choice":"required"`,
		`"tools":[` + toolF + `,` + toolG + `],"tool_choice":{"type":"function","function":{"name":"g"}}`,
		`"tools":[` + toolF + `],"tool_choice":"required","parallel_tool_calls":false`,
	}
	seen := map[any]string{}
	for _, d := range different {
		k := of(`{` + hello + `,` + d + `}`)
		if other, twice := seen[k.grammar]; k.grammar == nil || twice {
			t.Errorf("%s is held to the grammar of %q", d, other)
		}
		seen[k.grammar] = d
		if again := of(`{"seed":1,` + hello + `,` + d + `}`); again.grammar != k.grammar {
			t.Errorf("%s is compiled twice", d)
		}
	}
	for i := range 2 * constraintsKept {
		of(fmt.Sprintf(`{%s,"guided_regex":"x%d"}`, hello, i))
	}
	if n := len(r.server.constraints.recent); n != constraintsKept {
		t.Errorf("%d constraints are kept", n)
	}
}
