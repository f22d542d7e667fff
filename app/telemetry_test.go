package app

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"velo/bench"
	"velo/bench/measure"
	"velo/bench/otlp"
	"velo/bench/otlp/series"
	"velo/bench/otlp/stream"
	"velo/bench/sim"
	"velo/engine/emit"
	"velo/engine/enginetest"
	"velo/store"
	"velo/ui/console"
)

// receiving is a console whose receiver listens for HTTP on a port of its own.
func receiving(t *testing.T) (c *theConsole, url string) {
	t.Helper()
	c = opened(t)
	return c, receive(t, c)
}

func receive(t *testing.T, c *theConsole) (url string) {
	t.Helper()
	s := c.Telemetry().Settings()
	for range 20 { // another program may take a port that has just been free
		s.On, s.GRPC, s.HTTP = true, 0, []int{c.Telemetry().FreePort(20000 + int(time.Now().UnixNano()%20000))}
		if err := c.Telemetry().SaveSettings(s, nil); err != nil {
			t.Fatal(err)
		}
		if state := c.Telemetry().State(); state.Listening() {
			return "http://" + state.Listeners[0].Address
		}
	}
	t.Fatal("no port could be had")
	return ""
}

func sendRecords(t *testing.T, url string, records uint64) {
	t.Helper()
	if _, err := sim.Emit(context.Background(), sim.EmitOptions{URL: url, Rate: 10000, Records: records, Tokens: 20, Streams: 3, Usage: true}); err != nil {
		t.Fatal(err)
	}
}

// wait waits, as long as it takes, until something is so.
func wait(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what + ": it never comes")
		}
	}
}

func TestReceiverOfTheWindow(t *testing.T) {
	c := opened(t)
	tel := c.Telemetry()
	if s := tel.State(); s.Wanted || len(s.Listeners) != 0 {
		t.Fatalf("a receiver that nobody turned on: %+v", s)
	}
	heard := make(chan string, 100)
	defer c.Changes(func(w string) { heard <- w })()
	url := receive(t, c)
	sendRecords(t, url, 300)
	wait(t, "streams", func() bool { return tel.State().Counters.Logs >= 300 })
	s := tel.Snapshot(otlp.Query{})
	if len(s.Streams) == 0 || len(s.Sources) == 0 || !s.State.Data {
		t.Fatalf("the snapshot has %d streams of %+v", len(s.Streams), s.Sources)
	}

	set := tel.Settings()
	set.Back = set.Keep
	if err := tel.SaveSettings(set, nil); err != nil {
		t.Fatal(err)
	}
	if err := tel.Record(nil); err != nil {
		t.Fatal(err)
	}
	running := tel.Snapshot(otlp.Query{}).Recordings
	if len(running) != 1 || !running[0].Running {
		t.Fatalf("recordings are %+v", running)
	}
	tel.Clear() // of the views: not of what is recorded
	tel.StopRecording(running[0].ID)
	wait(t, "the session", func() bool { return len(tel.Snapshot(otlp.Query{}).Recorded) == 1 })
	rec := tel.Snapshot(otlp.Query{}).Recorded[0]
	if rec.Error != "" || rec.Empty || rec.ID != running[0].ID || rec.Reason != otlp.ByUser || rec.Tokens == 0 {
		t.Fatalf("recorded %+v", rec)
	}
	after := tel.State()
	if !after.Wanted || !after.Listening() || !after.Data || after.Counters.Logs != s.State.Counters.Logs {
		t.Errorf("clearing the views changed the state: %+v", after)
	}
	if n := len(tel.Snapshot(otlp.Query{}).Streams); n != 0 {
		t.Errorf("%d streams are in view after they were cleared", n)
	}
	r, err := c.Report(rec.ID)
	if err != nil {
		t.Fatal(err)
	}
	stamps := ""
	for _, f := range r.Facts {
		if f.Label == "Time stamps" {
			stamps = f.Value
		}
	}
	if len(r.Run.Requests) != rec.Streams || !strings.Contains(stamps, "emitter") || r.Run.Worst == measure.Green {
		t.Errorf("the report has %d requests of %d streams, stamps %q, trust %s", len(r.Run.Requests), rec.Streams, stamps, r.Run.Worst)
	}
	list, err := c.Sessions()
	if err != nil || len(list) != 1 || list[0].ID != rec.ID || !list[0].Rate.Ok() || list[0].State != "done" {
		t.Errorf("the sessions are %+v, %v", list, err)
	}
	seen := map[string]bool{}
	for len(heard) > 0 {
		seen[<-heard] = true
	}
	if !seen[console.ChangedTelemetry] || !seen[console.ChangedSessions] {
		t.Errorf("changes were told: %v", seen)
	}
}

func TestReceiverSettingsAreKept(t *testing.T) {
	dir := t.TempDir()
	c := openedAt(t, dir)
	url := receive(t, c)
	want := c.Telemetry().Settings()
	page := "the token of a page"
	want.Keep, want.Tokens, want.Pages = 3*time.Minute, 4321, []console.TelemetryPage{{URL: "http://127.0.0.1:9/metrics", Every: 7 * time.Second, Token: &page}}
	token := "a token of the test"
	if err := c.Telemetry().SaveSettings(want, &token); err != nil {
		t.Fatal(err)
	}
	if r, err := http.Post(url+"/v1/logs", "application/json", strings.NewReader("{}")); err != nil || r.StatusCode != 401 {
		t.Errorf("without its token the receiver answers %v, %v", r, err)
	}
	for name, bad := range map[string]func(*console.TelemetrySettings){
		"port 0": func(s *console.TelemetrySettings) { s.HTTP = []int{0} }, "port 70000": func(s *console.TelemetrySettings) { s.GRPC = 70000 },
		"twice": func(s *console.TelemetrySettings) { s.HTTP = append(s.HTTP, s.HTTP[0]) }, "nothing": func(s *console.TelemetrySettings) { s.HTTP, s.Pages = nil, nil },
		"a name": func(s *console.TelemetrySettings) { s.Host = "example" }, "no time": func(s *console.TelemetrySettings) { s.For = 0 },
		"long ago": func(s *console.TelemetrySettings) { s.Back = 4 * time.Minute }, "memory": func(s *console.TelemetrySettings) { s.KeepBytes = 1 },
		"page":     func(s *console.TelemetrySettings) { s.Pages[0].URL = "ftp://x" },
		"password": func(s *console.TelemetrySettings) { s.Pages[0].URL = "http://me:secret@x/metrics" },
		"often":    func(s *console.TelemetrySettings) { s.Pages[0].Every = 999 * time.Millisecond },
		"seldom":   func(s *console.TelemetrySettings) { s.Pages[0].Every = 61 * time.Second },
		"tokens":   func(s *console.TelemetrySettings) { s.Tokens = 0 },
		"bytes":    func(s *console.TelemetrySettings) { s.Bytes = 0 }, "keep": func(s *console.TelemetrySettings) { s.Keep = 0 },
	} {
		s := c.Telemetry().Settings()
		bad(&s)
		if err := c.Telemetry().SaveSettings(s, nil); err == nil || !strings.HasPrefix(err.Error(), "cannot ") {
			t.Errorf("%s: the error is %v", name, err)
		}
		if !c.Telemetry().State().Listening() {
			t.Errorf("%s: refused settings closed the listener", name)
		}
	}
	want = c.Telemetry().Settings()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := net.DialTimeout("tcp", strings.TrimPrefix(url, "http://"), time.Second); err == nil {
		t.Error("the closed program still listens")
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if (bytes.Contains(data, []byte(token)) || bytes.Contains(data, []byte(page))) && !strings.Contains(filepath.Base(path), "secret") && !strings.Contains(filepath.Base(path), "key") {
			t.Errorf("the token is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c = openedAt(t, dir)
	defer c.Close()
	got := c.Telemetry().Settings()
	if p := c.telemetry.receiver.Configuration().Poll; len(p) != 1 || p[0].Token != page || p[0].Every != 7*time.Second {
		t.Errorf("after a new start the pages to read are %+v", p)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || !got.HasToken || !got.Pages[0].HasToken || got.Pages[0].Token != nil || !c.Telemetry().State().Wanted {
		t.Errorf("kept %+v, wanted %+v", got, want)
	}
}

// TestTokensOfPages: each stays with its page, goes with it, and comes back from nowhere but the keyring.
func TestTokensOfPages(t *testing.T) {
	dir := t.TempDir()
	c := openedAt(t, dir)
	one, two := "token one", "token two"
	save := func(pages ...console.TelemetryPage) []console.TelemetryPage {
		t.Helper()
		s := c.Telemetry().Settings()
		s.On, s.GRPC, s.HTTP, s.Pages = false, 0, nil, pages
		if err := c.Telemetry().SaveSettings(s, nil); err != nil {
			t.Fatal(err)
		}
		return c.Telemetry().Settings().Pages
	}
	sent := func(want ...string) {
		t.Helper()
		var got []string
		for _, p := range c.telemetry.receiver.Configuration().Poll {
			got = append(got, p.Token)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the tokens sent are %q, want %q", got, want)
		}
	}
	page := func(n int, token *string) console.TelemetryPage {
		return console.TelemetryPage{URL: fmt.Sprintf("http://127.0.0.1:%d/metrics", n), Every: time.Second, Token: token}
	}
	p := save(page(1, &one), page(2, nil), page(3, &two))
	sent(one, "", two)
	if !p[0].HasToken || p[1].HasToken || !p[2].HasToken || p[0].ID == p[2].ID || p[0].Token != nil {
		t.Fatalf("the pages are %+v", p)
	}
	p[0].URL = "http://127.0.0.1:9/metrics" // another address, the same page
	p = save(p[2], p[0], p[1])
	sent(two, one, "")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = openedAt(t, dir)
	sent(two, one, "")
	none := ""
	p[0].Token = &none
	gone := p[1].ID
	p = save(p[0], p[2])
	sent("", "")
	if p[0].HasToken || p[1].HasToken {
		t.Errorf("after its removal: %+v", p)
	}
	for _, id := range []string{p[0].ID, gone} {
		if key, err := c.secrets.Get(telemetryPageID + id); key != "" || err != nil {
			t.Errorf("the token of the page %s is still there: %q, %v", id, key, err)
		}
	}
	forged := page(4, nil) // nobody can name another page's token
	forged.ID, forged.HasToken = gone, true
	if p = save(forged); p[0].HasToken || p[0].ID == gone {
		t.Errorf("a page that was not there has a token: %+v", p)
	}

	// Settings of an earlier version have addresses only.
	if err := c.store.PutSettings(telemetrySettingsName, 1, map[string]any{"HTTP": []int{4318}, "Keep": time.Minute, "Polls": []string{"http://127.0.0.1:5/metrics"}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = openedAt(t, dir)
	defer c.Close()
	if p = c.Telemetry().Settings().Pages; len(p) != 1 || p[0].URL != "http://127.0.0.1:5/metrics" || p[0].Every != otlp.PollEvery || p[0].ID == "" {
		t.Errorf("of earlier settings the pages are %+v", p)
	}
}

func TestPortInUseIsInTheState(t *testing.T) {
	c := opened(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	s := c.Telemetry().Settings()
	s.On, s.GRPC, s.HTTP = true, 0, []int{port}
	if err := c.Telemetry().SaveSettings(s, nil); err != nil {
		t.Fatal(err)
	}
	state := c.Telemetry().State()
	if !state.Wanted || state.Listening() || state.Listeners[0].Error == "" || state.Listeners[0].Advice == "" {
		t.Fatalf("the state is %+v", state)
	}
	free := c.Telemetry().FreePort(port)
	if free == port || free == 0 {
		t.Fatalf("port %d is offered instead of %d", free, port)
	}
	s.HTTP = []int{free}
	if err := c.Telemetry().SaveSettings(s, nil); err != nil {
		t.Fatal(err)
	}
	if !c.Telemetry().State().Listening() {
		t.Errorf("the free port is not listened on: %+v", c.Telemetry().State().Listeners)
	}
}

// TestRunsAndTelemetryAreJoined measures with the client what an emitter tells of, and lines both up.
func TestRunsAndTelemetryAreJoined(t *testing.T) {
	c, url := receiving(t)
	set := c.Telemetry().Settings()
	set.Back = set.Keep
	if err := c.Telemetry().SaveSettings(set, nil); err != nil {
		t.Fatal(err)
	}
	what, err := c.Open(suiteFile(t, short))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.telemetry.receiver.Configuration().Limits.Core; got != 0 {
		t.Errorf("records get %g of a core while nothing is measured", got)
	}
	if err := c.Start(console.RunSpec{SuiteID: what.ID, Workers: 2, Repeat: 1, Quiet: true}); err != nil {
		t.Fatal(err)
	}
	wait(t, "less for records", func() bool {
		return c.telemetry.receiver.Configuration().Limits.Core == shareWhileMeasuring || !c.Run().Active
	})
	s := settled(t, c)
	wait(t, "all for records again", func() bool { return c.telemetry.receiver.Configuration().Limits.Core == 0 })

	client, err := c.store.Session(s.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	const ahead = 90 * time.Second // of the emitter's clock
	var records []string
	for i, x := range client.Exchanges {
		if x.Conn == nil || len(x.Chunks) == 0 {
			continue
		}
		start := client.Wall(x.Request.Start).Add((x.Conn.FirstByte - x.Request.Start) / 2).Add(ahead)
		for k, event := range []string{"stream_start", "stream_delta", "stream_end"} {
			body := `{"choices":[{"delta":{"content":"word"}}]}`
			records = append(records, fmt.Sprintf(`{"timeUnixNano":"%d","body":{"stringValue":%q},"attributes":[`+
				`{"key":"event","value":{"stringValue":%q}},{"key":"request.id","value":{"stringValue":%q}},{"key":"generation.id","value":{"stringValue":"g%d"}}]}`,
				start.UnixNano()+int64(k)*1000, body, event, x.Request.Session, i))
		}
	}
	body := `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"engine"}}]},"scopeLogs":[{"logRecords":[` + strings.Join(records, ",") + `]}]}]}`
	answer, err := http.Post(url+"/v1/logs", "application/json", strings.NewReader(body))
	if err != nil || answer.StatusCode != 200 {
		t.Fatalf("the records were answered with %v, %v", answer, err)
	}
	pairs := len(records) / 3
	live := c.Telemetry().Snapshot(otlp.Query{})
	if pairs == 0 || live.PairsTotal != pairs || len(live.Sources) != 1 || live.Sources[0].Clock == nil || !live.Sources[0].Clock.Known() {
		t.Fatalf("%d of %d requests were measured on both sides, sources %+v", live.PairsTotal, pairs, live.Sources)
	}
	if clock := live.Sources[0].Clock; clock.Low > -ahead || clock.High < -ahead {
		t.Errorf("the offset is %v, its bounds are %v and %v", -ahead, clock.Low, clock.High)
	}
	if err := c.Telemetry().Record(nil); err != nil {
		t.Fatal(err)
	}
	c.Telemetry().StopRecording(c.Telemetry().Snapshot(otlp.Query{}).Recordings[0].ID)
	wait(t, "the session", func() bool { return len(c.Telemetry().Snapshot(otlp.Query{}).Recorded) == 1 })
	id := c.Telemetry().Snapshot(otlp.Query{}).Recorded[0].ID
	both, err := c.Telemetry().Compare(id)
	if err != nil || len(both) != 1 || both[0].ID != s.SessionID || len(both[0].Pairs) != pairs || !both[0].Median.Ok() || !both[0].Known() {
		t.Errorf("compared: %+v, %v", both, err)
	}
	if r, err := c.Report(id); err != nil || r.Section("sides") == nil || len(r.Section("sides").Tables) != 1 || len(r.Section("sides").Tables[0].Rows) != pairs {
		t.Errorf("the report does not set the server beside the client: %v", err)
	}
	if _, err := c.Telemetry().Compare(s.SessionID); err == nil {
		t.Error("a session of the client was taken for one of telemetry")
	}
}

// TestEngineOfTheWindowIsASource starts the real engine, asks it something, and hears it.
func TestEngineOfTheWindowIsASource(t *testing.T) {
	c, _ := configured(t, enginetest.Plain)
	if got := c.Engine().Command(c.Engine().Config()); strings.Contains(got, "otel") {
		t.Errorf("nothing listens, and the engine sends telemetry: %s", got)
	}
	if err := c.Engine().Start(); err != nil {
		t.Fatal(err)
	}
	url := receive(t, c)
	if got := c.Telemetry().Snapshot(otlp.Query{}).Deaf; !strings.Contains(got, "Restart it") {
		t.Errorf("of an engine that was started before: %q", got)
	}
	if got := c.Engine().Command(c.Engine().Config()); !strings.Contains(got, "--otel-endpoint "+url) {
		t.Errorf("the command is %s", got)
	}
	elsewhere := c.Engine().Config()
	elsewhere.Telemetry = "http://127.0.0.1:9/"
	if got := c.Engine().Command(elsewhere); strings.Contains(got, url) {
		t.Errorf("the settings send it elsewhere, and the command is %s", got)
	}
	engineState(t, c, console.EngineReady)
	if err := c.Engine().Restart(); err != nil {
		t.Fatal(err)
	}
	engineState(t, c, console.EngineReady)
	if s := c.Engine().Status(); s.Config != c.Engine().Config() {
		t.Errorf("the engine counts as one with other settings: %+v", s.Config)
	}
	what, err := c.Open(suiteFile(t, short))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(console.RunSpec{SuiteID: what.ID, EndpointID: console.EngineID, Workers: 2, Repeat: 1, Quiet: true}); err != nil {
		t.Fatal(err)
	}
	if r := settled(t, c); r.Finished != console.FinishedDone {
		t.Fatalf("the run ended as %s: %s", r.Finished, r.Error)
	}
	wait(t, "streams and figures", func() bool {
		s := c.Telemetry().Snapshot(otlp.Query{})
		return s.PairsTotal > 0 && len(s.Sources) == 1 && len(s.Sources[0].Engines) == 1
	})
	s := c.Telemetry().Snapshot(otlp.Query{})
	if s.Deaf != "" || s.Sources[0].Clock == nil || !s.Sources[0].Clock.Known() {
		t.Errorf("deaf %q, clock %+v", s.Deaf, s.Sources[0].Clock)
	}
	if clock := s.Sources[0].Clock; clock.Low > 0 || clock.High < 0 {
		t.Errorf("one clock differs from itself by %v to %v", clock.Low, clock.High)
	}
	token := "secret"
	if err := c.Telemetry().SaveSettings(c.Telemetry().Settings(), &token); err != nil {
		t.Fatal(err)
	}
	if got := c.Engine().Command(c.Engine().Config()); !strings.Contains(got, emit.HeadersVariable+"=… ") || strings.Contains(got, token) {
		t.Errorf("with a token the command is %s", got)
	}
	if s := c.Telemetry().Snapshot(otlp.Query{}); !strings.Contains(s.Deaf, "token or the certificate was changed") {
		t.Errorf("an engine that shows no token is told as %q", s.Deaf)
	}
	if err := c.Engine().Restart(); err != nil {
		t.Fatal(err)
	}
	wait(t, "the engine with the token", func() bool { return c.Engine().Status().State == console.EngineReady })
	before := c.Telemetry().State().Counters
	wait(t, "figures of an engine that shows the token", func() bool { return c.Telemetry().State().Counters.Points > before.Points })
	if now := c.Telemetry().State().Counters; now.Unauthorized != before.Unauthorized {
		t.Errorf("%d requests had no token", now.Unauthorized-before.Unauthorized)
	}
}

// TestStampsAreTheEmitters: what the report knows as telemetry is what streams are stamped with.
func TestStampsAreTheEmitters(t *testing.T) {
	if stream.Stamp != bench.EmitterStamp {
		t.Errorf("streams are stamped %q, and the report looks for %q", stream.Stamp, bench.EmitterStamp)
	}
}

func TestSourcesJoinInstances(t *testing.T) {
	s := &otlp.Snapshot{
		Streams: []stream.Summary{{Key: stream.Key{Service: "gb10_inference"}}, {Key: stream.Key{Service: "a/b"}}},
		Engines: []series.Engine{{Service: "gb10_inference/one"}, {Service: "gb10_inference/two"}, {Service: "a/b/c"}, {Service: "vllm/x"}, {Service: "gb10_inference2/x"}},
		Clocks:  []otlp.Clock{{Service: "gb10_inference"}},
	}
	s.Clocks[0].Records = 3
	s.State.Statuses = []stream.Status{{Service: "gb10_inference", Model: "m", Received: 9}, {Service: "gb10_inference/one", Model: "newer", Received: 2}}
	var got []string
	for _, x := range sourcesOf(s) {
		got = append(got, fmt.Sprint(x.Name, len(x.Engines)))
		if x.Name == "gb10_inference" && (x.Status == nil || x.Status.Model != "newer" || x.Clock == nil) {
			t.Errorf("the source is %+v", x)
		}
	}
	want := []string{"a/b1", "gb10_inference2", "gb10_inference2/x1", "vllm/x1"}
	if !slices.Equal(got, want) {
		t.Errorf("sources are %q, want %q", got, want)
	}
}

// TestClosingKeepsWhatIsRecorded closes the window while it records.
func TestClosingKeepsWhatIsRecorded(t *testing.T) {
	dir := t.TempDir()
	st, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := newConsole(st, dir)
	url := receive(t, c)
	if err := c.Telemetry().Record(nil); err != nil {
		t.Fatal(err)
	}
	sendRecords(t, url, 90)
	wait(t, "records", func() bool { return c.Telemetry().State().Counters.Logs >= 90 })
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Telemetry().Record(nil); err == nil {
		t.Error("a recording began after the end")
	}
	if st, err = store.Open(dir, store.Options{}); err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	list, err := st.Sessions()
	if err != nil || len(list) != 1 || list[0].State != store.StateDone || list[0].Tokens == 0 {
		t.Errorf("kept: %+v, %v", list, err)
	}
}
