package telemetrypage

import (
	"fmt"

	"fyne.io/fyne/v2"

	"velo/bench/measure"
	"velo/bench/otlp"
	"velo/bench/otlp/offset"
	"velo/ui/console"
	"velo/ui/look"
)

// recordings are the sessions that are made, and those that were made since the program began.
type recordings struct {
	page    *Page
	running *fyne.Container
	ended   *fyne.Container
	none    *look.Paragraph
	disk    *look.Paragraph
	sides   *fyne.Container
	verdict *look.Paragraph
	pairs   pairsTable
	scroll  *look.Scroll

	lines []*look.Text // of what runs
	ids   string       // what the rows stand for
}

func newRecordings(g *Page) *recordings {
	v := &recordings{page: g, running: look.Rows(0), ended: look.Rows(0), pairs: newPairs()}
	v.none = look.NewParagraph("Nothing was recorded since the window opened. Record all takes every stream that runs and every one that comes, with what came in the time before the press that the settings say; a stream's own button takes that stream, whole. Earlier recordings are among the sessions.").In(look.Muted)
	v.disk = look.NewParagraph("").Sized(look.Small).In(look.Muted).AtMost(3)
	v.verdict = look.NewParagraph("").AtMost(6)
	v.sides = look.Rows(look.Step, look.NewText("Beside the client's session").Sized(look.Head).Bold(), v.verdict, v.pairs.Table)
	v.sides.Hide()
	v.scroll = look.NewScroll(look.Inset(look.Step, look.Gap, look.Gap, 0, look.Rows(look.Gap, v.disk, v.none, v.running, v.ended, v.sides)))
	v.scroll.OnScroll = func(top, height float32) {
		v.pairs.SetView(top-v.sides.Position().Y-v.pairs.Position().Y, height)
	}
	v.pairs.OnScroll = v.scroll.Scrolled
	return v
}

func (v *recordings) content() fyne.CanvasObject { return v.scroll }
func (v *recordings) query(q *otlp.Query)        { q.Streams.Limit = 1 }

func (v *recordings) prepare(s *console.TelemetrySnapshot, _ look.Palette) func() {
	if !v.page.refresh.due(Recordings, s.At, listEvery) {
		return func() {}
	}
	return func() { v.show(s) }
}

func (v *recordings) show(s *console.TelemetrySnapshot) {
	ids := ""
	for i := range s.Recordings {
		ids += s.Recordings[i].ID + " "
	}
	ids += "| "
	for i := range s.Recorded {
		ids += s.Recorded[i].ID + " "
	}
	if ids != v.ids {
		v.ids = ids
		v.rebuild(s)
	}
	if text := OnDisk(s.Disk, v.page.form.settings); text != v.disk.Text() {
		v.disk.Set(text)
		v.scroll.Settle()
	}
	for i, t := range v.lines {
		t.Set(progress(&s.Recordings[i]))
	}
}

func (v *recordings) rebuild(s *console.TelemetrySnapshot) {
	v.running.Objects, v.ended.Objects, v.lines = nil, nil, nil
	row := func(tone look.Tone, title string, detail *look.Text, buttons ...fyne.CanvasObject) fyne.CanvasObject {
		return look.Rows(0, look.Inset(look.Step, 0, look.Step, 0, look.Frame(nil, nil, look.Sized(look.Gap, 0, look.Line(0, look.Dot(tone))),
			look.Trailing(look.Gap, look.Rows(0, look.NewText(title).Bold().Fixed(200), detail), look.Line(look.Step, buttons...)))), look.Rule())
	}
	small := func(text string) *look.Text { return look.NewText(text).Sized(look.Small).In(look.Muted).Fixed(200) }
	for i := range s.Recordings {
		r := &s.Recordings[i]
		title := "All streams"
		if n := len(r.Bounds.Streams); n > 0 {
			title = name(r.Bounds.Streams[0])
		}
		detail := small("")
		v.lines = append(v.lines, detail)
		id := r.ID
		v.running.Add(row(look.OnAccent, title, detail, look.StopButton("Stop recording", func() { v.page.Stop(id) })))
	}
	for i := range s.Recorded {
		r := &s.Recorded[i]
		tone := look.OnGreen
		if r.Error != "" {
			tone = look.OnRed
		} else if r.Empty {
			tone = look.OnFaint
		}
		id := r.ID
		var buttons []fyne.CanvasObject
		if !r.Empty && r.Error == "" {
			buttons = []fyne.CanvasObject{look.Button("Compare with the client", func() { v.compare(id) }), look.Button("Open report", func() { v.page.OpenReport(id) })}
		}
		v.ended.Add(row(tone, r.Ended.Local().Format("15:04:05")+"  "+r.Title, small(outcome(r)), buttons...))
	}
	showIf(v.none, len(s.Recordings)+len(s.Recorded) == 0)
	showIf(v.running, len(s.Recordings) > 0)
	showIf(v.ended, len(s.Recorded) > 0)
	v.scroll.Settle()
	v.scroll.Refresh()
}

// compare lines a recording up with what the client measured.
func (v *recordings) compare(id string) {
	v.page.Thread.Work(func() func() {
		list, err := v.page.Telemetry.Compare(id)
		return func() {
			if err != nil {
				v.page.Say(look.OnRed, sentence(err.Error()))
				return
			}
			v.showPairs(list)
		}
	})
}

func (v *recordings) showPairs(list []console.TelemetryPair) {
	var pairs []offset.Pair
	text := "The client of this program measured none of these requests: no session of that time bears the same X-Session-Id."
	for i := range list {
		p := &list[i]
		if i == 0 {
			text = ""
		} else {
			text += "\n"
		}
		d := write(measure.Seconds, p.Median, "")
		text += fmt.Sprintf("%s: %s on both sides, %s of the telemetry only. The client saw its first token %s later than the server, in the median. Client clock − emitter clock: %s.",
			p.Title, plural(len(p.Pairs), "request"), group(p.Unmatched), d.text(), bounds(p.Bounds))
		pairs = append(pairs, p.Pairs...)
	}
	v.verdict.Set(text)
	v.pairs.fill(pairs)
	showIf(v.pairs.Table, len(pairs) > 0)
	showIf(v.sides, true)
	v.scroll.Settle()
	v.scroll.To(v.sides.Position().Y)
}
