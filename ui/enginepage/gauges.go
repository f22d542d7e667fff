package enginepage

import (
	"strconv"
	"strings"

	"fyne.io/fyne/v2"

	"velo/bench/measure"
	"velo/ui/console"
	"velo/ui/look"
)

// gauges are the engine's figures while it serves.
type gauges struct {
	view                                                   *fyne.Container
	rate, running, waiting, kv, cached, accepted, p50, p90 *look.Tile
}

func (t *gauges) build() {
	tile := func(name string) *look.Tile { return look.NewTile(name).Wide(fieldWidth).Steady(4) }
	t.rate, t.running, t.waiting = tile("Generated now"), tile("Running"), tile("Waiting")
	t.kv, t.cached, t.accepted = tile("KV pages in use"), tile("Prompt from cache"), tile("Drafts accepted")
	t.p50, t.p90 = tile("Step, median"), tile("Step, p90")
	t.view = look.Rows(0, look.Flow(look.Gap, fieldWidth, t.rate, t.running, t.waiting, t.kv, t.cached, t.accepted, t.p50, t.p90))
	t.view.Hide()
}

// show writes the figures and tells whether they came or went.
func (t *gauges) show(s console.EngineStatus) bool {
	on := s.State == console.EngineReady
	if on {
		f := s.Figures
		put := func(tile *look.Tile, unit measure.Unit, v measure.Num, note string) {
			value, shown := figure(unit, v)
			if unit == measure.Count && v.Ok() {
				shown = "requests"
			}
			mark := measure.Server.Mark()
			if !v.Ok() {
				mark = ""
			}
			tile.Set(value, shown, mark, note, look.Plain)
		}
		tokens := ""
		if f.Tokens.Ok() {
			value, _ := figure(measure.Tokens, f.Tokens)
			tokens = value + " in answers"
		}
		put(t.rate, measure.PerSec, f.Rate, tokens)
		put(t.running, measure.Count, f.Running, "of "+strconv.Itoa(s.Lanes)+" at once")
		put(t.waiting, measure.Count, f.Waiting, "for a lane")
		put(t.kv, measure.Fraction, f.KV, "by what runs")
		put(t.cached, measure.Fraction, f.Cached, "since the start")
		accepted := "since the start"
		if !f.Acceptance.Ok() {
			accepted = "nothing is drafted"
		}
		put(t.accepted, measure.Fraction, f.Acceptance, accepted)
		put(t.p50, measure.Seconds, f.StepP50, "of the last steps")
		put(t.p90, measure.Seconds, f.StepP90, "of the last steps")
	}
	return showIf(t.view, on)
}

// failurePanel says why the engine ended, and what to do.
type failurePanel struct {
	page            *Page
	view            *fyne.Container
	message, advice *look.Paragraph
	lines           *look.Paragraph
	port            *look.PushButton
	next            int
}

func (f *failurePanel) build(g *Page) {
	f.page = g
	f.message, f.advice = look.NewParagraph("").AtMost(4), look.NewParagraph("").In(look.Muted).AtMost(3)
	f.lines = look.NewParagraph("").Sized(look.Small).Mono().In(look.Muted).AtMost(2 * failureLines)
	f.port = look.MainButton("Use port", func() { g.usePort(f.next) })
	again := look.Button("Start again", g.Start)
	details := look.Button("Copy details", f.copy)
	f.view = look.Rows(0, look.Panel(look.OnSurface, look.Frame(nil, nil, look.Sized(3, 0, look.NewSurface(look.OnRed)),
		look.Inset(look.Step, look.Gap, look.Step, look.Gap, look.Rows(look.Step, f.message, f.advice, f.lines, look.Line(look.Step, f.port, again, details))))))
	f.view.Hide()
}

// failureLines is how many lines stand beside a failure; all of them are in the log.
const failureLines = 4

func (f *failurePanel) show(s console.EngineStatus) bool {
	on := s.State == console.EngineCrashed
	if on {
		lines := s.Failure.Lines
		if n := len(lines) - failureLines; n > 0 && !strings.HasPrefix(lines[0], "panic:") && !strings.HasPrefix(lines[0], "fatal error:") {
			lines = lines[n:]
		}
		f.message.Set(sentence(s.Failure.Message))
		f.advice.Set(sentence(s.Failure.Advice))
		f.lines.Set(strings.Join(lines[:min(len(lines), failureLines)], "\n"))
		showIf(f.lines, len(lines) > 0)
		f.next = s.Failure.NextPort
		if f.next > 0 {
			f.port.SetText("Use port " + strconv.Itoa(f.next))
		}
		showIf(f.port, f.next > 0)
	}
	return showIf(f.view, on)
}

func (f *failurePanel) copy() {
	s := f.page.status
	f.page.Copy("Velo engine: " + state(s) + "\n" + s.Failure.Message + "\n" + s.Failure.Advice + "\n\n" +
		f.page.Engine.Command(s.Config) + "\n\n" + strings.Join(s.Failure.Lines, "\n") + "\n")
	f.page.Say(look.OnAccent, "The details were copied.")
}
