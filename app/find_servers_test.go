package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"velo/bench/sim"
	"velo/ui/console"
)

// routes is a server that answers some paths with a status and a body, and everything else with 404.
func routes(t *testing.T, of map[string]string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := of[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		status, body, _ := strings.Cut(answer, " ")
		code, err := strconv.Atoi(status)
		if err != nil {
			t.Error(err)
		}
		if name, rest, ok := strings.Cut(body, "|"); ok {
			w.Header().Set("Server", name)
			body = rest
		}
		if code == http.StatusFound {
			w.Header().Set("Location", body)
		}
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestServersAreToldApart(t *testing.T) {
	list := func(owner string) string {
		return `200 {"object":"list","data":[{"id":"m-1","object":"model","owned_by":"` + owner + `"}]}`
	}
	for _, c := range []struct {
		name    string
		of      map[string]string
		kind    string // empty = none is found
		version string
		models  int
		locked  bool
		down    string
	}{
		{name: "vLLM", of: map[string]string{"/v1/models": list("vllm"), "/version": `200 {"version":"0.11.2"}`}, kind: console.ServerVLLM, version: "0.11.2", models: 1},
		{name: "SGLang", of: map[string]string{"/v1/models": list("sglang"), "/get_server_info": `200 {"model_path":"m","version":"0.5.5"}`}, kind: console.ServerSGLang, version: "0.5.5", models: 1},
		{name: "llama.cpp", of: map[string]string{"/v1/models": list("llamacpp"), "/props": `200 {"build_info":"b6500-abc"}`}, kind: console.ServerLlama, version: "b6500-abc", models: 1},
		{name: "LM Studio", of: map[string]string{"/v1/models": list("organization_owner")}, kind: console.ServerLMStudio, models: 1},
		{name: "Ollama", of: map[string]string{"/v1/models": list("library"), "/api/version": `200 {"version":"0.12.0"}`}, kind: console.ServerOllama, version: "0.12.0", models: 1},
		{name: "Ollama with a model of the user's", of: map[string]string{"/v1/models": list("kim"), "/api/version": `200 {"version":"0.12.0"}`}, kind: console.ServerOllama, version: "0.12.0", models: 1},
		{name: "Ollama without a model", of: map[string]string{"/v1/models": `200 {"object":"list","data":[]}`, "/api/version": `200 {"version":"0.12.0"}`}, kind: console.ServerOllama, version: "0.12.0", down: "has no model"},
		{name: "Velo", of: map[string]string{"/v1/models": list("velo")}, kind: console.ServerVelo, models: 1},
		{name: "Velo loads", of: map[string]string{"/v1/models": `503 {"error":{}}`, "/health": `503 {"status":"loading"}`}, kind: console.ServerVelo, down: "loading"},
		{name: "Velo with a key", of: map[string]string{"/v1/models": `401 {}`, "/health": `200 {"status":"ok","telemetry":{"mode":"none"}}`}, kind: console.ServerVelo, locked: true},
		{name: "llama.cpp loads", of: map[string]string{"/v1/models": `503 llama.cpp|{"error":{"message":"Loading model","code":503}}`}, kind: console.ServerLlama, down: "loading"},
		{name: "llama.cpp says so in health", of: map[string]string{"/v1/models": `503 {}`, "/health": `503 {"error":{"message":"Loading model"}}`}, kind: console.ServerLlama, down: "loading"},
		{name: "vLLM with a key", of: map[string]string{"/v1/models": `401 {"error":"Unauthorized"}`, "/version": `200 {"version":"0.11.2"}`}, kind: console.ServerVLLM, version: "0.11.2", locked: true},
		{name: "metrics tell", of: map[string]string{"/v1/models": list("acme"), "/metrics": "200 # HELP x\nsglang:num_running_reqs 0\n"}, kind: console.ServerSGLang, models: 1},
		{name: "metrics mention", of: map[string]string{"/v1/models": list("acme"), "/metrics": "200 # HELP vllm: is not here\n"}, kind: console.ServerUnknown, models: 1},
		{name: "a server of no known kind", of: map[string]string{"/v1/models": list("acme")}, kind: console.ServerUnknown, models: 1},
		{name: "a web page", of: map[string]string{"/v1/models": "200 <html>"}},
		{name: "some JSON", of: map[string]string{"/v1/models": `200 {"hello":1}`}},
		{name: "no such page", of: nil},
		{name: "a notebook that wants a password", of: map[string]string{"/v1/models": "403 no"}},
		{name: "a proxy that is down", of: map[string]string{"/v1/models": "503 no"}},
		{name: "broken", of: map[string]string{"/v1/models": "500 no"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := routes(t, c.of)
			found := findServers(context.Background(), []int{portOf(t, s.URL)})
			if c.kind == "" {
				if len(found) != 0 {
					t.Fatalf("found %+v", found)
				}
				return
			}
			if len(found) != 1 {
				t.Fatalf("found %d servers", len(found))
			}
			f := found[0]
			if f.Kind != c.kind || f.Version != c.version || len(f.Models) != c.models || f.Locked != c.locked || f.URL != s.URL+"/v1" {
				t.Errorf("found %+v", f)
			}
			if c.down == "" && f.Down != "" || !strings.Contains(f.Down, c.down) {
				t.Errorf("it is down because %q", f.Down)
			}
		})
	}
}

// TestTheScriptedEndpointIsFound asks a real one.
func TestTheScriptedEndpointIsFound(t *testing.T) {
	s, err := sim.Start(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	found := findServers(context.Background(), []int{portOf(t, s.URL())})
	if len(found) != 1 || found[0].Kind != console.ServerScripted || len(found[0].Models) == 0 {
		t.Errorf("found %+v", found)
	}
}

// TestStrangersAreNotFollowed: a redirect is not taken, and nothing that could be a key is sent.
func TestStrangersAreNotFollowed(t *testing.T) {
	var asked atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, `{"data":[{"id":"m","owned_by":"vllm"}]}`)
	}))
	defer elsewhere.Close()
	s := routes(t, map[string]string{"/v1/models": "302 " + elsewhere.URL + "/v1/models"})
	if found := findServers(context.Background(), []int{portOf(t, s.URL)}); len(found) != 0 || asked.Load() != 0 {
		t.Errorf("found %+v, %d questions went elsewhere", found, asked.Load())
	}
	keyed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
			t.Errorf("sent %v", r.Header)
		}
		fmt.Fprint(w, `{"data":[{"id":"m","owned_by":"vllm"}]}`)
	}))
	defer keyed.Close()
	findServers(context.Background(), []int{portOf(t, keyed.URL)})
}

// TestSilenceEndsTheSearch: one that listens and says nothing holds up nobody for ever, nor does one
// that never ends its answer, and the others are found all the same.
func TestSilenceEndsTheSearch(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	end := make(chan struct{})
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
			select {
			case <-end:
				return
			default:
			}
		}
	}))
	defer endless.Close()
	defer close(end)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := closed.Addr().(*net.TCPAddr).Port
	closed.Close()
	good := routes(t, map[string]string{"/v1/models": `200 {"data":[{"id":"m\u0007\u200b","owned_by":"vllm"}]}`})
	ports := []int{silent.Addr().(*net.TCPAddr).Port, portOf(t, endless.URL), gone, portOf(t, good.URL)}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	found := findServers(ctx, ports)
	if ctx.Err() != nil {
		t.Fatal("the search did not end")
	}
	if len(found) != 1 || found[0].URL != good.URL+"/v1" || !slices.Equal(found[0].Models, []string{"m"}) {
		t.Errorf("found %+v", found)
	}
	ctx, cancel = context.WithCancel(context.Background())
	cancel()
	if found := findServers(ctx, ports); len(found) != 0 {
		t.Errorf("a search that was called off found %+v", found)
	}
}

func TestSameServer(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"http://localhost:8000/v1", "http://127.0.0.1:8000/v1", true},
		{"http://[::1]:8000", "http://127.0.0.1:8000/v1", true},
		{"http://0.0.0.0:8000/v1", "http://127.0.0.1:8000/v1", true},
		{"http://127.0.0.1:8001/v1", "http://127.0.0.1:8000/v1", false},
		{"http://10.0.0.7:8000/v1", "http://127.0.0.1:8000/v1", false},
		{"https://localhost:8000/v1", "http://127.0.0.1:8000/v1", false},
		{"http://localhost", "http://127.0.0.1", false},
		{"", "http://127.0.0.1:8000", false},
		{"://", "http://127.0.0.1:8000", false},
	} {
		if got := sameServer(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
	}
}

// TestFoundKindsArePresets: what is found is added as an endpoint of its kind, by the name of that.
func TestFoundKindsArePresets(t *testing.T) {
	for _, kind := range []string{console.ServerVLLM, console.ServerSGLang, console.ServerLlama, console.ServerLMStudio, console.ServerOllama} {
		if !slices.ContainsFunc(presets, func(p console.Preset) bool { return p.Name == kind }) {
			t.Errorf("there is no kind of server called %q", kind)
		}
	}
}
