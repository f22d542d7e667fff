package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"velo/bench"
	"velo/bench/sim"
	"velo/bench/suite"
)

// simTokenizer counts as the scripted endpoint does.
type simTokenizer struct{}

func (simTokenizer) Count(text string) int { return sim.CountTokens(text) }
func (simTokenizer) Name() string          { return "sim" }
func (simTokenizer) Prefixes(parts []string) []int {
	var counts []int
	text := ""
	for _, p := range parts {
		text += p
		counts = append(counts, sim.CountTokens(text))
	}
	return counts
}

// Prompts have the length that was asked for, as the server counts them, template included: exactly,
// where something counts; within 5 % where a probe has to do.
func TestFillLengths(t *testing.T) {
	steps := []suite.Step{
		{Type: suite.Bench, PP: 40, TG: 2}, {Type: suite.Bench, PP: 300, TG: 2}, {Type: suite.Bench, Depth: 4096, PP: 512, TG: 2},
		section("c", true), {Type: suite.Context, K: 8},
	}
	for _, test := range []struct {
		name      string
		counter   bench.TokenCounter
		server    bool
		noUsage   bool
		fill      string
		tolerance float64 // of lengths from 300 tokens on
		note      string
	}{
		{"tokenizer", simTokenizer{}, false, false, "tokenizer", 0, "counted by the tokenizer; the chat template adds 7 tokens"},
		{"server", nil, true, false, "server", 0, "counted by the server; the chat template adds 7 tokens"},
		{"estimate", nil, false, false, "estimate", 0.08, "by a probe against the server's own count"},
		{"nothing", nil, false, true, "estimate", 1, "an estimate, 1.10 tokens a word or mark: the server does not say how long prompts are (it sends no usage)"},
	} {
		for _, prefix := range []string{bench.PrefixSalted, bench.PrefixShared} {
			t.Run(test.name+" "+prefix, func(t *testing.T) {
				e := newEndpoint(t)
				e.tokenizer, e.noUsage = test.server, test.noUsage
				if test.fill == "estimate" {
					e.count = subwords
				}
				o, l := options(t, e.URL, steps...)
				o.Tokens, o.Workers, o.Prefix = test.counter, 3, prefix
				if out := mustRun(t, o); out.OK != 12 {
					t.Fatalf("%+v", out)
				}
				if !strings.Contains(l.notes(), test.note) {
					t.Errorf("notes: %s", l.notes())
				}
				all := e.ordered()
				for i, x := range l.session().Exchanges {
					want := steps[[]int{0, 1, 2, 4}[i/3]].Fill()
					if x.Request.AskedPrompt != want || x.Request.Fill != test.fill {
						t.Errorf("request %d: asked for %d tokens by %q", i, x.Request.AskedPrompt, x.Request.Fill)
					}
					have := sim.ReplyTokens + sim.MessageTokens + e.tokens(all[i].text(0))
					off := math.Abs(float64(have-want)) / float64(want)
					if want >= 300 && off > test.tolerance || off > 0.4 && !test.noUsage || test.tolerance == 0 && off > 0 {
						t.Errorf("request %d has %d tokens, asked for %d", i, have, want)
					}
					if text := all[i].text(0); !utf8.ValidString(text) || strings.Contains(text, strings.Repeat(filler, 9)) {
						t.Errorf("request %d: %.300q", i, text)
					}
					if want >= closedFrom && !strings.HasSuffix(all[i].text(0), goOn) && !strings.HasSuffix(all[i].text(0), sumUp) {
						t.Errorf("request %d asks for nothing", i)
					}
					if p := x.Request.Prompt; len(p) > 500 || want > 500 && !strings.Contains(p, "bytes left out") {
						t.Errorf("recorded prompt of %d bytes: %.100s", len(p), p)
					}
				}
			})
		}
	}
}

// A second context step goes on in the conversation: its own length is aimed at, that of the whole
// prompt is not.
func TestFillInAConversation(t *testing.T) {
	e := newEndpoint(t)
	o, l := options(t, e.URL, suite.Step{Type: suite.Context, K: 1}, suite.Step{Type: suite.Context, K: 2})
	mustRun(t, o)
	all, s := e.ordered(), l.session()
	if got := sim.CountTokens(all[1].last()); got != 2048 || s.Exchanges[1].Request.AskedPrompt != 0 {
		t.Errorf("the second message has %d tokens, asked prompt %d", got, s.Exchanges[1].Request.AskedPrompt)
	}
	if strings.HasPrefix(all[1].last(), "[") {
		t.Error("a later message begins with a salt")
	}
	if commonPrefix(all[0].last()[saltLength:], all[1].last()) > 20 {
		t.Error("two fills of a conversation are the same text")
	}
}

// A server that counts for a while and then no more does not end the run.
func TestCountingThatBreaksDown(t *testing.T) {
	e := newEndpoint(t)
	e.count, e.breaks = subwords, 8
	o, l := options(t, e.URL, suite.Step{Type: suite.Bench, PP: 1000, TG: 2}, suite.Step{Type: suite.Bench, PP: 2000, TG: 2})
	o.Workers = 2
	if out := mustRun(t, o); out.OK != 4 {
		t.Fatalf("%+v", out)
	}
	if !strings.Contains(l.notes(), "Some prompt lengths are an estimate: cannot count the tokens of a prompt: ") || strings.Count(l.notes(), "Some prompt") != 1 {
		t.Errorf("notes: %s", l.notes())
	}
	all := e.ordered()
	for i, x := range l.session().Exchanges[2:] {
		have := sim.ReplyTokens + sim.MessageTokens + e.tokens(all[i+2].text(0))
		if x.Request.Fill != "estimate" || have < 1840 || have > 2160 {
			t.Errorf("a prompt of %d tokens by %q", have, x.Request.Fill)
		}
	}
}

// A tokenizer that is another model's is found out by the server's own count.
func TestForeignTokenizer(t *testing.T) {
	e := newEndpoint(t)
	e.tokenizer, e.count = false, subwords
	o, l := options(t, e.URL, suite.Step{Type: suite.Bench, PP: 1000, TG: 2})
	o.Tokens = twice{}
	mustRun(t, o)
	if !strings.Contains(l.notes(), "it is not the model's, and was not used") || !strings.Contains(l.notes(), "by a probe against the server's own count") {
		t.Errorf("notes: %s", l.notes())
	}
	if have := sim.ReplyTokens + sim.MessageTokens + e.tokens(e.ordered()[0].text(0)); have < 920 || have > 1080 {
		t.Errorf("a prompt of %d tokens", have)
	}
	for _, x := range l.session().Exchanges {
		if x.Counts != nil {
			t.Errorf("request %d was counted by it: %v", x.Request.Number, x.Counts.Tokens)
		}
	}
}

// twice makes twice as many tokens of everything.
type twice struct{ simTokenizer }

func (twice) Count(text string) int { return 2 * sim.CountTokens(text) }

// Whatever a tokenizer makes of words, fit comes to the length or as near as it gets, within its calls.
func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.Float64Range(2, 9).Draw(t, "bytes a token")
		offset := rapid.IntRange(0, 40).Draw(t, "tokens of nothing")
		coarse := rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(t, "coarse") // counts that never hit some numbers
		calls := 0
		l := ruler{calls: 16, perToken: rapid.Float64Range(1, 9).Draw(t, "guess"), count: func(_ context.Context, text string) (int, error) {
			calls++
			words := len(strings.Fields(text))
			n := max(int(float64(len(text))/bytes), words) + offset
			return n / coarse * coarse, nil
		}}
		tokens := rapid.IntRange(offset+200, 20_000).Draw(t, "tokens")
		text, err := l.fit(context.Background(), "[0123456789abcdef]\n\n", rapid.Uint64().Draw(t, "chance"), goOn, tokens)
		if err != nil {
			t.Fatal(err)
		}
		if calls > 16 {
			t.Fatalf("%d counts", calls)
		}
		have, _ := l.count(context.Background(), text)
		if abs(have-tokens) > 2+coarse+tokens/500+int(8/bytes) { // words are several tokens where a token is a byte
			t.Fatalf("%d tokens for %d", have, tokens)
		}
		if !strings.HasPrefix(text, "[0123456789abcdef]\n\n") || !strings.HasSuffix(text, goOn) {
			t.Fatalf("text %.100q", text)
		}
	})
}

// A guess that makes words shorter than they are must not lead to and fro between two lengths.
func TestFitComesToRest(t *testing.T) {
	l := ruler{calls: 16, perToken: 2.25, count: func(_ context.Context, text string) (int, error) {
		return max(len(text)/2, len(strings.Fields(text))), nil
	}}
	text, err := l.fit(context.Background(), "[0123456789abcdef]\n\n", 0x56c83, goOn, 235)
	if have, _ := l.count(context.Background(), text); err != nil || abs(have-235) > 1 {
		t.Errorf("%d tokens for 235, %v", have, err)
	}
}

func TestFitTellsWhenCountingFails(t *testing.T) {
	l := ruler{calls: 4, perToken: 4, count: func(context.Context, string) (int, error) { return 0, errors.New("gone") }}
	if _, err := l.fit(context.Background(), "", 1, "", 100); err == nil || err.Error() != "cannot count the tokens of a prompt: gone" {
		t.Errorf("error %v", err)
	}
}

func TestProse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30_000).Draw(t, "n")
		text := prose(rapid.Uint64().Draw(t, "chance"), n)
		if len(text) > n || len(text) < n-200 {
			t.Fatalf("%d bytes for %d", len(text), n)
		}
		if !utf8.ValidString(text) {
			t.Fatal("not UTF-8")
		}
	})
	// More than there is goes on at the beginning.
	if text := prose(1<<40+17, 8<<20); len(text) < 8<<20-100 || !strings.Contains(text, "Call me Ishmael.") {
		t.Errorf("%d bytes", len(text))
	}
	if prose(5, 0) != "" || prose(5, -3) != "" {
		t.Error("prose of no length")
	}
}

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("äöü ", 500)
	for _, test := range []struct {
		text string
		fill bool
		same bool
	}{{"short", true, true}, {long, false, true}, {long, true, false}, {"x" + long, true, false}, {"xy" + long, true, false}} {
		got := excerpt(test.text, test.fill)
		if (got == test.text) != test.same || !utf8.ValidString(got) || !test.same && len(got) > 400 {
			t.Errorf("excerpt of %d bytes: %q", len(test.text), got)
		}
	}
}

// Parameters that a server does not know are found out before anything is measured.
func TestRefusedParameters(t *testing.T) {
	half := 0.5
	full := []suite.Step{
		{Type: suite.Bench, PP: 200, TG: 6, ExactTG: true},
		{Type: suite.Prompt, Text: "a", Reasoning: "off"}, {Type: suite.Prompt, Text: "b", Reasoning: "low"}, {Type: suite.Prompt, Text: "c", Reasoning: "high"},
	}
	for _, test := range []struct {
		name     string
		refuse   func(q asked) string // the message of a 400; "" accepts
		gone     []string             // fields that must not be sent
		sent     []string             // fields that must be sent by some request
		note     string
		reason   string
		exact    bool
		measured int
	}{
		{"takes everything", func(asked) string { return "" }, nil,
			[]string{"min_tokens", "ignore_eos", "chat_template_kwargs", "reasoning_effort", "temperature", "continuous_usage_stats"}, "", "", true, 4},
		{"names one", func(q asked) string {
			if q.Fields["ignore_eos"] != nil {
				return "Unrecognized request argument supplied: ignore_eos"
			}
			return ""
		}, []string{"ignore_eos"}, []string{"min_tokens", "chat_template_kwargs", "reasoning_effort"}, "The server refuses ignore_eos, so the run goes without it: outputs may end early.", "", false, 4},
		{"names them one after another", func(q asked) string {
			for _, f := range []string{"min_tokens", "ignore_eos", "chat_template_kwargs", "continuous_usage_stats"} {
				if strings.Contains(q.Body, `"`+f+`"`) {
					return "unknown field " + f
				}
			}
			return ""
		}, []string{"min_tokens", "ignore_eos", "chat_template_kwargs", "continuous_usage_stats"}, []string{"reasoning_effort", "temperature"}, "The server refuses chat_template_kwargs", "", false, 4},
		{"names nothing", func(q asked) string {
			if strings.Contains(q.Body, "chat_template_kwargs") || strings.Contains(q.Body, "min_tokens") {
				return "bad request"
			}
			return ""
		}, []string{"chat_template_kwargs", "min_tokens"}, []string{"ignore_eos", "reasoning_effort", "temperature"}, "The server refuses min_tokens", "", false, 4},
		{"refuses a level", func(q asked) string {
			if string(q.Fields["reasoning_effort"]) == `"high"` {
				return "reasoning_effort must be low"
			}
			return ""
		}, []string{"reasoning_effort"}, []string{"min_tokens"}, "The server refuses reasoning_effort, so the run goes without it: the model thinks as much as it likes.", "", true, 4},
		{"another name for the limit", func(q asked) string {
			if q.Fields["max_tokens"] != nil {
				return "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
			}
			return ""
		}, []string{"max_tokens"}, []string{"max_completion_tokens", "min_tokens"}, "", "", true, 4},
		{"no stream options", func(q asked) string {
			if q.Fields["stream_options"] != nil {
				return "stream_options is not permitted"
			}
			return ""
		}, []string{"stream_options"}, []string{"min_tokens"}, "The server refuses stream_options", "", true, 4},
		{"refuses what the suite needs", func(q asked) string {
			if q.Fields["temperature"] != nil {
				return "temperature does not support 0.5 with this model"
			}
			return ""
		}, nil, nil, "", `the server refuses temperature, which the suite "T" sets: take it out of the suite`, false, 0},
		{"refuses everything", func(q asked) string { return "model m is not loaded" }, nil, nil, "", "the server does not accept the request: check model and parameters (HTTP 400: model m is not loaded)", false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newEndpoint(t)
			e.answer = func(w http.ResponseWriter, r *http.Request, n int, q asked) bool {
				why := test.refuse(q)
				if why == "" {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"error":{"message":%q}}`, why)
				return true
			}
			o, l := options(t, e.URL, full...)
			o.Suite.Temperature, o.ContinuousUsage = &half, true
			out := mustRun(t, o)
			if out.OK != test.measured || out.Requests != test.measured || !strings.HasPrefix(out.Reason, test.reason) || (test.reason == "") != (out.Reason == "") {
				t.Fatalf("outcome %+v\n%s", out, l.notes())
			}
			if !strings.Contains(l.notes(), test.note) {
				t.Errorf("notes: %s", l.notes())
			}
			if strings.Count(l.notes(), "refuses") > 4 {
				t.Errorf("told again and again: %s", l.notes())
			}
			bodies := ""
			for _, q := range e.requests() {
				bodies += q.Body
			}
			for _, f := range test.gone {
				if strings.Contains(bodies, `"`+f+`"`) {
					t.Errorf("%s was sent in a measured request", f)
				}
			}
			for _, f := range test.sent {
				if !strings.Contains(bodies, `"`+f+`"`) {
					t.Errorf("%s was not sent", f)
				}
			}
			if test.measured == 0 {
				return
			}
			q := e.ordered()[0]
			if got := l.session().Exchanges[0].Request.ExactOutput; got != test.exact {
				t.Errorf("exact output: %v", got)
			}
			if test.exact && (string(q.Fields["min_tokens"]) != "6" || string(q.Fields["ignore_eos"]) != "true") {
				t.Errorf("exact output was asked for by %s and %s", q.Fields["min_tokens"], q.Fields["ignore_eos"])
			}
			if strings.Count(q.Body, `"temperature"`) != 1 {
				t.Errorf("temperature in %s", l.session().Exchanges[0].Request.Parameters)
			}
		})
	}
}

func TestReasoningIsMapped(t *testing.T) {
	e := newEndpoint(t)
	o, _ := options(t, e.URL, prompt("a"),
		suite.Step{Type: suite.Prompt, Text: "b", Reasoning: "off"}, suite.Step{Type: suite.Prompt, Text: "c", Reasoning: "xhigh"})
	mustRun(t, o)
	all := e.ordered()
	for i, want := range []struct{ effort, kwargs string }{{"", ""}, {"", `{"enable_thinking":false}`}, {`"xhigh"`, ""}} {
		if string(all[i].Fields["reasoning_effort"]) != want.effort || string(all[i].Fields["chat_template_kwargs"]) != want.kwargs {
			t.Errorf("request %d: effort %s, template %s", i, all[i].Fields["reasoning_effort"], all[i].Fields["chat_template_kwargs"])
		}
	}
}

func TestReasoningThatWouldNotBeTurnedOff(t *testing.T) {
	s, err := sim.Start(sim.Options{Scenario: sim.Scenario{Tokens: 8, Reasoning: sim.Reasoning{Tokens: 4}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o, l := options(t, s.URL(), suite.Step{Type: suite.Prompt, Text: "b", Reasoning: "off"})
	mustRun(t, o)
	if !strings.Contains(l.notes(), "the server does not honour it") {
		t.Errorf("notes: %s", l.notes())
	}
}

// The strict scripted endpoint refuses what the OpenAI API does not have; the built-in suites that ask for
// it run all the same.
func TestStrictServer(t *testing.T) {
	s, err := sim.Start(sim.Options{Scenario: sim.Scenario{Tokens: 16, Strict: true}, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	quick, err := suite.Find("quick")
	if err != nil {
		t.Fatal(err)
	}
	o, l := options(t, s.URL())
	o.Suite = quick
	if out := mustRun(t, o); out.OK != 3 {
		t.Errorf("%+v\n%s", out, l.notes())
	}
	if !strings.Contains(l.notes(), "The server refuses ignore_eos") || !strings.Contains(l.notes(), "The server refuses min_tokens") {
		t.Errorf("notes: %s", l.notes())
	}
}

func TestProbeThatFails(t *testing.T) {
	e := newEndpoint(t)
	e.tokenizer = false
	e.answer = func(w http.ResponseWriter, r *http.Request, n int, q asked) bool {
		if q.probe() {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return true
		}
		return false
	}
	o, l := options(t, e.URL, suite.Step{Type: suite.Bench, PP: 200, TG: 4})
	if out := mustRun(t, o); out.State != bench.Done || out.OK != 1 {
		t.Errorf("%+v", out)
	}
	if !strings.Contains(l.notes(), "are an estimate, 1.10 tokens a word or mark: the server does not say how long prompts are (the probe failed: the server is not ready") {
		t.Errorf("notes: %s", l.notes())
	}
	e.tokenizer = true
	o, l = options(t, e.URL, suite.Step{Type: suite.Bench, PP: 200, TG: 4})
	mustRun(t, o)
	if !strings.Contains(l.notes(), "are counted by the server, without the chat template: the server does not say") {
		t.Errorf("notes: %s", l.notes())
	}
}

// counter counts as the scripted endpoint does, and how often.
func counter(calls *int) func(context.Context, string) (int, error) {
	return func(_ context.Context, text string) (int, error) {
		*calls++
		return sim.CountTokens(text), nil
	}
}
