package emit

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/http/httpguts"
)

// Options say what is sent where.
type Options struct {
	// Endpoint is http://HOST[:4318][/PREFIX] or https://… for OTLP over
	// HTTP, grpc://HOST[:4317] or grpcs://… for gRPC.
	Endpoint string
	Headers  map[string]string // sent with each request, besides those of HeadersVariable that are not among them
	TLS      *tls.Config       // for https and grpcs; nil = the certificates of CertificateVariable, or else the system's
	Protobuf bool              // HTTP bodies in protobuf; JSON otherwise. gRPC has protobuf only

	BatchSize     int           // most records of one request; 0 = 512
	Interval      time.Duration // between requests with fewer; 0 = 100 ms
	Ring          int           // records that may wait, rounded up to a power of two; 0 = 8192
	IncludeTokens bool          // false: records of event Delta are not sent

	ModelID  string // attribute model.id
	Topology string // attribute topology; "" = single
	Version  string // of the program, in the scope

	Metrics         bool                // send what Gatherer gives
	MetricsInterval time.Duration       // 0 = 10 s
	Gatherer        prometheus.Gatherer // must be there when Metrics is set
	Traces          bool                // send what Span is given

	// Attributes are asked for whenever a status record is made, from the
	// sender's goroutine, and go with it: what the GPU tells. nil = none.
	Attributes func() []Attribute

	// Log is told about failures, recoveries and drops, in sentences, from
	// the sender's goroutine and seldom. nil = nobody is told.
	Log func(sentence string)
}

// Event is what a record tells of.
type Event uint8

// The events of a stream, in order, and the server's own sign of life.
const (
	Start        Event = iota // body: the chunk with the role
	Delta                     // body: a chunk with text
	End                       // body: the chunk with the finish reason
	StatusRecord              // body: the word status
)

var eventNames = [...]string{"stream_start", "stream_delta", "stream_end", "status"}

// String gives the value of attribute event.
func (e Event) String() string {
	if int(e) < len(eventNames) {
		return eventNames[e]
	}
	return fmt.Sprintf("event(%d)", uint8(e))
}

// Record is one log record.
type Record struct {
	Time       time.Time // zero = now
	Request    string    // session key
	Generation string    // gen-<uuid>
	Index      int       // 0 for the start, then 1…
	Event      Event
	Body       []byte // exactly what the client got; copied

	attributes []Attribute // more of a status record
}

// Attribute is one of a status record: a text, or a number where Text is empty.
type Attribute struct {
	Key, Text string
	Number    float64 // finite
}

// Status is what became of the records so far. Once nothing is emitted any
// more, Sent + Dropped + Failed + Rejected + Queued is what was emitted, with
// the emitter's own status records.
type Status struct {
	Sent     uint64 // the receiver took them
	Dropped  uint64 // never sent: the ring was full, or the emitter closed
	Failed   uint64 // in requests that failed, or due while the receiver wanted to be left alone
	Rejected uint64 // the receiver took the request and refused them (partial success)
	Queued   uint64 // waiting or on their way

	SpansSent, SpansDropped, SpansFailed uint64 // Failed: in requests that failed, and refused ones
	MetricsSent, MetricsFailed           uint64 // requests

	LastError string    // of any signal; "" = none so far
	LastSent  time.Time // end of the last request that succeeded; zero = none
}

const spanRing = 1024 // spans that may wait

// timing is how long things take; tests have less of it.
type timing struct {
	connect, exchange time.Duration // limits of a request
	alive             time.Duration // between the emitter's own status records
}

var usualTiming = timing{connect: 3 * time.Second, exchange: 5 * time.Second, alive: 10 * time.Second}

// Emitter sends records. All methods may be called from any goroutine, and on
// a nil Emitter, which does nothing.
type Emitter struct {
	options  Options
	endpoint endpoint
	ring     *ring
	spans    chan Span
	send     transport
	channels [signals]channel
	started  time.Time
	instance string // of this process, for metrics and traces

	wake    chan struct{}
	closing chan struct{}
	done    chan struct{}
	once    sync.Once
	closed  atomic.Bool
	cancel  context.CancelFunc

	dropped, spansDropped atomic.Uint64
	flight                atomic.Uint64 // records out of the ring and not yet settled

	mu     sync.Mutex // status; only the sender writes it
	status Status
}

// New checks the options and starts the sender. It does not wait for the
// receiver, which need not be there. The error is a sentence about the option
// that is wrong.
func New(o Options) (*Emitter, error) { return start(o, usualTiming) }

// Check says what New would refuse, without starting anything.
func (o Options) Check() error {
	_, err := o.checked()
	return err
}

// checked fills in what was left out and refuses what is wrong.
func (o *Options) checked() (endpoint, error) {
	p, err := parseEndpoint(o.Endpoint)
	if err != nil {
		return p, err
	}
	if err := o.complete(); err != nil {
		return p, fmt.Errorf("cannot send telemetry to %q: %w", o.Endpoint, err)
	}
	return p, nil
}

func start(o Options, t timing) (*Emitter, error) {
	p, err := o.checked()
	if err != nil {
		return nil, err
	}
	e := &Emitter{
		options: o, endpoint: p,
		ring: newRing(o.Ring), spans: make(chan Span, spanRing),
		started: time.Now(), instance: randomID(),
		wake: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
	}
	if p.grpc {
		e.send, err = newGRPC(p, o, t)
	} else {
		e.send = newHTTP(p, o, t)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot send telemetry to %q: %w", o.Endpoint, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.cancel = cancel
	go e.run(ctx, t.alive)
	return e, nil
}

// complete fills in what was left out and refuses what makes no sense.
func (o *Options) complete() error {
	for _, n := range []struct {
		what  string
		value *int
		usual int
	}{{"batch size", &o.BatchSize, 512}, {"ring", &o.Ring, 8192}} {
		if *n.value == 0 {
			*n.value = n.usual
		}
		if *n.value < 1 || *n.value > 1<<20 {
			return fmt.Errorf("a %s of %d is not between 1 and %d", n.what, *n.value, 1<<20)
		}
	}
	o.BatchSize = min(o.BatchSize, o.Ring)
	for _, d := range []struct {
		what  string
		value *time.Duration
		usual time.Duration
	}{{"batch interval", &o.Interval, 100 * time.Millisecond}, {"metrics interval", &o.MetricsInterval, 10 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.usual
		}
		if *d.value < time.Millisecond || *d.value > time.Hour {
			return fmt.Errorf("a %s of %v is not between 1 ms and 1 hour", d.what, *d.value)
		}
	}
	if o.Metrics && o.Gatherer == nil {
		return errors.New("metrics are wanted and there is nothing to gather them from")
	}
	headers, err := withEnvironment(o.Headers, os.Getenv(HeadersVariable))
	if err != nil {
		return err
	}
	o.Headers = headers
	if o.TLS == nil {
		if o.TLS, err = Trusting(os.Getenv(CertificateVariable)); err != nil {
			return err
		}
	}
	for name, value := range o.Headers {
		switch {
		case !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value):
			return fmt.Errorf("header %q is not a valid header", name)
		case strings.EqualFold(name, "Content-Type"), strings.EqualFold(name, "Content-Length"), strings.EqualFold(name, "Host"):
			return fmt.Errorf("header %q cannot be chosen", name)
		}
	}
	if o.Topology == "" {
		o.Topology = "single"
	}
	if o.Version == "" {
		o.Version = "unknown"
	}
	return nil
}

// Emit hands a record to the sender. It never blocks; when the ring is full or
// the emitter closed the record is dropped and counted. A Delta is ignored
// unless tokens are included.
func (e *Emitter) Emit(r Record) {
	if e == nil || r.Event == Delta && !e.options.IncludeTokens {
		return
	}
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	if e.closed.Load() {
		e.dropped.Add(1)
		return
	}
	at, ok := e.ring.push(&r)
	if !ok {
		e.dropped.Add(1)
		return
	}
	// Once a batch, not once a record: waking a goroutine is what costs.
	if (at+1)%uint64(e.options.BatchSize) == 0 {
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
}

// Span hands a request's span to the sender; it is ignored unless traces are
// wanted. It never blocks; s.Tokens belongs to the emitter from then on.
func (e *Emitter) Span(s Span) {
	if e == nil || !e.options.Traces || s.unwanted() {
		return
	}
	if e.closed.Load() {
		e.spansDropped.Add(1)
		return
	}
	select {
	case e.spans <- s:
	default:
		e.spansDropped.Add(1)
	}
}

// Status tells what became of the records so far; the zero Status for a nil
// Emitter.
func (e *Emitter) Status() Status {
	if e == nil {
		return Status{}
	}
	e.mu.Lock()
	s := e.status
	e.mu.Unlock()
	s.Dropped += e.dropped.Load()
	s.SpansDropped += e.spansDropped.Load()
	s.Queued = e.flight.Load() + uint64(e.ring.len())
	return s
}

// Close sends what waits, until ctx ends or the receiver fails, and stops. The
// error says how many records were lost by closing. Records emitted during or
// after Close are dropped and counted.
func (e *Emitter) Close(ctx context.Context) error {
	if e == nil {
		return nil
	}
	e.closed.Store(true)
	before := e.lost()
	e.once.Do(func() { close(e.closing) })
	select {
	case <-e.done:
	case <-ctx.Done():
		e.cancel()
		<-e.done
	}
	if n := e.lost() - before; n > 0 {
		why := e.Status().LastError
		if ctx.Err() != nil {
			why = "there was no more time"
		}
		return fmt.Errorf("cannot send the last %d telemetry records to %s: %s", n, e.endpoint, why)
	}
	return nil
}

func (e *Emitter) lost() uint64 {
	s := e.Status()
	return s.Failed + s.Rejected + s.Dropped + s.SpansFailed + s.SpansDropped
}
