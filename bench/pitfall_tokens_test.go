package bench_test

import (
	"math"
	"strings"
	"testing"

	"velo/bench"
	"velo/bench/client"
	"velo/bench/measure"
	"velo/bench/runner"
	"velo/bench/sim"
	"velo/bench/suite"
)

// Pitfalls 1 to 6: what a token is, and how many there were.

// A chunk that brings the role, or an empty text, is no token. With such chunks counted TTFT is that
// of the role, some 400 ms too early, and N is six too many.
func TestPitfall01(t *testing.T) {
	t.Parallel()
	s := newStage(t, sim.Scenario{TTFT: 400 * simMS, ITL: 5 * simMS, Tokens: 24, EmptyDeltas: 5})
	a := s.ask(nil)
	if first := firstOf(t, a.writes, sim.KindRole); gap(first, a.tokens[0]).lo < 200*ms {
		t.Fatal("the endpoint did not send the role well before the first token")
	}
	came(t, "TTFB", a.TTFB, s.from(a.Start, firstOf(t, a.writes, sim.KindHeaders)), slack(&a.Request))
	came(t, "TTFT", a.TTFT, s.from(a.Start, a.tokens[0]), slack(&a.Request))
	came(t, "TTFO", a.TTFO, s.from(a.Start, a.tokens[0]), slack(&a.Request))
	lasted(t, "the longest gap", a.MaxGap, longest(a.tokens), slack(&a.Request))
	if a.N != 24 || len(a.Arrivals) != 24 || a.exchange.End.Silent < 6 {
		t.Errorf("%d tokens in %d chunks, %d events without text; 24 were sent after the role and 5 empty deltas", a.N, len(a.Arrivals), a.exchange.End.Silent)
	}
	holds(t, a.Broken)
}

// longest is the longest gap between writes.
func longest(writes []sim.Write) bracket {
	var b bracket
	for i := 1; i < len(writes); i++ {
		g := gap(writes[i-1], writes[i])
		b.lo, b.hi = max(b.lo, g.lo), max(b.hi, g.hi)
	}
	return b
}

// Reasoning is output, under whichever name it comes. With it ignored TTFT is that of the answer, 900 ms
// too late, N lacks half of the tokens, and a reply that only thinks has none; counted as answer, TTFO is
// too early.
func TestPitfall02(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"reasoning_content", "reasoning", "thinking", "think_tags"} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			sc := sim.Scenario{TTFT: 20 * simMS, ITL: 50 * simMS, Tokens: 36, Reasoning: sim.Reasoning{Tokens: 18, Field: field}}
			s := newStage(t, sc, func(o *client.Options) { o.ThinkTags = field == "think_tags" })
			a := s.ask(nil)
			thought, answered := firstOf(t, a.writes, sim.KindReasoning), firstOf(t, a.writes, sim.KindContent)
			thoughts := 18
			if field == "think_tags" { // the line break behind the closing tag, which the log counts in, is outside
				thoughts = 17
				answered = a.tokens[17]
			}
			came(t, "TTFT", a.TTFT, s.from(a.Start, thought), slack(&a.Request))
			came(t, "TTFO", a.TTFO, s.from(a.Start, answered), slack(&a.Request))
			if a.TTFO-a.TTFT < 0.2 {
				t.Errorf("TTFT %.3g s and TTFO %.3g s do not show the time that the model thought", a.TTFT, a.TTFO)
			}
			if a.N != 36 || a.Thought != thoughts || a.Answer != 36-thoughts || a.Unseen != 0 {
				t.Errorf("%d tokens, %d of reasoning and %d of answer, %v unseen; %d and %d were sent", a.N, a.Thought, a.Answer, a.Unseen, thoughts, 36-thoughts)
			}
			holds(t, a.Broken)
		})
	}
	t.Run("only", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, *builtin(t, "reasoning-only"))
		a := s.ask(nil)
		came(t, "TTFT", a.TTFT, s.from(a.Start, a.tokens[0]), slack(&a.Request))
		if a.N != 24 || a.TTFO.Ok() || a.Status != bench.OK {
			t.Errorf("%d tokens, TTFO %v, %s; want 24, none and ok", a.N, a.TTFO, a.Status)
		}
	})
	t.Run("hidden", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, *builtin(t, "reasoning-hidden"))
		a := s.ask(nil)
		if a.N != 24 || a.Unseen != 40 {
			t.Errorf("%d tokens seen and %v unseen; 24 were sent and 40 counted that were not", a.N, a.Unseen)
		}
		if d := float64(a.E2E - a.TTFT); math.Abs(float64(a.Rate)*d-23) > 1e-6 {
			t.Errorf("the decode rate %v is not that of the 23 tokens seen after the first", a.Rate)
		}
		holds(t, a.Broken)
	})
}

// A chunk is not a token. With chunks counted the rate is a quarter of the true one; with the tokens of
// the first chunk counted in the time after it, it is too high by a fifth; and a peak over chunks lies
// below the mean.
func TestPitfall03(t *testing.T) {
	t.Parallel()
	sc := sim.Scenario{TTFT: 30 * simMS, ITL: 20 * simMS, Tokens: 96, TokensPerChunk: 4, FirstChunkTokens: 16, Usage: "continuous"}
	check := func(t *testing.T, a *answer) {
		t.Helper()
		chunks := len(a.tokens)
		if chunks != 21 || a.N != 96 || len(a.Arrivals) != 21 {
			t.Fatalf("%d tokens in %d chunks; 96 were sent in 21", a.N, len(a.Arrivals))
		}
		decode := gap(a.tokens[0], a.tokens[chunks-1])
		lasted(t, "TPOT, 95 times,", 95*a.TPOT, decode, slack(&a.Request))
		if !(a.Peak >= a.Rate*(1-1e-9)) {
			t.Errorf("the peak rate %.4g is below the mean rate %.4g", a.Peak, a.Rate)
		}
		holds(t, a.Broken)
	}
	t.Run("continuous usage", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, sc)
		a := s.ask(nil, func(c *client.Chat) { c.ContinuousUsage = true })
		check(t, a)
		if a.N1 != 16 || a.Source != measure.Server || a.Counted != measure.ByContinuous {
			t.Errorf("%d tokens in the first chunk by %q from %q; 16 were sent", a.N1, a.Counted, a.Source)
		}
		for i, arrival := range a.Arrivals {
			if arrival.Tokens != a.tokens[i].Tokens {
				t.Errorf("chunk %d has %d tokens, the endpoint wrote %d", i, arrival.Tokens, a.tokens[i].Tokens)
			}
		}
		decode := gap(a.tokens[0], a.tokens[20])
		lasted(t, "first to last chunk", a.E2E-a.TTFT, decode, slack(&a.Request))
		if d := float64(a.E2E - a.TTFT); math.Abs(float64(a.Rate)*d-80) > 1e-6 || math.Abs(float64(a.ITL)*80-d) > 1e-9 {
			t.Errorf("rate %v and ITL %v are not those of the 80 tokens after the first chunk", a.Rate, a.ITL)
		}
		run := measure.Compute(&s.session, measure.Options{})
		if run.ITL.N != 80 || run.ICL.N != 20 {
			t.Errorf("ITL over %d tokens and ICL over %d gaps; there were 80 and 20", run.ITL.N, run.ICL.N)
		}
		if seen := foreign(t, "vllm", "max_output_tokens_per_s", run); !(seen < a.Rate) {
			t.Errorf("chunks in a second are %.4g, tokens %.4g: the scenario does not tell them apart", seen, a.Rate)
		}
	})
	t.Run("usage at the end", func(t *testing.T) { // tokens of a chunk are an estimate: no ITL, but ICL and TPOT
		t.Parallel()
		end := sc
		end.Usage = "own"
		s := newStage(t, end)
		a := s.ask(nil)
		check(t, a)
		if a.Source != measure.Estimate || a.ITL.Ok() || len(a.ICL) != 20 {
			t.Errorf("source %q, ITL %v, %d gaps; tokens in chunks are an estimate, and only gaps between chunks are known", a.Source, a.ITL, len(a.ICL))
		}
	})
}

// wideTokens is a tokenizer whose tokens are eight bytes long and know no chunks.
type wideTokens struct{}

func (wideTokens) Count(text string) int { return (len(text) + 7) / 8 }
func (wideTokens) Name() string          { return "wide" }

func (w wideTokens) Prefixes(parts []string) []int {
	out, text := make([]int, len(parts)), ""
	for i, p := range parts {
		text += p
		out[i] = w.Count(text)
	}
	return out
}

// endpointTokens is the endpoint's own rule.
type endpointTokens struct{ beginning int } // tokens that begin each text, such as BOS

func (e endpointTokens) Count(text string) int { return e.beginning + sim.CountTokens(text) }
func (endpointTokens) Name() string            { return "endpoint" }

func (e endpointTokens) Prefixes(parts []string) []int {
	out, text := make([]int, len(parts)), ""
	for i, p := range parts {
		text += p
		out[i] = sim.CountTokens(text) + e.beginning*(i+1)
	}
	return out
}

// The text is tokenised as a whole. Chunk by chunk every piece of a token counts as one, here more than
// half again as many; and a tokenizer that begins each chunk with a token of its own is found out by the
// server's count.
func TestPitfall04(t *testing.T) {
	t.Parallel()
	s := newStage(t, sim.Scenario{TTFT: 5 * simMS, ITL: simMS, Tokens: 96, TokensPerChunk: 1, Regime: "plain", Usage: "absent"})
	a := s.ask(nil)
	piecewise := 0
	for _, c := range a.exchange.Chunks {
		piecewise += wideTokens{}.Count(c.Text)
	}
	whole := wideTokens{}.Count(a.result.Answer)
	if 2*piecewise < 3*whole {
		t.Fatalf("%d tokens by chunks and %d by the whole text: the scenario does not tell them apart", piecewise, whole)
	}
	r := measure.Of(a.exchange, measure.Options{Tokens: wideTokens{}})
	if r.N != whole || r.Source != measure.Tokenizer {
		t.Errorf("%d tokens from %q; the text has %d", r.N, r.Source, whole)
	}

	counted := s.ask(&sim.Scenario{TTFT: 5 * simMS, ITL: simMS, Tokens: 96, TokensPerChunk: 4, Usage: "own"})
	right := measure.Of(counted.exchange, measure.Options{Tokens: endpointTokens{}})
	if right.N != 96 || right.Unseen != 0 || right.Source != measure.Tokenizer {
		t.Errorf("%d tokens, %v unseen; tokenizer and server count 96 alike", right.N, right.Unseen)
	}
	holds(t, right.Broken)
	wrong := measure.Of(counted.exchange, measure.Options{Tokens: endpointTokens{beginning: 1}})
	if wrong.Unseen >= 0 || len(wrong.Broken) == 0 {
		t.Errorf("a tokenizer that counts %d where the server counts 96 goes unnoticed", wrong.N)
	}
}

// Usage is taken from wherever it is, and what is not there is not made up. Where the chunk with usage
// counts as an arrival, TTFT or the last token move and N is 25; where usage has to be on a chunk of its
// own, the others go uncounted; and max_tokens in place of a count gives 500.
func TestPitfall05(t *testing.T) {
	t.Parallel()
	s := newStage(t, sim.Scenario{TTFT: 20 * simMS, ITL: 5 * simMS, Tokens: 24})
	for _, c := range []struct {
		scenario string
		given    bool
	}{
		{"usage-own", true}, {"usage-finish", true}, {"usage-last", true}, {"usage-null", true}, {"timings", true},
		{"usage-null-only", false}, {"usage-absent", false},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			sc := builtin(t, c.scenario)
			sc.TokensPerChunk = 2
			a := s.ask(sc, func(c *client.Chat) { c.MaxTokens = 500 })
			if a.Status != bench.OK || len(a.Arrivals) != 12 {
				t.Fatalf("%s with %d chunks; 12 were sent: %s", a.Status, len(a.Arrivals), a.Error)
			}
			last := a.tokens[len(a.tokens)-1]
			came(t, "TTFT", a.TTFT, s.from(a.Start, a.tokens[0]), slack(&a.Request))
			came(t, "E2E", a.E2E, s.from(a.Start, last), slack(&a.Request))
			if a.Source != measure.Estimate {
				t.Errorf("the tokens of chunks come from %q; nobody said them", a.Source)
			}
			if !c.given {
				if a.Unseen.Ok() || a.Prompt.Ok() || a.N <= 0 || a.N > 3*24 || a.Counted != measure.ByLength {
					t.Errorf("%d tokens by %q, %v unseen, prompt %v; the server counted nothing, about 24 were sent", a.N, a.Counted, a.Unseen, a.Prompt)
				}
				return
			}
			if a.N != 24 || a.Unseen != 0 || !(a.Prompt > 0) {
				t.Errorf("%d tokens, %v unseen, prompt %v; 24 were sent", a.N, a.Unseen, a.Prompt)
			}
			if sc.Timings && a.PrefillSource != measure.Server {
				t.Errorf("the prefill rate comes from %q; the server gave its timings", a.PrefillSource)
			}
			holds(t, a.Broken)
		})
	}
}

// The lengths that were asked for are not those that came. A count that takes the request's word reports
// 64 tokens a request where 24 came, and nobody hears of it.
func TestPitfall06(t *testing.T) {
	t.Parallel()
	step := suite.Step{Type: suite.Bench, PP: 256, TG: 64, ExactTG: true}
	short := newStage(t, *builtin(t, "length-ignored"))
	session, out := short.run(t.Context(), runner.Options{Workers: 2, Repeat: 2}, step)
	run := measure.Compute(session, measure.Options{})
	if out.OK != 4 || run.Tokens != 4*24 {
		t.Errorf("%d requests with %d tokens; 4 with 24 each were answered", out.OK, run.Tokens)
	}
	level(t, run, "lengths", measure.Red)
	if v := line(t, run, "lengths").Value; !strings.Contains(v, "output 62 % off") {
		t.Errorf("the trust panel says %q; 24 tokens came where 64 were asked for, 62 %% less", v)
	}
	if got := foreign(t, "vllm", "total_output_tokens", run); got != 4*24 {
		t.Errorf("as vLLM counts, %v tokens; 96 came", got)
	}

	honest := newStage(t, sim.Scenario{TTFT: 10 * simMS, ITL: 2 * simMS, Tokens: 24})
	session, _ = honest.run(t.Context(), runner.Options{Workers: 2, Repeat: 2}, step)
	run = measure.Compute(session, measure.Options{})
	level(t, run, "lengths", measure.Green)
	for _, r := range run.Requests {
		if r.N != 64 || r.Prompt < 0.95*256 || r.Prompt > 1.05*256 {
			t.Errorf("request %d: %v prompt tokens and %d of output; 256 and 64 were asked for", r.Number, r.Prompt, r.N)
		}
	}
	holds(t, run.Broken)
}
