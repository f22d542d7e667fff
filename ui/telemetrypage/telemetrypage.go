// Package telemetrypage is the page of what engines tell of themselves: whether the receiver listens and
// what it heard, a panel for each stream, the calls that came as spans, the engines' figures, every metric, the records as they came,
// how the engine's numbers stand to the client's, and sessions made of all that.
package telemetrypage

import (
	"slices"
	"strings"
	"sync"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/widget"

	"velo/bench/otlp"
	"velo/bench/otlp/series"
	"velo/bench/otlp/stream"
	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/thread"
)

// Params is what the page is given.
type Params struct {
	Telemetry  console.Telemetry
	Thread     *thread.Thread
	Copy       func(string) // to the clipboard
	OpenReport func(session string)
	GoEngine   func()       // lead to Velo's own engine
	Store      func() int64 // bytes that the sessions take on disk; may take as long as a disk
	Say        func(look.Tone, string)
	Redraw     func() // ask for a Prepare soon
}

// The parts of the page.
const (
	Streams    = "Streams"
	Calls      = "Calls"
	Engines    = "Engines"
	Metrics    = "Metrics"
	Records    = "Records"
	BothSides  = "Client and server"
	Recordings = "Recordings"
	Settings   = "Settings"
)

// part is one of them. prepare runs off the UI thread and returns what runs on it.
type part interface {
	content() fyne.CanvasObject
	query(q *otlp.Query)
	prepare(s *console.TelemetrySnapshot, p look.Palette) (show func())
}

// Page is the page. Prepare may be called on any goroutine, everything else on the UI thread.
type Page struct {
	Params
	View fyne.CanvasObject

	head   head
	tabs   []*look.PushButton
	names  []string
	parts  map[string]part
	empty  map[string]fyne.CanvasObject // that a part without data shows instead
	body   *fyne.Container
	quiet  quiet
	form   form
	wanted wanted
	done   int // how often a state was put on screen

	changing sync.Mutex // settings are read, changed and kept by one goroutine at a time

	frozen  *console.TelemetrySnapshot // while paused; of Prepare
	refresh refresh
	whole   bool // the Prepare that runs draws everything
}

// wanted is what the user chose; the goroutine that prepares reads it.
type wanted struct {
	mu     sync.Mutex
	part   string
	paused bool
	filter map[string]string   // by part
	stream *stream.Key         // the one that is shown alone; nil = the latest
	metric string              // that is plotted
	held   map[stream.Key]bool // streams that are paused alone
	again  bool                // draw everything, due or not
}

func (w *wanted) set(f func(*wanted)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w)
}

func (w *wanted) get(f func(*wanted)) { w.set(f) }

// drawAgain has everything drawn by the next Prepare: sizes or colours changed, or what is wanted did.
func (g *Page) drawAgain() {
	g.wanted.set(func(w *wanted) { w.again = true })
	g.Redraw()
}

// refresh says when a part that nobody can read ten times a second is due again. Of Prepare.
type refresh struct {
	last map[string]time.Duration
}

func (r *refresh) due(what string, now, every time.Duration) bool {
	if r.last == nil {
		r.last = map[string]time.Duration{}
	}
	last, ok := r.last[what]
	if ok && now >= last && now-last < every {
		return false
	}
	r.last[what] = now
	return true
}

// New builds the page.
func New(p Params) *Page {
	g := &Page{Params: p, parts: map[string]part{}, empty: map[string]fyne.CanvasObject{}}
	g.wanted.part, g.wanted.filter, g.wanted.held = Streams, map[string]string{}, map[stream.Key]bool{}
	g.head.build(g)
	g.form.build(g)
	g.names = []string{Streams, Calls, Engines, Metrics, Records, BothSides, Recordings, Settings}
	g.parts[Streams] = newStreams(g)
	g.parts[Calls] = newCalls(g)
	g.parts[Engines] = newEngines(g)
	g.parts[Metrics] = newMetrics(g)
	g.parts[Records] = newRecords(g)
	g.parts[BothSides] = newBothSides(g)
	g.parts[Recordings] = newRecordings(g)
	g.parts[Settings] = &g.form
	line := look.WrapLeft(look.Half)
	g.body = look.Over()
	for _, name := range g.names {
		b := look.Button(name, func() { g.Open(name) })
		g.tabs = append(g.tabs, b)
		line.Add(b)
		o := g.parts[name].content()
		o.Hide()
		g.body.Add(o)
	}
	g.quiet.build(g)
	g.body.Add(g.quiet.view)
	top := look.Rows(look.Step, g.head.view, line)
	g.View = look.Inset(look.Gap, look.Margin, 0, look.Margin, look.Frame(look.Inset(0, 0, look.Step, 0, top), nil, nil, g.body))
	g.form.fill(p.Telemetry.Settings())
	g.mark(Streams)
	return g
}

// Open brings a part into view.
func (g *Page) Open(name string) {
	if g.parts[name] == nil {
		return
	}
	g.mark(name)
	if name == Settings {
		g.form.reload()
	}
	g.Redraw()
}

// mark makes a part the one in view.
func (g *Page) mark(name string) {
	g.wanted.set(func(w *wanted) { w.part = name })
	for i, n := range g.names {
		want := widget.LowImportance
		if n == name {
			want = widget.MediumImportance
		}
		if g.tabs[i].Importance != want {
			g.tabs[i].Importance = want
			g.tabs[i].Refresh()
		}
	}
	g.arrange()
}

// Part is the part in view.
func (g *Page) Part() (name string) {
	g.wanted.get(func(w *wanted) { name = w.part })
	return name
}

// needsData tells whether a part shows nothing where nothing ever came.
func needsData(name string) bool {
	return slices.Contains([]string{Streams, Calls, Engines, Metrics, Records}, name)
}

// arrange shows the part in view, or what is to be done where nothing came yet.
func (g *Page) arrange() {
	name := g.Part()
	waiting := g.quiet.wanted && needsData(name)
	moved := showIf(g.quiet.view, waiting)
	for _, n := range g.names {
		moved = showIf(g.parts[n].content(), n == name && !waiting) || moved
	}
	if moved {
		g.body.Refresh()
	}
}

// Shown brings the page up to date when it comes into view.
func (g *Page) Shown() {
	g.Reload()
	g.Redraw()
}

// Reload reads the settings again. What is being typed stays.
func (g *Page) Reload() {
	if !g.form.dirty {
		g.form.fill(g.Telemetry.Settings())
	}
	g.Redraw()
}

// Toggle turns the receiver on or off.
func (g *Page) Toggle() {
	g.change(func(s *console.TelemetrySettings) { s.On = !s.On }, "")
}

// change changes the settings; what is typed and not applied stays in the form.
func (g *Page) change(f func(*console.TelemetrySettings), said string) {
	g.Thread.Work(func() func() {
		g.changing.Lock()
		s := g.Telemetry.Settings()
		f(&s)
		err := g.Telemetry.SaveSettings(s, nil)
		g.changing.Unlock()
		return func() {
			switch {
			case err != nil:
				g.Say(look.OnRed, sentence(err.Error()))
			case said != "":
				g.Say(look.OnAccent, said)
			}
			g.Reload()
		}
	})
}

// Pause keeps what is on screen, or lets it go on. The receiver does not pause.
func (g *Page) Pause() {
	paused := false
	g.wanted.set(func(w *wanted) { w.paused = !w.paused; paused = w.paused })
	g.head.showPaused(paused)
	g.drawAgain()
}

// Clear empties the views, and nothing else.
func (g *Page) Clear() {
	g.wanted.set(func(w *wanted) { w.stream, w.again = nil, true; clear(w.held) })
	g.Thread.Work(func() func() {
		g.Telemetry.Clear()
		return g.Redraw
	})
}

// Hold keeps what is on screen of one stream, or lets it go on. Others are not paused, nor is the receiver.
func (g *Page) Hold(k stream.Key) {
	g.wanted.set(func(w *wanted) {
		if w.held[k] {
			delete(w.held, k)
		} else {
			w.held[k] = true
		}
	})
	g.drawAgain()
}

// holds tells whether a stream is paused alone.
func (g *Page) holds(k stream.Key) (held bool) {
	g.wanted.get(func(w *wanted) { held = w.held[k] })
	return held
}

// ClearStream takes one stream out of view until its next record.
func (g *Page) ClearStream(k stream.Key) {
	g.wanted.set(func(w *wanted) {
		delete(w.held, k)
		if w.stream != nil && *w.stream == k {
			w.stream = nil
		}
	})
	g.Thread.Work(func() func() {
		g.Telemetry.Clear(k)
		return g.drawAgain
	})
}

// RecordsOf shows the records of one stream as they came.
func (g *Page) RecordsOf(k stream.Key) {
	text := k.Generation
	if text == "" || strings.HasPrefix(text, "#") { // numbered here: the records have no generation
		text = k.Conversation
	}
	g.Filter(Records, text)
	g.Open(Records)
}

// Record begins a recording of these streams; without any, of all.
func (g *Page) Record(streams ...stream.Key) {
	g.Thread.Work(func() func() {
		if err := g.Telemetry.Record(streams); err != nil {
			return func() { g.Say(look.OnRed, sentence(err.Error())) }
		}
		return g.Redraw
	})
}

// RecordAll begins a recording of all streams, or stops the one that runs.
func (g *Page) RecordAll() { g.head.recordAll() }

// Stop ends a recording.
func (g *Page) Stop(id string) {
	g.Thread.Work(func() func() {
		g.Telemetry.StopRecording(id)
		return g.Redraw
	})
}

// Prepare reads what came, off the UI thread, and returns what puts it on screen there. Only one may be
// under way, and it must be on screen before the next one begins. next is when to come again.
func (g *Page) Prepare(p look.Palette) (show func(), next time.Duration) {
	var name, filter string
	paused, again := false, false
	g.wanted.set(func(w *wanted) {
		name, paused, again, filter = w.part, w.paused, w.again, w.filter[w.part]
		w.again = false
	})
	g.whole = again
	if again {
		g.refresh = refresh{}
	}
	active := g.parts[name]
	var s console.TelemetrySnapshot
	if paused && g.frozen != nil {
		s = *g.frozen
		now := g.Telemetry.Snapshot(otlp.Query{Streams: stream.Query{Limit: 1}})
		s.State, s.Recordings, s.Recorded, s.Deaf = now.State, now.Recordings, now.Recorded, now.Deaf // facts never pause
		filtered(&s, name, filter)
	} else {
		q := otlp.Query{Streams: stream.Query{Limit: 100}}
		if paused { // the first of a pause has all that any part shows
			q.Raw, q.Calls, q.Lines = mostRecords, mostCalls, &series.Query{Limit: mostLines, Points: true}
		}
		active.query(&q)
		s = g.Telemetry.Snapshot(q)
		if name == Streams {
			if again := g.parts[Streams].(*streams).choose(&s); again {
				active.query(&q) // a stream that has just come is on screen now, not the next time
				s = g.Telemetry.Snapshot(q)
			}
		}
		g.frozen = nil
		if paused {
			kept := s
			g.frozen = &kept
		}
	}
	draw := active.prepare(&s, p)
	every := drawEvery
	if name != Streams {
		every = listEvery
	}
	return func() {
		g.done++
		g.head.show(&s)
		g.quiet.show(&s)
		g.arrange()
		draw()
	}, every
}

// drawEvery is the time between two drawings, fifteen a second at most: with what a flood adds to it, a token is
// on screen within 150 ms of its receipt.
const drawEvery = 66 * time.Millisecond

// Drawings is how often a state was put on screen.
func (g *Page) Drawings() int { return g.done }

// Themed follows a change of the palette.
func (g *Page) Themed() { g.drawAgain() }

// filtered leaves out of a snapshot that is kept what does not pass the filter of a part.
func filtered(s *console.TelemetrySnapshot, part, filter string) {
	if filter == "" {
		return
	}
	has := func(texts ...string) bool { // as the receiver does it
		return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, filter) })
	}
	switch part {
	case Streams:
		s.Streams = kept(s.Streams, func(x *stream.Summary) bool { return has(x.Service, x.Conversation, x.Generation, x.Model) })
		s.Matches = len(s.Streams)
	case Metrics:
		s.Lines = kept(s.Lines, func(x *series.Line) bool { return has(x.Service, x.Name, x.Labels) })
		s.LinesMatch = len(s.Lines)
	case Records:
		s.Raw = kept(s.Raw, func(x *otlp.Raw) bool { return has(x.Name, x.Service, x.Body, x.Attributes) || x.Signal == filter })
	}
}

// kept is a list of those that pass.
func kept[T any](list []T, pass func(*T) bool) []T {
	var out []T
	for i := range list {
		if pass(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
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

// Compare lines a recording up with what the client measured meanwhile.
func (g *Page) Compare(id string) { g.parts[Recordings].(*recordings).compare(id) }

// Filter sets the filter of a part.
func (g *Page) Filter(part, text string) {
	switch p := g.parts[part].(type) {
	case *streams:
		p.filter.SetText(text)
	case *metrics:
		p.filter.SetText(text)
	case *records:
		p.filter.SetText(text)
	}
}

// ShowStream shows one stream alone.
func (g *Page) ShowStream(k stream.Key) { g.parts[Streams].(*streams).choice(&k) }
