package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"velo/engine"
	"velo/engine/enginetest"
	"velo/engine/sched"
)

// folders are small models, made once.
var folders = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "velo-server-test")
	if err != nil {
		panic(err)
	}
	if err := enginetest.Write(dir, enginetest.Plain, 2048); err != nil {
		panic(err)
	}
	return dir
})

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(folders())
	os.Exit(code)
}

// rig is a running server.
type rig struct {
	*httptest.Server
	server    *Server
	engine    *engine.Engine
	scheduler *sched.Scheduler
	stop      func() // ends the scheduler's loop
}

// start runs a server on a small model; change may alter its options before that.
func start(t testing.TB, change func(*Options, *sched.Options)) *rig {
	t.Helper()
	return startOn(t, folders(), 512, change)
}

func startOn(t testing.TB, path string, context_ int, change func(*Options, *sched.Options)) *rig {
	t.Helper()
	e, err := engine.Load(t.Context(), path, engine.Options{Context: context_, Lanes: 4, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Engine: e, Model: "org/tiny", Origin: "*", Defaults: e.Defaults}
	so := sched.Options{Lanes: 4, Context: context_, PrefixCache: true, LoopWindow: -1}
	if change != nil {
		change(&o, &so)
	}
	o.Scheduler = sched.New(e.Model, so)
	return serveOn(t, e, o)
}

// serveOn runs the scheduler's loop and the server of an engine until the test ends.
func serveOn(t testing.TB, e *engine.Engine, o Options) *rig {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = o.Scheduler.Run(ctx) }()
	s := New(o)
	h := httptest.NewUnstartedServer(s.Handler())
	limits := HTTP(nil, nil)
	h.Config.ReadHeaderTimeout, h.Config.IdleTimeout, h.Config.MaxHeaderBytes = limits.ReadHeaderTimeout, limits.IdleTimeout, limits.MaxHeaderBytes
	h.Start()
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
		cancel()
		<-ended
		_ = e.Close()
	})
	return &rig{h, s, e, o.Scheduler, func() { cancel(); <-ended }}
}

// post sends a body and returns status, header and body of the answer.
func (r *rig) post(t testing.TB, path, body string, header ...string) (int, http.Header, []byte) {
	t.Helper()
	req, err := http.NewRequest("POST", r.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return do(t, req)
}

func (r *rig) get(t testing.TB, path string) (int, http.Header, []byte) {
	t.Helper()
	req, err := http.NewRequest("GET", r.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, req)
}

func do(t testing.TB, req *http.Request) (int, http.Header, []byte) {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, b
}

// reply is an answer or a chunk of one, of both endpoints.
type reply struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Model   string `json:"model"`
	Choices []struct {
		Index   int    `json:"index"`
		Text    string `json:"text"`
		Message *turn  `json:"message"`
		Delta   *turn  `json:"delta"`
		Finish  string `json:"finish_reason"`
		Stop    any    `json:"stop_reason"`
		Logprob *struct {
			Content []struct {
				Token   string  `json:"token"`
				Logprob float64 `json:"logprob"`
				Bytes   []byte  `json:"-"`
				Raw     []int   `json:"bytes"`
				Top     []struct {
					Token   string  `json:"token"`
					Logprob float64 `json:"logprob"`
				} `json:"top_logprobs"`
			} `json:"content"`
			Tokens []string             `json:"tokens"`
			Values []float64            `json:"token_logprobs"`
			Top    []map[string]float64 `json:"top_logprobs"`
			Where  []int                `json:"text_offset"`
		} `json:"logprobs"`
	} `json:"choices"`
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Timings map[string]float64 `json:"timings"`
	Session string             `json:"session_id"`
	Error   *struct {
		Message   string `json:"message"`
		Type      string `json:"type"`
		Code      string `json:"code"`
		Param     string `json:"param"`
		Generated *int   `json:"completion_tokens"`
	} `json:"error"`
}

type turn struct {
	Role      string  `json:"role"`
	Content   *string `json:"content"`
	Reasoning string  `json:"reasoning_content"`
	Calls     []struct {
		Index    int    `json:"index"`
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func decode(t testing.TB, b []byte) reply {
	t.Helper()
	var a reply
	if err := json.Unmarshal(b, &a); err != nil {
		t.Fatalf("no JSON: %v in %s", err, b)
	}
	return a
}

// ask sends a chat request that must succeed and returns its document.
func (r *rig) ask(t testing.TB, path, body string) reply {
	t.Helper()
	code, _, b := r.post(t, path, body)
	if code != 200 {
		t.Fatalf("%s gave %d %s", body, code, b)
	}
	return decode(t, b)
}

// chunks sends a streamed request that must succeed and returns its chunks, [DONE] not among them.
func (r *rig) chunks(t testing.TB, path, body string) []reply {
	t.Helper()
	code, h, b := r.post(t, path, body)
	if code != 200 || h.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s gave %d %s", body, code, b)
	}
	return events_(t, b)
}

func events_(t testing.TB, b []byte) []reply {
	t.Helper()
	var all []reply
	done := false
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if line == "" {
			continue
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || done {
			t.Fatalf("unexpected line %q", line)
		}
		if data == "[DONE]" {
			done = true
			continue
		}
		all = append(all, decode(t, []byte(data)))
	}
	if !done {
		t.Fatalf("the stream has no [DONE]: %s", b)
	}
	return all
}

// said puts the text of one choice of a stream together.
func said(chunks []reply, index int) (content, reasoning, finish string) {
	for _, c := range chunks {
		for _, ch := range c.Choices {
			if ch.Index != index {
				continue
			}
			content += ch.Text
			if ch.Delta != nil {
				if ch.Delta.Content != nil {
					content += *ch.Delta.Content
				}
				reasoning += ch.Delta.Reasoning
			}
			if ch.Finish != "" {
				finish = ch.Finish
			}
		}
	}
	return content, reasoning, finish
}

const hello = `"messages":[{"role":"user","content":"the hour"}]`

func TestChat(t *testing.T) {
	r := start(t, nil)
	a := r.ask(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":12,"seed":1}`)
	if a.Object != "chat.completion" || !strings.HasPrefix(a.ID, "chatcmpl-") || a.Model != "org/tiny" || len(a.Choices) != 1 {
		t.Fatalf("the answer is %+v", a)
	}
	c := a.Choices[0]
	if c.Message == nil || c.Message.Role != "assistant" || c.Message.Content == nil || *c.Message.Content == "" || c.Finish != "length" {
		t.Errorf("the choice is %+v", c)
	}
	if u := a.Usage; u == nil || u.Completion != 12 || u.Prompt == 0 || u.Total != u.Prompt+12 {
		t.Errorf("usage is %+v", a.Usage)
	}
	if a.Timings["predicted_n"] != 12 || a.Timings["prompt_n"] != float64(a.Usage.Prompt-a.Usage.Details.Cached) || a.Timings["prompt_ms"] <= 0 || a.Timings["predicted_per_second"] <= 0 {
		t.Errorf("timings are %v", a.Timings)
	}
	if !strings.HasPrefix(a.Session, "sess-") {
		t.Errorf("the session is %q", a.Session)
	}
}

func TestStream(t *testing.T) {
	r := start(t, nil)
	whole := r.ask(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":20,"seed":7}`)
	code, h, b := r.post(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":20,"seed":7,"stream":true}`, "X-Session-Id", "mine")
	if code != 200 || h.Get("X-Session-Id") != "mine" {
		t.Fatalf("%d %v %s", code, h, b)
	}
	chunks := events_(t, b)
	first, last := chunks[0], chunks[len(chunks)-1]
	if first.Object != "chat.completion.chunk" || first.Choices[0].Delta.Role != "assistant" {
		t.Errorf("the first chunk is %+v", first)
	}
	if len(last.Choices) != 0 || last.Usage == nil || last.Usage.Completion != 20 || last.Timings["predicted_n"] != 20 || last.Session != "mine" {
		t.Errorf("the last chunk is %+v", last)
	}
	if end := chunks[len(chunks)-2]; end.Choices[0].Finish != "length" || end.Choices[0].Delta.Content != nil {
		t.Errorf("the chunk before is %+v", end)
	}
	content, _, _ := said(chunks, 0)
	if want := *whole.Choices[0].Message.Content; content != want {
		t.Errorf("streamed %q, whole %q", content, want)
	}
	for _, c := range chunks {
		if c.ID != first.ID {
			t.Errorf("a chunk has id %s, not %s", c.ID, first.ID)
		}
	}
	// Without usage the timings go with the end.
	chunks = r.chunks(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":3,"stream":true,"stream_options":{"include_usage":false}}`)
	if last := chunks[len(chunks)-1]; last.Usage != nil || len(last.Choices) != 1 || last.Choices[0].Finish != "length" || last.Timings["predicted_n"] != 3 {
		t.Errorf("without usage the last chunk is %+v", last)
	}
	chunks = r.chunks(t, "/v1/chat/completions", `{`+hello+`,"max_tokens":3,"stream":true,"stream_options":{"continuous_usage_stats":true}}`)
	for i, c := range chunks {
		if c.Usage == nil || c.Usage.Prompt != whole.Usage.Prompt || c.Usage.Completion > 3 {
			t.Errorf("chunk %d has usage %+v", i, c.Usage)
		}
	}
}

func TestModels(t *testing.T) {
	r := start(t, nil)
	for _, path := range []string{"/v1/models/org/tiny", "/v1/models", "/models"} {
		code, _, b := r.get(t, path)
		if code != 200 || !bytes.Contains(b, []byte(`"id":"org/tiny","object":"model"`)) || !bytes.Contains(b, []byte(`"owned_by":"velo","max_model_len":512`)) {
			t.Errorf("%s gave %d %s", path, code, b)
		}
	}
	code, _, b := r.get(t, "/health")
	var h struct {
		Status    string
		Telemetry map[string]any
	}
	if err := json.Unmarshal(b, &h); err != nil || code != 200 || h.Status != "ok" || h.Telemetry["mode"] != "none" || h.Telemetry["tp_width"] != 1.0 || h.Telemetry["lanes"] != 4.0 {
		t.Errorf("health is %d %s", code, b)
	}
	r.stop()
	if code, _, b := r.get(t, "/health"); code != 503 || !bytes.Contains(b, []byte(`"dead"`)) {
		t.Errorf("health of an engine that has stopped is %d %s", code, b)
	}
	if code, _, b := r.post(t, "/v1/chat/completions", `{`+hello+`}`); code != 503 || decode(t, b).Error.Code != "engine_unavailable" {
		t.Errorf("an engine that has stopped gave %d %s", code, b)
	}
}
