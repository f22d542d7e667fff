package server

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// chat serves /v1/chat/completions.
func (s *Server) chat(w http.ResponseWriter, r *http.Request, o *object) {
	j, e := s.readChat(o, r.Header.Get("X-Session-Id"))
	o.release()
	if e != nil {
		writeError(w, e)
		return
	}
	f := s.chatForm()
	s.logPrompt(f.id, s.o.Engine.Tokenizer.Decode(j.prompts[0][:min(len(j.prompts[0]), max(s.o.Prompts, 0))]))
	s.serve(w, r, j, f)
}

// complete serves /v1/completions.
func (s *Server) complete(w http.ResponseWriter, r *http.Request, o *object) {
	j, e := s.readCompletion(o)
	o.release()
	if e != nil {
		writeError(w, e)
		return
	}
	f := s.plainForm()
	s.logPrompt(f.id, s.o.Engine.Tokenizer.Decode(j.prompts[0][:min(len(j.prompts[0]), max(s.o.Prompts, 0))]))
	s.serve(w, r, j, f)
}

// readCompletion makes a job of a request for a plain completion.
func (s *Server) readCompletion(o *object) (*job, *Error) {
	j := &job{}
	if e := s.readCommon(o, j); e != nil {
		return nil, e
	}
	if o.raw("max_tokens") == nil && o.raw("max_completion_tokens") == nil {
		j.maxTokens = 16 // as OpenAI's API has it
	}
	for _, name := range []string{"echo", "use_beam_search"} {
		on, e := o.flag(name, false)
		if e != nil {
			return nil, e
		}
		if on {
			return nil, fail(UnsupportedParam, name, "cannot take %s: it is not supported; leave it out", name)
		}
	}
	if suffix, _, e := o.text("suffix"); e != nil {
		return nil, e
	} else if suffix != "" {
		return nil, fail(UnsupportedParam, "suffix", "cannot take suffix: this server does not fill gaps; leave it out")
	}
	n, ok, e := o.integer("logprobs")
	if e != nil {
		return nil, e
	}
	if ok {
		if n < 0 || n > maxTop {
			return nil, fail(InvalidSampling, "logprobs", "cannot give %d logprobs: it must be from 0 to %d", n, maxTop)
		}
		j.top = int(n)
	}
	showHidden, e := o.flag("skip_special_tokens", true)
	if e != nil {
		return nil, e
	}
	j.showSpecial = !showHidden
	add, e := o.flag("add_special_tokens", true)
	if e != nil {
		return nil, e
	}
	cut, e := s.readTruncate(o)
	if e != nil {
		return nil, e
	}
	if j.prompts, e = s.readPrompts(o, "prompt", add, cut); e != nil {
		return nil, e
	}
	if len(j.prompts)*j.copies > maxAnswers {
		return nil, fail(InvalidBody, "n", "cannot give %d answers to each of %d prompts: %d answers are the most of one request", j.copies, len(j.prompts), maxAnswers)
	}
	if e := s.fitLengths(j, "prompt"); e != nil {
		return nil, e
	}
	held, e := s.constraintOf(o, nil)
	if e != nil {
		return nil, e
	}
	j.guide, j.enforced = held.grammar, held.enforced
	s.noteUnused(o)
	return j, nil
}

// readPrompts reads a prompt, which is a text, an array of texts, an array of ids, or an array of
// such arrays.
func (s *Server) readPrompts(o *object, name string, special bool, cut int) ([][]int32, *Error) {
	raw := o.raw(name)
	switch kind(raw) {
	case "nothing":
		return nil, fail(InvalidBody, name, "cannot answer: the request has no %s; send a string", name)
	case "a string":
		ids, e := s.encodePlain(raw, name, special, cut)
		return [][]int32{ids}, e
	case "an array":
	default:
		return nil, o.wrong(name, "a string, an array of strings, or an array of token ids")
	}
	items, over := elements(raw, max(maxPrompts, s.o.Engine.Weights.Config.MaxPosition, s.o.Engine.Context)+1)
	if len(items) == 0 {
		return nil, fail(InvalidBody, name, "cannot answer an empty %s: send at least one token", name)
	}
	if kind(items[0]) == "a number" {
		if over && cut == 0 {
			return nil, tooLong(name, len(items), s.o.Engine.Context)
		}
		ids, e := s.readIDs(raw, name)
		if e != nil {
			return nil, e
		}
		return [][]int32{keepLast(ids, cut)}, nil
	}
	if len(items) > maxPrompts {
		return nil, fail(InvalidBody, name, "cannot answer more than %d prompts in one request: send several", maxPrompts)
	}
	var prompts [][]int32
	for i, item := range items {
		where := fmt.Sprintf("%s[%d]", name, i)
		var ids []int32
		var e *Error
		switch kind(item) {
		case "a string":
			ids, e = s.encodePlain(item, where, special, cut)
		case "an array":
			ids, e = s.readIDs(item, where)
			ids = keepLast(ids, cut)
		default:
			e = fail(InvalidBody, where, "cannot read %s: it must be a string or an array of token ids, not %s", where, kind(item))
		}
		if e != nil {
			return nil, e
		}
		prompts = append(prompts, ids)
	}
	return prompts, nil
}

// encodePlain encodes a plain text. The texts of special tokens in it become those tokens, since
// whoever sends a plain prompt writes the template by hand.
func (s *Server) encodePlain(raw json.RawMessage, name string, special bool, cut int) ([]int32, *Error) {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil, fail(InvalidBody, name, "cannot read %s: it is no string", name)
	}
	if e := s.checkSize(name, len(text), cut); e != nil {
		return nil, e
	}
	t := s.o.Engine.Tokenizer
	var ids []int32
	if special {
		ids = append(ids, t.Before()...)
	}
	ids = t.AppendEncode(ids, text, true)
	if special {
		ids = append(ids, t.After()...)
	}
	if len(ids) == 0 {
		return nil, fail(InvalidBody, name, "cannot answer an empty %s: send at least one token", name)
	}
	return keepLast(ids, cut), nil
}

// readIDs reads an array of token ids.
func (s *Server) readIDs(raw json.RawMessage, name string) ([]int32, *Error) {
	var numbers []json.Number
	if kind(raw) != "an array" || json.Unmarshal(raw, &numbers) != nil {
		return nil, fail(InvalidTokens, name, "cannot read %s: it must be an array of token ids", name)
	}
	if len(numbers) == 0 {
		return nil, fail(InvalidTokens, name, "cannot use an empty %s: send at least one token", name)
	}
	vocab := int64(s.o.Engine.Tokenizer.Vocab())
	ids := make([]int32, len(numbers))
	for i, n := range numbers {
		id, err := wholeNumber(json.RawMessage(n))
		if err != nil || id < 0 || id >= vocab {
			return nil, fail(InvalidTokens, fmt.Sprintf("%s[%d]", name, i), "cannot read %s[%d]: %.40s is no token; the model has tokens 0 to %d", name, i, n, vocab-1)
		}
		ids[i] = int32(id)
	}
	return ids, nil
}
