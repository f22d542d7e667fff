package otlp

import (
	"crypto/tls"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
)

func credentialsOf(c *tls.Config) credentials.TransportCredentials { return credentials.NewTLS(c) }

// export makes a call with a body as it is, and returns the answer's.
func export(t *testing.T, r *Receiver, method, body string, options ...grpc.CallOption) (string, error) {
	t.Helper()
	c, err := grpc.NewClient(r.at("gRPC"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(t, err)
	defer c.Close()
	out := &message{}
	err = c.Invoke(t.Context(), method, &message{body: body}, out, append(options, grpc.ForceCodecV2(plainCodec{r.clock.now}))...)
	return out.body, err
}

func wireOf(t *testing.T, m proto.Message) string {
	t.Helper()
	b, err := proto.Marshal(m)
	check(t, err)
	return string(b)
}

func TestGRPCAnswersFollowTheProtocol(t *testing.T) {
	c := loopback()
	c.Limits.Body = 1 << 20
	r := started(t, c)
	logs := "/" + services[0] + "/Export"
	if _, err := export(t, r, logs, wireOf(t, &logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{ScopeLogs: []*logspb.ScopeLogs{{LogRecords: []*logspb.LogRecord{{TimeUnixNano: 5}}}}}}})); err != nil {
		t.Errorf("a record: %v", err)
	}
	for _, k := range []struct {
		name, method, body string
		code               codes.Code
	}{
		{"empty", logs, "", codes.OK},
		{"malformed", logs, "\xff\xff", codes.InvalidArgument},
		{"too large", logs, strings.Repeat("\x00", 1<<20+1), codes.ResourceExhausted},
		{"another service", "/opentelemetry.proto.collector.profiles.v1.ProfilesService/Export", "", codes.Unimplemented},
	} {
		_, err := export(t, r, k.method, k.body)
		if status.Code(err) != k.code {
			t.Errorf("%s: %v, want %v", k.name, err, k.code)
		}
		if k.name == "too large" {
			for _, d := range status.Convert(err).Details() {
				t.Errorf("%s: asks to try again: %v", k.name, d)
			}
		}
	}
	if n := r.State().Counters; n.Logs != 1 || n.Malformed != 1 || n.TooLarge != 1 {
		t.Errorf("counters are %+v", n)
	}
}

// TestLimitsHoldAfterDecompression: a small message may not become a large one, and one that just fits is taken.
// At 2 MiB, since the race detector decompresses a hundred times slower than it is; that 64 MiB is what
// holds where nothing is set is asked of the configuration.
func TestLimitsHoldAfterDecompression(t *testing.T) {
	if n := (Limits{}).complete().Body; n != 64<<20 {
		t.Errorf("without a setting %d bytes are taken", n)
	}
	const limit = 2 << 20
	c := loopback()
	c.Limits.Body = limit
	r := started(t, c)
	logs, zip := "/"+services[0]+"/Export", grpc.UseCompressor("gzip")
	fits := wireOf(t, &logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{SchemaUrl: strings.Repeat("x", limit-16)}}})
	if n := len(fits); n > limit || n < limit-16 {
		t.Fatalf("the message has %d bytes", n)
	}
	if _, err := export(t, r, logs, fits, zip); err != nil {
		t.Errorf("2 MiB after decompression: %v", err)
	}
	large := fits + strings.Repeat("\x0a\x00", 16)
	if _, err := export(t, r, logs, large, zip); status.Code(err) != codes.ResourceExhausted || len(status.Convert(err).Details()) != 0 {
		t.Errorf("over gRPC, 2 MiB and some bytes after decompression: %v", err)
	}
	for _, k := range []struct {
		body   string
		status int
	}{{fits, 200}, {large, 413}} {
		if got, _, answer := post(t, "http://"+r.at("HTTP")+"/v1/logs", "application/x-protobuf", zipped([]byte(k.body)), "Content-Encoding", "gzip"); got != k.status {
			t.Errorf("over HTTP, %d bytes after decompression: %d %q", len(k.body), got, answer)
		}
	}
	if n := r.State().Counters; n.TooLarge != 2 || n.Requests != 2 {
		t.Errorf("counters are %+v", n)
	}
}

func TestGRPCSaysWhenToTryAgain(t *testing.T) {
	c := loopback()
	c.Limits.Records = 2
	r := started(t, c)
	three := wireOf(t, &logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{ScopeLogs: []*logspb.ScopeLogs{{LogRecords: []*logspb.LogRecord{{}, {}, {}}}}}}})
	answer, err := export(t, r, "/"+services[0]+"/Export", three)
	var in collogspb.ExportLogsServiceResponse
	if err != nil || proto.Unmarshal([]byte(answer), &in) != nil || in.GetPartialSuccess().GetRejectedLogRecords() != 1 || in.GetPartialSuccess().GetErrorMessage() == "" {
		t.Fatalf("in part: %v %v", &in, err)
	}
	_, err = export(t, r, "/"+services[0]+"/Export", three)
	st := status.Convert(err)
	if st.Code() != codes.ResourceExhausted || len(st.Details()) != 1 {
		t.Fatalf("refused with %v %v", st, st.Details())
	}
	if d, ok := st.Details()[0].(*errdetails.RetryInfo); !ok || d.RetryDelay.AsDuration() <= 0 {
		t.Errorf("details are %v", st.Details())
	}
	if n := r.State().Counters; n.Dropped != 1 || n.RateLimited != 1 {
		t.Errorf("counters are %+v", n)
	}
}
