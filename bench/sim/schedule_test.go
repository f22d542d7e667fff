package sim

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func planned(s Scenario, n, boundary, index, uncached int, seed uint64) schedule {
	r := s.withDefaults()
	return plan(&r, n, boundary, index, uncached, rng(seed))
}

func TestSchedule(t *testing.T) {
	slow, _ := builtin("slow")
	for _, c := range []struct {
		name      string
		s         Scenario
		n         int
		boundary  int
		index     int
		uncached  int
		wantSize  []int
		wantDueMS []float64
	}{
		{name: "constant", s: Scenario{TTFT: 20 * ms, ITL: 5 * ms}, n: 4,
			wantSize: []int{1, 1, 1, 1}, wantDueMS: []float64{20, 25, 30, 35}},
		{name: "slow", s: slow, n: 3, wantSize: []int{1, 1, 1}, wantDueMS: []float64{1000, 2000, 3000}},
		{name: "no tokens", s: Scenario{TTFT: 20 * ms}, n: 0},
		{name: "three a chunk, the last not full", s: Scenario{TTFT: 20 * ms, ITL: 5 * ms, TokensPerChunk: 3}, n: 8,
			wantSize: []int{3, 3, 2}, wantDueMS: []float64{20, 35, 45}},
		{name: "first chunk", s: Scenario{ITL: 5 * ms, FirstChunkTokens: 6}, n: 8,
			wantSize: []int{6, 1, 1}, wantDueMS: []float64{0, 5, 10}},
		{name: "first chunk beyond the end", s: Scenario{ITL: 5 * ms, FirstChunkTokens: 60}, n: 8,
			wantSize: []int{8}, wantDueMS: []float64{0}},
		{name: "no chunk over the end of reasoning", s: Scenario{ITL: 5 * ms, TokensPerChunk: 4}, n: 8, boundary: 6,
			wantSize: []int{4, 2, 2}, wantDueMS: []float64{0, 10, 20}},
		{name: "stall", s: Scenario{ITL: 5 * ms, Gaps: Gaps{Kind: "stall", Stall: 100 * ms, At: 2}}, n: 5,
			wantSize: []int{1, 1, 1, 1, 1}, wantDueMS: []float64{0, 5, 110, 115, 120}},
		{name: "stall again and again", s: Scenario{ITL: 5 * ms, Gaps: Gaps{Kind: "stall", Stall: 100 * ms, At: 1, Every: 2}}, n: 5,
			wantSize: []int{1, 1, 1, 1, 1}, wantDueMS: []float64{0, 105, 110, 215, 220}},
		{name: "stall inside a chunk", s: Scenario{ITL: 5 * ms, TokensPerChunk: 2, Gaps: Gaps{Kind: "stall", Stall: 100 * ms, At: 3}}, n: 6,
			wantSize: []int{2, 2, 2}, wantDueMS: []float64{0, 110, 120}},
		{name: "prefill", s: Scenario{TTFT: 20 * ms, Prefill: 1000}, n: 1, uncached: 50,
			wantSize: []int{1}, wantDueMS: []float64{70}},
		{name: "cold", s: Scenario{TTFT: 20 * ms, ITL: 5 * ms, Cold: Cold{Requests: 2, TTFT: 100 * ms, Slowdown: 3}}, n: 2, index: 1,
			wantSize: []int{1, 1}, wantDueMS: []float64{120, 135}},
		{name: "warm", s: Scenario{TTFT: 20 * ms, ITL: 5 * ms, Cold: Cold{Requests: 2, TTFT: 100 * ms, Slowdown: 3}}, n: 2, index: 2,
			wantSize: []int{1, 1}, wantDueMS: []float64{20, 25}},
		{name: "drift", s: Scenario{ITL: 10 * ms, Drift: 0.5}, n: 2, index: 2,
			wantSize: []int{1, 1}, wantDueMS: []float64{0, 22.5}},
		{name: "headers later than the first token", s: Scenario{TTFT: 20 * ms, ITL: 5 * ms, HeaderDelay: 200 * ms}, n: 2,
			wantSize: []int{1, 1}, wantDueMS: []float64{200, 205}},
	} {
		p := planned(c.s, c.n, c.boundary, c.index, c.uncached, 1)
		if len(p.steps) != len(c.wantSize) {
			t.Errorf("%s: %d chunks, want %d", c.name, len(p.steps), len(c.wantSize))
			continue
		}
		for i, s := range p.steps {
			if s.tokens != c.wantSize[i] || math.Abs(milliseconds(s.due)-c.wantDueMS[i]) > 1e-6 {
				t.Errorf("%s: chunk %d has %d tokens at %v, want %d at %g ms", c.name, i, s.tokens, s.due, c.wantSize[i], c.wantDueMS[i])
			}
		}
	}
}

// Whatever the scenario: all tokens, in order of time, none before TTFT.
func TestScheduleInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Scenario{
			TTFT:             Duration(rapid.IntRange(0, 1e9).Draw(t, "ttft")),
			ITL:              Duration(rapid.IntRange(0, 1e8).Draw(t, "itl")),
			FirstChunkTokens: rapid.IntRange(0, 40).Draw(t, "first"),
			Decay:            rapid.Float64Range(0, 1).Draw(t, "decay"),
			Drift:            rapid.Float64Range(0, 1).Draw(t, "drift"),
			Gaps: rapid.SampledFrom([]Gaps{{}, {Kind: "normal", SD: 50 * ms}, {Kind: "bimodal", Fast: ms, Slow: 9 * ms, FastShare: 0.5},
				{Kind: "stall", Stall: 90 * ms, At: 3, Every: 7}}).Draw(t, "gaps"),
		}
		if rapid.Bool().Draw(t, "speculates") {
			s.Speculation = Speculation{Draft: rapid.IntRange(1, 8).Draw(t, "draft"), Acceptance: rapid.Float64Range(0, 1).Draw(t, "acceptance")}
		} else {
			s.TokensPerChunk = rapid.IntRange(0, 9).Draw(t, "chunk")
		}
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(0, 300).Draw(t, "n")
		boundary := rapid.IntRange(0, n).Draw(t, "boundary")
		p := planned(s, n, boundary, rapid.IntRange(0, 5000).Draw(t, "index"), 0, rapid.Uint64().Draw(t, "seed"))
		sum, due, crossed := 0, time.Duration(s.TTFT), false
		for i, step := range p.steps {
			if step.tokens < 1 || step.due < due {
				t.Fatalf("chunk %d: %d tokens at %v after %v", i, step.tokens, step.due, due)
			}
			crossed = crossed || sum < boundary && sum+step.tokens > boundary
			sum, due = sum+step.tokens, step.due
		}
		if sum != n || crossed || p.accepted > p.drafted {
			t.Fatalf("%d of %d tokens, over the boundary: %v, accepted %d of %d", sum, n, crossed, p.accepted, p.drafted)
		}
		if s.Speculation.Draft > 0 && len(p.steps) > 0 && p.drafted != s.Speculation.Draft*(len(p.steps)-1) {
			t.Fatalf("%d drafted in %d steps", p.drafted, len(p.steps))
		}
	})
}

// The same seed gives the same schedule, another seed another.
func TestScheduleSeed(t *testing.T) {
	s := Scenario{ITL: 10 * ms, Gaps: Gaps{Kind: "normal", SD: 2 * ms}}
	a, b, c := planned(s, 50, 0, 0, 0, 7), planned(s, 50, 0, 0, 0, 7), planned(s, 50, 0, 0, 0, 8)
	if a.last() != b.last() || a.last() == c.last() {
		t.Errorf("%v, %v, %v", a.last(), b.last(), c.last())
	}
}

// Accepted over drafted comes out as asked, whatever the draft length. The
// bounds are five standard errors of a share over the steps drawn.
func TestAcceptance(t *testing.T) {
	for _, k := range []int{1, 2, 4, 8} {
		for _, want := range []float64{0, 0.1, 0.5, 0.8, 1} {
			p := planned(Scenario{Speculation: Speculation{Draft: k, Acceptance: want}}, 200_000, 0, 0, 0, 3)
			got := float64(p.accepted) / float64(p.drafted)
			if limit := 5 * 0.5 / math.Sqrt(float64(len(p.steps))); math.Abs(got-want) > limit {
				t.Errorf("drafts of %d: %.4f accepted, want %g ± %.4f", k, got, want, limit)
			}
		}
	}
	if p := positionChance(1, 0.37); math.Abs(p-0.37) > 1e-12 {
		t.Errorf("with one position the chance is the acceptance, not %g", p)
	}
}

func TestGapDistributions(t *testing.T) {
	const n = 20_000
	mean := func(s Scenario) (m, sd float64) {
		p := planned(s, n, 0, 0, 0, 5)
		var sum, square float64
		for i := 1; i < n; i++ {
			g := milliseconds(p.steps[i].due - p.steps[i-1].due)
			sum += g
			square += g * g
		}
		m = sum / (n - 1)
		return m, math.Sqrt(square/(n-1) - m*m)
	}
	if m, sd := mean(Scenario{ITL: 10 * ms, Gaps: Gaps{Kind: "normal", SD: 2 * ms}}); math.Abs(m-10) > 0.1 || math.Abs(sd-2) > 0.1 {
		t.Errorf("normal: %.3f ± %.3f", m, sd)
	}
	// Mean 0.25·2 + 0.75·10 = 8, deviation 8·√(0.25·0.75) = 3.464.
	if m, sd := mean(Scenario{Gaps: Gaps{Kind: "bimodal", Fast: 2 * ms, Slow: 10 * ms, FastShare: 0.25}}); math.Abs(m-8) > 0.15 || math.Abs(sd-3.464) > 0.1 {
		t.Errorf("bimodal: %.3f ± %.3f", m, sd)
	}
}

// With decay 0.4 the rate falls linearly in time: at every tenth of the reply
// the tokens per second are on the line from 1 to 0.4.
func TestDecay(t *testing.T) {
	const n = 40_000
	p := planned(Scenario{ITL: ms, Decay: 0.4}, n, 0, 0, 0, 1)
	total := p.last().Seconds()
	tokens := make([]float64, 10)
	for _, s := range p.steps {
		tokens[min(9, int(s.due.Seconds()/total*10))]++
	}
	for i, count := range tokens {
		want := 1 - 0.6*(float64(i)+0.5)/10
		if got := count / (total / 10) / 1000; math.Abs(got-want) > 0.005 {
			t.Errorf("tenth %d: rate %.4f, want %.4f", i, got, want)
		}
	}
}

func TestPrefixCacheBlocks(t *testing.T) {
	text := func(words ...string) []promptPart {
		var list []promptPart
		for _, w := range words {
			list = append(list, promptPart{text: w})
		}
		return list
	}
	long := ""
	for range 40 {
		long += " word"
	}
	var c prefixCache
	for i, step := range []struct {
		prompt []promptPart
		want   int
	}{
		{text(long), 0},
		{text(long), 32},              // two whole blocks of 40
		{text(long, " and more"), 32}, // the same beginning
		{text(" other", long), 0},     // another beginning
		{text(long[:16*5]), 0},        // one block only: its last token is left to compute
		{text(long[:17*5]), 16},       //
		{[]promptPart{{"x", 40}}, 0},  // 40 tokens that are no text
		{[]promptPart{{"x", 40}}, 32}, //
		{[]promptPart{{"y", 40}}, 0},  //
		{append([]promptPart{{"user", MessageTokens}}, text(long)...), 0}, // shifted by a role
	} {
		if got := c.take(step.prompt); got != step.want {
			t.Errorf("prompt %d: %d cached, want %d", i, got, step.want)
		}
	}
}
