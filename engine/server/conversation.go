package server

import (
	"encoding/json"
	"errors"
	"strings"

	"velo/engine/chat"
	"velo/engine/sample"
)

// readChat makes a job of a chat request.
func (s *Server) readChat(o *object, header string) (*job, *Error) {
	j := &job{}
	if e := s.readCommon(o, j); e != nil {
		return nil, e
	}
	if e := readChatLogProbs(o, j); e != nil {
		return nil, e
	}
	if e := refuseUnsupported(o); e != nil {
		return nil, e
	}
	p, e := s.readPrompt(o)
	if e != nil {
		return nil, e
	}
	cut, e := s.readTruncate(o)
	if e != nil {
		return nil, e
	}
	if e := s.checkSize("messages", len(p.text), cut); e != nil {
		return nil, e
	}
	ids := s.encode(p.text)
	j.style = p.style
	whole := len(ids)
	ids = keepLast(ids, cut)
	j.prompts = [][]int32{ids}
	if p.choice.mode == choiceNone && len(p.tools) > 0 {
		s.banCalls(j)
	}
	if e := s.fitLengths(j, "messages"); e != nil {
		return nil, e
	}
	held, e := s.constraintOf(o, p)
	if e != nil {
		return nil, e
	}
	j.guide, j.enforced = held.grammar, held.enforced
	if len(ids) == whole && s.o.Scheduler.Options().PrefixCache {
		j.boundaries = s.boundaries(p, ids)
	}
	if j.session, e = s.readSession(o, header, p.messages); e != nil {
		return nil, e
	}
	s.noteUnused(o)
	return j, nil
}

// prompt is a conversation as it was rendered.
type prompt struct {
	messages []message // as they were sent
	rendered []message // with what the server had to add
	request  chat.Request
	text     string
	tools    []tool
	choice   choice
	style    chat.Style
}

// readPrompt reads what a template needs and renders it: chat and tokenize do it alike.
func (s *Server) readPrompt(o *object) (*prompt, *Error) {
	source := s.o.Engine.Source
	if s.o.Engine.Template == nil {
		return nil, fail(NoTemplate, "messages", "cannot render a conversation: %s has no chat template; send a plain prompt to /v1/completions", s.Model())
	}
	messages, e := readMessages(o, strings.Contains(source, "developer"))
	if e != nil {
		return nil, e
	}
	p := &prompt{messages: messages}
	var types chat.Tools
	var raw []byte
	if p.tools, types, raw, e = readTools(o); e != nil {
		return nil, e
	}
	if p.choice, e = readChoice(o, p.tools); e != nil {
		return nil, e
	}
	if p.request.Variables, e = s.readVariables(o); e != nil {
		return nil, e
	}
	documents, e := o.list("documents", maxMessages)
	if e != nil {
		return nil, e
	}
	if len(documents) > 0 {
		p.request.Documents = o.raw("documents")
	}
	if p.request.AddGenerationPrompt, e = o.flag("add_generation_prompt", true); e != nil {
		return nil, e
	}
	own := strings.Contains(source, "tools")
	rendered := messages
	switch {
	case len(p.tools) == 0:
	case p.choice.mode == choiceNone && !s.o.KeepTools:
		p.tools, types = nil, nil
	default:
		if own {
			p.request.Tools = raw
		} else {
			rendered = addSystem(messages, toolText(raw))
		}
		if p.choice.mode == choiceNone {
			rendered = append([]message(nil), rendered...)
			rendered[len(rendered)-1].content += noCallText
			types = nil
		}
	}
	p.rendered = rendered
	p.request.Messages = marshal(rendered)
	if p.text, e = s.render(p.request); e != nil {
		return nil, e
	}
	p.style = chat.StyleOf(source, p.text, types)
	if len(types) > 0 && p.style.Format == chat.NoTools {
		if !own || p.choice.forced() {
			p.style.Format = chat.Tagged
		}
	}
	return p, nil
}

// render renders a conversation.
func (s *Server) render(r chat.Request) (string, *Error) {
	r.BOS, r.EOS = s.bos, s.eos
	text, err := s.o.Engine.Template.Render(r)
	var refused *chat.RefusedError
	switch {
	case errors.As(err, &refused):
		return "", fail(InvalidMessages, "messages", "%v", err)
	case err != nil:
		return "", fail(InvalidMessages, "messages", "%v; this model's template does not take such a conversation", err)
	}
	return text, nil
}

// boundaries are the places of a prompt that a later request is likely to share: the ends of the
// system message, of the messages before the last, and of all messages. Each is the length of the
// template rendered so far, where that is a beginning of the prompt and ends with a token.
func (s *Server) boundaries(p *prompt, ids []int32) []int {
	r := p.request
	r.AddGenerationPrompt = false
	items := mustElements(r.Messages)
	var lengths []int
	for _, n := range []int{1, len(items) - 1, len(items)} {
		if n < 1 || n == 1 && len(items) > 1 && p.rendered[0].role != "system" && r.Tools == nil {
			continue
		}
		if n == len(items) {
			r.Messages = marshalItems(items)
		} else {
			r.Messages = marshalItems(items[:n])
		}
		text, e := s.render(r)
		if e != nil || text == "" || !strings.HasPrefix(p.text, text) {
			continue
		}
		lengths = append(lengths, len(text))
	}
	return s.tokenEnds(p.text, ids, lengths)
}

func marshalItems(items []json.RawMessage) []byte {
	b := []byte{'['}
	for i, m := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, m...)
	}
	return append(b, ']')
}

// tokenEnds returns how many tokens stand before each of the byte offsets of a text that lies
// between two tokens. Where the tokens' bytes are not those of the text (a normaliser changed them)
// there are none.
func (s *Server) tokenEnds(text string, ids []int32, offsets []int) []int {
	t := s.o.Engine.Tokenizer
	at, first := 0, 0
	if bos := t.BOS(); len(ids) > 0 && ids[0] == bos && !(s.bos != "" && strings.HasPrefix(text, s.bos)) {
		first = 1
	}
	wanted := map[int]bool{}
	for _, o := range offsets {
		wanted[o] = true
	}
	var ends []int
	for i, id := range ids[first:] {
		b := t.Token(id)
		if !strings.HasPrefix(text[at:], string(b)) {
			return nil
		}
		if at += len(b); wanted[at] && first+i+1 < len(ids) {
			ends = append(ends, first+i+1)
			delete(wanted, at)
		}
	}
	if at != len(text) {
		return nil
	}
	return ends
}

// checkSize refuses a prompt that cannot fit whatever its tokens are, before they are counted.
func (s *Server) checkSize(param string, bytes, cut int) *Error {
	least := bytes / (4 * s.longest) // normalisers may shorten a text
	if cut == 0 && least > s.o.Engine.Context {
		return fail(ContextExceeded, param, "cannot answer: the prompt of %d bytes has at least %d tokens, and the context holds %d, prompt and answer together; shorten it, send truncate_prompt_tokens, or start with a larger --max-seq-len", bytes, least, s.o.Engine.Context)
	}
	return nil
}

// banCalls keeps the model from opening a call, where one token does so.
func (s *Server) banCalls(j *job) {
	id, ok := s.o.Engine.Tokenizer.ID("<tool_call>")
	if !ok {
		return
	}
	bias := make(map[int32]float32, len(j.sampling.LogitBias)+1)
	for k, v := range j.sampling.LogitBias {
		bias[k] = v
	}
	bias[id] = banned
	j.sampling.LogitBias = bias
}

func readChatLogProbs(o *object, j *job) *Error {
	wanted, e := o.flag("logprobs", false)
	if e != nil {
		return e
	}
	n, ok, e := o.integer("top_logprobs")
	if e != nil {
		return e
	}
	if ok && n > 0 && !wanted {
		return fail(InvalidSampling, "top_logprobs", "cannot give top_logprobs alone: send logprobs true with it")
	}
	if n < 0 || n > maxTop {
		return fail(InvalidSampling, "top_logprobs", "cannot give %d top_logprobs: it must be from 0 to %d", n, maxTop)
	}
	if j.top = sample.NoLogProbs; wanted {
		j.top = int(n)
	}
	return nil
}

// refuseUnsupported refuses what would silently be something else.
func refuseUnsupported(o *object) *Error {
	if raw := o.raw("modalities"); raw != nil {
		var names []string
		if json.Unmarshal(raw, &names) != nil {
			return o.wrong("modalities", "an array of strings")
		}
		for _, n := range names {
			if n != "text" {
				return fail(UnsupportedParam, "modalities", "cannot answer with %.40q: this model writes text only", n)
			}
		}
	}
	if o.raw("audio") != nil {
		return fail(UnsupportedParam, "audio", "cannot answer with audio: this model writes text only")
	}
	for _, name := range []string{"continue_final_message", "use_beam_search", "echo"} {
		on, e := o.flag(name, false)
		if e != nil {
			return e
		}
		if on {
			return fail(UnsupportedParam, name, "cannot take %s: it is not supported; leave it out", name)
		}
	}
	return nil
}
