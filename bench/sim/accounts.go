package sim

import (
	"strconv"
	"strings"
	"time"
)

// reasoned is the number of reasoning tokens among the first streamed tokens of
// all choices, which advance together.
func (r *reply) reasoned(streamed int) int {
	return min(streamed, r.choices*min(r.scenario.Reasoning.Tokens, r.n))
}

// appendUsage writes usage after so many streamed tokens; final adds what only
// the end can know.
func (r *reply) appendUsage(b []byte, streamed int, final bool) []byte {
	s := &r.scenario
	completion := streamed + s.Reasoning.Hidden
	if final {
		completion += s.UnseenEnd
	}
	number := func(name string, value int) {
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, name...)
		b = append(b, `":`...)
		b = strconv.AppendInt(b, int64(value), 10)
	}
	b = append(b, '{')
	number("prompt_tokens", r.promptN)
	number("completion_tokens", completion)
	number("total_tokens", r.promptN+completion)
	if r.cached > 0 || s.PrefixCache {
		b = append(b, `,"prompt_tokens_details":{`...)
		number("cached_tokens", r.cached)
		b = append(b, '}')
	}
	rejected := r.plan.drafted - r.plan.accepted
	if s.Prediction == "root" && final {
		number("accepted_prediction_tokens", r.plan.accepted)
		number("rejected_prediction_tokens", rejected)
	}
	reasoning := r.reasoned(streamed) + s.Reasoning.Hidden
	details := s.Prediction == "details" && final
	if reasoning > 0 || details {
		b = append(b, `,"completion_tokens_details":{`...)
		if reasoning > 0 {
			number("reasoning_tokens", reasoning)
		}
		if details {
			number("accepted_prediction_tokens", r.plan.accepted)
			number("rejected_prediction_tokens", rejected)
		}
		b = append(b, '}')
	}
	return append(b, '}')
}

// appendTimings writes llama.cpp's timings from the schedule: what a server
// that keeps its schedule would have measured. predicted_ms runs from the first
// token to the last.
func (r *reply) appendTimings(b []byte) []byte {
	computed := r.promptN - r.cached
	prompt := milliseconds(r.plan.ttft)
	predicted := milliseconds(r.plan.last() - r.plan.ttft)
	number := func(name string, value float64) {
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, name...)
		b = append(b, `":`...)
		b = strconv.AppendFloat(b, value, 'f', -1, 64)
	}
	ratio := func(a, b float64) float64 { // 0 where nothing was timed
		if b == 0 {
			return 0
		}
		return a / b
	}
	b = append(b, '{')
	number("cache_n", float64(r.cached))
	number("prompt_n", float64(computed))
	number("prompt_ms", prompt)
	number("prompt_per_token_ms", ratio(prompt, float64(computed)))
	number("prompt_per_second", ratio(1000*float64(computed), prompt))
	number("predicted_n", float64(r.n))
	number("predicted_ms", predicted)
	number("predicted_per_token_ms", ratio(predicted, float64(r.n)))
	number("predicted_per_second", ratio(1000*float64(r.n), predicted))
	if r.scenario.Speculation.Draft > 0 {
		number("draft_n", float64(r.plan.drafted))
		number("draft_n_accepted", float64(r.plan.accepted))
	}
	return append(b, '}')
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// json is the reply as one JSON document.
func (r *reply) json() []byte {
	b := append([]byte(`{"id":"`), r.id...)
	if r.chat {
		b = append(b, `","object":"chat.completion","created":`...)
	} else {
		b = append(b, `","object":"text_completion","created":`...)
	}
	b = strconv.AppendInt(b, r.created, 10)
	b = append(b, `,"model":`...)
	b = appendString(b, r.model)
	b = append(b, `,"choices":[`...)
	for c, segments := range r.segments {
		if c > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"index":`...)
		b = strconv.AppendInt(b, int64(c), 10)
		if r.chat {
			b = append(b, `,"message":`...)
			b = r.appendMessage(b, segments)
		} else {
			b = append(b, `,"text":"`...)
			for _, s := range segments {
				b = appendTokens(b, s.tokens)
			}
			b = append(b, '"')
		}
		b = append(b, `,"logprobs":`...)
		if r.logprobs {
			b = appendLogprobs(b, segments, r.chat)
		} else {
			b = append(b, "null"...)
		}
		b = append(b, `,"finish_reason":`...)
		if r.scenario.Finish == "none" {
			b = append(b, "null"...)
		} else {
			b = appendString(b, r.finishReason())
		}
		if r.tokenIDs {
			b = append(b, `,"token_ids":[`...)
			b = appendIDs(b, segments)
			b = append(b, ']')
		}
		b = append(b, '}')
	}
	b = append(b, ']')
	if u := r.scenario.Usage; u != "absent" && u != "null_only" {
		b = append(b, `,"usage":`...)
		b = r.appendUsage(b, r.n*r.choices, true)
	}
	if r.scenario.Timings {
		b = append(b, `,"timings":`...)
		b = r.appendTimings(b)
	}
	return append(b, '}')
}

func (r *reply) appendMessage(b []byte, segments []segment) []byte {
	texts := map[string]*strings.Builder{}
	var order []string
	var tools []segment
	for _, s := range segments {
		if s.kind == KindTool {
			tools = append(tools, s)
			continue
		}
		if texts[s.field] == nil {
			texts[s.field] = &strings.Builder{}
			order = append(order, s.field)
		}
		for _, t := range s.tokens {
			texts[s.field].WriteString(t.text)
		}
	}
	b = append(b, `{"role":"assistant"`...)
	for _, field := range order {
		b = append(b, `,"`...)
		b = append(b, field...)
		b = append(b, `":`...)
		if field == "content" && r.scenario.ContentParts {
			b = append(b, `[{"type":"text","text":`...)
			b = appendString(b, texts[field].String())
			b = append(b, `}]`...)
			continue
		}
		b = appendString(b, texts[field].String())
	}
	if texts["content"] == nil {
		b = append(b, `,"content":null`...)
	}
	for i, s := range tools {
		if i == 0 {
			b = append(b, `,"tool_calls":[`...)
		} else {
			b = append(b, ',')
		}
		b = append(b, `{"id":"`...)
		b = append(b, r.toolID(s.tool)...)
		b = append(b, `","type":"function","function":{"name":"`...)
		b = append(b, s.tokens[0].escaped...)
		b = append(b, `","arguments":"`...)
		b = appendTokens(b, s.tokens[1:])
		b = append(b, `"}}`...)
	}
	if len(tools) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}
