package sim

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// renderer turns the chunks of one reply into the bytes of server-sent events.
type renderer struct {
	reply     *reply
	usageMode string // own, finish, continuous, absent, null, null_only
	json      []byte // the chunk being written
	body      []byte // all events so far
	events    []event
	streamed  int           // tokens streamed so far, all choices
	rest      time.Duration // when the body ends, if that is after its last event
	eol       string
	finishing bool // the chunk being written has a finish reason
	choices   int  // choices written into it
	cut       bool // the last event is cut off in the middle
}

func newRenderer(r *reply) *renderer {
	w := &renderer{reply: r, eol: "\n"}
	switch r.scenario.LineEnd {
	case "crlf":
		w.eol = "\r\n"
	case "cr":
		w.eol = "\r"
	}
	w.usageMode = r.scenario.Usage
	if w.usageMode == "" {
		switch {
		case !r.includeUsage:
			w.usageMode = "absent"
		case r.continuousUsage:
			w.usageMode = "continuous"
		default:
			w.usageMode = "own"
		}
	}
	chunks := len(r.plan.steps)*r.choices + 6
	w.body = make([]byte, 0, chunks*(260+r.scenario.LineBytes))
	w.events = make([]event, 0, chunks)
	return w
}

// begin starts the JSON of a chunk.
func (w *renderer) begin() {
	r := w.reply
	w.finishing, w.choices = false, 0
	b := append(w.json[:0], `{"id":"`...)
	b = append(b, r.id...)
	if r.chat {
		b = append(b, `","object":"chat.completion.chunk","created":`...)
	} else {
		b = append(b, `","object":"text_completion","created":`...)
	}
	b = strconv.AppendInt(b, r.created, 10)
	b = append(b, `,"model":`...)
	b = appendString(b, r.model)
	w.json = append(b, `,"choices":[`...)
}

// choice adds a choice with the given text to the chunk. opening adds an empty
// text, role the role; finish is a finish reason or "".
func (w *renderer) choice(index int, part []segment, role, opening bool, finish string) {
	r, b := w.reply, w.json
	if w.choices++; w.choices > 1 {
		b = append(b, ',')
	}
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, int64(index), 10)
	if r.chat {
		b = append(b, `,"delta":{`...)
		b = w.delta(b, part, role, opening)
		b = append(b, '}')
	} else {
		b = append(b, `,"text":"`...)
		for _, s := range part {
			b = appendTokens(b, s.tokens)
		}
		b = append(b, '"')
	}
	b = append(b, `,"logprobs":`...)
	if r.logprobs && len(part) > 0 {
		b = appendLogprobs(b, part, r.chat)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"finish_reason":`...)
	if finish == "" {
		b = append(b, "null"...)
	} else {
		w.finishing = true
		b = appendString(b, finish)
	}
	if r.tokenIDs {
		b = append(b, `,"token_ids":[`...)
		b = appendIDs(b, part)
		b = append(b, ']')
	}
	w.json = append(b, '}')
}

// delta writes the members of a chat delta.
func (w *renderer) delta(b []byte, part []segment, role, opening bool) []byte {
	member := func(b []byte, name string) []byte {
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, name...)
		return append(b, `":`...)
	}
	if role {
		b = member(b, "role")
		b = append(b, `"assistant"`...)
	}
	if opening {
		b = member(b, "content")
		b = append(b, `""`...)
	}
	tools := 0
	for _, s := range part {
		if s.kind == KindTool {
			if tools++; tools == 1 {
				b = member(b, "tool_calls")
				b = append(b, '[')
			} else {
				b = append(b, ',')
			}
			b = w.toolCall(b, s)
			continue
		}
		b = member(b, s.field)
		if s.field == "content" && w.reply.scenario.ContentParts {
			b = append(b, `[{"type":"text","text":"`...)
			b = appendTokens(b, s.tokens)
			b = append(b, `"}]`...)
			continue
		}
		b = append(b, '"')
		b = appendTokens(b, s.tokens)
		b = append(b, '"')
	}
	if tools > 0 {
		b = append(b, ']')
	}
	return b
}

func (w *renderer) toolCall(b []byte, s segment) []byte {
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, int64(s.tool), 10)
	tokens := s.tokens
	if s.named {
		b = append(b, `,"id":"`...)
		b = append(b, w.reply.toolID(s.tool)...)
		b = append(b, `","type":"function","function":{"name":"`...)
		b = append(b, tokens[0].escaped...)
		b = append(b, `","arguments":"`...)
		tokens = tokens[1:]
	} else {
		b = append(b, `,"function":{"arguments":"`...)
	}
	b = appendTokens(b, tokens)
	return append(b, `"}}`...)
}

func (r *reply) toolID(tool int) string { return "call_" + r.id + "_" + strconv.Itoa(tool) }

// finish closes the JSON of a chunk, with usage and timings where they belong,
// and makes an event of it.
func (w *renderer) finish(kind string, choice, tokens int, due time.Duration) {
	r := w.reply
	b := append(w.json, ']')
	final := kind == KindUsage || (w.finishing && w.usageMode == "finish")
	switch {
	case final:
		b = append(b, `,"usage":`...)
		b = r.appendUsage(b, w.streamed, true)
	case w.usageMode == "continuous":
		b = append(b, `,"usage":`...)
		b = r.appendUsage(b, w.streamed, false)
	case w.usageMode == "null" || w.usageMode == "null_only":
		b = append(b, `,"usage":null`...)
	}
	if w.finishing && r.scenario.Timings {
		b = append(b, `,"timings":`...)
		b = r.appendTimings(b)
	}
	if pad := r.scenario.LineBytes - len("data: ") - len(b) - len(`,"padding":""}`); tokens > 0 && pad > 0 {
		b = append(b, `,"padding":"`...)
		for ; pad > 0; pad -= len(padding) {
			b = append(b, padding[:min(pad, len(padding))]...)
		}
		b = append(b, '"')
	}
	w.json = append(b, '}')
	w.emit(kind, choice, tokens, due, w.json)
}

// padding fills long lines.
var padding = strings.Repeat("x", 1<<14)

// raw makes an event of any data.
func (w *renderer) raw(kind, data string, due time.Duration) {
	w.emit(kind, 0, 0, due, []byte(data))
}

// emit appends an event, and the keep-alive comments that the wait for it calls
// for.
func (w *renderer) emit(kind string, choice, tokens int, due time.Duration, data []byte) {
	s := &w.reply.scenario
	before := time.Duration(s.HeaderDelay)
	if n := len(w.events); n > 0 {
		before = w.events[n-1].due
	}
	due = max(due, before)
	if len(w.body) == 0 && s.BOM {
		w.body = append(w.body, "\xef\xbb\xbf"...)
	}
	if every := time.Duration(s.KeepAlive); every > 0 {
		for t := before + every; t < due && len(w.events) < maxEvents; t += every {
			w.body = append(w.body, ": keep-alive"...)
			w.body = append(w.body, w.eol...)
			w.body = append(w.body, w.eol...)
			w.events = append(w.events, event{kind: KindComment, due: t, end: len(w.body)})
		}
	}
	w.body = w.appendEvent(w.body, data)
	w.events = append(w.events, event{kind: kind, choice: choice, tokens: tokens, due: due, end: len(w.body)})
}

// maxEvents bounds the keep-alive comments of one reply.
const maxEvents = 2 * MaxTokens

// appendEvent writes the lines of one event and the blank line behind it.
func (w *renderer) appendEvent(b, data []byte) []byte {
	s, number := &w.reply.scenario, len(w.events)
	if s.Comments > 0 && number%s.Comments == 0 {
		b = append(b, ": comment "...)
		b = strconv.AppendInt(b, int64(number), 10)
		b = append(b, w.eol...)
	}
	if s.EventFields {
		b = append(b, "event: message"...)
		b = append(b, w.eol...)
		b = append(b, "id: "...)
		b = strconv.AppendInt(b, int64(number), 10)
		b = append(b, w.eol...)
		b = append(b, "retry: 3000"...)
		b = append(b, w.eol...)
	}
	for len(data) > 0 {
		n := len(data)
		if s.MultiLine {
			n = lineBreak(data)
		}
		b = append(b, "data:"...)
		if !s.NoSpace {
			b = append(b, ' ')
		}
		b = append(b, data[:n]...)
		b = append(b, w.eol...)
		data = data[n:]
	}
	return append(b, w.eol...)
}

// lineBreak is the length of data up to and with the first comma outside the
// strings of a JSON text, where a line break changes nothing.
func lineBreak(data []byte) int {
	inside := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case c == ',' && !inside:
			return i + 1
		}
	}
	return len(data)
}

// truncate keeps the first half of event number first and drops the rest.
func (w *renderer) truncate(first int) {
	// Keep-alive comments may have come in front of the chunk.
	for first < len(w.events)-1 && w.events[first].kind == KindComment {
		first++
	}
	start := 0
	if first > 0 {
		start = w.events[first-1].end
	}
	w.events = w.events[:first+1]
	e := &w.events[first]
	e.kind, e.tokens = KindTruncated, 0
	e.end = start + (e.end-start)/2
	w.body = w.body[:e.end]
	w.cut = true
}

// dropFinalBlank takes the blank line behind the last event away.
func (w *renderer) dropFinalBlank() {
	if n := len(w.events); n > 0 && !w.cut {
		w.events[n-1].end -= len(w.eol)
		w.body = w.body[:w.events[n-1].end]
	}
}

// appendTokens writes the text of tokens as it stands inside a JSON string.
func appendTokens(b []byte, tokens []*token) []byte {
	for _, t := range tokens {
		b = append(b, t.escaped...)
	}
	return b
}

// appendString writes a JSON string.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	b = appendEscaped(b, s)
	return append(b, '"')
}

// appendEscaped writes s as it stands inside a JSON string. Only what JSON
// demands is escaped: characters beyond ASCII, U+2028 among them, stay raw, as
// in the replies of Python servers. Broken UTF-8 becomes U+FFFD.
func appendEscaped(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			b = utf8.AppendRune(b, r)
			i += size
			continue
		}
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c == '\t':
			b = append(b, '\\', 't')
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
		i++
	}
	return b
}

// appendLogprobs writes the logprobs of a chunk's tokens in the form of the
// chat or of the text endpoint. Every token has the same: they tell tokens
// apart, nothing else.
func appendLogprobs(b []byte, part []segment, chat bool) []byte {
	const logprob = "-0.25"
	if chat {
		b = append(b, `{"content":[`...)
		for _, s := range part {
			for _, t := range s.tokens {
				if b[len(b)-1] != '[' {
					b = append(b, ',')
				}
				b = append(b, `{"token":"`...)
				b = append(b, t.escaped...)
				b = append(b, `","logprob":`+logprob+`,"bytes":[`...)
				for i := range len(t.text) {
					if i > 0 {
						b = append(b, ',')
					}
					b = strconv.AppendUint(b, uint64(t.text[i]), 10)
				}
				b = append(b, `],"top_logprobs":[]}`...)
			}
		}
		return append(b, `]}`...)
	}
	list := func(b []byte, one func(b []byte, t *token) []byte) []byte {
		b = append(b, '[')
		for _, s := range part {
			for _, t := range s.tokens {
				if b[len(b)-1] != '[' {
					b = append(b, ',')
				}
				b = one(b, t)
			}
		}
		return append(b, ']')
	}
	b = append(b, `{"tokens":`...)
	b = list(b, func(b []byte, t *token) []byte {
		b = append(b, '"')
		b = append(b, t.escaped...)
		return append(b, '"')
	})
	b = append(b, `,"token_logprobs":`...)
	b = list(b, func(b []byte, t *token) []byte { return append(b, logprob...) })
	return append(b, `,"top_logprobs":null,"text_offset":null}`...)
}

// appendIDs writes the token numbers of a chunk.
func appendIDs(b []byte, part []segment) []byte {
	first := true
	for _, s := range part {
		for _, t := range s.tokens {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = strconv.AppendInt(b, tokenID(t.text), 10)
		}
	}
	return b
}
