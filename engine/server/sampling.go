package server

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"

	"velo/engine/chat"
	"velo/engine/grammar"
	"velo/engine/sample"
)

// job is what both endpoints make of a request: prompts, and how they are to be answered.
type job struct {
	prompts    [][]int32
	boundaries []int // of the only prompt of a conversation
	sampling   sample.Params
	maxTokens  int
	minTokens  int
	ignoreEOS  bool
	stops      []string
	copies     int
	top        int // log-probabilities wanted, sample.NoLogProbs for none
	guide      *grammar.Grammar
	enforced   string // what x-json-schema-enforced says, "" for none of it
	style      chat.Style
	session    string

	stream          bool
	usage, everyUse bool // usage at the end of a stream; in every chunk of it
	showSpecial     bool
}

// readCommon reads the members that chat and plain completions share.
func (s *Server) readCommon(o *object, j *job) *Error {
	j.copies, j.top = 1, sample.NoLogProbs
	if e := s.readSampling(o, &j.sampling); e != nil {
		return e
	}
	if e := readStops(o, j); e != nil {
		return e
	}
	if e := readLengths(o, j, s.o.MaxTokens); e != nil {
		return e
	}
	n, ok, e := o.integer("n")
	if e != nil {
		return e
	}
	if ok {
		if n < 1 || n > maxCopies {
			return fail(InvalidSampling, "n", "cannot give %d answers: n must be from 1 to %d", n, maxCopies)
		}
		if have := s.o.Scheduler.Options(); int(n) > have.Lanes+have.Waiting {
			return fail(InvalidSampling, "n", "cannot give %d answers: %d at most may run and wait", n, have.Lanes+have.Waiting)
		}
		j.copies = int(n)
	}
	if best, ok, e := o.integer("best_of"); e != nil {
		return e
	} else if ok && best > int64(j.copies) {
		return fail(UnsupportedParam, "best_of", "cannot choose among best_of %d answers: send n for several answers, and choose", best)
	}
	if j.stream, e = o.flag("stream", false); e != nil {
		return e
	}
	options, e := o.child("stream_options")
	if e != nil {
		return e
	}
	j.usage = true
	if options != nil {
		if j.usage, e = options.flag("include_usage", true); e != nil {
			return e
		}
		if j.everyUse, e = options.flag("continuous_usage_stats", false); e != nil {
			return e
		}
	}
	return nil
}

// readSampling starts from the server's defaults.
func (s *Server) readSampling(o *object, p *sample.Params) *Error {
	*p = s.o.Defaults
	for _, f := range []struct {
		name   string
		dst    *float32
		lo, hi float64
	}{
		{"temperature", &p.Temperature, 0, 100}, {"top_p", &p.TopP, 0, 1}, {"min_p", &p.MinP, 0, 1},
		{"repetition_penalty", &p.RepetitionPenalty, 0, 100},
		{"presence_penalty", &p.PresencePenalty, -2, 2}, {"frequency_penalty", &p.FrequencyPenalty, -2, 2},
	} {
		v, ok, e := o.number(f.name)
		if e != nil {
			return e
		}
		if !ok {
			continue
		}
		if v < f.lo || v > f.hi || f.name == "repetition_penalty" && v == 0 {
			above := ""
			if f.name == "repetition_penalty" {
				above = "above "
			}
			return fail(InvalidSampling, f.name, "cannot sample with %s %v: it must be from %s%v to %v", f.name, v, above, f.lo, f.hi)
		}
		*f.dst = float32(v)
	}
	if p.TopP > 0 {
		p.TopP = max(p.TopP, 0.01)
	} else if _, sent := o.values["top_p"]; sent && o.raw("top_p") != nil {
		p.TopP = 0.01 // 0 asks for the likeliest token alone
	}
	if k, ok, e := o.integer("top_k"); e != nil {
		return e
	} else if ok {
		if k < -1 || k > math.MaxInt32 {
			return fail(InvalidSampling, "top_k", "cannot sample with top_k %d: it must be 1 or more, or 0 or -1 for all tokens", k)
		}
		p.TopK = int(max(k, 0))
	}
	p.Seed = rand.Uint64()
	if seed, ok, e := o.integer("seed"); e != nil {
		return e
	} else if ok {
		p.Seed = uint64(seed)
	}
	return s.readBias(o, p)
}

func (s *Server) readBias(o *object, p *sample.Params) *Error {
	bias, e := o.child("logit_bias")
	if e != nil || bias == nil {
		return e
	}
	if len(bias.keys) > maxBias {
		return fail(InvalidSampling, "logit_bias", "cannot take logit_bias: it names %d tokens, more than %d", len(bias.keys), maxBias)
	}
	p.LogitBias = make(map[int32]float32, len(bias.keys))
	vocab := s.o.Engine.Tokenizer.Vocab()
	for _, k := range bias.keys {
		id, err := strconv.Atoi(k)
		if err != nil || id < 0 || id >= vocab {
			return fail(InvalidSampling, "logit_bias", "cannot take logit_bias: %.40q is no token; the model has tokens 0 to %d", k, vocab-1)
		}
		v, ok, e := bias.number(k)
		if e != nil {
			return e
		}
		if ok && (v < -100 || v > 100) {
			return fail(InvalidSampling, "logit_bias", "cannot take logit_bias: that of token %d is %v; it must be from -100 to 100", id, v)
		}
		if v == -100 { // OpenAI's way to ban a token
			v = math.Inf(-1)
		}
		p.LogitBias[int32(id)] = float32(v)
	}
	return nil
}

func readStops(o *object, j *job) *Error {
	raw := o.raw("stop")
	if raw == nil {
		return nil
	}
	if kind(raw) == "a string" {
		raw = append(append(json.RawMessage("["), raw...), ']')
	} else if kind(raw) != "an array" {
		return o.wrong("stop", "a string or an array of strings")
	}
	items, over := elements(raw, maxStops)
	if over {
		return fail(InvalidBody, "stop", "cannot take stop: it has more than %d strings", maxStops)
	}
	for i, item := range items {
		var t string
		if kind(item) != "a string" || json.Unmarshal(item, &t) != nil {
			return fail(InvalidBody, "stop", "cannot read stop[%d]: it must be a string, not %s", i, kind(item))
		}
		if len(t) > maxStop {
			return fail(InvalidBody, "stop", "cannot take stop[%d]: it has %d bytes, more than %d", i, len(t), maxStop)
		}
		if t != "" { // OpenAI's SDKs send "" for none
			j.stops = append(j.stops, t)
		}
	}
	return nil
}

// readLengths reads how long an answer may and must be. max_completion_tokens wins.
func readLengths(o *object, j *job, absent int) *Error {
	j.maxTokens = absent
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		n, ok, e := o.integer(name)
		if e != nil {
			return e
		}
		if !ok {
			continue
		}
		if n < 1 {
			return fail(InvalidBody, name, "cannot answer with %s %d: it must be 1 or more; leave it out for as much as the context holds", name, n)
		}
		j.maxTokens = int(min(n, math.MaxInt32))
	}
	n, ok, e := o.integer("min_tokens")
	if e != nil {
		return e
	}
	if ok && n < 0 {
		return fail(InvalidBody, "min_tokens", "cannot answer with min_tokens %d: it must be 0 or more", n)
	}
	j.minTokens = int(min(n, math.MaxInt32))
	j.ignoreEOS, e = o.flag("ignore_eos", false)
	return e
}

// fitLengths clamps the lengths of an answer to what the context leaves; the error says that it
// leaves nothing.
func (s *Server) fitLengths(j *job, param string) *Error {
	longest := 0
	for _, p := range j.prompts {
		longest = max(longest, len(p))
	}
	room := s.o.Engine.Context - longest
	if room < 1 {
		return tooLong(param, longest, s.o.Engine.Context)
	}
	if j.maxTokens == 0 || j.maxTokens > room {
		j.maxTokens = room
	}
	j.minTokens = min(j.minTokens, j.maxTokens)
	if err := j.sampling.Validate(s.o.Engine.Weights.Config.Vocab); err != nil {
		return fail(InvalidSampling, "", "%v", err)
	}
	return nil
}

// readTruncate reads truncate_prompt_tokens: the last n tokens of the prompt are kept, 0 for all.
func (s *Server) readTruncate(o *object) (int, *Error) {
	n, ok, e := o.integer("truncate_prompt_tokens")
	if e != nil || !ok {
		return 0, e
	}
	if n == -1 {
		return s.o.Engine.Context - 1, nil
	}
	if n < 1 {
		return 0, fail(InvalidBody, "truncate_prompt_tokens", "cannot keep the last %d tokens of a prompt: it must be 1 or more, or -1 for as many as fit", n)
	}
	return int(min(n, math.MaxInt32)), nil
}

// keepLast cuts a prompt to its last n tokens.
func keepLast(ids []int32, n int) []int32 {
	if n > 0 && len(ids) > n {
		return ids[len(ids)-n:]
	}
	return ids
}
