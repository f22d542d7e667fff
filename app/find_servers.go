package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"velo/ui/console"
)

// usualPorts are where local servers listen unless they are told otherwise: Velo and vLLM 8000,
// llama.cpp 8080, SGLang 30000, LM Studio 1234, Ollama 11434; and the next ones, where a second server
// is put. Ports are shared, so what listens says itself what it is.
var usualPorts = []int{8000, 8080, 30000, 1234, 11434, 8001, 8081, 30001}

// How long a search may take. A port of this machine that nobody listens on refuses at once; the limits
// are for one that accepts and says nothing.
const (
	serverConnect = 300 * time.Millisecond
	serverAnswer  = 1500 * time.Millisecond // of one question
	serverPort    = 3 * time.Second         // of all questions to a port
	serverBody    = 1 << 20                 // bytes of an answer that are read
	serverModels  = 200
)

// FindServers implements console.Console.
func (c *theConsole) FindServers(ctx context.Context) []console.Server {
	ports := slices.Clone(usualPorts)
	if e, ok := c.engine.endpoint(); ok && e.Down == "" {
		if u, err := url.Parse(e.URL); err == nil {
			var port int
			if _, err := fmt.Sscan(u.Port(), &port); err == nil && !slices.Contains(ports, port) {
				ports = append(ports, port)
			}
		}
	}
	found := findServers(ctx, ports)
	for _, e := range c.Endpoints() {
		for i := range found {
			if sameServer(e.URL, found[i].URL) && (found[i].EndpointID == "" || e.Engine) {
				found[i].EndpointID = e.ID
			}
		}
	}
	return found
}

// sameServer tells whether two addresses are one port of this machine.
func sameServer(a, b string) bool {
	u, err := url.Parse(a)
	v, err2 := url.Parse(b)
	return err == nil && err2 == nil && u.Scheme == v.Scheme && u.Port() != "" && u.Port() == v.Port() && isLoopback(u.Hostname()) && isLoopback(v.Hostname())
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// findServers asks the ports of this machine, all at once, and returns those behind which a server of
// language models answers, in the order of the ports.
func findServers(ctx context.Context, ports []int) []console.Server {
	found := make([]*console.Server, len(ports))
	var all sync.WaitGroup
	for i, port := range ports {
		all.Go(func() { found[i] = findServer(ctx, port) })
	}
	all.Wait()
	var out []console.Server
	for _, s := range found {
		if s != nil {
			out = append(out, *s)
		}
	}
	return out
}

// findServer asks one port; nil = there is none.
func findServer(ctx context.Context, port int) *console.Server {
	ctx, cancel := context.WithTimeout(ctx, serverPort)
	defer cancel()
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		q := newQuestions(fmt.Sprintf("http://%s:%d", host, port))
		s, heard := q.identify(ctx)
		q.web.CloseIdleConnections()
		if heard {
			return s
		}
	}
	return nil
}

// questions are what a server is asked, without a key and without following it elsewhere.
type questions struct {
	base string
	web  *http.Client
}

func newQuestions(base string) *questions {
	return &questions{base: base, web: &http.Client{
		Timeout:       serverAnswer,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{ // no proxy: this machine is asked itself
			DialContext:            (&net.Dialer{Timeout: serverConnect}).DialContext,
			MaxIdleConnsPerHost:    1,
			MaxResponseHeaderBytes: 64 << 10,
		},
	}}
}

// reply is what came back; a status of 0 is none.
type reply struct {
	status int
	server string // the header of that name
	body   []byte
	dialed bool // somebody listens
}

func (q *questions) get(ctx context.Context, path string) reply {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, q.base+path, nil)
	if err != nil {
		return reply{}
	}
	req.Header.Set("User-Agent", "velo/"+version)
	resp, err := q.web.Do(req)
	if err != nil {
		var op *net.OpError
		return reply{dialed: !errors.As(err, &op) || op.Op != "dial"}
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(resp.Body, serverBody)) // what came so far may be enough
	return reply{resp.StatusCode, resp.Header.Get("Server"), b, true}
}

// modelList is what /v1/models answers.
type modelList struct {
	Data []struct {
		ID    string `json:"id"`
		Owner string `json:"owned_by"`
	} `json:"data"`
}

// identify finds out what listens there. heard tells that somebody does, whatever it is.
func (q *questions) identify(ctx context.Context) (s *console.Server, heard bool) {
	r := q.get(ctx, "/v1/models")
	if r.status == 0 {
		return nil, r.dialed
	}
	s = &console.Server{URL: q.base + "/v1", Kind: console.ServerUnknown}
	switch {
	case r.status == http.StatusOK:
		var list modelList
		if json.Unmarshal(r.body, &list) != nil || list.Data == nil {
			return nil, true // it speaks HTTP and is something else
		}
		owners := map[string]bool{}
		for _, m := range list.Data {
			owners[m.Owner] = true
			if name := printable(m.ID); name != "" && len(s.Models) < serverModels {
				s.Models = append(s.Models, name)
			}
		}
		s.Kind = kindOfOwner(owners)
		if len(s.Models) == 0 {
			s.Down = "It has no model. Load one there, then search again."
		}
	case r.status == http.StatusUnauthorized, r.status == http.StatusForbidden:
		s.Locked = true
	case r.status == http.StatusServiceUnavailable:
		s.Down = "It is loading its model. Search again in a moment."
	default:
		return nil, true
	}
	certain := s.Kind != console.ServerUnknown
	if !certain {
		s.Kind = q.kindOfTelltales(ctx, r)
	}
	if s.Kind == console.ServerUnknown && r.status != http.StatusOK {
		return nil, true // any web server refuses strangers
	}
	s.Version = q.version(ctx, s.Kind)
	return s, true
}

// kindOfOwner reads owned_by, in which servers name themselves. Ollama writes "library" for a model of
// its own registry and the user's name for others, which tells nothing.
func kindOfOwner(owners map[string]bool) string {
	for _, k := range []struct{ owner, kind string }{
		{"velo", console.ServerVelo}, {"velo-sim", console.ServerScripted}, {"vllm", console.ServerVLLM}, {"sglang", console.ServerSGLang},
		{"llamacpp", console.ServerLlama}, {"organization_owner", console.ServerLMStudio}, {"library", console.ServerOllama},
	} {
		if owners[k.owner] {
			return k.kind
		}
	}
	return console.ServerUnknown
}

// kindOfTelltales asks what only some servers have: the names of the metrics, the words of /health, a
// route of their own.
func (q *questions) kindOfTelltales(ctx context.Context, models reply) string {
	if strings.HasPrefix(models.server, "llama.cpp") {
		return console.ServerLlama
	}
	metrics := q.get(ctx, "/metrics")
	for _, m := range []struct{ prefix, kind string }{
		{"vllm:", console.ServerVLLM}, {"sglang:", console.ServerSGLang}, {"llamacpp:", console.ServerLlama}, {"velo_", console.ServerVelo},
	} {
		if metrics.status == http.StatusOK && strings.Contains("\n"+string(metrics.body), "\n"+m.prefix) {
			return m.kind
		}
	}
	health := q.get(ctx, "/health")
	var h struct {
		Status    string          `json:"status"`
		Telemetry json.RawMessage `json:"telemetry"`
		Error     struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(health.body, &h) // what is no JSON tells nothing
	switch {
	case len(h.Telemetry) > 0 || h.Status == "loading" && health.status == http.StatusServiceUnavailable:
		return console.ServerVelo
	case strings.HasPrefix(health.server, "llama.cpp"), h.Error.Message == "Loading model":
		return console.ServerLlama
	}
	switch {
	case hasVersion(q.get(ctx, "/api/version")):
		return console.ServerOllama
	case hasVersion(q.get(ctx, "/version")):
		return console.ServerVLLM
	case isList(q.get(ctx, "/api/v0/models")):
		return console.ServerLMStudio
	}
	return console.ServerUnknown
}

// version asks for the version where the kind has a route for it.
func (q *questions) version(ctx context.Context, kind string) string {
	path := map[string]string{console.ServerVLLM: "/version", console.ServerOllama: "/api/version", console.ServerSGLang: "/get_server_info", console.ServerLlama: "/props"}[kind]
	if path == "" {
		return ""
	}
	r := q.get(ctx, path)
	var v struct {
		Version string `json:"version"`
		Build   string `json:"build_info"`
	}
	if r.status != http.StatusOK || json.Unmarshal(r.body, &v) != nil {
		return ""
	}
	return printable(cmp.Or(v.Version, v.Build))
}

func hasVersion(r reply) bool {
	var v struct {
		Version string `json:"version"`
	}
	return r.status == http.StatusOK && json.Unmarshal(r.body, &v) == nil && v.Version != ""
}

func isList(r reply) bool {
	var l modelList
	return r.status == http.StatusOK && json.Unmarshal(r.body, &l) == nil && l.Data != nil
}

// printable makes a text of a stranger one short line.
func printable(s string) string {
	s = strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(s, ""))
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200]) + "…"
	}
	return strings.TrimSpace(s)
}
