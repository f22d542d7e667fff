package ui

import (
	"fmt"

	"fyne.io/fyne/v2"

	"velo/bench"
	"velo/ui/console"
	"velo/ui/look"
)

// statusBar is the line at the bottom: the job that runs, how it is drawn, the store.
type statusBar struct {
	shell        *Shell
	view         fyne.CanvasObject
	job          *look.Text
	mode         *look.Text
	store        *look.Text
	active       bool
	last         string // the run whose end was told
	hasLast      bool
	lastSpec     console.RunSpec
	lastFinished string
	title        string // of the window
	trouble      string // with storing what is measured, as it was told
}

func (b *statusBar) build(s *Shell) {
	b.shell = s
	b.job = look.NewText("").Sized(look.Small).In(look.Muted).Fixed(320)
	b.mode = look.NewText("").Sized(look.Small).In(look.Muted).Right().Fixed(184)
	b.store = look.NewText("").Sized(look.Small).In(look.Muted).Right().Fixed(104)
	version := look.NewText("Velo " + s.Console.Version()).Sized(look.Small).In(look.Muted)
	bar := look.Trailing(look.Gap, b.job, look.Line(look.Margin, b.mode, b.store, version))
	b.view = look.Rows(0, look.Rule(), look.Panel(look.OnSurface, look.Inset(look.Half, look.Margin, look.Half, look.Gap, bar)))
}

// show tells of the run, and notices its end.
func (b *statusBar) show(s console.RunState) {
	was := b.active
	b.active = s.Active
	switch {
	case s.Active:
		b.job.Set(fmt.Sprintf("Measuring %s: %d of %d requests. Ctrl+. stops.", s.Title, s.Progress.Done, s.Progress.Total))
	case s.Finished == console.FinishedDone:
		b.job.Set(s.Title + ": done")
	case s.Finished == console.FinishedStopped:
		b.job.Set(s.Title + ": stopped")
	case s.Finished == console.FinishedFailed:
		b.job.Set(s.Title + ": failed")
	default:
		b.job.Set("No run yet")
	}
	b.entitle(s)
	if s.Trouble != b.trouble {
		if b.trouble = s.Trouble; s.Trouble != "" {
			b.shell.say(look.OnRed, s.Trouble)
		}
	}
	mode := ""
	if s.Active {
		b.lastSpec, b.hasLast = s.Spec, true
		mode = "Drawing: quiet, once a second"
		if s.Drawing == bench.DrawingLive {
			mode = "Drawing: live"
		}
	}
	b.mode.Set(mode)
	if was != s.Active {
		b.shell.suites.Update()
		b.shell.refreshCommands()
		if !s.Active {
			b.reload()
			b.shell.ended("Velo: "+s.Title, map[string]string{console.FinishedDone: "The run is done.", console.FinishedStopped: "The run was stopped.",
				console.FinishedFailed: "The run failed: " + s.Error}[s.Finished], s.Progress.Elapsed)
			if s.SessionID != "" {
				b.shell.report.Load(s.SessionID) // the report page then shows the run that has just ended
			}
			if s.Finished == console.FinishedFailed && b.shell.current != RunPage {
				b.shell.say(look.OnRed, s.Title+" failed: "+s.Error)
			}
		}
	}
}

// entitle puts the run into the window's title, where the desktop's task list shows it.
func (b *statusBar) entitle(s console.RunState) {
	title := "Velo"
	switch {
	case s.Active:
		title = "Velo – measuring " + s.Title
	case s.Finished != "":
		title = "Velo – " + s.Title + ": " + s.Finished
	}
	if title != b.title {
		b.title = title
		b.shell.Window.SetTitle(title)
	}
}

// reload reads the size of the store again.
func (b *statusBar) reload() {
	b.shell.Thread.Work(func() func() {
		st := b.shell.Console.Status()
		return func() { b.keep(st) }
	})
}

func (b *statusBar) keep(st console.Status) { b.store.Set("Store " + size(st.StoreBytes)) }

func size(n int64) string {
	const kib = 1 << 10
	switch {
	case n >= kib*kib*kib:
		return fmt.Sprintf("%.1f GiB", float64(n)/(kib*kib*kib))
	case n >= kib*kib:
		return fmt.Sprintf("%.1f MiB", float64(n)/(kib*kib))
	}
	return fmt.Sprintf("%d KiB", (n+kib-1)/kib)
}
