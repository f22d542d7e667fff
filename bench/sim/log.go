package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"
)

// Write is the truth about one chunk of one stream.
type Write struct {
	// Stream numbers the requests in the order in which they were read, from 1.
	// The reply's id ends in it.
	Stream int64 `json:"stream"`
	// Conn numbers the connections: requests of one connection share it.
	Conn int64 `json:"conn"`
	// Session and ID are the request's X-Session-Id and X-Request-Id, or "".
	Session string `json:"session,omitempty"`
	ID      string `json:"id,omitempty"`
	// Scenario is the name of the scenario that answered.
	Scenario string `json:"scenario,omitempty"`
	// Chunk numbers the events of the body from 0; the headers are -1.
	Chunk int `json:"chunk"`
	// Kind is one of the Kind constants.
	Kind string `json:"kind"`
	// Choice is the choice that the chunk belongs to.
	Choice int `json:"choice,omitempty"`
	// Tokens is the number of tokens of text in the chunk.
	Tokens int `json:"tokens"`
	// Bytes of the event, without the framing of HTTP.
	Bytes int `json:"bytes"`
	// Parts is the number of write system calls that carried bytes of the chunk.
	Parts int `json:"parts"`
	// Request is when the request was fully read: CLOCK_REALTIME, ns.
	Request int64 `json:"request"`
	// Due is when the schedule wanted the chunk: ns since Request.
	Due int64 `json:"due"`
	// Before and After are CLOCK_REALTIME in ns just before and just after the
	// write system call that carried the last byte of the chunk.
	Before int64 `json:"before"`
	After  int64 `json:"after"`
	// MonoBefore and MonoAfter are the same two moments on the monotonic clock:
	// ns since the request was read.
	MonoBefore int64 `json:"mono_before"`
	MonoAfter  int64 `json:"mono_after"`
}

// append writes the JSON form, as encoding/json does at a fifth of its cost.
func (w *Write) append(b []byte) []byte {
	number := func(name string, v int64) {
		b = append(b, name...)
		b = strconv.AppendInt(b, v, 10)
	}
	text := func(name, v string) {
		if v != "" {
			b = append(b, name...)
			b = appendString(b, v)
		}
	}
	number(`{"stream":`, w.Stream)
	number(`,"conn":`, w.Conn)
	text(`,"session":`, w.Session)
	text(`,"id":`, w.ID)
	text(`,"scenario":`, w.Scenario)
	number(`,"chunk":`, int64(w.Chunk))
	b = append(b, `,"kind":`...)
	b = appendString(b, w.Kind)
	if w.Choice != 0 {
		number(`,"choice":`, int64(w.Choice))
	}
	number(`,"tokens":`, int64(w.Tokens))
	number(`,"bytes":`, int64(w.Bytes))
	number(`,"parts":`, int64(w.Parts))
	number(`,"request":`, w.Request)
	number(`,"due":`, w.Due)
	number(`,"before":`, w.Before)
	number(`,"after":`, w.After)
	number(`,"mono_before":`, w.MonoBefore)
	number(`,"mono_after":`, w.MonoAfter)
	return append(b, "}\n"...)
}

// maxLogLine bounds a line of a log that is read.
const maxLogLine = 1 << 20

// ReadLog reads a log that Options.Log wrote. The lines of a stream are in
// order; streams stand in the order of their ends. Empty lines are skipped. On
// an error the writes before the bad line are returned with it.
func ReadLog(r io.Reader) ([]Write, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLogLine)
	var writes []Write
	for number := 1; lines.Scan(); number++ {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		var w Write
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		err := decoder.Decode(&w)
		if err == nil && decoder.More() {
			err = fmt.Errorf("more than one JSON value")
		}
		if err == nil && (w.Kind == "" || w.Stream == 0) {
			err = fmt.Errorf("stream and kind are missing: is this a log of the endpoint?")
		}
		if err != nil {
			return writes, fmt.Errorf("cannot read log: line %d: %w", number, err)
		}
		writes = append(writes, w)
	}
	if err := lines.Err(); err != nil {
		return writes, fmt.Errorf("cannot read log: %w", err)
	}
	return writes, nil
}

// logger writes the log on a goroutine of its own, a stream at a time, so that
// no write to a client waits for it.
type logger struct {
	out  *bufio.Writer
	done chan struct{}

	mu    sync.Mutex
	more  *sync.Cond
	queue []*stream
	ended bool
	err   error
}

func newLogger(w io.Writer) *logger {
	l := &logger{out: bufio.NewWriterSize(w, 256<<10), done: make(chan struct{})}
	l.more = sync.NewCond(&l.mu)
	go l.run()
	return l
}

func (l *logger) put(s *stream) {
	l.mu.Lock()
	l.queue = append(l.queue, s)
	l.mu.Unlock()
	l.more.Signal()
}

func (l *logger) run() {
	defer close(l.done)
	var writes []Write
	var text []byte
	for {
		l.mu.Lock()
		for len(l.queue) == 0 && !l.ended {
			l.more.Wait()
		}
		batch := l.queue
		l.queue = nil
		l.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, s := range batch {
			s.mu.Lock() // ended inside it, so this waits for that only
			writes = s.writes(writes[:0])
			s.mu.Unlock()
			for i := range writes {
				text = writes[i].append(text[:0])
				if _, err := l.out.Write(text); err != nil {
					l.fail(err)
					break
				}
			}
		}
		if err := l.out.Flush(); err != nil {
			l.fail(err)
		}
	}
}

func (l *logger) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = fmt.Errorf("cannot write the log: %w", err)
	}
}

// close writes what is queued and says whether all of it was written.
func (l *logger) close() error {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.more.Signal()
	<-l.done
	return l.err
}
