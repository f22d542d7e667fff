package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"

	"velo/bench"
)

// delta is what one chunk of a completion says, as far as it is measured.
type delta struct {
	Content   string
	Reasoning string
	Refusal   string
	Calls     []toolCall
	Finish    string
	Exact     int // tokens by logprobs or token ids; -1 = not given
	Usage     bench.Usage
	HasUsage  bool
	Timings   bench.Timings
	HasTiming bool
	Failed    bool // it reports an error
	Choices   int  // of any index
	Ignored   int  // of these, other than the first
}

// toolCall is a piece of a tool call.
type toolCall struct {
	Index     int
	Name      string
	Arguments string
	ID        string
}

// text tells whether the delta carries any.
func (d *delta) text() bool {
	return d.Content != "" || d.Reasoning != "" || d.Refusal != "" || d.toolText() != ""
}

// toolText is the text that the model generated for the calls.
func (d *delta) toolText() string {
	if len(d.Calls) == 1 && d.Calls[0].Name == "" {
		return d.Calls[0].Arguments
	}
	var b strings.Builder
	for _, c := range d.Calls {
		b.WriteString(c.Name)
		b.WriteString(c.Arguments)
	}
	return b.String()
}

// object is a JSON object whose members have not been looked at.
type object map[string]json.RawMessage

// asObject returns nil for anything else.
func asObject(raw json.RawMessage) object {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	var o object
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

// asString returns "" for anything else.
func asString(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// asList returns nil for anything else.
func asList(raw json.RawMessage) []json.RawMessage {
	if len(raw) == 0 || raw[0] != '[' {
		return nil
	}
	var l []json.RawMessage
	_ = json.Unmarshal(raw, &l)
	return l
}

// asNumber returns -1 for anything that is not a number of at least 0.
func asNumber(raw json.RawMessage) float64 {
	if len(raw) == 0 || raw[0] < '0' || raw[0] > '9' {
		return -1
	}
	var f float64
	if json.Unmarshal(raw, &f) != nil {
		return -1
	}
	return f
}

// asCount returns -1 for anything that is not a whole number from 0 to 2³¹−1.
func asCount(raw json.RawMessage) int {
	f := asNumber(raw)
	if f < 0 || f > math.MaxInt32 || f != math.Trunc(f) {
		return -1
	}
	return int(f)
}

// decodeChunk reads a chunk of a stream, whatever it holds. It is the measure of scanChunk, which reads
// the common ones faster.
func decodeChunk(data []byte) (delta, error) { return decode(data, "delta") }

// decodeAnswer reads an answer that was not streamed.
func decodeAnswer(data []byte) (delta, error) { return decode(data, "message") }

var errNotObject = errors.New("it is not a JSON object")

// decode reads a chunk or an answer; body is the member of a choice that holds the message. Members of
// an unexpected type count as absent.
func decode(data []byte, body string) (delta, error) {
	d := delta{Exact: -1, Usage: noUsage}
	var top object
	if err := json.Unmarshal(data, &top); err != nil {
		if json.Valid(data) {
			err = errNotObject
		}
		return d, err
	}
	if top == nil {
		return d, errNotObject
	}
	choices := asList(top["choices"])
	d.Choices = len(choices)
	var inner object // usage within the choice
	first := false
	for _, raw := range choices {
		choice := asObject(raw)
		if index, ok := choice["index"]; choice == nil || first || ok && string(index) != "0" && string(index) != "null" {
			d.Ignored++
			continue
		}
		first = true
		d.choice(choice, body)
		inner = asObject(choice["usage"])
	}
	d.usage(asObject(top["usage"]))
	if !d.HasUsage {
		d.usage(inner)
	}
	d.timings(asObject(top["timings"]))
	d.Failed = reportsError(top)
	return d, nil
}

// reportsError tells whether an object reports an error instead of an answer.
func reportsError(top object) bool {
	switch string(bytes.TrimSpace(top["error"])) {
	case "", "null", "false", `""`:
		return asString(top["object"]) == "error"
	}
	return true
}

func (d *delta) choice(choice object, body string) {
	d.Finish = asString(choice["finish_reason"])
	d.Content = asString(choice["text"])
	message := asObject(choice[body])
	if message != nil {
		d.message(message)
	}
	d.exact(choice)
}

func (d *delta) message(m object) {
	content, reasoning, refusal := parts(m["content"])
	d.Content += content
	d.Refusal = asString(m["refusal"]) + refusal
	// Servers give the same text under two names; counting the first that has any counts it once, and
	// lets none hide behind a null.
	for _, name := range []string{"reasoning_content", "reasoning", "thinking"} {
		if text, thought, _ := parts(m[name]); text != "" || thought != "" {
			d.Reasoning = text + thought
			break
		}
	}
	if d.Reasoning == "" {
		d.Reasoning = reasoning
	}
	for i, raw := range asList(m["tool_calls"]) {
		call := asObject(raw)
		index := i
		if n := asCount(call["index"]); n >= 0 {
			index = n
		}
		d.call(index, asString(call["id"]), asObject(call["function"]))
	}
	d.call(0, "", asObject(m["function_call"]))
}

// call takes a piece of a call. Its arguments are a string of JSON, from some servers JSON itself.
func (d *delta) call(index int, id string, function object) {
	c := toolCall{Index: index, Name: asString(function["name"]), ID: id}
	switch raw := function["arguments"]; {
	case len(raw) == 0 || string(raw) == "null":
	case raw[0] == '"':
		c.Arguments = asString(raw)
	default:
		c.Arguments = string(raw)
	}
	if c.Name != "" || c.Arguments != "" || c.ID != "" {
		d.Calls = append(d.Calls, c)
	}
}

// parts reads content: a string, or an array of parts of which some can be thoughts.
func parts(raw json.RawMessage) (content, reasoning, refusal string) {
	if len(raw) == 0 || raw[0] != '[' {
		return asString(raw), "", ""
	}
	for _, p := range asList(raw) {
		part := asObject(p)
		switch asString(part["type"]) {
		case "thinking", "reasoning":
			for _, name := range []string{"thinking", "text"} {
				text, _, _ := parts(part[name])
				reasoning += text
			}
		case "refusal":
			refusal += asString(part["refusal"])
		default:
			content += asString(p) + asString(part["text"])
		}
	}
	return content, reasoning, refusal
}

// exact counts the tokens of a choice where it lists them.
func (d *delta) exact(choice object) {
	if ids := choice["token_ids"]; len(ids) > 0 && ids[0] == '[' {
		d.Exact = len(asList(ids))
		return
	}
	logprobs := asObject(choice["logprobs"])
	for _, name := range []string{"content", "refusal", "tokens"} {
		if l := logprobs[name]; len(l) > 0 && l[0] == '[' {
			d.Exact = max(d.Exact, 0) + len(asList(l))
		}
	}
}

// noUsage is usage of which nothing was given.
var noUsage = bench.Usage{Prompt: -1, Completion: -1, Reasoning: -1, Cached: -1, Accepted: -1, Rejected: -1}

func (d *delta) usage(u object) {
	prompt, completion := asObject(u["prompt_tokens_details"]), asObject(u["completion_tokens_details"])
	usage := bench.Usage{
		Prompt:     asCount(u["prompt_tokens"]),
		Completion: asCount(u["completion_tokens"]),
		Reasoning:  either(asCount(completion["reasoning_tokens"]), asCount(u["reasoning_tokens"])),
		Cached:     either(asCount(prompt["cached_tokens"]), asCount(u["cached_tokens"]), asCount(u["prompt_cache_hit_tokens"])),
		Accepted:   either(asCount(completion["accepted_prediction_tokens"]), asCount(u["accepted_prediction_tokens"])),
		Rejected:   either(asCount(completion["rejected_prediction_tokens"]), asCount(u["rejected_prediction_tokens"])),
	}
	if usage.Prompt >= 0 || usage.Completion >= 0 {
		d.Usage, d.HasUsage = usage, true
	}
}

// either is the first count that was given.
func either(counts ...int) int {
	for _, n := range counts {
		if n >= 0 {
			return n
		}
	}
	return -1
}

func (d *delta) timings(t object) {
	if t == nil {
		return
	}
	d.HasTiming = true
	d.Timings = bench.Timings{
		PromptN: asCount(t["prompt_n"]), PromptMS: asNumber(t["prompt_ms"]),
		PredictedN: asCount(t["predicted_n"]), PredictedMS: asNumber(t["predicted_ms"]),
		CacheN: asCount(t["cache_n"]), DraftN: asCount(t["draft_n"]), DraftAccepted: asCount(t["draft_n_accepted"]),
	}
}
