package otlp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestPagesShowTheirTokens: each page gets its own token and no other, what a server answers to a wrong one is told
// in words, and the token is in no state.
func TestPagesShowTheirTokens(t *testing.T) {
	var open atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		token := q.Header.Get("Authorization")
		switch {
		case q.URL.Path == "/open":
			open.Add(1)
			if token != "" {
				w.WriteHeader(http.StatusTeapot) // nobody's token is for it
			}
		case token == "":
			w.WriteHeader(map[bool]int{true: 401, false: 403}[q.URL.Path == "/metrics"])
		case token == "Bearer weak":
			w.WriteHeader(403)
		case token != "Bearer secret":
			w.WriteHeader(401)
		}
		_, _ = io.WriteString(w, "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 4\n")
	}))
	defer web.Close()
	every := leastPoll
	c := Config{Enabled: true, Poll: []Poll{
		{URL: web.URL + "/metrics", Every: every, Token: "secret"}, {URL: web.URL + "/open", Every: every}, {URL: web.URL + "/metrics", Every: every},
		{URL: web.URL + "/other", Every: every}, {URL: web.URL + "/metrics", Every: every, Token: "wrong"}, {URL: web.URL + "/metrics", Every: every, Token: "weak"},
	}}
	r := started2(t, c)
	want := []string{"", "", "asks for a token (401 Unauthorized)", "does not let everybody read this page (403 Forbidden)",
		"does not take the token (401 Unauthorized)", "knows the token and does not let it read this page (403 Forbidden)"}
	waitFor(t, "all pages", func() bool {
		for _, p := range r.State().Polls {
			if !p.Tried {
				return false
			}
		}
		return true
	})
	for i, p := range r.State().Polls {
		if p.Ok != (want[i] == "") || !strings.Contains(p.Error, want[i]) || p.Every != every {
			t.Errorf("page %d is %+v, want %q", i, p, want[i])
		}
		for _, token := range []string{"secret", "wrong", "weak"} {
			if strings.Contains(p.Error+p.URL, token) {
				t.Errorf("page %d tells its token: %+v", i, p)
			}
		}
	}

	// What does not change goes on: its state stays, and it is read no sooner.
	c.Poll[0].Token = "wrong"
	check(t, r.Configure(c))
	p := r.State().Polls
	if p[0].Tried && p[0].Ok || !p[1].Tried || !p[1].Ok {
		t.Errorf("after another token for the first: %+v", p[:2])
	}
	c.Poll = c.Poll[1:2]
	check(t, r.Configure(c))
	if p := r.State().Polls; len(p) != 1 || !p[0].Ok {
		t.Errorf("of one page the state is %+v", p)
	}
	c.Enabled = false
	check(t, r.Configure(c))
	n := open.Load()
	time.Sleep(2 * every)
	if now := open.Load(); now > n+1 { // one may have been under way
		t.Errorf("a receiver that is off read the page %d times", now-n)
	}
}
