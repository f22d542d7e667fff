package emit

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	logscollector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metricsdata "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracedata "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"
)

// JSON and protobuf, both written by hand, are the same request to OTLP's own
// readers, whatever is in the records.
func TestBothEncodingsSayTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "raw")) })
		text := rapid.OneOf(rapid.String(), raw)
		o := Options{ModelID: text.Draw(t, "model"), Topology: text.Draw(t, "topology"), Version: text.Draw(t, "version")}
		j, p := newBatch(o, false), newBatch(o, true)
		for range rapid.IntRange(1, 3).Draw(t, "requests") {
			records := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Record {
				return Record{Time: time.Unix(0, rapid.Int64Range(0, math.MaxInt64).Draw(t, "time")), Request: text.Draw(t, "request"),
					Generation: text.Draw(t, "generation"), Index: rapid.Int().Draw(t, "index"),
					Event: Event(rapid.IntRange(0, 3).Draw(t, "event")), Body: []byte(text.Draw(t, "body"))}
			}), 1, 5).Draw(t, "records")
			j.reset()
			p.reset()
			for i := range records {
				j.add(&records[i])
				p.add(&records[i])
			}
			var fromJSON, fromProto logscollector.ExportLogsServiceRequest
			body := j.body()
			if err := protojson.Unmarshal(body, &fromJSON); err != nil || !json.Valid(body) {
				t.Fatalf("JSON: %v in %s", err, body)
			}
			if err := proto.Unmarshal(p.body(), &fromProto); err != nil {
				t.Fatalf("protobuf: %v", err)
			}
			if !proto.Equal(&fromJSON, &fromProto) {
				t.Fatalf("JSON      %v\nprotobuf %v", &fromJSON, &fromProto)
			}
			for i, l := range fromProto.ResourceLogs[0].ScopeLogs[0].LogRecords {
				r := records[i]
				if l.TimeUnixNano != uint64(r.Time.UnixNano()) || l.ObservedTimeUnixNano != l.TimeUnixNano ||
					attribute(l.Attributes, "token.index").GetIntValue() != int64(r.Index) || attribute(l.Attributes, "event").GetStringValue() != r.Event.String() ||
					l.Body.GetStringValue() != strings.ToValidUTF8(string(r.Body), "\ufffd") {
					t.Fatalf("%v of %+v", l, r)
				}
			}
		}
	})
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: "velo_rss_bytes", Help: "Memory.", ConstLabels: prometheus.Labels{"a": "b"}})
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "velo_requests_total"}, []string{"finish"})
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "velo_duration_seconds", Buckets: []float64{1, 2, 5}})
	summary := prometheus.NewSummary(prometheus.SummaryOpts{Name: "velo_pause_seconds", Objectives: map[float64]float64{0.5: 0.01}})
	untyped := prometheus.NewUntypedFunc(prometheus.UntypedOpts{Name: "velo_rate_tokens_per_second"}, func() float64 { return 7 })
	registry.MustRegister(gauge, counter, histogram, summary, untyped)
	gauge.Set(-3.5)
	counter.WithLabelValues("stop").Add(4)
	counter.WithLabelValues("length").Inc()
	for _, v := range []float64{0.5, 1, 1.5, 4, 100, 200} {
		histogram.Observe(v)
		summary.Observe(v)
	}
	for _, scheme := range []string{"json", "protobuf", "grpc"} {
		t.Run(scheme, func(t *testing.T) {
			r := &receiver{}
			o := Options{Metrics: true, Gatherer: registry, MetricsInterval: 5 * time.Millisecond, ModelID: "m", Version: "1"}
			switch scheme {
			case "grpc":
				o.Endpoint = "grpc://" + serveGRPC(t, &grpcLogs{receiver: r})
			default:
				o.Endpoint, o.Protobuf = serveHTTP(t, r), scheme == "protobuf"
			}
			begin := time.Now()
			e := started(t, o)
			until(t, "metrics are sent twice", func() bool { return e.Status().MetricsSent >= 2 })
			if err := closed(t, e); err != nil {
				t.Error(err)
			}
			r.check(t)
			rm := r.metrics[0].ResourceMetrics[0]
			if got := attribute(rm.Resource.Attributes, "service.name").GetStringValue(); got != "gb10_inference" {
				t.Errorf("service %q", got)
			}
			if len(attribute(rm.Resource.Attributes, "service.instance.id").GetStringValue()) != 32 {
				t.Error("no instance")
			}
			all := map[string]*metricsdata.Metric{}
			for _, m := range rm.ScopeMetrics[0].Metrics {
				all[m.Name] = m
			}
			g := all["velo_rss_bytes"].GetGauge().DataPoints[0]
			if g.GetAsDouble() != -3.5 || attribute(g.Attributes, "a").GetStringValue() != "b" || all["velo_rss_bytes"].Unit != "By" || all["velo_rss_bytes"].Description != "Memory." {
				t.Errorf("%v", all["velo_rss_bytes"])
			}
			if now := time.Unix(0, int64(g.TimeUnixNano)); now.Before(begin) || now.After(time.Now()) {
				t.Errorf("time %v", now)
			}
			sum := all["velo_requests_total"].GetSum()
			const cumulative = metricsdata.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE
			if !sum.IsMonotonic || sum.AggregationTemporality != cumulative || len(sum.DataPoints) != 2 {
				t.Errorf("%v", sum)
			}
			for _, p := range sum.DataPoints {
				want := map[string]float64{"stop": 4, "length": 1}[attribute(p.Attributes, "finish").GetStringValue()]
				if p.GetAsDouble() != want || p.StartTimeUnixNano == 0 || p.StartTimeUnixNano > p.TimeUnixNano {
					t.Errorf("%v", p)
				}
			}
			m := all["velo_duration_seconds"]
			h := m.GetHistogram().DataPoints[0]
			if fmt.Sprint(h.ExplicitBounds, h.BucketCounts, h.Count, h.GetSum()) != "[1 2 5] [2 1 1 2] 6 307" || m.Unit != "s" ||
				m.GetHistogram().AggregationTemporality != cumulative || h.StartTimeUnixNano == 0 {
				t.Errorf("%v", m)
			}
			s := all["velo_pause_seconds"].GetSummary().DataPoints[0]
			if s.Count != 6 || s.Sum != 307 || len(s.QuantileValues) != 1 || s.QuantileValues[0].Quantile != 0.5 {
				t.Errorf("%v", s)
			}
			if u := all["velo_rate_tokens_per_second"]; u.GetGauge().DataPoints[0].GetAsDouble() != 7 || u.Unit != "{token}/s" {
				t.Errorf("%v", u)
			}
		})
	}
}

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func aSpan() Span {
	begin := time.Unix(1790000000, 0)
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	return Span{Name: "chat", Request: "sess-1", Generation: "gen-1", Response: "chatcmpl-1", Model: "qwen", Stream: true, Begin: begin, First: at(250), End: at(900),
		PromptTokens: 100, CachedTokens: 60, Generated: 3, Finish: "stop", Tokens: []time.Time{at(250), at(500), at(900)}}
}

func TestTraces(t *testing.T) {
	for _, scheme := range []string{"json", "protobuf", "grpc"} {
		t.Run(scheme, func(t *testing.T) {
			r := &receiver{}
			o := Options{Traces: true, Interval: time.Hour, Topology: "tp2"}
			switch scheme {
			case "grpc":
				o.Endpoint = "grpc://" + serveGRPC(t, &grpcLogs{receiver: r})
			default:
				o.Endpoint, o.Protobuf = serveHTTP(t, r), scheme == "protobuf"
			}
			e := started(t, o)
			child := aSpan()
			child.Traceparent, child.Tracestate = parent, "vendor=1"
			unwanted := child
			unwanted.Traceparent = strings.TrimSuffix(parent, "01") + "00"
			failed := aSpan()
			failed.Error, failed.Finish, failed.First, failed.Tokens = "the model failed", "error", time.Time{}, nil
			long := aSpan()
			long.Tokens = make([]time.Time, spanEvents+5)
			for _, s := range []Span{aSpan(), child, unwanted, failed, long} {
				e.Span(s)
			}
			if err := closed(t, e); err != nil {
				t.Error(err)
			}
			var spans []*tracedata.Span
			for i, m := range r.traces {
				if scheme == "json" { // the ids are hex; protojson took them for base64
					body := string(r.bodies[i])
					if i == 0 && !strings.Contains(strings.ReplaceAll(body, " ", ""), `"traceId":"0af7651916cd43dd8448eb211c80319c"`) {
						t.Errorf("no hex id in %.300s", body)
					}
				}
				spans = append(spans, m.ResourceSpans[0].ScopeSpans[0].Spans...)
			}
			if len(spans) != 4 {
				t.Fatalf("%d spans", len(spans))
			}
			s := spans[0]
			if s.Name != "chat qwen" || s.Kind != tracedata.Span_SPAN_KIND_SERVER || s.EndTimeUnixNano-s.StartTimeUnixNano != 9e8 || len(s.ParentSpanId) != 0 || s.Status != nil {
				t.Errorf("%v", s)
			}
			want := `gen_ai.operation.name=chat gen_ai.provider.name=velo gen_ai.request.model=qwen gen_ai.response.model=qwen gen_ai.request.stream=true ` +
				`gen_ai.usage.input_tokens=100 gen_ai.usage.cache_read.input_tokens=60 gen_ai.usage.output_tokens=3 gen_ai.response.finish_reasons=[stop] ` +
				`gen_ai.response.id=chatcmpl-1 gen_ai.conversation.id=sess-1 generation.id=gen-1 topology=tp2 gen_ai.response.time_to_first_chunk=0.25`
			if got := flat(s.Attributes); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if len(s.Events) != 3 || s.Events[1].Name != "token" || s.Events[1].TimeUnixNano-s.StartTimeUnixNano != 5e8 {
				t.Errorf("%v", s.Events)
			}
			if c := spans[1]; c.TraceState != "vendor=1" || c.Flags != 0x301 || scheme != "json" && (fmt.Sprintf("%x", c.TraceId) != parent[3:35] || fmt.Sprintf("%x", c.ParentSpanId) != parent[36:52]) {
				t.Errorf("%v", c)
			}
			if f := spans[2]; f.Status.GetCode() != tracedata.Status_STATUS_CODE_ERROR || f.Status.Message != "the model failed" ||
				attribute(f.Attributes, "error.type").GetStringValue() != "_OTHER" || attribute(f.Attributes, "gen_ai.response.time_to_first_chunk") != nil {
				t.Errorf("%v", f)
			}
			if l := spans[3]; len(l.Events) != spanEvents || l.DroppedEventsCount != 5 {
				t.Errorf("%d events, %d dropped", len(l.Events), l.DroppedEventsCount)
			}
			if st := e.Status(); st.SpansSent != 4 || st.SpansDropped+st.SpansFailed != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

func flat(all []*common.KeyValue) string {
	var parts []string
	for _, a := range all {
		v := a.Value
		var text string
		switch v.Value.(type) {
		case *common.AnyValue_StringValue:
			text = v.GetStringValue()
		case *common.AnyValue_IntValue:
			text = fmt.Sprint(v.GetIntValue())
		case *common.AnyValue_DoubleValue:
			text = fmt.Sprint(v.GetDoubleValue())
		case *common.AnyValue_BoolValue:
			text = fmt.Sprint(v.GetBoolValue())
		case *common.AnyValue_ArrayValue:
			for _, x := range v.GetArrayValue().Values {
				text += "[" + x.GetStringValue() + "]"
			}
		}
		parts = append(parts, a.Key+"="+text)
	}
	return strings.Join(parts, " ")
}

func TestSpansAreDroppedAndCounted(t *testing.T) {
	e := started(t, Options{Endpoint: "http://" + silent(t), Traces: true, Interval: time.Hour})
	for range spanRing + 7 {
		e.Span(aSpan())
	}
	if s := e.Status(); s.SpansDropped != 7 {
		t.Errorf("%+v", s)
	}
}

func TestTraceparent(t *testing.T) {
	for header, ok := range map[string]bool{
		parent: true, " " + parent + " ": true, strings.Replace(parent, "-01", "-00", 1): true,
		"cc" + parent[2:]: true, "cc" + parent[2:] + "-what-the-future-will-bring": true,
		"": false, "ff" + parent[2:]: false, parent + "-x": false, "cc" + parent[2:] + "x": false, strings.ToUpper(parent): false,
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": false, "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01": false,
		parent[:54]: false, strings.Replace(parent, "0af", "0gf", 1): false, strings.ReplaceAll(parent, "-", "_"): false,
	} {
		if _, got := parseTraceparent(header); got != ok {
			t.Errorf("%q: %v, want %v", header, got, ok)
		}
	}
}

func FuzzTraceparent(f *testing.F) {
	f.Add(parent)
	f.Fuzz(func(t *testing.T, header string) {
		p, ok := parseTraceparent(header)
		if ok && !strings.Contains(header, fmt.Sprintf("-%x-%x-%02x", p.trace, p.span, p.flags)) {
			t.Errorf("%q is read as %x %x %x", header, p.trace, p.span, p.flags)
		}
	})
}

func TestRetryAfterHeader(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "5": 5 * time.Second, " 7 ": 7 * time.Second, "-3": 0, "soon": 0, "99999999999999": mostPause, "0": 0,
		"Mon, 30 Nov 2026 12:00:30 GMT": 30 * time.Second, "Mon, 30 Nov 2026 11:00:00 GMT": 0, "Mon, 30 Nov 2027 11:00:00 GMT": mostPause,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"partialSuccess":{"rejectedSpans":"3","errorMessage":"x"}}`))
	reply, _ := proto.Marshal(&logscollector.ExportLogsServiceResponse{PartialSuccess: &logscollector.ExportLogsPartialSuccess{RejectedLogRecords: 3, ErrorMessage: "x"}})
	f.Add(reply)
	f.Fuzz(func(t *testing.T, body []byte) {
		_ = partialJSON(body)
		got := partialProto(body)
		// Where OTLP's own type can read it, it says the same.
		var want tracecollector.ExportTraceServiceResponse
		if proto.Unmarshal(body, &want) == nil && !repeated(body) {
			if n := want.GetPartialSuccess().GetRejectedSpans(); got.rejected != uint64(max(n, 0)) {
				t.Errorf("%x: %d, want %d", body, got.rejected, n)
			}
		}
	})
}

// repeated tells whether a field comes twice, which protobuf merges and this
// does not.
func repeated(body []byte) bool {
	var m logscollector.ExportLogsServiceResponse
	if proto.Unmarshal(body, &m) != nil {
		return true
	}
	again, err := proto.MarshalOptions{Deterministic: true}.Marshal(&m)
	return err != nil || string(again) != string(body)
}

func TestGRPCRefusals(t *testing.T) {
	r := &receiver{}
	reply := func() (*logscollector.ExportLogsServiceResponse, error) {
		return &logscollector.ExportLogsServiceResponse{PartialSuccess: &logscollector.ExportLogsPartialSuccess{RejectedLogRecords: 2, ErrorMessage: "too old"}}, nil
	}
	l := &grpcLogs{receiver: r, reply: func() (*logscollector.ExportLogsServiceResponse, error) { return reply() }}
	e := started(t, Options{Endpoint: "grpc://" + serveGRPC(t, l), Headers: map[string]string{"X-Key": "k"}})
	emitStream(e, "s", 5)
	until(t, "they are settled", func() bool { s := e.Status(); return s.Sent+s.Rejected == 5 })
	if s := e.Status(); s.Rejected == 0 || s.Rejected%2 != 0 || !strings.Contains(s.LastError, "too old") {
		t.Errorf("%+v", s)
	}
	r.mu.Lock()
	if got := l.md.Get("x-key"); fmt.Sprint(got) != "[k]" {
		t.Errorf("header %v", got)
	}
	reply = func() (*logscollector.ExportLogsServiceResponse, error) {
		s, _ := status.New(codes.ResourceExhausted, "full").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Hour)})
		return nil, s.Err()
	}
	r.mu.Unlock()
	emitStream(e, "s", 5)
	until(t, "they fail", func() bool { return e.Status().Failed == 5 })
	r.mu.Lock()
	calls := len(r.logs)
	r.mu.Unlock()
	emitStream(e, "s", 5)
	until(t, "they fail too", func() bool { return e.Status().Failed == 10 })
	if len(r.logs) != calls {
		t.Error("it does not leave the receiver alone")
	}
	if s := e.Status(); !strings.Contains(s.LastError, "full (ResourceExhausted)") {
		t.Errorf("%+v", s)
	}
}

func TestTLS(t *testing.T) {
	r := &receiver{}
	server := httptest.NewUnstartedServer(r)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the client that does not trust it
	server.StartTLS()
	defer server.Close()
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	trusting := &tls.Config{RootCAs: pool, ServerName: "example.com"}
	grpcReceiver := &receiver{}
	secure := serveGRPC(t, &grpcLogs{receiver: grpcReceiver}, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: server.TLS.Certificates})))
	for endpoint, to := range map[string]*receiver{server.URL: r, "grpcs://" + secure: grpcReceiver} {
		e := started(t, Options{Endpoint: endpoint, TLS: trusting, Interval: time.Millisecond})
		for i := range 3 { // and again over a connection that was kept
			emitStream(e, "s", 5)
			until(t, "they arrive", func() bool { return e.Status().Sent == uint64(5*(i+1)) })
		}
		if n := len(to.records()); n != 15 {
			t.Errorf("%s: %d of 15 arrived", endpoint, n)
		}
		suspicious := started(t, Options{Endpoint: endpoint})
		emitStream(suspicious, "s", 1)
		until(t, "it is refused", func() bool { return suspicious.Status().Failed == 1 })
		if s := suspicious.Status(); !strings.Contains(s.LastError, "certificate") {
			t.Errorf("%s: %+v", endpoint, s)
		}
	}
	if h := r.headers[0]; h.Get("Connection") == "close" {
		t.Error("TLS connections are not kept")
	}

	// Whom to trust may stand in the environment.
	file := filepath.Join(t.TempDir(), "trusted.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(CertificateVariable, file)
	e := started(t, Options{Endpoint: server.URL, Interval: time.Millisecond})
	emitStream(e, "s", 5)
	until(t, "they arrive", func() bool { return e.Status().Sent == 5 })
	for _, bad := range []string{file + "x", os.Args[0]} {
		t.Setenv(CertificateVariable, bad)
		if e, err := New(Options{Endpoint: server.URL}); err == nil || !strings.Contains(err.Error(), CertificateVariable) {
			t.Errorf("with %s: %v, %v", bad, e, err)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	r := &receiver{}
	url := serveHTTP(t, r)
	from := httptest.NewServer(http.RedirectHandler(url+"/v1/logs", http.StatusFound))
	defer from.Close()
	e := started(t, Options{Endpoint: from.URL})
	emitStream(e, "s", 1)
	until(t, "it fails", func() bool { return e.Status().Failed == 1 })
	if len(r.bodies) != 0 || !strings.Contains(e.Status().LastError, "302") {
		t.Errorf("%d requests, %+v", len(r.bodies), e.Status())
	}
}

// Readers that nobody here wrote: opentelemetry-proto of Python.
func TestPythonReadsIt(t *testing.T) {
	python := os.Getenv("VELO_OTLP_PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "import opentelemetry.proto.logs.v1.logs_pb2").Run(); err != nil {
		t.Skip("not run: no Python with opentelemetry-proto; pip install opentelemetry-proto, or set VELO_OTLP_PYTHON to one that has it")
	}
	registry := prometheus.NewRegistry()
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "velo_duration_seconds", Buckets: []float64{1, 2}})
	registry.MustRegister(h)
	h.Observe(1.5)
	for _, protobuf := range []bool{false, true} {
		r := &receiver{}
		var paths []string
		url := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			r.mu.Lock()
			paths = append(paths, q.URL.Path)
			r.mu.Unlock()
			r.ServeHTTP(w, q)
		}))
		defer url.Close()
		e := started(t, Options{Endpoint: url.URL, Protobuf: protobuf, Interval: time.Hour, ModelID: "m", Version: "1",
			Metrics: true, Gatherer: registry, Traces: true})
		emitStream(e, "sess-1", 3)
		s := aSpan()
		s.Traceparent = parent
		e.Span(s)
		if err := closed(t, e); err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		for i, body := range r.bodies {
			if err := os.WriteFile(filepath.Join(folder, strings.TrimPrefix(paths[i], "/v1/")), body, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		kind := "json"
		if protobuf {
			kind = "protobuf"
		}
		out, err := exec.Command(python, "testdata/read_otlp.py", kind, folder).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", kind, err, out)
		}
		want := `logs gb10_inference gb10.generation.emitter 1 3
0 1790000000000000000 stream_start 0 sess-1 {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"\"0\" é\n"}}]}
1 1790000000000000001 stream_delta 1 sess-1 {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"\"1\" é\n"}}]}
2 1790000000000000002 stream_end 2 sess-1 {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"\"2\" é\n"}}]}
metrics velo_duration_seconds [1.0, 2.0] [0, 1, 0] 1 1.5 2
traces chat qwen 2 0af7651916cd43dd8448eb211c80319c b7ad6b7169203331 3 token 250000000
`
		if string(out) != want {
			t.Errorf("%s: got\n%s\nwant\n%s", kind, out, want)
		}
	}
}
