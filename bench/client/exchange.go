package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"velo/bench"
)

// Result is how a call ended, and what came of it.
type Result struct {
	End       *bench.End
	Answer    string // content and refusal
	Reasoning string // without tags
	ToolCalls string // JSON: [{"id":…,"name":…,"arguments":…}], empty if there were none; see Calls
}

// Do sends the request and follows its answer to the end. It fills r.Start, and r.Session, Parameters
// and PromptBytes where they are empty, and gives the sink r, a *bench.Conn if a connection was had,
// bench.Chunks as they come and a *bench.End, in this order. It never sends a request again, except on
// to where the server says it belongs (307, 308). When ctx ends, so does the request, whatever it is
// at; what had come by then is kept.
func (k *Call) Do(ctx context.Context, r *bench.Request, sink bench.Sink) Result {
	c := k.client
	c.inFlight.Add(1)
	defer c.inFlight.Add(-1)
	if r.Session = visible(r.Session); r.Session == "" {
		r.Session = newSession()
	}
	if r.Parameters == nil {
		r.Parameters = k.parameters
	}
	if r.PromptBytes == 0 {
		r.PromptBytes = k.bytes
	}
	x := &exchange{
		c: c, call: k, ctx: ctx, r: r, sink: sink,
		target: c.base, address: c.base.path + k.route + c.base.query,
	}
	x.end.Request = r.Number
	x.feed = func(e Event) { x.event(e) }
	x.keep = func(ch bench.Chunk) { x.chunk(ch) }
	var steps int
	x.offset, steps = c.watch.begin()
	header := x.header()
	r.Start = c.o.Clock.Now()
	var f *failure
	for hop := 0; ; hop++ {
		if f = x.open(header); f == nil {
			f = x.follow()
		}
		if f != nil || x.redirect == "" {
			break
		}
		if f = x.hop(hop); f != nil {
			break
		}
		header = x.header()
	}
	return x.conclude(f, steps)
}

// newSession makes an identity for a request.
func newSession() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// visible makes a session id fit a header field.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 127 {
			return '-'
		}
		return r
	}, s)
}

// An exchange is a request on its way and what has come back so far. Only the goroutine that called Do
// touches it.
type exchange struct {
	c    *Client
	call *Call
	ctx  context.Context
	r    *bench.Request
	sink bench.Sink

	target  *endpoint // changes when the server sends the request on
	address string    // path and query
	offset  time.Duration
	started bool // r has been given to the sink

	conn   *conn // nil where net/http carries the request
	cancel context.CancelFunc
	queue  *queue
	phases phases
	reused bool
	alone  bool          // a goroutine of its own receives
	sent   time.Duration // when the connection was there
	werr   error

	timer *time.Timer
	armed time.Duration // for when
	grace time.Duration // when to stop waiting for an end that does not matter; 0 = no limit

	begun    bool // a byte came
	first    mark // of the first byte
	read0    int32
	last     time.Duration // of the last read
	head     *head
	raw      []byte // an incomplete head
	framing  framing
	over     bool // the body is complete
	rest     bool // and more than it came
	redirect string

	body // what the answer holds
}

// open gets a connection and sends the request.
func (x *exchange) open(header []byte) *failure {
	c := x.c
	if err := context.Cause(x.ctx); err != nil {
		x.start()
		return c.cancelled(err)
	}
	if !c.measuresItself() {
		x.queue = newQueue()
		ctx, cancel := context.WithCancel(x.ctx)
		x.cancel = cancel
		x.sent = c.o.Clock.Now()
		x.alone = true
		c.readers.Add(1)
		c.fetch(ctx, x.queue, x.target.url.Scheme+"://"+x.target.authority+x.address, x.r.Session, x.call.body)
		x.start()
		return nil
	}
	x.phases = phases{bench.Unset, bench.Unset, bench.Unset}
	var k *conn
	if !c.o.NoKeepAlive {
		k = c.pool.get(x.target.origin, c.o.Clock.Now())
	}
	x.reused = k != nil
	if k == nil {
		var f *failure
		if k, f = x.dial(); f != nil {
			return f
		}
	}
	x.conn, x.queue = k, k.queue
	if x.alone = k.alone(); x.alone {
		c.readers.Add(1)
	}
	x.sent = c.o.Clock.Now()
	k.send(header, x.call.body)
	x.start()
	return nil
}

// start gives the request to the sink, once, where that delays nothing.
func (x *exchange) start() {
	if !x.started {
		x.started = true
		x.sink.Append(x.r)
	}
}

// dial makes a connection, while the sink takes the request.
func (x *exchange) dial() (*conn, *failure) {
	ctx, total := x.ctx, x.c.o.Timeout.Total
	if total > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, x.r.Start+total-x.c.o.Clock.Now(), errTotalTimeout)
		defer cancel()
	}
	type dialed struct {
		conn   *conn
		phases phases
		err    error
	}
	done := make(chan dialed, 1)
	target := x.target
	go func() {
		var d dialed
		d.conn, d.phases, d.err = x.c.dial(ctx, target)
		done <- d
	}()
	x.start()
	d := <-done
	x.phases = d.phases
	switch {
	case d.err == nil:
		return d.conn, nil
	case errors.Is(d.err, errTotalTimeout):
		return nil, x.c.timedOut("total", total)
	case errors.Is(d.err, errConnectTimeout), isCancelled(d.err), x.ctx.Err() != nil:
		return nil, x.c.cancelled(d.err)
	}
	return nil, x.c.unreachable(x.target, d.err)
}

var errTotalTimeout = errors.New("total timeout")

// header is the request's beginning, up to the empty line.
func (x *exchange) header() []byte {
	b := make([]byte, 0, 256+len(x.address)+len(x.c.header)+min(len(x.call.body), 64<<10))
	b = append(append(append(b, "POST "...), x.address...), " HTTP/1.1\r\nHost: "...)
	b = append(append(b, x.target.hostHeader...), "\r\n"...)
	if x.target.host == x.c.base.host {
		b = append(b, x.c.header...)
	} else { // another host must not learn the key
		fields := x.c.fields.Clone()
		fields.Del("Authorization")
		var s strings.Builder
		_ = fields.Write(&s)
		b = append(b, s.String()...)
	}
	b = append(append(append(b, "X-Session-Id: "...), x.r.Session...), "\r\n"...)
	b = append(b, "Accept-Encoding: identity\r\nContent-Type: application/json\r\nContent-Length: "...)
	b = append(strconv.AppendInt(b, int64(len(x.call.body)), 10), "\r\n"...)
	if x.c.o.NoKeepAlive {
		b = append(b, "Connection: close\r\n"...)
	}
	return append(b, "\r\n"...)
}

// follow takes what the queue brings until the answer is complete or cannot be.
func (x *exchange) follow() *failure {
	var b batch
	for {
		news := x.queue.take(&b)
		x.werr = news.werr
		if news.head != nil && x.head == nil {
			x.first, x.begun = b.marks[0], true
			if f := x.begin(news.head); f != nil {
				return f
			}
		}
		from := 0
		for _, m := range b.marks {
			if f := x.consume(b.bytes[from:m.end], m); f != nil {
				return f
			}
			from = m.end
		}
		x.flush()
		if x.over {
			return x.ended(nil)
		}
		if news.err != nil {
			return x.lost(news.err, news.errAt)
		}
		if x.werr != nil && x.head == nil && x.grace == 0 {
			// The server stopped listening. What it had to say may still come.
			x.grace = x.c.o.Clock.Now() + time.Second
		}
		if f, wait := x.wait(); !wait {
			return f
		}
	}
}

// lost takes the end of the connection.
func (x *exchange) lost(err error, at time.Duration) *failure {
	if context.Cause(x.ctx) != nil && !x.done {
		return x.c.cancelled(context.Cause(x.ctx))
	}
	x.last = max(x.last, at)
	if x.head == nil {
		switch {
		case x.conn == nil && !x.connected():
			if errors.Is(err, errConnectTimeout) {
				return x.c.cancelled(err)
			}
			return x.c.unreachable(x.target, err)
		case x.werr != nil && errors.Is(err, io.EOF):
			err = x.werr
		case len(x.raw) > 0:
			return malformed(fmt.Errorf("it ends within its header, after %s", quote(x.raw)))
		}
		return x.c.hungUp(err, x.target)
	}
	if x.redirect != "" {
		x.over = true
		return nil
	}
	if errors.Is(err, io.EOF) && x.framing.ends() {
		x.over = true
		return x.ended(nil)
	}
	return x.ended(err)
}

// connected tells whether net/http had a connection.
func (x *exchange) connected() bool {
	x.queue.mu.Lock()
	defer x.queue.mu.Unlock()
	return x.queue.trace.got
}

// consume takes the bytes of one read.
func (x *exchange) consume(b []byte, m mark) *failure {
	if !x.begun {
		x.begun, x.first = true, m
	}
	x.last = m.user
	if x.over {
		x.rest = x.rest || len(b) > 0
		return nil
	}
	if x.head == nil {
		x.raw = append(x.raw, b...)
		for x.head == nil {
			h, n, err := parseHead(x.raw)
			switch {
			case errors.Is(err, errHeadPart):
				return nil
			case errors.Is(err, errSpeaksTLS):
				return x.c.hungUp(err, x.target)
			case err != nil:
				return malformed(err)
			case h.status == http.StatusSwitchingProtocols:
				return malformed(errors.New("it changes to another protocol, which was not asked for"))
			}
			b, x.raw = x.raw[n:], x.raw[n:]
			if h.status/100 == 1 {
				continue
			}
			x.raw = nil
			if f := x.begin(&h); f != nil {
				return f
			}
		}
	}
	for len(b) > 0 && !x.framing.done() {
		data, rest, err := x.framing.next(b)
		if len(data) > 0 {
			if f := x.take(data, m); f != nil {
				return f
			}
		}
		if err != nil {
			return malformed(err)
		}
		b = rest
	}
	if x.framing.done() {
		x.over, x.rest = true, len(b) > 0
	}
	return nil
}

// begin takes the answer's head.
func (x *exchange) begin(h *head) *failure {
	x.head, x.grace = h, 0
	x.framing = framing{state: bodyEOF} // net/http finds the end itself
	if x.conn != nil {
		x.framing = newFraming(*h)
	}
	if (h.status == 307 || h.status == 308) && h.location != "" {
		x.redirect = h.location
		x.grace = x.c.o.Clock.Now() + grace
	} else if h.status/100 != 2 {
		x.grace = x.c.o.Clock.Now() + errorPatience
	}
	if x.redirect == "" {
		x.connection()
	}
	if x.framing.done() {
		x.over = true
	}
	return x.prepareBody(h)
}

// connection gives the sink what the connection did.
func (x *exchange) connection() {
	if x.connGiven {
		return
	}
	e := &bench.Conn{
		Request: x.r.Number, Reused: x.reused, DNS: x.phases.dns, Connect: x.phases.connect, TLS: x.phases.tls,
		Wrote: bench.Unset, FirstByte: bench.Unset,
	}
	if x.conn != nil {
		e.Remote = x.conn.remote
	} else {
		x.queue.mu.Lock()
		t := x.queue.trace
		x.queue.mu.Unlock()
		if !t.got {
			return
		}
		e.Reused, e.Remote, e.DNS, e.Connect, e.TLS = t.reused, t.remote, t.dns, t.connect, t.tls
	}
	x.connGiven = true
	if wrote := x.queue.sent(0); wrote > 0 {
		e.Wrote = wrote
	}
	if x.begun {
		e.FirstByte = x.first.user
		if k := x.kernel(x.first); k != bench.Unset {
			e.FirstByte = k
		}
	}
	if x.head != nil {
		e.Status, e.Server = x.head.status, x.head.server
	}
	x.sink.Append(e)
}

// kernel is a mark's kernel stamp in session time. A stamp that lies after the read's return is none:
// the clock was set between.
func (x *exchange) kernel(m mark) time.Duration {
	if m.kernel == 0 {
		return bench.Unset
	}
	k := time.Duration(m.kernel) - x.offset
	if k > m.user+stepBound {
		return bench.Unset
	}
	return k
}

// release gives the connection back to the pool if it can be used again, else closes it.
func (x *exchange) release() {
	if x.timer != nil {
		x.timer.Stop()
		x.timer, x.armed = nil, 0
	}
	if x.queue == nil {
		return
	}
	if x.alone {
		x.c.readers.Add(-1)
	}
	if x.conn == nil {
		x.queue.leave()
		x.cancel()
	} else if x.over && !x.rest && x.framing.done() && !x.head.close && !x.c.o.NoKeepAlive && x.queue.sent(50*time.Millisecond) > 0 {
		x.c.pool.put(x.conn, x.c.o.Clock.Now())
	} else {
		x.conn.close()
	}
	x.conn, x.queue = nil, nil
}
