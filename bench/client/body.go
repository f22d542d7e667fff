package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"velo/bench"
)

// grace is how long the end of the body is waited for after [DONE], to use the connection again.
const grace = 500 * time.Millisecond

// errorPatience is how long the words of an HTTP error are waited for.
const errorPatience = 2 * time.Second

// maxBody bounds an answer that is not a stream.
const maxBody = 64 << 20

// body is what an answer holds, as far as it has come.
type body struct {
	feed func(Event)       // x.event; made once
	keep func(bench.Chunk) // x.chunk

	connGiven bool
	decoder   *decoder
	kind      bodyKind
	collected []byte // of a body that is not a stream
	parser    Parser
	think     thinkSplitter
	now       mark // of the read that is looked at

	end     bench.End
	done    bool          // [DONE] came
	doneAt  time.Duration //
	finAt   time.Duration // when the finish reason came
	failed  *failure      // what an error event says
	failAt  time.Duration
	bad     string // the first malformed event
	closing bool   // the stream has ended; an event that comes now had no empty line behind it
	carry   int    // exact tokens of events without text
	lastRd  int32  // the last read with bytes of the body
	eventRd int32  // the last read with a chunk event
	inRead  int    // chunk events in it

	arena     []bench.Chunk // memory for chunks
	pending   int           // where those begin that the sink has not got
	chunks    int
	unstamped bool // there is a chunk without kernel stamp

	answer    strings.Builder
	reasoning strings.Builder
	calls     []toolCall
}

// bodyKind is what a body turned out to be.
type bodyKind uint8

const (
	kindUnknown bodyKind = iota
	kindStream
	kindWhole // JSON, a page, an error's text
)

// prepareBody readies for the body.
func (x *exchange) prepareBody(h *head) *failure {
	if x.redirect != "" {
		return nil
	}
	x.end.RetryAfter = retryAfter(h.retryAfter, time.Now())
	x.lastRd, x.eventRd, x.read0 = -1, -1, x.first.read
	if h.status/100 != 2 {
		x.kind = kindWhole
	}
	if h.encoding != "" {
		x.end.Encoding = h.encoding
		d, err := newDecoder(h.encoding)
		if err != nil {
			return &failure{bench.Failed, "malformed", err.Error()}
		}
		x.decoder = d
	}
	return nil
}

// take takes bytes of the body that came with one read.
func (x *exchange) take(b []byte, m mark) *failure {
	if x.redirect != "" {
		return nil
	}
	x.now = m
	x.end.Bytes += int64(len(b))
	if m.read != x.lastRd {
		x.lastRd = m.read
		x.end.Reads++
	}
	if x.decoder != nil {
		out, err := x.decoder.feed(b)
		if f := x.content(out); f != nil {
			return f
		}
		if err != nil {
			return malformed(fmt.Errorf("its %s does not decode: %w", x.end.Encoding, err))
		}
		return nil
	}
	return x.content(b)
}

// content takes decoded bytes of the body.
func (x *exchange) content(b []byte) *failure {
	if x.kind == kindUnknown {
		// What it is its first byte tells better than its Content-Type: servers send errors and whole
		// answers as event streams, and streams as anything.
		x.collected = append(x.collected, b...)
		start := bytes.TrimLeft(bytes.TrimPrefix(x.collected, []byte(byteOrderMark)), " \t\r\n")
		if len(start) == 0 && len(x.collected) < 64<<10 {
			return nil
		}
		if len(start) > 0 && (start[0] == '{' || start[0] == '[' || start[0] == '<') {
			x.kind = kindWhole
			return nil
		}
		x.kind = kindStream
		b, x.collected = x.collected, nil
	}
	if x.kind == kindWhole {
		if len(x.collected)+len(b) > maxBody {
			return malformed(fmt.Errorf("it is not a stream, and larger than %d MB", maxBody>>20))
		}
		x.collected = append(x.collected, b...)
		return nil
	}
	if err := x.parser.Feed(b, x.feed); err != nil {
		return malformed(err)
	}
	return nil
}

// event takes one event of the stream.
func (x *exchange) event(e Event) {
	data := bytes.TrimSpace(e.Data)
	if string(data) == "[DONE]" {
		if !x.done {
			x.done, x.doneAt = true, x.now.user
			x.grace = x.now.user + grace
		}
		return
	}
	x.end.Events++
	if len(data) == 0 {
		x.end.Silent++
		return
	}
	wrong := string(e.Name) == "error"
	d, ok := scanChunk(data)
	if !ok {
		var err error
		if d, err = decodeChunk(data); err != nil && !wrong {
			if x.closing { // the end of the stream cut it off
				x.end.Events--
				return
			}
			x.end.Malformed++
			if x.bad == "" {
				x.bad = fmt.Sprintf("%s (%v)", quote(data), err)
			}
			return
		}
	}
	x.delta(&d)
	if wrong || d.Failed {
		x.fail(data)
	}
}

// fail takes an error that came in place of an answer, or in the middle of one. The end of the body is
// waited for only so long.
func (x *exchange) fail(data []byte) {
	if x.failed != nil {
		return
	}
	message := x.c.message(data)
	if message == "" {
		message = "it gives no reason"
	}
	x.failAt = x.now.user
	x.failed = &failure{bench.Failed, "in-stream", "the server reports an error within its answer: " + message + "; look at its log"}
	x.grace = x.now.user + grace
}

// delta takes what one event says.
func (x *exchange) delta(d *delta) {
	if d.HasUsage {
		u := d.Usage
		x.end.Usage = &u
	}
	if d.HasTiming {
		t := d.Timings
		x.end.Timings = &t
	}
	if x.done { // nothing can follow [DONE] but numbers
		x.end.Silent++
		return
	}
	if d.Finish != "" {
		x.end.Finish = d.Finish
		if x.finAt == 0 {
			x.finAt = x.now.user
		}
	}
	tool := ""
	if len(d.Calls) > 0 {
		tool = d.toolText()
		x.joinCalls(d.Calls)
	}
	if d.Content == "" && d.Reasoning == "" && d.Refusal == "" && tool == "" {
		x.end.Silent++
		x.carry += max(0, d.Exact)
		return
	}
	if x.now.read != x.eventRd {
		x.eventRd, x.inRead = x.now.read, 0
	}
	if x.inRead++; x.inRead == 2 {
		x.end.Multi++
	}
	c := bench.Chunk{
		Request: x.r.Number, Read: x.now.read - x.read0, User: x.now.user, Kernel: x.kernel(x.now),
		Usage: -1, Exact: -1,
	}
	if d.HasUsage && d.Choices > 0 {
		c.Usage = int32(d.Usage.Completion)
	}
	if d.Exact >= 0 {
		c.Exact, x.carry = int32(d.Exact+x.carry), 0
	}
	give := func(channel bench.Channel, text string) {
		if text == "" {
			return
		}
		c.Channel, c.Text = channel, text
		switch {
		case !x.c.o.ThinkTags:
			x.chunk(c)
		case channel == bench.Content:
			x.think.split(c, x.keep)
		default:
			x.think.flush(x.keep)
			x.chunk(c)
		}
		if c.Exact > 0 {
			c.Exact = 0 // counted with the first
		}
	}
	give(bench.Reasoning, d.Reasoning)
	give(bench.Content, d.Content)
	give(bench.Refusal, d.Refusal)
	give(bench.Tool, tool)
}

// chunk keeps a chunk for the sink.
func (x *exchange) chunk(c bench.Chunk) {
	if len(x.arena) == cap(x.arena) {
		waiting := x.arena[x.pending:]
		x.arena = append(make([]bench.Chunk, 0, max(16, 2*len(waiting))), waiting...)
		x.pending = 0
	}
	x.arena = append(x.arena, c)
	x.chunks++
	x.unstamped = x.unstamped || c.Kernel == bench.Unset
	switch c.Channel {
	case bench.Reasoning:
		x.reasoning.WriteString(c.Text)
	case bench.Content, bench.Refusal:
		x.answer.WriteString(c.Text)
	}
}

// flush gives the sink the chunks that have come.
func (x *exchange) flush() {
	if n := len(x.arena); n > x.pending {
		x.sink.Append(bench.Chunks(x.arena[x.pending:n:n]))
		x.pending = n
	}
}

// joinCalls puts pieces of tool calls together.
func (x *exchange) joinCalls(pieces []toolCall) {
	for _, p := range pieces {
		i := len(x.calls) - 1
		for i >= 0 && x.calls[i].Index != p.Index {
			i--
		}
		if i < 0 {
			x.calls = append(x.calls, toolCall{Index: p.Index})
			i = len(x.calls) - 1
		}
		if x.calls[i].ID == "" { // servers that repeat it repeat the same
			x.calls[i].ID = p.ID
		}
		x.calls[i].Name += p.Name
		x.calls[i].Arguments += p.Arguments
	}
}

// ended says how an answer came out that has been received as far as it goes. err is why that is not
// its proper end.
func (x *exchange) ended(err error) *failure {
	x.now.user = x.last
	if x.redirect != "" {
		return nil
	}
	if x.decoder != nil {
		out, bad := x.decoder.end()
		x.decoder = nil
		if f := x.content(out); f != nil {
			return f
		}
		if bad != nil && err == nil {
			err = bad
		}
	}
	if x.kind == kindStream {
		x.closing = true
		if bad := x.parser.Close(x.feed); bad != nil {
			return malformed(bad)
		}
		x.think.flush(x.keep)
	}
	if x.head.status/100 != 2 {
		return x.c.refused(x.head, x.collected, x.target.url.Scheme+"://"+x.target.authority+x.address)
	}
	if x.kind == kindWhole {
		return x.whole(err)
	}
	how := "the stream ended without a finish reason or [DONE]"
	if err != nil && !x.done {
		how = "the connection was lost before the stream had ended"
	}
	switch {
	case x.failed != nil:
		return x.failed
	case x.chunks == 0 && x.end.Malformed > 0:
		return malformed(errors.New("an event of its stream is " + x.bad))
	case err == nil && !x.done && x.end.Events == 0 && x.parser.Comments == 0 && x.end.Bytes > 0:
		return malformed(fmt.Errorf("it is called a stream, but there is no event in its %d bytes", x.end.Bytes))
	case !x.done && x.end.Finish == "":
		return &failure{bench.Truncated, "truncated", how + ": look at the log of the server and of proxies before it"}
	case x.chunks == 0:
		return &failure{bench.Empty, "empty", "the server ended the answer without a token: check the prompt, max_tokens and the model's chat template"}
	}
	return nil
}

// whole takes a body that was not streamed.
func (x *exchange) whole(err error) *failure {
	data := bytes.TrimSpace(bytes.TrimPrefix(x.collected, []byte(byteOrderMark)))
	if webPage(x.head.contentType, data) {
		return &failure{bench.Failed, "html", isWebPage}
	}
	d, bad := decodeAnswer(data)
	if bad != nil {
		if err != nil {
			return &failure{bench.Truncated, "truncated", "the connection was lost before the answer was complete: look at the log of the server and of proxies before it"}
		}
		return malformed(fmt.Errorf("it is not a stream of events but %s", quote(data)))
	}
	if d.Failed {
		x.fail(data)
		return x.failed
	}
	if d.HasUsage {
		x.end.Usage = &d.Usage
	}
	if d.HasTiming {
		x.end.Timings = &d.Timings
	}
	if x.end.Finish = d.Finish; d.Finish != "" {
		x.finAt = x.last
	}
	x.answer.WriteString(d.Content + d.Refusal)
	x.reasoning.WriteString(d.Reasoning)
	x.joinCalls(d.Calls)
	return &failure{bench.NotStreaming, "not-streaming", "the server sent the answer as a whole, not as a stream: turn streaming on there, or in the proxy before it"}
}

// conclude closes the exchange and tells the sink.
func (x *exchange) conclude(f *failure, steps int) Result {
	now := x.c.o.Clock.Now
	e := &x.end
	if f != nil && x.kind == kindStream {
		x.think.flush(x.keep)
	}
	if x.queue != nil {
		x.connection()
	}
	x.flush()
	e.Close = x.last
	if !x.over {
		e.Close = now()
	}
	x.release()
	if x.decoder != nil {
		x.decoder.stop()
	}
	e.Status, e.By, e.End = bench.OK, bench.EndEOF, e.Close
	if f != nil {
		e.Status, e.Class, e.Error = f.status, f.class, f.text
	}
	switch {
	case e.Status == bench.Stopped || e.Status == bench.TimedOut:
		e.By = bench.EndCancel
	case e.Status == bench.Failed:
		e.By = bench.EndError
		if f == x.failed {
			e.End = x.failAt
		}
	case x.done:
		e.By, e.End = bench.EndDone, x.doneAt
	case e.Finish != "":
		e.By, e.End = bench.EndFinish, x.finAt
	}
	e.Comments = x.parser.Comments
	e.ClockStep = x.c.watch.end(steps)
	e.Stamp = bench.KernelStamp
	if e.ClockStep || x.unstamped || x.chunks == 0 && (!x.begun || x.kernel(x.first) == bench.Unset) {
		e.Stamp = bench.UserStamp
	}
	x.sink.Append(e)
	r := Result{End: e, Answer: x.answer.String(), Reasoning: x.reasoning.String()}
	if x.c.o.ThinkTags {
		r.Reasoning = withoutTags.Replace(r.Reasoning)
	}
	if len(x.calls) > 0 {
		r.ToolCalls = callsJSON(x.calls)
	}
	return r
}

// callsJSON writes tool calls as JSON.
func callsJSON(calls []toolCall) string {
	list := make([]ToolCall, len(calls))
	for i, c := range calls {
		list[i] = ToolCall{c.ID, c.Name, c.Arguments}
	}
	b, _ := json.Marshal(list)
	return string(b)
}
