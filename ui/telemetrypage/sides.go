package telemetrypage

import (
	"strconv"

	"fyne.io/fyne/v2"

	"velo/bench/measure"
	"velo/bench/otlp"
	"velo/bench/otlp/offset"
	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/table"
)

// bothSides shows what is known of each engine's clock, and the requests that the client of this program
// measured while the engine told of them.
type bothSides struct {
	page   *Page
	clocks *table.Table
	pairs  pairsTable
	none   *look.Paragraph
	jumps  *look.Paragraph
	scroll *look.Scroll
}

// pairsTable lists requests as both sides saw them.
type pairsTable struct{ *table.Table }

func newPairs() pairsTable {
	right := func(title string) table.Column {
		return table.Column{Title: title, Unit: "ms", CopyUnit: "s", Right: true, Least: 88}
	}
	return pairsTable{table.New(look.Small, table.Column{Title: "Session of the request", Stretch: true, Least: 160}, table.Column{Title: "Service", Stretch: true, Least: 96},
		right("Server TTFT"), right("Client TTFT"), right("Difference"), table.Column{Title: "Offset of the clocks by it alone", Least: 184})}
}

func (t pairsTable) fill(list []offset.Pair) {
	ms := func(v measure.Num) table.Cell {
		if !v.Ok() {
			return table.Cell{Text: "—", Ink: look.Faint}
		}
		return table.Cell{Text: plain(1e3 * float64(v)), Copy: strconv.FormatFloat(float64(v), 'g', -1, 64)}
	}
	t.SetRows(len(list), func(r, c int) table.Cell {
		p := &list[r]
		switch c {
		case 0:
			return table.Cell{Text: p.Session}
		case 1:
			return table.Cell{Text: p.Service}
		case 2:
			return ms(p.ServerTTFT)
		case 3:
			return ms(p.ClientTTFT)
		case 4:
			return ms(p.Difference())
		}
		return table.Cell{Text: signed(p.Low) + " to " + signed(p.High)}
	})
}

func newBothSides(g *Page) *bothSides {
	v := &bothSides{page: g}
	v.clocks = table.New(look.Small, table.Column{Title: "Service", Stretch: true, Least: 120}, table.Column{Title: "Client clock − emitter clock", Least: 264},
		table.Column{Title: "Requests on both sides", Right: true}, table.Column{Title: "Records", Right: true}, table.Column{Title: "Contradictions", Right: true})
	v.pairs = newPairs()
	v.none = look.NewParagraph("No request was measured on both sides yet. Measure or chat with an engine that sends its telemetry here: the client sends X-Session-Id, and the engine's records bear it.").In(look.Muted)
	v.jumps = look.NewParagraph("").Sized(look.Small).In(look.Amber).AtMost(3)
	v.jumps.Hide()
	v.scroll = look.NewScroll(look.Inset(look.Step, look.Gap, look.Gap, 0, look.Rows(look.Step,
		look.NewText("Clocks").Sized(look.Head).Bold(),
		look.NewParagraph("Records that go one way cannot part the offset of two clocks from the delay between them: without a request on both sides their sum is shown. A request that the client measured too bounds the offset, as the stream began after it was sent and before its first byte came.").Sized(look.Small).In(look.Muted),
		v.clocks, v.jumps,
		look.Sized(0, look.Step, look.NewSurface(look.OnBackground)),
		look.NewText("Requests on both sides").Sized(look.Head).Bold(),
		look.NewParagraph("The server's time to first token is the engine's own, the client's includes the network and every queue on the way. Their difference needs no offset.").Sized(look.Small).In(look.Muted),
		v.none, v.pairs.Table)))
	v.scroll.OnScroll = func(top, height float32) {
		v.clocks.SetView(0, top+height)
		v.pairs.SetView(top-v.pairs.Position().Y, height)
	}
	v.clocks.OnScroll, v.pairs.OnScroll = v.scroll.Scrolled, v.scroll.Scrolled
	return v
}

func (v *bothSides) content() fyne.CanvasObject { return v.scroll }

func (v *bothSides) query(q *otlp.Query) { q.Streams.Limit = 1 }

func (v *bothSides) prepare(s *console.TelemetrySnapshot, _ look.Palette) func() {
	if !v.page.refresh.due(BothSides, s.At, explorerEvery) {
		return func() {}
	}
	return func() {
		clocks := s.Clocks
		v.clocks.SetRows(len(clocks), func(r, c int) table.Cell {
			k := &clocks[r]
			switch c {
			case 0:
				return table.Cell{Text: k.Service}
			case 1:
				return table.Cell{Text: bounds(k.Bounds)}
			case 2:
				return table.Cell{Text: strconv.Itoa(k.Pairs)}
			case 3:
				return table.Cell{Text: strconv.Itoa(k.Records)}
			}
			x := table.Cell{Text: strconv.Itoa(k.Conflicts)}
			if k.Conflicts > 0 {
				x.Ink = look.Amber
			}
			return x
		})
		v.pairs.fill(s.Pairs)
		showIf(v.none, len(s.Pairs) == 0)
		showIf(v.pairs.Table, len(s.Pairs) > 0)
		text := ""
		if n := len(s.State.Jumps); n > 0 {
			j := s.State.Jumps[n-1]
			text = plural(n, "jump") + " of a clock. The latest, " + ago(s.At-j.At) + ": "
			if j.Slept > 0 {
				text += "this machine slept " + clock(j.Slept) + ". "
			}
			if j.Set != 0 {
				text += "the wall clock was set by " + signed(j.Set) + "."
			}
		}
		v.jumps.Set(text)
		showIf(v.jumps, text != "")
		v.scroll.Settle()
	}
}
