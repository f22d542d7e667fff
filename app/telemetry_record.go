package app

import (
	"errors"
	"fmt"
	"time"

	"velo/bench"
	"velo/bench/otlp"
	"velo/bench/otlp/offset"
	"velo/bench/otlp/stream"
	"velo/store"
	"velo/ui/console"
)

// Record implements console.Telemetry.
func (t *theTelemetry) Record(streams []stream.Key) error {
	rec := &recording{open: func(h *bench.Header) (recorder, error) {
		to, err := t.console.store.Record(h)
		if err != nil {
			return nil, err
		}
		return to, nil
	}}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errors.New("cannot record: the program is closing")
	}
	s := t.settings
	o := otlp.RecordOptions{Streams: streams, Back: s.Back, For: s.For, Tokens: s.Tokens, Bytes: s.Bytes,
		Environment: environment(), Drawing: bench.DrawingLive, Sink: rec}
	if len(streams) == 1 {
		o.Title = "Telemetry, one stream"
		if c := streams[0].Conversation; c != "" {
			o.Title = "Telemetry of " + c
		}
	}
	r, err := t.receiver.Record(o)
	if err != nil {
		return err
	}
	id := r.State().ID
	t.recordings[id] = r
	t.kept.Add(1)
	go t.keep(id, r, rec, o.Title)
	go t.console.changed(console.ChangedTelemetry)
	return nil
}

// keep waits for the end of a recording and makes its session whole.
func (t *theTelemetry) keep(id string, r *otlp.Recording, rec *recording, title string) {
	defer t.kept.Done()
	<-r.Done()
	o := console.TelemetryRecorded{RecordingState: r.State(), Title: title, Ended: time.Now()}
	if o.Title == "" {
		o.Title = "Telemetry"
	}
	if err := rec.close(); err != nil {
		o.Error = "The recording could not be kept: " + err.Error()
		t.console.notice(o.Error)
	} else if !o.Empty {
		t.console.noteHeadline(id)
		if sum, err := t.console.store.Summary(id); err == nil {
			o.Title = sum.Title
		}
	}
	t.mu.Lock()
	delete(t.recordings, id)
	t.recorded = append(t.recorded, o)
	t.recorded = t.recorded[max(0, len(t.recorded)-mostRecorded):]
	t.mu.Unlock()
	t.console.changed(console.ChangedSessions)
	t.console.changed(console.ChangedTelemetry)
}

// StopRecording implements console.Telemetry.
func (t *theTelemetry) StopRecording(id string) {
	t.mu.Lock()
	r := t.recordings[id]
	t.mu.Unlock()
	if r != nil {
		r.Stop()
	}
}

// Bounds of what a recording is compared with: clocks of two machines may differ by minutes, and
// sessions are read whole.
const (
	compareSlack = 10 * time.Minute
	mostCompared = 20
)

// Compare implements console.Telemetry.
func (t *theTelemetry) Compare(id string) ([]console.TelemetryPair, error) {
	st := t.console.store
	mine, err := st.Summary(id)
	if err != nil {
		return nil, err
	}
	told, err := st.Session(id)
	if err != nil {
		return nil, err
	}
	if told.Header.Environment.Extra[otlp.Recorded] == "" {
		return nil, fmt.Errorf("cannot compare the session %s with telemetry: it was not recorded from telemetry", id)
	}
	all, err := st.Sessions()
	if err != nil {
		return nil, err
	}
	var out []console.TelemetryPair
	read := 0
	for _, s := range all {
		if s.ID == id || !overlaps(s, mine) || read == mostCompared {
			continue
		}
		client, err := st.Session(s.ID)
		if err != nil {
			t.console.notice(fmt.Sprintf("The session %s could not be read back: %v", s.ID, err))
			continue
		}
		if client.Header.Environment.Extra[otlp.Recorded] != "" {
			continue
		}
		read++
		if a := offset.Align(told, client); len(a.Pairs) > 0 {
			out = append(out, console.TelemetryPair{ID: s.ID, Title: s.Title, Alignment: a})
		}
	}
	return out, nil
}

// overlaps tells whether two sessions ran at the same time, as far as clocks of two machines say.
func overlaps(a, b store.Summary) bool {
	return a.Began.Before(b.Began.Add(b.Duration+compareSlack)) && b.Began.Before(a.Began.Add(a.Duration+compareSlack))
}
