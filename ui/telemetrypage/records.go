package telemetrypage

import (
	"fmt"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"

	"velo/bench/otlp"
	"velo/ui/console"
	"velo/ui/look"
)

// mostRecords is how many records the viewer shows; the receiver keeps more, and the filter finds them.
const mostRecords = 500

// records shows what came as it came, the latest first.
type records struct {
	page   *Page
	view   fyne.CanvasObject
	filter *look.Entry
	count  *look.Text
	list   *widget.List
	whole  *look.Paragraph
	frame  *fyne.Container
	none   *look.Text

	shown  []otlp.Raw
	chosen uint64 // number of the record whose whole text is shown; 0 = none
}

func newRecords(g *Page) *records {
	v := &records{page: g}
	v.filter = look.NewEntry("Filter by name, service, body or attribute")
	v.filter.OnChanged = func(text string) {
		g.wanted.set(func(w *wanted) { w.filter[Records] = text })
		g.drawAgain()
	}
	v.filter.OnEscape = func() { v.filter.SetText("") }
	v.count = look.NewText("").Sized(look.Small).In(look.Muted).Right().Fixed(160)
	v.list = widget.NewList(func() int { return len(v.shown) },
		func() fyne.CanvasObject { // beside the scroll bar
			return look.Inset(0, look.Step, 0, 0, look.NewMono("").Sized(look.Small).Fixed(64))
		},
		func(i widget.ListItemID, o fyne.CanvasObject) {
			if i < len(v.shown) {
				o.(*fyne.Container).Objects[0].(*look.Text).SetIn(recordLine(&v.shown[i]), recordInk(&v.shown[i]))
			}
		})
	v.list.HideSeparators = true
	v.list.OnSelected = func(i widget.ListItemID) {
		if i < len(v.shown) {
			v.chosen = v.shown[i].Number
			v.whole.Set(whole(&v.shown[i]))
			if showIf(v.frame, true) {
				v.view.Refresh()
			}
			v.frame.Refresh()
		}
	}
	v.whole = look.NewParagraph("").Sized(look.Small).Mono().AtMost(14)
	v.frame = look.Rows(look.Step, look.Rule(), look.Trailing(look.Gap, look.NewText("Record").Bold(),
		look.Line(look.Step, look.Button("Copy record", func() {
			g.Copy(v.whole.Text())
			g.Say(look.OnAccent, "The record was copied.")
		}), look.Button("Close", v.close))), v.whole)
	v.frame.Hide()
	v.none = look.NewText("The records are being read.").In(look.Muted) // until they are there
	copyAll := look.Button("Copy records", v.copy)
	head := look.Inset(look.Step, 0, look.Step, 0, look.Trailing(look.Gap, v.filter, look.Line(look.Step, v.count, copyAll)))
	v.view = look.Frame(head, look.Inset(0, 0, look.Step, 0, v.frame), nil, look.Over(v.list, look.Inset(look.Step, 0, 0, 0, look.Rows(0, v.none))))
	return v
}

func (v *records) close() {
	v.chosen = 0
	v.list.UnselectAll()
	if showIf(v.frame, false) {
		v.view.Refresh()
	}
}

// recordLine is a record in one line.
func recordLine(r *otlp.Raw) string {
	body := strings.Join(strings.Fields(r.Body), " ")
	if body == "" {
		body = strings.ReplaceAll(r.Attributes, "\n", " ")
	}
	return fmt.Sprintf("%8d  %-6s  %-22s  %-32s  %s", r.Number, r.Signal, cut(r.Service, 22), cut(r.Name, 32), clean(body))
}

// cut cuts a word at the end of its column.
func cut(s string, most int) string {
	if n := []rune(s); len(n) > most {
		return string(n[:most-1]) + "…"
	}
	return s
}

func recordInk(r *otlp.Raw) look.Ink {
	switch s := strings.ToUpper(r.Severity); {
	case strings.HasPrefix(s, "ERROR"), strings.HasPrefix(s, "FATAL"):
		return look.Red
	case strings.HasPrefix(s, "WARN"):
		return look.Amber
	}
	return look.Plain
}

// whole is everything that is known of a record.
func whole(r *otlp.Raw) string {
	when := "no time of the emitter's"
	if r.Time != 0 {
		when = time.Unix(0, r.Time).UTC().Format("2006-01-02T15:04:05.000000000Z")
	}
	text := fmt.Sprintf("%s %d of %s · %s · %s", r.Signal, r.Number, r.Service, r.Name, when)
	if r.Severity != "" {
		text += " · " + r.Severity
	}
	text += "\n" + strings.TrimSuffix(r.Attributes, "\n")
	if r.Body != "" {
		text += "\n" + r.Body
	}
	return text
}

func (v *records) content() fyne.CanvasObject { return v.view }

func (v *records) query(q *otlp.Query) {
	v.page.wanted.get(func(w *wanted) { q.Filter = w.filter[Records] })
	q.Streams.Limit, q.Raw = 1, mostRecords
}

func (v *records) prepare(s *console.TelemetrySnapshot, _ look.Palette) func() {
	if !v.page.refresh.due(Records, s.At, listEvery) {
		return func() {}
	}
	return func() { v.fill(s.Raw) }
}

func (v *records) fill(list []otlp.Raw) {
	if n := len(list); n == len(v.shown) && (n == 0 || list[0].Number == v.shown[0].Number && list[n-1].Number == v.shown[n-1].Number) {
		v.tell()
		return
	}
	v.shown = list
	v.list.Refresh()
	if v.chosen != 0 { // the line that is marked is another record by now
		v.list.UnselectAll()
	}
	v.tell()
}

func (v *records) tell() {
	text := plural(len(v.shown), "record")
	if len(v.shown) == mostRecords {
		text = "the latest " + group(mostRecords)
	}
	v.count.Set(text)
	none := ""
	if len(v.shown) == 0 {
		none = "No record matches."
	}
	v.none.Set(none)
}

func (v *records) copy() {
	var b strings.Builder
	for i := range v.shown {
		b.WriteString(whole(&v.shown[i]) + "\n\n")
	}
	v.page.Copy(b.String())
	v.page.Say(look.OnAccent, plural(len(v.shown), "record")+" were copied.")
}
