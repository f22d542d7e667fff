package emit

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// encode writes metrics and traces, which are seldom, from OTLP's own types.
func (e *Emitter) encode(m proto.Message) ([]byte, error) {
	if e.options.Protobuf || e.endpoint.grpc {
		return proto.Marshal(m)
	}
	// OTLP/JSON is protobuf's JSON but for two things: enumerations are
	// numbers, and the ids of traces and spans are hex and not base64.
	if t, ok := m.(*trace.TracesData); ok {
		for _, r := range t.ResourceSpans {
			for _, s := range r.ScopeSpans {
				for _, span := range s.Spans {
					span.TraceId, span.SpanId, span.ParentSpanId = base64OfHex(span.TraceId), base64OfHex(span.SpanId), base64OfHex(span.ParentSpanId)
				}
			}
		}
	}
	return protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(m)
}

// base64OfHex is the bytes whose base64 is id's hex. Hex digits are base64
// digits, and ids of 8 and 16 bytes have a multiple of four of them.
func base64OfHex(id []byte) []byte {
	b, err := base64.StdEncoding.DecodeString(hex.EncodeToString(id))
	if err != nil {
		panic(err) // of another length: no id
	}
	return b
}

// resource names the process; the logs' has service.name alone, as the
// original's.
func (e *Emitter) resource() *resource.Resource {
	r := &resource.Resource{Attributes: []*common.KeyValue{
		text("service.name", serviceName),
		text("service.version", e.options.Version),
		text("service.instance.id", e.instance),
	}}
	if e.options.ModelID != "" {
		r.Attributes = append(r.Attributes, text("model.id", e.options.ModelID))
	}
	return r
}

func (e *Emitter) scope() *common.InstrumentationScope {
	return &common.InstrumentationScope{Name: scopeName, Version: valid(e.options.Version)}
}

func stringValue(s string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: valid(s)}}
}

func text(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: valid(key), Value: stringValue(value)}
}

func number(key string, value int) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: int64(value)}}}
}

func double(key string, value float64) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: value}}}
}

func boolean(key string, value bool) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: value}}}
}

// randomID is 16 random bytes in hex.
func randomID() string {
	return hex.EncodeToString(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, rand.Uint64()), rand.Uint64()))
}
