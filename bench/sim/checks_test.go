package sim

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// seen is what one built-in scenario did to a request that asks for usage.
type seen struct {
	answer
	told
	truth []Write
	next  *answer // a second request on the same connection, if it took one
	s     *Scenario
}

func (v *seen) kind(kind string) (list []Write) {
	for _, w := range v.truth {
		if w.Kind == kind {
			list = append(list, w)
		}
	}
	return list
}

func (v *seen) tokens() (n int) {
	for _, w := range v.truth {
		n += w.Tokens
	}
	return n
}

func (v *seen) lastUsage() usage {
	if len(v.usages) == 0 {
		return usage{}
	}
	return v.usages[len(v.usages)-1]
}

// checks has one entry for each built-in scenario: what must be there for the
// scenario to be what its description says.
var checks = map[string]func(t *testing.T, v *seen){
	"steady": ordinary, "fast": ordinary, "instant": ordinary, "normal-gaps": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if spread(v) < 5*time.Millisecond {
			t.Errorf("the gaps differ by %v only", spread(v))
		}
	},
	"slow": nil, // a minute long; TestSchedule has its arithmetic
	"bimodal-gaps": func(t *testing.T, v *seen) {
		ordinary(t, v)
		for _, g := range gaps(v) {
			if g != 2*time.Millisecond && g != 20*time.Millisecond {
				t.Errorf("a gap of %v", g)
			}
		}
	},
	"stall": func(t *testing.T, v *seen) {
		ordinary(t, v)
		for i, g := range gaps(v) {
			if want := 5 * time.Millisecond; i+1 == 12 {
				want += 400 * time.Millisecond
				if g != want {
					t.Errorf("gap before token 12 is %v", g)
				}
			} else if g != want {
				t.Errorf("gap before token %d is %v", i+1, g)
			}
		}
	},
	"chunks": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if list := v.kind(KindContent); len(list) != 16 || list[3].Tokens != 4 || list[1].Due-list[0].Due != int64(20*ms) {
			t.Errorf("%d chunks, %+v", len(list), list[3])
		}
	},
	"first-chunk-large": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if list := v.kind(KindContent); len(list) != 33 || list[0].Tokens != 16 || list[1].Tokens != 1 {
			t.Errorf("%d chunks of %d, %d …", len(list), list[0].Tokens, list[1].Tokens)
		}
	},
	"speculation": func(t *testing.T, v *seen) {
		ordinary(t, v)
		steps, accepted := 0, 0
		for _, w := range v.kind(KindContent)[1:] {
			if w.Tokens < 1 || w.Tokens > 5 {
				t.Errorf("a chunk of %d tokens", w.Tokens)
			}
			steps++
			accepted += w.Tokens - 1
		}
		u := v.lastUsage().Details
		if u.Accepted != accepted || u.Accepted+u.Rejected != 4*steps || accepted == 0 {
			t.Errorf("usage says %d accepted and %d rejected; the stream %d in %d steps", u.Accepted, u.Rejected, accepted, steps)
		}
	},
	"decay": func(t *testing.T, v *seen) {
		ordinary(t, v)
		g := gaps(v)
		if ratio := float64(g[0]) / float64(g[len(g)-1]); ratio < 0.38 || ratio > 0.45 {
			t.Errorf("the last rate is %.2f of the first", ratio)
		}
	},
	"drift": func(t *testing.T, v *seen) {
		ordinary(t, v)
		second := tell(t, v.next.body)
		if second.finish != "stop" {
			t.Errorf("second request: %+v", second)
		}
	},
	"cold-start": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if list := v.kind(KindContent); list[0].Due != int64(350*ms) || list[1].Due-list[0].Due != int64(10*ms) {
			t.Errorf("first token due at %v, then after %v", time.Duration(list[0].Due), time.Duration(list[1].Due-list[0].Due))
		}
	},
	"prefill": func(t *testing.T, v *seen) {
		ordinary(t, v)
		want := 50*time.Millisecond + time.Duration(v.lastUsage().Prompt)*time.Second/5000
		if got := time.Duration(v.kind(KindContent)[0].Due); got != want {
			t.Errorf("first token due at %v, want %v", got, want)
		}
	},
	"prefix-cache": ordinary, // TestPrefixCache

	"prose": ordinary, "creative": ordinary, "plain": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if words := len(strings.Fields(v.content)); words != 96 {
			t.Errorf("%d words for 96 tokens", words)
		}
	},
	"code": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if !strings.HasPrefix(v.content, "```") {
			t.Errorf("no fence in %q", v.content)
		}
	},
	"math": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if !strings.Contains(v.content, `\`) {
			t.Errorf("no TeX in %q", v.content)
		}
	},
	"structured": ordinary,
	"unicode": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if len(v.content) < utf8.RuneCountInString(v.content)+20 {
			t.Errorf("hardly a multi-byte character in %q", v.content)
		}
	},
	"mixed": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if !strings.Contains(v.content, "```") || !strings.Contains(v.content, "$$") {
			t.Errorf("one regime only: %q", v.content)
		}
	},
	"reasoning":          thinks("reasoning_content"),
	"reasoning-field":    thinks("reasoning"),
	"reasoning-thinking": thinks("thinking"),
	"think-tags": func(t *testing.T, v *seen) {
		ordinary(t, v)
		inside, after, ok := strings.Cut(v.content, "</think>")
		if !ok || !strings.HasPrefix(inside, "<think>") || after == "" || len(v.kind(KindReasoning)) != 16 {
			t.Errorf("%d reasoning chunks, content %q", len(v.kind(KindReasoning)), v.content)
		}
	},
	"reasoning-only": func(t *testing.T, v *seen) {
		if v.content != "" || CountTokens(v.reasoning["reasoning_content"]) != 24 || v.finish != "stop" {
			t.Errorf("%+v", v.told)
		}
	},
	"reasoning-hidden": func(t *testing.T, v *seen) {
		if u := v.lastUsage(); u.Completion != v.tokens()+40 || u.Details.Reasoning != 40 || v.tokens() != 24 {
			t.Errorf("usage %+v for %d tokens", u, v.tokens())
		}
	},
	"tool-calls": func(t *testing.T, v *seen) {
		if v.content != "" || v.finish != "tool_calls" || len(v.tools) != 2 {
			t.Errorf("%+v", v.told)
		}
		n := 0
		for i, arguments := range v.tools {
			var object map[string]string
			if err := json.Unmarshal([]byte(arguments), &object); err != nil || object["text"] == "" {
				t.Errorf("arguments %q: %v", arguments, err)
			}
			n += CountTokens(arguments) + CountTokens(v.names[i])
		}
		if n != 32 || v.tokens() != 32 {
			t.Errorf("%d tokens of tool calls, %d by the log", n, v.tokens())
		}
	},
	"refusal": func(t *testing.T, v *seen) {
		if v.content != "" || CountTokens(v.refusal) != 24 || len(v.kind(KindRefusal)) != 24 {
			t.Errorf("%+v", v.told)
		}
	},
	"content-parts": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if !bytes.Contains(v.body, []byte(`"content":[{"type":"text","text":"`)) {
			t.Error("content is no array")
		}
	},
	"separators": func(t *testing.T, v *seen) {
		ordinary(t, v)
		for _, r := range []string{"\u2028", "\u2029", "\u0085"} {
			if !bytes.Contains(v.body, []byte(r)) {
				t.Errorf("%U does not come raw", []rune(r)[0])
			}
		}
	},
	"choices": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if CountTokens(v.others[1]) != 24 || v.others[1] == v.content || v.lastUsage().Completion != 48 {
			t.Errorf("choice 1 is %q, usage %+v", v.others[1], v.lastUsage())
		}
	},
	"n-ignored": ordinary, "length-ignored": ordinary, // TestLength, TestChoices
	"empty": func(t *testing.T, v *seen) {
		if v.tokens() != 0 || v.content != "" || v.finish != "stop" || !v.done || v.lastUsage().Completion != 0 || len(v.usages) != 1 {
			t.Errorf("%+v", v.told)
		}
	},

	"usage-own": ordinary,
	"usage-finish": func(t *testing.T, v *seen) {
		ordinary(t, v)
		last := v.messages[len(v.messages)-1]
		if len(v.usages) != 1 || len(last.Choices) != 1 || last.Choices[0].FinishReason == nil || string(last.Usage) == "" {
			t.Errorf("last chunk %+v", last)
		}
	},
	"usage-last": func(t *testing.T, v *seen) {
		ordinary(t, v)
		last := v.messages[len(v.messages)-1]
		if len(v.usages) != 1 || len(last.Choices[0].Delta.Content) == 0 || last.Choices[0].FinishReason == nil || string(last.Usage) == "" {
			t.Errorf("last chunk %+v", last)
		}
	},
	"usage-continuous": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if len(v.usages) != len(v.messages) {
			t.Errorf("%d usages in %d chunks", len(v.usages), len(v.messages))
		}
		for i, want := range []int{0, 2, 4, 6} {
			if v.usages[i].Completion != want {
				t.Errorf("usage %d says %d tokens, want %d", i, v.usages[i].Completion, want)
			}
		}
	},
	"usage-absent": func(t *testing.T, v *seen) {
		if len(v.usages) != 0 || v.nulls != 0 || bytes.Contains(v.body, []byte("usage")) || CountTokens(v.content) != 24 {
			t.Errorf("%+v", v.usages)
		}
	},
	"usage-null": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if v.nulls != len(v.messages)-1 || len(v.usages) != 1 {
			t.Errorf("%d nulls and %d values in %d chunks", v.nulls, len(v.usages), len(v.messages))
		}
	},
	"usage-null-only": func(t *testing.T, v *seen) {
		if v.nulls != len(v.messages) || len(v.usages) != 0 || CountTokens(v.content) != 24 {
			t.Errorf("%d nulls in %d chunks", v.nulls, len(v.messages))
		}
	},
	"unseen-end": func(t *testing.T, v *seen) {
		if u := v.lastUsage(); u.Completion != 25 || v.tokens() != 24 || CountTokens(v.content) != 24 {
			t.Errorf("usage %+v for %d tokens", u, v.tokens())
		}
	},
	"timings": func(t *testing.T, v *seen) {
		ordinary(t, v)
		m := v.messages[len(v.messages)-1].Timings
		if m["prompt_ms"] != 50 || m["predicted_n"] != 24 || m["predicted_ms"] != 115 || int(m["prompt_n"]) != v.lastUsage().Prompt {
			t.Errorf("timings %v", m)
		}
	},
	"cached": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if v.lastUsage().InPrompt.Cached == 0 {
			t.Errorf("usage %+v", v.lastUsage())
		}
	},

	"no-role": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if v.roles != 0 || len(v.kind(KindRole)) != 0 {
			t.Errorf("%d roles", v.roles)
		}
	},
	"role-every": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if v.roles != 24+1 {
			t.Errorf("%d roles", v.roles)
		}
	},
	"empty-deltas": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if v.empties != 1+5 || len(v.kind(KindEmpty)) != 5 {
			t.Errorf("%d empty choices, %d by the log", v.empties, len(v.kind(KindEmpty)))
		}
	},
	"finish-with-content": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if len(v.kind(KindFinish)) != 0 {
			t.Error("the finish reason has a chunk of its own")
		}
	},
	"no-finish": func(t *testing.T, v *seen) {
		if v.finish != "" || !v.done || CountTokens(v.content) != 24 {
			t.Errorf("%+v", v.told)
		}
	},
	"no-done": func(t *testing.T, v *seen) {
		if v.finish != "stop" || v.done || v.end != "complete" || CountTokens(v.content) != 24 {
			t.Errorf("%+v", v.told)
		}
	},
	"done-spaced": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if !bytes.Contains(v.body, []byte("data:   [DONE]  \n")) {
			t.Error("no blanks around [DONE]")
		}
	},
	"crlf": lineEnds("\r\n", "data: {"), "cr": lineEnds("\r", "data: {"),
	"no-space": lineEnds("\n", "data:{"), "crlf-no-space": lineEnds("\r\n", "data:{"),
	"comments": func(t *testing.T, v *seen) {
		ordinary(t, v)
		n := 0
		for _, e := range events(v.body) {
			n += e.comments
		}
		if n < 12 {
			t.Errorf("%d comments", n)
		}
	},
	"keep-alive": func(t *testing.T, v *seen) {
		ordinary(t, v)
		list := v.kind(KindComment)
		if len(list) != 9 || list[0].Due != int64(20*ms) || list[8].Due != int64(180*ms) {
			t.Errorf("%d comments", len(list))
		}
		if bytes.Count(v.body, []byte(": keep-alive\n\n")) != 9 {
			t.Error("the comments did not come")
		}
	},
	"event-fields": func(t *testing.T, v *seen) {
		ordinary(t, v)
		for i, e := range events(v.body) {
			if e.name != "message" || e.id == "" {
				t.Errorf("event %d has name %q and id %q", i, e.name, e.id)
			}
		}
	},
	"multi-line": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if e := events(v.body)[1]; strings.Count(e.data, "\n") < 4 {
			t.Errorf("event %q", e.data)
		}
	},
	"long-lines": func(t *testing.T, v *seen) {
		ordinary(t, v)
		long := 0
		for line := range bytes.SplitSeq(v.body, []byte("\n")) {
			if len(line) == 1<<20 {
				long++
			}
		}
		if long != 6 {
			t.Errorf("%d lines of 1 MB", long)
		}
	},
	"bom": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if !bytes.HasPrefix(v.body, []byte("\xef\xbb\xbfdata:")) || bytes.Count(v.body, []byte("\xef\xbb\xbf")) != 1 {
			t.Errorf("body starts %q", v.body[:20])
		}
	},
	"no-final-blank": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if !bytes.HasSuffix(v.body, []byte("data: [DONE]\n")) {
			t.Errorf("body ends %q", v.body[len(v.body)-20:])
		}
	},

	"split-utf8": func(t *testing.T, v *seen) {
		ordinary(t, v)
		split := 0
		for _, w := range v.kind(KindContent) {
			if w.Parts == 2 {
				split++
			}
		}
		if split < 3 {
			t.Errorf("%d chunks are split", split)
		}
	},
	"split-crlf": func(t *testing.T, v *seen) {
		lineEnds("\r\n", "data: {")(t, v)
		for _, w := range v.kind(KindContent) {
			if w.Parts != 3 {
				t.Errorf("chunk %d in %d writes", w.Chunk, w.Parts)
			}
		}
	},
	"split-bytes": func(t *testing.T, v *seen) {
		ordinary(t, v)
		for _, w := range v.kind(KindContent) {
			if w.Parts < w.Bytes/7 {
				t.Errorf("%d bytes in %d writes", w.Bytes, w.Parts)
			}
		}
	},
	"unframed": func(t *testing.T, v *seen) {
		v.answer.end = map[string]string{"eof": "complete"}[v.answer.end]
		ordinary(t, v)
		if v.header["transfer-encoding"] != "" || v.next != nil {
			t.Errorf("headers %v", v.lines)
		}
	},
	"gzip": func(t *testing.T, v *seen) {
		if v.header["content-encoding"] != "gzip" {
			t.Errorf("headers %v", v.lines)
		}
		z, err := gzip.NewReader(bytes.NewReader(v.body))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		if o := tell(t, body); CountTokens(o.content) != 24 || !o.done {
			t.Errorf("%+v", o)
		}
		if len(v.kind(KindContent)) != 24 {
			t.Error("not flushed after each event")
		}
	},
	"close": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if v.header["connection"] != "close" || v.next != nil {
			t.Errorf("headers %v, next %v", v.lines, v.next)
		}
	},
	"slow-headers": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if h, c := v.kind(KindHeaders)[0], v.kind(KindContent)[0]; h.MonoBefore < int64(300*ms) || c.Due != int64(300*ms) {
			t.Errorf("headers at %v, first token due at %v", time.Duration(h.MonoBefore), time.Duration(c.Due))
		}
	},
	"trickled-headers": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if h := v.kind(KindHeaders)[0]; h.Parts != len(v.lines)+1 || h.MonoBefore < int64(300*ms) {
			t.Errorf("%d lines in %d writes", len(v.lines)+1, h.Parts)
		}
	},
	"buffer-all": func(t *testing.T, v *seen) {
		ordinary(t, v)
		list := v.kind(KindContent)
		if list[0].Before != list[23].Before || list[0].MonoBefore < list[23].Due {
			t.Errorf("first chunk at %v, last at %v", time.Duration(list[0].MonoBefore), time.Duration(list[23].MonoBefore))
		}
	},
	"buffer-16k": func(t *testing.T, v *seen) {
		ordinary(t, v)
		writes := map[int64]int{}
		for _, w := range v.kind(KindContent) {
			writes[w.Before]++
		}
		if len(writes) < 2 || len(writes) > 6 {
			t.Errorf("256 chunks in %d writes", len(writes))
		}
	},

	"json": func(t *testing.T, v *seen) {
		if v.header["content-type"] != "application/json" || v.end != "complete" {
			t.Errorf("headers %v", v.lines)
		}
		var m struct {
			Object  string
			Choices []struct {
				Message struct{ Role, Content string }
			}
			Usage usage
		}
		if err := json.Unmarshal(v.body, &m); err != nil || m.Object != "chat.completion" || CountTokens(m.Choices[0].Message.Content) != 24 || m.Usage.Completion != 24 {
			t.Errorf("%v: %s", err, v.body)
		}
		if w := v.kind(KindJSON); len(w) != 1 || w[0].Tokens != 24 || w[0].Due != int64(50*ms+23*5*ms) {
			t.Errorf("log %+v", w)
		}
	},
	"error-200":    failing(200, "scripted answer"),
	"rate-limited": failing(429, "Rate limit"), "unavailable": failing(503, "overloaded"), "unauthorized": failing(401, "API key"),
	"strict": ordinary, "fail-every-third": ordinary, // TestStrict, TestFailEvery
	"key": failing(401, "API key"),
	"html-error": func(t *testing.T, v *seen) {
		if v.status != 502 || !strings.HasPrefix(v.header["content-type"], "text/html") || !bytes.HasPrefix(v.body, []byte("<!DOCTYPE html>")) {
			t.Errorf("%v: %s", v.lines, v.body)
		}
	},
	"html-200": func(t *testing.T, v *seen) {
		if v.status != 200 || !bytes.HasPrefix(v.body, []byte("<!DOCTYPE html>")) {
			t.Errorf("%v: %s", v.lines, v.body)
		}
	},
	"error-first": func(t *testing.T, v *seen) {
		if v.status != 200 || v.failure == "" || len(v.messages) != 1 || v.tokens() != 0 || v.finish != "" {
			t.Errorf("%+v", v.told)
		}
	},
	"error-mid": func(t *testing.T, v *seen) {
		if v.failure == "" || CountTokens(v.content) != 10 || v.tokens() != 10 || v.finish != "" || len(v.usages) != 0 {
			t.Errorf("%+v", v.told)
		}
	},
	"malformed": func(t *testing.T, v *seen) {
		ordinary(t, v)
		if v.malformed != 1 || len(v.kind(KindMalformed)) != 1 {
			t.Errorf("%d malformed", v.malformed)
		}
	},
	"truncated": func(t *testing.T, v *seen) {
		if v.end != "cut" || CountTokens(v.content) != 10 || v.done || v.finish != "" || v.malformed != 1 || len(v.kind(KindTruncated)) != 1 {
			t.Errorf("%s, %+v", v.end, v.told)
		}
	},
	"reset": func(t *testing.T, v *seen) {
		if v.end != "reset" || CountTokens(v.content) != 10 || v.done || v.finish != "" {
			t.Errorf("%s, %+v", v.end, v.told)
		}
	},
	"clean-eof": func(t *testing.T, v *seen) {
		if v.end != "complete" || CountTokens(v.content) != 10 || v.done || v.finish != "" || v.malformed != 0 {
			t.Errorf("%s, %+v", v.end, v.told)
		}
	},
	"hang": func(t *testing.T, v *seen) {
		if v.end != "timeout" || CountTokens(v.content) != 10 || v.done || v.finish != "" {
			t.Errorf("%s, %+v", v.end, v.told)
		}
	},
	"silence": func(t *testing.T, v *seen) {
		if v.end != "timeout" || len(v.arrived) != 0 || len(v.truth) != 0 {
			t.Errorf("%s after %v", v.end, v.arrived)
		}
	},
}

// ordinary is a stream of which everything arrives.
func ordinary(t *testing.T, v *seen) {
	t.Helper()
	want := v.s.withDefaults().Tokens
	if v.status != 200 || v.end != "complete" || v.finish != "stop" || !v.done {
		t.Errorf("status %d, end %s, finish %q, done %v", v.status, v.end, v.finish, v.done)
	}
	choices := max(v.s.Choices, 1)
	if got := CountTokens(v.content); got != want || v.tokens() != want*choices {
		t.Errorf("%d tokens in the text and %d in the log, want %d", got, v.tokens(), want)
	}
	u := v.lastUsage()
	if u.Completion != want*choices || u.Total != u.Prompt+u.Completion || u.Prompt != CountTokens(prompt)+MessageTokens+ReplyTokens {
		t.Errorf("usage %+v", u)
	}
	if v.failure != "" {
		t.Errorf("error %q", v.failure)
	}
}

func thinks(field string) func(t *testing.T, v *seen) {
	return func(t *testing.T, v *seen) {
		if len(v.reasoning) != 1 || CountTokens(v.reasoning[field]) != 12 || CountTokens(v.content) != 12 || v.finish != "stop" {
			t.Errorf("%+v", v.told)
		}
		if u := v.lastUsage(); u.Completion != 24 || u.Details.Reasoning != 12 {
			t.Errorf("usage %+v", u)
		}
		if r, c := v.kind(KindReasoning), v.kind(KindContent); len(r) != 12 || len(c) != 12 || r[11].Chunk > c[0].Chunk {
			t.Errorf("%d reasoning and %d content chunks", len(r), len(c))
		}
	}
}

func lineEnds(eol, data string) func(t *testing.T, v *seen) {
	return func(t *testing.T, v *seen) {
		ordinary(t, v)
		if !bytes.HasPrefix(v.body, []byte(data)) || !bytes.HasSuffix(v.body, []byte("[DONE]"+eol+eol)) {
			t.Errorf("body %q … %q", v.body[:10], v.body[len(v.body)-12:])
		}
		rest := bytes.ReplaceAll(v.body, []byte(eol), nil)
		if bytes.ContainsAny(rest, "\r\n") {
			t.Error("other line ends as well")
		}
	}
}

func failing(status int, message string) func(t *testing.T, v *seen) {
	return func(t *testing.T, v *seen) {
		var m struct{ Error struct{ Message string } }
		if err := json.Unmarshal(v.body, &m); err != nil || v.status != status || !strings.Contains(m.Error.Message, message) {
			t.Errorf("%v: %v %s", err, v.lines, v.body)
		}
		if got := v.header["retry-after"]; (status == 429) != (got == "2") {
			t.Errorf("Retry-After %q", got)
		}
		if w := v.kind(KindError); len(w) != 1 || w[0].Tokens != 0 {
			t.Errorf("log %+v", w)
		}
		if v.next == nil || v.next.status != status {
			t.Error("the connection is not kept after an error")
		}
	}
}

func gaps(v *seen) (list []time.Duration) {
	w := v.kind(KindContent)
	for i := 1; i < len(w); i++ {
		list = append(list, time.Duration(w[i].Due-w[i-1].Due))
	}
	return list
}

func spread(v *seen) time.Duration {
	low, high := time.Hour, time.Duration(0)
	for _, g := range gaps(v) {
		low, high = min(low, g), max(high, g)
	}
	return high - low
}
