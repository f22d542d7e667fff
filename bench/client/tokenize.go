package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// ErrNoTokenizer says that the server does not count tokens for others.
var ErrNoTokenizer = errors.New("the server has no /tokenize")

// tokenizer is the way in which a server was found to count tokens.
type tokenizer struct {
	address string
	llama   bool // llama.cpp's form, else vLLM's
}

// Tokenize asks the server for the number of tokens of a text, without special tokens. It tries
// /tokenize beside the version and below it, in the forms of vLLM and of llama.cpp, and remembers
// what worked. It returns ErrNoTokenizer if nothing did.
func (c *Client) Tokenize(ctx context.Context, model, text string) (int, error) {
	if t := c.tokens.Load(); t != nil {
		n, known, err := c.count(ctx, *t, model, text)
		if err == nil && !known {
			err = ErrNoTokenizer
		}
		return n, err
	}
	var trouble error
	for _, address := range []string{c.base.beside("/tokenize"), c.base.at("/tokenize")} {
		for _, llama := range []bool{false, true} {
			t := tokenizer{address, llama}
			n, known, err := c.count(ctx, t, model, text)
			if ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
			if known {
				if text != "" { // no tokens of no text fit either form
					c.tokens.Store(&t)
				}
				return n, nil
			}
			if err != nil && trouble == nil {
				trouble = err
			}
		}
	}
	if trouble != nil {
		return 0, trouble
	}
	return 0, ErrNoTokenizer
}

// count asks in one way. known is false when the server does not understand it; an error says that it
// has trouble of another kind.
func (c *Client) count(ctx context.Context, t tokenizer, model, text string) (n int, known bool, err error) {
	question := map[string]any{"content": text, "add_special": false}
	if !t.llama {
		question = map[string]any{"model": model, "prompt": text, "add_special_tokens": false}
	}
	body, _ := json.Marshal(question)
	a, err := c.ask(ctx, http.MethodPost, t.address, body)
	if err != nil {
		return 0, false, fmt.Errorf("cannot count tokens: %w", err)
	}
	switch status := a.head.status; {
	case status == 401 || status == 403 || status == 429:
		return 0, false, fmt.Errorf("cannot count tokens: %w", c.refused(&a.head, a.body, t.address))
	case status/100 != 2:
		return 0, false, nil
	}
	o := asObject(a.body)
	n = asCount(o["count"])
	if n < 0 {
		list := asList(o["tokens"])
		if list == nil {
			return 0, false, nil
		}
		n = len(list)
	}
	// A server of the other form answers an unknown member with no tokens.
	if n == 0 && text != "" {
		return 0, false, nil
	}
	return n, true, nil
}
