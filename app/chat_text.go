package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"velo/bench"
	"velo/bench/client"
	"velo/bench/measure"
	"velo/store"
)

// Text implements console.Chats.
func (t *theChats) Text(chatID, turnID, format string) (string, error) {
	c, turns, err := t.console.store.Chat(chatID)
	if err != nil {
		return "", err
	}
	last := c.Shown
	if turnID != "" {
		last = turnID
	}
	branch := branchTo(turns, last)
	if len(branch) == 0 {
		return "", fmt.Errorf("cannot copy the turn %q: the chat does not have it", turnID)
	}
	shown := branch
	if turnID != "" {
		shown = branch[len(branch)-1:]
	}
	switch format {
	case "markdown":
		return markdownOf(c, shown, turnID == ""), nil
	case "json":
		return t.jsonOf(c, branch, shown)
	case "curl":
		return t.curlOf(c, branch)
	}
	return "", fmt.Errorf("cannot copy as %q: the formats are markdown, json and curl", format)
}

// markdownOf writes turns for people.
func markdownOf(c store.Chat, turns []store.ChatTurn, whole bool) string {
	var b strings.Builder
	if whole {
		fmt.Fprintf(&b, "# %s\n\n", strings.ReplaceAll(c.Title, "\n", " "))
		if s := turns[len(turns)-1].System; s != "" {
			fmt.Fprintf(&b, "**System**\n\n%s\n\n", s)
		}
	}
	for _, u := range turns {
		who := "You"
		if u.Tool != "" {
			who = "Result of " + u.Tool
		}
		fmt.Fprintf(&b, "**%s**\n\n", who)
		if u.Fill > 0 {
			fmt.Fprintf(&b, "*[%s tokens of context fill, by %s]*\n\n", grouped(u.Fill), countedBy(u.FillBy))
		}
		for _, i := range u.Images {
			fmt.Fprintf(&b, "*[picture %s]*\n\n", i.Name)
		}
		for i, r := range u.Results {
			fmt.Fprintf(&b, "*[result %d]*\n\n%s\n\n", i+1, fenced("", r))
		}
		if u.Prompt != "" {
			fmt.Fprintf(&b, "%s\n\n", u.Prompt)
		}
		model := u.Model
		if model == "" {
			model = "Model"
		}
		fmt.Fprintf(&b, "**%s**\n\n", model)
		if u.Reasoning != "" {
			fmt.Fprintf(&b, "> %s\n\n", strings.ReplaceAll(strings.TrimSpace(u.Reasoning), "\n", "\n> "))
		}
		if u.Answer != "" {
			fmt.Fprintf(&b, "%s\n\n", u.Answer)
		}
		for _, k := range u.Calls {
			fmt.Fprintf(&b, "*[calls %s]*\n\n%s\n\n", k.Name, fenced("json", k.Arguments))
		}
		if u.Status != "" && u.Status != bench.OK {
			fmt.Fprintf(&b, "*[%s]* %s\n\n", u.Status, u.Error)
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func countedBy(source string) string {
	if source == "" {
		return "nothing: it was not made"
	}
	return source
}

// fenced puts a text between fences that do not end within it.
func fenced(language, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + language + "\n" + text + "\n" + fence
}

// chatJSON is a conversation as it is copied: messages as the API takes them, and what is known of the
// turns.
type chatJSON struct {
	Title    string          `json:"title"`
	Endpoint string          `json:"endpoint"`
	URL      string          `json:"url,omitempty"`
	Model    string          `json:"model"`
	Messages json.RawMessage `json:"messages"`
	Turns    []turnJSON      `json:"turns"`
}

type turnJSON struct {
	Asked      time.Time        `json:"asked"`
	Prompt     string           `json:"prompt"`
	Fill       int              `json:"fill_tokens,omitempty"`
	FillBy     string           `json:"fill_counted_by,omitempty"`
	Images     []string         `json:"images,omitempty"`
	Reasoning  string           `json:"reasoning,omitempty"`
	Answer     string           `json:"answer"`
	Calls      []store.ChatCall `json:"tool_calls,omitempty"`
	Status     bench.Status     `json:"status,omitempty"`
	Finish     string           `json:"finish_reason,omitempty"`
	Error      string           `json:"error,omitempty"`
	Remarks    []string         `json:"remarks,omitempty"`
	Parameters json.RawMessage  `json:"parameters,omitempty"`
	Session    string           `json:"session,omitempty"`
	Request    int              `json:"request"`
	Measured   *measuredJSON    `json:"measured,omitempty"`
}

// measuredJSON are the headline numbers of a turn, in SI units; null is what was not measured.
type measuredJSON struct {
	TTFT         measure.Num    `json:"ttft"`
	TTFO         measure.Num    `json:"ttfo"`
	E2E          measure.Num    `json:"e2e"`
	Rate         measure.Num    `json:"rate"`
	Tokens       int            `json:"tokens"`
	Answer       int            `json:"answer_tokens"`
	Reasoning    int            `json:"reasoning_tokens"`
	PromptTokens measure.Num    `json:"prompt_tokens"`
	Source       measure.Source `json:"source"`
}

func (t *theChats) jsonOf(c store.Chat, branch, shown []store.ChatTurn) (string, error) {
	last := &branch[len(branch)-1]
	messages, _, err := t.messages(c.ID, branch)
	if err != nil {
		return "", err
	}
	if answered(last) {
		messages = append(messages, client.Message{Role: "assistant", Content: last.Answer, Calls: callsOf(last)})
	}
	body, err := chatBody(client.Chat{Model: last.Model, Messages: messages})
	if err != nil {
		return "", err
	}
	out := chatJSON{Title: c.Title, Endpoint: last.Endpoint, URL: last.URL, Model: last.Model, Messages: body["messages"]}
	results := t.resultsOf(shown)
	for i, u := range shown {
		o := turnJSON{
			Asked: u.Asked, Prompt: u.Prompt, Fill: u.Fill, FillBy: u.FillBy, Reasoning: u.Reasoning, Answer: u.Answer, Calls: u.Calls,
			Status: u.Status, Finish: u.Finish, Error: u.Error, Remarks: u.Remarks, Parameters: u.Sent, Session: u.Session, Request: u.Request,
		}
		for _, p := range u.Images {
			o.Images = append(o.Images, p.Name)
		}
		if r := results[i]; r != nil {
			o.Measured = &measuredJSON{r.TTFT, r.TTFO, r.E2E, r.Rate, r.N, r.Answer, r.Thought, r.Prompt, r.Source}
		}
		out.Turns = append(out.Turns, o)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(out)
	return b.String(), err
}

// chatBody is the body of a request, by its members.
func chatBody(ch client.Chat) (map[string]json.RawMessage, error) {
	c, err := client.New(client.Options{BaseURL: "http://127.0.0.1", Clock: bench.StartClock()})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	call, err := c.Prepare(ch)
	if err != nil {
		return nil, err
	}
	var members map[string]json.RawMessage
	err = json.Unmarshal(call.Body(), &members)
	return members, err
}

// longArgument is the length of a body from which on a shell would not take it as an argument.
const longArgument = 100_000

// curlOf is the request of the last turn as a command. The key is not in it, only the variable that it
// is to be put in.
func (t *theChats) curlOf(c store.Chat, branch []store.ChatTurn) (string, error) {
	u := &branch[len(branch)-1]
	if len(u.Sent) == 0 || u.URL == "" {
		return "", fmt.Errorf("cannot copy the request of this turn: none was sent")
	}
	messages, _, err := t.messages(c.ID, branch)
	if err != nil {
		return "", err
	}
	members, err := chatBody(client.Chat{Model: u.Model, Messages: messages})
	if err != nil {
		return "", err
	}
	body := slices.Concat(bytes.TrimSuffix(u.Sent, []byte("}")), []byte(`,"messages":`), members["messages"], []byte("}"))
	var b strings.Builder
	fmt.Fprintf(&b, "curl -N %s \\\n  -H 'Content-Type: application/json' \\\n", shellWord(u.URL+"/chat/completions"))
	if e, err := t.console.endpoint(c.EndpointID); err == nil && e.HasKey {
		b.WriteString("  -H \"Authorization: Bearer $API_KEY\" \\\n")
	}
	if len(body) > longArgument {
		fmt.Fprintf(&b, "  --data-binary @- <<'END_OF_BODY'\n%s\nEND_OF_BODY\n", body) // JSON of one line
		return b.String(), nil
	}
	fmt.Fprintf(&b, "  --data-raw %s\n", shellWord(string(body)))
	return b.String(), nil
}

// shellWord quotes a text so that a POSIX shell takes it as one word, whatever is in it.
func shellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
