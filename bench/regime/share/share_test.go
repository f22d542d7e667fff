package share

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"velo/bench"
	"velo/bench/measure"
	"velo/bench/regime"
)

const ms = time.Millisecond

// exchange is a request whose chunks come after the gaps given, a token each.
func exchange(texts []string, gaps []time.Duration, channel bench.Channel) *bench.Exchange {
	x := &bench.Exchange{Request: &bench.Request{}}
	at := 100 * ms
	for i, t := range texts {
		at += gaps[i]
		x.Chunks = append(x.Chunks, bench.Chunk{User: at, Kernel: bench.Unset, Channel: channel, Usage: int32(i + 1), Exact: -1, Text: t})
	}
	x.End = &bench.End{Status: bench.OK, By: bench.EndDone, End: at, Close: at, Stamp: bench.UserStamp}
	return x
}

func TestProseAndCodeApart(t *testing.T) {
	x := exchange([]string{"The ships ", "come in ", "with the tide.\n\n", "```go\n", "x := 1\n", "y := 2\n", "```\n"},
		[]time.Duration{0, 20 * ms, 20 * ms, 5 * ms, 5 * ms, 5 * ms, 5 * ms}, bench.Content)
	r := measure.Of(x, measure.Options{})
	var s Splitter
	s.Add(&r, Of(x, &r))
	got := s.Shares()
	if len(got) != 2 || got[0].Regime != regime.Prose || got[1].Regime != regime.Code {
		t.Fatalf("%+v", got)
	}
	prose, code := got[0], got[1]
	if prose.Tokens != 3 || prose.Decoded != 2 || prose.Time != 40*ms || math.Abs(float64(prose.Rate)-50) > 1e-9 {
		t.Errorf("prose: %+v", prose)
	}
	if code.Tokens != 4 || code.Decoded != 4 || code.Time != 20*ms || math.Abs(float64(code.Rate)-200) > 1e-9 || code.GapP50 != 0.005 {
		t.Errorf("code: %+v", code)
	}
	if s.Requests() != 1 || prose.Requests != 1 || prose.Source != measure.Server {
		t.Errorf("%d requests, %+v", s.Requests(), prose)
	}
}

func TestNoTextIsNoRegime(t *testing.T) {
	x := exchange([]string{"", ""}, []time.Duration{0, ms}, bench.Content)
	r := measure.Of(x, measure.Options{})
	if of := Of(x, &r); of != nil {
		t.Errorf("chunks without text have regimes %v", of)
	}
	var s Splitter
	s.Add(&r, nil)
	if len(s.Shares()) != 0 || s.Requests() != 0 {
		t.Errorf("%+v", s.Shares())
	}
	r.Arrivals = r.Arrivals[:1]
	if Of(exchange([]string{"a", "b"}, []time.Duration{0, ms}, bench.Content), &r) != nil {
		t.Error("arrivals of another request have regimes")
	}
}

func TestWeakestSource(t *testing.T) {
	var s Splitter
	for _, source := range []measure.Source{measure.Server, measure.Estimate, measure.Tokenizer} {
		x := exchange([]string{"A sentence."}, []time.Duration{0}, bench.Content)
		r := measure.Of(x, measure.Options{})
		r.Source = source
		s.Add(&r, Of(x, &r))
	}
	if got := s.Shares(); len(got) != 1 || got[0].Source != measure.Estimate || got[0].Rate.Ok() || got[0].GapP50.Ok() {
		t.Errorf("%+v", got)
	}
}

// The parts sum up to the whole, whatever the text and its times.
func TestSharesSumUp(t *testing.T) {
	words := []string{"The tide ", "turns.\n\n", "```go\n", "x := f(1)\n", "```\n", "- salt\n", "- letters\n", "$$a^2$$\n", "| a | b |\n", ""}
	rapid.Check(t, func(t *rapid.T) {
		var s Splitter
		tokens, decoded, span := 0, 0, time.Duration(0)
		for range rapid.IntRange(1, 3).Draw(t, "requests") {
			n := rapid.IntRange(1, 40).Draw(t, "chunks")
			texts, gaps := make([]string, n), make([]time.Duration, n)
			for i := range texts {
				texts[i] = rapid.SampledFrom(words).Draw(t, "text")
				gaps[i] = time.Duration(rapid.IntRange(0, 100).Draw(t, "gap")) * ms
			}
			texts[0] = "A"
			x := exchange(texts, gaps, rapid.SampledFrom([]bench.Channel{bench.Content, bench.Reasoning}).Draw(t, "channel"))
			r := measure.Of(x, measure.Options{})
			tokens, decoded, span = tokens+r.N, decoded+r.N-r.N1, span+r.Arrivals[n-1].At-r.Arrivals[0].At
			s.Add(&r, Of(x, &r))
		}
		for _, o := range s.Shares() {
			tokens, decoded, span = tokens-o.Tokens, decoded-o.Decoded, span-o.Time
		}
		if tokens != 0 || decoded != 0 || span != 0 {
			t.Fatalf("%d tokens, %d decoded and %v are lost", tokens, decoded, span)
		}
	})
}
