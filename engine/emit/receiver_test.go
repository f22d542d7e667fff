package emit

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	logscollector "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricscollector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracecollector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logsdata "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// receiver takes requests over HTTP or gRPC, decodes them with OTLP's own
// types and keeps them.
type receiver struct {
	mu      sync.Mutex
	bodies  [][]byte // of HTTP
	headers []http.Header
	logs    []*logscollector.ExportLogsServiceRequest
	metrics []*metricscollector.ExportMetricsServiceRequest
	traces  []*tracecollector.ExportTraceServiceRequest
	bad     []error

	// answer is what it says, nil = 200 {}.
	answer func(w http.ResponseWriter, r *http.Request)
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err == nil {
		err = r.take(q, body)
	}
	r.mu.Lock()
	if err != nil {
		r.bad = append(r.bad, err)
	}
	answer := r.answer
	r.mu.Unlock()
	if answer != nil {
		answer(w, q)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "{}")
}

func (r *receiver) take(q *http.Request, body []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies = append(r.bodies, body)
	h := q.Header.Clone()
	if q.Close {
		h.Set("Connection", "close")
	}
	r.headers = append(r.headers, h)
	read := protojson.Unmarshal
	if q.Header.Get("Content-Type") == "application/x-protobuf" {
		read = proto.Unmarshal
	}
	switch q.URL.Path {
	case "/v1/logs":
		m := &logscollector.ExportLogsServiceRequest{}
		r.logs = append(r.logs, m)
		return read(body, m)
	case "/v1/metrics":
		m := &metricscollector.ExportMetricsServiceRequest{}
		r.metrics = append(r.metrics, m)
		return read(body, m)
	case "/v1/traces":
		m := &tracecollector.ExportTraceServiceRequest{}
		r.traces = append(r.traces, m)
		return read(body, m)
	}
	return io.ErrUnexpectedEOF
}

// records are all log records so far.
func (r *receiver) records() []*logsdata.LogRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*logsdata.LogRecord
	for _, m := range r.logs {
		for _, rl := range m.ResourceLogs {
			for _, sl := range rl.ScopeLogs {
				all = append(all, sl.LogRecords...)
			}
		}
	}
	return all
}

func (r *receiver) check(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, err := range r.bad {
		t.Errorf("the receiver cannot read a request: %v", err)
	}
}

func serveHTTP(t testing.TB, r *receiver) string {
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	return s.URL
}

// The three gRPC services, as OTLP's generated code has them.
type grpcLogs struct {
	logscollector.UnimplementedLogsServiceServer
	*receiver
	reply func() (*logscollector.ExportLogsServiceResponse, error)
	md    metadata.MD
}

func (s *grpcLogs) Export(ctx context.Context, m *logscollector.ExportLogsServiceRequest) (*logscollector.ExportLogsServiceResponse, error) {
	s.mu.Lock()
	s.logs = append(s.logs, m)
	s.md, _ = metadata.FromIncomingContext(ctx)
	s.mu.Unlock()
	if s.reply != nil {
		return s.reply()
	}
	return &logscollector.ExportLogsServiceResponse{}, nil
}

type grpcMetrics struct {
	metricscollector.UnimplementedMetricsServiceServer
	*receiver
}

func (s *grpcMetrics) Export(_ context.Context, m *metricscollector.ExportMetricsServiceRequest) (*metricscollector.ExportMetricsServiceResponse, error) {
	s.mu.Lock()
	s.metrics = append(s.metrics, m)
	s.mu.Unlock()
	return &metricscollector.ExportMetricsServiceResponse{}, nil
}

type grpcTraces struct {
	tracecollector.UnimplementedTraceServiceServer
	*receiver
}

func (s *grpcTraces) Export(_ context.Context, m *tracecollector.ExportTraceServiceRequest) (*tracecollector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	s.traces = append(s.traces, m)
	s.mu.Unlock()
	return &tracecollector.ExportTraceServiceResponse{}, nil
}

// serveGRPC gives the address that it listens at.
func serveGRPC(t testing.TB, l *grpcLogs, options ...grpc.ServerOption) string {
	if len(options) == 0 {
		options = append(options, grpc.Creds(insecure.NewCredentials()))
	}
	s := grpc.NewServer(options...)
	logscollector.RegisterLogsServiceServer(s, l)
	metricscollector.RegisterMetricsServiceServer(s, &grpcMetrics{receiver: l.receiver})
	tracecollector.RegisterTraceServiceServer(s, &grpcTraces{receiver: l.receiver})
	n, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(n) }()
	t.Cleanup(s.Stop)
	return n.Addr().String()
}

// silent accepts connections and never answers.
func silent(t testing.TB) string {
	n, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	go func() {
		for {
			c, err := n.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = n.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			_ = c.Close()
		}
	})
	return n.Addr().String()
}

// dead is an address where nobody listens.
func dead(t testing.TB) string {
	n, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := n.Addr().String()
	_ = n.Close()
	return address
}

// until waits for something to become true.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func attribute(all []*common.KeyValue, key string) *common.AnyValue {
	for _, a := range all {
		if a.Key == key {
			return a.Value
		}
	}
	return nil
}

func closed(t testing.TB, e *Emitter) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return e.Close(ctx)
}
