// Package decode reads the bodies of OTLP requests, protobuf and JSON alike, record by record: it
// never builds the whole message, so that a small body cannot become a large structure in memory. Logs,
// Metrics and Traces call a function for each record, data point or span.
//
// OTLP/JSON is not protojson: trace and span ids are hexadecimal, enums whole numbers, 64-bit integers
// numbers or strings, and unknown fields are ignored. Names in snake_case, attributes as a plain object
// and enums by name are taken too, since some emitters send them.
//
// The text of what is read belongs to the body: who keeps a record must Clone its strings, or the whole
// body stays in memory. A record is valid during the call only.
package decode

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Format is the encoding of a body.
type Format uint8

// The encodings.
const (
	Protobuf Format = iota
	JSON
)

func (f Format) String() string {
	if f == JSON {
		return "JSON"
	}
	return "protobuf"
}

// Kind is the type of an attribute's value.
type Kind uint8

// The types of OTLP's AnyValue.
const (
	Empty Kind = iota
	String
	Bool
	Int
	Double
	Bytes
	List
	Map
)

// Short is at most the first n bytes of a text, as valid UTF-8 and in memory of its own: what is kept of
// a body must neither hold all of it nor be as long as a sender likes.
func Short(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	if utf8.ValidString(s) { // many times faster than mending, which nearly nothing needs
		return strings.Clone(s)
	}
	return strings.Clone(strings.ToValidUTF8(s, "\uFFFD"))
}

// Value is an AnyValue of any type.
type Value struct {
	Kind Kind
	text string // String, Bytes
	bits uint64 // Bool, Int, Double
	nest *nest  // List, Map
}

type nest struct {
	list []Value
	attr Attributes
}

// Text makes a value that is a string.
func Text(s string) Value { return Value{Kind: String, text: s} }

// String is the value as text: a string as it is, numbers in decimal, bytes in base64, lists and maps
// like JSON.
func (v Value) String() string {
	switch v.Kind {
	case String:
		return v.text
	case Empty:
		return ""
	}
	var b strings.Builder
	v.write(&b, false)
	return b.String()
}

func (v Value) write(b *strings.Builder, quoted bool) {
	switch v.Kind {
	case String:
		if quoted {
			writeQuoted(b, v.text)
		} else {
			b.WriteString(v.text)
		}
	case Bool:
		b.WriteString(strconv.FormatBool(v.bits != 0))
	case Int:
		b.WriteString(strconv.FormatInt(int64(v.bits), 10))
	case Double:
		f := math.Float64frombits(v.bits)
		if quoted && (math.IsNaN(f) || math.IsInf(f, 0)) {
			b.WriteString("null")
			return
		}
		b.WriteString(strconv.FormatFloat(f, 'g', -1, 64))
	case Bytes:
		if t := base64.StdEncoding.EncodeToString([]byte(v.text)); quoted {
			writeQuoted(b, t)
		} else {
			b.WriteString(t)
		}
	case List:
		b.WriteByte('[')
		for i, x := range v.nest.list {
			if i > 0 {
				b.WriteByte(',')
			}
			x.write(b, true)
		}
		b.WriteByte(']')
	case Map:
		b.WriteByte('{')
		for i, x := range v.nest.attr {
			if i > 0 {
				b.WriteByte(',')
			}
			writeQuoted(b, x.Key)
			b.WriteByte(':')
			x.Value.write(b, true)
		}
		b.WriteByte('}')
	default:
		b.WriteString("null")
	}
}

// writeQuoted writes a JSON string.
func writeQuoted(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ':
			fmt.Fprintf(b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}

// Int is the value as a whole number: an Int, a Double without fraction, or a string of digits.
func (v Value) Int() (int64, bool) {
	switch v.Kind {
	case Int:
		return int64(v.bits), true
	case Double:
		f := math.Float64frombits(v.bits)
		return int64(f), f == math.Trunc(f) && math.Abs(f) < 1<<62
	case String:
		n, err := strconv.ParseInt(v.text, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// Float is the value as a number.
func (v Value) Float() (float64, bool) {
	switch v.Kind {
	case Int:
		return float64(int64(v.bits)), true
	case Double:
		return math.Float64frombits(v.bits), true
	case String:
		f, err := strconv.ParseFloat(v.text, 64)
		return f, err == nil
	}
	return 0, false
}

// List is the values of a List, nil for anything else.
func (v Value) List() []Value {
	if v.Kind != List {
		return nil
	}
	return v.nest.list
}

// Map is the members of a Map, nil for anything else.
func (v Value) Map() Attributes {
	if v.Kind != Map {
		return nil
	}
	return v.nest.attr
}

// Attribute is a name and its value.
type Attribute struct {
	Key   string
	Value Value
}

// Attributes are names and values in the order in which they came.
type Attributes []Attribute

// Get finds a value.
func (a Attributes) Get(key string) (Value, bool) {
	for i := range a {
		if a[i].Key == key {
			return a[i].Value, true
		}
	}
	return Value{}, false
}

// Text is the text of the first of some names that is there, "" if none is.
func (a Attributes) Text(keys ...string) string {
	for _, k := range keys {
		if v, ok := a.Get(k); ok && v.Kind != Empty {
			return v.String()
		}
	}
	return ""
}

// Origin is where records come from. All records of one scope share one Origin, which is never changed
// and never used again.
type Origin struct {
	Resource     Attributes
	Scope        Attributes
	ScopeName    string
	ScopeVersion string
}

// Service is the name and the instance of the service, "" where they are not given.
func (o *Origin) Service() (name, instance string) {
	return o.Resource.Text("service.name"), o.Resource.Text("service.instance.id", "host.name")
}

// Find looks a name up in a record's attributes, then in its scope's, then in its resource's.
func (o *Origin) Find(record Attributes, keys ...string) string {
	for _, a := range []Attributes{record, o.Scope, o.Resource} {
		if t := a.Text(keys...); t != "" {
			return t
		}
	}
	return ""
}

// Log is one log record. Times are nanoseconds since 1970 on the emitter's clock, 0 = not given.
type Log struct {
	Time, Observed uint64
	Severity       int32
	SeverityText   string
	Event          string // event_name
	Body           Value
	Attributes     Attributes
	TraceID        [16]byte
	SpanID         [8]byte
	Flags          uint32
}

// MetricKind is the kind of a metric.
type MetricKind uint8

// The kinds of metric.
const (
	Gauge MetricKind = iota
	Sum
	Histogram
	Exponential
	Summary
)

func (k MetricKind) String() string {
	return [...]string{"gauge", "sum", "histogram", "exponential histogram", "summary"}[min(k, Summary)]
}

// Temporality says what a sum or a histogram counts from.
type Temporality uint8

// The temporalities.
const (
	Unspecified Temporality = iota
	Delta                   // since the point before
	Cumulative              // since a start that stays
)

// Point is one data point of a metric.
type Point struct {
	Name, Unit, Description string
	Kind                    MetricKind
	Temporality             Temporality
	Monotonic               bool // of a Sum
	Attributes              Attributes
	Start, Time             uint64  // nanoseconds since 1970 on the emitter's clock, 0 = not given
	Absent                  bool    // the point says that there is no value
	Value                   float64 // of a Gauge or a Sum

	Count    uint64  // of histograms and summaries
	Sum      float64 // NaN = not given
	Min, Max float64 // NaN = not given

	Bounds  []float64 // Histogram: upper bounds, rising
	Buckets []uint64  // Histogram: len(Bounds)+1 counts, or none

	Scale              int32 // Exponential: bucket i holds (base^i, base^(i+1)], base = 2^(2^−Scale)
	Zero               uint64
	ZeroThreshold      float64
	Positive, Negative Buckets

	Quantiles []Quantile // Summary
}

// Buckets are the counts of an exponential histogram from index Offset on.
type Buckets struct {
	Offset int32
	Counts []uint64
}

// Quantile is one quantile of a summary.
type Quantile struct{ Q, Value float64 }

// Span is one span of a trace.
type Span struct {
	TraceID      [16]byte
	SpanID       [8]byte
	Parent       [8]byte
	Name         string
	Kind         int32
	Start, End   uint64 // nanoseconds since 1970 on the emitter's clock
	Attributes   Attributes
	Events       []SpanEvent
	Status       int32 // 0 unset, 1 ok, 2 error
	StatusDetail string
}

// SpanEvent is something that happened during a span.
type SpanEvent struct {
	Time       uint64
	Name       string
	Attributes Attributes
}

// Limits of one record: a body from outside must not ask for any amount of memory.
const (
	mostValues  = 20_000 // attributes and list items, all levels together
	mostNesting = 40     // lists and maps in each other
	mostBuckets = 20_000
)

// reader has what both formats share: the record on its way and its bounds.
type reader struct {
	count  int
	values int
	log    Log
	point  Point
	span   Span
}

func (r *reader) more(n int) error {
	if r.values += n; r.values > mostValues {
		return fmt.Errorf("record %d has more than %d attributes and list items", r.count, mostValues)
	}
	return nil
}

func (r *reader) resetLog() {
	r.values = 0
	r.log = Log{Attributes: r.log.Attributes[:0]}
}

// resetPoint clears what belongs to a point and keeps what belongs to its metric.
func (r *reader) resetPoint() {
	r.values = 0
	p := &r.point
	*p = Point{Name: p.Name, Unit: p.Unit, Description: p.Description, Kind: p.Kind, Temporality: p.Temporality,
		Monotonic: p.Monotonic, Attributes: p.Attributes[:0], Sum: math.NaN(), Min: math.NaN(), Max: math.NaN(),
		Bounds: p.Bounds[:0], Buckets: p.Buckets[:0], Quantiles: p.Quantiles[:0],
		Positive: Buckets{Counts: p.Positive.Counts[:0]}, Negative: Buckets{Counts: p.Negative.Counts[:0]}}
	if p.Kind == Summary { // whose sum is not optional
		p.Sum = 0
	}
}

func (r *reader) resetSpan() {
	r.values = 0
	r.span = Span{Attributes: r.span.Attributes[:0], Events: r.span.Events[:0]}
}

// MapOf makes a value that is a map.
func MapOf(a ...Attribute) Value { return Value{Kind: Map, nest: &nest{attr: a}} }
