package emit

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	serviceName = "gb10_inference"
	scopeName   = "gb10.generation.emitter"
)

// batch is a logs request being written, by hand: it is the one that runs for
// every token, and this way it allocates nothing once its buffers have grown.
type batch interface {
	reset()
	add(r *Record)
	size() int    // bytes so far
	body() []byte // the whole request; valid until reset
}

func newBatch(o Options, protobuf bool) batch {
	if protobuf {
		return newProtoBatch(o)
	}
	return newJSONBatch(o)
}

// jsonBatch writes a request as OTLP/JSON: 64-bit integers are strings.
type jsonBatch struct {
	head, attributes string // what is the same in every request and every record
	buffer           []byte
}

func newJSONBatch(o Options) *jsonBatch {
	text := func(s string) string { return string(appendJSON(nil, valid(s))) }
	return &jsonBatch{
		head: `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"` + serviceName +
			`"}}]},"scopeLogs":[{"scope":{"name":"` + scopeName + `","version":` + text(o.Version) + `},"logRecords":[`,
		attributes: `},"attributes":[{"key":"model.id","value":{"stringValue":` + text(o.ModelID) +
			`}},{"key":"topology","value":{"stringValue":` + text(o.Topology) + `}},{"key":"request.id","value":{"stringValue":`,
	}
}

func (b *jsonBatch) reset() { b.buffer = append(shrink(b.buffer), b.head...) }

func (b *jsonBatch) add(r *Record) {
	w := b.buffer
	if len(w) > len(b.head) {
		w = append(w, ',')
	}
	nanos := r.Time.UnixNano()
	w = append(w, `{"timeUnixNano":"`...)
	w = strconv.AppendInt(w, nanos, 10)
	w = append(w, `","observedTimeUnixNano":"`...)
	w = strconv.AppendInt(w, nanos, 10)
	w = append(w, `","body":{"stringValue":`...)
	w = appendJSON(w, validBytes(r.Body))
	w = append(w, b.attributes...)
	w = appendJSON(w, valid(r.Request))
	w = append(w, `}},{"key":"token.index","value":{"intValue":"`...)
	w = strconv.AppendInt(w, int64(r.Index), 10)
	w = append(w, `"}},{"key":"event","value":{"stringValue":"`...)
	w = append(w, r.Event.String()...)
	w = append(w, `"}},{"key":"generation.id","value":{"stringValue":`...)
	w = appendJSON(w, valid(r.Generation))
	for i := range r.attributes {
		a := &r.attributes[i]
		w = append(w, `}},{"key":`...)
		w = appendJSON(w, valid(a.Key))
		if a.Text != "" {
			w = append(w, `,"value":{"stringValue":`...)
			w = appendJSON(w, valid(a.Text))
		} else {
			w = append(w, `,"value":{"doubleValue":`...)
			w = strconv.AppendFloat(w, a.Number, 'g', -1, 64)
		}
	}
	b.buffer = append(w, `}}]}`...)
}

func (b *jsonBatch) size() int { return len(b.buffer) }

func (b *jsonBatch) body() []byte {
	b.buffer = append(b.buffer, `]}]}]}`...)
	return b.buffer
}

const hexDigits = "0123456789abcdef"

// plain are the bytes that stand for themselves in a JSON string, those of
// characters beyond ASCII among them.
var plain = func() (is [256]bool) {
	for c := range is {
		is[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return is
}()

// appendJSON writes s, which is UTF-8, as a JSON string.
func appendJSON[T string | []byte](w []byte, s T) []byte {
	w = append(w, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if plain[c] {
			continue
		}
		w = append(w, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			w = append(w, '\\', c)
		case '\n':
			w = append(w, '\\', 'n')
		case '\r':
			w = append(w, '\\', 'r')
		case '\t':
			w = append(w, '\\', 't')
		default:
			w = append(w, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(w, s[from:]...), '"')
}

// protoBatch writes a request as protobuf. Field numbers are those of
// opentelemetry/proto/logs/v1/logs.proto and common/v1/common.proto.
type protoBatch struct {
	resource, scope []byte // ResourceLogs.resource and ScopeLogs.scope with their tags
	model, topology []byte // LogRecord.attributes with their tags
	records         []byte
	record, value   []byte // being written
	request         []byte
}

func newProtoBatch(o Options) *protoBatch {
	b := &protoBatch{}
	service := b.attribute(nil, 1, "service.name", serviceName)
	b.resource = appendBytes(nil, 1, service)
	scope := appendBytes(appendBytes(nil, 1, scopeName), 2, valid(o.Version))
	b.scope = appendBytes(nil, 1, scope)
	b.model = b.attribute(nil, 6, "model.id", o.ModelID)
	b.topology = b.attribute(nil, 6, "topology", o.Topology)
	return b
}

func (b *protoBatch) reset() { b.records = shrink(b.records) }

func (b *protoBatch) add(r *Record) {
	nanos := uint64(r.Time.UnixNano())
	w := b.record[:0]
	w = protowire.AppendFixed64(protowire.AppendTag(w, 1, protowire.Fixed64Type), nanos)
	b.value = appendBytes(b.value[:0], 1, validBytes(r.Body)) // AnyValue.string_value
	w = appendBytes(w, 5, b.value)
	w = append(append(w, b.model...), b.topology...)
	w = b.attribute(w, 6, "request.id", r.Request)
	w = b.number(w, 6, "token.index", int64(r.Index))
	w = b.attribute(w, 6, "event", r.Event.String())
	w = b.attribute(w, 6, "generation.id", r.Generation)
	for i := range r.attributes {
		if a := &r.attributes[i]; a.Text != "" {
			w = b.attribute(w, 6, valid(a.Key), a.Text)
		} else {
			w = b.double(w, 6, valid(a.Key), a.Number)
		}
	}
	w = protowire.AppendFixed64(protowire.AppendTag(w, 11, protowire.Fixed64Type), nanos)
	b.record = w
	b.records = appendBytes(b.records, 2, w)
}

func (b *protoBatch) size() int { return len(b.records) }

func (b *protoBatch) body() []byte {
	scopeLogs := len(b.scope) + len(b.records)
	resourceLogs := len(b.resource) + protowire.SizeTag(2) + protowire.SizeBytes(scopeLogs)
	w := protowire.AppendTag(shrink(b.request), 1, protowire.BytesType)
	w = append(protowire.AppendVarint(w, uint64(resourceLogs)), b.resource...)
	w = protowire.AppendTag(w, 2, protowire.BytesType)
	w = append(protowire.AppendVarint(w, uint64(scopeLogs)), b.scope...)
	b.request = append(w, b.records...)
	return b.request
}

// attribute appends KeyValue{key, AnyValue{string_value}} as field n.
func (b *protoBatch) attribute(w []byte, n protowire.Number, key, value string) []byte {
	value = valid(value)
	any := protowire.SizeTag(1) + protowire.SizeBytes(len(value))
	w = keyValue(w, n, key, any)
	return appendBytes(w, 1, value)
}

// number appends KeyValue{key, AnyValue{int_value}} as field n.
func (b *protoBatch) number(w []byte, n protowire.Number, key string, value int64) []byte {
	any := protowire.SizeTag(3) + protowire.SizeVarint(uint64(value))
	w = keyValue(w, n, key, any)
	return protowire.AppendVarint(protowire.AppendTag(w, 3, protowire.VarintType), uint64(value))
}

// double appends KeyValue{key, AnyValue{double_value}} as field n.
func (b *protoBatch) double(w []byte, n protowire.Number, key string, value float64) []byte {
	w = keyValue(w, n, key, protowire.SizeTag(4)+protowire.SizeFixed64())
	return protowire.AppendFixed64(protowire.AppendTag(w, 4, protowire.Fixed64Type), math.Float64bits(value))
}

// keyValue appends field n, a KeyValue, up to its AnyValue of any bytes.
func keyValue(w []byte, n protowire.Number, key string, any int) []byte {
	size := protowire.SizeTag(1) + protowire.SizeBytes(len(key)) + protowire.SizeTag(2) + protowire.SizeBytes(any)
	w = protowire.AppendVarint(protowire.AppendTag(w, n, protowire.BytesType), uint64(size))
	w = appendBytes(w, 1, key)
	return protowire.AppendVarint(protowire.AppendTag(w, 2, protowire.BytesType), uint64(any))
}

func appendBytes[T string | []byte](w []byte, n protowire.Number, s T) []byte {
	w = protowire.AppendTag(w, n, protowire.BytesType)
	w = protowire.AppendVarint(w, uint64(len(s)))
	return append(w, s...)
}

// valid is s with U+FFFD for what is not UTF-8, which OTLP refuses.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

func validBytes(b []byte) []byte {
	if utf8.Valid(b) {
		return b
	}
	return bytes.ToValidUTF8(b, []byte("\ufffd"))
}

// shrink empties a buffer for use again, and lets go of one that a long
// answer blew up.
func shrink(b []byte) []byte {
	if cap(b) > 4*bodyLimit {
		return nil
	}
	return b[:0]
}
