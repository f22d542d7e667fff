package ui

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2/test"
	"fyne.io/fyne/v2/widget"

	"velo/bench/measure"
	"velo/bench/otlp"
	"velo/bench/otlp/stream"
	"velo/ui/console"
	"velo/ui/look"
	"velo/ui/telemetrypage"
)

// heardHere is what a receiver has that heard three streams, written by hand.
func heardHere() otlp.Snapshot {
	none := measure.Missing
	s := otlp.Snapshot{At: time.Minute, Matches: 3, Rate: 120}
	s.State.Data, s.State.LastData = true, 2*time.Second
	s.State.Status, s.State.LastStatus = true, 7*time.Second
	s.State.Statuses = []stream.Status{{Service: "gb10_inference", Model: "qwen3", Topology: "tp2", Received: 7 * time.Second}}
	s.State.Counters.Logs, s.State.Counters.Dropped, s.State.Counters.Malformed = 1234, 5, 2
	s.State.Counters.Spans = 7
	s.State.Kept, s.State.KeptBytes, s.State.KeptBound = 3, 1<<20, 256<<20
	for i, state := range []string{stream.Running, stream.Ended, stream.Broken} {
		p := stream.Panel{Text: "word by word", Summary: stream.Summary{Key: stream.Key{Service: "gb10_inference", Conversation: "sess", Generation: string('a' + rune(i))},
			Serial: uint64(i), Model: "qwen3", Topology: "tp2", State: state, Started: true, Tokens: 40 + i, Source: measure.Server,
			TTFT: 0.081, Rate: 61.5, MaxGap: 0.03, E2E: none, Prompt: 12, Cached: none, ITL: none, TPOT: none}}
		p.Live.Rate, p.Live.Median = 60, 61
		s.Streams = append(s.Streams, p.Summary)
		s.Panels = append(s.Panels, p)
	}
	s.Raw = []otlp.Raw{{Number: 2, Signal: "log", Service: "gb10_inference", Name: "stream_delta", Body: "apple"}, {Number: 1, Signal: "log", Service: "gb10_inference", Name: "stream_start", Body: "pear"}}
	return s
}

func onTelemetry(t *testing.T, f *fake) *stage {
	t.Helper()
	g := newStage(t, f, 1280, 800)
	g.shell.Show(TelemetryPage)
	g.pump()
	g.draw()
	return g
}

// push presses a button that can be pressed, and draws what follows.
func (g *stage) push(text string) {
	g.t.Helper()
	for _, b := range find(g, func(b *look.PushButton) bool { return b.Text == text && !b.Disabled() }) {
		test.Tap(b)
		g.pump()
		g.draw()
		return
	}
	g.t.Fatalf("no button %q that can be pressed is on screen", text)
}

// everything is all text that can be seen.
func (g *stage) everything() string {
	var b strings.Builder
	for _, x := range find(g, func(*look.Text) bool { return true }) {
		b.WriteString(x.Text() + "\n")
	}
	for _, x := range find(g, func(*look.Paragraph) bool { return true }) {
		b.WriteString(x.Text() + "\n")
	}
	for _, x := range find(g, func(*look.Tile) bool { return true }) {
		b.WriteString(x.Value() + "\n")
	}
	for _, x := range find(g, func(*look.PushButton) bool { return true }) {
		b.WriteString(x.Text + "\n")
	}
	return b.String()
}

func (g *stage) wants(texts ...string) {
	g.t.Helper()
	all := g.everything()
	for _, w := range texts {
		if !strings.Contains(all, w) {
			g.t.Errorf("%q is not on screen:\n%s", w, all)
		}
	}
}

func (g *stage) lacks(texts ...string) {
	g.t.Helper()
	all := g.everything()
	for _, w := range texts {
		if strings.Contains(all, w) {
			g.t.Errorf("%q is on screen:\n%s", w, all)
		}
	}
}

func TestTelemetryFactsStandApart(t *testing.T) {
	f := newFake().full()
	f.telemetry.settings = telemetrySettings()
	g := onTelemetry(t, f)
	g.wants("The receiver is off", "Receiver: off", "never")
	g.push("Turn on")
	if !f.telemetry.Settings().On {
		t.Fatal("it was not turned on")
	}
	g.wants("Nothing has come yet", "Turn off")
	g.lacks("The receiver is off")

	f.withTelemetry(heardHere())
	g.draw()
	g.wants("127.0.0.1: gRPC 4317, HTTP 4318, 9381", "2 s ago", "1,234 records, 7 spans", "7 s ago", "qwen3 @ tp2", "5 records, 2 requests", "malformed 2", "3 streams", "61.5 tok/s ▪", "word by word", "Receiver: listening")

	// Cleared views say nothing about the listeners or about what came.
	g.push("Clear")
	if f.telemetry.cleared != 1 || !f.telemetry.Settings().On {
		t.Fatalf("cleared %d times, settings %+v", f.telemetry.cleared, f.telemetry.Settings())
	}
	f.telemetry.snapshot.Streams, f.telemetry.snapshot.Panels, f.telemetry.snapshot.Matches = nil, nil, 0
	g.shell.telemetry.Themed()
	g.draw()
	g.wants("No stream is in view", "those of calls to a model are listed under Calls", "Receiver: listening", "2 s ago", "5 records, 2 requests")
	g.lacks("The receiver is off", "Nothing has come yet")

	// Off is what the listeners do, not what is heard.
	f.telemetry.snapshot.State.Wanted, f.telemetry.snapshot.State.Listeners = false, nil
	g.draw()
	g.wants("Receiver: off", "2 s ago", "nothing")
}

// TestTelemetrySumIsMarked: the rate of all streams is an estimate where one of them is.
func TestTelemetrySumIsMarked(t *testing.T) {
	f := newFake().full().withTelemetry(heardHere())
	g := onTelemetry(t, f)
	g.wants("3 streams · 120 tok/s")
	f.telemetry.snapshot.Streams[1].Source = measure.Estimate
	g.shell.telemetry.Themed()
	g.draw()
	g.wants("3 streams · 120 tok/s ~")
}

func TestTelemetryPortTakenHasAWayOut(t *testing.T) {
	f := newFake().full().withTelemetry(heardHere())
	l := f.telemetry.snapshot.State.Listeners
	l[1].Address, l[1].Error, l[1].Advice = "", "cannot listen on 127.0.0.1:4318: the port is taken", "The port belongs to otelcol."
	g := onTelemetry(t, f)
	g.wants("Cannot listen on 127.0.0.1:4318", "The port belongs to otelcol.", "Receiver: partial", "127.0.0.1: gRPC 4317, HTTP 9381")
	g.push("Use port 4319")
	if s := f.telemetry.Settings(); !slices.Equal(s.HTTP, []int{4319, 9381}) || s.GRPC != 4317 || !s.On {
		t.Errorf("the settings are %+v", s)
	}
	l[1].Address, l[1].Error = "127.0.0.1:4319", ""
	g.draw()
	g.lacks("Cannot listen on", "Use port")
	for i := range l {
		l[i].Address, l[i].Error = "", "cannot listen"
	}
	g.draw()
	g.wants("Receiver: not listening")
}

func TestTelemetryPauses(t *testing.T) {
	f := newFake().full().withTelemetry(heardHere())
	g := onTelemetry(t, f)
	g.push("Pause")
	f.telemetry.snapshot.Panels[0].Text = "something newer"
	f.telemetry.snapshot.State.LastData = 44 * time.Second
	g.draw()
	g.wants("word by word", "44 s ago", "Go on")
	g.lacks("something newer")
	g.shell.telemetry.Open(telemetrypage.Records) // a part that was not in view when it was paused
	g.draw()
	g.wants("2 records")
	g.shell.telemetry.Filter(telemetrypage.Records, "pear")
	g.draw()
	g.wants("1 record")
	g.shell.telemetry.Open(telemetrypage.Streams)
	g.push("Go on")
	g.wants("something newer")
}

// TestTelemetryOfOneStream: one of several panels is paused, cleared, and its records shown; the others go on.
func TestTelemetryOfOneStream(t *testing.T) {
	s := heardHere()
	s.Streams[0].State, s.Panels[0].State = stream.Running, stream.Running
	other := s.Streams[0]
	other.Conversation, other.Generation = "another", "gen-9"
	s.Streams = append(s.Streams, other)
	s.Panels = append(s.Panels, stream.Panel{Summary: other, Text: "of another"})
	f := newFake().full().withTelemetry(s)
	g := newStage(t, f, 1280, 1600) // both panels are in view
	g.shell.Show(TelemetryPage)
	g.pump()
	first := s.Streams[0].Key
	pages := g.shell.telemetry
	g.draw()
	g.push("Hold")
	f.telemetry.snapshot.Panels[0].Text, f.telemetry.snapshot.Panels[len(s.Panels)-1].Text = "something newer", "of another, newer"
	g.draw()
	g.wants("word by word", "of another, newer", "Follow")
	g.lacks("something newer")
	g.push("Follow")
	g.wants("something newer")
	g.lacks("Follow")
	g.push("Clear stream")
	if got := f.telemetry.clearedOnly; f.telemetry.cleared != 0 || len(got) != 1 || got[0] != first {
		t.Errorf("cleared: %v, and everything %d times", got, f.telemetry.cleared)
	}
	g.push("Raw records")
	if last := f.telemetry.queries[len(f.telemetry.queries)-1]; last.Filter != first.Generation || pages.Part() != telemetrypage.Records {
		t.Errorf("records of %v: the filter is %q, in %s", first, last.Filter, pages.Part())
	}
}

func TestTelemetryRecordsAllOrOne(t *testing.T) {
	f := newFake().full().withTelemetry(heardHere())
	g := onTelemetry(t, f)
	g.push("Record all")
	g.push("Record")
	if got := f.telemetry.records; len(got) != 2 || len(got[0]) != 0 || len(got[1]) != 1 || got[1][0] != heardHere().Streams[0].Key {
		t.Fatalf("recorded: %+v", got)
	}
	f.telemetry.snapshot.Recordings = []otlp.RecordingState{recording()}
	g.draw()
	g.wants("Recording all streams · 1:23 of 10:00 · 12 streams · 48,213 of 1,000,000 tokens")
	g.push("Stop recording")
	if got := f.telemetry.stopped; len(got) != 1 || got[0] != recording().ID {
		t.Errorf("stopped: %v", got)
	}
	r := recording()
	f.telemetry.snapshot.Recordings = nil
	f.telemetry.snapshot.Recorded = []console.TelemetryRecorded{{RecordingState: r, Title: "Telemetry of qwen3"}, {RecordingState: otlp.RecordingState{ID: "x", Empty: true}, Title: "Telemetry"}}
	f.telemetry.pairs = []console.TelemetryPair{{ID: "one", Title: "Coding workload"}}
	f.telemetry.pairs[0].Pairs, f.telemetry.pairs[0].Median = bothSides(), 0.0137
	g.shell.telemetry.Open(telemetrypage.Recordings)
	g.draw()
	g.wants("Telemetry of qwen3", "Nothing came: no session was made.")
	g.push("Compare with the client")
	g.wants("Coding workload: 8 requests on both sides", "13.7 ms later than the server")
	f.reports[r.ID] = f.reports["one"]
	g.push("Open report")
	if g.shell.Page() != ReportPage {
		t.Errorf("the report of a recording leads to %s", g.shell.Page())
	}
}

func TestTelemetryFailuresAreTold(t *testing.T) {
	f := newFake().full().withTelemetry(heardHere())
	g := onTelemetry(t, f)
	f.telemetry.fail = errors.New("cannot record: the disk is full")
	g.push("Record all")
	g.wants("Cannot record: the disk is full.")
	f.telemetry.fail = errors.New("cannot listen on port 1: not allowed")
	g.push("Turn off")
	g.wants("Cannot listen on port 1: not allowed.")
}

func TestTelemetryStreamsAreChosen(t *testing.T) {
	f := newFake().full().withTelemetry(heardHere())
	g := onTelemetry(t, f)
	last := f.telemetry.queries[len(f.telemetry.queries)-1]
	if len(last.Streams.Panels) != 3 {
		t.Fatalf("panels of %+v", last.Streams.Panels)
	}
	g.shell.telemetry.ShowStream(heardHere().Streams[2].Key)
	g.draw()
	last = f.telemetry.queries[len(f.telemetry.queries)-1]
	if len(last.Streams.Panels) != 1 || last.Streams.Panels[0].Generation != "c" {
		t.Errorf("one was chosen, and the panels are %+v", last.Streams.Panels)
	}
	g.push("Latest")
	last = f.telemetry.queries[len(f.telemetry.queries)-1]
	if len(last.Streams.Panels) != 3 {
		t.Errorf("the latest were chosen, and the panels are %+v", last.Streams.Panels)
	}
	g.shell.telemetry.Filter(telemetrypage.Streams, "qwen")
	g.draw()
	if last = f.telemetry.queries[len(f.telemetry.queries)-1]; last.Streams.Filter != "qwen" {
		t.Errorf("the filter is %q", last.Streams.Filter)
	}
}

func TestTelemetrySettingsForm(t *testing.T) {
	f := newFake().full().withTelemetry(heardHere())
	g := onTelemetry(t, f)
	g.shell.telemetry.Open(telemetrypage.Settings)
	g.draw()
	g.wants("All sessions take 48 MiB on disk", "of 256 MiB at most", "Not taken since the program began: 5 records, 2 requests (malformed 2).")
	entry := func(text string) *look.Entry {
		t.Helper()
		for _, e := range find(g, func(e *look.Entry) bool { return e.Text == text }) {
			return e
		}
		t.Fatalf("no field holds %q", text)
		return nil
	}
	ports := entry("4318, 9381")
	for _, bad := range []string{"x", "0", "70000", "4317", "5, 5"} {
		ports.SetText(bad)
		g.pump()
		if strings.Count(g.everything(), "Ports for HTTP") != 2 { // the field's name, and the hint
			t.Errorf("%q is not refused", bad)
		}
	}
	ports.SetText("4320 9382")
	address := find(g, func(e *look.Entry) bool { return e.PlaceHolder == "This machine only" })[0]
	address.SetText("0.0.0.0")
	g.pump()
	g.wants("Whoever reaches this machine over the network can send records")
	files := find(g, func(e *look.Entry) bool { return e.PlaceHolder == "Empty: plain text" })
	files[0].SetText("/etc/velo/cert.pem")
	g.pump()
	g.wants("name both the file of the certificates and that of the key")
	files[1].SetText("/etc/velo/key.pem")
	entry("15").SetText("30")
	for _, e := range find(g, func(e *look.Entry) bool { return e.Password }) {
		e.SetText("a secret")
	}
	g.pump()
	if len(f.telemetry.Settings().HTTP) != 2 || f.telemetry.Settings().HTTP[0] != 4318 {
		t.Error("what is typed took effect before it was applied")
	}
	g.push("Apply")
	s := f.telemetry.Settings()
	if !slices.Equal(s.HTTP, []int{4320, 9382}) || s.Keep != 30*time.Minute || !s.HasToken || f.telemetry.token != "a secret" || !s.On || s.Host != "0.0.0.0" || s.Certificate != "/etc/velo/cert.pem" || s.Key != "/etc/velo/key.pem" {
		t.Errorf("applied: %+v, token %q", s, f.telemetry.token)
	}
	g.lacks("over the network")
	files[0].SetText("")
	files[1].SetText("")
	g.pump()
	g.wants("in plain text: name a certificate")
	files[0].SetText("/etc/velo/cert.pem")
	files[1].SetText("/etc/velo/key.pem")
	for range find(g, func(e *look.Entry) bool { return strings.Contains(e.Text, "secret") }) {
		t.Error("the token is still in the form")
	}
	for _, c := range find(g, func(*widget.Check) bool { return true }) {
		c.SetChecked(true)
	}
	g.push("Apply")
	if f.telemetry.Settings().HasToken {
		t.Error("the token was not removed")
	}
}

// TestTelemetryIsDrawnFifteenTimesASecond holds the page to its bound, and to once a second in a quiet run.
func TestTelemetryIsDrawnFifteenTimesASecond(t *testing.T) {
	f := newFake().full().withTelemetry(heardHere())
	g := onTelemetry(t, f)
	if next := g.shell.ticker.round(); next != 66*time.Millisecond {
		t.Errorf("the page is drawn every %v", next)
	}
	g.pump()
	f.running(2, 0.5)
	if next := g.shell.ticker.round(); next != time.Second {
		t.Errorf("in a quiet run the page is drawn every %v", next)
	}
	g.pump()
	g.shell.Show(SuitesPage)
	f.state = console.RunState{}
	if next := g.shell.ticker.round(); next != time.Second {
		t.Errorf("out of view the light is looked at every %v", next)
	}
	g.pump()
	f.telemetry.snapshot.State.Wanted = false
	if next := g.shell.ticker.round(); next != 0 {
		t.Errorf("a receiver that is off is looked at every %v", next)
	}
	g.pump()
}

func TestTelemetryFitsTheSmallestWindow(t *testing.T) {
	f := newFake().full().withTelemetry(heardHere())
	g := onTelemetry(t, f)
	for _, part := range []string{telemetrypage.Streams, telemetrypage.Engines, telemetrypage.Metrics, telemetrypage.Records, telemetrypage.BothSides, telemetrypage.Recordings, telemetrypage.Settings} {
		g.shell.telemetry.Open(part)
		g.draw()
		if m := g.shell.telemetry.View.MinSize(); m.Width > 1280-137 || m.Height > 700 {
			t.Errorf("%s needs %v", part, m)
		}
	}
}

// TestTelemetryPagesForm: metrics pages are added, given an interval and a token, and removed; a token is never shown
// again, and how reading goes is told at its page.
func TestTelemetryPagesForm(t *testing.T) {
	f := newFake().full().withTelemetry(heardHere())
	f.telemetry.settings.Pages = []console.TelemetryPage{{ID: "a", URL: "http://127.0.0.1:8000/metrics", Every: 2 * time.Second, HasToken: true}, {ID: "b", URL: "https://far/metrics", Every: 15 * time.Second}}
	f.telemetry.snapshot.State.Polls = []otlp.Polled{{Tried: true, Ok: true, Series: 62, Last: 1500 * time.Millisecond},
		{Tried: true, Error: "cannot read https://far/metrics: the server asks for a token (401 Unauthorized): enter it beside the address", Last: 9 * time.Second}}
	g := onTelemetry(t, f)
	g.shell.telemetry.Open(telemetrypage.Settings)
	g.draw()
	g.wants("62 metrics, 1 s ago", "Cannot read https://far/metrics: the server asks for a token (401 Unauthorized): enter it beside the address. Tried 9 s ago.")
	field := func(text, placeholder string) *look.Entry {
		t.Helper()
		for _, e := range find(g, func(e *look.Entry) bool { return e.Text == text && (placeholder == "" || e.PlaceHolder == placeholder) }) {
			return e
		}
		t.Fatalf("no field %q holds %q", placeholder, text)
		return nil
	}
	every := field("15", "2")
	for _, bad := range []string{"0", "0.9", "61", "x", ""} {
		every.SetText(bad)
		g.pump()
		g.wants("is read every 1 to 60 s")
	}
	every.SetText("30")
	url := field("https://far/metrics", "")
	for _, bad := range []string{"far/metrics", "ftp://far/metrics", "https://me:pass@far/metrics", ""} {
		url.SetText(bad)
		g.pump()
		g.wants("Metrics pages: ")
	}
	url.SetText("http://far/metrics")
	g.lacks("Metrics pages: ")
	tokens := find(g, func(e *look.Entry) bool { return e.Password && e.PlaceHolder == "Empty: none" })
	tokens[len(tokens)-1].SetText("of far")
	g.pump()
	g.wants("The token for http://far/metrics goes over the network in plain text")
	g.push("Add metrics page") // a row that stays empty is none
	g.push("Apply")
	s := f.telemetry.settings.Pages
	if len(s) != 2 || s[0].ID != "a" || s[0].Token != nil || s[1].ID != "b" || s[1].URL != "http://far/metrics" || s[1].Every != 30*time.Second || s[1].Token == nil || *s[1].Token != "of far" {
		t.Fatalf("applied: %+v", s)
	}
	f.telemetry.settings.Pages[1].Token, f.telemetry.settings.Pages[1].HasToken = nil, true
	g.shell.telemetry.Reload()
	g.pump()
	g.draw()
	if len(find(g, func(e *look.Entry) bool { return e.Text == "of far" })) != 0 {
		t.Error("the token is still in the form")
	}
	if n := len(find(g, func(e *look.Entry) bool { return e.PlaceHolder == "A token is kept" })); n != 2 {
		t.Errorf("%d pages say that a token is kept", n)
	}
	checks := find(g, func(c *widget.Check) bool { return c.Text == "Send no token any more" })
	if len(checks) != 2 {
		t.Fatalf("%d pages offer to send no token", len(checks))
	}
	checks[1].SetChecked(true)
	g.push("Remove") // the first
	g.push("Apply")
	if s = f.telemetry.settings.Pages; len(s) != 1 || s[0].ID != "b" || s[0].Token == nil || *s[0].Token != "" {
		t.Errorf("applied: %+v", s)
	}
}

func TestTelemetryTellsOfItsCertificate(t *testing.T) {
	f := newFake().full().withTelemetry(heardHere())
	c := &otlp.CertificateState{Names: []string{"velo.lan"}, Left: 90 * 24 * time.Hour}
	f.telemetry.snapshot.State.Certificate = c
	g := onTelemetry(t, f)
	g.lacks("Certificate for velo.lan") // nothing to look at
	c.Left = 12*24*time.Hour + time.Hour
	g.draw()
	g.wants("Certificate for velo.lan: expires in 12 days")
	g.shell.telemetry.Open(telemetrypage.Settings)
	c.Left = 90 * 24 * time.Hour
	g.draw()
	g.wants("Certificate for velo.lan: expires in 90 days")
	f.telemetry.snapshot.State.Certificate = nil
	g.draw()
	g.lacks("Certificate for velo.lan")
}
