package ui

import (
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"velo/bench/runner"
	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/thread"
)

// stage is a window of the test driver over a fake console. What would go to the UI thread waits in
// a queue until pump runs it on the test's goroutine.
type stage struct {
	t      *testing.T
	fake   *fake
	shell  *Shell
	window fyne.Window
	queue  chan func()
	thread *thread.Thread
	opened []string // by OpenURL
	quit   int
	later  []func() // given to After
}

func newStage(t *testing.T, f *fake, width, height float32) *stage {
	t.Helper()
	test.NewTempApp(t)
	g := &stage{t: t, fake: f, queue: make(chan func(), 4096)}
	g.thread = thread.New(func(f func()) { g.queue <- f })
	g.window = fyne.CurrentApp().NewWindow("Velo")
	f.settings.Width, f.settings.Height = width, height
	g.shell = New(Params{Console: f, Window: g.window, Thread: g.thread, Quit: func() { g.quit++ },
		OpenURL: func(p string) error { g.opened = append(g.opened, p); return nil },
		After: func(_ time.Duration, f func()) func() bool {
			g.later = append(g.later, f)
			n := len(g.later) - 1
			return func() bool { g.later[n] = nil; return true }
		}})
	g.window.Resize(fyne.NewSize(width, height))
	g.pump()
	t.Cleanup(func() {
		g.shell.ticker.stop()
		g.thread.Wait()
		g.window.Close()
	})
	return g
}

// pump runs everything that waits for the UI thread, and what follows from it.
func (g *stage) pump() {
	for range 20 {
		g.thread.Wait()
		n := 0
		for {
			select {
			case f := <-g.queue:
				f()
				n++
				continue
			default:
			}
			break
		}
		if n == 0 {
			return
		}
	}
}

// draw does one round of the ticker by hand, twice: the first painting tells the plots their size.
func (g *stage) draw() {
	for range 3 {
		g.shell.ticker.round()
		g.pump()
		g.window.Canvas().Capture()
		g.pump()
	}
}

func (g *stage) shot(dir, name string) {
	g.t.Helper()
	if only := os.Getenv("VELO_SCREENSHOTS_ONLY"); !strings.Contains(name, only) {
		return
	}
	g.draw()
	f, err := os.Create(filepath.Join(dir, name+".png"))
	if err != nil {
		g.t.Fatal(err)
	}
	defer f.Close()
	img := g.window.Canvas().Capture()
	if err := png.Encode(f, img); err != nil {
		g.t.Fatal(err)
	}
}

// TestScreenshots writes a picture of every page in every state to the folder VELO_SCREENSHOTS.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("VELO_SCREENSHOTS")
	if dir == "" {
		t.Skip("VELO_SCREENSHOTS names no folder")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	sizes := []fyne.Size{{Width: 1280, Height: 800}, {Width: 1920, Height: 1080}}
	for _, mode := range []look.Mode{look.AlwaysDark, look.AlwaysLite} {
		for _, size := range sizes {
			name := func(page string) string { return fmt.Sprintf("%s-%s-%d", page, mode, int(size.Width)) }
			full := newStage(t, newFake().full(), size.Width, size.Height)
			full.shell.SetMode(mode)
			full.pump()
			full.shot(dir, name("suites-full"))
			full.shell.Show(SessionsPage)
			full.pump()
			full.shell.sessions.Select("s2")
			full.shot(dir, name("sessions-full"))
			full.shell.openReport("one")
			full.pump()
			full.shot(dir, name("report-full"))
			full.shell.report.Scroll(1100)
			full.pump()
			full.shot(dir, name("report-middle"))
			full.shell.report.Scroll(1e6)
			full.shot(dir, name("report-end"))
			full.shell.exportAs("one")
			full.shot(dir, name("export"))

			for _, w := range []int{1, 16, 64} {
				g := newStage(t, newFake().full().running(w, 0.6), size.Width, size.Height)
				g.shell.SetMode(mode)
				g.shell.Show(RunPage)
				g.pump()
				g.shot(dir, name(fmt.Sprintf("run-%d", w)))
			}

			empty := newStage(t, newFake(), size.Width, size.Height)
			empty.shell.SetMode(mode)
			empty.pump()
			empty.shot(dir, name("suites-first"))
			for _, p := range []string{RunPage, ReportPage, SessionsPage} {
				empty.shell.Show(p)
				empty.pump()
				empty.shot(dir, name(p+"-empty"))
			}
			empty.shell.editEndpoint(console.Endpoint{})
			empty.pump()
			empty.shot(dir, name("endpoint"))

			for name2, fake := range map[string]func() *fake{
				"engine-empty": newFake, "engine-stopped": func() *fake { return newFake().full().withModel() },
				"engine-loading": func() *fake { return newFake().full().serving(console.EngineLoading) },
				"engine-ready":   func() *fake { return newFake().full().serving(console.EngineReady) },
				"engine-crashed": func() *fake { return newFake().full().serving(console.EngineCrashed) },
			} {
				g := newStage(t, fake(), size.Width, size.Height)
				g.shell.SetMode(mode)
				g.shell.Show(EnginePage)
				g.pump()
				g.shot(dir, name(name2))
			}

			f := newFake().full()
			f.running(4, 0.5)
			f.state.Active, f.state.Finished, f.state.Error = false, console.FinishedFailed, errDown.Error()
			f.state.Progress = runner.Progress{Step: 3, Steps: 6, Done: 9, Total: 24, Elapsed: 9 * time.Second}
			f.fail, f.unlisted = errDown, errDown
			failing := newStage(t, f, size.Width, size.Height)
			failing.shell.SetMode(mode)
			failing.pump()
			failing.shot(dir, name("suites-failing"))
			failing.shell.Show(RunPage)
			failing.shot(dir, name("run-failing"))
			failing.shell.openReport("one")
			failing.pump()
			failing.shot(dir, name("report-failing"))
			failing.shell.Show(SessionsPage)
			failing.pump()
			failing.shot(dir, name("sessions-failing"))
			f.fail = nil
			f.state.Finished, f.state.Error = console.FinishedDone, ""
			failing.shell.Show(RunPage)
			failing.pump()
			failing.shot(dir, name("run-done"))
		}
	}
}
