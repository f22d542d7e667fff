package otlp

import (
	"context"
	"fmt"
	"time"

	"velo/bench/otlp/decode"
)

// signal is one of the three kinds of data.
type signal uint8

const (
	logs signal = iota
	metrics
	traces
)

// path of each signal over HTTP, its gRPC service, and the name of the field that counts what was
// rejected.
var (
	paths    = [...]string{"/v1/logs", "/v1/metrics", "/v1/traces"}
	services = [...]string{"opentelemetry.proto.collector.logs.v1.LogsService", "opentelemetry.proto.collector.metrics.v1.MetricsService",
		"opentelemetry.proto.collector.trace.v1.TraceService"}
	rejectedFields = [...]string{"rejectedLogRecords", "rejectedDataPoints", "rejectedSpans"}
)

// result is what became of a request: rejected records of it, and why.
type result struct {
	rejected int
	message  string
}

// portion is how many records are applied before the lock is given back for a moment.
const portion = 64

// ingest takes a body that was there in full at received. It checks all of it before anything is
// applied, so that a malformed body leaves nothing behind. Only one request is worked on at a time.
func (r *Receiver) ingest(ctx context.Context, s signal, format decode.Format, body string, received time.Duration) (result, *refusal) {
	if !r.admission.work(ctx) {
		return result{}, &refusal{kind: busy, message: "the receiver has more to do than it can", after: time.Second}
	}
	began := r.clock.now()
	defer r.admission.done(began)
	var n int
	var err error
	switch s {
	case logs:
		n, err = decode.Logs(body, format, nil)
	case metrics:
		n, err = decode.Metrics(body, format, nil)
	default:
		n, err = decode.Traces(body, format, nil)
	}
	if err != nil {
		return result{}, &refusal{kind: malformed, message: err.Error()}
	}
	granted := r.admission.grant(n)
	if n > 0 && granted == 0 {
		return result{}, &refusal{kind: limited, message: "more records a second than this receiver takes", after: time.Second}
	}
	r.counters.requests.Add(1)
	r.counters.bytes.Add(uint64(len(body)))
	if n > 0 {
		r.apply(s, format, body, received, granted)
	}
	if n == granted {
		return result{}, nil
	}
	r.counters.dropped.Add(uint64(n - granted))
	return result{n - granted, fmt.Sprintf("%d of %d records dropped: more records a second than this receiver takes", n-granted, n)}, nil
}

// apply puts the first records of a body, which has been checked, into the state.
func (r *Receiver) apply(s signal, format decode.Format, body string, received time.Duration, records int) {
	wall := r.clock.wall(received)
	h := r.hub
	h.lock()
	defer h.mu.Unlock()
	h.lastData = received
	h.dataSeen = true
	n := 0
	next := func() bool {
		if n++; n%portion == 0 {
			h.letIn() // a snapshot that waits
		}
		return n < records
	}
	switch s { // errors cannot come: the body was checked
	case logs:
		_, _ = decode.Logs(body, format, func(o *decode.Origin, l *decode.Log) bool { h.log(received, wall, o, l); return next() })
		r.counters.logs.Add(uint64(n))
	case metrics:
		_, _ = decode.Metrics(body, format, func(o *decode.Origin, p *decode.Point) bool { h.point(received, o, p); return next() })
		r.counters.points.Add(uint64(n))
	default:
		_, _ = decode.Traces(body, format, func(o *decode.Origin, p *decode.Span) bool { h.span(received, o, p); return next() })
		r.counters.spans.Add(uint64(n))
	}
}
