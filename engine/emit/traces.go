package emit

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	tracedata "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Span is one request from its arrival to its last token. It is sent as a span
// of kind SERVER with the attributes of OpenTelemetry's conventions for
// generative AI (gen_ai.*, v0.1.0) and one event, token, a generated token.
type Span struct {
	Name       string // operation: chat, text_completion
	Request    string // session key; gen_ai.conversation.id
	Generation string // gen-<uuid>
	Response   string // id the client got, chatcmpl-…; may be ""
	Model      string

	// Traceparent and Tracestate are the client's headers (W3C Trace
	// Context). With them the span is a child of the client's; a client that
	// does not record its own span gets none here either. Without, or
	// malformed, the span begins a trace.
	Traceparent, Tracestate string

	Stream            bool
	Begin, First, End time.Time // First: the first token was there; zero = there was none
	PromptTokens      int       // with the cached ones
	CachedTokens      int
	Generated         int
	Finish            string // stop, length, tool_calls, cancelled, error
	Error             string // why it failed; "" = it did not
	ErrorType         string // code of the error; "" = _OTHER
	Tokens            []time.Time
}

const (
	spanEvents = 4096 // most token events of a span; what is over is counted in the span
	spanSize   = 2048 // about how many bytes a span takes
	eventSize  = 70   // and an event
)

// traceRequest makes a request of spans: an ExportTraceServiceRequest in all but
// its name, whose package would bring an HTTP gateway along.
func (e *Emitter) traceRequest(some []Span) *tracedata.TracesData {
	spans := make([]*tracedata.Span, 0, len(some))
	for i := range some {
		if s := e.span(&some[i]); s != nil {
			spans = append(spans, s)
		}
	}
	return &tracedata.TracesData{ResourceSpans: []*tracedata.ResourceSpans{{
		Resource:   e.resource(),
		ScopeSpans: []*tracedata.ScopeSpans{{Scope: e.scope(), Spans: spans}},
	}}}
}

func (e *Emitter) span(s *Span) *tracedata.Span {
	id := binary.BigEndian.AppendUint64(nil, rand.Uint64()|1)
	p := &tracedata.Span{
		TraceId: binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, rand.Uint64()), rand.Uint64()|1),
		SpanId:  id, Flags: 1,
		Name:              valid(strings.TrimSpace(s.Name + " " + s.Model)),
		Kind:              tracedata.Span_SPAN_KIND_SERVER,
		StartTimeUnixNano: uint64(s.Begin.UnixNano()),
		EndTimeUnixNano:   uint64(max(s.End.UnixNano(), s.Begin.UnixNano())),
	}
	if parent, ok := parseTraceparent(s.Traceparent); ok {
		p.TraceId, p.ParentSpanId = parent.trace[:], parent.span[:]
		// Bits 8 and 9: it is known whether the parent is of another process, and it is.
		p.Flags = uint32(parent.flags) | 1<<8 | 1<<9
		p.TraceState = valid(s.Tracestate)
	}
	p.Attributes = []*common.KeyValue{
		text("gen_ai.operation.name", s.Name),
		text("gen_ai.provider.name", "velo"),
		text("gen_ai.request.model", s.Model),
		text("gen_ai.response.model", s.Model),
		boolean("gen_ai.request.stream", s.Stream),
		number("gen_ai.usage.input_tokens", s.PromptTokens),
		number("gen_ai.usage.cache_read.input_tokens", s.CachedTokens),
		number("gen_ai.usage.output_tokens", s.Generated),
	}
	if s.Finish != "" {
		p.Attributes = append(p.Attributes, &common.KeyValue{Key: "gen_ai.response.finish_reasons", Value: &common.AnyValue{
			Value: &common.AnyValue_ArrayValue{ArrayValue: &common.ArrayValue{Values: []*common.AnyValue{stringValue(s.Finish)}}}}})
	}
	for _, a := range []struct{ key, value string }{
		{"gen_ai.response.id", s.Response}, {"gen_ai.conversation.id", s.Request},
		{"generation.id", s.Generation}, {"topology", e.options.Topology},
	} {
		if a.value != "" {
			p.Attributes = append(p.Attributes, text(a.key, a.value))
		}
	}
	if !s.First.IsZero() {
		p.Attributes = append(p.Attributes, double("gen_ai.response.time_to_first_chunk", s.First.Sub(s.Begin).Seconds()))
	}
	if s.Error != "" {
		kind := s.ErrorType
		if kind == "" {
			kind = "_OTHER"
		}
		p.Attributes = append(p.Attributes, text("error.type", kind))
		p.Status = &tracedata.Status{Code: tracedata.Status_STATUS_CODE_ERROR, Message: valid(s.Error)}
	}
	kept := s.Tokens[:min(len(s.Tokens), spanEvents)]
	p.DroppedEventsCount = uint32(len(s.Tokens) - len(kept))
	events := make([]tracedata.Span_Event, len(kept))
	p.Events = make([]*tracedata.Span_Event, len(kept))
	for i, at := range kept {
		events[i].Name, events[i].TimeUnixNano = "token", uint64(at.UnixNano())
		p.Events[i] = &events[i]
	}
	return p
}

// traceparent is the header of that name: whose child a span is.
type traceparent struct {
	trace [16]byte
	span  [8]byte
	flags byte
}

func (t traceparent) sampled() bool { return t.flags&1 != 0 }

// parseTraceparent reads VERSION-TRACE-SPAN-FLAGS in lower-case hex, after
// W3C Trace Context, section 3.2: version ff and ids of zeros are invalid, and
// later versions may have more after the flags.
func parseTraceparent(header string) (traceparent, bool) {
	var t traceparent
	header = strings.TrimSpace(header)
	if len(header) < 55 || header[2] != '-' || header[35] != '-' || header[52] != '-' || strings.ToLower(header) != header {
		return t, false
	}
	var version, flags [1]byte
	for _, part := range []struct {
		to   []byte
		from string
	}{{version[:], header[:2]}, {t.trace[:], header[3:35]}, {t.span[:], header[36:52]}, {flags[:], header[53:55]}} {
		if _, err := hex.Decode(part.to, []byte(part.from)); err != nil {
			return traceparent{}, false
		}
	}
	t.flags = flags[0]
	later := len(header) > 55
	if version[0] == 0xff || later && (version[0] == 0 || header[55] != '-') ||
		t.trace == [16]byte{} || t.span == [8]byte{} {
		return traceparent{}, false
	}
	return t, true
}

// unwanted tells whether the client has a trace and does not record it.
func (s *Span) unwanted() bool {
	parent, ok := parseTraceparent(s.Traceparent)
	return ok && !parent.sampled()
}
