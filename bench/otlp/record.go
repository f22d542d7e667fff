package otlp

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"velo/bench"
	"velo/bench/otlp/offset"
	"velo/bench/otlp/stream"
)

// RecordOptions say what is recorded and for how long.
type RecordOptions struct {
	Streams []stream.Key  // none = all that run and all that come
	Back    time.Duration // also streams that had a record within this time before the press, whole
	For     time.Duration // ends by itself after so long; 0 = 10 min
	Tokens  int           // ends by itself after so many; 0 = 1,000,000
	Bytes   int64         // ends by itself at about so many bytes of events; 0 = 256 MiB
	Title   string        // "" = what was recorded and when

	Environment bench.Environment // of this machine
	Drawing     string            // what the window does meanwhile; bench.DrawingLive, …

	// Sink takes the events. Append is called by one goroutine, at least once a second while there is
	// something: what a crash can lose is the last second. If the sink has a method Size() int64, that
	// is what Bytes bounds.
	Sink bench.Sink
}

// Reasons for which a recording ended.
const (
	ByUser   = "stopped"
	ByTime   = "its time was over"
	ByTokens = "its bound of tokens was reached"
	ByBytes  = "its bound of bytes was reached"
	ByClose  = "the receiver was closed"
	ByEnd    = "all its streams have ended"
)

// RecordingState is how far a recording is.
type RecordingState struct {
	ID      string // of the session
	Running bool
	Reason  string // why it ended
	Elapsed time.Duration
	Bounds  RecordOptions // with what was left open filled in; Sink is nil
	stream.TapeCounts
	Empty bool // nothing came: the sink got no event
}

// Recording is a recording that runs. The session's clock is the emitter's: its zero is the earliest
// record, its times are those of the records.
type Recording struct {
	receiver *Receiver
	options  RecordOptions
	began    time.Duration
	tape     *stream.Tape
	stop     chan string
	done     chan struct{}
	once     sync.Once

	mu    sync.Mutex
	state RecordingState
	open  bool // the header was written
}

// pullEvery is the time between two writes to the sink.
const pullEvery = 500 * time.Millisecond

// Record begins a recording.
func (r *Receiver) Record(o RecordOptions) (*Recording, error) {
	if o.Sink == nil {
		return nil, errors.New("cannot record: there is nowhere to put the session")
	}
	if o.Back < 0 {
		o.Back = 0
	}
	if o.For <= 0 {
		o.For = 10 * time.Minute
	}
	if o.Tokens <= 0 {
		o.Tokens = 1_000_000
	}
	if o.Bytes <= 0 {
		o.Bytes = 256 << 20
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errors.New("cannot record: the receiver is closed")
	}
	if len(r.recordings) >= 16 {
		return nil, errors.New("cannot record: 16 recordings run already; stop one of them")
	}
	now := r.clock.now()
	rec := &Recording{receiver: r, options: o, began: now, stop: make(chan string, 1), done: make(chan struct{})}
	rec.state = RecordingState{ID: bench.NewID(time.Unix(0, r.clock.wall(now))), Running: true, Bounds: o}
	rec.state.Bounds.Sink = nil
	r.hub.lock()
	rec.tape = r.hub.streams.Tape(o.Streams, now-o.Back)
	r.hub.mu.Unlock()
	r.recordings = append(r.recordings, rec)
	go rec.run()
	return rec, nil
}

// Stop ends the recording and returns when its session is whole.
func (rec *Recording) Stop() RecordingState { return rec.finish(ByUser) }

func (rec *Recording) finish(reason string) RecordingState {
	rec.once.Do(func() { rec.stop <- reason })
	<-rec.done
	return rec.State()
}

// Done is closed when the recording has ended.
func (rec *Recording) Done() <-chan struct{} { return rec.done }

// State is how far it is.
func (rec *Recording) State() RecordingState {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	s := rec.state
	if s.Running {
		s.Elapsed = rec.receiver.clock.now() - rec.began
	}
	return s
}

func (rec *Recording) run() {
	defer close(rec.done)
	t := time.NewTicker(pullEvery)
	defer t.Stop()
	for {
		reason := ""
		select {
		case reason = <-rec.stop:
		case <-t.C:
		}
		now := rec.receiver.clock.now()
		h := rec.receiver.hub
		h.lock()
		var events []bench.Event
		var end time.Duration
		if reason == "" {
			events = rec.tape.Pull(now, false)
			reason = rec.bound(now)
		}
		if reason != "" {
			more, last := rec.tape.Close(now)
			events, end = append(events, more...), last
		}
		counts := rec.tape.Counts()
		h.mu.Unlock()
		rec.write(events, counts)
		if reason != "" {
			rec.close(reason, end, counts)
			return
		}
	}
}

// bound tells why the recording has to end, "" where it need not.
func (rec *Recording) bound(now time.Duration) string {
	c := rec.tape.Counts()
	size := c.Bytes
	if s, ok := rec.options.Sink.(interface{ Size() int64 }); ok {
		size = s.Size()
	}
	switch {
	case now-rec.began >= rec.options.For:
		return ByTime
	case c.Tokens >= rec.options.Tokens:
		return ByTokens
	case size >= rec.options.Bytes:
		return ByBytes
	case len(rec.options.Streams) > 0 && c.Streams > 0 && c.Streams >= len(rec.options.Streams) && c.Running == 0:
		return ByEnd
	}
	return ""
}

func (rec *Recording) write(events []bench.Event, c stream.TapeCounts) {
	if len(events) > 0 && !rec.open {
		rec.open = true
		rec.options.Sink.Append(rec.header(c))
		// At once, so that a recording that a crash cuts off says it too.
		rec.options.Sink.Append(&bench.Note{Text: "recorded from telemetry: all times are of the emitter's clock. " +
			"The trust panel is about a measuring client; here there was none."})
	}
	for _, e := range events {
		rec.options.Sink.Append(e)
	}
	rec.mu.Lock()
	rec.state.TapeCounts = c
	rec.mu.Unlock()
}

func (rec *Recording) header(c stream.TapeCounts) *bench.Header {
	anchor, _ := rec.tape.Anchor()
	h := &bench.Header{Schema: bench.SchemaVersion, ID: rec.state.ID, Anchor: time.Unix(0, anchor).UTC(), Title: rec.options.Title,
		Environment: rec.options.Environment, Drawing: rec.options.Drawing,
		Endpoint: bench.Endpoint{Name: "telemetry", Model: strings.Join(c.Models, ", "), Server: strings.Join(c.Services, ", ")}}
	if h.Title == "" {
		h.Title = "Telemetry"
		if h.Endpoint.Model != "" {
			h.Title += " of " + h.Endpoint.Model
		}
	}
	extra := map[string]string{}
	for k, v := range h.Environment.Extra {
		extra[k] = v
	}
	extra[bench.RecordedFromTelemetry] = "times are the emitter's, of its records; TTFT is the engine's own, without the network"
	h.Environment.Extra = extra
	return h
}

// clocks says what is known of the emitters' clocks: a session holds no times of the receiver, so that later
// nobody could tell.
func (rec *Recording) clocks(services []string) (texts []string) {
	h := rec.receiver.hub
	h.lock()
	bounds := h.join.Bounds()
	h.mu.Unlock()
	for _, s := range services {
		b := bounds[s]
		if said := b.String(); said != "" {
			texts = append(texts, fmt.Sprintf("%s, %s: %s; %d requests measured on both sides, %d records", s, offset.Said, said, b.Pairs, b.Records))
		}
	}
	return texts
}

func (rec *Recording) close(reason string, end time.Duration, c stream.TapeCounts) {
	if end == bench.Unset {
		end = 0
	}
	if rec.open {
		note := func(n int, format string) {
			if n > 0 {
				rec.options.Sink.Append(&bench.Note{At: end, Text: fmt.Sprintf(format, n)})
			}
		}
		note(c.Headless, "the start of %d streams was not seen: they have no TTFT")
		note(c.Clockless, "the records of %d streams had no time: theirs is the receiver's, and is not to be compared with that of the others")
		for _, text := range rec.clocks(c.Services) {
			rec.options.Sink.Append(&bench.Note{At: end, Text: text})
		}
		note(c.Late, "%d chunks came when later ones had been written: they are left out")
		rec.options.Sink.Append(&bench.Finish{At: end, State: bench.Done, Reason: reason})
	}
	rec.mu.Lock()
	rec.state.Running, rec.state.Reason, rec.state.Empty = false, reason, !rec.open
	rec.state.Elapsed = rec.receiver.clock.now() - rec.began
	rec.mu.Unlock()
	r := rec.receiver
	r.mu.Lock()
	for i, x := range r.recordings {
		if x == rec {
			r.recordings = append(append([]*Recording(nil), r.recordings[:i]...), r.recordings[i+1:]...)
			break
		}
	}
	r.mu.Unlock()
}
