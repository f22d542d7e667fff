package server

import (
	"encoding/json"
	"regexp"
	"strings"

	"velo/engine/chat"
)

// callStream watches an answer for calls that are written as JSON, and knows their name and the
// arguments so far before the parser of answers gives them whole. It tells only of what the parser
// can be expected to confirm: a function that was offered, whose arguments are an object. Calls in
// tags (<function=…>) become JSON only when they are complete, so it does not follow those.
type callStream struct {
	style   chat.Style
	phase   callPhase
	held    string // text that is not understood yet
	open    []*openCall
	escaped bool
	quoted  bool
	depth   int
	before  int // calls that were open before the last piece of text came
}

// openCall is a call that began.
type openCall struct {
	index     int // in the answer; -1 before it was sent
	name      string
	arguments strings.Builder
	sent      int // bytes of the arguments that were sent
}

type callPhase uint8

const (
	callThinking  callPhase = iota // before </think>
	callBegin                      // nothing but white space so far: <think> may come
	callText                       // looking for <tool_call>
	callHead                       // from the { on, up to that of the arguments
	callArguments                  // within the arguments
	callGap                        // Llama: after the arguments, before a semicolon
	callOver                       // nothing to look for any more
)

// callHeader is a call up to the opening bracket of its arguments.
var callHeader = regexp.MustCompile(`^\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"(?:arguments|parameters)"\s*:\s*\{`)

// maxCallHeader is how much text a call may have before its arguments.
const maxCallHeader = 1024

func newCallStream(style chat.Style) *callStream {
	c := &callStream{style: style}
	switch {
	case style.Format == chat.NoTools:
		c.phase = callOver
	case style.Opened:
		c.phase = callThinking
	case style.Think:
		c.phase = callBegin
	default:
		c.phase = c.first()
	}
	return c
}

// first is the phase in which the answer proper begins.
func (c *callStream) first() callPhase {
	if c.style.Format == chat.Llama {
		return callHead
	}
	return callText
}

// push takes the next piece of the answer.
func (c *callStream) push(text string) {
	c.before = len(c.open)
	c.held += text
	for c.step() {
	}
}

// step goes on by one phase and says whether there is more to do.
func (c *callStream) step() bool {
	switch c.phase {
	case callBegin:
		s := strings.TrimLeft(c.held, " \t\r\n")
		if len(s) < len("<think>") && strings.HasPrefix("<think>", s) {
			return false
		}
		if c.phase = c.first(); strings.HasPrefix(s, "<think>") {
			c.phase = callThinking
		}
		return true
	case callThinking:
		return c.skipTo("</think>", c.first())
	case callText:
		return c.skipTo("<tool_call>", callHead)
	case callHead:
		return c.head()
	case callArguments:
		return c.follow()
	case callGap:
		s := strings.TrimLeft(c.held, " \t\r\n")
		if s == "" {
			return false
		}
		c.held = s[1:]
		switch s[0] {
		case '}': // of the call itself
			return true
		case ';':
			c.phase = callHead
			return true
		}
		c.phase = callOver
		return false
	}
	return false
}

// skipTo drops text up to and with a tag.
func (c *callStream) skipTo(tag string, next callPhase) bool {
	if i := strings.Index(c.held, tag); i >= 0 {
		c.held, c.phase = c.held[i+len(tag):], next
		return true
	}
	c.held = c.held[max(0, len(c.held)-len(tag)+1):]
	return false
}

func (c *callStream) head() bool {
	if c.style.Format == chat.Llama && len(c.open) == 0 {
		s := strings.TrimLeft(c.held, " \t\r\n")
		if len(s) < len(pythonTag) && strings.HasPrefix(pythonTag, s) {
			return false
		}
		c.held = strings.TrimPrefix(s, pythonTag)
	}
	m := callHeader.FindStringSubmatchIndex(c.held)
	if m == nil {
		if s := strings.TrimLeft(c.held, " \t\r\n"); len(c.held) > maxCallHeader || s != "" && s[0] != '{' {
			c.giveUp()
		}
		return false
	}
	var name string
	if json.Unmarshal([]byte(c.held[m[2]:m[3]]), &name) != nil || c.style.Tools[name] == nil {
		c.giveUp()
		return false
	}
	c.open = append(c.open, &openCall{index: -1, name: name})
	c.held, c.phase = c.held[m[1]-1:], callArguments
	c.depth, c.quoted, c.escaped = 0, false, false
	return true
}

// giveUp leaves a call that is written otherwise to the parser.
func (c *callStream) giveUp() {
	if c.phase = callText; c.style.Format == chat.Llama {
		c.phase = callOver
	}
}

// follow takes arguments up to the bracket that closes them, or up to a < that no JSON has.
func (c *callStream) follow() bool {
	call := c.open[len(c.open)-1]
	for i := 0; i < len(c.held); i++ {
		b := c.held[i]
		switch {
		case c.escaped:
			c.escaped = false
		case c.quoted:
			c.escaped = b == '\\'
			c.quoted = b != '"'
		case b == '"':
			c.quoted = true
		case b == '{' || b == '[':
			c.depth++
		case b == '<':
			call.arguments.WriteString(c.held[:i])
			c.held = c.held[i:]
			c.giveUp()
			return c.phase == callText
		case b == '}' || b == ']':
			if c.depth--; c.depth == 0 {
				call.arguments.WriteString(c.held[:i+1])
				c.held = c.held[i+1:]
				if c.phase = callText; c.style.Format == chat.Llama {
					c.phase = callGap
				}
				return true
			}
		}
	}
	call.arguments.WriteString(c.held)
	c.held = ""
	return false
}

// deny forgets the oldest call: the parser has found that it is none, and gave it as text.
func (c *callStream) deny() {
	if c.before > 0 {
		c.open = c.open[1:]
		c.before--
	}
}

// confirm takes the call out that the parser has now given whole, if it began here: what it streams
// must be how the whole begins.
func (c *callStream) confirm(whole chat.ToolCall) *openCall {
	if len(c.open) == 0 {
		return nil
	}
	call := c.open[0]
	if call.name != whole.Name || call.index >= 0 && !strings.HasPrefix(whole.Arguments, call.arguments.String()[:call.sent]) {
		return nil
	}
	c.open = c.open[1:]
	c.before = max(0, c.before-1)
	return call
}
