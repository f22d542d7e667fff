package ui

import (
	"fmt"
	"testing"

	"fyne.io/fyne/v2"

	"velo/bench/sim"
	"velo/ui/console"
	"velo/ui/telemetrypage"
)

// largest is what a screen of 1280×800 has in units at the largest text size, less the menu bar.
func largest() fyne.Size {
	percent := float32(console.TextSizes[len(console.TextSizes)-1])
	return fyne.NewSize(float32(int(1280*100/percent)), float32(int(800*100/percent))-24)
}

// TestLargestTextFits: at the largest text size every page, with every part of it, fits a screen of 1280×800, and
// what it shows is neither cut nor covered.
func TestLargestTextFits(t *testing.T) {
	if raced {
		t.Skip("drawn without the race detector")
	}
	size := largest()
	told := heard(t, sim.EmitOptions{Rate: 2000, Records: 1600, Streams: 6, Tokens: 300, Usage: true})
	states := map[string]func() *fake{
		"empty": newFake,
		"full": func() *fake {
			return newFake().full().local().running(16, 0.5).serving(console.EngineReady).withTelemetry(told)
		},
		"crashed": func() *fake { return newFake().full().serving(console.EngineCrashed) },
		"failing": func() *fake {
			f := newFake().full().running(4, 0.5)
			f.state.Active, f.state.Finished, f.state.Error = false, console.FinishedFailed, errDown.Error()
			f.fail, f.unlisted = errDown, errDown
			return f
		},
	}
	for name, fake := range states {
		t.Run(name, func(t *testing.T) {
			g := newStage(t, fake(), size.Width, size.Height)
			look := func(what string) {
				t.Helper()
				for range 2 {
					g.pump()
					g.shell.ticker.round()
				}
				g.pump()
				g.shell.room.Settle() // the test driver lays nothing out again when a least size grows
				if m := g.window.Content().MinSize(); m.Width > size.Width || m.Height > size.Height {
					t.Errorf("%s needs %v, there is %v", what, m, size)
				}
				checkTexts(t, what, g.window.Content())
			}
			for _, p := range g.shell.pages {
				g.shell.Show(p.id)
				if p.id == ReportPage && name != "empty" {
					g.shell.openReport("one")
				}
				look(p.id)
			}
			g.shell.Show(TelemetryPage)
			for _, part := range []string{telemetrypage.Streams, telemetrypage.Engines, telemetrypage.Metrics, telemetrypage.Records,
				telemetrypage.BothSides, telemetrypage.Recordings, telemetrypage.Settings} {
				g.shell.telemetry.Open(part)
				look(fmt.Sprintf("%s, %s", TelemetryPage, part))
			}
		})
	}
}

// TestNewChatLeavesTheWindowItsSize: Fyne makes a window larger as soon as its content needs more, if only for a
// moment, and never smaller again.
func TestNewChatLeavesTheWindowItsSize(t *testing.T) {
	size := largest()
	for name, f := range map[string]*fake{"empty": newFake(), "full": newFake().full()} {
		g := newStage(t, f, size.Width, size.Height)
		g.shell.Show(ChatPage)
		g.pump()
		g.shell.Do("chat.new")
		for range 50 {
			g.thread.Wait()
			select {
			case f := <-g.queue:
				f()
			default:
			}
			if m := g.window.Content().MinSize(); m.Width > size.Width {
				t.Fatalf("%s: a new chat needs a width of %v, there is %v", name, m.Width, size.Width)
			}
		}
	}
}
