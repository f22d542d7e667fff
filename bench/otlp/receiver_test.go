package otlp

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"velo/bench/otlp/stream"
)

// loopback is a configuration on free ports.
func loopback() Config {
	return Config{Enabled: true, GRPC: []string{"127.0.0.1:0"}, HTTP: []string{"127.0.0.1:0"}}
}

func started(t testing.TB, c Config) *Receiver {
	t.Helper()
	r := New(Options{})
	t.Cleanup(r.Close)
	if err := r.Configure(c); err != nil {
		t.Fatal(err)
	}
	if s := r.State(); c.Enabled && !s.Listening() {
		t.Fatalf("it does not listen: %+v", s.Listeners)
	}
	return r
}

// at is where it listens with a protocol.
func (r *Receiver) at(protocol string) string {
	for _, l := range r.State().Listeners {
		if l.Protocol == protocol {
			return l.Address
		}
	}
	return ""
}

// record is a generation record as the known emitter writes it.
func record(at int64, event, session, generation string, index int, body string) string {
	quoted, _ := json.Marshal(body)
	return fmt.Sprintf(`{"timeUnixNano":"%d","observedTimeUnixNano":"%d","body":{"stringValue":%s},"attributes":[{"key":"model.id","value":{"stringValue":"qwen"}},`+
		`{"key":"topology","value":{"stringValue":"single"}},{"key":"request.id","value":{"stringValue":%q}},{"key":"token.index","value":{"intValue":"%d"}},`+
		`{"key":"event","value":{"stringValue":%q}},{"key":"generation.id","value":{"stringValue":%q}}]}`, at, at, quoted, session, index, event, generation)
}

func logsOf(records ...string) string {
	return `{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"gb10_inference"}}]},"scopeLogs":[{"scope":{"name":"gb10.generation.emitter","version":"1"},"logRecords":[` +
		strings.Join(records, ",") + `]}]}]}`
}

// generation is the records of a whole stream: n tokens, each ms apart.
func generation(at int64, session, id string, n int) []string {
	out := []string{record(at, "stream_start", session, id, 0, `{"choices":[{"delta":{"role":"assistant"}}]}`)}
	for i := 1; i <= n; i++ {
		out = append(out, record(at+int64(100+10*i)*1e6, "stream_delta", session, id, i, fmt.Sprintf(`{"choices":[{"delta":{"content":" w%d"}}],"usage":{"completion_tokens":%d}}`, i, i)))
	}
	return append(out, record(at+int64(101+10*n)*1e6, "stream_end", session, id, n+1,
		fmt.Sprintf(`{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":%d}}`, n)))
}

func post(t testing.TB, url, contentType string, body []byte, head ...string) (int, http.Header, string) {
	t.Helper()
	q, _ := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if contentType != "" {
		q.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(head); i += 2 {
		q.Header.Set(head[i], head[i+1])
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, _ := io.ReadAll(a.Body)
	return a.StatusCode, a.Header, string(b)
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

func TestAnswersFollowTheProtocol(t *testing.T) {
	c := loopback()
	c.Limits.Body = 1 << 20
	r := started(t, c)
	url := "http://" + r.at("HTTP")
	good := []byte(logsOf(generation(1e18, "s", "g", 3)...))
	for _, k := range []struct {
		name, path, kind string
		body             []byte
		head             []string
		status           int
	}{
		{"JSON", "/v1/logs", "application/json", good, nil, 200},
		{"JSON with a charset", "/v1/logs", "application/json; charset=utf-8", good, nil, 200},
		{"gzip", "/v1/logs", "application/json", zipped(good), []string{"Content-Encoding", "gzip"}, 200},
		{"empty protobuf", "/v1/logs", "application/x-protobuf", nil, nil, 200},
		{"empty metrics", "/v1/metrics", "application/json", []byte(`{}`), nil, 200},
		{"empty traces", "/v1/traces", "application/json", []byte(`{"resourceSpans":[]}`), nil, 200},
		{"malformed JSON", "/v1/logs", "application/json", []byte(`{"resourceLogs":[`), nil, 400},
		{"malformed protobuf", "/v1/logs", "application/x-protobuf", []byte{0xff}, nil, 400},
		{"malformed gzip", "/v1/logs", "application/json", good, []string{"Content-Encoding", "gzip"}, 400},
		{"no type", "/v1/logs", "", good, nil, 415},
		{"other type", "/v1/logs", "text/plain", good, nil, 415},
		{"other encoding", "/v1/logs", "application/json", good, []string{"Content-Encoding", "zstd"}, 415},
		{"other path", "/v1/profiles", "application/json", good, nil, 404},
		{"too large", "/v1/logs", "application/json", make([]byte, 1<<20+1), nil, 413},
		{"a small body that decompresses to a large one", "/v1/logs", "application/json", zipped(make([]byte, 8<<20)), []string{"Content-Encoding", "gzip"}, 413},
	} {
		status, head, body := post(t, url+k.path, k.kind, k.body, k.head...)
		if status != k.status {
			t.Errorf("%s: status %d, want %d: %s", k.name, status, k.status, body)
		}
		wantType := "application/json"
		if k.kind == "application/x-protobuf" {
			wantType = k.kind
		}
		if head.Get("Content-Type") != wantType {
			t.Errorf("%s: the answer is %s", k.name, head.Get("Content-Type"))
		}
		if k.status >= 400 && wantType == "application/json" {
			var s struct {
				Code    int
				Message string
			}
			if err := json.Unmarshal([]byte(body), &s); err != nil || s.Code == 0 || s.Message == "" {
				t.Errorf("%s: the answer is no status: %s", k.name, body)
			}
		}
		if k.status == 400 && head.Get("Retry-After") != "" {
			t.Errorf("%s: asks to try again", k.name)
		}
	}
	a, err := http.Get(url + "/v1/logs")
	if err != nil || a.StatusCode != 405 || a.Header.Get("Allow") != "POST" {
		t.Errorf("GET: %v %v", a, err)
	}
	n := r.State().Counters
	if n.Requests != 6 || n.Malformed != 3 || n.TooLarge != 2 || n.Unsupported != 5 || n.Logs != 15 {
		t.Errorf("counters are %+v", n)
	}
}

func TestMalformedBodiesLeaveNothingBehind(t *testing.T) {
	r := started(t, loopback())
	body := logsOf(append(generation(1e18, "s", "g", 3), `{"timeUnixNano":-1}`)...)
	if status, _, _ := post(t, "http://"+r.at("HTTP")+"/v1/logs", "application/json", []byte(body)); status != 400 {
		t.Fatalf("status %d", status)
	}
	if s := r.Snapshot(Query{Raw: 10}); len(s.Streams) != 0 || len(s.Raw) != 0 || s.State.Data {
		t.Errorf("something was applied: %+v", s.Streams)
	}
}

func TestTokenIsAskedFor(t *testing.T) {
	c := loopback()
	c.Token = "secret"
	r := started(t, c)
	url := "http://" + r.at("HTTP") + "/v1/logs"
	for _, k := range []struct {
		head   string
		status int
	}{{"", 401}, {"Bearer wrong", 401}, {"Basic secret", 401}, {"Bearer secret", 200}, {"bearer secret", 200}} {
		if status, _, _ := post(t, url, "application/json", []byte(`{}`), "Authorization", k.head); status != k.status {
			t.Errorf("%q: %d, want %d", k.head, status, k.status)
		}
	}
	if n := r.State().Counters.Unauthorized; n != 3 {
		t.Errorf("%d counted", n)
	}
}

func TestFloodIsDroppedAndSaid(t *testing.T) {
	c := loopback()
	c.Limits.Records = 10
	r := started(t, c)
	url := "http://" + r.at("HTTP") + "/v1/logs"
	status, _, body := post(t, url, "application/json", []byte(logsOf(generation(1e18, "s", "g", 20)...)))
	var answer struct {
		PartialSuccess struct{ RejectedLogRecords, ErrorMessage string }
	}
	if json.Unmarshal([]byte(body), &answer); status != 200 || answer.PartialSuccess.RejectedLogRecords != "12" || answer.PartialSuccess.ErrorMessage == "" {
		t.Fatalf("%d %s", status, body)
	}
	status, head, _ := post(t, url, "application/json", []byte(logsOf(generation(1e18, "s", "g2", 20)...)))
	if status != 429 || head.Get("Retry-After") == "" {
		t.Errorf("the next one: %d, Retry-After %q", status, head.Get("Retry-After"))
	}
	if n := r.State().Counters; n.Dropped != 12 || n.RateLimited != 1 || n.Logs != 10 {
		t.Errorf("counters are %+v", n)
	}
}

func TestBytesAtATimeAreBounded(t *testing.T) {
	c := loopback()
	c.Limits.Body, c.Limits.InFlight = 1<<20, 1<<20
	r := started(t, c)
	// one sender holds most of the room with a body that does not end
	hold, err := net.Dial("tcp", r.at("HTTP"))
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	fmt.Fprintf(hold, "POST /v1/logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", 1<<20, strings.Repeat(" ", 900<<10))
	// Only when it has the room may another ask, or that one gets it and this one is refused.
	waitFor(t, "the body that does not end", func() bool {
		r.admission.mu.Lock()
		defer r.admission.mu.Unlock()
		return r.admission.bytes >= 900<<10
	})
	big := []byte(strings.Repeat(" ", 500<<10) + "{}")
	waitFor(t, "a refusal", func() bool {
		status, head, _ := post(t, "http://"+r.at("HTTP")+"/v1/logs", "application/json", big)
		return status == 503 && head.Get("Retry-After") != ""
	})
	hold.Close()
	waitFor(t, "room again", func() bool {
		status, _, _ := post(t, "http://"+r.at("HTTP")+"/v1/logs", "application/json", big)
		return status == 200
	})
	if n := r.State().Counters; n.Memory == 0 || n.Busy != 0 || n.Interrupted != 1 {
		t.Errorf("counters are %+v", n)
	}
	waitFor(t, "all memory to be given back", func() bool {
		r.admission.mu.Lock()
		defer r.admission.mu.Unlock()
		return r.admission.bytes == 0 && r.admission.waiting == 0
	})
}

// waitFor asks until it is so; only a test that fails waits long.
func waitFor(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if so() {
			return
		}
	}
	t.Fatalf("waited in vain for %s", what)
}

func TestStreamsBecomePanels(t *testing.T) {
	r := started(t, loopback())
	const at = int64(1_700_000_000_000_000_000)
	var all []string
	a, b := generation(at, "sess-1", "gen-a", 40), generation(at+5e6, "sess-1", "gen-b", 40)
	for i := range a { // two generations of one conversation, record by record
		all = append(all, a[i], b[i])
	}
	all = append(all, record(at, "status", "", "server", 0, "status"))
	if status, _, body := post(t, "http://"+r.at("HTTP")+"/v1/logs", "application/json", []byte(logsOf(all...))); status != 200 {
		t.Fatal(status, body)
	}
	key := stream.Key{Service: "gb10_inference", Conversation: "sess-1", Generation: "gen-a"}
	s := r.Snapshot(Query{Streams: stream.Query{Panels: []stream.Key{key}}, Raw: 5, Filter: "stream_end"})
	if len(s.Streams) != 2 || len(s.Panels) != 1 || len(s.Raw) != 2 {
		t.Fatalf("%d streams, %d panels, %d raw records", len(s.Streams), len(s.Panels), len(s.Raw))
	}
	p := s.Panels[0]
	if p.State != stream.Ended || p.Finish != "stop" || p.Model != "qwen" || p.Tokens != 40 || p.Source != "server" || p.Lost != 0 {
		t.Errorf("panel is %+v", p.Summary)
	}
	if !near(float64(p.TTFT), 0.110) || !near(float64(p.Rate), 100) || !near(float64(p.ITL), 0.010) {
		t.Errorf("TTFT %v, rate %v, ITL %v", p.TTFT, p.Rate, p.ITL)
	}
	if want := " w1 w2 w3"; !strings.HasPrefix(p.Text, want) || !strings.HasSuffix(p.Text, " w40") {
		t.Errorf("text is %q", p.Text)
	}
	if len(p.Live.Sum) == 0 || p.Live.OK != 1 {
		t.Errorf("live: %+v", p.Live)
	}
	if !s.State.Data || !s.State.Status || len(s.State.Statuses) != 1 || s.State.Statuses[0].Model != "qwen" {
		t.Errorf("state: %+v", s.State)
	}
}

func near(got, want float64) bool { return got > want*0.999 && got < want*1.001 }

func TestClearEmptiesViewsAndNothingElse(t *testing.T) {
	r := started(t, loopback())
	url := "http://" + r.at("HTTP") + "/v1/logs"
	all := generation(1e18, "s", "g", 10)
	post(t, url, "application/json", []byte(logsOf(append(all[:6:6], record(1e18, "status", "", "server", 0, "status"))...)))
	before := r.State()
	r.Clear()
	after := r.Snapshot(Query{Raw: 10})
	if len(after.Streams) != 0 || len(after.Raw) != 0 || after.Matches != 0 {
		t.Errorf("still there: %+v", after.Streams)
	}
	s := after.State
	if !s.Wanted || !s.Listening() || !s.Data || !s.Status || s.Counters.Logs != before.Counters.Logs || len(s.Statuses) != 1 {
		t.Errorf("something else was emptied: %+v", s)
	}
	post(t, url, "application/json", []byte(logsOf(all[6:]...)))
	again := r.Snapshot(Query{Streams: stream.Query{Panels: []stream.Key{{Service: "gb10_inference", Conversation: "s", Generation: "g"}}}})
	if len(again.Streams) != 1 || !again.Streams[0].Started || !near(float64(again.Streams[0].TTFT), 0.110) || again.Streams[0].Tokens != 10 {
		t.Fatalf("the running stream does not appear again as it was: %+v", again.Streams)
	}
	if p := again.Panels[0]; p.Text != " w6 w7 w8 w9 w10" {
		t.Errorf("its text is %q", p.Text)
	}
}

// TestClearOfOneStream leaves the others, and what is not a stream, in view.
func TestClearOfOneStream(t *testing.T) {
	r := started(t, loopback())
	url := "http://" + r.at("HTTP") + "/v1/logs"
	a, b := generation(1e18, "s", "a", 10), generation(1e18, "s", "b", 10)
	post(t, url, "application/json", []byte(logsOf(append(a[:6:6], b[:6]...)...)))
	key := stream.Key{Service: "gb10_inference", Conversation: "s", Generation: "a"}
	for range 2 { // a second time it is out of view already
		r.Clear(key, stream.Key{Conversation: "nobody"})
	}
	s := r.Snapshot(Query{Raw: 100})
	if len(s.Streams) != 1 || s.Matches != 1 || s.Streams[0].Generation != "b" || len(s.Raw) != 12 {
		t.Fatalf("in view are %+v of %d, and %d records", s.Streams, s.Matches, len(s.Raw))
	}
	post(t, url, "application/json", []byte(logsOf(a[6:]...)))
	s = r.Snapshot(Query{Streams: stream.Query{Panels: []stream.Key{key}}})
	if len(s.Streams) != 2 || s.Matches != 2 || len(s.Panels) != 1 || s.Panels[0].Tokens != 10 || s.Panels[0].Text != " w6 w7 w8 w9 w10" {
		t.Errorf("with its next record it comes back as %+v", s.Panels)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	c := loopback()
	c.Limits.Connections = 2
	r := started(t, c)
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", r.at("HTTP"))
		check(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	ask := func(conn net.Conn) bool { // is it served?
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		b := make([]byte, 12)
		_, err := io.ReadFull(conn, b)
		return err == nil
	}
	first, second := dial(), dial()
	if !ask(first) || !ask(second) {
		t.Fatal("connections within the bound are not served")
	}
	if ask(dial()) {
		t.Error("a third connection is served")
	}
	first.Close()
	waitFor(t, "a place to be free again", func() bool { return ask(dial()) })
	if r.State().Counters.Connections == 0 {
		t.Error("refused connections are not counted")
	}
}

// TestLongTextsAreCut: names and bodies as long as a body may be do not stay in memory.
func TestLongTextsAreCut(t *testing.T) {
	r := started(t, loopback())
	long := strings.Repeat("é", 1<<20)
	post(t, "http://"+r.at("HTTP")+"/v1/logs", "application/json", []byte(strings.ReplaceAll(logsOf(record(noon, "stream_delta", long, long, 1, `{"choices":[{"delta":{"content":"x"}}]}`)), "qwen", long)))
	s := r.Snapshot(Query{Raw: 1})
	if len(s.Streams) != 1 || len(s.Raw) != 1 {
		t.Fatalf("%d streams, %d raw records", len(s.Streams), len(s.Raw))
	}
	x := s.Streams[0]
	if len(x.Conversation) > 300 || len(x.Generation) > 300 || len(x.Model) > 300 || len(s.Raw[0].Attributes) > 3000 {
		t.Errorf("%d, %d, %d, %d bytes are kept", len(x.Conversation), len(x.Generation), len(x.Model), len(s.Raw[0].Attributes))
	}
}

// TestWorkKeepsToItsShare: after work, the turn comes back after a rest that makes up for it.
func TestWorkKeepsToItsShare(t *testing.T) {
	now := time.Duration(0)
	a := newAdmission(func() time.Duration { return now })
	a.configure(Limits{Core: 0.25, Wait: time.Millisecond})
	if !a.work(t.Context()) {
		t.Fatal("the turn is not there")
	}
	now = 100 * time.Millisecond // of work: a rest of 300 ms follows
	a.done(0)
	if a.work(t.Context()) {
		t.Error("the turn came back without a rest")
	}
	a.configure(Limits{Core: 0.25, Wait: 20 * time.Second})
	if !a.work(t.Context()) {
		t.Error("the turn does not come back")
	}
	a.configure(Limits{})
	a.done(now)
	if !a.work(t.Context()) {
		t.Error("a whole core is not given")
	}
}
