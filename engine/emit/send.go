package emit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// signal is a kind of telemetry.
type signal int

const (
	logs signal = iota
	metrics
	traces
	signals // how many there are
)

func (s signal) String() string { return [...]string{"logs", "metrics", "traces"}[s] }
func (s signal) path() string   { return "/v1/" + s.String() }

const (
	// Receivers bound a request, some at 2 MB and gRPC at 4 MB.
	bodyLimit = 1 << 20
	// Between sentences about a full ring.
	dropReport = 5 * time.Second
	// When a receiver asks to be left alone and does not say for how long.
	usualPause = time.Second
	mostPause  = time.Hour
)

// transport delivers encoded requests. The body is not kept.
type transport interface {
	post(ctx context.Context, s signal, body []byte) answer
	close()
}

// answer is what became of one request.
type answer struct {
	err      error
	rejected uint64        // items refused of a request that was taken
	message  string        // the receiver's reason
	pause    time.Duration // how long the receiver wants to be left alone
}

// channel is how one signal fares.
type channel struct {
	failures uint64 // in a row
	until    time.Time
}

// run is the sender: it alone takes records out, encodes and posts.
func (e *Emitter) run(ctx context.Context, aliveEvery time.Duration) {
	defer close(e.done)
	defer e.cancel()
	defer e.send.close()
	batch := newBatch(e.options, e.options.Protobuf || e.endpoint.grpc)
	flush := time.NewTicker(e.options.Interval)
	defer flush.Stop()
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	var gather <-chan time.Time
	if e.options.Metrics {
		t := time.NewTicker(e.options.MetricsInterval)
		defer t.Stop()
		gather = t.C
	}
	var told struct {
		dropped uint64
		at      time.Time
	}
	always := make(chan struct{})
	close(always)
	due := 0 // records that are to be sent now
	for {
		// One batch at a time, so that under a load that never lets the ring
		// run empty everything else has its turn.
		var more chan struct{}
		if due > 0 {
			more = always
		}
		select {
		case <-more:
			n, _ := e.sendLogs(ctx, batch)
			due -= n
			if n == 0 {
				due = 0
			}
		case <-e.wake:
			due = max(due, e.ring.len()/e.options.BatchSize*e.options.BatchSize)
		case now := <-flush.C:
			due = e.ring.len()
			_, _ = e.sendSpans(ctx)
			if d := e.dropped.Load(); d > told.dropped && now.Sub(told.at) >= dropReport {
				e.say("%d telemetry records were dropped because %s is too slow", d-told.dropped, e.endpoint)
				told.dropped, told.at = d, now
			}
		case now := <-alive.C:
			e.emitStatus(now)
		case <-gather:
			_ = e.sendMetrics(ctx) // counted and told there
		case <-e.closing:
			e.finish(ctx, batch)
			return
		}
	}
}

// EmitStatus emits a status record now, besides those that are emitted every ten seconds. It does nothing
// on a nil Emitter.
func (e *Emitter) EmitStatus() {
	if e != nil {
		e.emitStatus(time.Now())
	}
}

func (e *Emitter) emitStatus(now time.Time) {
	r := Record{Time: now, Generation: "server", Event: StatusRecord, Body: []byte("status")}
	if e.options.Attributes != nil {
		r.attributes = e.options.Attributes()
	}
	e.Emit(r)
}

// finish sends what is left. The first failure ends it: a receiver that is
// gone would otherwise cost a timeout a batch.
func (e *Emitter) finish(ctx context.Context, batch batch) {
	healthy := true
	send := func(some func() (int, error)) {
		for n := 1; n > 0 && healthy && ctx.Err() == nil; {
			var err error
			n, err = some()
			healthy = err == nil
		}
	}
	send(func() (int, error) { return e.sendLogs(ctx, batch) })
	send(func() (int, error) { return e.sendSpans(ctx) })
	if e.options.Metrics {
		send(func() (int, error) { return 0, e.sendMetrics(ctx) })
	}
	for e.ring.peek() != nil {
		e.ring.release()
		e.dropped.Add(1)
	}
	for {
		select {
		case <-e.spans:
			e.spansDropped.Add(1)
			continue
		default:
		}
		return
	}
}

// sendLogs posts one batch; it tells of how many records.
func (e *Emitter) sendLogs(ctx context.Context, batch batch) (int, error) {
	batch.reset()
	n := uint64(0)
	for n < uint64(e.options.BatchSize) && batch.size() < bodyLimit {
		r := e.ring.peek()
		if r == nil {
			break
		}
		n++
		e.flight.Store(n) // before it leaves the ring, so that none is missing from Queued
		batch.add(r)
		e.ring.release()
	}
	if n == 0 {
		return 0, nil
	}
	a := e.deliver(ctx, logs, batch.body(), n)
	e.mu.Lock()
	if a.err != nil {
		e.status.Failed += n
	} else {
		refused := min(a.rejected, n)
		e.status.Sent += n - refused
		e.status.Rejected += refused
	}
	e.flight.Store(0)
	e.mu.Unlock()
	return int(n), a.err
}

// sendSpans posts the spans that wait, as many as fit in one request; it
// tells how many.
func (e *Emitter) sendSpans(ctx context.Context) (int, error) {
	var some []Span
	for size := 0; size < bodyLimit; {
		select {
		case s := <-e.spans:
			size += spanSize + eventSize*min(len(s.Tokens), spanEvents)
			some = append(some, s)
			continue
		default:
		}
		break
	}
	if len(some) == 0 {
		return 0, nil
	}
	n := uint64(len(some))
	body, err := e.encode(e.traceRequest(some))
	a := answer{err: err}
	if err == nil {
		a = e.deliver(ctx, traces, body, n)
	}
	e.mu.Lock()
	if a.err != nil {
		e.status.SpansFailed += n
	} else {
		refused := min(a.rejected, n)
		e.status.SpansSent += n - refused
		e.status.SpansFailed += refused
	}
	e.mu.Unlock()
	return len(some), a.err
}

func (e *Emitter) sendMetrics(ctx context.Context) error {
	families, err := e.options.Gatherer.Gather()
	if err != nil { // what could be gathered is still worth sending
		e.fail(fmt.Sprintf("cannot gather all metrics: %v", err))
	}
	request, n := e.metricsRequest(families, time.Now())
	if n == 0 {
		return nil
	}
	body, err := e.encode(request)
	if err == nil {
		err = e.deliver(ctx, metrics, body, uint64(n)).err
	}
	e.mu.Lock()
	if err != nil {
		e.status.MetricsFailed++
	} else {
		e.status.MetricsSent++
	}
	e.mu.Unlock()
	return err
}

var errPaused = errors.New("the receiver asked to be left alone")

// deliver posts a request of n items unless the receiver wants to be left
// alone. What fails is gone; the first three failures in a row and then every
// hundredth are told.
func (e *Emitter) deliver(ctx context.Context, s signal, body []byte, n uint64) answer {
	c := &e.channels[s]
	if time.Now().Before(c.until) {
		return answer{err: errPaused}
	}
	a := e.send.post(ctx, s, body)
	if a.err != nil {
		c.failures++
		c.until = time.Now().Add(a.pause)
		sentence := fmt.Sprintf("cannot send %s to %s: %v", s, e.endpoint, a.err)
		e.fail(sentence)
		if c.failures <= 3 || c.failures%100 == 0 {
			e.say("%s; dropped %d of them, failure %d in a row", sentence, n, c.failures)
		}
		return a
	}
	if a.rejected > 0 {
		sentence := fmt.Sprintf("%s refused %d of %d %s: %s", e.endpoint, a.rejected, n, s, a.message)
		e.fail(sentence)
		e.say("%s", sentence)
	}
	if c.failures > 0 {
		e.say("%s takes %s again after %d failures", e.endpoint, s, c.failures)
		c.failures = 0
	}
	e.mu.Lock()
	e.status.LastSent = time.Now()
	e.mu.Unlock()
	return a
}

func (e *Emitter) fail(sentence string) {
	e.mu.Lock()
	e.status.LastError = sentence
	e.mu.Unlock()
}

func (e *Emitter) say(format string, args ...any) {
	if e.options.Log != nil {
		e.options.Log(fmt.Sprintf(format, args...))
	}
}
