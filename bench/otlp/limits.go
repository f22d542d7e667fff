package otlp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Counters are what was taken, refused and dropped since the receiver was made. Nothing resets them.
type Counters struct {
	Requests   uint64 // that were answered with success, wholly or in part
	Bytes      uint64 // of their bodies, decompressed
	Logs       uint64 // records taken
	Points     uint64 // metric data points taken
	Spans      uint64
	Polls      uint64 // metrics pages read
	PollErrors uint64

	Malformed    uint64 // requests refused for their body
	TooLarge     uint64 // for its size, also after decompression
	Unsupported  uint64 // for type, encoding, method or path
	Unauthorized uint64
	RateLimited  uint64 // requests refused since the bound of records a second was reached
	Dropped      uint64 // records dropped for that reason out of requests that were taken in part
	Busy         uint64 // requests refused since too many were being worked on, or their turn did not come in time
	Memory       uint64 // requests refused since bodies held the memory that they may
	Connections  uint64 // refused since there were too many
	Interrupted  uint64 // requests whose body did not come in full
}

// counters are Counters while they count.
type counters struct {
	requests, bytes, logs, points, spans, polls, pollErrors                                                atomic.Uint64
	malformed, tooLarge, unsupported, unauthorized, rateLimited, dropped, busy, memory, conns, interrupted atomic.Uint64
}

func (c *counters) read() Counters {
	return Counters{Requests: c.requests.Load(), Bytes: c.bytes.Load(), Logs: c.logs.Load(), Points: c.points.Load(), Spans: c.spans.Load(),
		Polls: c.polls.Load(), PollErrors: c.pollErrors.Load(), Malformed: c.malformed.Load(), TooLarge: c.tooLarge.Load(),
		Unsupported: c.unsupported.Load(), Unauthorized: c.unauthorized.Load(), RateLimited: c.rateLimited.Load(), Dropped: c.dropped.Load(),
		Busy: c.busy.Load(), Memory: c.memory.Load(), Connections: c.conns.Load(), Interrupted: c.interrupted.Load()}
}

// admission bounds what is worked on: bytes of bodies, requests, records a second, and one request at a
// time for the work itself.
type admission struct {
	now func() time.Duration

	mu      sync.Mutex
	limits  Limits
	bytes   int64
	waiting int
	credit  float64 // records that may be taken now
	at      time.Duration

	turn chan struct{} // holds one token: who has it works
}

func newAdmission(now func() time.Duration) *admission {
	a := &admission{now: now, turn: make(chan struct{}, 1)}
	a.turn <- struct{}{}
	return a
}

func (a *admission) configure(l Limits) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limits = l.complete()
	a.credit = min(a.credit, a.limits.Records)
	if a.at == 0 {
		a.credit = a.limits.Records
	}
}

func (a *admission) current() Limits {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.limits
}

// enter lets a request in, or says why not.
func (a *admission) enter() *refusal {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refill(); a.credit < 1 {
		return &refusal{kind: limited, message: "more records a second than this receiver takes", after: time.Second}
	}
	if a.waiting >= a.limits.Waiting {
		return &refusal{kind: busy, message: "too many requests at a time", after: time.Second}
	}
	a.waiting++
	return nil
}

func (a *admission) leave(held int64) {
	a.mu.Lock()
	a.waiting--
	a.bytes -= held
	a.mu.Unlock()
}

// hold takes n more bytes into account; false where there is no room for them.
func (a *admission) hold(n int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bytes+n > a.limits.InFlight {
		return false
	}
	a.bytes += n
	return true
}

// refill gives the records that time has earned since the last look: at most those of a second.
func (a *admission) refill() {
	now := a.now()
	if a.at == 0 || now < a.at {
		a.at = now
	}
	a.credit = min(a.limits.Records, a.credit+(now-a.at).Seconds()*a.limits.Records)
	a.at = now
}

// grant is how many of n records may be taken.
func (a *admission) grant(n int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refill()
	g := min(n, int(a.credit))
	a.credit -= float64(g)
	return g
}

// work waits for the turn; false where it does not come in time.
func (a *admission) work(ctx context.Context) bool {
	select {
	case <-a.turn:
		return true
	default:
	}
	t := time.NewTimer(a.current().Wait)
	defer t.Stop()
	select {
	case <-a.turn:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

// done gives the turn back, after a rest that keeps the work at the share of a core that it may take.
func (a *admission) done(began time.Duration) {
	core := a.current().Core
	rest := time.Duration(0)
	if core < 1 {
		rest = time.Duration(float64(a.now()-began) * (1/core - 1))
	}
	if rest < 50*time.Microsecond {
		a.turn <- struct{}{}
		return
	}
	time.AfterFunc(min(rest, time.Second), func() { a.turn <- struct{}{} })
}

// kind is why a request is refused.
type kind uint8

const (
	malformed    kind = iota
	tooLarge          // HTTP 413
	unsupported       // 415
	unauthorized      // 401
	method            // 405
	notFound          // 404
	limited           // 429
	busy              // 503
	full              // 503: no memory for the body
	interrupted       // the body did not come in full
)

// refusal is a request that is not taken, and what the sender is told.
type refusal struct {
	kind    kind
	message string
	after   time.Duration // when to try again
}

// count takes note of a refusal.
func (c *counters) count(f *refusal) {
	switch f.kind {
	case malformed:
		c.malformed.Add(1)
	case tooLarge:
		c.tooLarge.Add(1)
	case unauthorized:
		c.unauthorized.Add(1)
	case limited:
		c.rateLimited.Add(1)
	case busy:
		c.busy.Add(1)
	case full:
		c.memory.Add(1)
	case interrupted:
		c.interrupted.Add(1)
	default:
		c.unsupported.Add(1)
	}
}
