package assist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"velo/bench"
	"velo/bench/client"
	"velo/bench/regime"
	"velo/bench/sim"
)

// model is a helper model that labels by words, and counts.
type model struct {
	mu       sync.Mutex
	calls    int
	now, top int                                                          // calls at once, and the most of them
	blocks   []string                                                     // all that it was asked about
	before   func(n int, w http.ResponseWriter, body map[string]any) bool // n is the number of the call, from 1; true = it answered
	hold     time.Duration
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	var body map[string]any
	if err := json.Unmarshal(data, &body); err != nil {
		http.Error(w, "no JSON", 500)
		return
	}
	m.mu.Lock()
	m.calls++
	n := m.calls
	m.now++
	m.top = max(m.top, m.now)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.now--
		m.mu.Unlock()
	}()
	if m.before != nil && m.before(n, w, body) {
		return
	}
	if m.hold > 0 {
		select {
		case <-time.After(m.hold):
		case <-r.Context().Done():
			return
		}
	}
	messages := body["messages"].([]any)
	var question map[string]string
	if err := json.Unmarshal([]byte(messages[1].(map[string]any)["content"].(string)), &question); err != nil {
		http.Error(w, "no question", 500)
		return
	}
	answer := map[string]string{}
	for id, text := range question {
		m.mu.Lock()
		m.blocks = append(m.blocks, text)
		m.mu.Unlock()
		switch {
		case strings.Contains(text, "dragon"):
			answer[id] = "creative_prose"
		case strings.Contains(text, "therefore"):
			answer[id] = "reasoning_prose"
		default:
			answer[id] = "other_prose"
		}
	}
	b, _ := json.Marshal(answer)
	say(w, string(b))
}

// asked are the calls so far, the most of them at once, and the blocks.
func (m *model) asked() (calls, top int, blocks []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls, m.top, slices.Clone(m.blocks)
}

// say streams an answer.
func say(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	b, _ := json.Marshal(text)
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", b)
}

// start serves a model and gives an analysis of text that waits for nothing, and the pauses it was to make.
func start(t *testing.T, m http.Handler, text string) (*analysis, *[]time.Duration) {
	t.Helper()
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	c, err := client.New(client.Options{BaseURL: server.URL, Connections: 4, Stamps: "user"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	var mu sync.Mutex
	var pauses []time.Duration
	return &analysis{client: c, options: Options{Parallel: 4, Timeout: time.Minute}, text: text, pause: func(ctx context.Context, d time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		pauses = append(pauses, d)
		return ctx.Err()
	}}, &pauses
}

func classify(text string) []regime.Span {
	var c regime.Classifier
	c.Push(text, bench.Content)
	return c.Spans()
}

const story = "The dragon slept on the hill, and nobody dared to wake it before the harvest was in.\n\n"
const code = "```go\nfmt.Println(\"dragon\")\n```\n\n"
const facts = "The office opens at nine and closes at five on every day of the week but one.\n\n"

func TestRefine(t *testing.T) {
	text := strings.Repeat(story, 8) + code + strings.Repeat(facts, 8)
	m := &model{}
	a, _ := start(t, m, text)
	var progress [][2]int
	a.options.Progress = func(done, total int) { progress = append(progress, [2]int{done, total}) }
	got, err := a.run(t.Context(), classify(text))
	if err != nil {
		t.Fatal(err)
	}
	edge := len(story) * 8
	want := []Segment{
		{regime.Span{From: 0, To: edge, Regime: regime.Creative}, Assisted},
		{regime.Span{From: edge, To: edge + len(code), Regime: regime.Code}, Free},
		{regime.Span{From: edge + len(code), To: len(text), Regime: regime.Prose}, Assisted},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	_, _, sent := m.asked()
	for _, b := range sent {
		if strings.Contains(b, "Println") {
			t.Errorf("code was sent: %q", b)
		}
	}
	if len(progress) != 1 || progress[0] != [2]int{1, 1} {
		t.Errorf("progress %v", progress)
	}
}

// A change within prose is looked at again in finer blocks, so the border is found to within one of them.
func TestChange(t *testing.T) {
	text := strings.Repeat("Then the dragon flew away over the hills. ", 10) + strings.Repeat("The office opens at nine every day. ", 10)
	border := strings.Index(text, "The office")
	a, _ := start(t, &model{}, text)
	got, err := a.run(t.Context(), classify(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) < 2 || got[0].Regime != regime.Creative || got[len(got)-1].Regime != regime.Prose {
		t.Fatalf("%v", got)
	}
	last := 0
	for _, s := range got {
		if s.Regime == regime.Creative {
			last = s.To
		}
	}
	if d := last - border; d < -fineSize || d > fineSize {
		t.Errorf("the story ends at %d, the change is found at %d", border, last)
	}
	if a.total != 2 || a.done != 2 {
		t.Errorf("%d of %d calls, want 2 of 2", a.done, a.total)
	}
}

func TestAttempts(t *testing.T) {
	always := func(f func(w http.ResponseWriter)) func(int, http.ResponseWriter, map[string]any) bool {
		return func(_ int, w http.ResponseWriter, _ map[string]any) bool { f(w); return true }
	}
	first := func(f func(w http.ResponseWriter)) func(int, http.ResponseWriter, map[string]any) bool {
		return func(n int, w http.ResponseWriter, _ map[string]any) bool {
			if n == 1 {
				f(w)
			}
			return n == 1
		}
	}
	s := time.Second
	for _, test := range []struct {
		name   string
		before func(int, http.ResponseWriter, map[string]any) bool
		calls  int
		pauses []time.Duration
		want   string // of the error
	}{
		{"well", nil, 1, nil, ""},
		{"500 once", first(func(w http.ResponseWriter) { http.Error(w, "busy", 500) }), 2, []time.Duration{2 * s}, ""},
		{"500 always", always(func(w http.ResponseWriter) { http.Error(w, "broken", 500) }), 3, []time.Duration{2 * s, 4 * s}, "attempt 3: "},
		{"429 with a wait", first(func(w http.ResponseWriter) { w.Header().Set("Retry-After", "7"); http.Error(w, "slow down", 429) }), 2, []time.Duration{7 * s}, ""},
		{"429 with a long wait", first(func(w http.ResponseWriter) { w.Header().Set("Retry-After", "7200"); http.Error(w, "slow down", 429) }), 2, []time.Duration{time.Minute}, ""},
		{"401", always(func(w http.ResponseWriter) { http.Error(w, "who are you", 401) }), 1, nil, "attempt 1: "},
		{"words", always(func(w http.ResponseWriter) { say(w, "It is a story.") }), 3, []time.Duration{2 * s, 4 * s}, "no JSON object"},
		{"nonsense once", first(func(w http.ResponseWriter) { say(w, `{"1":"story"}`) }), 2, []time.Duration{2 * s}, ""},
		{"no schema", func(_ int, w http.ResponseWriter, body map[string]any) bool {
			if body["response_format"] != nil {
				http.Error(w, `{"error":{"message":"response_format is not supported"}}`, 400)
				return true
			}
			return false
		}, 2, nil, ""},
		{"400 anyway", always(func(w http.ResponseWriter) { http.Error(w, "no", 400) }), 2, nil, "attempt 1: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &model{before: test.before}
			a, pauses := start(t, m, story)
			got, err := a.run(t.Context(), classify(story))
			if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "cannot analyse the text: ")) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if err == nil && (len(got) != 1 || got[0].Regime != regime.Creative) {
				t.Errorf("%v", got)
			}
			if calls, _, _ := m.asked(); calls != test.calls || !slices.Equal(*pauses, test.pauses) {
				t.Errorf("%d calls with pauses %v, want %d with %v", calls, *pauses, test.calls, test.pauses)
			}
		})
	}
}

func TestParallel(t *testing.T) {
	text := strings.Repeat(facts, 1500) // 390 blocks or so
	m := &model{hold: 20 * time.Millisecond}
	a, _ := start(t, m, text)
	a.options.Parallel = 3
	var last [2]int
	a.options.Progress = func(done, total int) {
		if done != last[0]+1 {
			t.Errorf("progress goes from %d to %d", last[0], done)
		}
		last = [2]int{done, total}
	}
	if _, err := a.run(t.Context(), classify(text)); err != nil {
		t.Fatal(err)
	}
	if calls, top, _ := m.asked(); top > 3 || calls < 9 || last != [2]int{calls, calls} {
		t.Errorf("%d calls, %d at once, progress %v", calls, top, last)
	}
}

func TestCancel(t *testing.T) {
	text := strings.Repeat(facts, 1500)
	ctx, cancel := context.WithCancel(t.Context())
	m := &model{hold: time.Minute}
	m.before = func(int, http.ResponseWriter, map[string]any) bool { cancel(); return false }
	a, _ := start(t, m, text)
	got, err := a.run(ctx, classify(text))
	if !errors.Is(err, context.Canceled) || got != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestTimeout(t *testing.T) {
	a, _ := start(t, &model{hold: time.Minute}, story)
	a.options.Timeout = 20 * time.Millisecond
	_, err := a.run(t.Context(), classify(story))
	if err == nil || !strings.Contains(err.Error(), "attempt 3: the helper did not answer within 20ms") {
		t.Errorf("%v", err)
	}
}

func TestRefused(t *testing.T) {
	long := strings.Repeat(facts, 16000)
	c, err := client.New(client.Options{BaseURL: "http://127.0.0.1:9"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for want, f := range map[string]func() ([]Segment, error){
		"more than 4000": func() ([]Segment, error) { return Refine(t.Context(), c, Options{}, long, classify(long)) },
		"33 calls at once": func() ([]Segment, error) {
			return Refine(t.Context(), c, Options{Parallel: 33}, story, classify(story))
		},
		"end at byte " + strconv.Itoa(len(story)): func() ([]Segment, error) { return Refine(t.Context(), c, Options{}, story+"x", classify(story)) },
	} {
		if got, err := f(); err == nil || got != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v: want %q", got, err, want)
		}
	}
	if got, err := Refine(t.Context(), c, Options{}, code, classify(code)); err != nil || len(got) != 1 || got[0].By != Free {
		t.Errorf("with nothing to ask: %v, %v", got, err)
	}
}

// TestSim: a real stream whose answer is no JSON.
func TestSim(t *testing.T) {
	server, err := sim.Start(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c, err := client.New(client.Options{BaseURL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a := &analysis{client: c, options: Options{Parallel: 1, Timeout: time.Minute}, text: story, pause: func(context.Context, time.Duration) error { return nil }}
	if _, err := a.run(t.Context(), classify(story)); err == nil || !strings.Contains(err.Error(), "cannot be used") {
		t.Errorf("%v", err)
	}
}
