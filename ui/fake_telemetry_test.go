package ui

import (
	"slices"
	"sync"

	"velo/bench/otlp"
	"velo/bench/otlp/stream"
	"velo/ui/console"
)

// fakeTelemetry is a receiver that holds what a test puts in.
type fakeTelemetry struct {
	fake *fake

	mu          sync.Mutex
	settings    console.TelemetrySettings
	snapshot    console.TelemetrySnapshot
	pairs       []console.TelemetryPair
	queries     []otlp.Query
	token       string
	cleared     int
	clearedOnly []stream.Key
	records     [][]stream.Key
	stopped     []string
	fail        error
	receiver    *otlp.Receiver // a real one whose state is shown; nil = what the test put in
}

var _ console.Telemetry = (*fakeTelemetry)(nil)

func (f *fake) Telemetry() console.Telemetry { return &f.telemetry }

func (t *fakeTelemetry) lock() func() { t.mu.Lock(); return t.mu.Unlock }

func (t *fakeTelemetry) Settings() console.TelemetrySettings {
	defer t.lock()()
	return t.settings
}

func (t *fakeTelemetry) SaveSettings(s console.TelemetrySettings, token *string) error {
	t.mu.Lock()
	if t.fail != nil {
		defer t.mu.Unlock()
		return t.fail
	}
	if token != nil {
		t.token, s.HasToken = *token, *token != ""
	}
	t.settings = s
	t.snapshot.State.Wanted = s.On
	t.mu.Unlock()
	t.fake.change(console.ChangedTelemetry)
	return nil
}

func (t *fakeTelemetry) Disk() console.TelemetryDisk {
	defer t.lock()()
	return t.snapshot.Disk
}

func (t *fakeTelemetry) FreePort(from int) int {
	defer t.lock()()
	for p := from; ; p++ {
		if p != t.settings.GRPC && !slices.Contains(t.settings.HTTP, p) {
			return p
		}
	}
}

func (t *fakeTelemetry) State() otlp.State {
	if t.receiver != nil {
		return t.receiver.State()
	}
	defer t.lock()()
	return t.snapshot.State
}

func (t *fakeTelemetry) Snapshot(q otlp.Query) console.TelemetrySnapshot {
	defer t.lock()()
	t.queries = append(t.queries, q)
	if t.receiver != nil {
		return console.TelemetrySnapshot{Snapshot: t.receiver.Snapshot(q)}
	}
	s := t.snapshot
	s.Panels = nil
	for _, p := range t.snapshot.Panels {
		if slices.Contains(q.Streams.Panels, p.Key) {
			s.Panels = append(s.Panels, p)
		}
	}
	if q.Raw == 0 {
		s.Raw = nil
	}
	if q.Calls == 0 {
		s.Calls = nil
	}
	if q.Lines == nil {
		s.Lines = nil
	}
	return s
}

func (t *fakeTelemetry) Clear(streams ...stream.Key) {
	defer t.lock()()
	if len(streams) == 0 {
		t.cleared++
	}
	t.clearedOnly = append(t.clearedOnly, streams...)
}

func (t *fakeTelemetry) Record(streams []stream.Key) error {
	defer t.lock()()
	t.records = append(t.records, streams)
	return t.fail
}

func (t *fakeTelemetry) StopRecording(id string) { defer t.lock()(); t.stopped = append(t.stopped, id) }

func (t *fakeTelemetry) Compare(string) ([]console.TelemetryPair, error) {
	defer t.lock()()
	return t.pairs, t.fail
}
