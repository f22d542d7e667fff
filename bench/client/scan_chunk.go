package client

import (
	"velo/bench"
)

func (s *scanner) top(d *delta) bool {
	if !s.at('{') {
		return false
	}
	var seen uint16
	var inner delta // usage within the choice
	for first := true; ; first = false {
		name, more, ok := s.member(first)
		if !ok || !more {
			if ok && !d.HasUsage && inner.HasUsage {
				d.Usage, d.HasUsage = inner.Usage, true
			}
			return ok
		}
		switch string(name) {
		case "choices":
			ok = once(&seen, 0) && s.choices(d, &inner)
		case "usage":
			ok = once(&seen, 1) && s.usage(d)
		case "error":
			ok = once(&seen, 2) && s.null()
		case "timings":
			ok = once(&seen, 3) && s.null()
		case "object":
			var kind []byte
			kind, _, ok = s.str()
			ok = ok && once(&seen, 4) && (string(kind) == "chat.completion.chunk" || string(kind) == "text_completion")
		default:
			ok = s.skip(0)
		}
		if !ok {
			return false
		}
	}
}

func (s *scanner) choices(d, inner *delta) bool {
	if s.null() {
		return true
	}
	if !s.at('[') {
		return false
	}
	if s.at(']') {
		return true
	}
	d.Choices = 1
	return s.choice(d, inner) && s.at(']')
}

func (s *scanner) choice(d, inner *delta) bool {
	if !s.at('{') {
		return false
	}
	var seen uint16
	var text, content string
	ids, listed := -1, -1 // tokens by their ids, by their probabilities
	for first := true; ; first = false {
		name, more, ok := s.member(first)
		if !ok || !more {
			d.Content = text + content
			d.Exact = either(ids, listed)
			return ok
		}
		switch string(name) {
		case "index":
			ok = once(&seen, 0) && s.zero()
		case "delta":
			ok = once(&seen, 1) && s.delta(d, &content)
		case "text":
			ok = once(&seen, 2)
			if ok {
				text, ok = s.text()
			}
		case "finish_reason":
			ok = once(&seen, 3)
			if ok {
				d.Finish, ok = s.text()
			}
		case "logprobs":
			ok = once(&seen, 4) && s.logprobs(&listed)
		case "token_ids":
			ok = once(&seen, 5) && s.list(&ids)
		case "usage":
			ok = once(&seen, 6) && s.usage(inner)
		default:
			ok = s.skip(0)
		}
		if !ok {
			return false
		}
	}
}

// zero takes the index of the first choice.
func (s *scanner) zero() bool {
	n, ok := s.count()
	return ok && n == 0
}

func (s *scanner) delta(d *delta, content *string) bool {
	if s.null() {
		return true
	}
	if !s.at('{') {
		return false
	}
	var seen uint16
	var reasoning [3]string
	for first := true; ; first = false {
		name, more, ok := s.member(first)
		if !ok || !more {
			for _, r := range reasoning {
				if d.Reasoning == "" {
					d.Reasoning = r
				}
			}
			return ok
		}
		switch string(name) {
		case "content":
			ok = once(&seen, 0)
			if ok {
				*content, ok = s.text()
			}
		case "refusal":
			ok = once(&seen, 1)
			if ok {
				d.Refusal, ok = s.text()
			}
		case "reasoning_content":
			ok = once(&seen, 2)
			if ok {
				reasoning[0], ok = s.text()
			}
		case "reasoning":
			ok = once(&seen, 3)
			if ok {
				reasoning[1], ok = s.text()
			}
		case "thinking":
			ok = once(&seen, 4)
			if ok {
				reasoning[2], ok = s.text()
			}
		case "tool_calls":
			ok = once(&seen, 5) && (s.null() || s.at('[') && s.at(']'))
		case "function_call":
			ok = once(&seen, 6) && s.null()
		default:
			ok = s.skip(0)
		}
		if !ok {
			return false
		}
	}
}

// list counts the elements of an array, or takes a null.
func (s *scanner) list(n *int) bool {
	if s.null() {
		return true
	}
	if !s.at('[') {
		return false
	}
	for *n = 0; !s.at(']'); *n++ {
		if *n > 0 && !s.at(',') || !s.skip(1) {
			return false
		}
	}
	return true
}

func (s *scanner) logprobs(n *int) bool {
	if s.null() {
		return true
	}
	if !s.at('{') {
		return false
	}
	var seen uint16
	for first := true; ; first = false {
		name, more, ok := s.member(first)
		if !ok || !more {
			return ok
		}
		bit := uint(0)
		switch string(name) {
		case "content":
			bit = 1
		case "refusal":
			bit = 2
		case "tokens":
			bit = 3
		}
		if bit == 0 {
			ok = s.skip(0)
		} else {
			count := -1
			if ok = once(&seen, bit) && s.list(&count); ok && count >= 0 {
				*n = max(*n, 0) + count
			}
		}
		if !ok {
			return false
		}
	}
}

func (s *scanner) usage(d *delta) bool {
	if s.null() {
		return true
	}
	if !s.at('{') {
		return false
	}
	var seen uint16
	prompt, completion := -1, -1
	outer, inner := noUsage, noUsage // of usage itself, of its details
	hit := -1
	for first := true; ; first = false {
		name, more, ok := s.member(first)
		if !ok {
			return false
		}
		if !more {
			break
		}
		switch string(name) {
		case "prompt_tokens":
			ok = once(&seen, 0) && s.counts(&prompt)
		case "completion_tokens":
			ok = once(&seen, 1) && s.counts(&completion)
		case "prompt_tokens_details":
			ok = once(&seen, 2) && s.details(&inner, true)
		case "completion_tokens_details":
			ok = once(&seen, 3) && s.details(&inner, false)
		case "prompt_cache_hit_tokens":
			ok = once(&seen, 4) && s.counts(&hit)
		case "cached_tokens":
			ok = once(&seen, 5) && s.counts(&outer.Cached)
		case "reasoning_tokens":
			ok = once(&seen, 6) && s.counts(&outer.Reasoning)
		case "accepted_prediction_tokens":
			ok = once(&seen, 7) && s.counts(&outer.Accepted)
		case "rejected_prediction_tokens":
			ok = once(&seen, 8) && s.counts(&outer.Rejected)
		default:
			ok = s.skip(0)
		}
		if !ok {
			return false
		}
	}
	if prompt < 0 && completion < 0 {
		return true
	}
	d.HasUsage = true
	d.Usage.Prompt, d.Usage.Completion = prompt, completion
	d.Usage.Reasoning = either(inner.Reasoning, outer.Reasoning)
	d.Usage.Cached = either(inner.Cached, outer.Cached, hit)
	d.Usage.Accepted = either(inner.Accepted, outer.Accepted)
	d.Usage.Rejected = either(inner.Rejected, outer.Rejected)
	return true
}

func (s *scanner) counts(n *int) (ok bool) {
	*n, ok = s.count()
	return ok
}

// details reads prompt_tokens_details, or else completion_tokens_details.
func (s *scanner) details(u *bench.Usage, prompt bool) bool {
	if s.null() {
		return true
	}
	if !s.at('{') {
		return false
	}
	var seen uint16
	for first := true; ; first = false {
		name, more, ok := s.member(first)
		if !ok || !more {
			return ok
		}
		switch string(name) {
		case "cached_tokens":
			ok = once(&seen, 0) && prompt && s.counts(&u.Cached)
		case "reasoning_tokens":
			ok = once(&seen, 1) && !prompt && s.counts(&u.Reasoning)
		case "accepted_prediction_tokens":
			ok = once(&seen, 2) && !prompt && s.counts(&u.Accepted)
		case "rejected_prediction_tokens":
			ok = once(&seen, 3) && !prompt && s.counts(&u.Rejected)
		default:
			ok = s.skip(0)
		}
		if !ok {
			return false
		}
	}
}
