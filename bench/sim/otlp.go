package sim

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"
)

// EmitOptions say what Emit sends, and how badly.
type EmitOptions struct {
	// URL is where to: http://HOST:PORT (paths /v1/logs and /v1/metrics are added), https://…,
	// grpc://HOST:PORT, or grpcs://….
	URL       string
	Encoding  string            // "json" (the default, as existing emitters do) or "protobuf"; gRPC is always protobuf
	Gzip      bool              // compress bodies
	Token     string            // sent as a bearer token
	Headers   map[string]string // sent with each request
	TLS       *tls.Config       // for https and grpcs; nil = the system's certificates
	Rate      float64           // generation records a second, 1 to 10,000; 0 = 100
	Streams   int               // generations at a time; 0 = 4
	Tokens    int               // of a generation; 0 = 200
	Records   uint64            // stop after so many; 0 = when the context ends
	Usage     bool              // continuous usage in every chunk
	Drop      float64           // share of records that are never sent
	Reorder   float64           // share of records that are sent later than their followers
	Malformed float64           // malformed bodies sent besides, for each that is sound
	Restart   time.Duration     // the engine restarts that often: generations break off, counters begin at zero; 0 = never
	Seed      uint64
	Model     string      // "" = "sim"
	Report    func(error) // a send that failed; nil = nobody is told
}

// EmitCounts are what an emitter did.
type EmitCounts struct {
	Records   uint64 // generation records made, dropped ones included
	Sent      uint64 // records in bodies that were answered with success
	Dropped   uint64 // records left out on purpose
	Reordered uint64
	Bodies    uint64 // sent and answered with success
	Malformed uint64 // malformed bodies sent
	Refused   uint64 // of these, those that were refused, as they have to be
	Failed    uint64 // sound bodies that were not taken
	Rejected  uint64 // records that the receiver says it dropped
	Restarts  uint64
	Starts    uint64
	Ends      uint64
}

func (o *EmitOptions) complete() error {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&o.Streams, 4)
	set(&o.Tokens, 200)
	if o.Rate == 0 {
		o.Rate = 100
	}
	if o.Rate < 1 || o.Rate > 10_000 {
		return fmt.Errorf("cannot send %g records a second: it must be 1 to 10,000", o.Rate)
	}
	if o.Encoding == "" {
		o.Encoding = "json"
	}
	if o.Encoding != "json" && o.Encoding != "protobuf" {
		return fmt.Errorf("cannot send records as %q: it must be json or protobuf", o.Encoding)
	}
	for name, share := range map[string]float64{"drop": o.Drop, "reorder": o.Reorder, "malformed": o.Malformed} {
		if !(share >= 0 && share <= 1) {
			return fmt.Errorf("cannot use a share of %g for %s: it must be 0 to 1", share, name)
		}
	}
	if o.Model == "" {
		o.Model = "sim"
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "grpc" && u.Scheme != "grpcs" {
		return fmt.Errorf("cannot send to %q: it must be a URL such as http://127.0.0.1:4318 or grpc://127.0.0.1:4317", o.URL)
	}
	o.URL = strings.TrimSuffix(o.URL, "/")
	return nil
}

// The rhythm of the emitter that this one stands in for.
const (
	emitEvery     = 100 * time.Millisecond
	emitMost      = 512 // records a body
	emitStatus    = 10 * time.Second
	emitMetrics   = time.Second
	emitLastWords = 2 * time.Second
)

// Emit sends the records and metrics of an engine that generates, until ctx ends or Records are made.
// Generation records have the times at which they were due: the k-th of them k/Rate after the start.
// An error means that nothing was sent.
func Emit(ctx context.Context, o EmitOptions) (EmitCounts, error) {
	if err := o.complete(); err != nil {
		return EmitCounts{}, err
	}
	out, err := newEmitWire(&o)
	if err != nil {
		return EmitCounts{}, err
	}
	defer out.close()
	e := &emitter{o: o, out: out, random: rand.New(rand.NewPCG(o.Seed, 0x6f746c70)), began: time.Now()}
	e.start()
	e.run(ctx)
	return e.counts, nil
}

// emitter makes the records.
type emitter struct {
	o      EmitOptions
	out    *emitWire
	random *rand.Rand
	counts EmitCounts
	began  time.Time

	engine    *emitEngine
	streams   []*emitStream
	next      int          // stream of the next record
	late      []emitRecord // reordered ones on their way to a later place
	due       uint64       // records made so far
	restarted time.Duration
	status    time.Duration
	metrics   time.Duration
}

func (e *emitter) run(ctx context.Context) {
	t := time.NewTicker(emitEvery)
	defer t.Stop()
	for {
		over := e.o.Records > 0 && e.due >= e.o.Records
		select {
		case <-ctx.Done():
			over = true
		default:
		}
		if over {
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), emitLastWords)
			e.send(last, e.late)
			e.late = nil
			e.sendMetrics(last)
			cancel()
			return
		}
		e.tick(ctx, time.Since(e.began))
		select {
		case <-ctx.Done():
		case <-t.C:
		}
	}
}

// tick sends what was due up to now.
func (e *emitter) tick(ctx context.Context, now time.Duration) {
	if e.o.Restart > 0 && now-e.restarted >= e.o.Restart {
		e.restarted = now
		e.counts.Restarts++
		e.start()
	}
	var batch []emitRecord
	for e.due < uint64(now.Seconds()*e.o.Rate) && (e.o.Records == 0 || e.due < e.o.Records) {
		at := e.began.Add(time.Duration(float64(e.due) / e.o.Rate * 1e9))
		r := e.record(at)
		e.due++
		e.counts.Records++
		switch x := e.random.Float64(); {
		case x < e.o.Drop:
			e.counts.Dropped++
			continue
		case x < e.o.Drop+e.o.Reorder:
			e.counts.Reordered++
			e.late = append(e.late, r)
			continue
		}
		batch = append(batch, r)
		if len(e.late) > 0 && e.random.IntN(4) == 0 {
			batch = append(batch, e.late...)
			e.late = nil
		}
		if len(batch) >= emitMost {
			e.send(ctx, batch)
			batch = nil
		}
	}
	e.send(ctx, batch)
	if e.status == 0 || now-e.status >= emitStatus {
		e.status = max(now, 1)
		e.send(ctx, []emitRecord{{at: time.Now(), event: "status", generation: "server", body: "status"}})
	}
	if now-e.metrics >= emitMetrics {
		e.metrics = now
		e.sendMetrics(ctx)
	}
}

// send sends one body of records, and malformed ones besides.
func (e *emitter) send(ctx context.Context, batch []emitRecord) {
	if len(batch) == 0 {
		return
	}
	rejected, err := e.out.logs(ctx, e.engine, batch)
	e.account(uint64(len(batch)), rejected, err)
	if e.random.Float64() < e.o.Malformed {
		e.counts.Malformed++
		if e.out.malformed(ctx, e.random) != nil {
			e.counts.Refused++
		}
	}
}

func (e *emitter) sendMetrics(ctx context.Context) {
	rejected, err := e.out.metrics(ctx, e.engine)
	e.account(0, rejected, err)
}

func (e *emitter) account(records, rejected uint64, err error) {
	if err != nil {
		e.counts.Failed++
		if e.o.Report != nil {
			e.o.Report(err)
		}
		return
	}
	e.counts.Bodies++
	e.counts.Sent += records
	e.counts.Rejected += rejected
}
