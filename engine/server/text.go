package server

import (
	"slices"
	"strings"

	"velo/engine/chat"
	"velo/engine/tokenizer"
)

// reader turns the tokens of one answer into its text, up to a stop string. The scheduler's loop
// and the handler each run one over the same tokens, so that both end at the same place.
type reader struct {
	tokenizer *tokenizer.Tokenizer
	stream    *tokenizer.Stream
	end       []int32 // ids that end an answer; they are no text
	keep      []int32 // control tokens that are text all the same: the tags of reasoning and calls
	special   bool    // every control token is text
	stops     stopper
	tokens    int
	least     int // stop strings count after so many tokens
}

// tags are the texts that the parser of an answer looks for, which some vocabularies have as
// control tokens.
var tags = []string{"<think>", "</think>", "<tool_call>", "</tool_call>"}

const pythonTag = "<|python_tag|>"

// newReader reads an answer to a job.
func (s *Server) newReader(j *job) *reader {
	r := &reader{tokenizer: s.o.Engine.Tokenizer, stream: s.o.Engine.Tokenizer.NewStream(), end: s.o.Engine.EOS,
		special: j.showSpecial, stops: stopper{stops: j.stops}, least: j.minTokens}
	if j.style.Think || j.style.Format == chat.Tagged {
		r.keep = s.tags
	}
	if j.style.Format == chat.Llama {
		r.keep = append(slices.Clone(r.keep), s.pythonTag...)
	}
	return r
}

// push reads a token and returns the text that is certain now. stop is the index of the stop string
// that ended the answer, else -1.
func (r *reader) push(id int32) (text string, stop int) {
	if slices.Contains(r.end, id) {
		return "", -1 // which the scheduler does not show to Watch either
	}
	r.tokens++
	if r.special || !r.tokenizer.Special(id) || slices.Contains(r.keep, id) {
		text = r.stream.Push(id)
	}
	return r.stops.push(text, r.tokens > r.least)
}

// flush ends the answer and returns what was held back.
func (r *reader) flush() (text string, stop int) {
	text, stop = r.stops.push(r.stream.Flush(), r.tokens > r.least)
	if stop < 0 {
		text += r.stops.held
	}
	r.stops.held = ""
	return text, stop
}

// stopper looks for stop strings and holds back what may be the beginning of one.
type stopper struct {
	stops []string
	held  string
}

func (s *stopper) push(text string, armed bool) (out string, stop int) {
	if len(s.stops) == 0 {
		return text, -1
	}
	if !armed {
		out, s.held = s.held+text, ""
		return out, -1
	}
	s.held += text
	at, stop := len(s.held), -1
	for i, w := range s.stops {
		if k := strings.Index(s.held, w); k >= 0 && k < at {
			at, stop = k, i
		}
	}
	if stop >= 0 {
		out, s.held = s.held[:at], ""
		return out, stop
	}
	for _, w := range s.stops {
		for n := min(len(w)-1, len(s.held)); n > len(s.held)-at; n-- {
			if strings.HasSuffix(s.held, w[:n]) {
				at = len(s.held) - n
				break
			}
		}
	}
	out, s.held = s.held[:at], s.held[at:]
	return out, -1
}
