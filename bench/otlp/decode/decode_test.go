package decode

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// The messages that are drawn here are written by the protobuf library, which knows nothing of this
// package: as protobuf, and as JSON with the ids in hexadecimal.

func drawValue(t *rapid.T, depth int) *commonpb.AnyValue {
	kinds := 8
	if depth > 3 {
		kinds = 6
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: rapid.String().Draw(t, "string")}}
	case 1:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: rapid.Bool().Draw(t, "bool")}}
	case 2:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: rapid.Int64().Draw(t, "int")}}
	case 3:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: rapid.Float64().Draw(t, "double")}}
	case 4:
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_BytesValue{BytesValue: rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")}}
	case 5:
		return nil
	case 6:
		v := &commonpb.ArrayValue{}
		for range rapid.IntRange(0, 3).Draw(t, "n") {
			x := drawValue(t, depth+1)
			if x == nil {
				x = &commonpb.AnyValue{}
			}
			v.Values = append(v.Values, x)
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: v}}
	}
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: &commonpb.KeyValueList{Values: drawAttributes(t, depth+1)}}}
}

func drawAttributes(t *rapid.T, depth int) []*commonpb.KeyValue {
	var kvs []*commonpb.KeyValue
	for range rapid.IntRange(0, 3).Draw(t, "attributes") {
		kvs = append(kvs, &commonpb.KeyValue{Key: rapid.String().Draw(t, "key"), Value: drawValue(t, depth)})
	}
	return kvs
}

func drawID(t *rapid.T, n int) []byte {
	if rapid.Bool().Draw(t, "no id") {
		return nil
	}
	return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "id")
}

func pbValue(v *commonpb.AnyValue) string {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return fmt.Sprintf("s%q", v.StringValue)
	case *commonpb.AnyValue_BoolValue:
		return fmt.Sprintf("b%v", v.BoolValue)
	case *commonpb.AnyValue_IntValue:
		return fmt.Sprintf("i%d", v.IntValue)
	case *commonpb.AnyValue_DoubleValue:
		return fmt.Sprintf("d%v", v.DoubleValue)
	case *commonpb.AnyValue_BytesValue:
		return fmt.Sprintf("x%x", v.BytesValue)
	case *commonpb.AnyValue_ArrayValue:
		s := "["
		for _, x := range v.ArrayValue.GetValues() {
			s += pbValue(x) + ";"
		}
		return s + "]"
	case *commonpb.AnyValue_KvlistValue:
		return pbAttributes(v.KvlistValue.GetValues())
	}
	return "-"
}

func pbAttributes(kvs []*commonpb.KeyValue) string {
	s := "{"
	for _, kv := range kvs {
		s += fmt.Sprintf("%q=%s;", kv.Key, pbValue(kv.Value))
	}
	return s + "}"
}

func ourValue(v Value) string {
	switch v.Kind {
	case String:
		return fmt.Sprintf("s%q", v.text)
	case Bool:
		return fmt.Sprintf("b%v", v.bits != 0)
	case Int:
		return fmt.Sprintf("i%d", int64(v.bits))
	case Double:
		return fmt.Sprintf("d%v", math.Float64frombits(v.bits))
	case Bytes:
		return fmt.Sprintf("x%x", v.text)
	case List:
		s := "["
		for _, x := range v.List() {
			s += ourValue(x) + ";"
		}
		return s + "]"
	case Map:
		return ourAttributes(v.Map())
	}
	return "-"
}

func ourAttributes(a Attributes) string {
	s := "{"
	for _, kv := range a {
		s += fmt.Sprintf("%q=%s;", kv.Key, ourValue(kv.Value))
	}
	return s + "}"
}

func origin(o *Origin) string {
	return fmt.Sprintf("%s %q %q %s|", ourAttributes(o.Resource), o.ScopeName, o.ScopeVersion, ourAttributes(o.Scope))
}

func pbOrigin(r *resourcepb.Resource, s *commonpb.InstrumentationScope) string {
	return fmt.Sprintf("%s %q %q %s|", pbAttributes(r.GetAttributes()), s.GetName(), s.GetVersion(), pbAttributes(s.GetAttributes()))
}

var ids = regexp.MustCompile(`"(traceId|spanId|parentSpanId)": *"([^"]*)"`)

// otlpJSON is a message as OTLP wants it in JSON.
func otlpJSON(t *rapid.T, m proto.Message) string {
	b, err := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return ids.ReplaceAllStringFunc(string(b), func(s string) string {
		p := ids.FindStringSubmatch(s)
		raw, err := base64.StdEncoding.DecodeString(p[2])
		if err != nil {
			return s // an attribute's text that looks like an id
		}
		return fmt.Sprintf(`"%s":"%s"`, p[1], hex.EncodeToString(raw))
	})
}

func bodies(t *rapid.T, m proto.Message) map[Format]string {
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return map[Format]string{Protobuf: string(b), JSON: otlpJSON(t, m)}
}

func compare(t *rapid.T, f Format, got, want []string, n int, err error) {
	if err != nil || n != len(want) || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("%v: %d records, error %v\n%s\nwant %d\n%s", f, n, err, strings.Join(got, "\n"), len(want), strings.Join(want, "\n"))
	}
}

func TestLogsAreReadAsTheLibraryWroteThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &logspb.LogsData{}
		var want []string
		for range rapid.IntRange(0, 2).Draw(t, "resources") {
			rl := &logspb.ResourceLogs{Resource: &resourcepb.Resource{Attributes: drawAttributes(t, 0)}}
			if rapid.Bool().Draw(t, "no resource") {
				rl.Resource = nil
			}
			sl := &logspb.ScopeLogs{Scope: &commonpb.InstrumentationScope{Name: rapid.String().Draw(t, "scope"), Version: "1", Attributes: drawAttributes(t, 2)}}
			if rapid.Bool().Draw(t, "no scope") {
				sl.Scope = nil
			}
			for range rapid.IntRange(0, 3).Draw(t, "records") {
				l := &logspb.LogRecord{TimeUnixNano: rapid.Uint64().Draw(t, "time"), ObservedTimeUnixNano: rapid.Uint64().Draw(t, "observed"),
					SeverityNumber: logspb.SeverityNumber(rapid.IntRange(0, 24).Draw(t, "severity")), SeverityText: rapid.String().Draw(t, "text"),
					Body: drawValue(t, 0), Attributes: drawAttributes(t, 0), Flags: rapid.Uint32().Draw(t, "flags"), DroppedAttributesCount: 3,
					TraceId: drawID(t, 16), SpanId: drawID(t, 8), EventName: rapid.String().Draw(t, "event")}
				sl.LogRecords = append(sl.LogRecords, l)
				var id [16]byte
				var span [8]byte
				copy(id[:], l.TraceId)
				copy(span[:], l.SpanId)
				want = append(want, pbOrigin(rl.Resource, sl.Scope)+fmt.Sprintf("%d %d %d %q %q %s %s %x %x %d", l.TimeUnixNano, l.ObservedTimeUnixNano,
					l.SeverityNumber, l.SeverityText, l.EventName, pbValue(l.Body), pbAttributes(l.Attributes), id, span, l.Flags))
			}
			rl.ScopeLogs = append(rl.ScopeLogs, sl)
			m.ResourceLogs = append(m.ResourceLogs, rl)
		}
		for f, body := range bodies(t, m) {
			var got []string
			n, err := Logs(body, f, func(o *Origin, l *Log) bool {
				got = append(got, origin(o)+fmt.Sprintf("%d %d %d %q %q %s %s %x %x %d", l.Time, l.Observed, l.Severity, l.SeverityText, l.Event,
					ourValue(l.Body), ourAttributes(l.Attributes), l.TraceID, l.SpanID, l.Flags))
				return true
			})
			compare(t, f, got, want, n, err)
		}
	})
}

func TestSpansAreReadAsTheLibraryWroteThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rs := &tracepb.ResourceSpans{Resource: &resourcepb.Resource{Attributes: drawAttributes(t, 0)}}
		ss := &tracepb.ScopeSpans{}
		var want []string
		for range rapid.IntRange(0, 3).Draw(t, "spans") {
			s := &tracepb.Span{TraceId: drawID(t, 16), SpanId: drawID(t, 8), ParentSpanId: drawID(t, 8), Name: rapid.String().Draw(t, "name"),
				Kind:              tracepb.Span_SpanKind(rapid.IntRange(0, 5).Draw(t, "kind")),
				StartTimeUnixNano: rapid.Uint64().Draw(t, "start"), EndTimeUnixNano: rapid.Uint64().Draw(t, "end"), Attributes: drawAttributes(t, 0),
				Events: []*tracepb.Span_Event{{TimeUnixNano: rapid.Uint64().Draw(t, "at"), Name: "e", Attributes: drawAttributes(t, 2)}},
				Status: &tracepb.Status{Code: tracepb.Status_StatusCode(rapid.IntRange(0, 2).Draw(t, "status")), Message: "m"}}
			ss.Spans = append(ss.Spans, s)
			want = append(want, fmt.Sprintf("%s %q %d %d %d %s %d %s %d", pbOrigin(rs.Resource, nil), s.Name, s.Kind, s.StartTimeUnixNano, s.EndTimeUnixNano,
				pbAttributes(s.Attributes), s.Events[0].TimeUnixNano, pbAttributes(s.Events[0].Attributes), s.Status.Code))
		}
		rs.ScopeSpans = []*tracepb.ScopeSpans{ss}
		for f, body := range bodies(t, &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{rs}}) {
			var got []string
			n, err := Traces(body, f, func(o *Origin, s *Span) bool {
				got = append(got, fmt.Sprintf("%s %q %d %d %d %s %d %s %d", origin(o), s.Name, s.Kind, s.Start, s.End, ourAttributes(s.Attributes),
					s.Events[0].Time, ourAttributes(s.Events[0].Attributes), s.Status))
				return true
			})
			compare(t, f, got, want, n, err)
		}
	})
}

func TestMetricsAreReadAsTheLibraryWroteThem(t *testing.T) {
	optional := func(t *rapid.T) *float64 {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		f := rapid.Float64().Draw(t, "value")
		return &f
	}
	number := func(f *float64) float64 {
		if f == nil {
			return math.NaN()
		}
		return *f
	}
	counts := rapid.SliceOfN(rapid.Uint64(), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		var want []string
		temp := metricspb.AggregationTemporality(rapid.IntRange(0, 2).Draw(t, "temporality"))
		say := func(k MetricKind, attr []*commonpb.KeyValue, rest string) {
			want = append(want, fmt.Sprintf("%v %s %s", k, pbAttributes(attr), rest))
		}
		start, at := rapid.Uint64().Draw(t, "start"), rapid.Uint64().Draw(t, "time")
		a := drawAttributes(t, 1)
		g := &metricspb.NumberDataPoint{Attributes: a, StartTimeUnixNano: start, TimeUnixNano: at, Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: rapid.Float64().Draw(t, "double")}}
		say(Gauge, a, fmt.Sprint(g.GetAsDouble(), start, at, false))
		i := rapid.Int64Range(-1<<50, 1<<50).Draw(t, "int")
		s := &metricspb.NumberDataPoint{Attributes: a, StartTimeUnixNano: start, TimeUnixNano: at, Value: &metricspb.NumberDataPoint_AsInt{AsInt: i}, Flags: 1}
		say(Sum, a, fmt.Sprint(float64(i), start, at, true))
		h := &metricspb.HistogramDataPoint{Attributes: a, Count: rapid.Uint64().Draw(t, "count"), Sum: optional(t), Min: optional(t), Max: optional(t),
			BucketCounts: counts.Draw(t, "buckets"), ExplicitBounds: rapid.SliceOfN(rapid.Float64(), 0, 3).Draw(t, "bounds")}
		say(Histogram, a, fmt.Sprint(h.Count, number(h.Sum), number(h.Min), number(h.Max), h.BucketCounts, h.ExplicitBounds))
		e := &metricspb.ExponentialHistogramDataPoint{Attributes: a, Count: 4, Sum: optional(t), Scale: rapid.Int32().Draw(t, "scale"), ZeroCount: 9,
			ZeroThreshold: 0.5, Positive: &metricspb.ExponentialHistogramDataPoint_Buckets{Offset: rapid.Int32().Draw(t, "offset"), BucketCounts: counts.Draw(t, "positive")},
			Negative: &metricspb.ExponentialHistogramDataPoint_Buckets{Offset: -3, BucketCounts: counts.Draw(t, "negative")}}
		say(Exponential, a, fmt.Sprint(e.Count, number(e.Sum), e.Scale, e.ZeroCount, e.ZeroThreshold, e.Positive.Offset, e.Positive.BucketCounts, e.Negative.Offset, e.Negative.BucketCounts))
		y := &metricspb.SummaryDataPoint{Attributes: a, Count: 3, Sum: rapid.Float64().Draw(t, "sum"), QuantileValues: []*metricspb.SummaryDataPoint_ValueAtQuantile{{Quantile: 0.5, Value: rapid.Float64().Draw(t, "median")}}}
		say(Summary, a, fmt.Sprint(y.Count, y.Sum, y.QuantileValues[0].Quantile, y.QuantileValues[0].Value))
		m := &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{ScopeMetrics: []*metricspb.ScopeMetrics{{Metrics: []*metricspb.Metric{
			{Name: "g", Unit: "s", Data: &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: []*metricspb.NumberDataPoint{g}}}},
			{Name: "s", Data: &metricspb.Metric_Sum{Sum: &metricspb.Sum{DataPoints: []*metricspb.NumberDataPoint{s}, IsMonotonic: true, AggregationTemporality: temp}}},
			{Name: "h", Data: &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{DataPoints: []*metricspb.HistogramDataPoint{h}, AggregationTemporality: temp}}},
			{Name: "e", Data: &metricspb.Metric_ExponentialHistogram{ExponentialHistogram: &metricspb.ExponentialHistogram{DataPoints: []*metricspb.ExponentialHistogramDataPoint{e}, AggregationTemporality: temp}}},
			{Name: "y", Data: &metricspb.Metric_Summary{Summary: &metricspb.Summary{DataPoints: []*metricspb.SummaryDataPoint{y}}}},
		}}}}}}
		for f, body := range bodies(t, m) {
			var got []string
			n, err := Metrics(body, f, func(_ *Origin, p *Point) bool {
				rest := ""
				switch p.Kind {
				case Gauge, Sum:
					rest = fmt.Sprint(p.Value, p.Start, p.Time, p.Absent)
					if p.Kind == Sum && (p.Temporality != Temporality(temp) || !p.Monotonic || p.Name != "s") || p.Kind == Gauge && p.Unit != "s" {
						t.Fatalf("%v: metric is %+v", f, p)
					}
				case Histogram:
					rest = fmt.Sprint(p.Count, p.Sum, p.Min, p.Max, p.Buckets, p.Bounds)
				case Exponential:
					rest = fmt.Sprint(p.Count, p.Sum, p.Scale, p.Zero, p.ZeroThreshold, p.Positive.Offset, p.Positive.Counts, p.Negative.Offset, p.Negative.Counts)
				case Summary:
					rest = fmt.Sprint(p.Count, p.Sum, p.Quantiles[0].Q, p.Quantiles[0].Value)
				}
				got = append(got, fmt.Sprintf("%v %s %s", p.Kind, ourAttributes(p.Attributes), rest))
				return true
			})
			compare(t, f, got, want, n, err)
		}
	})
}

func TestHeadsMayStandBehindTheirRecords(t *testing.T) {
	body := `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"x"},"timeUnixNano":5}],"scope":{"name":"late"}}],
		"unknown":{"a":[1]},"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"s"}}]}}]}`
	n, err := Logs(body, JSON, func(o *Origin, l *Log) bool {
		if name, _ := o.Service(); name != "s" || o.ScopeName != "late" || l.Time != 5 || l.Body.String() != "x" {
			t.Errorf("read %+v %+v", o, l)
		}
		return true
	})
	if n != 1 || err != nil {
		t.Fatal(n, err)
	}
}

func TestWhatOtherEmittersWriteIsTaken(t *testing.T) {
	body := `{"resource_logs":[{"resource":null,"scope_logs":[{"scope":{},"log_records":[{"time_unix_nano":"7","severityNumber":"SEVERITY_NUMBER_INFO",
		"attributes":{"a":1,"b":2.5,"c":"x","d":[true,null],"e":{"f":"g"}},"body":{"kvlistValue":{"fields":[{"key":"k","value":{"stringValue":"v"}}]}},
		"traceId":"0102030405060708090A0b0c0d0e0f10"}]}]}]}`
	n, err := Logs(body, JSON, func(_ *Origin, l *Log) bool {
		got := ourAttributes(l.Attributes) + ourValue(l.Body) + fmt.Sprint(l.Time, l.TraceID[15])
		want := `{"a"=i1;"b"=d2.5;"c"=s"x";"d"=[btrue;-;];"e"={"f"=s"g";};}{"k"=s"v";}7 16`
		if got != want {
			t.Errorf("read %s\nwant %s", got, want)
		}
		return true
	})
	if n != 1 || err != nil {
		t.Fatal(n, err)
	}
}

func TestMalformedBodiesAreRefused(t *testing.T) {
	for _, c := range []struct {
		f    Format
		body string
	}{
		{JSON, `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{]}]}]}`},
		{JSON, `{"resourceLogs":{}}`}, {JSON, `[]x`}, {JSON, ``}, {JSON, `{"resourceLogs":[{"resource":{},"scopeLogs":[{"scope":{},"logRecords":[{"traceId":"zz"}]}]}]}`},
		{JSON, `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":-1}]}]}]}`},
		{JSON, `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"bytesValue":"!"}}]}]}]}`},
		{JSON, `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":` + strings.Repeat(`{"arrayValue":{"values":[`, 45) + `{}` + strings.Repeat(`]}}`, 45) + `}]}]}]}`},
		{Protobuf, "\x0a\x05\x12"}, {Protobuf, "\xff"}, {Protobuf, "\x00"}, {Protobuf, "\x0c"}, {Protobuf, "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"},
		{Protobuf, "{\"resourceLogs\":[]}"},
	} {
		if n, err := Logs(c.body, c.f, nil); err == nil {
			t.Errorf("%v %q: taken, %d records", c.f, c.body, n)
		}
	}
}

// TestSmallBodiesStaySmall: two bytes of protobuf are an attribute; millions of them in one record are
// refused, and millions of empty records are walked without being kept.
func TestSmallBodiesStaySmall(t *testing.T) {
	wrap := func(s string) string { return lengthed(0x0a, lengthed(0x12, s)) }
	many := wrap(lengthed(0x12, strings.Repeat("\x32\x00", mostValues+1)))
	if _, err := Logs(many, Protobuf, nil); err == nil {
		t.Error("a record with too many attributes was taken")
	}
	records := wrap(strings.Repeat("\x12\x00", 1_000_000))
	allocs := testing.AllocsPerRun(1, func() {
		if n, err := Logs(records, Protobuf, func(*Origin, *Log) bool { return true }); n != 1_000_000 || err != nil {
			t.Fatal(n, err)
		}
	})
	if allocs > 100 {
		t.Errorf("%v allocations for a million empty records", allocs)
	}
	n, _ := Logs(records, Protobuf, func(*Origin, *Log) bool { return false })
	if n != 1 {
		t.Errorf("the walk went on to %d records after it was stopped", n)
	}
}

func lengthed(tag byte, s string) string {
	n := len(s)
	b := []byte{tag}
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return string(append(b, byte(n))) + s
}

func FuzzBodies(f *testing.F) {
	for _, s := range []string{`{"resourceLogs":[{"resource":{"attributes":[{"key":"a","value":{"intValue":"5"}}]},"scopeLogs":[{"scope":{},"logRecords":[{"body":{"stringValue":"x"}}]}]}]}`,
		`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","exponentialHistogram":{"aggregationTemporality":2,"dataPoints":[{"count":"3","scale":2,"positive":{"offset":1,"bucketCounts":["1","2"]}}]}}]}]}]}`,
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"","name":"n","events":[{}],"status":{"code":2}}]}]}]}`} {
		f.Add([]byte(s))
	}
	b, _ := proto.Marshal(&logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{ScopeLogs: []*logspb.ScopeLogs{{LogRecords: []*logspb.LogRecord{{TimeUnixNano: 4, EventName: "e"}}}}}}})
	f.Add(b)
	m, _ := proto.Marshal(&metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{ScopeMetrics: []*metricspb.ScopeMetrics{{Metrics: []*metricspb.Metric{{Name: "s",
		Data: &metricspb.Metric_Sum{Sum: &metricspb.Sum{DataPoints: []*metricspb.NumberDataPoint{{TimeUnixNano: 3}}}}}}}}}}})
	f.Add(m)
	f.Fuzz(func(t *testing.T, b []byte) {
		body := string(b)
		for _, format := range []Format{Protobuf, JSON} {
			total := 0
			for _, read := range []func(v bool) (int, error){
				func(v bool) (int, error) {
					if !v {
						return Logs(body, format, nil)
					}
					return Logs(body, format, func(o *Origin, l *Log) bool {
						total += len(l.Body.String()) + len(o.Find(l.Attributes, "a"))
						return true
					})
				},
				func(v bool) (int, error) {
					if !v {
						return Metrics(body, format, nil)
					}
					return Metrics(body, format, func(_ *Origin, p *Point) bool { total += len(p.Name) + len(p.Buckets); return true })
				},
				func(v bool) (int, error) {
					if !v {
						return Traces(body, format, nil)
					}
					return Traces(body, format, func(_ *Origin, s *Span) bool { total += len(s.Name) + len(s.Events); return true })
				},
			} {
				n1, err1 := read(false)
				n2, err2 := read(true)
				if n1 != n2 || (err1 == nil) != (err2 == nil) {
					t.Fatalf("checked: %d, %v; visited: %d, %v", n1, err1, n2, err2)
				}
			}
		}
		var l logspb.LogsData
		_, err := Logs(body, Protobuf, nil)
		if proto.Unmarshal(b, &l) == nil && err != nil && sane(&l) {
			t.Fatalf("the library reads it, this package does not: %v", err)
		}
	})
}

// sane tells whether a message keeps the rules that go beyond protobuf.
func sane(l *logspb.LogsData) bool {
	for _, r := range l.ResourceLogs {
		for _, s := range r.ScopeLogs {
			for _, x := range s.LogRecords {
				if n := len(x.TraceId); n != 0 && n != 16 {
					return false
				}
				if n := len(x.SpanId); n != 0 && n != 8 {
					return false
				}
			}
		}
	}
	return true
}

func BenchmarkLogs(b *testing.B) {
	var m logspb.LogsData
	sl := &logspb.ScopeLogs{Scope: &commonpb.InstrumentationScope{Name: "gb10.generation.emitter"}}
	text := func(k, v string) *commonpb.KeyValue {
		return &commonpb.KeyValue{Key: k, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v}}}
	}
	const records = 512
	for i := range records {
		sl.LogRecords = append(sl.LogRecords, &logspb.LogRecord{TimeUnixNano: 1_800_000_000_000_000_000 + uint64(i), ObservedTimeUnixNano: 1_800_000_000_000_000_000,
			Body:       &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: `{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}`}},
			Attributes: []*commonpb.KeyValue{text("model.id", "qwen"), text("topology", "single"), text("request.id", "sess-1"), text("token.index", "3"), text("event", "stream_delta"), text("generation.id", "gen-1")}})
	}
	m.ResourceLogs = []*logspb.ResourceLogs{{Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{text("service.name", "gb10_inference")}}, ScopeLogs: []*logspb.ScopeLogs{sl}}}
	wire, _ := proto.Marshal(&m)
	js, _ := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(&m)
	for f, body := range map[Format]string{Protobuf: string(wire), JSON: string(js)} {
		b.Run(f.String(), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for range b.N {
				if n, err := Logs(body, f, func(*Origin, *Log) bool { return true }); n != records || err != nil {
					b.Fatal(n, err)
				}
			}
			b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
