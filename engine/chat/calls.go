package chat

import (
	"encoding/json"
	"strings"
)

// callReader reads one <tool_call> block, or one run of Llama calls. It holds the whole block and
// goes through it once: pos never moves back, whatever the pushes.
type callReader struct {
	tools   Tools
	opening string          // the text that opened the block, should it turn out to be none
	text    strings.Builder // all of the block, grown without copying it at each push
	buf     string          // what is in text
	pos     int
	mark    int // the end of the last complete call
	state   readState
	found   []ToolCall

	// A <function=…> block.
	name      string
	arguments arguments
	key       string
	from      int // where the value begins

	// A JSON object.
	llama             bool
	depth             []byte // closing brackets still to come
	inString, escaped bool
}

type readState uint8

const (
	readIdle    readState = iota
	readOpen              // after <tool_call>
	readLlama             // before the { of a Llama call
	readNext              // the same, after a semicolon
	readName              // inside <function=
	readBetween           // before <parameter= or </function>
	readKey               // inside <parameter=
	readValue             // inside a parameter
	readObject            // inside a JSON object
	readAfter             // after a complete function or object of a block
	readSemi              // after a complete Llama call
)

type callStatus uint8

const (
	callMore callStatus = iota
	callNone
	callDone
)

const (
	tagFunction    = "<function="
	tagEndFunction = "</function>"
	tagParameter   = "<parameter="
	tagEndParam    = "</parameter>"
	tagEndCall     = "</tool_call>"
)

func (c *callReader) active() bool { return c.state != readIdle }

func (c *callReader) open(opening string, s readState) {
	*c = callReader{tools: c.tools, opening: opening, state: s}
}

func (c *callReader) reset() { *c = callReader{tools: c.tools} }

// push adds text. rest is what follows the block, or follows the opening where it is none. At the
// end of the answer callMore says that it ends within a call.
func (c *callReader) push(text string, end bool) (status callStatus, rest string) {
	c.text.WriteString(text)
	c.buf = c.text.String()
	for {
		switch c.step() {
		case stepMore:
			switch {
			case !end:
				return callMore, ""
			case c.state == readAfter, c.state == readSemi, c.state == readNext:
				return callDone, "" // what is left is white space or a piece of a closing tag
			case c.state == readOpen, c.llama:
				return c.none()
			}
			return callMore, ""
		case stepNone:
			return c.none()
		case stepDone:
			return callDone, c.buf[c.pos:]
		}
	}
}

// none ends a block that is not written as calls are. Calls that came before stand.
func (c *callReader) none() (callStatus, string) {
	if len(c.found) > 0 {
		return callDone, c.buf[c.mark:]
	}
	return callNone, c.buf
}

// unfinished returns the text after the last complete call.
func (c *callReader) unfinished() string {
	if len(c.found) > 0 {
		return c.buf[c.mark:]
	}
	return c.opening + c.buf
}

type step uint8

const (
	stepOn step = iota
	stepMore
	stepNone
	stepDone
)

// next skips white space and looks which of the tags stands there. more: it cannot be told yet.
func (c *callReader) next(tags ...string) (tag string, at int, more bool) {
	s := strings.TrimLeft(c.buf[c.pos:], space)
	at = len(c.buf) - len(s)
	if s == "" {
		return "", at, true
	}
	for _, t := range tags {
		if strings.HasPrefix(s, t) {
			return t, at + len(t), false
		}
		more = more || isPrefix(s, t)
	}
	return "", at, more
}

func (c *callReader) step() step {
	switch c.state {
	case readOpen, readAfter:
		tag, at, more := c.next(tagFunction, "{", tagEndCall)
		switch {
		case more:
			return stepMore
		case tag == tagFunction:
			c.state, c.pos = readName, at
		case tag == "{":
			c.state, c.pos = readObject, at-1
			c.from = c.pos
		case tag == tagEndCall && c.state == readAfter:
			c.pos = at
			return stepDone
		case c.state == readAfter: // the closing tag is missing
			return stepDone
		default:
			return stepNone
		}
	case readName, readKey:
		return c.readName()
	case readBetween:
		tag, at, more := c.next(tagParameter, tagEndFunction, tagEndCall)
		switch {
		case more:
			return stepMore
		case tag == tagParameter:
			c.state, c.pos = readKey, at
		case tag == tagEndFunction:
			c.pos = at
			c.finish(c.arguments.json())
		case tag == tagEndCall: // without </function>
			c.pos = at
			c.finish(c.arguments.json())
			return stepDone
		default:
			return stepNone
		}
	case readValue:
		return c.readValue()
	case readObject:
		return c.readObject()
	case readLlama, readNext, readSemi:
		tag, at, more := c.next("{", ";")
		switch {
		case more:
			return stepMore
		case tag == ";" && c.state == readSemi:
			c.state, c.pos = readNext, at
		case tag == "{":
			c.llama = true
			c.state, c.pos, c.from = readObject, at-1, at-1
		default:
			return stepNone
		}
	}
	return stepOn
}

// readName reads the name of a function or a parameter up to ">". A model that forgets the ">"
// begins a new line or the next tag, which ends the name as well.
func (c *callReader) readName() step {
	i := strings.IndexAny(c.buf[c.pos:], ">\n<")
	if i < 0 {
		if len(c.buf)-c.pos > maxName {
			return stepNone
		}
		return stepMore
	}
	id := strings.TrimSpace(c.buf[c.pos : c.pos+i])
	if id == "" || i > maxName {
		return stepNone
	}
	if c.pos += i; c.buf[c.pos] == '>' {
		c.pos++
	}
	if c.state == readName {
		c.name, c.arguments = id, arguments{}
		c.state = readBetween
		return stepOn
	}
	c.key, c.from = id, c.pos
	c.state = readValue
	return stepOn
}

const maxName = 256 // bytes

// readValue reads up to the </parameter> that ends the value: the one that another parameter, the
// end of the function or the end of the block follows. One within a value is part of it.
func (c *callReader) readValue() step {
	i, whole := findTag(c.buf[c.pos:], tagEndParam)
	c.pos += i
	if !whole {
		return stepMore
	}
	after := callReader{buf: c.buf, pos: c.pos + len(tagEndParam)}
	tag, _, more := after.next(tagParameter, tagEndFunction, tagEndCall)
	switch {
	case more:
		return stepMore
	case tag == "":
		c.pos = after.pos
		return stepOn
	}
	value := strings.TrimPrefix(c.buf[c.from:c.pos], "\n")
	value = strings.TrimSuffix(value, "\n")
	c.arguments.add(c.key, c.tools.value(c.name, c.key, value))
	c.pos = after.pos
	c.state = readBetween
	return stepOn
}

func (c *callReader) finish(arguments string) {
	c.found = append(c.found, ToolCall{c.name, arguments})
	c.state, c.mark = readAfter, c.pos
}

// readObject follows the brackets of a JSON object up to its end, or up to </tool_call> outside of
// a string, where the model forgot to close some.
func (c *callReader) readObject() step {
	at := c.pos
	for ; at < len(c.buf); at++ {
		b := c.buf[at]
		switch {
		case c.escaped:
			c.escaped = false
		case c.inString:
			c.escaped = b == '\\'
			c.inString = b != '"'
		case b == '"':
			c.inString = true
		case b == '{':
			c.depth = append(c.depth, '}')
		case b == '[':
			c.depth = append(c.depth, ']')
		case b == '}' || b == ']':
			if n := len(c.depth); c.depth[n-1] != b {
				return stepNone
			}
			if c.depth = c.depth[:len(c.depth)-1]; len(c.depth) == 0 {
				return c.object(c.buf[c.from:at+1], at+1)
			}
		case b == '<' && !c.llama:
			rest := c.buf[at:]
			if isPrefix(rest, tagEndCall) {
				c.pos = at
				return stepMore
			}
			if strings.HasPrefix(rest, tagEndCall) {
				missing := []byte{}
				for i := len(c.depth) - 1; i >= 0; i-- {
					missing = append(missing, c.depth[i])
				}
				return c.object(c.buf[c.from:at]+string(missing), at)
			}
			return stepNone // no JSON has a < there
		}
		if len(c.depth) > maxNesting {
			return stepNone
		}
	}
	c.pos = at
	return stepMore
}

const maxNesting = 1000

// object takes a complete JSON object for a call if it is one.
func (c *callReader) object(s string, end int) step {
	var o struct {
		Name                  *string
		Arguments, Parameters json.RawMessage
	}
	if json.Unmarshal([]byte(s), &o) != nil || o.Name == nil || *o.Name == "" {
		return stepNone
	}
	if c.llama && len(c.tools) > 0 && c.tools[*o.Name] == nil {
		return stepNone // an answer in JSON that happens to have a name
	}
	raw := o.Arguments
	if raw == nil {
		raw = o.Parameters
	}
	var inner string
	if json.Unmarshal(raw, &inner) == nil { // arguments as a string of JSON
		raw = json.RawMessage(inner)
	}
	text := strings.TrimSpace(string(raw))
	switch {
	case text == "" || text == "null":
		text = "{}"
	case !strings.HasPrefix(text, "{") || !json.Valid([]byte(text)):
		return stepNone
	}
	c.name, c.pos, c.depth = *o.Name, end, nil
	c.finish(text)
	if c.llama {
		c.state = readSemi
	}
	return stepOn
}
