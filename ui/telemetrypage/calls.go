package telemetrypage

import (
	"strconv"
	"time"

	"fyne.io/fyne/v2"

	"velo/bench/measure"
	"velo/bench/otlp"
	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/table"
)

// mostCalls is how many calls are listed, the latest first.
const mostCalls = 200

// calls lists the requests to a model that came as spans: what applications send, which have no stream.
type calls struct {
	page   *Page
	view   fyne.CanvasObject
	count  *look.Text
	none   *look.Paragraph
	table  *table.Table
	scroll *look.Scroll
}

// What the part says where it has no call.
const (
	callsRead   = "The calls are being read."
	noCall      = "No call has come yet. An application that is instrumented with OpenTelemetry sends one as a span with gen_ai attributes: its model, its tokens and why it ended."
	noModelCall = "No call to a model is among the spans that came: none of them has gen_ai attributes. They are listed under Records."
)

func newCalls(g *Page) *calls {
	v := &calls{page: g}
	right := func(title string, least float32) table.Column {
		return table.Column{Title: title, Right: true, Least: least}
	}
	v.table = table.New(look.Small, table.Column{Title: "Time", Least: 64}, table.Column{Title: "Service", Stretch: true, Least: 80}, table.Column{Title: "Model", Stretch: true, Least: 96},
		right("Duration", 72), right("TTFT", 64), right("Input tokens", 56), right("Output tokens", 56), table.Column{Title: "Finish", Least: 56}, table.Column{Title: "Error", Stretch: true, Least: 64})
	v.none = look.NewParagraph(callsRead).In(look.Muted)
	v.count = look.NewText("").Sized(look.Small).In(look.Muted).Right().Fixed(160)
	v.scroll = look.NewScroll(look.Rows(0, look.Inset(look.Step, 0, 0, 0, v.none), v.table))
	v.scroll.OnScroll = func(top, height float32) { v.table.SetView(top-v.table.Position().Y, height) }
	v.table.OnShow = func(y, height float32) { v.scroll.Reveal(v.table.Position().Y+y, height) }
	v.table.OnScroll = v.scroll.Scrolled
	v.table.Hide()
	v.view = look.Frame(look.Inset(look.Step, 0, look.Step, 0, look.Trailing(look.Gap, look.NewText("Spans with gen_ai attributes").Sized(look.Small).In(look.Muted).Fixed(120), v.count)), nil, nil, v.scroll)
	return v
}

func (v *calls) content() fyne.CanvasObject { return v.view }

func (v *calls) query(q *otlp.Query) { q.Streams.Limit, q.Calls = 1, mostCalls }

func (v *calls) prepare(s *console.TelemetrySnapshot, _ look.Palette) func() {
	if !v.page.refresh.due(Calls, s.At, listEvery) {
		return func() {}
	}
	return func() { v.fill(s.Calls, s.State.Counters.Spans > 0) }
}

func (v *calls) fill(list []otlp.Call, spans bool) {
	v.table.SetRows(len(list), func(r, c int) table.Cell { return callCell(&list[r], c) })
	none := noCall
	if spans {
		none = noModelCall
	}
	v.none.Set(none)
	showIf(v.none, len(list) == 0)
	showIf(v.table, len(list) > 0)
	text := plural(len(list), "call")
	if len(list) == mostCalls {
		text = "the latest " + group(mostCalls)
	}
	v.count.Set(text)
	v.scroll.Settle()
}

// callCell is one column of a call.
func callCell(x *otlp.Call, column int) table.Cell {
	missing := table.Cell{Text: "—", Ink: look.Faint}
	word := func(text string, ink look.Ink) table.Cell {
		if text == "" {
			return missing
		}
		return table.Cell{Text: clean(text), Copy: text, Ink: ink}
	}
	lasted := func(v measure.Num) table.Cell {
		if !v.Ok() {
			return missing
		}
		return table.Cell{Text: write(measure.Seconds, v, "").text(), Copy: strconv.FormatFloat(float64(v), 'g', -1, 64)}
	}
	tokens := func(v measure.Num) table.Cell {
		if !v.Ok() {
			return missing
		}
		return table.Cell{Text: group(int64(v)), Mark: measure.Server.Mark(), Copy: strconv.FormatInt(int64(v), 10)}
	}
	switch column {
	case 0:
		if x.Began == 0 {
			return missing
		}
		at := time.Unix(0, x.Began)
		return table.Cell{Text: at.Format("15:04:05"), Copy: at.Format(time.RFC3339Nano), Ink: look.Muted}
	case 1:
		return word(x.Service, look.Plain)
	case 2:
		return word(x.Model, look.Plain)
	case 3:
		return lasted(x.Duration)
	case 4:
		return lasted(x.TTFT)
	case 5:
		return tokens(x.Prompt)
	case 6:
		return tokens(x.Completion)
	case 7:
		return word(x.Finish, look.Plain)
	}
	return word(x.Error, look.Red)
}
