package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxBody bounds a request; a prompt of a million tokens has about 4 MB.
const maxBody = 64 << 20

// serve answers the requests of one connection, one after the other.
func (s *Server) serve(c *conn) {
	for {
		head, err := http.ReadRequest(c.reader)
		if err != nil {
			if !errors.Is(err, io.EOF) && !isNetError(err) {
				s.plain(c, &failure{status: 400, kind: "invalid_request_error", message: "This is not an HTTP/1 request: " + err.Error()}, true)
			}
			return
		}
		if head.ContentLength > maxBody {
			s.plain(c, tooLarge(), true)
			return
		}
		if strings.EqualFold(head.Header.Get("Expect"), "100-continue") {
			if _, err := io.WriteString(c.net, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
				return
			}
		}
		body, err := io.ReadAll(http.MaxBytesReader(nil, head.Body, maxBody))
		read := time.Now()
		if err != nil {
			var large *http.MaxBytesError
			if errors.As(err, &large) {
				s.plain(c, tooLarge(), true)
			}
			return
		}
		closing := head.Close || !head.ProtoAtLeast(1, 1)
		path := strings.TrimPrefix(head.URL.Path, "/v1")
		if head.Method == "POST" && (path == "/chat/completions" || path == "/completions") {
			if !s.complete(c, head, body, read, closing, path == "/chat/completions") {
				return
			}
		} else if !s.other(c, head, body, path, closing) {
			return
		}
		if closing {
			return
		}
	}
}

func tooLarge() *failure {
	return &failure{status: 413, kind: "invalid_request_error", message: fmt.Sprintf("The request body is longer than %d bytes.", maxBody)}
}

func isNetError(err error) bool {
	var n interface{ Timeout() bool } // net.Error, and what closing a socket gives
	return errors.As(err, &n)
}

// complete answers a completion request; false when the connection is over.
func (s *Server) complete(c *conn, head *http.Request, body []byte, read time.Time, closing, chat bool) bool {
	s.mu.Lock()
	s.streams++
	number := s.streams
	s.mu.Unlock()
	o := &stream{
		server: s, number: number, conn: c, pacer: s.pacers[int(number)%len(s.pacers)],
		session: bounded(head.Header.Get("X-Session-Id")), id: bounded(head.Header.Get("X-Request-Id")),
		start: read, epoch: int64(read.Sub(s.began)), finished: make(chan struct{}),
	}
	o.script = s.answer(head, body, number, read, closing, chat)
	o.stamps = make([]stamp, 0, len(o.script.chunks))
	s.mu.Lock()
	s.open[o] = struct{}{}
	s.mu.Unlock()
	if len(o.script.sends) > 0 {
		o.pacer.add(o.epoch+int64(o.script.sends[0].due), o)
	}
	// While the pacer writes, a read waits for the next request: it is what
	// notices a client that hangs up during prefill.
	if _, err := c.reader.Peek(1); err != nil {
		o.cancel()
		return false
	}
	select {
	case <-o.finished:
	case <-s.closing:
		o.cancel()
	}
	return o.script.end == endKeep
}

// bounded cuts what a client wants in the log to a sensible length.
func bounded(header string) string { return header[:min(len(header), 256)] }

// answer makes the script of a completion request.
func (s *Server) answer(head *http.Request, body []byte, number int64, read time.Time, closing, chat bool) *script {
	prefix := "cmpl-"
	if chat {
		prefix = "chatcmpl-"
	}
	id := fmt.Sprintf("%s%012d", prefix, number)
	end := after(closing)
	r, fail := s.parseRequest(head, body, chat)
	if fail != nil {
		return errorScript(&Scenario{}, id, fail, end)
	}
	sc := &r.scenario
	if !head.ProtoAtLeast(1, 1) {
		sc.Framing = "close"
	}
	if sc.Close || sc.Framing == "close" {
		closing, end = true, endClose
	}
	index := s.count(r.key)
	if sc.FailEvery > 0 && (index+1)%sc.FailEvery != 0 {
		sc.Status, sc.Fault = 0, Fault{}
	}
	if fail := authorize(sc, head); fail != nil {
		return errorScript(sc, id, fail, end)
	}
	if sc.Status != 0 {
		return errorScript(sc, id, scripted(sc.Status), end)
	}
	p := &reply{request: r, id: id, created: read.Unix(), cached: min(sc.CachedTokens, r.promptN)}
	if sc.PrefixCache {
		p.cached = s.prefixes.take(r.prompt)
	}
	p.n, p.finish = r.length()
	rng := rand.New(rand.NewPCG(sc.Seed, uint64(number)))
	p.plan = plan(sc, p.n, sc.Reasoning.Tokens, index, r.promptN-p.cached, rng)
	p.compose(rng)
	if !r.stream || sc.Reply == "json" {
		return p.documentScript(end)
	}
	w := newRenderer(p)
	last := p.stream(w)
	if sc.NoFinalBlank {
		w.dropFinalBlank()
	}
	return streamScript(w, last, closing)
}

// documentScript is the reply as one JSON document, when its last token is due.
func (r *reply) documentScript(end ending) *script {
	s := &r.scenario
	d := document{status: 200, headers: []string{"Content-Type: application/json"}, kind: KindJSON,
		tokens: r.n * r.choices, due: r.plan.last(), body: r.json(), end: end}
	switch s.Fault.Kind {
	case "silence", "hang":
		return &script{scenario: s.Name, end: endHang}
	case "error":
		return errorScript(s, r.id, scripted(500), end)
	case "malformed":
		d.kind, d.tokens, d.body = KindMalformed, 0, d.body[:len(d.body)/2]
	case "truncate", "eof":
		d.kind, d.tokens, d.half, d.end = KindTruncated, 0, true, endClose
	case "reset":
		d.kind, d.tokens, d.half, d.end = KindTruncated, 0, true, endReset
	}
	return documentScript(s, r.id, d)
}

// scripted is the error that a scenario's status stands for.
func scripted(status int) *failure {
	f := &failure{status: status, kind: "server_error", code: strconv.Itoa(status), message: "The scripted answer of this scenario: " + statusText(status) + "."}
	switch status {
	case 401:
		f.kind, f.code, f.message = "invalid_request_error", "invalid_api_key", "Incorrect API key provided."
	case 429:
		f.kind, f.code, f.message = "rate_limit_error", "rate_limit_exceeded", "Rate limit reached; try again later."
	case 503:
		f.message = "The engine is overloaded; try again later."
	}
	return f
}

// errorScript is an error reply, sent at once.
func errorScript(s *Scenario, id string, f *failure, end ending) *script {
	d := document{status: f.status, headers: []string{"Content-Type: application/json"}, kind: KindError, body: f.body(), end: end}
	if s.HTML {
		d.headers = []string{"Content-Type: text/html; charset=utf-8"}
		d.body = fmt.Appendf(nil, "<!DOCTYPE html>\n<html><head><title>%[1]d %[2]s</title></head>\n<body><h1>%[1]d %[2]s</h1><p>The scripted web page of this scenario.</p></body></html>\n", f.status, statusText(f.status))
	}
	if f.status == 401 {
		d.headers = append(d.headers, "WWW-Authenticate: Bearer")
	}
	if s.RetryAfter > 0 {
		seconds := (time.Duration(s.RetryAfter) + time.Second - 1) / time.Second
		d.headers = append(d.headers, "Retry-After: "+strconv.Itoa(int(seconds)))
	}
	return documentScript(s, id, d)
}

// authorize compares the key of a request with the scenario's.
func authorize(s *Scenario, head *http.Request) *failure {
	if s.APIKey == "" || head.Header.Get("Authorization") == "Bearer "+s.APIKey {
		return nil
	}
	return scripted(401)
}

// scenarioFor is the scenario that answers a request, before the request's own
// member sim.
func (s *Server) scenarioFor(head *http.Request) (sc Scenario, key string, fail *failure) {
	name := head.Header.Get("X-Sim-Scenario")
	if name == "" {
		return s.scenario, "", nil
	}
	sc, ok := builtin(name)
	if !ok {
		return sc, "", badRequest("X-Sim-Scenario", "no built-in scenario is called %q%s", name, nearest(name))
	}
	return sc, name, nil
}

// other answers everything but completions; false when the connection is over.
func (s *Server) other(c *conn, head *http.Request, body []byte, path string, closing bool) bool {
	sc, _, fail := s.scenarioFor(head)
	switch {
	case fail != nil:
		return s.plain(c, fail, closing)
	case sc.FailEvery == 0 && (sc.Status >= 500 || sc.Status > 0 && path != "/health"):
		return s.send(c, errorScript(&sc, "", scripted(sc.Status), after(closing)))
	case path == "/health" && head.Method == "GET":
		return s.answerJSON(c, map[string]any{"status": "ok"}, closing)
	}
	if fail := authorize(&sc, head); fail != nil {
		return s.plain(c, fail, closing)
	}
	model := map[string]any{"id": s.model, "object": "model", "created": s.began.Unix(), "owned_by": "velo-sim", "max_model_len": MaxTokens}
	switch {
	case path == "/models" && head.Method == "GET":
		return s.answerJSON(c, map[string]any{"object": "list", "data": []any{model}}, closing)
	case path == "/models/"+s.model && head.Method == "GET":
		return s.answerJSON(c, model, closing)
	case path == "/tokenize" && head.Method == "POST":
		return s.tokenize(c, body, closing)
	case path == "/detokenize" && head.Method == "POST":
		return s.detokenize(c, body, closing)
	}
	allowed := map[string]string{"/chat/completions": "POST", "/completions": "POST", "/tokenize": "POST",
		"/detokenize": "POST", "/models": "GET", "/health": "GET"}
	if method, ok := allowed[path]; ok {
		return s.plain(c, &failure{status: 405, kind: "invalid_request_error",
			message: fmt.Sprintf("%s takes %s, not %s.", head.URL.Path, method, head.Method)}, closing)
	}
	return s.plain(c, &failure{status: 404, kind: "invalid_request_error",
		message: fmt.Sprintf("There is no %s; this endpoint has /v1/chat/completions, /v1/completions, /v1/models, /health, /tokenize and /detokenize.", head.URL.Path)}, closing)
}

// tokenize takes the forms of vLLM (prompt) and of llama.cpp (content).
func (s *Server) tokenize(c *conn, body []byte, closing bool) bool {
	var wire struct {
		Prompt  *string `json:"prompt"`
		Content *string `json:"content"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return s.plain(c, badBody(body, err), closing)
	}
	text := wire.Prompt
	if text == nil {
		text = wire.Content
	}
	if text == nil {
		return s.plain(c, badRequest("prompt", "prompt (or content) is missing: it is the text to tokenize"), closing)
	}
	ids := []int64{}
	for _, piece := range Tokens(*text) {
		ids = append(ids, tokenID(piece))
	}
	return s.answerJSON(c, map[string]any{"count": len(ids), "max_model_len": MaxTokens, "tokens": ids}, closing)
}

func (s *Server) detokenize(c *conn, body []byte, closing bool) bool {
	var wire struct {
		Tokens []int64 `json:"tokens"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return s.plain(c, badBody(body, err), closing)
	}
	var text strings.Builder
	for i, id := range wire.Tokens {
		piece, ok := tokenText(id)
		if !ok {
			return s.plain(c, badRequest("tokens", "tokens[%d] is %d, which no token has", i, id), closing)
		}
		text.WriteString(piece)
	}
	return s.answerJSON(c, map[string]any{"prompt": text.String(), "content": text.String()}, closing)
}

// plain sends an error reply that is no part of a scenario.
func (s *Server) plain(c *conn, f *failure, closing bool) bool {
	return s.send(c, errorScript(&Scenario{}, "", f, after(closing)))
}

func (s *Server) answerJSON(c *conn, value any, closing bool) bool {
	body, err := json.Marshal(value)
	if err != nil {
		return s.plain(c, &failure{status: 500, kind: "server_error", message: err.Error()}, closing)
	}
	return s.send(c, documentScript(&Scenario{}, "", document{status: 200, headers: []string{"Content-Type: application/json"}, body: body, end: after(closing)}))
}

// send writes a reply that is not timed and not logged.
func (s *Server) send(c *conn, p *script) bool {
	_, err := c.net.Write(p.wire)
	return err == nil && p.end == endKeep
}

// after is what happens to the connection after an ordinary reply.
func after(closing bool) ending {
	if closing {
		return endClose
	}
	return endKeep
}
