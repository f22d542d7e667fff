package otlp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"velo/bench/otlp/series"
)

// exporters are the OpenTelemetry project's own, towards one receiver.
type exporters struct {
	logs    sdklog.Exporter
	metrics sdkmetric.Exporter
	traces  *otlptrace.Exporter
}

func overGRPC(t *testing.T, r *Receiver, token string) exporters {
	t.Helper()
	ctx, at := t.Context(), r.at("gRPC")
	head := map[string]string{"authorization": "Bearer " + token}
	l, err := otlploggrpc.New(ctx, otlploggrpc.WithEndpoint(at), otlploggrpc.WithInsecure(), otlploggrpc.WithCompressor("gzip"), otlploggrpc.WithHeaders(head))
	check(t, err)
	m, err := otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint(at), otlpmetricgrpc.WithInsecure(), otlpmetricgrpc.WithHeaders(head))
	check(t, err)
	tr, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(at), otlptracegrpc.WithInsecure(), otlptracegrpc.WithHeaders(head))
	check(t, err)
	return exporters{l, m, tr}
}

func overHTTP(t *testing.T, r *Receiver, token string) exporters {
	t.Helper()
	ctx, at := t.Context(), r.at("HTTP")
	head := map[string]string{"Authorization": "Bearer " + token}
	l, err := otlploghttp.New(ctx, otlploghttp.WithEndpoint(at), otlploghttp.WithInsecure(), otlploghttp.WithHeaders(head))
	check(t, err)
	m, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpoint(at), otlpmetrichttp.WithInsecure(), otlpmetrichttp.WithCompression(otlpmetrichttp.GzipCompression), otlpmetrichttp.WithHeaders(head))
	check(t, err)
	tr, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpoint(at), otlptracehttp.WithInsecure(), otlptracehttp.WithHeaders(head))
	check(t, err)
	return exporters{l, m, tr}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// send has the SDK make and send a generation, metrics of an engine and a span, and checks what comes
// out of the receiver.
func (e exporters) send(t *testing.T, r *Receiver) {
	t.Helper()
	ctx := t.Context()
	about := resource.NewSchemaless(attribute.String("service.name", "sdk"), attribute.String("service.instance.id", "1"))

	lp := sdklog.NewLoggerProvider(sdklog.WithResource(about), sdklog.WithProcessor(sdklog.NewBatchProcessor(e.logs)))
	logger := lp.Logger("test")
	began := time.Unix(1_700_000_000, 0)
	emit := func(after time.Duration, event string, index int, body string) {
		var rec log.Record
		rec.SetTimestamp(began.Add(after))
		rec.SetEventName(event)
		rec.SetBody(attribute.StringValue(body))
		rec.AddAttributes(attribute.String("request.id", "s"), attribute.String("generation.id", "g"), attribute.Int("token.index", index), attribute.Float64("temperature", 0.5), attribute.BoolSlice("list", []bool{true}))
		logger.Emit(ctx, rec)
	}
	emit(0, "stream_start", 0, `{"choices":[{"delta":{"role":"assistant"}}]}`)
	for i := 1; i <= 20; i++ {
		emit(time.Duration(i)*50*time.Millisecond, "stream_delta", i, `{"choices":[{"delta":{"content":" x"}}]}`)
	}
	emit(1100*time.Millisecond, "stream_end", 21, `{"choices":[{"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":20}}`)
	check(t, lp.Shutdown(ctx))

	reader := sdkmetric.NewPeriodicReader(e.metrics, sdkmetric.WithInterval(time.Hour))
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithResource(about), sdkmetric.WithReader(reader), sdkmetric.WithView(sdkmetric.NewView(
		sdkmetric.Instrument{Name: "vllm.time_to_first_token_seconds"}, sdkmetric.Stream{Aggregation: sdkmetric.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 20}})))
	meter := mp.Meter("test")
	tokens, err := meter.Int64Counter("vllm.generation_tokens_total")
	check(t, err)
	running, err := meter.Int64Gauge("vllm.num_requests_running")
	check(t, err)
	first, err := meter.Float64Histogram("vllm.time_to_first_token_seconds", metric.WithUnit("s"))
	check(t, err)
	for range 2 {
		tokens.Add(ctx, 100)
		running.Record(ctx, 3)
		for i := range 100 {
			first.Record(ctx, 0.1+float64(i)/1000)
		}
		check(t, mp.ForceFlush(ctx))
	}
	defer mp.Shutdown(context.Background()) // sends once more, with nothing new

	tp := sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithBatcher(e.traces))
	_, span := tp.Tracer("test").Start(ctx, "chat", trace.WithAttributes(attribute.String("gen_ai.request.model", "m"),
		attribute.Int("gen_ai.usage.prompt_tokens", 5), attribute.Int("gen_ai.usage.output_tokens", 20), attribute.Float64("gen_ai.latency.time_to_first_token", 0.05),
		attribute.StringSlice("gen_ai.response.finish_reasons", []string{"stop", "length"})))
	span.End()
	check(t, tp.Shutdown(ctx))

	s := r.Snapshot(Query{Lines: &series.Query{Filter: "vllm", Points: true}, Raw: 100, Calls: 10})
	if len(s.Streams) != 1 {
		t.Fatalf("%d streams; counters %+v", len(s.Streams), s.State.Counters)
	}
	if x := s.Streams[0]; x.Service != "sdk/1" || x.Tokens != 20 || x.Finish != "length" || !near(float64(x.TTFT), 0.050) || !near(float64(x.Rate), 20) || x.Lost != 0 {
		t.Errorf("stream is %+v", x)
	}
	if len(s.Engines) != 1 || s.Engines[0].Title != "vLLM" {
		t.Fatalf("engines are %+v", s.Engines)
	}
	for _, g := range s.Engines[0].Gauges {
		switch g.Name {
		case series.Running:
			if g.Value != 3 {
				t.Errorf("running is %v", g.Value)
			}
		case series.TTFT:
			if !near(float64(g.Value), 0.1495) {
				t.Errorf("TTFT is %v", g.Value)
			}
		case series.OutputRate:
			if !(g.Value > 0) {
				t.Errorf("output rate is %v", g.Value)
			}
		}
	}
	for _, l := range s.Lines {
		if l.Name == "vllm.time_to_first_token_seconds" && (l.Kind != "exponential histogram" || !(l.P50.Value > 0.148 && l.P50.Value < 0.152)) {
			t.Errorf("histogram is %+v", l)
		}
	}
	if len(s.Calls) != 1 || s.Calls[0].Prompt != 5 || s.Calls[0].Completion != 20 || s.Calls[0].TTFT != 0.05 || s.Calls[0].Model != "m" ||
		s.Calls[0].Finish != "stop, length" || time.Since(time.Unix(0, s.Calls[0].Began)).Abs() > time.Hour {
		t.Errorf("calls are %+v", s.Calls)
	}
	list := false
	for _, x := range s.Raw {
		list = list || x.Signal == "log" && strings.Contains(x.Attributes, "list=[true]") && strings.Contains(x.Attributes, "temperature=0.5")
	}
	if !list {
		t.Error("attributes of other types are not among the raw records")
	}
}

func TestOpenTelemetrySDK(t *testing.T) {
	for _, k := range []struct {
		name string
		over func(*testing.T, *Receiver, string) exporters
	}{{"gRPC", overGRPC}, {"HTTP", overHTTP}} {
		t.Run(k.name, func(t *testing.T) {
			c := loopback()
			c.Token = "secret"
			r := started(t, c)
			k.over(t, r, "secret").send(t, r)
			if n := r.State().Counters; n.Malformed+n.Unauthorized+n.Busy+n.Dropped+n.Interrupted != 0 {
				t.Errorf("counters are %+v", n)
			}
		})
	}
}

func TestSDKIsToldWhatIsWrong(t *testing.T) {
	c := loopback()
	c.Token = "secret"
	r := started(t, c)
	for name, e := range map[string]exporters{"gRPC": overGRPC(t, r, "wrong"), "HTTP": overHTTP(t, r, "wrong")} {
		err := e.logs.Export(t.Context(), make([]sdklog.Record, 1))
		if err == nil || !strings.Contains(err.Error(), "token") && !strings.Contains(err.Error(), "401") {
			t.Errorf("%s: the exporter says %v", name, err)
		}
	}
	if n := r.State().Counters; n.Unauthorized != 2 || n.Logs != 0 {
		t.Errorf("counters are %+v", n)
	}
}

// TestSDKTriesAgainWhenToldTo: a receiver over its rate answers so that exporters come back, and nothing
// is lost.
func TestSDKTriesAgainWhenToldTo(t *testing.T) {
	for name, over := range map[string]func(*testing.T, *Receiver, string) exporters{"gRPC": overGRPC, "HTTP": overHTTP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := loopback()
			c.Limits.Records = 30
			r := started(t, c)
			e := over(t, r, "")
			post(t, "http://"+r.at("HTTP")+"/v1/logs", "application/json", []byte(logsOf(generation(1e18, "s", "g", 28)...))) // takes all the credit
			tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(e.traces))
			_, span := tp.Tracer("x").Start(context.Background(), "late")
			span.End()
			waitFor(t, "the span", func() bool { return r.State().Counters.Spans == 1 })
		})
	}
}

func TestTLS(t *testing.T) {
	web := httptest.NewUnstartedServer(nil) // for its certificate, which is valid for 127.0.0.1
	web.StartTLS()
	defer web.Close()
	c := loopback()
	c.TLS = &tls.Config{Certificates: web.TLS.Certificates}
	r := started(t, c)
	pool := x509.NewCertPool()
	pool.AddCert(web.Certificate())
	trusted := &tls.Config{RootCAs: pool}
	h, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpoint(r.at("HTTP")), otlptracehttp.WithTLSClientConfig(trusted))
	check(t, err)
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(h))
	_, span := tp.Tracer("x").Start(t.Context(), "y")
	span.End()
	if n := r.State().Counters.Spans; n != 1 {
		t.Errorf("%d spans over HTTPS", n)
	}
	g, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpoint(r.at("gRPC")), otlptracegrpc.WithTLSCredentials(credentialsOf(trusted)))
	check(t, err)
	tp = sdktrace.NewTracerProvider(sdktrace.WithSyncer(g))
	_, span = tp.Tracer("x").Start(t.Context(), "y")
	span.End()
	if n := r.State().Counters.Spans; n != 2 {
		t.Errorf("%d spans after gRPC with TLS", n)
	}
}

// TestTelemetrygen runs the OpenTelemetry Collector's generator against the receiver. TELEMETRYGEN names
// the program.
func TestTelemetrygen(t *testing.T) {
	program := os.Getenv("TELEMETRYGEN")
	if program == "" {
		t.Skip("TELEMETRYGEN names no program")
	}
	r := started(t, loopback())
	for _, kind := range []string{"logs", "metrics", "traces"} {
		for _, transport := range [][]string{{"--otlp-endpoint", r.at("gRPC")}, {"--otlp-http", "--otlp-endpoint", r.at("HTTP")}} {
			count := "--" + kind
			out, err := exec.Command(program, append([]string{kind, "--otlp-insecure", count, "100", "--rate", "0", "--workers", "2"}, transport...)...).CombinedOutput()
			if err != nil {
				t.Fatalf("%s %v: %v\n%s", kind, transport, err, out)
			}
		}
	}
	n := r.State().Counters
	t.Logf("counters are %+v", n)
	if n.Logs != 400 || n.Points < 400 || n.Spans != 800 || n.Malformed+n.Interrupted+n.Unsupported != 0 {
		t.Errorf("counters are %+v", n)
	}
}
