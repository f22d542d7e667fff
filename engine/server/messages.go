package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// message is one message of a conversation, its content one text.
type message struct {
	role    string
	content string
	fields  *object
}

// readMessages checks a conversation. Parts of text are joined with newlines, null becomes no text.
func readMessages(o *object, developer bool) ([]message, *Error) {
	items, e := o.list("messages", maxMessages)
	if e != nil {
		return nil, e
	}
	if len(items) == 0 {
		return nil, fail(InvalidMessages, "messages", "cannot answer: there are no messages; send at least one with a role and a content")
	}
	messages := make([]message, len(items))
	for i, item := range items {
		name := fmt.Sprintf("messages[%d]", i)
		m, e := newObject(item, InvalidMessages, name+".", name)
		if e != nil {
			return nil, e
		}
		role, ok, e := m.text("role")
		if e != nil {
			return nil, e
		}
		if !ok || role == "" {
			return nil, fail(InvalidMessages, name+".role", "cannot read %s: it has no role; send system, user, assistant or tool", name)
		}
		if role == "developer" && !developer {
			role = "system" // the newer word for it, which few templates know
		}
		content, e := readContent(m, name)
		if e != nil {
			return nil, e
		}
		if e := checkCalls(m, name); e != nil {
			return nil, e
		}
		messages[i] = message{role, content, m}
	}
	return messages, nil
}

// readContent reads a content: a text, an array of parts, or nothing.
func readContent(m *object, name string) (string, *Error) {
	raw := m.raw("content")
	switch kind(raw) {
	case "nothing":
		return "", nil
	case "a string":
		s, _, e := m.text("content")
		return s, e
	case "an array":
	default:
		return "", m.wrong("content", "a string, an array of parts, or null")
	}
	parts, e := m.list("content", maxMessages)
	if e != nil {
		return "", e
	}
	texts := make([]string, 0, len(parts))
	for k, part := range parts {
		where := fmt.Sprintf("%s.content[%d]", name, k)
		p, e := newObject(part, InvalidMessages, where+".", where)
		if e != nil {
			return "", e
		}
		kind, _, e := p.text("type")
		if e != nil {
			return "", e
		}
		switch kind {
		case "text", "input_text", "output_text":
			text, ok, e := p.text("text")
			if e != nil {
				return "", e
			}
			if !ok {
				return "", fail(InvalidMessages, where+".text", "cannot read %s: a part of type %s needs a text", where, kind)
			}
			texts = append(texts, text)
		case "refusal":
			text, _, e := p.text("refusal")
			if e != nil {
				return "", e
			}
			texts = append(texts, text)
		case "":
			return "", fail(InvalidMessages, where+".type", "cannot read %s: it has no type; send {\"type\":\"text\",\"text\":…}", where)
		default:
			return "", fail(UnsupportedContent, where, "cannot read %s: this model takes text only, and the part is of type %.40q; send parts of type text", where, kind)
		}
	}
	return strings.Join(texts, "\n"), nil
}

// checkCalls checks the calls that an assistant's message reports, which the template goes through.
func checkCalls(m *object, name string) *Error {
	calls, e := m.list("tool_calls", maxTools)
	if e != nil {
		return e
	}
	for i, raw := range calls {
		where := fmt.Sprintf("%s.tool_calls[%d]", name, i)
		c, e := newObject(raw, InvalidMessages, where+".", where)
		if e != nil {
			return e
		}
		f, e := c.child("function")
		if e != nil {
			return e
		}
		if f == nil {
			return fail(InvalidMessages, where+".function", "cannot read %s: it has no function", where)
		}
		if id, _, e := f.text("name"); e != nil {
			return e
		} else if id == "" {
			return fail(InvalidMessages, where+".function.name", "cannot read %s: its function has no name", where)
		}
		if a := f.raw("arguments"); a != nil && kind(a) != "a string" && kind(a) != "an object" {
			return f.wrong("arguments", "a string of JSON or an object")
		}
	}
	return nil
}

// marshal writes messages as the template takes them: all members in their order, the content as
// one text. An empty tool_calls is left out, since templates ask only whether there is one.
func marshal(messages []message) []byte {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, m := range messages {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"role":`)
		b.Write(quoted(m.role))
		b.WriteString(`,"content":`)
		b.Write(quoted(m.content))
		if m.fields != nil {
			for _, k := range m.fields.keys {
				v := m.fields.values[k]
				if k == "role" || k == "content" || kind(v) == "null" || k == "tool_calls" && emptyArray(v) {
					continue
				}
				b.WriteByte(',')
				b.Write(quoted(k))
				b.WriteByte(':')
				b.Write(v)
			}
		}
		b.WriteByte('}')
	}
	b.WriteByte(']')
	return b.Bytes()
}

func emptyArray(v json.RawMessage) bool {
	v = bytes.TrimSpace(v)
	return len(v) >= 2 && v[0] == '[' && len(bytes.TrimSpace(v[1:len(v)-1])) == 0
}
