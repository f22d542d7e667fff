package emit

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// overGRPC calls Export of the three OTLP services. The requests come encoded,
// so it has a codec that hands bytes through.
type overGRPC struct {
	connection *grpc.ClientConn
	header     metadata.MD
	timing     timing
}

var exports = [signals]string{
	logs:    "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
	metrics: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
	traces:  "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
}

func newGRPC(p endpoint, o Options, t timing) (*overGRPC, error) {
	secret := insecure.NewCredentials()
	if p.secure {
		config := o.TLS
		if config == nil {
			config = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		secret = credentials.NewTLS(config)
	}
	connection, err := grpc.NewClient(p.host,
		grpc.WithTransportCredentials(secret),
		grpc.WithUserAgent("velo"),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{
			// A receiver that comes back is noticed within seconds.
			Backoff:           backoff.Config{BaseDelay: 500 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 10 * time.Second},
			MinConnectTimeout: t.connect,
		}),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(encoded{})),
	)
	if err != nil {
		return nil, err
	}
	header := metadata.MD{}
	for name, value := range o.Headers {
		header.Set(strings.ToLower(name), value)
	}
	return &overGRPC{connection, header, t}, nil
}

func (g *overGRPC) close() { _ = g.connection.Close() }

func (g *overGRPC) post(ctx context.Context, s signal, body []byte) answer {
	limited, cancel := context.WithTimeout(ctx, g.timing.exchange)
	defer cancel()
	var reply []byte
	err := g.connection.Invoke(metadata.NewOutgoingContext(limited, g.header), exports[s], &body, &reply)
	if err == nil {
		return partialProto(reply)
	}
	if ctx.Err() != nil {
		return answer{err: context.Cause(ctx)}
	}
	st := status.Convert(err)
	a := answer{err: fmt.Errorf("%s (%s)", st.Message(), st.Code())}
	if st.Code() == codes.DeadlineExceeded {
		a.err = errAnswer(g.timing.exchange)
	}
	for _, d := range st.Details() {
		if r, ok := d.(*errdetails.RetryInfo); ok && (st.Code() == codes.ResourceExhausted || st.Code() == codes.Unavailable) {
			a.pause = max(0, min(r.GetRetryDelay().AsDuration(), mostPause))
		}
	}
	if st.Code() == codes.ResourceExhausted && a.pause == 0 {
		a.pause = usualPause
	}
	return a
}

// encoded is the codec of messages that are protobuf already.
type encoded struct{}

func (encoded) Name() string { return "proto" }

func (encoded) Marshal(v any) ([]byte, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, errors.New("cannot send what is not encoded")
	}
	// gRPC may hold on to it after the call gave up, and the buffer is used again.
	return append([]byte(nil), *b...), nil
}

func (encoded) Unmarshal(data []byte, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return errors.New("cannot read into what is not bytes")
	}
	*b = append((*b)[:0], data...)
	return nil
}
