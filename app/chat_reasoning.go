package app

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"velo/bench/measure"
	"velo/ui/console"
)

// family is a kind of server that takes the same parameters.
type family string

// The families. Servers that render a model's own chat template hand it variables in
// chat_template_kwargs; hosted ones have parameters of their own.
const (
	familyVelo       family = "velo"
	familyVLLM       family = "vllm"
	familySGLang     family = "sglang"
	familyLlamaCPP   family = "llamacpp"
	familyOllama     family = "ollama"
	familyOpenAI     family = "openai"
	familyOpenRouter family = "openrouter"
	familyDeepSeek   family = "deepseek"
	familyAnthropic  family = "anthropic"
	familyGoogle     family = "google"
	familyUnknown    family = ""
)

// owners are families by the owned_by of their models.
var owners = map[string]family{
	"velo": familyVelo, "rust_infer": familyVelo, "velo-sim": familyVelo,
	"vllm": familyVLLM, "sglang": familySGLang, "llamacpp": familyLlamaCPP, "library": familyOllama,
}

// hosts are families by the end of the host's name.
var hosts = map[string]family{
	"openai.com": familyOpenAI, "openai.azure.com": familyOpenAI, "openrouter.ai": familyOpenRouter, "deepseek.com": familyDeepSeek,
	"anthropic.com": familyAnthropic, "googleapis.com": familyGoogle,
}

// familyOf tells what serves an endpoint, by its host where that is a known one, else by what it says
// of its model.
func familyOf(e console.Endpoint, address, owner string) family {
	if e.Engine {
		return familyVelo
	}
	if f, ok := chosenFamily(e); ok {
		return f
	}
	if u, err := url.Parse(address); err == nil {
		host := u.Hostname()
		for end, f := range hosts {
			if host == end || strings.HasSuffix(host, "."+end) {
				return f
			}
		}
	}
	return owners[strings.ToLower(owner)]
}

// countsAlong tells whether servers of the family can say with each chunk how many tokens there are.
func (f family) countsAlong() bool {
	return f == familyVelo || f == familyVLLM || f == familySGLang
}

// Options of reasoning: what is sent, and how a remark calls it. The last that a server takes is the
// one that counts.
var (
	templateOff = option{how: "chat_template_kwargs.enable_thinking", words: []string{"enable_thinking"}, members: []member{
		{"chat_template_kwargs", json.RawMessage(`{"enable_thinking":false,"thinking":false}`)},
	}}
	thinkingOff   = option{how: "thinking.type = disabled", members: []member{{"thinking", json.RawMessage(`{"type":"disabled"}`)}}}
	openRouterOff = option{how: "reasoning.enabled = false", members: []member{{"reasoning", json.RawMessage(`{"enabled":false}`)}}}
)

func effort(level string) option {
	return option{how: "reasoning_effort = " + level, members: []member{{"reasoning_effort", jsonString(level)}}}
}

func jsonString(s string) json.RawMessage {
	b, _ := json.Marshal(s) // a string cannot fail
	return b
}

// budgets are the tokens that a level of reasoning may take where a server wants a number.
var budgets = map[string]int{"low": 2048, "medium": 8192, "high": 24_576}

// reasoningOptions are the ways to ask a family for a level of reasoning, the surest first. One that a
// server refuses is followed by the next; the end is to send nothing.
func reasoningOptions(f family, level string) []option {
	if f == familyNone {
		return []option{{}}
	}
	if level == console.ReasoningOff {
		switch f {
		case familyOpenAI, familyGoogle:
			return []option{effort("none"), effort("minimal"), effort("low"), {}}
		case familyOllama:
			return []option{effort("none"), {}}
		case familyOpenRouter:
			return []option{openRouterOff, effort("none"), {}}
		case familyDeepSeek, familyAnthropic:
			return []option{thinkingOff, {}}
		}
		return []option{templateOff, effort("none"), {}}
	}
	on := effort(level)
	switch f {
	case familyVelo, familyVLLM, familySGLang, familyLlamaCPP:
		// Templates that think only when told so are told; llama.cpp hands the effort on in the same way.
		kwargs := `{"enable_thinking":true,"thinking":true}`
		if f == familyLlamaCPP {
			kwargs = fmt.Sprintf(`{"enable_thinking":true,"thinking":true,"reasoning_effort":%s}`, jsonString(level))
		}
		both := on
		both.words = []string{"enable_thinking"}
		both.members = append(slices.Clone(on.members), member{"chat_template_kwargs", json.RawMessage(kwargs)})
		return []option{both, on, {}}
	case familyOpenRouter:
		return []option{{how: "reasoning.effort = " + level, members: []member{{"reasoning", json.RawMessage(fmt.Sprintf(`{"effort":%s}`, jsonString(level)))}}}, on, {}}
	case familyDeepSeek:
		both := on
		both.members = append(slices.Clone(on.members), member{"thinking", json.RawMessage(`{"type":"enabled"}`)})
		return []option{both, on, {}}
	case familyAnthropic:
		budget := fmt.Sprintf(`{"type":"enabled","budget_tokens":%d}`, budgets[level])
		return []option{{how: fmt.Sprintf("thinking.budget_tokens = %d", budgets[level]), members: []member{{"thinking", json.RawMessage(budget)}}}, {}}
	}
	return []option{on, {}}
}

// reasoningRemark says what was sent about reasoning and what happened: sent is empty where the server
// took nothing.
func reasoningRemark(level, sent string, r *measure.Request, hidden int, tags bool) string {
	if level == console.ReasoningDefault {
		return ""
	}
	tokens, about := max(r.Thought, hidden), ""
	if hidden < r.Thought && r.Source == measure.Estimate {
		about = "about "
	}
	came := ""
	switch {
	case tokens == 1:
		came = "one reasoning token"
	case tokens > 1:
		came = fmt.Sprintf("%s%s reasoning tokens", about, grouped(tokens))
	case tags:
		came = "a <think> block"
	}
	if level == console.ReasoningOff {
		said := "Reasoning was turned off by " + sent
		switch {
		case sent == "":
			said = "The server takes nothing that turns reasoning off"
		case strings.Contains(sent, "minimal") || strings.Contains(sent, "low"):
			said = "The server does not turn reasoning off; " + sent + ", the least that it takes, was sent"
		}
		if came == "" {
			return said + "."
		}
		if sent == "" {
			return said + "; " + came + " came."
		}
		return said + "; " + came + " came all the same."
	}
	said := "Reasoning was asked for by " + sent
	if sent == "" {
		said = "The server takes no level of reasoning"
	}
	if came == "" {
		return said + "; none was seen."
	}
	return said + "; " + came + " came."
}

// grouped writes a number with commas.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
