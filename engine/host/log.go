package host

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

const (
	logLines = 4096
	logLine  = 16 << 10 // bytes of a line; what is over is cut
	// How long an exit waits for a reader that may have stopped reading.
	exitPatience = time.Second
)

// Log is a queue of lines in front of a writer, standard error as a rule, that
// may stop taking them: a pipe whose reader hangs. Lines go in without waiting;
// a full queue drops and counts them, and when it is empty again one line
// says how many are missing. One goroutine writes.
type Log struct {
	to      io.Writer
	lines   chan entry
	dropped atomic.Uint64
	told    uint64 // of dropped; the writer's own
	now     func() time.Time
}

// entry is a line, or a question: flushed is closed when everything before it
// is written.
type entry struct {
	line    []byte
	flushed chan struct{}
}

// NewLog starts a queue of 4096 lines in front of w.
func NewLog(w io.Writer) *Log { return newLog(w, logLines) }

func newLog(w io.Writer, lines int) *Log {
	l := &Log{to: w, lines: make(chan entry, lines), now: time.Now}
	go l.run()
	return l
}

func (l *Log) run() {
	for e := range l.lines {
		if e.line != nil {
			_, _ = l.to.Write(e.line) // there is nowhere to say that it failed
		}
		// Once, when the reader has caught up, and not after every line of a
		// reader that is a little too slow all the time.
		if n := l.dropped.Load(); n > l.told && (len(l.lines) == 0 || e.flushed != nil) {
			_, _ = l.to.Write(l.summary(n - l.told))
			l.told = n
		}
		if e.flushed != nil {
			close(e.flushed)
		}
	}
}

func (l *Log) summary(n uint64) []byte {
	return appendLine(nil, l.now(), slog.LevelWarn, fmt.Sprintf("%d log lines were dropped: the reader of this log was too slow", n), nil)
}

// Write takes lines, for what writes to an io.Writer. It never waits and
// always succeeds.
func (l *Log) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		line = bytes.TrimRight(line, "\r\n")
		l.put(append(cut(append([]byte(nil), line[:min(len(line), logLine+1)]...)), '\n'))
	}
	return len(p), nil
}

func (l *Log) put(line []byte) {
	select {
	case l.lines <- entry{line: line}:
	default:
		l.dropped.Add(1)
	}
}

// Dropped is how many lines were dropped so far.
func (l *Log) Dropped() uint64 { return l.dropped.Load() }

// Flush waits until everything logged before it is written, or ctx ends; the
// error is then ctx's.
func (l *Log) Flush(ctx context.Context) error {
	e := entry{flushed: make(chan struct{})}
	select {
	case l.lines <- e:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-e.flushed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Exit writes what is in the queue, for a second at most, and ends the
// process. Every way out of the process but a return from main goes here.
func (l *Log) Exit(code int) {
	l.flushBriefly()
	exit(code)
}

var exit = os.Exit

func (l *Log) flushBriefly() {
	ctx, cancel := context.WithTimeout(context.Background(), exitPatience)
	defer cancel()
	_ = l.Flush(ctx)
}

// Guard is deferred at the top of a goroutine, first of its defers: a panic
// there is logged with its stack, the queue is written, and the process ends
// with code.
func (l *Log) Guard(code int) {
	p := recover()
	if p == nil {
		return
	}
	// Every line of the stack would be an event of its own.
	line := appendLine(nil, l.now(), slog.LevelError, fmt.Sprintf("panic: %v", p), []slog.Attr{slog.String("stack", string(debug.Stack()))})
	ctx, cancel := context.WithTimeout(context.Background(), exitPatience)
	defer cancel()
	select { // this one line is worth waiting for
	case l.lines <- entry{line: line}:
	case <-ctx.Done():
	}
	l.Exit(code)
}

// Handler is a slog.Handler that writes
//
//	2026-11-30T20:15:04.123Z INFO message key=value …
//
// lines into the queue, from level on.
func (l *Log) Handler(level slog.Leveler) slog.Handler { return &handler{log: l, level: level} }

type handler struct {
	log    *Log
	level  slog.Leveler
	attrs  []byte // of WithAttrs, as they are written
	prefix string // of WithGroup, with its dot
}

func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level.Level() }

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	at := r.Time
	if at.IsZero() {
		at = h.log.now()
	}
	buffer := lineBuffers.Get().(*[]byte)
	w := appendHead((*buffer)[:0], at, r.Level, r.Message)
	w = append(w, h.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		w = appendAttr(w, h.prefix, a)
		return len(w) <= logLine
	})
	w = append(cut(w), '\n')
	h.log.put(bytes.Clone(w))
	*buffer = w
	lineBuffers.Put(buffer)
	return nil
}

var lineBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 512); return &b }}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *h
	more.attrs = bytes.Clone(h.attrs)
	for _, a := range attrs {
		more.attrs = appendAttr(more.attrs, h.prefix, a)
	}
	return &more
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	more := *h
	more.prefix = h.prefix + name + "."
	return &more
}
