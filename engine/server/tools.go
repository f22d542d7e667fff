package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"velo/engine/chat"
)

// tool is a function that a request offers.
type tool struct {
	name       string
	parameters json.RawMessage // a JSON schema; nil for none given
	strict     bool
}

// choice is what tool_choice asks for.
type choice struct {
	mode     choiceMode
	name     string // of the function, where one is named
	parallel bool   // several calls in one answer
}

type choiceMode uint8

const (
	choiceAuto choiceMode = iota
	choiceNone
	choiceRequired
	choiceNamed
)

// forced tells that the answer must be a call.
func (c choice) forced() bool { return c.mode == choiceRequired || c.mode == choiceNamed }

// readTools reads the functions that a request offers. raw is their JSON as the template takes it.
func readTools(o *object) (tools []tool, types chat.Tools, raw []byte, e *Error) {
	for _, old := range []string{"functions", "function_call"} {
		if o.raw(old) != nil {
			return nil, nil, nil, fail(UnsupportedParam, old, "cannot take %s: send tools and tool_choice, which replaced it", old)
		}
	}
	items, e := o.list("tools", maxTools)
	if e != nil || len(items) == 0 {
		return nil, nil, nil, e
	}
	known := map[string]bool{}
	for i, item := range items {
		t, e := readTool(item, fmt.Sprintf("tools[%d]", i))
		if e != nil {
			return nil, nil, nil, e
		}
		if known[t.name] {
			return nil, nil, nil, fail(InvalidTools, fmt.Sprintf("tools[%d].function.name", i), "cannot offer %q twice: give each function a name of its own", t.name)
		}
		known[t.name] = true
		tools = append(tools, t)
	}
	raw = o.raw("tools")
	types, err := chat.ParseTools(raw)
	if err != nil {
		return nil, nil, nil, fail(InvalidTools, "tools", "%v", err)
	}
	return tools, types, raw, nil
}

func readTool(item json.RawMessage, where string) (t tool, e *Error) {
	o, e := newObject(item, InvalidTools, where+".", where)
	if e != nil {
		return t, e
	}
	if kind, _, e := o.text("type"); e != nil {
		return t, e
	} else if kind != "function" {
		return t, fail(InvalidTools, where+".type", "cannot offer %s: its type is %.40q; functions are the only tools there are", where, kind)
	}
	f, e := o.child("function")
	if e != nil {
		return t, e
	}
	if f == nil {
		return t, fail(InvalidTools, where+".function", "cannot offer %s: it has no function", where)
	}
	if t.name, _, e = f.text("name"); e != nil {
		return t, e
	}
	if t.name == "" || len(t.name) > 256 || strings.ContainsFunc(t.name, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`"\<>=`, r) }) {
		return t, fail(InvalidTools, where+".function.name", "cannot offer %s: its name %.40q must have 1 to 256 characters, none of them a space, a quotation mark, \\, <, > or =", where, t.name)
	}
	if t.parameters = f.raw("parameters"); t.parameters != nil && kind(t.parameters) != "an object" {
		return t, f.wrong("parameters", "an object, the JSON schema of the arguments")
	}
	t.strict, e = f.flag("strict", false)
	return t, e
}

// readChoice reads tool_choice and parallel_tool_calls.
func readChoice(o *object, tools []tool) (c choice, e *Error) {
	if c.parallel, e = o.flag("parallel_tool_calls", true); e != nil {
		return c, e
	}
	raw := o.raw("tool_choice")
	switch kind(raw) {
	case "nothing":
		return c, nil
	case "a string":
		word, _, e := o.text("tool_choice")
		if e != nil {
			return c, e
		}
		switch word {
		case "auto":
		case "none":
			c.mode = choiceNone
		case "required", "any":
			c.mode = choiceRequired
		default:
			return c, fail(InvalidToolChoice, "tool_choice", "cannot choose tools by %.40q: tool_choice is none, auto, required, or an object that names a function", word)
		}
	case "an object":
		named, e := newObject(raw, InvalidToolChoice, "tool_choice.", "tool_choice")
		if e != nil {
			return c, e
		}
		if kind, _, e := named.text("type"); e != nil {
			return c, e
		} else if kind != "function" {
			return c, fail(InvalidToolChoice, "tool_choice.type", "cannot choose a tool of type %.40q: functions are the only tools there are", kind)
		}
		c.mode, c.parallel = choiceNamed, false // that function, once
		f, e := named.child("function")
		if e != nil {
			return c, e
		}
		if f == nil {
			f = named
		}
		if c.name, _, e = f.text("name"); e != nil {
			return c, e
		}
		for _, t := range tools {
			if t.name == c.name {
				return c, nil
			}
		}
		return c, fail(InvalidToolChoice, "tool_choice.function.name", "cannot call %.40q: tools has no function of that name", c.name)
	default:
		return c, o.wrong("tool_choice", "a string or an object")
	}
	if c.mode == choiceRequired && len(tools) == 0 {
		return c, fail(InvalidToolChoice, "tool_choice", "cannot require a call: the request offers no tools")
	}
	return c, nil
}

// offered are the tools that an answer may call.
func (c choice) offered(tools []tool) []tool {
	if c.mode == choiceNone {
		return nil
	}
	if c.mode == choiceNamed {
		for _, t := range tools {
			if t.name == c.name {
				return []tool{t}
			}
		}
	}
	return tools
}

// toolText says to a model whose template knows nothing of tools which there are and how to call
// them, in the words of the Hermes format.
func toolText(raw []byte) string {
	var b strings.Builder
	b.WriteString("You can call functions. Their signatures, in JSON, are:\n<tools>")
	for _, t := range mustElements(raw) {
		b.WriteByte('\n')
		var line bytes.Buffer
		if json.Compact(&line, t) == nil {
			b.Write(line.Bytes())
		}
	}
	b.WriteString("\n</tools>\nTo call one, answer with its name and arguments in JSON:\n<tool_call>\n{\"name\": …, \"arguments\": {…}}\n</tool_call>")
	return b.String()
}

func mustElements(raw []byte) []json.RawMessage {
	items, _ := elements(raw, maxTools)
	return items
}

// addSystem adds a text to the system message, or puts one before all others.
func addSystem(messages []message, text string) []message {
	out := append([]message(nil), messages...)
	if len(out) > 0 && out[0].role == "system" {
		out[0].content = strings.TrimSpace(out[0].content + "\n\n" + text)
		return out
	}
	return append([]message{{role: "system", content: text}}, out...)
}

// noCallText is said where tools stay in the prompt although none may be called.
const noCallText = "\n\n(Answer in words. Do not call a function.)"
