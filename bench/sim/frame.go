package sim

import (
	"bytes"
	"compress/gzip"
	"strconv"
	"time"
)

// framer turns the events of a stream into writes: compression, the buffers of
// a proxy, the framing of HTTP, splitting.
type framer struct {
	*script
	s       *Scenario
	body    []byte
	events  []event
	rest    time.Duration // when the body ends
	wireEnd []int         // of each event: offset in wire behind its last byte
	cut     bool          // the last event is cut off; its frame announces more
}

// streamScript frames the events that a renderer holds. closing says that the
// connection will not be kept.
func streamScript(w *renderer, end ending, closing bool) *script {
	s := &w.reply.scenario
	f := &framer{script: &script{scenario: s.Name, end: end}, s: s,
		body: w.body, events: w.events, rest: max(w.rest, time.Duration(s.HeaderDelay)), cut: w.cut}
	if s.Fault.Kind == "silence" {
		return f.script
	}
	if n := len(f.events); n > 0 {
		f.rest = max(f.rest, f.events[n-1].due)
	}
	if s.Gzip {
		f.compress()
	}
	f.wire = make([]byte, 0, len(f.body)+16*len(f.events)+512)
	f.sends = make([]send, 0, len(f.events)+2)
	f.chunks = make([]chunk, 0, len(f.events)+2)
	f.wireEnd = make([]int, 0, len(f.events))

	f.headers(w.reply.id, closing)
	from := 0
	for _, b := range f.blocks() {
		f.block(from, b.end, b.due)
		from = b.end
	}
	f.assign()
	switch {
	case end == endKeep && f.chunked():
		f.put(f.rest, 1, "0\r\n\r\n")
		f.chunks = append(f.chunks, chunk{kind: KindEnd, bytes: 5, due: f.rest})
	case end == endKeep || end == endReset:
		f.put(f.rest, 0, "")
	}
	if end == endKeep && closing {
		f.end = endClose
	}
	return f.script
}

func (f *framer) chunked() bool { return f.s.Framing == "chunked" }

func (f *framer) headers(id string, closing bool) {
	headers := []string{"Content-Type: text/event-stream; charset=utf-8", "Cache-Control: no-cache"}
	if f.s.Gzip {
		headers = append(headers, "Content-Encoding: gzip")
	}
	if f.chunked() {
		headers = append(headers, "Transfer-Encoding: chunked")
	}
	if closing {
		headers = append(headers, "Connection: close")
	}
	due := time.Duration(f.s.HeaderDelay)
	if f.s.BufferAll {
		due = f.rest
	}
	f.putHeaders(f.s, due, headerLines(200, id, headers))
	f.chunks[0].due = time.Duration(f.s.HeaderDelay)
}

// block is a part of the body that leaves the endpoint, or the proxy in front
// of it, in one piece.
type block struct {
	end int // offset in body behind it
	due time.Duration
}

func (f *framer) blocks() []block {
	var list []block
	switch {
	case f.s.BufferAll:
		if len(f.body) > 0 {
			list = append(list, block{len(f.body), f.rest})
		}
	case f.s.BufferBytes > 0:
		from := 0
		for _, e := range f.events {
			for e.end-from >= f.s.BufferBytes {
				from += f.s.BufferBytes
				list = append(list, block{from, e.due})
			}
		}
		if from < len(f.body) {
			list = append(list, block{len(f.body), f.rest})
		}
	default:
		for _, e := range f.events {
			list = append(list, block{e.end, e.due})
		}
	}
	return list
}

// block writes body[from:to] as one frame, in one write or several.
func (f *framer) block(from, to int, due time.Duration) {
	start := len(f.wire)
	last := to == len(f.body)
	if f.chunked() {
		size := to - from
		if last && f.cut {
			size *= 2 // the half that will never come
		}
		f.wire = strconv.AppendInt(f.wire, int64(size), 16)
		f.wire = append(f.wire, "\r\n"...)
	}
	shift := len(f.wire) - from // from offsets in body to offsets in wire
	f.wire = append(f.wire, f.body[from:to]...)
	if f.chunked() && !(last && f.cut) {
		f.wire = append(f.wire, "\r\n"...)
	}
	first := len(f.wireEnd)
	for len(f.wireEnd) < len(f.events) && f.events[len(f.wireEnd)].end <= to {
		f.wireEnd = append(f.wireEnd, f.events[len(f.wireEnd)].end+shift)
	}
	delay := time.Duration(0)
	for _, at := range f.cuts(from, to, start, shift, f.events[first:len(f.wireEnd)]) {
		f.sends = append(f.sends, send{due: due + delay, end: at})
		delay += time.Duration(f.s.SplitDelay)
	}
	f.sends = append(f.sends, send{due: due + delay, end: len(f.wire)})
}

// cuts are the offsets in wire at which the write of body[from:to] is split.
func (f *framer) cuts(from, to, start, shift int, events []event) (at []int) {
	switch f.s.Split {
	case "utf8":
		for _, e := range events {
			for i := from; i < e.end; i++ {
				if f.body[i] >= 0xc0 { // the lead byte of a multi-byte character
					at = append(at, i+1+shift)
					break
				}
			}
			from = e.end
		}
	case "crlf":
		for i := from; i+1 < to; i++ {
			if f.body[i] == '\r' && f.body[i+1] == '\n' {
				at = append(at, i+1+shift)
			}
		}
	case "bytes":
		for i := start + f.s.SplitBytes; i < len(f.wire); i += f.s.SplitBytes {
			at = append(at, i)
		}
	}
	return at
}

// assign adds the events to the chunks, each complete with the write that
// carries its last byte.
func (f *framer) assign() {
	at, from := 0, 0
	for i, e := range f.events {
		f.chunks = append(f.chunks, chunk{kind: e.kind, choice: e.choice, tokens: e.tokens, bytes: e.end - from, due: e.due})
		from = e.end
		for f.sends[at].end < f.wireEnd[i] {
			at++
		}
		f.sends[at].chunks++
	}
}

// compress replaces the body by its gzip form, flushed after each event.
func (f *framer) compress() {
	var out bytes.Buffer
	z := newGzip(&out)
	events := append([]event(nil), f.events...)
	from := 0
	for i := range events {
		z.Write(f.body[from:events[i].end]) // a bytes.Buffer takes everything
		from = events[i].end
		if i == len(events)-1 && !f.cut {
			z.Close()
		} else {
			z.Flush()
		}
		events[i].end = out.Len()
	}
	f.body, f.events = out.Bytes(), events
}

func compress(body []byte) []byte {
	var out bytes.Buffer
	z := newGzip(&out)
	z.Write(body)
	z.Close()
	return out.Bytes()
}

func newGzip(out *bytes.Buffer) *gzip.Writer {
	z, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		panic("sim: gzip has no level BestSpeed: " + err.Error())
	}
	return z
}
