//go:build !windows

package window

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/app"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"

	velo "velo/app"
	"velo/bench"
	"velo/bench/measure"
	"velo/bench/runner"
	"velo/ui"
	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/thread"
)

// The cost of the window is measured in a process of its own: a child of the benchmark opens a real
// window on DISPLAY, shows what it is told for a while, and reports its CPU time and memory. What is
// shown was computed before, so that nothing but the window is measured. With a software renderer
// (the renderer is reported) painting a frame is part of it.

const (
	childEnv = "VELO_WINDOW_COST"  // scene:number:seconds; the number is that of workers, of an empty window repaints a second
	beganEnv = "VELO_WINDOW_BEGAN" // when the child was started, ns since 1970
	heapEnv  = "VELO_WINDOW_HEAP"  // a file for a profile of the child's heap
)

// cost is what a child reports.
type cost struct {
	Cores    float64   // CPU time over wall time
	RSS      float64   // MiB at the end
	Heap     float64   // MiB of it that the Go heap holds after a collection
	Renderer string    // by OpenGL
	Paint    float64   // milliseconds from the start of the process to the end of the first painting
	Switches []float64 // milliseconds from the wish to see a page to the end of its painting
	Tokens   int       // that streamed
	Errors   stampErrors
}

// stampErrors are what velo calibrate prints, seconds.
type stampErrors struct {
	Width        float64 `json:"truth_width_p99_s"`
	Kernel, User struct {
		P50 float64 `json:"p50_s"`
		P99 float64 `json:"p99_s"`
	}
	Missing int `json:"missing"`
}

// calibrate measures the error of stamps in this process and prints it.
func calibrate(streams, seconds int) error {
	if code := velo.Main([]string{"calibrate", "--streams", strconv.Itoa(streams), "--duration", fmt.Sprint(seconds, "s"), "--json"}, nil); code != 0 {
		return fmt.Errorf("calibrate ended with %d", code)
	}
	return nil
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "sim" { // calibrate starts the scripted endpoint as its own program
		os.Exit(velo.Main(os.Args[1:], nil))
	}
	if scene := os.Getenv(childEnv); scene != "" {
		c, err := play(scene) // on the main goroutine, as Fyne wants it
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_ = json.NewEncoder(os.Stdout).Encode(c)
		os.Exit(0)
	}
	if seconds := os.Getenv(heardEnv); seconds != "" {
		n, err := strconv.Atoi(seconds)
		var w watched
		if err == nil {
			w, err = hear(n)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_ = json.NewEncoder(os.Stdout).Encode(w)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func play(scene string) (cost, error) {
	var c cost
	part := strings.Split(scene, ":")
	workers, err := strconv.Atoi(part[1])
	if err != nil {
		return c, err
	}
	seconds, err := strconv.Atoi(part[2])
	if err != nil {
		return c, err
	}
	name, measured := strings.CutSuffix(part[0], "+calibrate")
	part[0] = name
	if name == "headless" {
		return c, calibrate(workers, seconds)
	}
	if err := probe(); err != nil {
		return c, err
	}
	keepTexturesShortly()
	a := app.NewWithID(ID + ".cost")
	w := a.NewWindow("Velo")
	t := thread.New(fyne.Do)
	keepStill(a.Settings())
	show := newShowing()
	var begin, after func()
	var failed error
	var chat, hour *streamed
	if part[0] == "empty" {
		a.Settings().SetTheme(&look.Theme{Mode: look.AlwaysDark})
		show.in(w, canvas.NewRectangle(look.Dark.Background))
		w.Resize(fyne.NewSize(1280, 800))
		begin = func() { repaint(w, workers) }
	} else {
		p := newPlayed(workers, part[0])
		chat, hour = p.chat, p.hour
		a.Settings().SetTheme(&look.Theme{})
		loadFonts()
		s := ui.New(ui.Params{Console: p, Window: w, Thread: t, Quit: a.Quit, SlowPaint: bySoftware(paints), OpenURL: func(string) error { return nil }})
		show.in(w, w.Content())
		begin = func() {
			s.Begin()
			switch part[0] {
			case "live", "quiet", "runhour":
				s.Show(ui.RunPage)
			case "chat", "chathour":
				s.Show(ui.ChatPage)
			}
		}
		if part[0] == "switch" {
			after = func() {
				for range 3 {
					for _, id := range []string{ui.StartPage, ui.ChatPage, ui.RunPage, ui.SessionsPage, ui.SettingsPage, ui.SuitesPage} {
						c.Switches = append(c.Switches, show.switching(func() { s.Show(id) }))
						time.Sleep(300 * time.Millisecond)
					}
				}
			}
		}
	}
	a.Lifecycle().SetOnStarted(func() {
		begin()
		go func() {
			<-show.painted
			if at, err := strconv.ParseInt(os.Getenv(beganEnv), 10, 64); err == nil {
				c.Paint = ms(time.Since(time.Unix(0, at)))
			}
			time.Sleep(4 * time.Second) // fonts and first painting
			if after != nil {
				after()
			}
			before, from := cpu(), time.Now()
			if measured {
				failed = calibrate(workers, seconds)
			} else {
				time.Sleep(time.Duration(seconds) * time.Second)
			}
			c.Cores = (cpu() - before).Seconds() / time.Since(from).Seconds()
			c.RSS, c.Renderer = rss(), paints
			if chat == nil {
				chat = hour
			}
			if chat != nil {
				chat.mu.Lock()
				c.Tokens = chat.total
				chat.mu.Unlock()
			}
			if file := os.Getenv(heapEnv); file != "" {
				if err := heapProfile(file); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			c.Heap = mib(m.HeapAlloc)
			fyne.Do(a.Quit)
		}()
	})
	w.ShowAndRun()
	t.Close()
	return c, failed
}

// showing watches the window being painted.
type showing struct {
	mark    *canvas.Raster // the last object of the window
	painted chan struct{}  // of every painting that paints the mark
}

func newShowing() *showing {
	s := &showing{painted: make(chan struct{}, 1)}
	pixel := image.NewUniform(color.Transparent)
	s.mark = canvas.NewRaster(func(int, int) image.Image {
		select {
		case s.painted <- struct{}{}:
		default:
		}
		return pixel
	})
	s.mark.Resize(fyne.NewSquareSize(1))
	return s
}

// in puts the mark above a window's content.
func (s *showing) in(w fyne.Window, content fyne.CanvasObject) {
	w.SetPadded(false)
	w.SetContent(container.NewStack(content, container.NewWithoutLayout(s.mark)))
}

// switching does something on the UI thread and gives the time until what follows was painted.
func (s *showing) switching(do func()) float64 {
	var from time.Time
	fyne.DoAndWait(func() {
		from = time.Now()
		do()
		s.mark.Refresh()
		select {
		case <-s.painted: // of what was before
		default:
		}
	})
	<-s.painted
	return ms(time.Since(from))
}

// heapProfile writes what the heap holds after a collection, and says how much of it the runtime keeps.
func heapProfile(file string) error {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Fprintf(os.Stderr, "heap in use %.1f MiB, idle %.1f, released %.1f, next collection at %.1f, stacks %.1f, others %.1f, collections %d\n",
		mib(m.HeapInuse), mib(m.HeapIdle), mib(m.HeapReleased), mib(m.NextGC), mib(m.StackSys), mib(m.GCSys+m.OtherSys+m.MSpanSys), m.NumGC)
	runtime.GC()
	runtime.ReadMemStats(&m)
	fmt.Fprintf(os.Stderr, "live after a collection %.1f MiB\n", mib(m.HeapAlloc))
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return pprof.WriteHeapProfile(f)
}

func mib(n uint64) float64 { return float64(n) / (1 << 20) }

// repaint paints a window that does not change some times a second: what a frame costs by itself.
func repaint(w fyne.Window, hertz int) {
	if hertz == 0 {
		return
	}
	go func() {
		for range time.Tick(time.Second / time.Duration(hertz)) {
			fyne.Do(w.Content().Refresh)
		}
	}()
}

func cpu() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// rss is the resident memory in MiB; NaN where the system does not say.
func rss() float64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return math.NaN()
	}
	var size, resident float64
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		return math.NaN()
	}
	return resident * float64(os.Getpagesize()) / (1 << 20)
}

// played is a console whose run was recorded before.
type played struct {
	console.Console // what the window never asks here is nil
	state           console.RunState
	frames          []measure.Snapshot
	from            time.Time
	chat            *streamed

	hour *streamed // whose measures are those of the run
	mu   sync.Mutex
	told func(string)
}

// noEngine is an engine that never runs.
type noEngine struct{ console.Engine }

func (noEngine) Status() console.EngineStatus {
	return console.EngineStatus{State: console.EngineStopped}
}
func (noEngine) Command(console.EngineConfig) string { return "" }

// noChats are chats of which there are none.
type noChats struct{ console.Chats }

func (noChats) List(string) ([]console.Chat, error) { return nil, nil }
func (noChats) Live() console.ChatLive              { return console.ChatLive{} }
func (noChats) Fills() []int                        { return nil }

// noPreferences are those that nobody ever set.
type noPreferences struct{ console.Preferences }

func (noPreferences) Presets() []console.Preset                   { return nil }
func (noPreferences) ReasoningWays() []console.Choice             { return nil }
func (noPreferences) ParameterKinds() []console.ParameterKind     { return nil }
func (noPreferences) NamedModels(string) ([]console.Model, error) { return nil, nil }
func (noPreferences) Limits() console.Limits                      { return console.Limits{} }
func (noPreferences) Categories() ([]console.Category, error)     { return nil, nil }

// newPlayed records a minute of a run: workers that decode at about 40 tokens/s each, in turns of
// 256 tokens.
func newPlayed(workers int, scene string) *played {
	p := &played{from: time.Now()}
	spec := console.RunSpec{Workers: workers, Quiet: scene == "quiet"}
	p.state = console.RunState{Active: true, SessionID: "played", Title: "Played run", Endpoint: "Workstation", Model: "model",
		Drawing: bench.DrawingLive, Spec: spec,
		Progress: runner.Progress{State: runner.Running, Step: 1, Steps: 4, Section: "Prose", Title: "Tell of a harbour", Total: 400}}
	switch scene {
	case "idle", "switch":
		p.state = console.RunState{}
		return p
	case "chat":
		p.state = console.RunState{}
		p.chat = newStreamed(time.Second, 1<<20, 1)
		p.chat.changed = func() { p.change(console.ChangedChats) }
		return p
	case "chathour":
		p.state = console.RunState{}
		p.chat = newStreamed(90*time.Second, 6000, 60)
		p.chat.changed = func() { p.change(console.ChangedChats) }
		return p
	case "runhour":
		p.hour = newStreamed(90*time.Second, 360_000, 1)
		p.hour.changed = func() {}
		return p
	}
	live := measure.NewLive(measure.Options{})
	live.Append(&bench.Header{Schema: bench.SchemaVersion, ID: "played"})
	type stream struct {
		request, left int
		next          time.Duration
	}
	streams := make([]stream, workers)
	number := 0
	for now := time.Duration(0); now < time.Minute; now += 250 * time.Millisecond {
		for w := range streams {
			s := &streams[w]
			for s.next <= now {
				if s.left == 0 {
					if number >= workers {
						live.Append(&bench.End{Request: s.request, Status: bench.OK, By: bench.EndDone, End: s.next, Close: s.next, Stamp: bench.UserStamp,
							Usage: &bench.Usage{Prompt: 64, Completion: 256, Reasoning: -1, Cached: -1, Accepted: -1, Rejected: -1}})
					}
					s.request, s.left = number, 256
					number++
					live.Append(&bench.Request{Number: s.request, Worker: w, Planned: s.next, Start: s.next})
					s.next += 180 * time.Millisecond
				}
				live.Append(bench.Chunks{{Request: s.request, User: s.next, Kernel: bench.Unset, Usage: int32(257 - s.left), Exact: -1, Text: "token "}})
				s.left--
				s.next += time.Duration(22+(number*7+s.left*13)%7) * time.Millisecond
			}
		}
		if now >= time.Minute-2*time.Second { // full lines, and little memory of our own
			p.frames = append(p.frames, live.Snapshot(now))
		}
	}
	return p
}

func (p *played) Run() console.RunState {
	s := p.state
	if p.hour != nil {
		l := p.hour.Live()
		s.Progress.Elapsed, s.Snapshot = l.Elapsed, l.Snapshot // it stays a run: there is no report of it
		return s
	}
	if len(p.frames) > 0 {
		s.Progress.Elapsed = time.Since(p.from)
		s.Snapshot = p.frames[int(s.Progress.Elapsed/(250*time.Millisecond))%len(p.frames)]
	}
	return s
}

func (p *played) Settings() console.Settings {
	return console.Settings{Theme: "dark", Page: ui.SuitesPage}
}
func (p *played) SaveSettings(console.Settings) {}
func (p *played) Endpoints() []console.Endpoint {
	return []console.Endpoint{{ID: "b", Name: "Built-in", BuiltIn: true}}
}
func (p *played) SelectedEndpoint() string         { return "b" }
func (p *played) SelectEndpoint(string)            {}
func (p *played) Suites() []console.Suite          { return nil }
func (p *played) SuiteText(string) ([]byte, error) { return nil, nil }
func (p *played) Status() console.Status           { return console.Status{} }
func (p *played) Version() string                  { return "" }
func (p *played) Recent() []string                 { return nil }
func (p *played) Changes(f func(string)) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = f
	return func() {}
}

func (p *played) change(what string) {
	p.mu.Lock()
	f := p.told
	p.mu.Unlock()
	if f != nil {
		f(what)
	}
}
func (p *played) Close() error                         { return nil }
func (p *played) Sessions() ([]console.Session, error) { return nil, nil }
func (p *played) Engine() console.Engine               { return noEngine{} }
func (p *played) Chats() console.Chats {
	if p.chat != nil {
		return p.chat
	}
	return noChats{}
}
func (p *played) Preferences() console.Preferences             { return noPreferences{} }
func (p *played) FindServers(context.Context) []console.Server { return nil }
func (p *played) Models(context.Context, string) ([]string, error) {
	return []string{"model"}, nil
}

// BenchmarkWindow reports, for each scene, CPU cores and memory, and the difference to an empty window
// of the same toolkit measured in the same run: one at rest, and one that is repainted as often as the
// scene. The second difference is what the page costs; the rest is the price of a frame, which a
// software renderer pays on the CPU whatever is shown. Scenes: idle (Suites page, no run), live with 1
// and 16 workers (four drawings a second), quiet with 16 (one a second), a chat that streams, a chat
// and a run after an hour's worth of tokens.
func BenchmarkWindow(b *testing.B) {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		b.Skip("there is no display")
	}
	const seconds = 10
	empty := map[int]cost{} // by repaints a second
	of := func(hertz int) cost {
		if _, ok := empty[hertz]; !ok {
			empty[hertz] = measureScene(b, fmt.Sprintf("empty:%d:%d", hertz, seconds))
		}
		return empty[hertz]
	}
	for _, scene := range []struct {
		name    string
		workers int
		hertz   int
		seconds int
	}{{"idle", 1, 0, seconds}, {"live", 1, 4, seconds}, {"live", 16, 4, seconds}, {"quiet", 16, 1, seconds}, {"chat", 1, 4, seconds},
		{"runhour", 1, 4, 42}, {"chathour", 1, 4, 52}} {
		b.Run(fmt.Sprintf("%s-%d", scene.name, scene.workers), func(b *testing.B) {
			for b.Loop() {
				rest, frames := of(0), of(scene.hertz)
				c := measureScene(b, fmt.Sprintf("%s:%d:%d", scene.name, scene.workers, scene.seconds))
				if !strings.HasSuffix(scene.name, "hour") { // these come 90 times as fast as they would
					b.ReportMetric(c.Cores, "cores")
					b.ReportMetric(c.Cores-rest.Cores, "cores-over-rest")
					b.ReportMetric(c.Cores-frames.Cores, "cores-over-frames")
				} else {
					b.ReportMetric(float64(c.Tokens), "tokens")
				}
				b.ReportMetric(c.RSS, "MiB")
				b.ReportMetric(c.RSS-rest.RSS, "MiB-over-rest")
				b.ReportMetric(c.Heap, "MiB-heap")
				b.ReportMetric(0, "ns/op") // a scene lasts as long as it is told to
			}
		})
	}
	b.Logf("painted by %s", of(0).Renderer)
}

// BenchmarkStart reports the time from the start of the process to the end of the window's first
// painting, over a console that has everything in memory, and that of an empty window; and how long it
// takes from the wish to see another page to the end of its painting.
func BenchmarkStart(b *testing.B) {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		b.Skip("there is no display")
	}
	for b.Loop() {
		var empty, first []float64
		for range 3 {
			empty = append(empty, measureScene(b, "empty:0:1").Paint)
			first = append(first, measureScene(b, "idle:1:1").Paint)
		}
		switches := measureScene(b, "switch:1:1").Switches
		b.ReportMetric(percentile(empty, 0.5), "ms-to-empty-paint")
		b.ReportMetric(percentile(first, 0.5), "ms-to-first-paint")
		b.ReportMetric(percentile(switches, 0.5), "ms-switch-p50")
		b.ReportMetric(percentile(switches, 1), "ms-switch-max")
		b.ReportMetric(0, "ns/op")
	}
}

// BenchmarkAccuracy reports the error of stamps (as velo calibrate does: 16 streams of 100 tokens a
// second) in a process without a window, and in one whose window draws a run of 16 workers four times a
// second meanwhile.
func BenchmarkAccuracy(b *testing.B) {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		b.Skip("there is no display")
	}
	for _, scene := range []string{"headless", "live"} {
		b.Run(scene, func(b *testing.B) {
			for b.Loop() {
				c := measureScene(b, scene+"+calibrate:16:10").Errors
				b.ReportMetric(c.Kernel.P50*1e6, "µs-kernel-p50")
				b.ReportMetric(c.Kernel.P99*1e6, "µs-kernel-p99")
				b.ReportMetric(c.User.P50*1e6, "µs-user-p50")
				b.ReportMetric(c.User.P99*1e6, "µs-user-p99")
				b.ReportMetric(c.Width*1e6, "µs-width-p99")
				b.ReportMetric(float64(c.Missing), "missing")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

func measureScene(b *testing.B, scene string) cost {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+scene, fmt.Sprintf("%s=%d", beganEnv, time.Now().UnixNano()))
	var report strings.Builder
	cmd.Stderr = &report
	// What a window starts beside itself, as a message bus of its own, may keep the pipes open.
	cmd.WaitDelay = 2 * time.Second
	out, err := cmd.Output()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		b.Fatalf("%s: %v\n%s", scene, err, report.String())
	}
	var c cost
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &c); err != nil {
		b.Fatalf("%s: %v in %q", scene, err, out)
	}
	if len(lines) > 1 {
		if err := json.Unmarshal(lines[0], &c.Errors); err != nil {
			b.Fatalf("%s: %v in %q", scene, err, out)
		}
	}
	return c
}
