package chat

import "strings"

// thinking splits reasoning from the answer. <think> counts only as the first thing of an answer,
// </think> only inside of reasoning: anywhere else they are text that speaks of tags.
type thinking struct {
	state    thinkState
	held     string
	newlines string // at an end of the reasoning, dropped if it is the end
	some     bool   // some reasoning came out: newlines are no longer leading ones
}

type thinkState uint8

const (
	thinkBefore thinkState = iota // nothing but white space so far
	thinkInside
	thinkAfter // behind </think>: newlines are dropped
	thinkOver
)

const (
	tagThink    = "<think>"
	tagEndThink = "</think>"
)

// push takes text, hands reasoning to reason and returns what belongs to the answer.
func (t *thinking) push(text string, reason func(string)) string {
	t.held += text
	if t.state == thinkBefore {
		s := strings.TrimLeft(t.held, space)
		if s == "" || isPrefix(s, tagThink) {
			return ""
		}
		body, ok := strings.CutPrefix(s, tagThink)
		if !ok {
			t.state = thinkOver
		} else {
			t.state = thinkInside
			t.held = body
		}
	}
	if t.state == thinkInside {
		i, whole := findTag(t.held, tagEndThink)
		t.inside(t.held[:i], reason)
		t.held = t.held[i:]
		if !whole {
			return ""
		}
		t.held = t.held[len(tagEndThink):]
		t.newlines = ""
		t.state = thinkAfter
	}
	if t.state == thinkAfter {
		if t.held = strings.TrimLeft(t.held, "\r\n"); t.held == "" {
			return ""
		}
		t.state = thinkOver
	}
	out := t.held
	t.held = ""
	return out
}

func (t *thinking) inside(s string, reason func(string)) {
	if !t.some {
		s = strings.TrimLeft(s, "\r\n")
	}
	if s == "" {
		return
	}
	t.some = true
	body := strings.TrimRight(s, "\r\n")
	if body == "" {
		t.newlines += s
		return
	}
	reason(t.newlines + body)
	t.newlines = s[len(body):]
}

// flush ends the answer. Reasoning that was never closed stays reasoning.
func (t *thinking) flush(reason func(string)) string {
	out := t.held
	t.held = ""
	if t.state == thinkInside {
		t.inside(out, reason)
		return ""
	}
	t.state = thinkOver
	return out
}
