package runner

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"velo/bench/sim"
	"velo/bench/suite"
)

// twoWays asks in one way, then in another.
func twoWays(level string) []Way {
	return []Way{
		{"thinking.type", map[string]json.RawMessage{"thinking": json.RawMessage(`{"type":"` + level + `"}`)}},
		{"reasoning_effort = none", map[string]json.RawMessage{"reasoning_effort": json.RawMessage(`"none"`)}},
		{},
	}
}

// refusing answers 400 to bodies with one of the words, and names it.
func refusing(words ...string) func(http.ResponseWriter, *http.Request, int, asked) bool {
	return func(w http.ResponseWriter, _ *http.Request, _ int, q asked) bool {
		for _, word := range words {
			if q.Fields[word] != nil {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"error":{"message":"unknown field %s"}}`, word)
				return true
			}
		}
		return false
	}
}

// The parameters of a run are sent with each request, where the suite says nothing else.
func TestParametersOfTheRun(t *testing.T) {
	e := newEndpoint(t)
	half := 0.5
	o, l := options(t, e.URL, prompt("a"), suite.Step{Type: suite.Bench, PP: 40, TG: 6})
	o.Suite.Temperature = &half
	o.Parameters = map[string]json.RawMessage{"temperature": json.RawMessage("1.5"), "top_k": json.RawMessage("20"), "max_tokens": json.RawMessage("9"), "min_p": json.RawMessage("0.1")}
	e.answer = refusing("min_p")
	if out := mustRun(t, o); out.OK != 2 {
		t.Fatalf("%+v\n%s", out, l.notes())
	}
	all := e.ordered()
	for i, want := range []struct{ limit string }{{"9"}, {"6"}} {
		f := all[i].Fields
		if string(f["temperature"]) != "0.5" || string(f["top_k"]) != "20" || string(f["max_tokens"]) != want.limit || f["min_p"] != nil {
			t.Errorf("request %d was sent as %s", i, all[i].Body)
		}
	}
	if want := "The server refuses min_p, so the run goes without it: its value, set for the model, is not in force."; !strings.Contains(l.notes(), want) {
		t.Errorf("notes: %s", l.notes())
	}
}

// A way of reasoning that a server refuses is followed by the next; the suite's own level wins.
func TestLevelOfTheRun(t *testing.T) {
	for _, test := range []struct {
		refused []string
		sent    string // field of the first request
		note    string
	}{
		{nil, "thinking", "sent as thinking.type; no reasoning was seen"},
		{[]string{"thinking"}, "reasoning_effort", "sent as reasoning_effort = none"},
		{[]string{"thinking", "reasoning_effort"}, "", "the server takes nothing for it"},
	} {
		e := newEndpoint(t)
		e.answer = refusing(test.refused...)
		o, l := options(t, e.URL, prompt("a"))
		o.Level, o.Ways = suite.ReasoningOff, twoWays
		if out := mustRun(t, o); out.OK != 1 {
			t.Fatalf("%+v\n%s", out, l.notes())
		}
		f := e.ordered()[0].Fields
		for _, field := range []string{"thinking", "reasoning_effort"} {
			if (f[field] != nil) != (field == test.sent) {
				t.Errorf("refusing %v: %s is %s", test.refused, field, f[field])
			}
		}
		if !strings.Contains(l.notes(), test.note) {
			t.Errorf("refusing %v: notes: %s", test.refused, l.notes())
		}
	}
	e := newEndpoint(t)
	o, _ := options(t, e.URL, suite.Step{Type: suite.Prompt, Text: "a", Reasoning: "high"})
	o.Level, o.Ways = suite.ReasoningOff, twoWays
	mustRun(t, o)
	if got := string(e.ordered()[0].Fields["thinking"]); got != `{"type":"high"}` {
		t.Errorf("the suite's level was sent as %s", got)
	}
}

// What came although reasoning was turned off is told.
func TestReasoningThatCameAllTheSame(t *testing.T) {
	s, err := sim.Start(sim.Options{Scenario: sim.Scenario{Tokens: 8, Reasoning: sim.Reasoning{Tokens: 4}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o, l := options(t, s.URL(), prompt("a"))
	o.Level = suite.ReasoningOff
	mustRun(t, o)
	if !strings.Contains(l.notes(), "1 of 1 requests reasoned") && !strings.Contains(l.notes(), "2 of 2 requests reasoned") {
		t.Errorf("notes: %s", l.notes())
	}
}
