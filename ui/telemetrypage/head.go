package telemetrypage

import (
	"net"
	"strconv"
	"strings"

	"fyne.io/fyne/v2"

	"velo/bench/otlp"
	"velo/ui/console"
	"velo/ui/look"
)

// head is what stands above every part: facts that are never inferred from each other, what keeps an
// address from being had, and what is recorded.
type head struct {
	page *Page
	view *fyne.Container

	lamp                  *look.Lamp
	toggle, pause, record *look.PushButton
	clear                 *look.PushButton
	wanted, listening     *fact
	data, status          *fact
	dropped, kept         *fact
	problem               problem
	recording             *fyne.Container
	recordingText         *look.Text
	stop                  *look.PushButton
	deaf, certificate     *look.Paragraph

	all string // the recording of all streams that runs; empty = none
	one string // the recording that the line shows
}

// fact is a name, what is so, and a line that says more.
type fact struct {
	view       fyne.CanvasObject
	text, note *look.Text
}

func newFact(name string, width float32) *fact {
	f := &fact{text: look.NewText("—").Fixed(width), note: look.NewText("").Sized(look.Small).In(look.Muted).Fixed(width)}
	f.view = look.Sized(width, 0, look.Rows(0, look.NewText(name).Sized(look.Small).In(look.Muted), f.text, f.note))
	return f
}

func (f *fact) set(text, note string, ink look.Ink) {
	f.text.SetIn(text, ink)
	f.note.Set(note)
}

func (h *head) build(g *Page) {
	h.page = g
	h.lamp = look.NewLamp(160)
	h.toggle = look.Button("Turn on", g.Toggle)
	h.pause = look.Button("Pause", g.Pause)
	h.clear = look.Button("Clear", g.Clear)
	h.record = look.Button("Record all", h.recordAll)
	h.wanted, h.listening = newFact("Wanted", 48), newFact("Listening on", 272)
	h.data, h.status = newFact("Last data", 176), newFact("Last status", 136)
	h.dropped, h.kept = newFact("Not taken", 264), newFact("Kept in memory", 128)
	h.problem.build(g)
	h.recordingText = look.NewText("").Fixed(200)
	h.stop = look.StopButton("Stop recording", func() { g.Stop(h.one) })
	h.recording = look.Rows(0, look.Panel(look.OnSurface, look.Frame(nil, nil, look.Sized(3, 0, look.NewSurface(look.OnAccent)),
		look.Inset(look.Half, look.Gap, look.Half, look.Gap, look.Trailing(look.Gap, h.recordingText, h.stop)))))
	h.recording.Hide()
	h.deaf = look.NewParagraph("").In(look.Amber).AtMost(2)
	h.deaf.Hide()
	h.certificate = look.NewParagraph("").AtMost(3)
	h.certificate.Hide()
	h.view = look.Rows(look.Step,
		look.Fold(look.Gap, look.Line(look.Gap, look.NewText("Telemetry").Sized(look.Head).Bold(), h.lamp.Container),
			look.Line(look.Step, h.toggle, h.pause, h.clear, h.record)),
		look.WrapLeft(look.Gap, h.wanted.view, h.listening.view, h.data.view, h.status.view, h.dropped.view, h.kept.view),
		h.problem.view, h.recording, h.deaf, h.certificate, look.Rule())
}

func (h *head) recordAll() {
	if h.all != "" {
		h.page.Stop(h.all)
		return
	}
	h.page.Record()
}

func (h *head) showPaused(paused bool) {
	text := "Pause"
	if paused {
		text = "Go on"
	}
	h.pause.SetText(text)
}

func (h *head) show(s *console.TelemetrySnapshot) {
	st := s.State
	h.lamp.Set(Tone(st), Short(st))
	turn, wanted := "Turn on", "off"
	if st.Wanted {
		turn, wanted = "Turn off", "on"
	}
	if h.toggle.Text != turn {
		h.toggle.SetText(turn)
	}
	h.wanted.set(wanted, "", look.Plain)
	h.showListeners(st)

	c := st.Counters
	if st.Data {
		h.data.set(ago(st.LastData), came(c.Logs, c.Points, c.Spans), look.Plain)
	} else {
		h.data.set("never", "", look.Plain)
	}
	if st.Status {
		note := ""
		if n := len(st.Statuses); n > 0 {
			latest := st.Statuses[0]
			for _, x := range st.Statuses {
				if x.Received < latest.Received {
					latest = x
				}
			}
			note = at(latest.Model, latest.Topology)
		}
		h.status.set(ago(st.LastStatus), note, look.Plain)
	} else {
		h.status.set("never", "", look.Plain)
	}
	text, why, ink := dropped(st)
	h.dropped.set(text, why, ink)
	h.kept.set(plural(st.Kept, "stream"), size(st.KeptBytes)+" of "+size(st.KeptBound), look.Plain)

	moved := h.problem.show(st)
	moved = h.showRecordings(s) || moved
	moved = showIf(h.deaf, s.Deaf != "") || moved
	h.deaf.Set(s.Deaf)
	text, ink = "", look.Muted
	if st.Certificate != nil && st.Wanted {
		if text, ink = validity(st.Certificate); ink == look.Muted {
			text = "" // the settings tell it
		}
	}
	moved = showIf(h.certificate, text != "") || moved || text != h.certificate.Text()
	h.certificate.SetIn(text, ink)
	if moved {
		h.page.View.Refresh()
	}
}

func (h *head) showListeners(st otlp.State) {
	listening, failed := counted(st)
	note, ink := "", look.Plain
	switch {
	case failed > 0:
		ink = look.Amber
		note = plural(failed, "address") + " cannot be had"
		if failed > 1 {
			note = strconv.Itoa(failed) + " addresses cannot be had"
		}
		if listening == 0 {
			ink = look.Red
		}
	case len(st.Polls) > 0:
		good := 0
		for _, p := range st.Polls {
			if p.Ok {
				good++
			}
		}
		note = strconv.Itoa(good) + " of " + plural(len(st.Polls), "metrics page") + " read"
	}
	if overTLS(st) {
		note = strings.TrimSuffix("TLS · "+note, " · ")
	}
	h.listening.set(listeningOn(st), note, ink)
}

// showRecordings tells of the latest recording that runs, and whether one of all streams does.
func (h *head) showRecordings(s *console.TelemetrySnapshot) (moved bool) {
	h.all, h.one = "", ""
	for i := range s.Recordings {
		r := &s.Recordings[i]
		h.one = r.ID
		if len(r.Bounds.Streams) == 0 {
			h.all = r.ID
		}
		text := "Recording all streams · "
		if n := len(r.Bounds.Streams); n > 0 {
			text = "Recording " + name(r.Bounds.Streams[0]) + " · "
		}
		if n := len(s.Recordings); n > 1 {
			text = plural(n, "recording") + " run. The latest: "
		}
		h.recordingText.Set(text + progress(r))
	}
	h.record.SetEnabled(h.all == "" && (s.State.Wanted || s.State.Data))
	return showIf(h.recording, h.one != "")
}

// problem says which addresses cannot be had, and offers the way out.
type problem struct {
	page    *Page
	view    *fyne.Container
	message *look.Paragraph
	advice  *look.Paragraph
	use     *look.PushButton
	failing []otlp.Listener
	shown   string
	free    map[string]int // a free port instead of an address that is taken
}

func (p *problem) build(g *Page) {
	p.page = g
	p.message, p.advice = look.NewParagraph("").AtMost(3), look.NewParagraph("").In(look.Muted).AtMost(3)
	p.use = look.MainButton("Use port", p.usePorts)
	again := look.Button("Try again", func() { g.change(func(*console.TelemetrySettings) {}, "") })
	details := look.Button("Copy details", func() {
		g.Copy(p.message.Text() + "\n" + p.advice.Text() + "\n")
		g.Say(look.OnAccent, "The details were copied.")
	})
	p.view = look.Rows(0, look.Panel(look.OnSurface, look.Frame(nil, nil, look.Sized(3, 0, look.NewSurface(look.OnRed)),
		look.Inset(look.Step, look.Gap, look.Step, look.Gap, look.Rows(look.Step, p.message, p.advice, look.Line(look.Step, p.use, again, details))))))
	p.view.Hide()
}

func (p *problem) show(st otlp.State) (moved bool) {
	p.failing = p.failing[:0]
	var messages, advices []string
	for _, l := range st.Listeners {
		if l.Address != "" || l.Error == "" {
			continue
		}
		p.failing = append(p.failing, l)
		messages = append(messages, l.Protocol+": "+sentence(l.Error))
		advices = append(advices, sentence(l.Advice))
	}
	text := strings.Join(messages, "\n") + "\n\n" + strings.Join(unique(advices), "\n")
	if text != p.shown {
		p.shown = text
		p.message.Set(strings.Join(messages, "\n"))
		p.advice.Set(strings.Join(unique(advices), "\n"))
		p.find()
		moved = true
	}
	return showIf(p.view, len(messages) > 0) || moved
}

// unique leaves out what was said before.
func unique(list []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, x := range list {
		if x != "" && !seen[x] {
			seen[x] = true
			out = append(out, x)
		}
	}
	return out
}

// find looks for ports that can be had instead.
func (p *problem) find() {
	p.use.Hide()
	if len(p.failing) == 0 {
		return
	}
	failing, shown := append([]otlp.Listener(nil), p.failing...), p.shown
	p.page.Thread.Work(func() func() {
		free := map[string]int{}
		from := 0
		for _, l := range failing {
			_, port, _ := net.SplitHostPort(l.Wanted)
			n, err := strconv.Atoi(port)
			if err != nil {
				continue
			}
			if got := p.page.Telemetry.FreePort(max(n+1, from)); got > 0 {
				free[l.Wanted], from = got, got+1
			}
		}
		return func() {
			if p.shown != shown || len(free) == 0 {
				return
			}
			p.free = free
			text := "Use free ports"
			if len(failing) == 1 {
				text = "Use port " + strconv.Itoa(free[failing[0].Wanted])
			}
			p.use.SetText(text)
			p.use.Show()
			p.page.View.Refresh()
		}
	})
}

// usePorts takes the free ports instead of those that cannot be had.
func (p *problem) usePorts() {
	free := p.free
	p.page.change(func(s *console.TelemetrySettings) {
		for wanted, port := range free {
			_, text, _ := net.SplitHostPort(wanted)
			old, _ := strconv.Atoi(text)
			if s.GRPC == old {
				s.GRPC = port
			}
			for i := range s.HTTP {
				if s.HTTP[i] == old {
					s.HTTP[i] = port
				}
			}
		}
	}, "The receiver takes another port now: point the emitters at it too.")
}

// quiet is what a part shows while nothing ever came.
type quiet struct {
	page       *Page
	view       *fyne.Container
	off, on    fyne.CanvasObject
	where      *fyne.Container
	address    string
	wanted     bool
	copyButton *look.PushButton
}

func (q *quiet) build(g *Page) {
	q.page = g
	q.off = look.Empty("The receiver is off", "Engines that send OpenTelemetry (vLLM, SGLang, veloGB10, Velo's own engine, any OTLP exporter) appear here: "+
		"each stream with its text and its numbers while it runs, the engine's figures, and every metric. One press makes a session of it, with a report like any other. "+
		"It listens on this machine only, unless you choose otherwise in the settings.",
		look.MainButton("Turn on", g.Toggle), look.Button("Settings", func() { g.Open(Settings) }))
	q.where = look.Rows(look.Half)
	q.copyButton = look.MainButton("Copy address", func() {
		g.Copy(q.address)
		g.Say(look.OnAccent, "The address was copied.")
	})
	q.on = look.Rows(look.Margin, look.Sized(0, look.Margin, look.NewSurface(look.OnBackground)), look.Empty("Nothing has come yet", "Point an engine at the receiver, or start Velo's own engine: it sends here by itself. An engine that does not push has a metrics page, "+
		"whose address the settings take.", q.copyButton, look.Button("Velo's engine", g.GoEngine), look.Button("Settings", func() { g.Open(Settings) })), q.where)
	q.view = look.Over(q.off, q.on)
}

func (q *quiet) show(s *console.TelemetrySnapshot) {
	q.wanted = !s.State.Data && len(s.Streams) == 0
	if !q.wanted {
		return
	}
	moved := showIf(q.off, !s.State.Wanted)
	moved = showIf(q.on, s.State.Wanted) || moved
	address := ""
	for _, l := range s.State.Listeners {
		if l.Protocol == "HTTP" && l.Address != "" && address == "" {
			address = l.URL()
		}
	}
	q.copyButton.SetEnabled(address != "")
	if address != q.address {
		q.address = address
		q.where.Objects = nil
		for _, w := range [][2]string{{"Any exporter", "OTEL_EXPORTER_OTLP_ENDPOINT=" + address}, {"veloGB10, Velo", "--otel-endpoint " + address}, {"vLLM", "--otlp-traces-endpoint " + address}} {
			if address != "" {
				q.where.Add(look.Line(0, look.NewText(w[0]).Sized(look.Small).In(look.Muted).Fixed(128), look.NewMono(w[1]).Sized(look.Small)))
			}
		}
		moved = true
	}
	if moved {
		q.view.Refresh()
	}
}
