// Package livepanel is the panel beside a chat: what is measured of a turn while it streams and of
// turns that have ended, in figures and drawings. Each says its definition and source on hover or
// focus.
package livepanel

import (
	"math"
	"sync"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"

	"velo/bench/measure"
	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/plot"
	"velo/ui/thread"
)

// Params is what the panel is given.
type Params struct {
	Thread *thread.Thread
	Copy   func(text string)
	Say    func(look.Tone, string)
	Save   func(write func(dir string) (file string, err error)) // asks for a folder where none is known
	Redraw func()                                                // ask for a drawing soon
	Scope  func(chat bool)                                       // what is shown was chosen: the turn, or the whole chat
}

// Ended is what is shown of turns that have ended.
type Ended struct {
	Chat       bool   // of a whole chat, not of one turn
	Title      string // of the turn or the chat, for what is exported
	Statistics console.ChatStatistics
	Texts      []Texts // of each request of Statistics, in their order
}

// Texts are what a turn wrote.
type Texts struct{ Reasoning, Answer string }

// Panel is the panel. Prepare may be called on any goroutine, everything else on the UI thread.
type Panel struct {
	Params
	View fyne.CanvasObject

	layer       *look.HelpLayer
	turn, chat  *look.PushButton
	title       *look.Text
	tiles       [figureCount]*look.Tile
	helps       [figureCount]*look.Help
	timeline    *plot.View
	histograms  [2]*plot.View
	byRequest   [2]*plot.View
	split       *split
	splitWords  *look.Text
	requestRows *fyne.Container
	scroll      *look.Scroll

	scope   bool // chat
	streams bool // what is shown is of a turn that runs

	draw  drawing // of the goroutine that prepares
	from  handed
	shown figures
}

// drawing is what the goroutine that prepares keeps.
type drawing struct {
	line    timeline
	rate    histogram
	gap     histogram
	first   bars
	tokens  bars
	follow  follower
	drawn   int           // version of ended that was drawn
	sizes   [5][2]int     // of what was drawn
	palette look.Palette  // that it was drawn in
	last    time.Duration // of the live turn when its figures were last written
	wasLive string
}

// handed is what the UI thread hands to the goroutine that prepares.
type handed struct {
	mu      sync.Mutex
	ended   Ended
	has     bool
	version int
}

func (h *handed) get() (Ended, bool, int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended, h.has, h.version
}

func (h *handed) set(e Ended, has bool) {
	h.mu.Lock()
	h.ended, h.has = e, has
	h.version++
	h.mu.Unlock()
}

const (
	inner     = 328 // width of what is in the panel, at its least
	tileWidth = 104
)

// New builds the panel.
func New(p Params) *Panel {
	g := &Panel{Params: p, layer: look.HelpOver()}
	g.turn = look.Button("Turn", func() { g.choose(false) })
	g.chat = look.Button("Chat", func() { g.choose(true) })
	g.title = look.NewText("Nothing measured yet").Sized(look.Small).In(look.Muted).Fixed(120)
	help := func(o fyne.CanvasObject, title, text string) *look.Help { return look.NewHelp(g.layer, o, title, text) }
	f := ofNothing()
	for i := range g.tiles {
		t := look.NewTile(f[i].name).Wide(tileWidth).Notes(0)
		switch i {
		case fRate:
			t = look.NewTile(f[i].name).Hero().Steady(4).Notes(0)
		case fRange:
			t = t.Wide(2*tileWidth + look.Step)
		case fGapP50, fGapP90, fGapMax, fOutput, fContext, fAcceptance:
			t = t.Notes(1)
		}
		g.tiles[i] = t
		g.helps[i] = help(t, f[i].name, f[i].help)
	}
	row := func(from, to int) fyne.CanvasObject {
		l := look.Line(look.Step)
		for i := from; i <= to; i++ {
			l.Add(g.helps[i])
		}
		return l
	}
	view := func(height float32) *plot.View {
		v := plot.NewView(fyne.NewSize(120, height))
		v.OnSize = p.Redraw
		return v
	}
	g.timeline = view(timelineHeight)
	for i := range g.histograms {
		g.histograms[i], g.byRequest[i] = view(histogramHeight), view(histogramHeight)
	}
	g.split = newSplit()
	g.splitWords = look.NewText("").Sized(look.Small).In(look.Muted).Fixed(inner)
	splitHelp := help(look.Rows(look.Half, g.split, g.splitWords), "Tokens by channel",
		"Tokens of the reasoning and of the answer, as they were counted. The mark says by what: ▪ server, ▫ tokenizer, ~ estimate.")
	head := look.Trailing(look.Step, look.NewText("Measured").Sized(look.Head).Bold(), look.Line(look.Half, g.turn, g.chat))
	charts := look.Rows(look.Gap,
		help(g.timeline, "Decode rate over time", "The rolling rate: tokens of the last second, every 100 ms, stalls included. Colours are the kind of text that was written then; the dashed line is the median."),
		look.Columns(look.Gap, nil,
			help(g.histograms[0], "Rates", "How often the rolling rate had which value."),
			help(g.histograms[1], "Gaps", "How often which gap lay between two chunks. The last bin holds everything above it.")))
	g.requestRows = look.Rows(look.Gap, look.Columns(look.Gap, nil,
		help(g.byRequest[0], "TTFT by request", "Time to first token of each turn of the chat, the latest at the right."),
		help(g.byRequest[1], "Tokens by request", "Output tokens of each turn of the chat, the latest at the right.")))
	g.scroll = look.NewScroll(look.Inset(look.Step, look.Gap, look.Gap, look.Gap, look.Rows(12,
		g.helps[fRate], row(fMedian, fRange), row(fTTFT, fElapsed), row(fGapP50, fGapMax), row(fOutput, fAcceptance), splitHelp, charts, g.requestRows)))
	foot := look.Rows(0, look.Rule(), look.Inset(look.Step, look.Gap, look.Step, look.Gap, look.Line(look.Half,
		look.Button("PNG", g.SavePNG), look.Button("PDF", g.SavePDF), look.Button("Copy figures", g.CopyFigures))))
	top := look.Rows(0, look.Inset(look.Step, look.Gap, look.Half, look.Gap, look.Rows(look.Half, head, g.title)), look.Rule())
	g.View = look.Over(look.Frame(top, foot, nil, g.scroll), g.layer.Container)
	g.mark()
	g.put(f)
	g.splitWords.Set("No tokens yet")
	return g
}

// Show shows turns that have ended.
func (g *Panel) Show(e Ended) {
	g.scope = e.Chat
	g.mark()
	g.from.set(e, true)
	g.Redraw()
}

// Clear shows that there is nothing.
func (g *Panel) Clear() {
	g.from.set(Ended{Chat: g.scope}, false)
	g.Redraw()
}

// Themed follows a change of the palette: what is drawn is drawn again by the next Prepare.
func (g *Panel) Themed() { g.Redraw() }

// choose takes the turn or the chat as what is shown.
func (g *Panel) choose(chat bool) {
	g.scope = chat
	g.mark()
	g.Scope(chat)
}

// WholeChat tells whether the whole chat is shown, not one turn.
func (g *Panel) WholeChat() bool { return g.scope }

func (g *Panel) mark() {
	set := func(b *look.PushButton, on bool) {
		want := widget.LowImportance
		if on {
			want = widget.HighImportance
		}
		if b.Importance != want {
			b.Importance = want
			b.Refresh()
		}
	}
	set(g.turn, !g.scope)
	set(g.chat, g.scope)
}

// Prepare writes and draws, off the UI thread, and returns what puts it on screen there. mine tells
// whether s is a turn of the chat that is shown, and runs. Only one may be under way, and it must be
// on screen before the next one begins.
func (g *Panel) Prepare(s console.ChatLive, mine bool, p look.Palette) (show func()) {
	ended, has, version := g.from.get()
	d := &g.draw
	again := version != d.drawn || p.Background != d.palette.Background
	d.palette = p
	if mine {
		d.follow.look(s.TurnID, s.Reasoning, s.Answer, s.Elapsed.Seconds())
		if d.wasLive == s.TurnID && s.Elapsed-d.last < 240*time.Millisecond && s.Elapsed >= d.last && !g.resized() {
			return func() {} // figures that change faster than this are not read
		}
		if d.wasLive != s.TurnID {
			d.line.reset()
		}
		d.wasLive, d.last = s.TurnID, s.Elapsed
		d.drawn = -1
		return g.prepareLive(&s, &ended, has, p)
	}
	if d.wasLive != "" {
		d.wasLive = ""
		again = true
	}
	if again {
		d.line.reset()
	}
	if !again && !g.resized() {
		return func() {}
	}
	d.drawn = version
	return g.prepareEnded(&ended, has, p)
}

func (g *Panel) views() []*plot.View {
	return []*plot.View{g.timeline, g.histograms[0], g.histograms[1], g.byRequest[0], g.byRequest[1]}
}

// resized tells whether a view covers other pixels than when it was last drawn.
func (g *Panel) resized() bool {
	changed := false
	for i, v := range g.views() {
		w, h, _ := v.Pixels()
		if g.draw.sizes[i] != [2]int{w, h} {
			changed = true
		}
	}
	return changed
}

// paint draws into a view, and notes that it is to be turned.
func (g *Panel) paint(turn *[]*plot.View, v *plot.View, draw func(v *plot.View) bool) {
	for i, o := range g.views() {
		if o == v {
			w, h, _ := v.Pixels()
			g.draw.sizes[i] = [2]int{w, h}
		}
	}
	if draw(v) {
		*turn = append(*turn, v)
	}
}

func (g *Panel) prepareLive(s *console.ChatLive, ended *Ended, has bool, p look.Palette) func() {
	f := ofLive(s)
	d := &g.draw
	start := s.Snapshot.At - s.Elapsed
	r := rates{median: s.Snapshot.Median, bands: d.follow.bands(), now: f[fRate].value}
	var values []float64
	for _, q := range s.Snapshot.Sum {
		if q.At >= start {
			q.At -= start
			r.points = append(r.points, q)
			values = append(values, q.Rate)
		}
	}
	if !s.Snapshot.Rate.Ok() {
		r.now = ""
	}
	var turn []*plot.View
	g.paint(&turn, g.timeline, func(v *plot.View) bool {
		img, scale := v.Back()
		if img != nil {
			d.line.draw(img, scale, p, r)
		}
		return img != nil
	})
	median, gaps := s.Snapshot.Median, gapsOf{s.Gaps, s.GapCounts, s.GapP50, s.GapP90}
	if has && ended.Chat { // this turn and those before it
		for _, q := range ended.Statistics.Rolling {
			values = append(values, q.Rate)
		}
		median = measure.WeightedQuantileOf(values, nil, 0.5)
		gaps = gaps.with(ended.Statistics.Gaps)
	}
	g.drawRates(&turn, values, median, p)
	g.drawGaps(&turn, gaps, "No gaps yet.", p)
	g.drawRequests(&turn, ended, has, p)
	return func() {
		g.streams = true
		g.title.Set("This turn, while it streams")
		g.put(f)
		g.split.set(s.ReasoningTokens, s.AnswerTokens)
		g.splitWords.Set(splitText(s.ReasoningTokens, s.AnswerTokens, s.Source))
		for _, v := range turn {
			v.Turn()
		}
	}
}

func (g *Panel) prepareEnded(e *Ended, has bool, p look.Palette) func() {
	f := ofNothing()
	d := &g.draw
	st := &e.Statistics
	r := rates{median: measure.Missing}
	var values []float64
	gaps := gapsOf{p50: measure.Missing, p90: measure.Missing}
	reasoning, answer, source := 0, 0, measure.Source("")
	if has && st.Run != nil {
		f = ofTurns(st, e.Chat)
		r.points, r.median = st.Rolling, st.Run.Rolling.Median
		if e.Chat {
			r.starts = st.Starts
		}
		for i := range st.Requests {
			r.bands = append(r.bands, e.bandsAt(i)...)
		}
		for _, q := range st.Rolling {
			values = append(values, q.Rate)
		}
		gaps = gapsOf{st.Gaps, nil, st.Run.ICL.Q(0.5).Value, st.Run.ICL.Q(0.9).Value}
		reasoning, answer, source = st.Run.Thought, st.Run.Answer, st.Run.Source
	}
	var turn []*plot.View
	g.paint(&turn, g.timeline, func(v *plot.View) bool {
		img, scale := v.Back()
		if img != nil {
			d.line.draw(img, scale, p, r)
		}
		return img != nil
	})
	g.drawRates(&turn, values, r.median, p)
	g.drawGaps(&turn, gaps, "No gaps yet.", p)
	g.drawRequests(&turn, e, has, p)
	title := e.Title
	switch {
	case !has || st.Run == nil:
		title = "Nothing measured yet"
	case e.Chat:
		title = "The whole chat: " + title
	}
	return func() {
		g.streams = false
		g.title.Set(title)
		g.put(f)
		g.split.set(reasoning, answer)
		g.splitWords.Set(splitText(reasoning, answer, source))
		for _, v := range turn {
			v.Turn()
		}
	}
}

func (g *Panel) drawRates(turn *[]*plot.View, values []float64, median measure.Num, p look.Palette) {
	g.paint(turn, g.histograms[0], func(v *plot.View) bool {
		img, scale := v.Back()
		if img == nil {
			return false
		}
		h := measure.HistogramOf(values, nil, 0, 0)
		g.draw.rate.draw(img, scale, p, "Rates", "tok/s", h, 1, []marker{{float64(median), "median"}}, "No samples yet.")
		return true
	})
}

// gapsOf are the gaps that a histogram shows.
type gapsOf struct {
	values, counts []float64 // seconds, and how often each came; nil: once
	p50, p90       measure.Num
}

// with are these gaps and others that came once each.
func (o gapsOf) with(more []float64) gapsOf {
	if len(more) == 0 {
		return o
	}
	n := len(o.values)
	out := gapsOf{values: append(o.values[:n:n], more...), counts: make([]float64, n+len(more))}
	for i := range out.counts {
		out.counts[i] = 1
		if i < n && o.counts != nil {
			out.counts[i] = o.counts[i]
		}
	}
	out.p50 = measure.WeightedQuantileOf(out.values, out.counts, 0.5)
	out.p90 = measure.WeightedQuantileOf(out.values, out.counts, 0.9)
	return out
}

func (g *Panel) drawGaps(turn *[]*plot.View, o gapsOf, none string, p look.Palette) {
	g.paint(turn, g.histograms[1], func(v *plot.View) bool {
		img, scale := v.Back()
		if img == nil {
			return false
		}
		most := 0.0
		if o.p90.Ok() {
			most = 3 * float64(o.p90) // the long tail goes into the last bin; the longest gap is a figure
		}
		h := measure.HistogramOf(o.values, o.counts, 0, most)
		g.draw.gap.draw(img, scale, p, "Gaps", "ms", h, 1e3, []marker{{float64(o.p50), "p50"}, {float64(o.p90), "p90"}}, none)
		return true
	})
}

func (g *Panel) drawRequests(turn *[]*plot.View, e *Ended, has bool, p look.Palette) {
	var ttft, tokens []float64
	none := "Choose Chat above."
	if has && e.Chat {
		none = "No turn has ended yet."
		for i := range e.Statistics.Requests {
			r := &e.Statistics.Requests[i]
			ttft = append(ttft, float64(r.TTFT))
			n := math.NaN()
			if r.N > 0 {
				n = float64(r.N)
			}
			tokens = append(tokens, n)
		}
	}
	for i, c := range []struct {
		title, unit string
		values      []float64
		factor      float64
		b           *bars
	}{{"TTFT", "ms", ttft, 1e3, &g.draw.first}, {"Tokens", "output", tokens, 1, &g.draw.tokens}} {
		g.paint(turn, g.byRequest[i], func(v *plot.View) bool {
			img, scale := v.Back()
			if img != nil {
				c.b.draw(img, scale, p, c.title, c.unit, c.values, c.factor, none)
			}
			return img != nil
		})
	}
}

// put shows figures.
func (g *Panel) put(f figures) {
	g.shown = f
	for i := range f {
		t := g.tiles[i]
		t.SetLabel(f[i].name)
		t.Set(f[i].value, f[i].unit, f[i].mark, f[i].note, f[i].ink)
		g.helps[i].SetText(f[i].help, f[i].name+"\t"+f[i].exact)
	}
}

// Value is what a tile shows, by its name; for tests and for reading aloud.
func (g *Panel) Value(name string) string {
	for i := range g.shown {
		if g.shown[i].name == name {
			return g.tiles[i].Value()
		}
	}
	return ""
}

func splitText(reasoning, answer int, s measure.Source) string {
	switch {
	case reasoning+answer == 0:
		return "No tokens yet"
	case reasoning == 0:
		return group(answer) + " answer " + s.Mark()
	}
	return group(reasoning) + " reasoning, " + group(answer) + " answer " + s.Mark()
}
