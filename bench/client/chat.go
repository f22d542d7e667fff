package client

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Message is one message of a conversation.
type Message struct {
	Role    string
	Content string
	Images  []Image    // sent after the text, as data URLs
	Calls   []ToolCall // of an assistant's message: what it asked for
	CallID  string     // of a message with the role tool: the call that it answers
}

// Image is a picture within a message.
type Image struct {
	Name string // for messages to the user
	MIME string // image/png, …
	Data []byte
}

// Chat is a request for a completion. Zero values are left out of the body.
type Chat struct {
	Model           string
	Messages        []Message
	MaxTokens       int
	MinTokens       int
	IgnoreEOS       bool
	Temperature     *float64
	TopP            *float64
	Seed            *int64
	ReasoningEffort string
	ContinuousUsage bool // usage on every chunk; strict servers refuse it
	Logprobs        bool // lists tokens, so that each chunk's number is exact
	// Extra are further members of the body. They replace members of the same name; null removes one,
	// such as stream_options for a server that refuses it.
	Extra map[string]json.RawMessage
	// Completion uses /completions, with the last message as the prompt.
	Completion bool
}

// A Call is a request that is ready to be sent, any number of times.
type Call struct {
	client     *Client
	route      string
	body       []byte
	parameters json.RawMessage
	bytes      int
}

// Prepare makes a request's body, so that nothing is left to do when it is released but to send it.
func (c *Client) Prepare(ch Chat) (*Call, error) {
	k := &Call{client: c, route: "/chat/completions"}
	if len(ch.Messages) == 0 {
		return nil, fmt.Errorf("cannot prepare a request: it has no message")
	}
	for name, f := range map[string]*float64{"temperature": ch.Temperature, "top_p": ch.TopP} {
		if f != nil && (math.IsNaN(*f) || math.IsInf(*f, 0)) {
			return nil, fmt.Errorf("cannot prepare a request: %s is not a number", name)
		}
	}
	var body members
	body.set("model", ch.Model)
	var prompt any = ch.Messages
	name := "messages"
	if ch.Completion {
		last := ch.Messages[len(ch.Messages)-1]
		if len(last.Images) > 0 {
			return nil, fmt.Errorf("cannot prepare a request: /completions takes no images; use chat completions")
		}
		k.route, name, prompt, k.bytes = "/completions", "prompt", last.Content, len(last.Content)
	} else {
		list := make([]any, len(ch.Messages))
		for i, m := range ch.Messages {
			k.bytes += len(m.Content)
			message, err := wire(m)
			if err != nil {
				return nil, fmt.Errorf("cannot prepare a request: message %d: %w", i+1, err)
			}
			list[i] = message
		}
		prompt = list
	}
	body.set(name, prompt)
	body.set("stream", true)
	options := map[string]bool{"include_usage": true}
	if ch.ContinuousUsage {
		options["continuous_usage_stats"] = true
	}
	body.set("stream_options", options)
	ch.parameters(&body)
	if err := body.merge(ch.Extra, name); err != nil {
		return nil, fmt.Errorf("cannot prepare a request: %w", err)
	}
	k.body = body.object("")
	k.parameters = body.object(name)
	return k, nil
}

// parameters sets what is given.
func (ch *Chat) parameters(body *members) {
	if ch.MaxTokens > 0 && ch.Extra["max_completion_tokens"] == nil {
		body.set("max_tokens", ch.MaxTokens)
	}
	if ch.MinTokens > 0 {
		body.set("min_tokens", ch.MinTokens)
	}
	if ch.IgnoreEOS {
		body.set("ignore_eos", true)
	}
	if ch.Temperature != nil {
		body.set("temperature", *ch.Temperature)
	}
	if ch.TopP != nil {
		body.set("top_p", *ch.TopP)
	}
	if ch.Seed != nil {
		body.set("seed", *ch.Seed)
	}
	if ch.ReasoningEffort != "" {
		body.set("reasoning_effort", ch.ReasoningEffort)
	}
	switch {
	case ch.Logprobs && ch.Completion:
		body.set("logprobs", 1)
	case ch.Logprobs:
		body.set("logprobs", true)
	}
}

// Parameters is the body without its messages or prompt.
func (k *Call) Parameters() json.RawMessage { return k.parameters }

// Bytes is the length of the prompt: the text of all messages, images left out.
func (k *Call) Bytes() int { return k.bytes }

// wire is a message as the API has it: content is a string, or an array of parts if there are images.
func wire(m Message) (any, error) {
	type message struct {
		Role    string     `json:"role"`
		Content any        `json:"content"`
		Calls   []wireCall `json:"tool_calls,omitempty"`
		CallID  string     `json:"tool_call_id,omitempty"`
	}
	if m.Role == "" {
		return nil, fmt.Errorf("it has no role; give one of system, user, assistant and tool")
	}
	if len(m.Images) == 0 {
		return message{m.Role, m.Content, wireCalls(m.Calls), m.CallID}, nil
	}
	type link struct {
		URL string `json:"url"`
	}
	type part struct {
		Type  string `json:"type"`
		Text  string `json:"text,omitempty"`
		Image *link  `json:"image_url,omitempty"`
	}
	var list []part
	if m.Content != "" {
		list = append(list, part{Type: "text", Text: m.Content})
	}
	for _, image := range m.Images {
		if len(image.Data) == 0 || !strings.HasPrefix(image.MIME, "image/") {
			return nil, fmt.Errorf("the image %q cannot be sent: it has %d bytes of type %q", image.Name, len(image.Data), image.MIME)
		}
		url := "data:" + image.MIME + ";base64," + base64.StdEncoding.EncodeToString(image.Data)
		list = append(list, part{Type: "image_url", Image: &link{url}})
	}
	return message{m.Role, list, wireCalls(m.Calls), m.CallID}, nil
}

// members are those of a JSON object, in order and each once.
type members struct {
	names  []string
	values []json.RawMessage
}

// set adds or replaces a member.
func (m *members) set(name string, value any) {
	raw, ok := value.(json.RawMessage)
	if !ok {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(value) // strings, numbers and structs of them cannot fail
		raw = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	}
	if i := slices.Index(m.names, name); i >= 0 {
		m.values[i] = raw
		return
	}
	m.names, m.values = append(m.names, name), append(m.values, raw)
}

// merge adds further members, sorted, and refuses those that would make the measurement another one.
func (m *members) merge(extra map[string]json.RawMessage, prompt string) error {
	names := make([]string, 0, len(extra))
	for name := range extra {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		var b bytes.Buffer
		if err := json.Compact(&b, extra[name]); err != nil {
			return fmt.Errorf("parameter %q is not JSON: %v", name, err)
		}
		value := json.RawMessage(b.Bytes())
		switch {
		case name == "messages" || name == "prompt" || name == prompt:
			return fmt.Errorf("parameter %q is set by the request itself; leave it out", name)
		case name == "stream" && string(value) != "true":
			return fmt.Errorf("parameter \"stream\" must be true: what is measured is the stream")
		case (name == "n" || name == "best_of") && string(value) != "1" && string(value) != "null":
			return fmt.Errorf("parameter %q must be 1: one answer is measured at a time", name)
		case string(value) == "null":
			if i := slices.Index(m.names, name); i >= 0 {
				m.names, m.values = slices.Delete(m.names, i, i+1), slices.Delete(m.values, i, i+1)
			}
		default:
			m.set(name, value)
		}
	}
	return nil
}

// object is the JSON of all members but one.
func (m *members) object(without string) []byte {
	b := []byte{'{'}
	for i, name := range m.names {
		if name == without {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		key, _ := json.Marshal(name)
		b = append(append(append(b, key...), ':'), m.values[i]...)
	}
	return append(b, '}')
}
