package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"velo/engine/sched"
)

// TestQuoted: every text comes back from its JSON.
func TestQuoted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		b := quoted(s)
		var back string
		if err := json.Unmarshal(b, &back); err != nil || !utf8.Valid(b) {
			t.Fatalf("%q became %q: %v", s, b, err)
		}
		want := ""
		for len(s) > 0 {
			r, n := utf8.DecodeRuneInString(s)
			want += string(r)
			s = s[n:]
		}
		if back != want {
			t.Fatalf("%q came back as %q", want, back)
		}
	})
}

// TestStopper: however the text is cut, what comes out is the text before the first stop string.
func TestStopper(t *testing.T) {
	letters := rapid.StringOfN(rapid.RuneFrom([]rune("aabé")), 1, 4, -1)
	rapid.Check(t, func(t *rapid.T) {
		stops := rapid.SliceOfN(letters, 1, 3).Draw(t, "stops")
		text := rapid.StringOfN(rapid.RuneFrom([]rune("aabé")), 0, 30, -1).Draw(t, "text")
		s := stopper{stops: stops}
		out, stop := "", -1
		fed := 0
		for _, r := range text { // one character at a time, as tokens come
			var piece string
			piece, stop = s.push(string(r), true)
			out += piece
			fed += utf8.RuneLen(r)
			for _, w := range stops {
				if stop < 0 && len(s.held) > 0 && !strings.HasPrefix(text[len(out):], s.held) {
					t.Fatalf("held %q after %q of %q (%q)", s.held, out, text, w)
				}
			}
			if stop >= 0 {
				break
			}
		}
		end := len(text) // the end of the stop string that is complete first
		at := -1
		for _, w := range stops {
			if i := strings.Index(text, w); i >= 0 && (at < 0 || i+len(w) < end || i+len(w) == end && i < at) {
				at, end = i, i+len(w)
			}
		}
		switch {
		case at < 0 && (stop >= 0 || out+s.held != text):
			t.Fatalf("%q with %q gave %q, %q", text, stops, out, s.held)
		case at >= 0 && (stop < 0 || out != text[:at] || fed != end):
			t.Fatalf("%q with %q gave %q after %d bytes, stop %d", text, stops, out, fed, stop)
		}
	})
}

func TestConversations(t *testing.T) {
	now := time.Unix(0, 0)
	s := sessions{now: func() time.Time { return now }}
	m := func(texts ...string) (list []message) {
		for i, text := range texts {
			list = append(list, message{role: []string{"user", "assistant"}[i%2], content: text})
		}
		return list
	}
	first := s.join("", m("a"))
	if next := s.join("", m("a", "b", "c")); next != first {
		t.Errorf("what goes on is %s, not %s", next, first)
	}
	if next := s.join("", m("a", "b", "c", "d", "e")); next != first {
		t.Errorf("what goes on further is %s, not %s", next, first)
	}
	if other := s.join("", m("x", "b", "c")); other == first {
		t.Error("another beginning is the same session")
	}
	if again := s.join("", m("a")); again == first {
		t.Error("the same first message, sent again, is the same session")
	}
	named := s.join("mine", m("n"))
	if named != "mine" || s.join("", m("n", "o", "p")) != "mine" {
		t.Error("what goes on from a named session has another name")
	}
	now = now.Add(31 * time.Minute)
	if late := s.join("", m("a", "b", "c", "d", "e", "f", "g")); late == first {
		t.Error("a session goes on after half an hour")
	}
	for i := range 1000 {
		s.join("", m(fmt.Sprint(i)))
	}
	if len(s.known) != sessionsKept {
		t.Errorf("%d sessions are kept", len(s.known))
	}
}

func TestTemplateEffort(t *testing.T) {
	for _, c := range []struct{ source, effort, want string }{
		{"'low' 'medium' 'xhigh'", "high", "xhigh"}, {"'low' 'medium' 'xhigh'", "xhigh", "xhigh"}, {"'low' 'medium' 'xhigh'", "low", "low"},
		{"'low' 'medium' 'high'", "xhigh", "high"}, {"'low' 'medium' 'high'", "medium", "medium"},
		{"'low' 'high'", "medium", "high"}, {"'low' 'high'", "low", "low"},
	} {
		if got := templateEffort(c.source, c.effort); got != c.want {
			t.Errorf("%s with %s gave %s", c.source, c.effort, got)
		}
	}
}

// TestVariables: enable_thinking is decided by the first that says something.
func TestVariables(t *testing.T) {
	yes, no := true, false
	r := start(t, nil)
	for _, c := range []struct {
		body     string
		thinking *bool
		effort   string
		want     string
	}{
		{`{}`, nil, "", ``},
		{`{}`, &no, "", `{"enable_thinking":false}`},
		{`{"reasoning_effort":"none"}`, &yes, "", `{"enable_thinking":false}`},
		{`{"reasoning_effort":"minimal"}`, nil, "", `{"enable_thinking":false}`},
		{`{"reasoning_effort":"high"}`, &no, "", `{"enable_thinking":false,"reasoning_effort":"high"}`},
		{`{"reasoning_effort":"max"}`, nil, "low", `{"reasoning_effort":"high"}`},
		{`{}`, nil, "low", `{"reasoning_effort":"low"}`},
		{`{}`, nil, "none", `{"enable_thinking":false}`},
		{`{"reasoning_effort":"none","chat_template_kwargs":{"enable_thinking":true,"x":[1]}}`, &no, "", `{"enable_thinking":true,"x":[1]}`},
		{`{"reasoning_effort":"low","chat_template_kwargs":{"reasoning_effort":"odd"}}`, nil, "", `{"reasoning_effort":"odd"}`},
		{`{"reasoning":{"effort":"low"}}`, nil, "", `{"reasoning_effort":"low"}`},
	} {
		r.server.o.Thinking, r.server.o.Effort = c.thinking, c.effort
		o, e := newObject([]byte(c.body), InvalidBody, "", "")
		if e != nil {
			t.Fatal(e)
		}
		if got, e := r.server.readVariables(o); e != nil || string(got) != c.want {
			t.Errorf("%s gave %s, %v; want %s", c.body, got, e, c.want)
		}
	}
}

// FuzzRequest sends any bytes to every endpoint that reads some: an answer comes, and it is JSON
// with a known code where it is an error.
func FuzzRequest(f *testing.F) {
	for _, c := range refusals {
		if len(c.body) < 500 {
			f.Add(c.path, []byte(c.body))
		}
	}
	f.Add("/v1/chat/completions", []byte(`{`+hello+`,"max_tokens":1,"tools":[`+toolF+`],"tool_choice":"required","response_format":{"type":"json_object"}}`))
	f.Add("/v1/completions", []byte(`{"prompt":["a",[1,2]],"n":2,"max_tokens":1,"logprobs":1,"stop":["x"],"seed":-1}`))
	r := start(f, func(o *Options, _ *sched.Options) { o.MaxTokens = 2 })
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		switch path {
		case "/v1/chat/completions", "/v1/completions", "/v1/tokenize", "/v1/detokenize":
		default:
			path = "/v1/chat/completions"
		}
		if e := checkJSON(body); e == nil {
			if o, e := newObject(body, InvalidBody, "", ""); e == nil {
				if n, ok, _ := o.integer("max_tokens"); ok && n > 2 {
					return // it would be right, and slow
				}
				if n, ok, _ := o.integer("max_completion_tokens"); ok && n > 2 {
					return
				}
			}
		}
		code, _, b := r.post(t, path, string(body))
		if code == 200 {
			return
		}
		if a := decode(t, b); a.Error == nil || status[Code(a.Error.Code)] != code || code >= 500 && code != 503 {
			t.Fatalf("%q gave %d %s", body, code, b)
		}
	})
}
