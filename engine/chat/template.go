package chat

import (
	"errors"
	"fmt"
	"time"

	"velo/engine/chat/jinja"
)

// Template is a model's chat template. It is safe for concurrent use.
type Template struct{ parsed *jinja.Template }

// NewTemplate parses the text of a chat template.
func NewTemplate(source string) (*Template, error) {
	p, err := jinja.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("cannot use the model's template: %w", err)
	}
	return &Template{p}, nil
}

// Request is what a template renders. Messages, tools and variables are JSON as the chat API
// carries it; the order of keys reaches the prompt.
type Request struct {
	Messages  []byte // array of objects with at least a role
	Tools     []byte // array of tool definitions, or empty
	Documents []byte // array of objects, or empty
	Variables []byte // object with further variables (chat_template_kwargs), or empty
	BOS, EOS  string // the texts of the model's special tokens
	// AddGenerationPrompt ends the prompt where the assistant begins to speak.
	AddGenerationPrompt bool
	Now                 time.Time // what strftime_now tells; zero for the time of the call
}

// Render returns the prompt. Where the template refuses the conversation the error is a
// *RefusedError.
func (t *Template) Render(q Request) (string, error) {
	vars := jinja.NewDict()
	messages, err := list("messages", q.Messages)
	if err != nil {
		return "", err
	}
	if messages == nil {
		return "", errors.New("cannot render the conversation: messages are missing; send an array")
	}
	if err := prepare(messages); err != nil {
		return "", err
	}
	vars.Set("messages", messages)
	for _, v := range []struct {
		name string
		data []byte
	}{{"tools", q.Tools}, {"documents", q.Documents}} {
		l, err := list(v.name, v.data)
		if err != nil {
			return "", err
		}
		if l == nil {
			vars.Set(v.name, nil)
		} else {
			vars.Set(v.name, l)
		}
	}
	vars.Set("add_generation_prompt", q.AddGenerationPrompt)
	vars.Set("bos_token", q.BOS)
	vars.Set("eos_token", q.EOS)
	if len(q.Variables) > 0 {
		v, err := jinja.FromJSON(q.Variables)
		if err != nil {
			return "", fmt.Errorf("cannot read chat_template_kwargs: %w", err)
		}
		d, ok := v.(*jinja.Dict)
		if !ok && v != nil {
			return "", errors.New("cannot read chat_template_kwargs: it must be an object")
		}
		if ok {
			for _, own := range []string{"messages", "tools", "documents", "add_generation_prompt"} {
				if _, taken := d.Get(own); taken {
					return "", fmt.Errorf("cannot read chat_template_kwargs: %s has its own place in the request", own)
				}
			}
			d.Entries(func(k, v any) bool { vars.Set(k, v); return true })
		}
	}
	now := q.Now
	if now.IsZero() {
		now = time.Now()
	}
	s, err := t.parsed.Render(vars, now, jinja.Limits{})
	var e *jinja.Error
	if errors.As(err, &e) && e.Raised {
		return "", &RefusedError{e.Reason}
	}
	if err != nil {
		return "", fmt.Errorf("cannot render the conversation: %w", err)
	}
	return s, nil
}

// RefusedError says that the template itself does not take this conversation: its author wrote
// the reason. It is the caller's fault, not the model's.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string {
	return "cannot render the conversation: the model's template refuses it: " + e.Reason
}

func list(what string, data []byte) (*jinja.List, error) {
	if len(data) == 0 {
		return nil, nil
	}
	v, err := jinja.FromJSON(data)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", what, err)
	}
	l, ok := v.(*jinja.List)
	if !ok && v != nil {
		return nil, fmt.Errorf("cannot read %s: it must be an array", what)
	}
	return l, nil
}

// prepare makes of the messages what templates expect: reasoning under the names thinking and
// reasoning_content, whichever of three it came by (as transformers does), and the arguments of tool calls as objects, where the chat API has them as a string of JSON.
func prepare(messages *jinja.List) error {
	for i, m := range messages.Items {
		d, ok := m.(*jinja.Dict)
		if !ok {
			return fmt.Errorf("cannot read messages: number %d is not an object", i+1)
		}
		if _, ok := d.Get("role"); !ok {
			return fmt.Errorf("cannot read messages: number %d has no role", i+1)
		}
		for _, id := range []string{"reasoning_content", "thinking", "reasoning"} {
			if v, _ := d.Get(id); v != nil {
				if _, ok := d.Get("thinking"); !ok {
					d.Set("thinking", v)
				}
				d.Set("reasoning_content", v)
				break
			}
		}
		calls, _ := d.Get("tool_calls")
		l, ok := calls.(*jinja.List)
		if !ok {
			continue
		}
		for _, c := range l.Items {
			call, ok := c.(*jinja.Dict)
			if !ok {
				continue
			}
			if f, ok := call.Get("function"); ok {
				if call, ok = f.(*jinja.Dict); !ok {
					continue
				}
			}
			text, _ := call.Get("arguments")
			s, ok := text.(string)
			if !ok {
				continue
			}
			// Anything but an object stays the string it is; the template may print it.
			if v, err := jinja.FromJSON([]byte(s)); err == nil {
				if o, ok := v.(*jinja.Dict); ok {
					call.Set("arguments", o)
				}
			}
		}
	}
	return nil
}
