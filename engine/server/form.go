package server

import (
	"strconv"
	"time"

	"velo/engine/chat"
	"velo/engine/emit"
	"velo/engine/sample"
)

// form is how the answers of one request are written: those of a conversation, or of a plain
// completion.
type form struct {
	id, generation      string
	object, chunkObject string
	model, span         string
	created             int64
	plain               bool
	usage               func(b []byte) []byte // adds usage to a chunk, where every one has it
}

func (s *Server) chatForm() form {
	return form{id: newID("chatcmpl-"), generation: newID("gen-"), object: "chat.completion", chunkObject: "chat.completion.chunk",
		model: s.o.Model, span: "chat", created: time.Now().Unix()}
}

func (s *Server) plainForm() form {
	return form{id: newID("cmpl-"), generation: newID("gen-"), object: "text_completion", chunkObject: "text_completion",
		model: s.o.Model, span: "text_completion", created: time.Now().Unix(), plain: true}
}

// appendHead begins a document or a chunk.
func (f *form) appendHead(b []byte, object string) []byte {
	b = append(append(append(b, `{"id":"`...), f.id...), `","object":"`...)
	b = append(append(b, object...), `","created":`...)
	b = strconv.AppendInt(b, f.created, 10)
	b = append(b, `,"model":`...)
	return append(appendQuoted(b, f.model), ',')
}

// appendSession adds the session's key, where there is one.
func (f *form) appendSession(b []byte, j *job) []byte {
	if j.session == "" {
		return b
	}
	return appendQuoted(append(b, `,"session_id":`...), j.session)
}

// chunk is one chunk with one choice: body is what distinguishes it, logprobs its own or nil.
func (f *form) chunk(a *answer, body string, logprobs []byte) []byte {
	b := f.appendHead(make([]byte, 0, 256+len(body)+len(logprobs)), f.chunkObject)
	b = append(b, `"choices":[{"index":`...)
	b = strconv.AppendInt(b, int64(a.index), 10)
	b = append(append(b, ','), body...)
	b = append(b, `,"logprobs":`...)
	if logprobs == nil {
		logprobs = []byte("null")
	}
	b = append(append(b, logprobs...), `,"finish_reason":null}]`...)
	if f.usage != nil {
		b = f.usage(b)
	}
	return append(b, '}')
}

// last is the chunk that ends an answer. more is added to the chunk.
func (f *form) last(a *answer, reason string, stopReason, more []byte) []byte {
	b := f.appendHead(nil, f.chunkObject)
	b = append(b, `"choices":[{"index":`...)
	b = strconv.AppendInt(b, int64(a.index), 10)
	if f.plain {
		b = append(b, `,"text":"","logprobs":`...)
	} else {
		b = append(b, `,"delta":{},"logprobs":`...)
	}
	if a.logprobs.empty() {
		b = append(b, "null"...)
	} else {
		b = a.logprobs.take(b)
	}
	b = append(append(append(b, `,"finish_reason":"`...), reason...), '"')
	if stopReason != nil {
		b = append(append(b, `,"stop_reason":`...), stopReason...)
	}
	b = append(append(b, "}]"...), more...)
	if f.usage != nil {
		b = f.usage(b)
	}
	return append(b, '}')
}

// say sends pieces of an answer as chunks. Log-probabilities go with the first of them.
func (f *form) say(s *Server, out *events, a *answer, pieces []chat.Piece) {
	take := func() []byte {
		if a.logprobs.want == sample.NoLogProbs || a.logprobs.empty() {
			return nil
		}
		return a.logprobs.take(nil)
	}
	for _, p := range pieces {
		logprobs := take()
		switch {
		case f.plain:
			out.send(f.chunk(a, `"text":`+string(quoted(p.Text)), logprobs))
		case p.Kind == chat.Text:
			a.begun.deny()
			out.emit(f.chunk(a, `"delta":{"content":`+string(quoted(p.Text))+`}`, logprobs), emit.Delta)
		case p.Kind == chat.Reasoning:
			out.emit(f.chunk(a, `"delta":{"reasoning_content":`+string(quoted(p.Text))+`}`, logprobs), emit.Delta)
		case p.Kind == chat.Call:
			a.complete++
			call := a.begun.confirm(p.Call)
			if call == nil {
				call = &openCall{index: -1, name: p.Call.Name}
			}
			f.call(s, out, a, call, p.Call.Arguments, logprobs)
		}
	}
	if a.begun != nil {
		for _, call := range a.begun.open {
			f.call(s, out, a, call, call.arguments.String(), take())
		}
	}
}

// call sends what is new of a call: its name, and its arguments up to where they are known.
func (f *form) call(s *Server, out *events, a *answer, call *openCall, arguments string, logprobs []byte) {
	if call.index < 0 {
		call.index = a.calls
		a.calls++
		out.emit(f.chunk(a, `"delta":{"tool_calls":[{"index":`+strconv.Itoa(call.index)+`,"id":"`+s.callID()+`","type":"function","function":{"name":`+string(quoted(call.name))+`,"arguments":""}}]}`, logprobs), emit.Delta)
		logprobs = nil
	}
	if more := arguments[call.sent:]; more != "" {
		call.sent = len(arguments)
		out.emit(f.chunk(a, `"delta":{"tool_calls":[{"index":`+strconv.Itoa(call.index)+`,"function":{"arguments":`+string(quoted(more))+`}}]}`, logprobs), emit.Delta)
	}
}

// callID is a name for a call that no other has in this process.
func (s *Server) callID() string { return "call_" + strconv.FormatInt(s.calls.Add(1), 10) }

// add takes pieces of an answer into its document.
func (d *document) add(s *Server, a *answer, pieces []chat.Piece) {
	for _, p := range pieces {
		switch p.Kind {
		case chat.Text:
			d.content.WriteString(p.Text)
		case chat.Reasoning:
			d.reasoning.WriteString(p.Text)
		case chat.Call:
			if a.complete > 0 {
				d.calls = append(d.calls, ',')
			}
			a.complete++
			d.calls = append(d.calls, `{"id":"`+s.callID()+`","type":"function","function":{"name":`...)
			d.calls = appendQuoted(d.calls, p.Call.Name)
			d.calls = append(d.calls, `,"arguments":`...)
			d.calls = appendQuoted(d.calls, p.Call.Arguments)
			d.calls = append(d.calls, "}}"...)
		}
	}
}

// appendChoice writes a choice up to its finish reason.
func (f *form) appendChoice(b []byte, a *answer, d *document) []byte {
	b = append(b, `{"index":`...)
	b = strconv.AppendInt(b, int64(a.index), 10)
	if f.plain {
		b = appendQuoted(append(b, `,"text":`...), d.content.String())
	} else {
		b = append(b, `,"message":{"role":"assistant","content":`...)
		if d.content.Len() == 0 && a.complete > 0 {
			b = append(b, "null"...)
		} else {
			b = appendQuoted(b, d.content.String())
		}
		if d.reasoning.Len() > 0 {
			b = appendQuoted(append(b, `,"reasoning_content":`...), d.reasoning.String())
		}
		if a.complete > 0 {
			b = append(append(append(b, `,"tool_calls":[`...), d.calls...), ']')
		}
		b = append(b, `,"refusal":null}`...)
	}
	return a.logprobs.take(append(b, `,"logprobs":`...))
}
