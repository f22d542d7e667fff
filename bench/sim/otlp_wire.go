package sim

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip" // for EmitOptions.Gzip
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"
)

// emitWire sends bodies.
type emitWire struct {
	o      *EmitOptions
	client *http.Client
	conn   *grpc.ClientConn
}

// The gRPC methods. The request messages have the same wire form as LogsData and MetricsData.
const (
	emitLogsMethod    = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
	emitMetricsMethod = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
)

func newEmitWire(o *EmitOptions) (*emitWire, error) {
	w := &emitWire{o: o, client: &http.Client{Timeout: 5 * time.Second}}
	if o.TLS != nil {
		w.client.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: o.TLS}
	}
	target, plain := strings.CutPrefix(o.URL, "grpc://")
	secret := insecure.NewCredentials()
	secure := false
	if !plain {
		if target, secure = strings.CutPrefix(o.URL, "grpcs://"); secure {
			secret = credentials.NewTLS(o.TLS)
		}
	}
	if plain || secure {
		c, err := grpc.NewClient(target, grpc.WithTransportCredentials(secret))
		if err != nil {
			return nil, fmt.Errorf("cannot send to %s: %w", o.URL, err)
		}
		w.conn = c
	}
	return w, nil
}

func (w *emitWire) close() {
	w.client.CloseIdleConnections()
	if w.conn != nil {
		_ = w.conn.Close()
	}
}

func text(s string) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}
}

func attribute(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: text(value)}
}

func (e *emitEngine) resource() *resourcepb.Resource {
	return &resourcepb.Resource{Attributes: []*commonpb.KeyValue{attribute("service.name", "gb10_inference"), attribute("service.instance.id", e.instance)}}
}

// logs sends records and returns how many the receiver says it dropped.
func (w *emitWire) logs(ctx context.Context, e *emitEngine, records []emitRecord) (uint64, error) {
	s := &logspb.ScopeLogs{Scope: &commonpb.InstrumentationScope{Name: "gb10.generation.emitter", Version: "sim"}}
	for i := range records {
		r := &records[i]
		at := uint64(r.at.UnixNano())
		s.LogRecords = append(s.LogRecords, &logspb.LogRecord{TimeUnixNano: at, ObservedTimeUnixNano: at, Body: text(r.body), Attributes: []*commonpb.KeyValue{
			attribute("model.id", e.model), attribute("topology", "single"), attribute("request.id", r.session),
			{Key: "token.index", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: int64(r.index)}}},
			attribute("event", r.event), attribute("generation.id", r.generation)}})
	}
	return w.send(ctx, "/v1/logs", emitLogsMethod, &logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{Resource: e.resource(), ScopeLogs: []*logspb.ScopeLogs{s}}}})
}

// metrics sends the engine's metrics, cumulative since it began.
func (w *emitWire) metrics(ctx context.Context, e *emitEngine) (uint64, error) {
	start, now := uint64(e.began.UnixNano()), uint64(time.Now().UnixNano())
	labels := []*commonpb.KeyValue{attribute("model_name", e.model)}
	gauge := func(name string, v float64) *metricspb.Metric {
		return &metricspb.Metric{Name: "velogb10_" + name, Data: &metricspb.Metric_Gauge{Gauge: &metricspb.Gauge{DataPoints: []*metricspb.NumberDataPoint{
			{Attributes: labels, TimeUnixNano: now, Value: &metricspb.NumberDataPoint_AsDouble{AsDouble: v}}}}}}
	}
	counter := func(name string, v uint64) *metricspb.Metric {
		return &metricspb.Metric{Name: "velogb10_" + name, Data: &metricspb.Metric_Sum{Sum: &metricspb.Sum{IsMonotonic: true,
			AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE, DataPoints: []*metricspb.NumberDataPoint{
				{Attributes: labels, StartTimeUnixNano: start, TimeUnixNano: now, Value: &metricspb.NumberDataPoint_AsInt{AsInt: int64(v)}}}}}}
	}
	const cumulative = metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
	all := []*metricspb.Metric{
		gauge("requests_running", float64(e.running)), gauge("requests_waiting", 0), gauge("kv_pages", 1000), gauge("kv_pages_used", float64(min(1000, 10*e.running))),
		counter("prompt_tokens_total", e.prompt), counter("generation_tokens_total", e.generated),
		{Name: "velogb10_time_to_first_token_seconds", Unit: "s", Data: &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{AggregationTemporality: cumulative,
			DataPoints: []*metricspb.HistogramDataPoint{{Attributes: labels, StartTimeUnixNano: start, TimeUnixNano: now, Count: e.requests, Sum: &e.firstSum,
				ExplicitBounds: emitBounds, BucketCounts: e.first}}}}},
		{Name: "velogb10_scheduler_step_seconds", Unit: "s", Data: &metricspb.Metric_ExponentialHistogram{ExponentialHistogram: &metricspb.ExponentialHistogram{AggregationTemporality: cumulative,
			DataPoints: []*metricspb.ExponentialHistogramDataPoint{{Attributes: labels, StartTimeUnixNano: start, TimeUnixNano: now, Count: e.stepCount, Sum: &e.stepSum,
				Scale: emitScale, Positive: &metricspb.ExponentialHistogramDataPoint_Buckets{Offset: emitOffset, BucketCounts: e.steps}}}}}},
	}
	return w.send(ctx, "/v1/metrics", emitMetricsMethod, &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{Resource: e.resource(),
		ScopeMetrics: []*metricspb.ScopeMetrics{{Scope: &commonpb.InstrumentationScope{Name: "gb10.metrics", Version: "sim"}, Metrics: all}}}}})
}

// send sends one message and returns the records that the receiver rejected.
func (w *emitWire) send(ctx context.Context, path, method string, m proto.Message) (uint64, error) {
	if w.conn != nil {
		var options []grpc.CallOption
		if w.o.Gzip {
			options = append(options, grpc.UseCompressor("gzip"))
		}
		for name, value := range w.o.Headers {
			ctx = metadata.AppendToOutgoingContext(ctx, strings.ToLower(name), value)
		}
		if w.o.Token != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+w.o.Token)
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		answer := &emptypb.Empty{} // its unknown fields are the answer
		if err := w.conn.Invoke(ctx, method, m, answer, options...); err != nil {
			return 0, fmt.Errorf("cannot send to %s: %w", w.o.URL, err)
		}
		return rejected(answer.ProtoReflect().GetUnknown()), nil
	}
	var body []byte
	var err error
	if w.o.Encoding == "json" {
		// What is sent has no ids and no enums but the temporality, so that protojson's form is OTLP's.
		body, err = protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(m)
	} else {
		body, err = proto.Marshal(m)
	}
	if err != nil {
		return 0, err
	}
	return w.post(ctx, path, body)
}

func (w *emitWire) post(ctx context.Context, path string, body []byte) (uint64, error) {
	kind := "application/x-protobuf"
	if w.o.Encoding == "json" {
		kind = "application/json"
	}
	if w.o.Gzip {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(body)
		_ = z.Close()
		body = b.Bytes()
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, w.o.URL+path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	q.Header.Set("Content-Type", kind)
	if w.o.Gzip {
		q.Header.Set("Content-Encoding", "gzip")
	}
	for name, value := range w.o.Headers {
		q.Header.Set(name, value)
	}
	if w.o.Token != "" {
		q.Header.Set("Authorization", "Bearer "+w.o.Token)
	}
	a, err := w.client.Do(q)
	if err != nil {
		return 0, fmt.Errorf("cannot send to %s: %w", w.o.URL, err)
	}
	defer a.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(a.Body, 1<<20))
	if err != nil {
		return 0, fmt.Errorf("cannot read the answer of %s: %w", w.o.URL, err)
	}
	if a.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s refuses: %s: %s", w.o.URL, a.Status, bytes.ToValidUTF8(answer[:min(len(answer), 200)], nil))
	}
	if w.o.Encoding != "json" {
		return rejected(answer), nil
	}
	var r struct {
		PartialSuccess struct {
			Logs   json.Number `json:"rejectedLogRecords"`
			Points json.Number `json:"rejectedDataPoints"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &r) != nil {
		return 0, nil
	}
	a1, _ := r.PartialSuccess.Logs.Int64()
	a2, _ := r.PartialSuccess.Points.Int64()
	return uint64(max(a1, 0) + max(a2, 0)), nil
}

// rejected is the count in the partial_success of an answer.
func rejected(answer []byte) uint64 {
	n, kind, k := protowire.ConsumeTag(answer)
	if n != 1 || kind != protowire.BytesType || k < 0 {
		return 0
	}
	partial, l := protowire.ConsumeBytes(answer[k:])
	if l < 0 {
		return 0
	}
	if n, kind, k = protowire.ConsumeTag(partial); n != 1 || kind != protowire.VarintType || k < 0 {
		return 0
	}
	v, l := protowire.ConsumeVarint(partial[k:])
	if l < 0 {
		return 0
	}
	return v
}

// malformed sends a body that is none, in one of several ways, and returns the receiver's refusal.
func (w *emitWire) malformed(ctx context.Context, random *rand.Rand) error {
	bodies := []string{`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1"`, `{"resourceLogs":7}`, "\xff\xff\xff\xff\xff", strings.Repeat(`{"resourceLogs":[`, 300), "\x0a\x7f"}
	body := bodies[random.IntN(len(bodies))]
	if w.conn != nil {
		m := &emptypb.Empty{}
		m.ProtoReflect().SetUnknown(protowire.AppendTag(nil, 1, protowire.BytesType))
		b := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte{0xff}) // a resource that is cut off
		m.ProtoReflect().SetUnknown(b)
		return w.conn.Invoke(ctx, emitLogsMethod, m, &emptypb.Empty{})
	}
	_, err := w.post(ctx, "/v1/logs", []byte(body))
	return err
}
