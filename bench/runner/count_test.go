package runner

import (
	"strings"
	"testing"

	"velo/bench"
	"velo/bench/sim"
	"velo/bench/suite"
)

type sinkOf []bench.Event

func (s *sinkOf) Append(e bench.Event) { *s = append(*s, e) }

// Answers are counted by the tokenizer, once they are whole, until the server's count shows that it
// is another model's.
func TestCounting(t *testing.T) {
	chunk := func(request int, text string) bench.Chunks {
		return bench.Chunks{{Request: request, Text: text, Usage: -1, Exact: -1}}
	}
	usage := func(n, reasoning int) *bench.Usage { return &bench.Usage{Completion: n, Reasoning: reasoning} }
	var out sinkOf
	c := newCounting(&out, bench.StartClock(), simTokenizer{})
	text := "one two three four five six seven"
	n := sim.CountTokens(text)
	for _, e := range []bench.Event{
		chunk(1, text[:3]), chunk(2, "x"), chunk(1, text[3:]), // two at once
		&bench.End{Request: 1, Status: bench.OK, Usage: usage(n+1, 0)},
		&bench.End{Request: 2, Status: bench.Stopped, Usage: nil},
		chunk(3, text), &bench.End{Request: 3, Status: bench.OK, Usage: usage(n+500, 490)}, // hidden reasoning
		&bench.End{Request: 4, Status: bench.Empty},
		chunk(5, text), &bench.End{Request: 5, Status: bench.OK, Usage: usage(3*n, 0)}, // another model's
		chunk(6, text), &bench.End{Request: 6, Status: bench.OK, Usage: usage(n, 0)},
	} {
		c.Append(e)
	}
	counted, noted := map[int]int{}, ""
	for _, e := range out {
		switch e := e.(type) {
		case *bench.Counts:
			for _, v := range e.Tokens {
				counted[e.Request] += int(v)
			}
		case *bench.Note:
			noted += e.Text
		}
	}
	if len(counted) != 3 || counted[1] != n || counted[2] != 1 || counted[3] != n {
		t.Errorf("counted %v, want 1: %d, 2: 1, 3: %d and no others", counted, n, n)
	}
	if !strings.Contains(noted, "it is not the model's") || strings.Count(noted, "not the model's") != 1 {
		t.Errorf("the note is %q", noted)
	}
	if len(c.open) != 0 {
		t.Errorf("%d answers are kept after their ends", len(c.open))
	}
}

// A run with the model's tokenizer leaves its counts in the session.
func TestRunCounts(t *testing.T) {
	e := newEndpoint(t)
	o, l := options(t, e.URL, suite.Step{Type: suite.Prompt, Text: "Say something.", TG: 8})
	o.Tokens = simTokenizer{}
	mustRun(t, o)
	checkOrder(t, l)
	for _, x := range l.session().Exchanges {
		if x.Counts == nil || len(x.Counts.Tokens) != len(x.Chunks) || x.Counts.Tokenizer != (simTokenizer{}).Name() {
			t.Errorf("request %d with %d chunks has the counts %+v", x.Request.Number, len(x.Chunks), x.Counts)
		}
	}
}
