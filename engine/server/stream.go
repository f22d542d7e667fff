package server

import (
	"net/http"
	"time"

	"velo/engine/emit"
)

// events writes server-sent events. Chunks are collected and written together, so that a reader who
// is behind gets many with one write.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration // of one write
	buf     []byte
	err     error // of writing; nothing is written after it

	emitter             *emit.Emitter
	session, generation string
	sent                int
}

// newEvents begins a stream.
func newEvents(w http.ResponseWriter, timeout time.Duration) *events {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // proxies that collect would hide the timing
	w.WriteHeader(http.StatusOK)
	return &events{w: w, timeout: timeout, control: http.NewResponseController(w)}
}

// send adds a chunk.
func (e *events) send(chunk []byte) {
	e.buf = append(e.buf, "data: "...)
	e.buf = append(e.buf, chunk...)
	e.buf = append(e.buf, "\n\n"...)
}

// emit adds a chunk and tells the emitter of it.
func (e *events) emit(chunk []byte, event emit.Event) {
	e.send(chunk)
	e.record(chunk, event)
}

func (e *events) record(chunk []byte, event emit.Event) {
	if e.emitter == nil {
		return
	}
	e.emitter.Emit(emit.Record{Time: time.Now(), Request: e.session, Generation: e.generation, Index: e.sent, Event: event, Body: chunk})
	e.sent++
}

// flush writes what was collected. A reader who takes nothing for that long has gone.
func (e *events) flush() error {
	if e.err != nil || len(e.buf) == 0 {
		return e.err
	}
	_ = e.control.SetWriteDeadline(time.Now().Add(e.timeout))
	if _, e.err = e.w.Write(e.buf); e.err == nil {
		e.err = e.control.Flush()
	}
	e.buf = e.buf[:0]
	return e.err
}
