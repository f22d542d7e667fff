// Package runpage is the page that shows a run while it is measured: the rate now, what it was so
// far, the timeline, and a row for each worker.
package runpage

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"

	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/plot"
)

// Params is what the page is given.
type Params struct {
	Stop       func()
	Again      func() // start the last run once more
	OpenReport func(sessionID string)
	GoSuites   func()
	Redraw     func() // ask for a drawing soon
}

// Page is the page. Prepare may be called on any goroutine, everything else on the UI thread.
type Page struct {
	Params
	View fyne.CanvasObject

	idle, live   fyne.CanvasObject
	title, place *look.Text
	lamp         *look.Lamp
	head         *fyne.Container
	actions      *fyne.Container
	stop         *look.PushButton
	report       *look.PushButton
	again        *look.PushButton

	hero                                                    *look.Tile
	median, spread, ttft, tokens, elapsed, maxGap, requests *look.Tile

	progress *look.Progress
	step     *look.Text
	left     *look.Text
	message  *look.Paragraph

	timeline *plot.View
	workers  *plot.View
	scroll   *look.Scroll // of the workers
	lower    *share

	draw drawer
	has  string // the session that is shown
	done int    // states that were put on screen
}

// New builds the page.
func New(p Params) *Page {
	g := &Page{Params: p}
	g.title = look.NewText("").Sized(look.Head).Bold().Fixed(320)
	g.place = look.NewText("").Sized(look.Small).In(look.Muted).Fixed(320)
	g.lamp = look.NewLamp(72)
	g.stop = look.StopButton("Stop", p.Stop)
	g.again = look.Button("Run again", p.Again)
	g.report = look.MainButton("Open report", func() { p.OpenReport(g.has) })
	g.actions = look.Line(look.Step, g.lamp.Container, g.again, g.report, g.stop)
	g.head = look.Trailing(look.Gap, look.Rows(look.Half, g.title, g.place), g.actions)

	g.hero = look.NewTile("Decode rate now, all streams").Hero().Steady(4)
	g.median = look.NewTile("Median").Steady(4)
	g.spread = look.NewTile("Range, tok/s")
	g.ttft = look.NewTile("TTFT, latest").Steady(4)
	g.tokens = look.NewTile("Tokens received")
	g.elapsed = look.NewTile("Elapsed")
	g.maxGap = look.NewTile("Max gap").Steady(4)
	g.requests = look.NewTile("Requests").Steady(4)
	tiles := container.New(&figures{}, g.hero,
		look.Flow(look.Gap, tileWidth, g.median, g.spread, g.ttft, g.maxGap, g.tokens, g.requests, g.elapsed))

	g.progress = look.NewProgress()
	g.step = look.NewText("").Fixed(320)
	g.left = look.NewText("").In(look.Muted).Right().Fixed(320)
	g.message = look.NewParagraph("").AtMost(3)

	g.timeline = plot.NewView(fyne.NewSize(320, 160))
	g.timeline.OnSize = p.Redraw
	g.workers = plot.NewView(fyne.NewSize(320, 0))
	g.workers.OnSize = p.Redraw
	g.scroll = look.NewScroll(g.workers)
	g.lower = &share{}

	top := look.Rows(look.Gap, g.head, look.Rule(), tiles,
		look.Rows(look.Step, g.progress, look.Trailing(look.Gap, g.step, g.left), g.message))
	g.live = look.Inset(look.Gap, look.Margin, look.Step, look.Margin,
		look.Frame(look.Inset(0, 0, look.Gap, 0, top), nil, nil, container.New(g.lower, g.timeline, g.scroll)))
	g.idle = look.Inset(look.Margin, look.Margin, look.Margin, look.Margin,
		look.Empty("Nothing is being measured", "Pick a suite and run it. Here you then see the decode rate as it moves, time to first token, gaps and each worker.",
			look.MainButton("Go to suites", p.GoSuites)))
	g.View = look.Over(g.idle, g.live)
	g.live.Hide()
	g.message.Hide()
	return g
}

// share gives the workers what they need, at most half of the height, and the timeline the rest.
type share struct{ need float32 }

func (s *share) MinSize(o []fyne.CanvasObject) fyne.Size {
	return o[0].MinSize().AddWidthHeight(0, fyne.Min(s.need, 88))
}

func (s *share) Layout(o []fyne.CanvasObject, size fyne.Size) {
	h := fyne.Min(s.need, size.Height/2)
	o[0].Move(fyne.Position{})
	o[0].Resize(fyne.NewSize(size.Width, size.Height-h))
	o[1].Move(fyne.NewPos(0, size.Height-h))
	o[1].Resize(fyne.NewSize(size.Width, h))
}

// Prepare writes and draws a state, off the UI thread, and returns what puts it on screen there.
// Only one may be under way, and it must be on screen before the next one begins.
func (g *Page) Prepare(s console.RunState, p look.Palette) (show func()) {
	w := written(s)
	g.draw.follow(s)
	timeline := g.draw.timeline(g.timeline, s, p, w)
	workers := g.draw.workers(g.workers, s, p)
	return func() {
		g.show(s, w)
		if timeline {
			g.timeline.Turn()
		}
		if workers {
			g.workers.Turn()
		}
	}
}

func (g *Page) show(s console.RunState, w words) {
	if !s.Active && s.Finished == "" {
		g.live.Hide()
		g.idle.Show()
		return
	}
	g.done++
	g.has = s.SessionID
	if !g.live.Visible() {
		g.idle.Hide()
		g.live.Show()
	}
	g.title.Set(w.title)
	g.place.Set(w.place)
	g.lamp.Set(w.tone, w.state)
	g.hero.SetLabel(w.heroLabel)
	g.hero.Set(w.hero.value, w.hero.unit, w.hero.mark, "", look.Plain)
	g.median.Set(w.median.value, w.median.unit, w.median.mark, "of the sum", look.Plain)
	g.spread.Set(w.spread, "", "", "lowest to highest", look.Plain)
	g.ttft.Set(w.ttft.value, w.ttft.unit, "", w.ttftNote, look.Plain)
	g.maxGap.Set(w.maxGap.value, w.maxGap.unit, "", "longest wait for a token", look.Plain)
	g.tokens.Set(w.tokens, "", "", w.source, look.Plain)
	g.requests.Set(w.requests, "", "", w.requestsNote, w.requestsInk)
	g.elapsed.Set(w.elapsed, "", "", "", look.Plain)
	g.progress.Set(w.share)
	g.step.Set(w.step)
	g.left.Set(w.left)
	if showIf(g.message, w.message != "") || g.message.Text() != w.message {
		g.message.SetIn(w.message, w.messageInk)
		g.live.Refresh()
	}
	moved := showIf(g.stop, s.Active)
	moved = showIf(g.report, !s.Active && s.SessionID != "") || moved
	moved = showIf(g.again, !s.Active) || moved
	if moved {
		g.actions.Refresh()
		g.head.Refresh()
	}

	width := g.scroll.Size().Width
	need := float32(0)
	if n := len(s.Snapshot.Workers); n > 1 {
		need = plot.HeightFor(n, width) + look.Step
	}
	if need != g.lower.need {
		g.lower.need = need
		g.workers.SetLeast(fyne.NewSize(320, fyne.Max(need-look.Step, 0)))
		g.View.Refresh()
		g.scroll.Settle()
	}
}

// showIf shows or hides an object and tells whether that changed anything.
func showIf(o fyne.CanvasObject, on bool) bool {
	if on == o.Visible() {
		return false
	}
	if on {
		o.Show()
	} else {
		o.Hide()
	}
	return true
}

// Drawings is how often a state was put on screen.
func (g *Page) Drawings() int { return g.done }

// State is the word of the lamp.
func (g *Page) State() string { return g.lamp.Word() }
