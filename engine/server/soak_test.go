package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"velo/engine"
	"velo/engine/enginetest"
	"velo/engine/sched"
)

// A soak is random requests, many at once, of which some are cancelled, left or wrong. What must
// hold is held at the end: no lane is stuck, no page and no state is leaked, the counters add up,
// memory has not grown, and every answer is that of the same request alone.
type soak struct {
	rig      *rig
	finished [4]atomic.Int64 // by sched.Finish
	prompts  []string
	alone    map[string]string // body → answer
	counts   sync.Map          // kind → *atomic.Int64
}

func (s *soak) Finished(_ *sched.Request, r sched.Result) { s.finished[r.Finish].Add(1) }
func (s *soak) Stepped(sched.Step)                        {}

const soakLanes, soakContext = 16, 512

func newSoak(t testing.TB, family string) *soak {
	t.Helper()
	s := &soak{alone: map[string]string{}}
	dir := enginetest.Folder(t, family)
	e, err := engine.Load(t.Context(), dir, engine.Options{Context: soakContext, Lanes: soakLanes, Tokens: 6 * soakContext, Checkpoints: 8})
	if err != nil {
		t.Fatal(err)
	}
	scheduler := sched.New(e.Model, sched.Options{Lanes: soakLanes, Context: soakContext, StepTokens: 64, Waiting: 64, PrefixCache: true, LoopWindow: -1, Observer: s})
	s.rig = serveOn(t, e, Options{Engine: e, Model: "org/tiny", Origin: "*", Defaults: e.Defaults, Scheduler: scheduler})
	rng := rand.New(rand.NewPCG(1, 2))
	words := []string{"the", "other", "thing", "and", "a", "in", "there", "{\"a\":", "Zürich", "再见", "\n\n", "hand"}
	for range 12 {
		var b strings.Builder
		for range 1 + rng.IntN(40) {
			b.WriteString(words[rng.IntN(len(words))] + " ")
		}
		s.prompts = append(s.prompts, b.String())
	}
	return s
}

// body is a request whose answer is always the same: greedy, or with a seed.
func (s *soak) body(rng *rand.Rand) string {
	prompt, _ := json.Marshal(s.prompts[rng.IntN(len(s.prompts))])
	how := `"temperature":0`
	if rng.IntN(2) == 0 {
		how = fmt.Sprintf(`"temperature":1,"seed":%d`, rng.IntN(3))
	}
	return fmt.Sprintf(`{"messages":[{"role":"user","content":%s}],"max_tokens":%d,"chat_template_kwargs":{"enable_thinking":false},%s}`, prompt, []int{1, 7, 24}[rng.IntN(3)], how)
}

func (s *soak) count(kind string) {
	c, _ := s.counts.LoadOrStore(kind, new(atomic.Int64))
	c.(*atomic.Int64).Add(1)
}

const soakTool = `[{"type":"function","function":{"name":"add","parameters":{"type":"object","properties":{"a":{"type":"integer","minimum":0,"maximum":9}},"required":["a"],"additionalProperties":false}}}]`

// one sends a request of a random kind and checks its answer.
func (s *soak) one(t testing.TB, rng *rand.Rand) {
	with := func(body, more string) string { return strings.TrimSuffix(body, "}") + "," + more + "}" }
	body := s.body(rng)
	busy := func(status int) bool { // too many at once is an answer too
		if status == http.StatusServiceUnavailable {
			s.count("busy")
			return true
		}
		return false
	}
	switch kind := rng.IntN(20); {
	case kind < 6: // whole
		status, _, answer := s.rig.post(t, "/v1/chat/completions", body)
		if busy(status) {
			return
		}
		s.count("whole")
		if got := content(t, answer); status != 200 || got != s.alone[body] {
			t.Errorf("status %d, %q, alone %q\n%s", status, got, s.alone[body], body)
		}
	case kind < 11: // streamed
		status, _, answer := s.rig.post(t, "/v1/chat/completions", with(body, `"stream":true`))
		if busy(status) {
			return
		}
		s.count("streamed")
		got, _, _ := said(events_(t, answer), 0)
		if status != 200 || got != s.alone[body] {
			t.Errorf("status %d, streamed %q, alone %q\n%s", status, got, s.alone[body], body)
		}
	case kind < 14: // left in the middle, or before anything came
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rng.IntN(30))*time.Millisecond)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "POST", s.rig.URL+"/v1/chat/completions", strings.NewReader(with(body, `"stream":true,"ignore_eos":true,"max_completion_tokens":300`)))
		if err != nil {
			t.Error(err)
			return
		}
		s.count("left")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return
		}
		lines := bufio.NewReader(resp.Body)
		for range rng.IntN(6) {
			if _, err := lines.ReadString('\n'); err != nil {
				break
			}
		}
		_ = resp.Body.Close()
	case kind < 16: // a schema
		schema := `"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","properties":{"n":{"type":"integer","minimum":0,"maximum":99},"s":{"enum":["the","and"]}},"required":["n","s"],"additionalProperties":false}}},"max_completion_tokens":60`
		status, _, answer := s.rig.post(t, "/v1/chat/completions", with(body, schema))
		if busy(status) {
			return
		}
		s.count("schema")
		var got struct {
			N *int
			S string
		}
		text := content(t, answer)
		if err := json.Unmarshal([]byte(text), &got); status != 200 || err != nil || got.N == nil || *got.N > 99 || got.S != "the" && got.S != "and" {
			t.Errorf("status %d, %q: %v", status, text, err)
		}
	case kind < 17: // a tool
		status, _, answer := s.rig.post(t, "/v1/chat/completions", with(body, `"tool_choice":"required","parallel_tool_calls":false,"max_completion_tokens":100,"tools":`+soakTool))
		if busy(status) {
			return
		}
		s.count("tool")
		var got struct {
			Choices []struct {
				Message struct {
					Calls []struct {
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
			}
		}
		var args struct{ A *int }
		if err := json.Unmarshal(answer, &got); status != 200 || err != nil || len(got.Choices) != 1 || len(got.Choices[0].Message.Calls) != 1 ||
			json.Unmarshal([]byte(got.Choices[0].Message.Calls[0].Function.Arguments), &args) != nil || args.A == nil {
			t.Errorf("status %d, %v, %s", status, err, answer)
		}
	case kind < 18: // several answers from one prompt
		status, _, answer := s.rig.post(t, "/v1/chat/completions", with(body, `"n":3`))
		if busy(status) {
			return
		}
		s.count("several")
		var got struct{ Choices []any }
		if err := json.Unmarshal(answer, &got); status != 200 || err != nil || len(got.Choices) != 3 {
			t.Errorf("status %d, %v, %s", status, err, answer)
		}
	case kind < 19: // a prompt that fills the context
		long, _ := json.Marshal(strings.Repeat("the ", 300+rng.IntN(120)))
		status, _, answer := s.rig.post(t, "/v1/chat/completions", fmt.Sprintf(`{"messages":[{"role":"user","content":%s}],"max_tokens":20,"temperature":0}`, long))
		if busy(status) {
			return
		}
		s.count("long")
		if status != 200 {
			t.Errorf("status %d, %s", status, answer)
		}
	default: // wrong
		bad := []string{``, `{`, `[]`, `{"messages":[]}`, `{"messages":"x"}`, with(body, `"top_p":7`), with(body, `"n":0`), with(body, `"tools":{}`),
			with(body, `"response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":{"type":"nothing"}}}`),
			`{"messages":[{"role":"user","content":"` + strings.Repeat("the ", 4000) + `"}]}`, strings.Repeat("[", 100000), "{\"messages\":\xff}"}
		status, _, answer := s.rig.post(t, "/v1/chat/completions", bad[rng.IntN(len(bad))])
		s.count("wrong")
		if status < 400 || status >= 500 || !bytes.Contains(answer, []byte(`"code"`)) {
			t.Errorf("status %d, %s", status, answer)
		}
	}
}

// content is the text of a whole answer.
func content(t testing.TB, answer []byte) string {
	var got struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.Unmarshal(answer, &got); err != nil || len(got.Choices) == 0 {
		t.Errorf("%v: %.300s", err, answer)
		return ""
	}
	return got.Choices[0].Message.Content
}

// run sends n requests from so many clients.
func (s *soak) run(t testing.TB, n, clients int) {
	t.Helper()
	// Each request alone, first: that is what it must answer among others.
	seen := rand.New(rand.NewPCG(3, 4))
	for range 4000 {
		body := s.body(seen)
		if _, ok := s.alone[body]; !ok {
			_, _, answer := s.rig.post(t, "/v1/chat/completions", body)
			s.alone[body] = content(t, answer)
		}
	}
	heap := func() uint64 {
		http.DefaultClient.CloseIdleConnections()
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	s.batch(t, n/10, clients, 5) // fills caches and pools
	s.settle(t)
	before, goroutines := heap(), runtime.NumGoroutine()
	s.batch(t, n, clients, 6)
	s.settle(t)
	after := heap()
	if after > before+before/4+8<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
	if left := runtime.NumGoroutine(); left > goroutines+8 {
		t.Errorf("there were %d goroutines, there are %d", goroutines, left)
	}
	if b, ok := t.(*testing.B); ok {
		b.ReportMetric(float64(after)/float64(before), "heap-ratio")
	}
	s.counts.Range(func(kind, n any) bool {
		t.Logf("%-9s %d", kind, n.(*atomic.Int64).Load())
		return true
	})
}

func (s *soak) batch(t testing.TB, n, clients int, seed uint64) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(c)))
			for next.Add(1) <= int64(n) && !t.Failed() {
				s.one(t, rng)
			}
		})
	}
	wg.Wait()
}

// settle waits until nothing runs and holds the books against each other.
func (s *soak) settle(t testing.TB) {
	t.Helper()
	var st sched.Status
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if st = s.rig.scheduler.Status(); !st.Busy && st.Running == 0 && st.Waiting == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after 30 s it is not idle: %+v", st)
		}
	}
	if !st.Alive || st.PagesUsed != 0 {
		t.Errorf("alive %v, %d pages are held by nobody", st.Alive, st.PagesUsed)
	}
	if st.States > 0 && st.StatesUsed != st.Checkpoints {
		t.Errorf("%d recurrent states are held for %d checkpoints", st.StatesUsed, st.Checkpoints)
	}
	ended := int64(0)
	for i := range s.finished {
		ended += s.finished[i].Load()
	}
	if n := s.finished[sched.Failed].Load(); n > 0 {
		t.Errorf("%d requests failed", n)
	}
	// Every answer that began was counted once: from the cache or not.
	if begun := int64(st.Hits + st.Misses); begun > ended || ended == 0 {
		t.Errorf("%d answers began and %d ended", begun, ended)
	}
	// The server still works.
	if status, _, _ := s.rig.get(t, "/health"); status != 200 {
		t.Errorf("health is %d", status)
	}
}

func TestSoak(t *testing.T) {
	n := 200
	if testing.Short() {
		n = 60
	}
	for _, family := range []string{enginetest.Plain, enginetest.Hybrid} {
		t.Run(family, func(t *testing.T) { newSoak(t, family).run(t, n, 24) })
	}
}

// BenchmarkSoak is the long one: thousands of requests.
func BenchmarkSoak(b *testing.B) {
	for _, family := range []string{enginetest.Plain, enginetest.Hybrid} {
		b.Run(family, func(b *testing.B) {
			s := newSoak(b, family)
			for b.Loop() {
				s.run(b, 5000, 32)
			}
		})
	}
}
