package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"velo/bench"
	"velo/bench/client"
	"velo/bench/sim"
	"velo/bench/suite"
)

// endpoint is a server that remembers what it was asked. Where times matter the tests use package sim.
type endpoint struct {
	*httptest.Server
	// answer may take over a chat request; it returns true when it did. n is its place in order of
	// arrival.
	answer func(w http.ResponseWriter, r *http.Request, n int, q asked) bool
	// tokenizer offers /tokenize.
	tokenizer bool
	breaks    int // after so many texts the tokenizer fails; 0: never
	noUsage   bool
	count     func(text string) int // tokens; nil: as the scripted endpoint's

	mu       sync.Mutex
	asked    []asked
	counted  int
	inFlight int
	peak     int
}

// asked is a chat request as the server got it.
type asked struct {
	Body    string
	Session string
	Began   time.Time
	Ended   time.Time // before the end of the answer was sent

	Messages []struct {
		Role    string
		Content json.RawMessage
	}
	Fields map[string]json.RawMessage
}

// text is the text of message i.
func (q *asked) text(i int) string {
	var s string
	if json.Unmarshal(q.Messages[i].Content, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(q.Messages[i].Content, &parts)
	for _, p := range parts {
		s += p.Text
	}
	return s
}

func (q *asked) last() string { return q.text(len(q.Messages) - 1) }

// probe tells whether the request was one of those before the measurement.
func (q *asked) probe() bool { return strings.HasSuffix(q.Session, "-probe") }

func (q *asked) number(field string) int {
	var n int
	_ = json.Unmarshal(q.Fields[field], &n)
	return n
}

func newEndpoint(t testing.TB) *endpoint {
	e := &endpoint{tokenizer: true}
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Close)
	return e
}

// published orders what a test sets on its endpoint before what the endpoint's goroutines read: the
// client's own system calls tell the race detector nothing.
var published sync.Mutex

func publish() {
	published.Lock()
	defer published.Unlock()
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	publish()
	body, _ := io.ReadAll(r.Body)
	if strings.HasSuffix(r.URL.Path, "/tokenize") && e.tokenizer {
		var q struct{ Prompt string }
		_ = json.Unmarshal(body, &q)
		e.mu.Lock()
		e.counted++
		broken := e.breaks > 0 && e.counted > e.breaks
		e.mu.Unlock()
		if broken {
			http.Error(w, `{"error":"busy"}`, http.StatusTooManyRequests)
			return
		}
		fmt.Fprintf(w, `{"count":%d}`, e.tokens(q.Prompt))
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.NotFound(w, r)
		return
	}
	q := asked{Body: string(body), Session: r.Header.Get("X-Session-Id"), Began: time.Now()}
	if err := json.Unmarshal(body, &q.Fields); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_ = json.Unmarshal(q.Fields["messages"], &q.Messages)
	e.mu.Lock()
	n := len(e.asked)
	e.asked = append(e.asked, q)
	e.inFlight++
	e.peak = max(e.peak, e.inFlight)
	e.mu.Unlock()
	defer func() { // before the server sends the end of the answer, which waits in its buffer
		e.mu.Lock()
		e.inFlight--
		e.asked[n].Ended = time.Now()
		e.mu.Unlock()
	}()
	if e.answer != nil && e.answer(w, r, n, q) {
		return
	}
	e.stream(w, q, fmt.Sprintf("answer %d", n))
}

// stream answers with the words of a text.
func (e *endpoint) stream(w http.ResponseWriter, q asked, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(v any) {
		b, _ := json.Marshal(v)
		fmt.Fprintf(w, "data: %s\n\n", b)
		w.(http.Flusher).Flush()
	}
	type object = map[string]any
	choice := func(delta object, finish any) object {
		return object{"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}}}
	}
	event(choice(object{"role": "assistant"}, nil))
	words := strings.SplitAfter(text, " ")
	for _, word := range words {
		event(choice(object{"content": word}, nil))
	}
	event(choice(object{}, "stop"))
	if !e.noUsage {
		prompt := sim.ReplyTokens
		for i := range q.Messages {
			prompt += sim.MessageTokens + e.tokens(q.text(i))
		}
		event(object{"choices": []object{}, "usage": object{"prompt_tokens": prompt, "completion_tokens": len(words)}})
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func (e *endpoint) tokens(text string) int {
	if e.count != nil {
		return e.count(text)
	}
	return sim.CountTokens(text)
}

// subwords counts as the vocabularies of real models do: words of up to eight letters are one token, and
// longer ones fall into pieces.
func subwords(text string) int {
	n := 0
	for _, word := range regexp.MustCompile(`\pL+|\pN{1,3}|[^\s\pL\pN]+`).FindAllString(text, -1) {
		n += 1 + max(len(word)-5, 0)/4
	}
	return n
}

// most is the largest number of requests that were there at once.
func (e *endpoint) most() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.peak
}

// requests are those of the run, in order of arrival, without probes.
func (e *endpoint) requests() []asked {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []asked
	for _, q := range e.asked {
		if !q.probe() {
			all = append(all, q)
		}
	}
	return all
}

// ordered are the requests of the run in the order of their numbers in the session.
func (e *endpoint) ordered() []asked {
	all := e.requests()
	slices.SortFunc(all, func(a, b asked) int { return strings.Compare(a.Session, b.Session) })
	return all
}

// log keeps all events, and checks that one goroutine at a time brings them.
type log struct {
	t      testing.TB
	mu     sync.Mutex
	events []bench.Event
	seen   func(bench.Event)
}

func (l *log) Append(e bench.Event) {
	if !l.mu.TryLock() {
		l.t.Error("two goroutines at once call the sink")
		return
	}
	l.events = append(l.events, e)
	l.mu.Unlock()
	if l.seen != nil {
		l.seen(e)
	}
}

func (l *log) session() *bench.Session {
	var s bench.Session
	for _, e := range l.events {
		s.Append(e)
	}
	return &s
}

func (l *log) notes() string {
	var all []string
	for _, n := range l.session().Notes {
		all = append(all, n.Text)
	}
	return strings.Join(all, "\n")
}

// options are those of a run against an endpoint, without warm-up.
func options(t testing.TB, url string, steps ...suite.Step) (Options, *log) {
	publish()
	clock := bench.StartClock()
	c, err := client.New(client.Options{BaseURL: url, Clock: clock, Connections: 16})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if len(steps) == 0 || steps[0].Type != suite.Section {
		steps = append([]suite.Step{{Type: suite.Section, Title: "S", Reset: true}}, steps...)
	}
	l := &log{t: t}
	return Options{
		Client: c, Suite: &suite.Suite{ID: "t", Title: "T", Steps: steps}, Model: "m", Clock: clock, Sink: l, Seed: 7,
	}, l
}

func mustRun(t testing.TB, o Options) Outcome {
	t.Helper()
	publish()
	out, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func prompt(text string) suite.Step { return suite.Step{Type: suite.Prompt, Text: text} }
func section(title string, reset bool) suite.Step {
	return suite.Step{Type: suite.Section, Title: title, Reset: reset}
}

func newServer(e *endpoint) *httptest.Server { return httptest.NewServer(e) }
