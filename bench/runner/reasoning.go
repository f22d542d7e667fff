package runner

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"velo/bench/client"
	"velo/bench/suite"
)

// Way is one way to ask a server for a level of reasoning: members of the request's body, none to send
// nothing, and how a note calls it.
type Way struct {
	How  string
	Body map[string]json.RawMessage
}

// plainWays are those of servers that nothing is known of: "off" turns thinking off in the chat template,
// as vLLM, SGLang and llama.cpp understand it, and sends no effort; any other word is sent as
// reasoning_effort.
func plainWays(level string) []Way {
	if level == suite.ReasoningOff {
		return []Way{{"chat_template_kwargs.enable_thinking", map[string]json.RawMessage{"chat_template_kwargs": json.RawMessage(`{"enable_thinking":false}`)}}}
	}
	word, _ := json.Marshal(level) // a string cannot fail
	return []Way{{"reasoning_effort = " + level, map[string]json.RawMessage{"reasoning_effort": word}}}
}

// ways are those for a level that send something, the surest first.
func (r *run) ways(level string) []Way {
	list := plainWays
	if r.o.Ways != nil {
		list = r.o.Ways
	}
	return slices.DeleteFunc(slices.Clone(list(level)), func(w Way) bool { return len(w.Body) == 0 })
}

// way is the one that is in use for a level, nil when the server takes none.
func (r *run) way(level string) *Way {
	ways := r.ways(level)
	if i := r.rules.ways[r.kind(level)]; i < len(ways) {
		return &ways[i]
	}
	return nil
}

// kind is what levels have in common: one that a server refuses stands for all efforts, where nothing is
// known of the server.
func (r *run) kind(level string) string {
	if r.o.Ways == nil && level != suite.ReasoningOff {
		return "effort"
	}
	return level
}

// level is how much a step is to reason: what the suite says, else what the run says.
func (r *run) level(st stage) string { return first(st.Reasoning, r.o.Level) }

// reasoning is the parameter of a level.
func (r *run) reasoning(level string) parameter {
	p := parameter{level: level, field: "reasoning", lost: "the model thinks as much as it likes", apply: func(c *client.Chat) {
		if w := r.way(level); w != nil {
			c.Extra = with(c.Extra, w.Body)
		}
	}}
	if level == suite.ReasoningOff {
		p.lost = "the model may think although it is asked not to"
	}
	if w := r.way(level); w != nil {
		p.field = strings.Join(slices.Sorted(maps.Keys(w.Body)), ", ")
		p.names = slices.Collect(maps.Keys(w.Body))
	}
	return p
}

// with adds members to those of a body.
func with(body, more map[string]json.RawMessage) map[string]json.RawMessage {
	all := maps.Clone(body)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	maps.Copy(all, more)
	return all
}

// defaults gives a request the parameters of the run (Options.Parameters), which hold where the suite says
// nothing else, and the level of reasoning.
func (r *run) defaults(chat *client.Chat, st stage, limit int) {
	for name, value := range r.o.Parameters {
		if !r.rules.refused[name] && !r.said(name, st, limit) {
			chat.Extra = with(chat.Extra, map[string]json.RawMessage{name: value})
		}
	}
	if level := r.level(st); level != "" {
		r.reasoning(level).apply(chat)
	}
}

// said tells whether the suite itself says what a parameter of the body is.
func (r *run) said(name string, st stage, limit int) bool {
	switch name {
	case "temperature":
		return r.o.Suite.Temperature != nil
	case "max_tokens", "max_completion_tokens":
		return limit > 0
	case "min_tokens", "ignore_eos":
		return st.Exact()
	case "stream_options":
		return true
	}
	if level := r.level(st); level != "" {
		if w := r.way(level); w != nil {
			return w.Body[name] != nil
		}
	}
	return false
}

// thoughts are what the requests thought that the run's own level was asked of.
type thoughts struct{ requests, thinking, tokens int }

// add counts a request that ended well.
func (t *thoughts) add(result client.Result) {
	t.requests++
	hidden := 0
	if u := result.End.Usage; u != nil {
		hidden = max(0, u.Reasoning)
	}
	if hidden > 0 || result.Reasoning != "" {
		t.thinking++
	}
	t.tokens += hidden
}

func (t *thoughts) String() string {
	switch {
	case t.requests == 0:
		return "no answer came"
	case t.thinking == 0:
		return "no reasoning was seen"
	case t.tokens > 0:
		return fmt.Sprintf("%d of %d requests reasoned, with %d tokens by the server's count", t.thinking, t.requests, t.tokens)
	}
	return fmt.Sprintf("%d of %d requests reasoned", t.thinking, t.requests)
}

// tellReasoning notes what was sent about reasoning and what came of it, where the run itself asked for a
// level.
func (r *run) tellReasoning() {
	level := r.o.Level
	if level == "" || r.thoughts.requests == 0 {
		return
	}
	sent := "the server takes nothing for it"
	if w := r.way(level); w != nil {
		sent = "sent as " + w.How
	}
	r.note("Reasoning %q, as set for the model: %s; %s.", level, sent, &r.thoughts)
}
