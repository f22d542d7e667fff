package stream

import (
	"strings"

	"velo/bench"
	"velo/bench/otlp/decode"
	"velo/bench/otlp/scan"
)

// delta is what one OpenAI stream chunk says, as it travels in the body of a log record.
type delta struct {
	id        string
	model     string
	content   string
	reasoning string
	refusal   string
	tools     string // names and arguments, in the order in which they came
	finish    string
	failure   string
	choices   bool // it is a chunk at all
	exact     int32
	usage     *bench.Usage
}

// textOf is the JSON of a record's body: a string that holds it, or a map of which the members are
// values, or strings that hold JSON themselves.
func textOf(body decode.Value) string {
	switch body.Kind {
	case decode.String:
		return body.String()
	case decode.Map:
		var b strings.Builder
		b.WriteByte('{')
		for _, a := range body.Map() {
			text := a.Value.String()
			if a.Value.Kind == decode.String && (a.Key == "choices" || a.Key == "usage" || a.Key == "error") && holdsJSON(text) {
				b.WriteString(`"` + a.Key + `":` + text + ",")
				continue
			}
			one := decode.MapOf(a).String() // {"key":value}
			b.WriteString(one[1:len(one)-1] + ",")
		}
		return strings.TrimSuffix(b.String(), ",") + "}"
	}
	return ""
}

func holdsJSON(text string) bool {
	p := scan.New(text)
	c := p.Next()
	if c != '{' && c != '[' {
		return false
	}
	p.Skip()
	return p.End() == nil
}

// parse reads a chunk. ok is false for a text that is none; what could be read of it is kept.
func parse(text string) (d delta, ok bool) {
	d.exact = -1
	p := scan.New(text)
	if p.Next() != '{' {
		return d, false
	}
	members(&p, func(key string) bool {
		switch key {
		case "id":
			d.id = p.Text()
		case "model":
			d.model = p.Text()
		case "choices":
			d.choices = true
			first := true
			items(&p, func() {
				if !first || p.Next() != '{' {
					p.Skip()
					return
				}
				first = false
				d.choice(&p)
			})
		case "usage":
			d.usage = usageOf(&p)
		case "error":
			d.failure = failureOf(&p)
		default:
			return false
		}
		return true
	})
	return d, p.End() == nil && (d.choices || d.usage != nil || d.failure != "")
}

func members(p *scan.Scanner, take func(key string) bool) {
	if p.Next() != '{' { // another type than expected is no reason to refuse the rest
		p.Skip()
		return
	}
	for n, ok := 0, p.Object(); ok; {
		var key string
		if key, ok = p.Key(&n); ok && !take(key) {
			p.Skip()
		}
	}
}

func items(p *scan.Scanner, item func()) {
	if p.Next() != '[' {
		p.Skip()
		return
	}
	for n, ok := 0, p.Array(); ok; {
		if ok = p.Item(&n); ok {
			item()
		}
	}
}

// text takes a string; a value of another type counts as none.
func text(p *scan.Scanner) string {
	if p.Next() == '"' {
		return p.String()
	}
	p.Skip()
	return ""
}

func (d *delta) choice(p *scan.Scanner) {
	members(p, func(key string) bool {
		switch key {
		case "delta", "message":
			d.message(p)
		case "text":
			d.content += text(p)
		case "finish_reason":
			d.finish = text(p)
		case "logprobs":
			members(p, func(key string) bool {
				if key != "content" {
					return false
				}
				d.exact = max(d.exact, count(p))
				return true
			})
		case "token_ids":
			d.exact = max(d.exact, count(p))
		default:
			return false
		}
		return true
	})
}

// count is the number of items of an array; −1 where there is no array.
func count(p *scan.Scanner) int32 {
	if p.Next() != '[' {
		p.Skip()
		return -1
	}
	n := int32(0)
	items(p, func() {
		p.Skip()
		n++
	})
	return n
}

func (d *delta) message(p *scan.Scanner) {
	reasoning := ""
	members(p, func(key string) bool {
		switch key {
		case "content":
			d.content += text(p)
		case "reasoning_content":
			d.reasoning = text(p)
		case "reasoning":
			reasoning = text(p)
		case "refusal":
			d.refusal = text(p)
		case "tool_calls":
			items(p, func() {
				members(p, func(key string) bool {
					if key != "function" {
						return false
					}
					name, arguments := "", ""
					members(p, func(key string) bool {
						switch key {
						case "name":
							name = text(p)
						case "arguments":
							arguments = text(p)
						default:
							return false
						}
						return true
					})
					d.tools += name + arguments
					return true
				})
			})
		default:
			return false
		}
		return true
	})
	if d.reasoning == "" {
		d.reasoning = reasoning
	}
}

func failureOf(p *scan.Scanner) string {
	if p.Next() != '{' {
		if p.Null() {
			return ""
		}
		return text(p)
	}
	s := ""
	members(p, func(key string) bool {
		if key != "message" {
			return false
		}
		s = text(p)
		return true
	})
	if s == "" {
		s = "the server sent an error without a message"
	}
	return s
}

// usageOf reads a usage object; nil where it is null or says nothing.
func usageOf(p *scan.Scanner) *bench.Usage {
	u := &bench.Usage{Prompt: -1, Completion: -1, Reasoning: -1, Cached: -1, Accepted: -1, Rejected: -1}
	none := *u
	number := func(into *int) {
		if p.Next() != '0' {
			p.Skip()
			return
		}
		if f := p.Float(); f >= 0 && f < 1<<31 {
			*into = int(f)
		}
	}
	members(p, func(key string) bool {
		switch key {
		case "accepted_prediction_tokens": // some engines say it here, most among the details
			number(&u.Accepted)
		case "rejected_prediction_tokens":
			number(&u.Rejected)
		case "prompt_tokens":
			number(&u.Prompt)
		case "completion_tokens":
			number(&u.Completion)
		case "prompt_tokens_details", "completion_tokens_details":
			members(p, func(key string) bool {
				switch key {
				case "cached_tokens":
					number(&u.Cached)
				case "reasoning_tokens":
					number(&u.Reasoning)
				case "accepted_prediction_tokens":
					number(&u.Accepted)
				case "rejected_prediction_tokens":
					number(&u.Rejected)
				default:
					return false
				}
				return true
			})
		default:
			return false
		}
		return true
	})
	if *u == none {
		return nil
	}
	return u
}
