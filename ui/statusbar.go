package ui

import (
	"fmt"
	"slices"

	"fyne.io/fyne/v2"

	"velo/bench"
	"velo/ui/console"
	"velo/ui/look"
)

// statusBar is the line at the bottom: what is measured and how it is drawn, what else goes on, the
// store.
type statusBar struct {
	shell        *Shell
	view         fyne.CanvasObject
	lamp         *look.Lamp
	job          *look.Link
	run          string // what is said of it
	jobs         []job  // what else goes on, the latest last
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
	b.job = look.NewLink(320, b.follow)
	b.lamp = look.NewLamp(176)
	b.store = look.NewText("").Sized(look.Small).In(look.Muted).Right().Fixed(104)
	version := look.NewText("Velo " + s.Console.Version()).Sized(look.Small).In(look.Muted)
	bar := look.Trailing(look.Gap, look.Frame(nil, nil, b.lamp.Container, b.job), look.Line(look.Margin, b.store, version))
	b.view = look.Rows(0, look.Rule(), look.Panel(look.OnSurface, look.Inset(look.Half, look.Margin, look.Half, look.Gap, bar)))
}

// show tells of the run, and notices its end.
func (b *statusBar) show(s console.RunState) {
	was := b.active
	b.active, b.lastFinished = s.Active, s.Finished
	tone, word := look.OnFaint, "nothing is measured"
	switch {
	case s.Active:
		b.run = fmt.Sprintf("%s: %d of %d requests. Ctrl+. stops.", s.Title, s.Progress.Done, s.Progress.Total)
		if tone, word = look.OnAccent, "measuring, live drawing"; s.Drawing == bench.DrawingQuiet {
			word = "measuring, quiet drawing"
		}
	case s.Finished == console.FinishedDone:
		b.run = s.Title + ": done"
	case s.Finished == console.FinishedStopped:
		b.run = s.Title + ": stopped"
	case s.Finished == console.FinishedFailed:
		b.run = s.Title + ": failed"
		tone, word = look.OnRed, "the last run failed"
	default:
		b.run = "No run yet"
	}
	b.lamp.Set(tone, word)
	b.tellJobs()
	b.entitle(s)
	if s.Trouble != b.trouble {
		if b.trouble = s.Trouble; s.Trouble != "" {
			b.shell.say(look.OnRed, s.Trouble)
		}
	}
	if s.Active {
		b.lastSpec, b.hasLast = s.Spec, true
	}
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

// job is something that goes on, and the page that it belongs to; empty = none.
type job struct{ what, page string }

// follow leads to the page of what the bar tells: the latest job, else the run or its report.
func (b *statusBar) follow() {
	s := b.shell
	if n := len(b.jobs); n > 0 && b.jobs[n-1].page != "" {
		s.Show(b.jobs[n-1].page)
		return
	}
	switch {
	case b.active || b.lastFinished == "":
		s.Show(RunPage)
	case b.lastFinished == console.FinishedFailed || s.report.Session() == "":
		s.Show(RunPage)
	default:
		s.Show(ReportPage)
	}
}

// tellJobs writes what goes on besides the run, or else what became of it.
func (b *statusBar) tellJobs() {
	text := b.run
	if n := len(b.jobs); n > 0 {
		if text = b.jobs[n-1].what; n > 1 {
			text = fmt.Sprintf("%s, and %d more", text, n-1)
		}
		if b.active {
			text = b.run + " · " + text
		}
	}
	b.job.Set(text)
}

// busy shows in the status bar that work goes on, until it is called back; a click there leads to its page. Call
// both on the UI thread.
func (s *Shell) busy(what, page string) (done func()) {
	b := &s.status
	one := job{what, page}
	b.jobs = append(b.jobs, one)
	b.tellJobs()
	return func() {
		if i := slices.Index(b.jobs, one); i >= 0 {
			b.jobs = slices.Delete(b.jobs, i, i+1)
		}
		b.tellJobs()
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
