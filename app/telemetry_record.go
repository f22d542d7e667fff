package app

import (
	"errors"
	"fmt"
	"time"

	"velo/bench"
	"velo/bench/otlp"
	"velo/bench/otlp/stream"
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
	t.weigh(id, r)
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
	disk, err := t.weighed() // with this one: it is never in neither sum
	t.mu.Lock()
	if err == nil {
		t.disk = disk
	}
	delete(t.recordings, id)
	delete(t.written, id)
	t.recorded = append(t.recorded, o)
	t.recorded = t.recorded[max(0, len(t.recorded)-mostRecorded):]
	t.mu.Unlock()
	t.retain()
	t.console.changed(console.ChangedSessions)
	t.console.changed(console.ChangedTelemetry)
}

// weighEvery is the time between two looks at what a recording has on disk.
const weighEvery = 500 * time.Millisecond

// weigh takes note of what a recording has on disk, until it ends.
func (t *theTelemetry) weigh(id string, r *otlp.Recording) {
	tick := time.NewTicker(weighEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.Done():
			return
		case <-tick.C:
		}
		if sum, err := t.console.store.Summary(id); err == nil { // there is none before something came
			t.mu.Lock()
			t.written[id] = sum.Bytes
			t.mu.Unlock()
		}
	}
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

// Compare implements console.Telemetry.
func (t *theTelemetry) Compare(id string) ([]console.TelemetryPair, error) {
	told, err := t.console.store.Session(id)
	if err != nil {
		return nil, err
	}
	if !told.Header.Told() {
		return nil, fmt.Errorf("cannot compare the session %s with telemetry: it was not recorded from telemetry", id)
	}
	return besides(t.console.store, told, t.console.notice)
}
