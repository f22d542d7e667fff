package app

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"velo/bench"
	"velo/ui/console"
)

// member is one member of a request's body.
type member struct {
	name  string
	value json.RawMessage
}

// option is a way to send a parameter: members of the body, or none at all.
type option struct {
	members []member
	words   []string // by which a refusal may name it, besides the names of the members
	how     string   // for remarks
}

// choice is a parameter with the ways in which it can be sent, the best first. The last one, with no
// members, is to leave it out.
type choice struct {
	name    string
	options []option
	at      int
	quiet   bool   // nobody asked for it: no remark when it goes
	refused string // the server's words, when it refused in this turn
}

func (c *choice) option() *option { return &c.options[c.at] }

// parameterPlan is what a turn sends besides its messages.
type parameterPlan struct {
	choices   []*choice
	overruled bool // the extra parameters say how much to reason, and not the level
}

// newParameterPlan lays out the parameters of a chat for a family of servers, without those that
// the server refused before.
func newParameterPlan(p console.ChatParameters, f family, refused []string) (*parameterPlan, error) {
	plan := &parameterPlan{}
	extra, err := extraOf(p)
	if err != nil {
		return nil, err
	}
	add := func(name string, options ...option) {
		plan.choices = append(plan.choices, &choice{name: name, options: options})
	}
	set := func(name string, value any) {
		if _, taken := extra[name]; taken {
			return
		}
		raw, _ := json.Marshal(value) // numbers that were checked, and JSON
		add(name, option{members: []member{{name, raw}}}, option{})
	}
	if p.Temperature != nil {
		set("temperature", *p.Temperature)
	}
	if p.TopP != nil {
		set("top_p", *p.TopP)
	}
	if p.TopK != nil {
		set("top_k", *p.TopK)
	}
	if p.MinP != nil {
		set("min_p", *p.MinP)
	}
	if _, renamed := extra["max_completion_tokens"]; p.MaxTokens != nil && extra["max_tokens"] == nil && !renamed {
		n := json.RawMessage(strconv.Itoa(*p.MaxTokens))
		add("max_tokens", option{members: []member{{"max_tokens", n}}}, option{members: []member{{"max_completion_tokens", n}}}, option{})
	}
	if p.Seed != nil {
		set("seed", *p.Seed)
	}
	if len(p.Tools) > 0 {
		set("tools", p.Tools)
	}
	if p.Reasoning != console.ReasoningDefault {
		options := reasoningOptions(f, p.Reasoning)
		plan.overruled = slices.ContainsFunc(options, func(o option) bool {
			return slices.ContainsFunc(o.members, func(m member) bool { _, taken := extra[m.name]; return taken })
		})
		if !plan.overruled { // what the user writes wins
			add("reasoning", options...)
		}
	}
	if _, taken := extra["stream_options"]; !taken {
		usage := option{members: []member{{"stream_options", json.RawMessage(`{"include_usage":true}`)}}}
		options := []option{usage, {members: []member{{"stream_options", json.RawMessage("null")}}}}
		if f.countsAlong() {
			along := option{words: []string{"continuous_usage_stats"}, members: []member{{"stream_options", json.RawMessage(`{"include_usage":true,"continuous_usage_stats":true}`)}}}
			options = slices.Insert(options, 0, along)
		}
		add("stream_options", options...)
		plan.choices[len(plan.choices)-1].quiet = true
	}
	names := make([]string, 0, len(extra))
	for name := range extra {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		add(name, option{members: []member{{name, extra[name]}}}, option{})
	}
	for _, c := range plan.choices {
		for c.at < len(c.options)-1 && slices.Contains(refused, c.option().key()) {
			c.at++
			c.refused = "as it did before"
		}
	}
	return plan, nil
}

// key tells an option from others, values included: another value may be taken.
func (o *option) key() string {
	var b strings.Builder
	for _, m := range o.members {
		fmt.Fprintf(&b, "%s=%s;", m.name, m.value)
	}
	return b.String()
}

// extra are the members of the body.
func (p *parameterPlan) extra() map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for _, c := range p.choices {
		for _, m := range c.option().members {
			all[m.name] = m.value
		}
	}
	return all
}

// choice is that of a name, nil where there is none.
func (p *parameterPlan) choice(name string) *choice {
	for _, c := range p.choices {
		if c.name == name {
			return c
		}
	}
	return nil
}

// refuses tells whether the server did not accept the request as it is.
func refuses(end *bench.End) bool {
	return end.Status == bench.Failed && (end.Class == "http-400" || end.Class == "http-422")
}

// drop goes without the parameter that a refusal names first, and returns its option; nil where it names
// none. One at a time: a message may quote the whole request.
func (p *parameterPlan) drop(message string) (dropped *option, by *choice) {
	first := len(message)
	for _, c := range p.choices {
		if c.at == len(c.options)-1 || len(c.option().members) == 0 {
			continue
		}
		words := slices.Clone(c.option().words)
		for _, m := range c.option().members {
			words = append(words, m.name)
		}
		for _, w := range words {
			if at := wordIn(message, w); at >= 0 && at < first {
				first, by = at, c
			}
		}
	}
	if by == nil {
		return nil, nil
	}
	dropped = by.option()
	by.at++
	by.refused = message
	return dropped, by
}

// wordIn is where a name stands in a message as a word of its own, −1 if it does not.
func wordIn(message, name string) int {
	at := regexp.MustCompile(`(^|[^A-Za-z0-9_])(` + regexp.QuoteMeta(name) + `)($|[^A-Za-z0-9_])`).FindStringSubmatchIndex(message)
	if at == nil {
		return -1
	}
	return at[4]
}

// remarks say which parameters were refused.
func (p *parameterPlan) remarks() []string {
	var list []string
	if p.overruled {
		list = append(list, "The extra parameters say how much to reason; the chat's own level was not sent.")
	}
	for _, c := range p.choices {
		if c.refused == "" || c.quiet || c.name == "reasoning" { // whose remark says what was sent
			continue
		}
		if members := c.option().members; len(members) > 0 {
			list = append(list, fmt.Sprintf("The server refused %s; it was sent as %s.", c.name, members[0].name))
			continue
		}
		list = append(list, fmt.Sprintf("The server refused %s, and it was left out: %s.", c.name, strings.TrimRight(c.refused, ".")))
	}
	return list
}
