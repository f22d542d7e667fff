package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"velo/engine"
	"velo/engine/emit"
	"velo/engine/grammar"
	"velo/engine/host"
	"velo/engine/meter"
	"velo/engine/sample"
	"velo/engine/sched"
)

// Options say what is served and how.
type Options struct {
	Engine    *engine.Engine
	Scheduler *sched.Scheduler
	Meter     *meter.Meter  // nil: /metrics is not found
	Emitter   *emit.Emitter // nil: nothing is emitted
	Traces    bool          // the emitter sends traces: times of tokens are kept for it
	// GPU is what the GPU told last, for /health; nil: there is none.
	GPU func() (host.GPU, bool)
	// GPUUntold is why the GPU tells nothing, or of its memory alone; empty: it does. May be nil.
	GPUUntold func() string

	Model     string        // its name; "" is the engine's
	Key       string        // what a request must carry as Authorization: Bearer; "" is none
	Origin    string        // Access-Control-Allow-Origin; "" is none
	Defaults  sample.Params // of a request that says nothing
	MaxTokens int           // of a request that says nothing; 0 is as many as the context holds
	Thinking  *bool         // whether the model reasons; nil leaves it to the template
	Effort    string        // how much it reasons; "" leaves it to the template
	KeepTools bool          // tool_choice none leaves the tools in the prompt
	Prompts   int           // characters of each prompt that are logged; 0 is none

	Log *slog.Logger // nil: nothing is logged
}

// Server answers requests. Its methods may be called from any goroutine.
type Server struct {
	o        Options
	created  time.Time
	key      [sha256.Size]byte
	sessions sessions
	// constraints are compiled grammars of recent requests.
	constraints *constraints
	large       chan struct{} // places for large bodies
	// How long a body may take, and a reader to take what was written.
	bodyTimeout, writeTimeout time.Duration
	bos, eos                  string  // texts of the model's special tokens
	addBOS                    bool    // a conversation begins with BOS even where the template leaves it out
	longest                   int     // bytes of the longest token
	tags                      []int32 // ids of the tags that are single tokens
	// pythonTag is the id of Llama's tag before calls, if there is one.
	pythonTag  []int32
	vocabulary func() *grammar.Vocabulary
	calls      atomic.Int64 // numbered in the process
}

// banned is the bias of a token that must not come.
var banned = float32(math.Inf(-1))

// New makes a server. The engine and the scheduler must outlive it.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Model == "" {
		o.Model = o.Engine.Name
	}
	s := &Server{o: o, created: time.Now(), key: sha256.Sum256([]byte(o.Key)), large: make(chan struct{}, largeBodies), constraints: newConstraints(), longest: 1,
		bodyTimeout: bodyTimeout, writeTimeout: writeTimeout}
	s.sessions.now = time.Now
	t := o.Engine.Tokenizer
	if id := t.BOS(); id >= 0 {
		s.bos = t.Decode([]int32{id})
	}
	if ids := t.EOS(); len(ids) > 0 {
		s.eos = t.Decode(ids[:1])
	}
	// As engine.Prompt has it: a GGUF file says whether, a folder's template writes it itself.
	s.addBOS = t.AddBOS() && o.Engine.Weights.TokenizerFiles().Meta != nil
	for id := range int32(t.Vocab()) {
		s.longest = max(s.longest, len(t.Token(id)))
	}
	for _, tag := range tags {
		if id, ok := t.ID(tag); ok {
			s.tags = append(s.tags, id)
		}
	}
	if id, ok := t.ID(pythonTag); ok {
		s.pythonTag = []int32{id}
	}
	_ = o.Meter.Request() // from now on requests are counted, and not the answers of each
	s.vocabulary = sync.OnceValue(s.newVocabulary)
	return s
}

// newVocabulary is what grammars choose from: tokens that are text, and the tags.
func (s *Server) newVocabulary() *grammar.Vocabulary {
	t := s.o.Engine.Tokenizer
	token := func(id int32) []byte {
		if t.Special(id) && !slices.Contains(s.tags, id) {
			return nil
		}
		return t.Token(id)
	}
	return grammar.NewVocabulary(s.o.Engine.Weights.Config.Vocab, token, s.o.Engine.EOS)
}

// Warm makes what the first request with a grammar would have to wait for.
func (s *Server) Warm() { s.vocabulary() }

// Model is the name that the model is served under.
func (s *Server) Model() string { return s.o.Model }

// HTTP is an HTTP server for a handler with the time limits that keep slow and idle connections
// from holding it up. log takes what net/http has to say.
func HTTP(h http.Handler, log *slog.Logger) *http.Server {
	server := &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader}
	if log != nil {
		server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelWarn)
	}
	return server
}

// Handler serves all routes.
func (s *Server) Handler() http.Handler {
	routes := map[string]map[string]http.HandlerFunc{
		"/chat/completions": {"POST": s.post(s.chat)},
		"/completions":      {"POST": s.post(s.complete)},
		"/tokenize":         {"POST": s.post(s.tokenize)},
		"/detokenize":       {"POST": s.post(s.detokenize)},
		"/models":           {"GET": s.models},
		"/health":           {"GET": s.health},
		"/metrics":          {"GET": s.metrics},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer s.recover(w, r)
		// A deadline of the connection's last answer would go on.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		if s.allowOrigin(w, r) {
			return
		}
		path := r.URL.Path
		if len(path) > 1 {
			path = strings.TrimSuffix(path, "/")
		}
		short := strings.TrimPrefix(path, "/v1")
		open := path == "/health" || path == "/metrics"
		if !open && !s.authorised(r) {
			writeError(w, fail(InvalidKey, "", "cannot serve the request: it needs the server's API key; send it as Authorization: Bearer KEY"))
			return
		}
		methods := routes[short]
		if id, ok := strings.CutPrefix(short, "/models/"); ok && methods == nil {
			methods = map[string]http.HandlerFunc{"GET": func(w http.ResponseWriter, r *http.Request) { s.model(w, id) }}
		}
		if methods == nil {
			writeError(w, fail(NotFound, "", "cannot find %.100q: there are /v1/chat/completions, /v1/completions, /v1/models, /v1/tokenize, /v1/detokenize, /health and /metrics", r.URL.Path))
			return
		}
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		serve := methods[method]
		if serve == nil {
			for m := range methods {
				w.Header().Set("Allow", m)
			}
			writeError(w, fail(MethodNotAllowed, "", "cannot %.20s %.100s: send a %s request", r.Method, r.URL.Path, w.Header().Get("Allow")))
			return
		}
		serve(w, r)
	})
}

// allowOrigin answers what browsers ask before they let a page's script call, and says whether that
// was all.
func (s *Server) allowOrigin(w http.ResponseWriter, r *http.Request) bool {
	if s.o.Origin == "" {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", s.o.Origin)
	h.Set("Access-Control-Expose-Headers", "X-Session-Id, X-Json-Schema-Enforced, Retry-After")
	if s.o.Origin != "*" {
		h.Add("Vary", "Origin")
	}
	if r.Method != http.MethodOptions {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
	wanted := r.Header.Get("Access-Control-Request-Headers")
	if wanted == "" {
		wanted = "Authorization, Content-Type, X-Session-Id"
	}
	h.Set("Access-Control-Allow-Headers", wanted)
	h.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// authorised compares keys in a time that tells nothing about them.
func (s *Server) authorised(r *http.Request) bool {
	if s.o.Key == "" {
		return true
	}
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(key)))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(sum[:], s.key[:]) == 1
}

// recover makes an error of a panic, so that one request does not end the others.
func (s *Server) recover(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	s.o.Log.Error("a request panicked", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	writeError(w, fail(Internal, "", "cannot answer: the server has a fault, which its log describes"))
}

// post reads and checks the body of a request before it is served.
func (s *Server) post(serve func(http.ResponseWriter, *http.Request, *object)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, release, e := s.readBody(w, r)
		defer release()
		if e != nil {
			writeError(w, e)
			return
		}
		if e := checkJSON(body); e != nil {
			writeError(w, e)
			return
		}
		o, e := newObject(body, InvalidBody, "", "")
		if e != nil {
			writeError(w, e)
			return
		}
		o.release = release
		serve(w, r, o)
	}
}

// readBody reads a body within its limits of size and time. release gives back the place that a
// large one took; calling it again does nothing.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) (body []byte, release func(), e *Error) {
	release = func() {}
	if c := r.Header.Get("Content-Encoding"); c != "" && !strings.EqualFold(c, "identity") {
		return nil, release, fail(InvalidBody, "", "cannot read the request: its body is encoded as %.40q; send it as it is", c)
	}
	if r.ContentLength > maxBody {
		return nil, release, fail(TooLarge, "", "cannot read the request: it has %d bytes, more than %d; shorten it", r.ContentLength, maxBody)
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(s.bodyTimeout))
	defer control.SetReadDeadline(time.Time{})
	limited := http.MaxBytesReader(w, r.Body, maxBody)
	body, err := io.ReadAll(io.LimitReader(limited, largeBody))
	if err == nil && len(body) == largeBody {
		select {
		case s.large <- struct{}{}:
		case <-r.Context().Done():
			return nil, release, asError(context.Cause(r.Context()))
		case <-time.After(s.bodyTimeout):
			return nil, release, fail(Busy, "", "cannot take the request: the server is reading %d other large ones; try again in 5 seconds", largeBodies)
		}
		release = sync.OnceFunc(func() { <-s.large })
		var rest []byte
		rest, err = io.ReadAll(limited)
		body = append(body, rest...)
	}
	var large *http.MaxBytesError
	var late interface{ Timeout() bool }
	switch {
	case errors.As(err, &large):
		return nil, release, fail(TooLarge, "", "cannot read the request: it has more than %d bytes; shorten it", maxBody)
	case errors.As(err, &late) && late.Timeout():
		return nil, release, fail(RequestTimeout, "", "cannot read the request: its body did not come within %v; send it faster", s.bodyTimeout)
	case err != nil:
		return nil, release, fail(InvalidBody, "", "cannot read the request: its body ended early: %v", err)
	}
	return body, release, nil
}

// encode encodes a rendered conversation, with BOS where the model's files want it.
func (s *Server) encode(text string) []int32 {
	t := s.o.Engine.Tokenizer
	ids := t.Encode(text, true)
	if bos := t.BOS(); s.addBOS && bos >= 0 && (len(ids) == 0 || ids[0] != bos) {
		ids = slices.Insert(ids, 0, bos)
	}
	return ids
}

// noteUnused logs what a request said that nothing listened to.
func (s *Server) noteUnused(o *object) {
	for _, known := range []string{"model", "user", "store", "service_tier", "metadata", "safety_identifier", "prompt_cache_key", "verbosity", "prediction", "reasoning", "echo", "suffix"} {
		o.used[known] = true
	}
	if names := o.unused(); len(names) > 0 {
		if len(names) > 16 {
			names = names[:16]
		}
		s.o.Log.Info("a request has members that are not known", "names", strings.ToValidUTF8(strings.Join(names, ","), "?"))
	}
}

// newID is a new id for an answer.
func newID(prefix string) string { return prefix + uuid.NewString() }
