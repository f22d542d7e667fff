package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// request is a completion request as the endpoint understands it.
type request struct {
	chat     bool
	model    string
	stream   bool
	scenario Scenario // the one that answers, with defaults written out
	key      string   // what request counters are kept by
	prompt   []promptPart
	promptN  int // prompt tokens, template included

	includeUsage    bool
	continuousUsage bool
	maxTokens       int // -1: no limit
	minTokens       int
	ignoreEOS       bool
	choices         int
	logprobs        bool
	tokenIDs        bool
	tools           bool
	forceTool       bool
}

// promptPart is a piece of the prompt: a text, or something that counts a fixed
// number of tokens whatever its bytes are (a role, an image, a token id).
type promptPart struct {
	text  string
	fixed int // 0: the tokens of text
}

// wireRequest is the JSON of both completion endpoints.
type wireRequest struct {
	Model         string          `json:"model"`
	Messages      []wireMessage   `json:"messages"`
	Prompt        json.RawMessage `json:"prompt"`
	Stream        bool            `json:"stream"`
	StreamOptions *struct {
		IncludeUsage         bool `json:"include_usage"`
		ContinuousUsageStats bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	MinTokens           int             `json:"min_tokens"`
	IgnoreEOS           bool            `json:"ignore_eos"`
	N                   *int            `json:"n"`
	Logprobs            json.RawMessage `json:"logprobs"`
	ReturnTokenIDs      bool            `json:"return_token_ids"`
	Tools               json.RawMessage `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
	Sim                 json.RawMessage `json:"sim"`
}

type wireMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// strictMembers are the members of a request that the OpenAI API has, and sim.
var strictMembers = strings.Fields(`model messages prompt suffix stream stream_options max_tokens
	max_completion_tokens n logprobs top_logprobs echo best_of stop temperature top_p seed user
	presence_penalty frequency_penalty logit_bias tools tool_choice parallel_tool_calls response_format
	reasoning_effort modalities audio prediction metadata store service_tier safety_identifier
	prompt_cache_key verbosity web_search_options functions function_call sim`)

// parseRequest understands the body of a completion request. An error is what
// the client did wrong, to be answered with 400 (404 for an unknown model).
func (s *Server) parseRequest(head *http.Request, body []byte, chat bool) (*request, *failure) {
	scenario, key, fail := s.scenarioFor(head)
	if fail != nil {
		return nil, fail
	}
	var wire wireRequest
	if err := json.Unmarshal(body, &wire); err != nil {
		return nil, badBody(body, err)
	}
	if len(wire.Sim) > 0 && string(wire.Sim) != "null" {
		if err := scenario.merge(wire.Sim); err != nil {
			return nil, badRequest("sim", "cannot use member sim of the request: %v", err)
		}
		key += string(wire.Sim)
	}
	scenario = scenario.withDefaults()
	if scenario.Strict {
		if fail := s.strict(body, &wire); fail != nil {
			return nil, fail
		}
	}
	r := &request{
		chat: chat, model: wire.Model, stream: wire.Stream, scenario: scenario, key: key,
		maxTokens: -1, minTokens: wire.MinTokens, ignoreEOS: wire.IgnoreEOS, choices: 1,
		tokenIDs: wire.ReturnTokenIDs,
	}
	if r.model == "" {
		r.model = s.model
	}
	if o := wire.StreamOptions; o != nil {
		r.includeUsage, r.continuousUsage = o.IncludeUsage, o.ContinuousUsageStats
	}
	if wire.MaxTokens != nil {
		r.maxTokens = *wire.MaxTokens
	}
	if wire.MaxCompletionTokens != nil {
		r.maxTokens = *wire.MaxCompletionTokens
	}
	if wire.N != nil {
		r.choices = *wire.N
	}
	switch lp := string(bytes.TrimSpace(wire.Logprobs)); lp {
	case "", "null", "false":
	case "true":
		r.logprobs = true
	default:
		r.logprobs = !chat // a number of alternatives, in /completions
	}
	r.tools = len(wire.Tools) > 2 && string(wire.Tools) != "null"
	choice := strings.TrimSpace(string(wire.ToolChoice))
	r.forceTool = r.tools && (choice == `"required"` || strings.HasPrefix(choice, "{"))
	if fail := r.checkNumbers(&wire); fail != nil {
		return nil, fail
	}
	if fail := r.readPrompt(&wire); fail != nil {
		return nil, fail
	}
	return r, nil
}

func (r *request) checkNumbers(wire *wireRequest) *failure {
	switch {
	case (wire.MaxTokens != nil || wire.MaxCompletionTokens != nil) && r.maxTokens < 1:
		return badRequest("max_tokens", "max_tokens must be at least 1, got %d", r.maxTokens)
	case r.minTokens < 0:
		return badRequest("min_tokens", "min_tokens must be at least 0, got %d", r.minTokens)
	case r.minTokens > MaxTokens:
		return badRequest("min_tokens", "min_tokens must be at most %d, got %d", MaxTokens, r.minTokens)
	case r.maxTokens > 0 && r.minTokens > r.maxTokens:
		return badRequest("min_tokens", "min_tokens must be at most max_tokens (%d), got %d", r.maxTokens, r.minTokens)
	case r.ignoreEOS && r.maxTokens > MaxTokens:
		return badRequest("max_tokens", "max_tokens must be at most %d with ignore_eos, got %d", MaxTokens, r.maxTokens)
	case r.choices < 1 || r.choices > MaxChoices:
		return badRequest("n", "n must be between 1 and %d, got %d", MaxChoices, r.choices)
	}
	if r.scenario.IgnoreN {
		r.choices = 1
	}
	if r.scenario.Choices > 0 {
		r.choices = r.scenario.Choices
	}
	if n, _ := r.length(); n*r.choices > MaxTokens {
		return badRequest("n", "%d choices of %d tokens are more than %d", r.choices, n, MaxTokens)
	} else if n*r.choices*r.scenario.LineBytes > maxReply {
		return badRequest("sim.line_bytes", "%d tokens with lines of %d bytes are more than %d bytes", n*r.choices, r.scenario.LineBytes, maxReply)
	}
	return nil
}

// length is the number of tokens of each choice, and why it ends there.
func (r *request) length() (n int, finish string) {
	n = r.scenario.Tokens
	if r.scenario.IgnoreLimits || r.scenario.Empty {
		return n, "stop"
	}
	n = max(n, r.minTokens)
	// The end token would be one more: a limit equal to the natural length cuts.
	if r.maxTokens > 0 && (r.maxTokens <= n || r.ignoreEOS) {
		return r.maxTokens, "length"
	}
	if r.ignoreEOS && r.minTokens > 0 {
		return r.minTokens, "length"
	}
	return n, "stop"
}

// readPrompt collects the texts of the prompt and counts its tokens.
func (r *request) readPrompt(wire *wireRequest) *failure {
	if !r.chat {
		return r.readTextPrompt(wire.Prompt)
	}
	if len(wire.Messages) == 0 {
		return badRequest("messages", "messages must have at least one message")
	}
	r.promptN = ReplyTokens
	for i, m := range wire.Messages {
		r.promptN += MessageTokens
		r.prompt = append(r.prompt, promptPart{m.Role, MessageTokens})
		if len(m.Content) == 0 || string(m.Content) == "null" {
			continue
		}
		var text string
		if json.Unmarshal(m.Content, &text) == nil {
			r.addPrompt(text)
			continue
		}
		var parts []struct {
			Type  string          `json:"type"`
			Text  string          `json:"text"`
			Image json.RawMessage `json:"image_url"`
		}
		if err := json.Unmarshal(m.Content, &parts); err != nil {
			return badRequest(fmt.Sprintf("messages[%d].content", i), "messages[%d].content must be a string or an array of parts", i)
		}
		for j, part := range parts {
			switch part.Type {
			case "text":
				r.addPrompt(part.Text)
			case "image_url":
				r.promptN += ImageTokens
				r.prompt = append(r.prompt, promptPart{string(part.Image), ImageTokens})
			default:
				return badRequest(fmt.Sprintf("messages[%d].content[%d].type", i, j),
					"messages[%d].content[%d].type is %q: this endpoint reads text and image_url", i, j, part.Type)
			}
		}
	}
	if r.tools {
		r.addPrompt(string(wire.Tools))
	}
	return nil
}

func (r *request) addPrompt(text string) {
	r.prompt = append(r.prompt, promptPart{text: text})
	r.promptN += CountTokens(text)
}

// readTextPrompt reads the prompt of /completions: a text, a list with one
// text, or token ids. More than one prompt in a request is refused.
func (r *request) readTextPrompt(prompt json.RawMessage) *failure {
	var text string
	var texts []string
	var ids []int64
	switch {
	case len(prompt) == 0:
		return badRequest("prompt", "prompt is missing")
	case json.Unmarshal(prompt, &text) == nil:
		r.addPrompt(text)
	case json.Unmarshal(prompt, &texts) == nil && len(texts) == 1:
		r.addPrompt(texts[0])
	case json.Unmarshal(prompt, &ids) == nil && len(ids) > 0:
		for _, id := range ids {
			r.prompt = append(r.prompt, promptPart{strconv.FormatInt(id, 10), 1})
		}
		r.promptN = len(ids)
	default:
		return badRequest("prompt", "prompt must be one text, a list with one text, or a list of token ids")
	}
	return nil
}

// strict refuses what the OpenAI API does not have.
func (s *Server) strict(body []byte, wire *wireRequest) *failure {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return badBody(body, err)
	}
	var options map[string]json.RawMessage
	if raw := members["stream_options"]; raw != nil && json.Unmarshal(raw, &options) == nil {
		for name := range options {
			if name != "include_usage" && name != "include_obfuscation" {
				members["stream_options."+name] = nil
			}
		}
	}
	var unknown []string
	for name := range members {
		if !slices.Contains(strictMembers, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		fail := badRequest(unknown[0], "Unrecognized request argument supplied: %s", unknown[0])
		fail.code = "unknown_parameter"
		return fail
	}
	if wire.Model != s.model {
		return &failure{status: 404, kind: "NotFoundError", code: "model_not_found", param: "model",
			message: fmt.Sprintf("The model %q does not exist; this endpoint serves %q.", wire.Model, s.model)}
	}
	return nil
}

// failure is an error reply.
type failure struct {
	status  int
	kind    string
	code    string
	param   string
	message string
}

func badRequest(param, format string, args ...any) *failure {
	return &failure{status: 400, kind: "invalid_request_error", code: "invalid_value", param: param,
		message: fmt.Sprintf(format, args...)}
}

func badBody(body []byte, err error) *failure {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind):
		return badRequest(kind.Field, "%s must be a %s, got a %s", kind.Field, plainType(kind.Type.String()), kind.Value)
	case errors.As(err, &syntax):
		return badRequest("", "the request body is not JSON (at byte %d of %d): %v", syntax.Offset, len(body), err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badRequest("", "the request body is not JSON: it ends too early")
	}
	return badRequest("", "the request body cannot be read: %v", err)
}

// body is the JSON of an error reply.
func (f *failure) body() []byte {
	type inner struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Param   any    `json:"param"`
		Code    any    `json:"code"`
	}
	e := inner{Message: f.message, Type: f.kind}
	if f.param != "" {
		e.Param = f.param
	}
	if f.code != "" {
		e.Code = f.code
	}
	text, err := json.Marshal(map[string]inner{"error": e})
	if err != nil {
		return []byte(`{"error":{"message":"the error could not be written as JSON"}}`)
	}
	return text
}
