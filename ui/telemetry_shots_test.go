package ui

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"fyne.io/fyne/v2"

	"velo/bench/measure"
	"velo/bench/otlp"
	"velo/bench/otlp/offset"
	"velo/bench/otlp/series"
	"velo/bench/otlp/stream"
	"velo/bench/sim"
	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/telemetrypage"
)

// heard is what a real receiver has after an engine sent to it.
func heard(t *testing.T, o sim.EmitOptions) otlp.Snapshot {
	t.Helper()
	r := otlp.New(otlp.Options{})
	defer r.Close()
	if err := r.Configure(otlp.Config{Enabled: true, HTTP: []string{"127.0.0.1:0"}}); err != nil {
		t.Fatal(err)
	}
	o.URL = "http://" + r.State().Listeners[0].Address
	if _, err := sim.Emit(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	q := otlp.Query{Streams: stream.Query{Limit: 100}, Lines: &series.Query{Points: true}, Raw: 500}
	s := r.Snapshot(q)
	for i := range s.Streams {
		if len(q.Streams.Panels) < stream.MostPanels {
			q.Streams.Panels = append(q.Streams.Panels, s.Streams[i].Key)
		}
	}
	return r.Snapshot(q)
}

// listening are the listeners of the default settings.
func listening() []otlp.Listener {
	return []otlp.Listener{{Protocol: "gRPC", Wanted: "127.0.0.1:4317", Address: "127.0.0.1:4317"}, {Protocol: "HTTP", Wanted: "127.0.0.1:4318", Address: "127.0.0.1:4318"},
		{Protocol: "HTTP", Wanted: "127.0.0.1:9381", Address: "127.0.0.1:9381"}}
}

// withTelemetry puts what a receiver has into the fake console.
func (f *fake) withTelemetry(s otlp.Snapshot) *fake {
	s.State.Wanted, s.State.Listeners = true, listening()
	f.telemetry.settings = telemetrySettings()
	f.telemetry.settings.On = true
	f.telemetry.snapshot = console.TelemetrySnapshot{Snapshot: s}
	for _, e := range s.Engines {
		f.telemetry.snapshot.Sources = append(f.telemetry.snapshot.Sources, console.TelemetrySource{Name: e.Service, Engines: []series.Engine{e}})
	}
	return f
}

func telemetrySettings() console.TelemetrySettings {
	return console.TelemetrySettings{GRPC: 4317, HTTP: []int{4318, 9381}, Keep: 15 * time.Minute, KeepBytes: 256 << 20,
		Back: time.Minute, For: 10 * time.Minute, Tokens: 1_000_000, Bytes: 256 << 20}
}

// recording is a recording of all streams that runs.
func recording() otlp.RecordingState {
	r := otlp.RecordingState{ID: "0191aaaaaaaa00000001", Running: true, Elapsed: 83 * time.Second, Bounds: otlp.RecordOptions{For: 10 * time.Minute, Tokens: 1_000_000, Bytes: 256 << 20}}
	r.TapeCounts = stream.TapeCounts{Streams: 12, Running: 4, Tokens: 48_213, Bytes: 3 << 20}
	return r
}

// bothSides are requests that were measured on both sides.
func bothSides() (pairs []offset.Pair) {
	for i := range 8 {
		pairs = append(pairs, offset.Pair{Session: fmt.Sprintf("velo-0191aaaaaaaa-%06d", i), Service: "gb10_inference", Low: -time.Duration(i+1) * 310 * time.Microsecond,
			High: time.Duration(9-i) * 420 * time.Microsecond, ServerTTFT: 0.0812 + 0.001*measure.Num(i), ClientTTFT: 0.0949 + 0.0013*measure.Num(i)})
	}
	return pairs
}

func TestTelemetryScreenshots(t *testing.T) {
	dir := os.Getenv("VELO_SCREENSHOTS")
	if dir == "" {
		t.Skip("VELO_SCREENSHOTS names no folder")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	some := heard(t, sim.EmitOptions{Rate: 400, Records: 1600, Streams: 4, Tokens: 700, Usage: true})
	many := heard(t, sim.EmitOptions{Rate: 10000, Records: 30000, Streams: 64, Tokens: 300, Drop: 0.01})
	many.State.Counters.RateLimited, many.State.Counters.Dropped, many.State.Counters.Busy = 812, 41_227, 93
	many.State.Counters.Malformed = 3
	for i := range 40 {
		c := otlp.Call{Service: "shop", Name: "chat", Model: "Qwen3-4B-Instruct-2507", Began: time.Date(2026, 11, 30, 12, 0, 40-i, 0, time.UTC).UnixNano(),
			Duration: 1.2 + measure.Num(i)/10, TTFT: 0.05 + measure.Num(i)/1000, Prompt: 812 + measure.Num(31*i), Completion: 64 + measure.Num(i), Finish: "stop"}
		if i == 3 {
			c.Finish, c.Completion, c.TTFT, c.Error = "", measure.Missing, measure.Missing, "429: too many requests"
		}
		many.Calls = append(many.Calls, c)
	}
	many.State.Counters.Spans = 40
	states := map[string]func() *fake{
		"telemetry-off": func() *fake {
			f := newFake().full()
			f.telemetry.settings = telemetrySettings()
			return f
		},
		"telemetry-listening": func() *fake {
			s := otlp.Snapshot{}
			s.State.KeptBound = 256 << 20
			return newFake().full().withTelemetry(s)
		},
		"telemetry-taken": func() *fake {
			f := newFake().full().withTelemetry(otlp.Snapshot{})
			f.telemetry.snapshot.State.KeptBound = 256 << 20
			l := f.telemetry.snapshot.State.Listeners
			l[1].Address, l[1].Error, l[1].Owner = "", "cannot listen on 127.0.0.1:4318: another program has the port", "otelcol (process 4711)"
			l[1].Advice = "The port belongs to otelcol (process 4711): end it, or choose another port here and in the emitter. It is tried again until then."
			return f
		},
		"telemetry-streams": func() *fake { return newFake().full().withTelemetry(some) },
		"telemetry-flood":   func() *fake { return newFake().full().withTelemetry(many) },
		"telemetry-recording": func() *fake {
			f := newFake().full().withTelemetry(some)
			f.telemetry.snapshot.Recordings = []otlp.RecordingState{recording()}
			f.telemetry.snapshot.Deaf = "Velo's engine was started while nothing listened here. Restart it, and its streams come."
			return f
		},
		"telemetry-engines": func() *fake { return newFake().full().withTelemetry(some) },
		"telemetry-calls":   func() *fake { return newFake().full().withTelemetry(many) },
		"telemetry-metrics": func() *fake { return newFake().full().withTelemetry(some) },
		"telemetry-records": func() *fake { return newFake().full().withTelemetry(some) },
		"telemetry-sides": func() *fake {
			f := newFake().full().withTelemetry(some)
			f.telemetry.snapshot.Pairs, f.telemetry.snapshot.PairsTotal = bothSides(), 8
			return f
		},
		"telemetry-recorded": func() *fake {
			f := newFake().full().withTelemetry(some)
			r := recording()
			r.ID, r.Running, r.Reason, r.Headless = "0191aaaaaaaa00000002", false, otlp.ByTime, 2
			f.telemetry.snapshot.Recordings = []otlp.RecordingState{recording()}
			f.telemetry.snapshot.Recorded = []console.TelemetryRecorded{{RecordingState: r, Title: "Telemetry of qwen3-32b-fp8", Ended: time.Date(2026, 11, 30, 9, 26, 0, 0, time.UTC)}}
			a := offset.Alignment{Pairs: bothSides(), Unmatched: 4, Median: 0.0137}
			a.Low, a.High, a.Bounds.Pairs = -310*time.Microsecond, 840*time.Microsecond, 8
			f.telemetry.pairs = []console.TelemetryPair{{ID: "one", Title: "Coding workload", Alignment: a}}
			return f
		},
		"telemetry-settings": func() *fake {
			f := newFake().full().withTelemetry(some)
			f.telemetry.settings.Host = "0.0.0.0"
			return f
		},
	}
	parts := map[string]string{"telemetry-engines": telemetrypage.Engines, "telemetry-calls": telemetrypage.Calls, "telemetry-metrics": telemetrypage.Metrics, "telemetry-records": telemetrypage.Records,
		"telemetry-sides": telemetrypage.BothSides, "telemetry-recorded": telemetrypage.Recordings, "telemetry-settings": telemetrypage.Settings}
	for _, mode := range []look.Mode{look.AlwaysDark, look.AlwaysLite} {
		for _, size := range []fyne.Size{{Width: 1280, Height: 800}, {Width: 1920, Height: 1080}} {
			for state, made := range states {
				g := newStage(t, made(), size.Width, size.Height)
				g.shell.SetMode(mode)
				g.shell.Show(TelemetryPage)
				if p := parts[state]; p != "" {
					g.shell.telemetry.Open(p)
				}
				g.pump()
				if state == "telemetry-recorded" {
					g.draw()
					g.shell.telemetry.Compare("0191aaaaaaaa00000002")
					g.pump()
				}
				g.shell.telemetry.Themed()
				g.shot(dir, fmt.Sprintf("%s-%s-%d", state, mode, int(size.Width)))
			}
		}
	}
}
