package server

import (
	"bytes"
	"encoding/json"
	"strings"
)

// efforts are the words for how much a model reasons, with off for none of it.
var efforts = map[string]string{
	"none": "off", "off": "off", "no_think": "off", "minimal": "off",
	"low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "xhigh",
}

// CheckEffort says whether a word is an effort that a request or --reasoning-effort may name.
func CheckEffort(word string) error {
	if _, ok := efforts[word]; !ok {
		return fail(InvalidEffort, "reasoning_effort", "cannot reason with effort %.40q: it is none, minimal, low, medium, high, xhigh or max", word)
	}
	return nil
}

// templateEffort is the word that a template knows for an effort: one with four steps takes xhigh
// for all above medium, one with three or two takes high.
func templateEffort(source, effort string) string {
	switch {
	case strings.Contains(source, "xhigh"):
		if effort == "high" {
			return "xhigh"
		}
	case effort == "xhigh":
		return "high"
	case effort == "medium" && !strings.Contains(source, "medium"):
		return "high"
	}
	return effort
}

// readVariables reads chat_template_kwargs and reasoning_effort and returns the variables of the
// template. Whether the model reasons is decided by the first of: enable_thinking in
// chat_template_kwargs, an effort of none, the server's own default, the template's.
func (s *Server) readVariables(o *object) ([]byte, *Error) {
	var kwargs *object
	if raw := o.raw("chat_template_kwargs"); raw != nil {
		var e *Error
		if kwargs, e = newObject(raw, InvalidKwargs, "chat_template_kwargs.", "chat_template_kwargs"); e != nil {
			return nil, e
		}
	}
	word := ""
	if raw := o.raw("reasoning_effort"); raw != nil {
		if json.Unmarshal(raw, &word) != nil {
			return nil, fail(InvalidEffort, "reasoning_effort", "cannot read reasoning_effort: it must be a string, not %s", kind(raw))
		}
	} else if r, e := o.child("reasoning"); e != nil { // as the Responses API has it
		return nil, e
	} else if r != nil {
		if word, _, e = r.text("effort"); e != nil {
			return nil, e
		}
	}
	if word != "" {
		if err := CheckEffort(word); err != nil {
			return nil, asError(err)
		}
	}
	asked := word != ""
	if !asked {
		word = s.o.Effort
	}
	effort := efforts[word]
	thinking := ""
	switch {
	case asked && effort == "off":
		thinking = "false"
	case s.o.Thinking != nil:
		thinking = map[bool]string{true: "true", false: "false"}[*s.o.Thinking]
	case effort == "off":
		thinking = "false"
	}
	var b bytes.Buffer
	add := func(key, value string) {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.Write(quoted(key))
		b.WriteByte(':')
		b.WriteString(value)
	}
	if kwargs != nil {
		if v := kwargs.raw("enable_thinking"); v != nil {
			if kind(v) != "a boolean" {
				return nil, kwargs.wrong("enable_thinking", "true or false")
			}
			thinking = ""
		}
		for _, own := range []string{"messages", "tools", "documents", "add_generation_prompt"} {
			if _, taken := kwargs.values[own]; taken {
				return nil, fail(InvalidKwargs, "chat_template_kwargs."+own, "cannot take chat_template_kwargs.%s: it has its own place in the request", own)
			}
		}
		for _, k := range kwargs.keys {
			if v := kwargs.values[k]; k != "enable_thinking" || kind(v) != "null" {
				add(k, string(v))
			}
			if k == "reasoning_effort" {
				effort = ""
			}
		}
	}
	if thinking != "" {
		add("enable_thinking", thinking)
	}
	if effort != "" && effort != "off" {
		add("reasoning_effort", string(quoted(templateEffort(s.o.Engine.Source, effort))))
	}
	if b.Len() == 0 {
		return nil, nil
	}
	return []byte("{" + b.String() + "}"), nil
}
