package server

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"velo/engine/sched"
)

// Code names a kind of failure. Clients may rely on it; the sentence beside it is for people.
type Code string

// The codes of errors, with the status they come with.
const (
	InvalidBody        Code = "invalid_request_body"         // 400
	InvalidMessages    Code = "invalid_messages"             // 400
	InvalidSampling    Code = "invalid_sampling_parameter"   // 400
	InvalidEffort      Code = "invalid_reasoning_effort"     // 400
	InvalidKwargs      Code = "invalid_chat_template_kwargs" // 400
	InvalidTools       Code = "invalid_tools"                // 400
	InvalidToolChoice  Code = "invalid_tool_choice"          // 400
	InvalidFormat      Code = "invalid_response_format"      // 400
	InvalidGrammar     Code = "invalid_grammar"              // 400
	InvalidTokens      Code = "invalid_tokens"               // 400
	UnsupportedContent Code = "unsupported_content"          // 400
	UnsupportedParam   Code = "unsupported_parameter"        // 400
	NoTemplate         Code = "no_chat_template"             // 400
	ContextExceeded    Code = "context_length_exceeded"      // 400
	InvalidKey         Code = "invalid_api_key"              // 401
	NotFound           Code = "not_found"                    // 404
	ModelNotFound      Code = "model_not_found"              // 404
	MethodNotAllowed   Code = "method_not_allowed"           // 405
	RequestTimeout     Code = "request_timeout"              // 408
	TooLarge           Code = "request_too_large"            // 413
	Internal           Code = "internal_error"               // 500
	GenerationFailed   Code = "generation_failed"            // 500
	Busy               Code = "server_busy"                  // 503, with Retry-After
	Unavailable        Code = "engine_unavailable"           // 503
)

// status is the HTTP status of each code.
var status = map[Code]int{
	InvalidBody: 400, InvalidMessages: 400, InvalidSampling: 400, InvalidEffort: 400, InvalidKwargs: 400, InvalidTools: 400,
	InvalidToolChoice: 400, InvalidFormat: 400, InvalidGrammar: 400, InvalidTokens: 400, UnsupportedContent: 400, UnsupportedParam: 400,
	NoTemplate: 400, ContextExceeded: 400, InvalidKey: 401, NotFound: 404, ModelNotFound: 404, MethodNotAllowed: 405,
	RequestTimeout: 408, TooLarge: 413, Internal: 500, GenerationFailed: 500, Busy: 503, Unavailable: 503,
}

// Error is a failure as the client is told of it.
type Error struct {
	Code    Code
	Param   string // the member of the request that is at fault, "" if none is
	Message string // one sentence: what, where, what to do
	// Generated is how many tokens were generated before a failure.
	Generated int
}

func (e *Error) Error() string { return e.Message }

// Status is the HTTP status that goes with the error.
func (e *Error) Status() int {
	if s, ok := status[e.Code]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// kind is the type member, as OpenAI's API names them.
func (e *Error) kind() string {
	switch s := e.Status(); {
	case s == http.StatusUnauthorized:
		return "authentication_error"
	case s >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// body is the error as JSON.
func (e *Error) body() []byte {
	b := append([]byte(`{"error":{"message":`), quoted(e.Message)...)
	b = append(b, `,"type":"`...)
	b = append(b, e.kind()...)
	b = append(b, `","code":"`...)
	b = append(b, e.Code...)
	b = append(b, `","param":`...)
	if e.Param == "" {
		b = append(b, "null"...)
	} else {
		b = appendQuoted(b, e.Param)
	}
	if e.Status() == http.StatusInternalServerError {
		b = append(b, `,"completion_tokens":`...)
		b = strconv.AppendInt(b, int64(e.Generated), 10)
	}
	return append(b, "}}"...)
}

func fail(code Code, param, format string, a ...any) *Error {
	return &Error{Code: code, Param: param, Message: fmt.Sprintf(format, a...)}
}

// asError makes any error one for the client.
func asError(err error) *Error {
	var e *Error
	var long *sched.TooLongError
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &long):
		return tooLong("", long.Prompt, long.Context)
	case errors.Is(err, sched.ErrBusy):
		return fail(Busy, "", "cannot take the request: all lanes and the whole queue are taken; try again in 5 seconds")
	case errors.Is(err, sched.ErrStopped):
		return fail(Unavailable, "", "cannot take the request: the engine has stopped or is stopping; start it again")
	}
	return fail(Internal, "", "cannot answer: %v", err)
}

func tooLong(param string, prompt, context int) *Error {
	return fail(ContextExceeded, param, "cannot answer: the prompt has %d tokens and the context holds %d, prompt and answer together; shorten the conversation, send truncate_prompt_tokens, or start with a larger --max-seq-len", prompt, context)
}

// writeError answers a request with an error.
func writeError(w http.ResponseWriter, e *Error) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	switch e.Code {
	case Busy:
		h.Set("Retry-After", "5")
	case InvalidKey:
		h.Set("WWW-Authenticate", "Bearer")
	case RequestTimeout, TooLarge:
		h.Set("Connection", "close") // the rest of the body is not worth reading
	}
	w.WriteHeader(e.Status())
	_, _ = w.Write(append(e.body(), '\n'))
}
