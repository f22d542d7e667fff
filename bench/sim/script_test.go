package sim

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// scriptOf is the script of a request, without a socket.
func scriptOf(s *Server, body string) *script {
	head := &http.Request{Method: "POST", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}}
	return s.answer(head, []byte(body), 1, time.Now(), false, true)
}

// received is what an HTTP client makes of a script.
func received(t interface{ Fatalf(string, ...any) }, p *script) (header http.Header, status int, body []byte) {
	response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(p.wire)), nil)
	if err != nil {
		t.Fatalf("response: %v", err)
	}
	if body, err = io.ReadAll(response.Body); err != nil {
		t.Fatalf("body: %v", err)
	}
	if response.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			t.Fatalf("gzip: %v", err)
		}
		if body, err = io.ReadAll(z); err != nil {
			t.Fatalf("gzip: %v", err)
		}
	}
	return response.Header, response.StatusCode, body
}

// However the peculiarities are combined, nothing of the text is lost or
// counted wrongly, and the writes cover the wire in order.
func TestCombinations(t *testing.T) {
	server := &Server{model: "velo-sim", scenario: quick(1), served: map[string]int{}}
	rapid.Check(t, func(rt *rapid.T) {
		choose := func(name string, words ...string) string { return rapid.SampledFrom(append(words, "")).Draw(rt, name) }
		flip := func(name string) bool { return rapid.Bool().Draw(rt, name) }
		some := func(name string, values ...int) int { return rapid.SampledFrom(append(values, 0)).Draw(rt, name) }
		s := Scenario{
			TTFT: Duration(some("ttft", 5e7)), ITL: Duration(some("itl", 5e6)), Tokens: rapid.IntRange(1, 90).Draw(rt, "tokens"),
			Seed: rapid.Uint64().Draw(rt, "seed"), Regime: rapid.SampledFrom(Regimes()).Draw(rt, "regime"),
			FirstChunkTokens: some("first", 1, 7), Separators: flip("separators"), ContentParts: flip("parts"),
			Role: choose("role", "none", "every"), RoleAt: Duration(some("role at", 2e7, 9e7)), EmptyDeltas: some("empty", 3),
			Finish: choose("finish", "content"), Done: choose("done", "spaces"), LineEnd: choose("line", "crlf", "cr"),
			NoSpace: flip("no space"), KeepAlive: Duration(some("keep alive", 1e7)), Comments: some("comments", 1, 4),
			EventFields: flip("fields"), MultiLine: flip("lines"), LineBytes: some("line bytes", 3000), BOM: flip("bom"),
			NoFinalBlank: flip("no blank"), Framing: choose("framing", "close"), Gzip: flip("gzip"),
			HeaderDelay: Duration(some("header delay", 3e7)), BufferBytes: some("buffer", 100, 5000), Split: choose("split", "utf8", "crlf", "bytes"),
			SplitDelay: Duration(some("split delay", 1e6)), Usage: choose("usage", "own", "finish", "continuous", "null"),
			Timings: flip("timings"), UnseenEnd: some("unseen", 1),
		}
		switch rapid.IntRange(0, 3).Draw(rt, "kind") {
		case 0:
			s.Speculation = Speculation{Draft: 4, Acceptance: 0.5}
		case 1:
			s.TokensPerChunk = 3
		}
		s.BufferAll = s.BufferBytes == 0 && flip("buffer all")
		if s.Tokens > 20 {
			s.Reasoning = Reasoning{Tokens: some("reasoning", 16, 20), Field: choose("field", "reasoning", "thinking", "think_tags")}
		}
		if s.Validate() != nil {
			rt.Skip()
		}
		text, err := json.Marshal(s)
		if err != nil {
			rt.Fatal(err)
		}
		p := scriptOf(server, chat(wantUsage+`,"sim":`+string(text)))
		_, status, body := received(rt, p)
		o := tell(t, body)
		answer := o.content + o.reasoning["reasoning_content"] + o.reasoning["reasoning"] + o.reasoning["thinking"]
		count := CountTokens(o.content)
		for _, thought := range o.reasoning {
			count += CountTokens(thought)
		}
		if status != 200 || count != s.Tokens || o.malformed != 0 || !o.done || o.finish != "stop" || strings.Contains(answer, "\ufffd") {
			rt.Fatalf("status %d: %d of %d tokens, %d malformed, finish %q\n%s", status, count, s.Tokens, o.malformed, o.finish, body)
		}
		if want := s.Tokens + s.UnseenEnd; len(o.usages) == 0 || o.usages[len(o.usages)-1].Completion != want {
			rt.Fatalf("usages %+v, want %d", o.usages, want)
		}
		covered(rt, p, s.Tokens)
	})
}

// covered checks that the writes of a script cover its wire in order and
// complete every chunk once.
func covered(t *rapid.T, p *script, tokens int) {
	at, completed := 0, 0
	for i, w := range p.sends {
		if w.end < at {
			t.Fatalf("write %d ends at %d, the one before it at %d", i, w.end, at)
		}
		at = w.end
		for range w.chunks {
			if w.due < p.chunks[completed].due {
				t.Fatalf("chunk %d (%s) is sent at %v, due %v", completed, p.chunks[completed].kind, w.due, p.chunks[completed].due)
			}
			completed++
		}
	}
	n := 0
	for i, c := range p.chunks {
		n += c.tokens
		if i > 0 && c.due < p.chunks[i-1].due {
			t.Fatalf("chunk %d is due at %v, the one before it at %v", i, c.due, p.chunks[i-1].due)
		}
	}
	if at != len(p.wire) || completed != len(p.chunks) || n != tokens {
		t.Fatalf("%d of %d bytes, %d of %d chunks, %d of %d tokens", at, len(p.wire), completed, len(p.chunks), n, tokens)
	}
}

func TestDocumentScripts(t *testing.T) {
	server := &Server{model: "velo-sim", scenario: quick(6), served: map[string]int{}}
	header, status, body := received(t, scriptOf(server, strings.Replace(chat(`"sim":{"gzip":true}`), "true", "false", 1)))
	if status != 200 || header.Get("Content-Encoding") != "gzip" || !json.Valid(body) {
		t.Errorf("gzip: %v: %s", header, body)
	}
	p := scriptOf(server, strings.Replace(chat(`"sim":{"header_delay":"60ms","header_trickle":true}`), "true", "false", 1))
	if _, _, body := received(t, p); !json.Valid(body) || len(p.sends) < 6 || p.sends[1].due >= p.sends[2].due || p.sends[len(p.sends)-1].due != 60*time.Millisecond {
		t.Errorf("trickled: %+v", p.sends)
	}
	for status, want := range map[int]string{418: "418 I'm a teapot", 520: "520 Status 520"} {
		if p := scriptOf(server, chat(fmt.Sprintf(`"sim":{"status":%d}`, status))); !bytes.HasPrefix(p.wire, []byte("HTTP/1.1 "+want+"\r\n")) {
			t.Errorf("status line %.30q, want %s", p.wire, want)
		}
	}
	if header, _, _ := received(t, scriptOf(server, chat(`"sim":{"status":429,"retry_after":"1200ms"}`))); header.Get("Retry-After") != "2" {
		t.Errorf("Retry-After %q: part of a second counts as a whole one", header.Get("Retry-After"))
	}
}

// The role comes when it should, and never after the first token.
func TestRoleAt(t *testing.T) {
	server := &Server{model: "velo-sim", scenario: quick(1), served: map[string]int{}}
	for role, want := range map[string]time.Duration{"0s": 0, "20ms": 20 * time.Millisecond, "90ms": 50 * time.Millisecond} {
		p := scriptOf(server, chat(`"sim":{"ttft":"50ms","role_at":"`+role+`"}`))
		if p.chunks[1].kind != KindRole || p.chunks[1].due != want || p.chunks[2].due != 50*time.Millisecond {
			t.Errorf("role_at %s: %+v", role, p.chunks[:3])
		}
	}
}
