package chat

import "strings"

// Kind is what a piece of an answer is.
type Kind uint8

const (
	Text       Kind = iota
	Reasoning       // what stands between <think> and </think>, without the newlines at its ends
	Call            // a complete tool call
	Unfinished      // the text of a tool call that the answer ends within
)

// Piece is a part of an answer. Neighbouring pieces of text belong together.
type Piece struct {
	Kind Kind
	Text string   // of all kinds but Call
	Call ToolCall // of Call
}

// ToolCall is a call that the model asks for. Arguments is a JSON object.
type ToolCall struct{ Name, Arguments string }

// Format is how a model writes tool calls.
type Format uint8

const (
	NoTools Format = iota
	// Tagged is <tool_call>…</tool_call> around a JSON object with name and arguments (Hermes,
	// Qwen2.5, Qwen3) or around <function=…> with <parameter=…> blocks (Qwen3-Coder, Qwen3.5 and
	// later). Which of them it is shows in the block.
	Tagged
	// Llama is a JSON object with name and parameters as the answer, or several with semicolons
	// between them, after <|python_tag|> or not.
	Llama
)

// Style is how an answer is to be read.
type Style struct {
	Format Format
	// Think: the answer may begin with <think>. Opened: the prompt ended with it already.
	Think, Opened bool
	// Tools are the definitions sent with the request. They give the types of parameters to
	// <function=…> blocks, and tell a Llama call from an answer that is JSON.
	Tools Tools
}

// StyleOf reads off a template and the prompt rendered from it how the answer is to be read.
func StyleOf(template, prompt string, tools Tools) Style {
	s := Style{Tools: tools, Think: strings.Contains(template, "<think>")}
	s.Opened = s.Think && strings.HasSuffix(strings.TrimRight(prompt, "\n"), "<think>")
	switch {
	case len(tools) == 0:
	case strings.Contains(template, "<tool_call>"):
		s.Format = Tagged
	case strings.Contains(template, "<|python_tag|>") || strings.Contains(template, "ipython"):
		s.Format = Llama
	}
	return s
}

// Parser takes an answer apart while it is generated. However the text is cut into pushes, the
// pieces are the same once neighbours of one kind are joined. Text that may turn out to be a tag
// is held back until it is known; a tag-like text that is none comes out as the text it is.
type Parser struct {
	style  Style
	think  thinking
	calls  callReader
	held   string
	pieces []Piece
	// gap is white space after a call. It is dropped before another call and at the end.
	gap     bool
	started bool // some of the answer proper was seen: a Llama call can no longer begin
}

// NewParser returns a parser for one answer.
func NewParser(s Style) *Parser {
	p := &Parser{style: s}
	switch {
	case s.Opened:
		p.think.state = thinkInside
	case s.Think:
		p.think.state = thinkBefore
	default:
		p.think.state = thinkOver
	}
	p.calls.tools = s.Tools
	return p
}

// Push takes the next piece of text and returns what is known now.
func (p *Parser) Push(text string) []Piece {
	p.pieces = nil
	p.answer(p.think.push(text, p.reason), false)
	return p.pieces
}

// Flush ends the answer and returns what was held back.
func (p *Parser) Flush() []Piece {
	p.pieces = nil
	p.answer(p.think.flush(p.reason), true)
	return p.pieces
}

func (p *Parser) emit(k Kind, text string) {
	if text == "" {
		return
	}
	if n := len(p.pieces); n > 0 && p.pieces[n-1].Kind == k && k != Call {
		p.pieces[n-1].Text += text
		return
	}
	p.pieces = append(p.pieces, Piece{Kind: k, Text: text})
}

func (p *Parser) reason(text string) { p.emit(Reasoning, text) }

func (p *Parser) text(text string) {
	if p.gap {
		if text = strings.TrimLeft(text, space); text == "" {
			return
		}
		p.gap = false
	}
	p.emit(Text, text)
}

// answer reads text after the reasoning.
func (p *Parser) answer(text string, end bool) {
	p.held += text
	for {
		if p.calls.active() {
			text := p.held
			p.held = ""
			status, rest := p.calls.push(text, end)
			switch status {
			case callMore:
				if end {
					p.found()
					p.emit(Unfinished, p.calls.unfinished())
					p.calls.reset()
				}
				return
			case callNone: // what looked like a call is text, at least its opening
				p.text(p.calls.opening)
				p.started = true
			case callDone:
				p.found()
				p.gap = true
				p.started = true
			}
			p.calls.reset()
			p.held = rest
			continue
		}
		if p.held == "" {
			return
		}
		if !p.begin(end) {
			return
		}
	}
}

func (p *Parser) found() {
	for _, c := range p.calls.found {
		p.pieces = append(p.pieces, Piece{Kind: Call, Call: c})
	}
}

// begin looks for the start of a call in what is held, and lets out the text before it. It says
// whether to go on.
func (p *Parser) begin(end bool) bool {
	switch p.style.Format {
	case Tagged:
		i, whole := findTag(p.held, tagCall)
		if end && !whole {
			i = len(p.held)
		}
		p.text(p.held[:i])
		p.held = p.held[i:]
		if !whole {
			return false
		}
		p.held = p.held[len(tagCall):]
		p.calls.open(tagCall, readOpen)
		return true
	case Llama:
		if p.started {
			break
		}
		body := strings.TrimLeft(p.held, space)
		if !end && (body == "" || isPrefix(body, tagPython)) {
			return false
		}
		body = strings.TrimLeft(strings.TrimPrefix(body, tagPython), space)
		if !end && body == "" {
			return false
		}
		if strings.HasPrefix(body, "{") {
			opening := p.held[:len(p.held)-len(body)]
			p.held = body
			p.calls.open(opening, readLlama)
			return true
		}
		p.started = true
	}
	p.text(p.held)
	p.held = ""
	return false
}

const (
	space     = " \t\r\n"
	tagCall   = "<tool_call>"
	tagPython = "<|python_tag|>"
)

// findTag returns where a tag begins in s, or where it may have begun: the longest end of s that
// is a beginning of the tag.
func findTag(s, tag string) (at int, whole bool) {
	if i := strings.Index(s, tag); i >= 0 {
		return i, true
	}
	for n := min(len(tag)-1, len(s)); n > 0; n-- {
		if strings.HasSuffix(s, tag[:n]) {
			return len(s) - n, false
		}
	}
	return len(s), false
}

// isPrefix tells whether s is a beginning of the tag, and not yet all of it.
func isPrefix(s, tag string) bool { return len(s) < len(tag) && strings.HasPrefix(tag, s) }
