package telemetrypage

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"fyne.io/fyne/v2"

	"velo/bench/measure"
	"velo/bench/otlp"
	"velo/bench/otlp/stream"
	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/table"
)

// What is said where no stream is in view; an application sends spans, of which no stream is made.
const (
	noStream = "No stream is in view. One that runs appears with its next record."
	butSpans = noStream + " Spans came: those of calls to a model are listed under Calls, all of them under Records."
)

// mostPanels is how many streams are shown in full at a time; one that is chosen is shown alone.
const mostPanels = 4

// listWidth is the width of the list, in units, and listLeast that where there is no room.
const (
	listWidth = 328
	listLeast = 216
)

// streams is the list of all streams and a panel for each of some.
type streams struct {
	page   *Page
	view   fyne.CanvasObject
	filter *look.Entry
	count  *look.Text
	latest *look.PushButton
	table  *table.Table
	side   *look.Scroll
	panels [mostPanels]*panel
	scroll *look.Scroll
	none   *look.Paragraph

	rows    []stream.Summary // on screen
	filling bool             // the selection is set by the program

	mu    sync.Mutex
	slots [mostPanels]*stream.Key // of Prepare: which stream is in which panel
}

func newStreams(g *Page) *streams {
	v := &streams{page: g}
	v.filter = look.NewEntry("Filter by service, conversation or model")
	v.filter.OnChanged = func(text string) {
		g.wanted.set(func(w *wanted) { w.filter[Streams] = text })
		g.drawAgain()
	}
	v.filter.OnEscape = func() { v.filter.SetText("") }
	v.count = look.NewText("").Sized(look.Small).In(look.Muted).Fixed(120)
	v.latest = look.Button("Latest", func() { v.choice(nil) })
	v.latest.Disable()
	v.table = table.New(look.Small, table.Column{Title: "Stream", Stretch: true, Least: 96}, table.Column{Title: "State", Least: 48},
		table.Column{Title: "tok/s", Right: true, Least: 44}, table.Column{Title: "Tokens", Right: true, Least: 40})
	v.table.OnSelect = func(row int) {
		if v.filling {
			return
		}
		if row < 0 || row >= len(v.rows) {
			v.choice(nil)
			return
		}
		key := v.rows[row].Key
		v.choice(&key)
	}
	v.side = look.NewScroll(v.table)
	v.side.OnScroll = func(top, height float32) { v.table.SetView(top, height) }
	v.table.OnShow, v.table.OnScroll = v.side.Reveal, v.side.Scrolled
	v.none = look.NewParagraph(noStream).In(look.Muted)
	column := look.Rows(look.Gap, v.none)
	for i := range v.panels {
		v.panels[i] = newPanel(g)
		column.Add(v.panels[i].view)
	}
	v.scroll = look.NewScroll(look.Inset(0, look.Gap, look.Gap, look.Gap, column))
	v.scroll.OnScroll = func(float32, float32) { g.drawAgain() }
	left := look.Frame(look.Inset(0, look.Gap, look.Step, 0, look.Rows(look.Step, v.filter, look.Trailing(look.Step, v.count, v.latest))), nil, nil,
		look.Inset(0, look.Gap, 0, 0, v.side))
	v.view = look.Aside(listWidth, listLeast, left, look.Frame(nil, nil, look.Sized(1, 0, look.Rule()), v.scroll))
	return v
}

func (v *streams) content() fyne.CanvasObject { return v.view }

// choice shows one stream alone; nil: the latest ones.
func (v *streams) choice(key *stream.Key) {
	v.page.wanted.set(func(w *wanted) { w.stream = key })
	v.latest.SetEnabled(key != nil)
	if key == nil {
		v.filling = true
		v.table.Select(-1)
		v.filling = false
	}
	v.scroll.To(0)
	v.page.drawAgain()
}

func (v *streams) query(q *otlp.Query) {
	v.page.wanted.get(func(w *wanted) { q.Streams.Filter = w.filter[Streams] })
	q.Streams.Panels = nil
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, k := range v.slots {
		if k != nil {
			q.Streams.Panels = append(q.Streams.Panels, *k)
		}
	}
}

// choose gives the panels to streams, and tells whether that changed anything. A stream keeps its panel
// while it runs: what somebody reads does not move.
func (v *streams) choose(s *console.TelemetrySnapshot) (changed bool) {
	var alone *stream.Key
	v.page.wanted.get(func(w *wanted) { alone = w.stream })
	v.mu.Lock()
	defer v.mu.Unlock()
	was := v.slots
	if alone != nil {
		v.slots = [mostPanels]*stream.Key{alone}
	} else {
		list := s.Streams
		for i := range s.Panels { // one that says little is not among the latest, and keeps its panel
			if !slices.ContainsFunc(list, func(x stream.Summary) bool { return x.Key == s.Panels[i].Key }) {
				list = append(list[:len(list):len(list)], s.Panels[i].Summary)
			}
		}
		v.slots = assign(v.slots, list, v.page.holds)
	}
	for i, k := range v.slots {
		if (k == nil) != (was[i] == nil) || k != nil && *k != *was[i] {
			changed = true
		}
	}
	return changed
}

// heldFor is how long a stream that runs keeps its panel from others though it says nothing: an engine that
// goes away ends none.
const heldFor = 5 * time.Second

// assign keeps streams that are in a panel there, and puts the latest others where there is room: into
// empty panels first, then, if they run, into those of streams that have ended. One that is held is not moved.
func assign(slots [mostPanels]*stream.Key, list []stream.Summary, held func(stream.Key) bool) [mostPanels]*stream.Key {
	state := make(map[stream.Key]string, len(list))
	for i := range list {
		state[list[i].Key] = list[i].State
	}
	speaks := map[stream.Key]bool{}
	for i := range list {
		s := &list[i]
		speaks[s.Key] = (s.State == stream.Running || s.State == stream.Waiting) && s.Age < heldFor
	}
	runs := func(k stream.Key) bool { return speaks[k] }
	taken := map[stream.Key]bool{}
	for i, k := range slots {
		if k != nil && (state[*k] == "" || taken[*k]) {
			slots[i] = nil
		}
		if slots[i] != nil {
			taken[*k] = true
		}
	}
	for i := range list {
		k := list[i].Key
		if taken[k] {
			continue
		}
		at := slices.Index(slots[:], nil)
		if at < 0 && runs(k) {
			at = slices.IndexFunc(slots[:], func(o *stream.Key) bool { return !runs(*o) && !held(*o) })
		}
		if at < 0 {
			continue
		}
		if slots[at] != nil {
			delete(taken, *slots[at])
		}
		slots[at] = &k
		taken[k] = true
	}
	return slots
}

func (v *streams) prepare(s *console.TelemetrySnapshot, p look.Palette) func() {
	v.mu.Lock()
	slots := v.slots
	v.mu.Unlock()
	again := v.page.refresh.due("distributions", s.At, distributionsEvery)
	figures := v.page.refresh.due("figures", s.At, listEvery)
	var shows []func()
	for i, pl := range v.panels {
		var found *stream.Panel
		if slots[i] != nil {
			for j := range s.Panels {
				if s.Panels[j].Key == *slots[i] {
					found = &s.Panels[j]
				}
			}
		}
		shows = append(shows, pl.prepare(found, figures, again, p))
	}
	list := v.page.refresh.due("streams", s.At, listEvery)
	rows, matches := s.Streams, s.Matches
	if list { // in order of appearance: rows that jump cannot be read
		rows = slices.Clone(rows)
		slices.SortFunc(rows, func(a, b stream.Summary) int { return int(int64(b.Serial) - int64(a.Serial)) })
	}
	running := recorded(s)
	return func() {
		moved := false
		for i, show := range shows {
			show()
			moved = v.panels[i].settle(running) || moved
			v.panels[i].away = v.away(v.panels[i])
		}
		none := noStream
		if s.State.Counters.Spans > 0 {
			none = butSpans
		}
		if none != v.none.Text() {
			v.none.Set(none)
			moved = true
		}
		moved = showIf(v.none, len(s.Panels) == 0) || moved
		if list {
			v.fill(rows, matches, s.Rate)
		}
		if moved {
			v.scroll.Settle()
		}
	}
}

// away tells whether a panel is scrolled out of view: it is not drawn then.
func (v *streams) away(p *panel) bool {
	top, height := v.scroll.Offset(), v.scroll.Size().Height
	y := p.view.Position().Y
	return height > 0 && p.view.Size().Height > 0 && (y > top+height || y+p.view.Size().Height < top)
}

// recorded are the streams that are recorded on their own.
func recorded(s *console.TelemetrySnapshot) map[stream.Key]string {
	m := map[stream.Key]string{}
	for _, r := range s.Recordings {
		for _, k := range r.Bounds.Streams {
			m[k] = r.ID
		}
	}
	return m
}

func (v *streams) fill(rows []stream.Summary, matches int, rate measure.Num) {
	v.rows = rows
	var alone *stream.Key
	v.page.wanted.get(func(w *wanted) { alone = w.stream })
	v.filling = true
	defer func() { v.filling = false }()
	v.table.SetRows(len(rows), func(r, c int) table.Cell {
		s := &rows[r]
		switch c {
		case 0:
			return table.Cell{Text: name(s.Key), Copy: s.Service + " " + s.Conversation + " " + s.Generation}
		case 1:
			ink := look.Plain
			switch s.State {
			case stream.Broken:
				ink = look.Red
			case stream.Quiet:
				ink = look.Muted
			}
			return table.Cell{Text: s.State, Ink: ink}
		case 2:
			return cell(measure.PerSec, s.Rate, s.Source.Mark())
		}
		return table.Cell{Text: strconv.Itoa(s.Tokens), Mark: s.Source.Mark()}
	})
	at := -1
	if alone != nil {
		at = slices.IndexFunc(rows, func(s stream.Summary) bool { return s.Key == *alone })
	}
	if v.table.Selected() != at {
		v.table.Select(at)
	}
	v.latest.SetEnabled(alone != nil)
	text := plural(len(rows), "stream")
	if matches > len(rows) {
		text = group(len(rows)) + " of " + plural(matches, "stream")
	}
	if rate.Ok() && rate > 0 {
		mark := ""
		for i := range rows {
			if rows[i].Source == measure.Estimate { // then the sum is one too
				mark = measure.Estimate.Mark()
			}
		}
		text += " · " + write(measure.PerSec, rate, mark).text()
	}
	v.count.Set(text)
	v.side.Settle()
}

// cell is a number in a table.
func cell(unit measure.Unit, v measure.Num, mark string) table.Cell {
	if !v.Ok() {
		return table.Cell{Text: "—", Ink: look.Faint}
	}
	f := write(unit, v, mark)
	return table.Cell{Text: f.value, Mark: f.mark, Copy: strconv.FormatFloat(float64(v), 'g', -1, 64)}
}
