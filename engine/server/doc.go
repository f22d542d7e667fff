// Package server is the OpenAI-compatible API of an engine: chat and plain completions, streamed and
// not, tokenize and detokenize, models, health and metrics.
//
// A request goes through three hands. It is read and checked (request.go and its neighbours), which
// refuses whatever cannot be served with a documented code and a sentence; it is submitted to the
// scheduler; and its tokens become an answer (answer.go), which a handler writes as one document or
// as a stream of chunks. Every limit on what comes from outside stands in limits.go.
//
// The package is under the Apache License 2.0, see engine/LICENSE.
package server
