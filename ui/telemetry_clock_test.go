package ui

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"velo/bench/otlp"
	"velo/bench/otlp/stream"
	"velo/ui/telemetrypage"
)

// machineClock is a clock that a test sets.
type machineClock struct {
	mu              sync.Mutex
	mono, wall, nap time.Duration
}

func (c *machineClock) pass(mono, wall, nap time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mono, c.wall, c.nap = c.mono+mono, c.wall+wall, c.nap+nap
}

var noonOfTheTest = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func (c *machineClock) clocks() otlp.Clocks {
	get := func(f func() time.Duration) time.Duration { c.mu.Lock(); defer c.mu.Unlock(); return f() }
	return otlp.Clocks{
		Now:    func() time.Time { return noonOfTheTest.Add(get(func() time.Duration { return c.wall })) },
		Since:  func(time.Time) time.Duration { return get(func() time.Duration { return c.mono }) },
		Asleep: func() time.Duration { return get(func() time.Duration { return c.nap }) },
	}
}

// TestTelemetryOutlivesSleepAndClockJumps: a real receiver with a clock that the test sets, behind the page. After a
// sleep the age of the data has it in, after the wall clock was set nothing moves; both are told, the receiver
// goes on, and the stream with it.
func TestTelemetryOutlivesSleepAndClockJumps(t *testing.T) {
	clock := &machineClock{}
	r := otlp.New(otlp.Options{Clocks: clock.clocks()})
	defer r.Close()
	if err := r.Configure(otlp.Config{Enabled: true, HTTP: []string{"127.0.0.1:0"}, Streams: stream.Options{Keep: 24 * time.Hour}}); err != nil {
		t.Fatal(err)
	}
	url := "http://" + r.State().Listeners[0].Address
	token := 0
	send := func() {
		t.Helper()
		token++
		clock.pass(100*time.Millisecond, 100*time.Millisecond, 0)
		event := "stream_delta"
		if token == 1 {
			event = "stream_start"
		}
		body := fmt.Sprintf(`{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"engine"}}]},"scopeLogs":[{"logRecords":[`+
			`{"timeUnixNano":"%d","body":{"stringValue":"{\"choices\":[{\"delta\":{\"content\":\"word%d \"}}]}"},"attributes":[`+
			`{"key":"event","value":{"stringValue":%q}},{"key":"request.id","value":{"stringValue":"s"}},{"key":"generation.id","value":{"stringValue":"g"}}]}]}]}]}`,
			noonOfTheTest.UnixNano()+int64(token)*1e8, token, event)
		a, err := http.Post(url+"/v1/logs", "application/json", strings.NewReader(body))
		if err != nil || a.StatusCode != http.StatusOK {
			t.Fatalf("the records were answered with %v, %v", a, err)
		}
		a.Body.Close()
	}
	jumps := func(n int) {
		t.Helper()
		for end := time.Now().Add(time.Minute); len(r.State().Jumps) < n; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d jumps were noticed, want %d", len(r.State().Jumps), n)
			}
		}
	}
	for range 4 {
		send()
	}
	f := newFake()
	f.telemetry.receiver = r
	f.telemetry.settings.On = true
	g := onTelemetry(t, f)
	see := func(part string) {
		g.shell.telemetry.Open(part)
		clock.pass(2*time.Second, 2*time.Second, 0) // what is shown seldom is due
		g.shell.ticker.round()
		g.pump()
		g.shell.ticker.round()
		g.pump()
		g.draw()
	}
	see(telemetrypage.Streams)
	g.wants("word4", "listening")

	clock.pass(0, time.Hour, time.Hour)
	jumps(1)
	see(telemetrypage.BothSides)
	g.wants("this machine slept 1:00:00", "listening")
	if age := r.State().LastData; age < time.Hour {
		t.Errorf("after an hour of sleep the last data are %v old", age)
	}
	send()
	see(telemetrypage.Streams)
	g.wants("word5", "listening")

	before := r.State().LastData
	clock.pass(0, -3*time.Hour, 0)
	jumps(2)
	see(telemetrypage.BothSides)
	g.wants("2 jumps of a clock", "the wall clock was set by −3h0m0s")
	if age := r.State().LastData; age < before || age > before+time.Minute {
		t.Errorf("setting the wall clock made the age of the data %v, it was %v", age, before)
	}
	for range 3 {
		send()
	}
	see(telemetrypage.Streams)
	g.wants("word8", "listening")
	s := r.Snapshot(otlp.Query{})
	if len(s.Streams) != 1 || s.Streams[0].Tokens == 0 || s.Streams[0].Rate < 0 || s.Streams[0].Lost != 0 || s.Rate < 0 {
		t.Errorf("the stream is %+v", s.Streams)
	}
}
