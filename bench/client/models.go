package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// patience is how long a question that is not measured may take.
const patience = 30 * time.Second

// answer is what came back to such a question.
type answer struct {
	head head
	body []byte
}

// ask sends one and reads the whole answer.
func (c *Client) ask(ctx context.Context, method, address string, body []byte) (answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errNoAnswer)
	defer cancel()
	var content io.Reader
	if body != nil {
		content = strings.NewReader(string(body))
	}
	req, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return answer{}, err
	}
	req.Header = c.fields.Clone()
	req.Header.Set("Accept", "application/json")
	req.Header["Idempotency-Key"] = nil // not sent: lets net/http ask again if the server had just closed the connection
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := (&http.Client{Transport: c.web}).Do(req)
	if err != nil {
		return answer{}, c.silent(because(ctx, err))
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return answer{}, c.silent(because(ctx, err))
	}
	return answer{head{
		status: resp.StatusCode, contentType: resp.Header.Get("Content-Type"), server: resp.Header.Get("Server"),
		location: resp.Header.Get("Location"), retryAfter: resp.Header.Get("Retry-After"),
	}, data}, nil
}

var errNoAnswer = errors.New("no answer in time")

// silent puts the lack of an answer into a sentence; being stopped stays what it is.
func (c *Client) silent(err error) error {
	switch {
	case errors.Is(err, errNoAnswer):
		return fmt.Errorf("%s does not answer within %v: the server is overloaded or hangs; look at its log", c.base.url.Host, patience)
	case errors.Is(err, errConnectTimeout):
		return c.timedOut("connect", c.o.Timeout.Connect)
	case isCancelled(err):
		return err
	}
	var phase *dialError
	if text, isTLS := tlsTrouble(err, c.base.url.Hostname()); !errors.As(err, &phase) && !isTLS {
		if errors.Is(err, io.EOF) || strings.Contains(err.Error(), "connection reset") || strings.Contains(err.Error(), "malformed HTTP") {
			if strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`) {
				err = errSpeaksTLS
			}
			return c.hungUp(err, c.base)
		}
	} else if isTLS {
		return &failure{class: "tls", text: text}
	}
	return c.unreachable(c.base, err)
}

// Model is a model that an endpoint serves.
type Model struct {
	ID            string
	OwnedBy       string // vllm, llamacpp, … : the best hint at what serves it
	ContextLength int    // tokens, 0 = not said
}

// Models asks for the list of models, sorted as the server gives it.
func (c *Client) Models(ctx context.Context) ([]Model, error) {
	address := c.base.at("/models")
	a, err := c.ask(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot list models: %w", err)
	}
	if a.head.status/100 != 2 {
		return nil, fmt.Errorf("cannot list models: %w", c.refused(&a.head, a.body, address))
	}
	if webPage(a.head.contentType, a.body) {
		return nil, fmt.Errorf("cannot list models: %s", isWebPage)
	}
	list := asList(asObject(a.body)["data"])
	if list == nil && asObject(a.body)["data"] == nil {
		list = asList(json.RawMessage(strings.TrimSpace(string(a.body)))) // some servers send the list itself
	}
	if list == nil {
		return nil, fmt.Errorf("cannot list models: the answer is not a list of models but %s; check that the base URL names an OpenAI-compatible API", quote(a.body))
	}
	var models []Model
	for _, raw := range list {
		o := asObject(raw)
		m := Model{ID: asString(o["id"]), OwnedBy: asString(o["owned_by"])}
		if m.ID == "" {
			continue
		}
		meta := asObject(o["meta"])
		for _, n := range []json.RawMessage{o["max_model_len"], meta["n_ctx"], meta["n_ctx_train"], o["context_length"], o["context_window"]} {
			if m.ContextLength = max(0, asCount(n)); m.ContextLength > 0 {
				break
			}
		}
		if !slices.Contains(models, m) {
			models = append(models, m)
		}
	}
	return models, nil
}

// Health asks whether the server is well: GET /health beside the version. A server that has no such
// route counts as well, since it answers. Otherwise the error says what is wrong.
func (c *Client) Health(ctx context.Context) error {
	address := c.base.beside("/health")
	a, err := c.ask(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("cannot reach the server: %w", err)
	}
	switch a.head.status {
	case 404, 405, 501:
		return nil
	}
	if a.head.status/100 != 2 {
		return fmt.Errorf("the server is not well: %w", c.refused(&a.head, a.body, address))
	}
	return nil
}
