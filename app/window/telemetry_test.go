//go:build !windows

package window

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/app"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"velo/bench/otlp"
	"velo/bench/otlp/stream"
	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/telemetrypage"
	"velo/ui/thread"
)

// The telemetry page is measured as the window is: a child of the benchmark opens a real window with the
// page and a real receiver behind it. The benchmark floods the receiver from its own process, and the
// child sends itself a token now and then and watches for the frame that shows it.

const heardEnv = "VELO_WINDOW_HEARD" // seconds to watch

// watched is what a child reports, milliseconds.
type watched struct {
	DelayP50, DelayP99 float64 // from the receipt of a token to the end of painting the frame that shows it
	WayP50, WayP99     float64 // from its sending to its receipt: what records wait for each other
	Delays             int
	PrepP50, PrepP99   float64 // preparing a state, off the UI thread
	ShowP50, ShowP99   float64 // putting a state on screen, on the UI thread
	PaintP50, PaintP99 float64 // painting a frame, from its first object to its last
	Frames             float64 // a second
	Records            float64 // taken a second
	Dropped            uint64
	Cores              float64 // of the child, everything together
	MiB                float64
}

// behind is a receiver as the page sees it.
type behind struct {
	console.Telemetry // what the page never asks here is nil
	*otlp.Receiver
	seen func(*otlp.Snapshot)
}

func (b behind) Settings() console.TelemetrySettings {
	return console.TelemetrySettings{On: true, HTTP: []int{4318}, Keep: time.Minute, KeepBytes: 256 << 20, For: time.Minute, Tokens: 1, Bytes: 1 << 20}
}
func (b behind) State() otlp.State           { return b.Receiver.State() }
func (b behind) Clear(streams ...stream.Key) { b.Receiver.Clear(streams...) }
func (b behind) Record([]stream.Key) error {
	return nil
}
func (b behind) Snapshot(q otlp.Query) console.TelemetrySnapshot {
	s := console.TelemetrySnapshot{Snapshot: b.Receiver.Snapshot(q)}
	b.seen(&s.Snapshot)
	return s
}

// probeKey is the stream whose tokens are watched.
var probeKey = stream.Key{Service: "probe", Conversation: "probe", Generation: "g"}

// frames notes when tokens were sent, which of them a prepared state holds, and when it was painted.
type frames struct {
	mu               sync.Mutex
	sent             []time.Time // by token
	received         []time.Time // by token, as far as states were prepared
	prepared, queued int         // tokens that the latest state holds; that the state on screen holds
	painted          int
	began            time.Time // of the frame
	delays, ways     []float64
	preps            []float64
	shows, paints    []float64
	watching         bool
}

func (f *frames) mark(first bool) func(w, h int) image.Image {
	pixel := image.NewUniform(color.Transparent)
	return func(int, int) image.Image {
		now := time.Now()
		f.mu.Lock()
		defer f.mu.Unlock()
		if first {
			f.began = now
			return pixel
		}
		if f.watching {
			f.paints = append(f.paints, ms(now.Sub(f.began)))
			for i := f.painted; i < f.queued; i++ {
				f.delays = append(f.delays, ms(now.Sub(f.received[i])))
				f.ways = append(f.ways, ms(f.received[i].Sub(f.sent[i])))
			}
		}
		f.painted = max(f.painted, f.queued)
		return pixel
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func percentile(v []float64, p float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[int(p*float64(len(v)-1))]
}

// hear opens the window, prints the receiver's address, and reports after so many seconds.
func hear(seconds int) (watched, error) {
	var out watched
	if err := probe(); err != nil {
		return out, err
	}
	keepTexturesShortly()
	r := otlp.New(otlp.Options{})
	defer r.Close()
	if err := r.Configure(otlp.Config{Enabled: true, HTTP: []string{"127.0.0.1:0"}}); err != nil {
		return out, err
	}
	url := "http://" + r.State().Listeners[0].Address
	fmt.Println(url)

	f := &frames{}
	a := app.NewWithID(ID + ".heard")
	a.Settings().SetTheme(&look.Theme{Mode: look.AlwaysDark})
	w := a.NewWindow("Velo")
	t := thread.New(fyne.Do)
	page := telemetrypage.New(telemetrypage.Params{
		Telemetry: behind{Receiver: r, seen: func(s *otlp.Snapshot) {
			for i := range s.Panels {
				if s.Panels[i].Key == probeKey {
					f.mu.Lock()
					f.prepared = min(s.Panels[i].Tokens, len(f.sent))
					for len(f.received) < f.prepared { // the receiver knows when the latest came
						f.received = append(f.received, time.Now().Add(-s.Panels[i].Age))
					}
					f.mu.Unlock()
				}
			}
		}},
		Thread: t, Copy: func(string) {}, OpenReport: func(string) {}, GoEngine: func() {}, Store: func() int64 { return 0 },
		Say: func(look.Tone, string) {}, Redraw: func() {},
	})
	first, last := canvas.NewRaster(f.mark(true)), canvas.NewRaster(f.mark(false))
	first.Resize(fyne.NewSquareSize(1))
	last.Resize(fyne.NewSquareSize(1))
	w.SetPadded(false)
	w.SetContent(container.NewStack(container.NewWithoutLayout(first), page.View, container.NewWithoutLayout(last)))
	w.Resize(fyne.NewSize(1144, 726)) // what a window of 1280×800 has for a page

	send := func() {
		f.mu.Lock()
		n := len(f.sent) + 1
		f.sent = append(f.sent, time.Now())
		f.mu.Unlock()
		body := fmt.Sprintf(`{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"probe"}}]},"scopeLogs":[{"logRecords":[`+
			`{"timeUnixNano":"%d","body":{"stringValue":"{\"choices\":[{\"delta\":{\"content\":\"w%d \"}}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":%d}}"},"attributes":[`+
			`{"key":"event","value":{"stringValue":"stream_delta"}},{"key":"request.id","value":{"stringValue":"probe"}},{"key":"generation.id","value":{"stringValue":"g"}}]}]}]}]}`,
			time.Now().UnixNano(), n, n)
		if answer, err := http.Post(url+"/v1/logs", "application/json", strings.NewReader(body)); err == nil {
			answer.Body.Close()
		}
	}
	end := make(chan struct{})
	draw := func() { // as the window's clock does it: one state at a time, none before the last is on screen
		for {
			began := time.Now()
			show, next := page.Prepare(look.Dark)
			f.mu.Lock()
			if f.watching {
				f.preps = append(f.preps, ms(time.Since(began)))
			}
			f.mu.Unlock()
			done := make(chan struct{})
			t.Do(func() {
				from := time.Now()
				f.mu.Lock()
				ready := f.prepared
				f.mu.Unlock()
				show()
				first.Refresh()
				last.Refresh()
				f.mu.Lock()
				f.queued = max(f.queued, ready)
				if f.watching {
					f.shows = append(f.shows, ms(time.Since(from)))
				}
				f.mu.Unlock()
				close(done)
			})
			select {
			case <-done:
			case <-end:
				return
			}
			time.Sleep(next - time.Since(began))
		}
	}
	a.Lifecycle().SetOnStarted(func() {
		send()
		go draw()
		go func() {
			for range time.Tick(137 * time.Millisecond) { // at every phase of the drawing
				send()
			}
		}()
		go func() {
			time.Sleep(5 * time.Second) // fonts, first painting, and the flood has begun
			f.mu.Lock()
			f.watching = true
			f.mu.Unlock()
			was, before, from := r.State().Counters, cpu(), time.Now()
			time.Sleep(time.Duration(seconds) * time.Second)
			took := time.Since(from).Seconds()
			now := r.State().Counters
			f.mu.Lock()
			f.watching = false
			out = watched{DelayP50: percentile(f.delays, 0.5), DelayP99: percentile(f.delays, 0.99), WayP50: percentile(f.ways, 0.5), WayP99: percentile(f.ways, 0.99), Delays: len(f.delays), PrepP50: percentile(f.preps, 0.5), PrepP99: percentile(f.preps, 0.99), ShowP50: percentile(f.shows, 0.5), ShowP99: percentile(f.shows, 0.99),
				PaintP50: percentile(f.paints, 0.5), PaintP99: percentile(f.paints, 0.99), Frames: float64(len(f.paints)) / took,
				Records: float64(now.Logs-was.Logs) / took, Dropped: now.Dropped - was.Dropped, Cores: (cpu() - before).Seconds() / took, MiB: rss()}
			f.mu.Unlock()
			close(end)
			fyne.Do(a.Quit)
		}()
	})
	w.ShowAndRun()
	t.Close()
	return out, nil
}

// BenchmarkTelemetry reports, for a receiver at rest and one that is flooded with 50,000 records a second:
// the time from the receipt of a token to the frame that shows it, the time on the UI thread for a state and for
// painting a frame, and what all of it costs. A software renderer paints on the CPU.
func BenchmarkTelemetry(b *testing.B) {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		b.Skip("there is no display")
	}
	const seconds = 20
	for _, c := range []struct {
		name string
		rate int
	}{{"quiet", 0}, {"flood", 50_000}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				w := watch(b, seconds, c.rate)
				for name, v := range map[string]float64{"delay-p50-ms": w.DelayP50, "delay-p99-ms": w.DelayP99, "way-p50-ms": w.WayP50, "way-p99-ms": w.WayP99, "prepare-p50-ms": w.PrepP50, "prepare-p99-ms": w.PrepP99, "show-p50-ms": w.ShowP50, "show-p99-ms": w.ShowP99,
					"paint-p50-ms": w.PaintP50, "paint-p99-ms": w.PaintP99, "frames/s": w.Frames, "records/s": w.Records, "dropped": float64(w.Dropped), "cores": w.Cores, "MiB": w.MiB} {
					b.ReportMetric(v, name)
				}
				b.ReportMetric(float64(w.Delays), "tokens")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// body is a request of 512 generation records, with the places of their times and of the numbers of their
// generations: what sends them is to cost little beside what receives them.
type body struct {
	wire      []byte
	at, round []int
}

// ready makes the bodies of 16 streams of 256 tokens.
func ready(b *testing.B) (list []body) {
	b.Helper()
	text := func(s string) *commonpb.AnyValue {
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}
	}
	sentinel := uint64(0x5eed_0000_0000_0000)
	for n := range 8 {
		var records []*logspb.LogRecord
		for i := range 512 {
			sentinel++
			event, finish := "stream_delta", "null"
			switch {
			case n == 0 && i < 16:
				event = "stream_start"
			case n == 7 && i >= 512-16:
				event, finish = "stream_end", `"stop"`
			}
			r := &logspb.LogRecord{TimeUnixNano: sentinel, Body: text(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1796000000,"model":"sim","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":` + finish + `}]}`)}
			for _, a := range [][2]string{{"event", event}, {"request.id", fmt.Sprint("sess-", i%16)}, {"generation.id", fmt.Sprintf("round-00000000-%02d", i%16)}, {"model.id", "sim"}, {"topology", "single"}} {
				r.Attributes = append(r.Attributes, &commonpb.KeyValue{Key: a[0], Value: text(a[1])})
			}
			records = append(records, r)
		}
		wire, err := proto.Marshal(&logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{
			Resource:  &resourcepb.Resource{Attributes: []*commonpb.KeyValue{{Key: "service.name", Value: text("flood")}}},
			ScopeLogs: []*logspb.ScopeLogs{{LogRecords: records}}}}})
		if err != nil {
			b.Fatal(err)
		}
		one := body{wire: wire}
		for _, r := range records {
			at := bytes.Index(wire, binary.LittleEndian.AppendUint64(nil, r.TimeUnixNano))
			if at < 0 {
				b.Fatal("a record's time is not found in its body")
			}
			one.at = append(one.at, at)
		}
		for from := 0; ; {
			at := bytes.Index(wire[from:], []byte("round-"))
			if at < 0 {
				break
			}
			from += at + len("round-")
			one.round = append(one.round, from)
		}
		list = append(list, one)
	}
	return list
}

// send posts bodies so that so many records a second come.
func send(ctx context.Context, url string, list []body, rate int) {
	began := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		time.Sleep(time.Until(began.Add(time.Duration(float64(i) * 512 / float64(rate) * 1e9))))
		one := list[i%len(list)]
		now := time.Now().UnixNano()
		for k, at := range one.at {
			binary.LittleEndian.PutUint64(one.wire[at:], uint64(now+int64(k-512)*int64(time.Second)/int64(rate)))
		}
		round := fmt.Sprintf("%08d", i/len(list))
		for _, at := range one.round {
			copy(one.wire[at:], round)
		}
		if answer, err := http.Post(url+"/v1/logs", "application/x-protobuf", bytes.NewReader(one.wire)); err == nil {
			answer.Body.Close()
		}
	}
}

// watch runs a child, and floods it with so many records a second.
func watch(b *testing.B, seconds, rate int) watched {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), heardEnv+"="+strconv.Itoa(seconds))
	var trouble strings.Builder
	cmd.Stderr = &trouble
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	var url string
	if _, err := fmt.Fscanln(pipe, &url); err != nil {
		_ = cmd.Wait()
		b.Fatalf("%v\n%s", err, trouble.String())
	}
	ctx, cancel := context.WithCancel(context.Background())
	var flood sync.WaitGroup
	if rate > 0 {
		bodies := ready(b)
		flood.Go(func() {
			time.Sleep(2 * time.Second) // the stream that is watched comes first, and has its panel
			send(ctx, url, bodies, rate)
		})
	}
	var w watched
	err = json.NewDecoder(pipe).Decode(&w)
	cancel()
	flood.Wait()
	if waitErr := cmd.Wait(); err == nil {
		err = waitErr
	}
	if err != nil {
		b.Fatalf("%v\n%s", err, trouble.String())
	}
	return w
}

// silent is a receiver that is off.
type silent struct{ console.Telemetry }

func (silent) Settings() console.TelemetrySettings { return console.TelemetrySettings{} }
func (silent) State() otlp.State                   { return otlp.State{} }

func (p *played) Telemetry() console.Telemetry { return silent{} }
