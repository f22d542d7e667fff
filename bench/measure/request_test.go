package measure

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"velo/bench"
)

// The numbers of one request, worked out by hand.
func TestRequest(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name                                      string
		s                                         script
		n                                         int
		ttft, ttfo, ttst, e2e, itl, tpot, rate    float64
		maxGap, peak, median, meanChunk, zeroGaps float64
	}{
		{"tg32 at a true 50 tok/s", script{at: every(100, 20, 32)}, 32,
			0.1, 0.1, 0.02, 0.72, 0.02, 0.02, 50, 0.02, 50, 50, 1, 0},
		{"two tokens a chunk", script{at: every(200, 40, 11), tokens: []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}}, 22,
			0.2, 0.2, 0.04, 0.6, 0.02, 0.4 / 21, 50, 0.04, 50, nan, 2, 0},
		{"first chunk of ten", script{at: every(100, 10, 11), tokens: []int{10, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}, 20,
			0.1, 0.1, 0.01, 0.2, 0.01, 0.1 / 19, 100, 0.01, 100, nan, 1, 0},
		{"a stall", script{at: []float64{100, 110, 120, 1120, 1130}}, 5,
			0.1, 0.1, 0.01, 1.13, 1.03 / 4, 1.03 / 4, 4 / 1.03, 1.0, 2 / 0.515, nan, 1, 0},
		{"scripted 250 ms then 400, 100, 400, 100 ms", script{at: []float64{250, 650, 750, 1150, 1250}}, 5,
			0.25, 0.25, 0.4, 1.25, 0.25, 0.25, 4, 0.4, 4, nan, 1, 0},
		{"a burst in two seconds of decode", script{at: append(append([]float64{100}, every(1081, 1, 20)...), 2100)}, 22,
			0.1, 0.1, 0.981, 2.1, 2.0 / 21, 2.0 / 21, 10.5, 1.0, 20, nan, 1, 0},
		{"reasoning, then answer", script{at: every(50, 10, 6), channel: []bench.Channel{1, 1, 1, 0, 0, 0}}, 6,
			0.05, 0.08, 0.01, 0.1, 0.01, 0.01, 100, 0.01, 100, nan, 1, 0},
		{"one token", script{at: []float64{70}}, 1, 0.07, 0.07, nan, 0.07, nan, nan, nan, nan, nan, nan, nan, 0},
		{"all at one time", script{at: []float64{70, 70, 70}}, 3, 0.07, 0.07, 0, 0.07, nan, nan, nan, 0, nan, nan, 1, 0},
		{"nothing", script{}, 0, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Of(c.s.exchange(3), Options{})
			if r.N != c.n {
				t.Errorf("N = %d, want %d", r.N, c.n)
			}
			for _, x := range []struct {
				name string
				got  Num
				want float64
			}{
				{"TTFT", r.TTFT, c.ttft}, {"TTFO", r.TTFO, c.ttfo}, {"TTST", r.TTST, c.ttst}, {"E2E", r.E2E, c.e2e},
				{"ITL", r.ITL, c.itl}, {"TPOT", r.TPOT, c.tpot}, {"Rate", r.Rate, c.rate}, {"MaxGap", r.MaxGap, c.maxGap},
				{"Peak", r.Peak, c.peak}, {"Latency", r.Latency, c.e2e}, {"MeanChunk", r.MeanChunk, c.meanChunk},
				{"ZeroGaps", Num(r.ZeroGaps), c.zeroGaps},
			} {
				agree(t, x.name, x.got, Num(x.want))
			}
			if c.median == c.median && math.Abs(float64(r.Rolling.Median)-c.median) > 0.05*c.median {
				t.Errorf("rolling median = %v, want about %v", r.Rolling.Median, c.median)
			}
			if len(r.Broken) > 0 {
				t.Errorf("broken: %q", r.Broken)
			}
		})
	}
}

// The ways of counting a chunk's tokens, by the first that applies.
func TestTokens(t *testing.T) {
	usage := func(completion, reasoning int) *bench.Usage {
		return &bench.Usage{Prompt: 10, Completion: completion, Reasoning: reasoning, Cached: -1, Accepted: -1, Rejected: -1}
	}
	for _, c := range []struct {
		name       string
		text       []string
		continuous []int32
		exact      []int32
		channel    []bench.Channel
		usage      *bench.Usage
		finish     string
		tokenizer  bench.TokenCounter
		want       []int
		source     Source
		counted    string
		unseen     float64
	}{
		{name: "continuous usage", text: []string{"a", "b", "c"}, continuous: []int32{1, 3, 4}, exact: []int32{9, 9, 9}, usage: usage(5, -1),
			want: []int{1, 2, 1}, source: Server, counted: ByContinuous, unseen: 1},
		{name: "a continuous usage that falls", text: []string{"a", "b", "c"}, continuous: []int32{1, 3, 2}, exact: []int32{1, 2, 1}, usage: usage(5, -1),
			want: []int{1, 2, 1}, source: Server, counted: ByExact, unseen: 1},
		{name: "a continuous usage with holes", text: []string{"a", "b", "c"}, continuous: []int32{1, -1, 4}, exact: []int32{1, 2, 1}, usage: usage(4, -1),
			want: []int{1, 2, 1}, source: Server, counted: ByExact},
		{name: "the final usage on every chunk", text: []string{"a", "b", "c"}, continuous: []int32{3, 3, 3}, usage: usage(3, -1),
			want: []int{1, 1, 1}, source: Server, counted: ByOne},
		{name: "continuous usage above the final one", text: []string{"a", "b", "c"}, continuous: []int32{2, 5, 9}, usage: usage(3, -1),
			want: []int{1, 1, 1}, source: Server, counted: ByOne},
		{name: "an event of two channels", text: []string{"a", "bbb", "c"}, continuous: []int32{1, 5, 5}, channel: []bench.Channel{1, 1, 0},
			want: []int{1, 3, 1}, source: Server, counted: ByContinuous, unseen: math.NaN()},
		{name: "logprobs with holes", text: []string{"a", "b", "c"}, exact: []int32{1, -1, 1}, usage: usage(3, -1),
			want: []int{1, 1, 1}, source: Server, counted: ByOne},
		{name: "tokenizer before usage", text: []string{"ab", "cd", "e"}, usage: usage(7, -1), tokenizer: letters{},
			want: []int{2, 2, 1}, source: Tokenizer, counted: ByTokenizer, unseen: 2},
		{name: "a merge that reaches back", text: []string{"a", "b", "c"}, tokenizer: merges{2, 1, 3},
			want: []int{1, 0, 2}, source: Tokenizer, counted: ByTokenizer, unseen: math.NaN()},
		{name: "as many chunks as tokens", text: []string{"a", "bbbbbbbbb", "c"}, usage: usage(3, -1),
			want: []int{1, 1, 1}, source: Server, counted: ByOne},
		{name: "one chunk less, ended by stop", text: []string{"aaaa", "b", "c"}, usage: usage(4, -1), finish: "stop",
			want: []int{1, 1, 1}, source: Server, counted: ByOne, unseen: 1},
		{name: "one chunk less, ended by length", text: []string{"aaaa", "b", "c"}, usage: usage(4, -1), finish: "length",
			want: []int{2, 1, 1}, source: Estimate, counted: ByBytes},
		{name: "usage by bytes", text: []string{"aaaa", "bb", "cccccc"}, usage: usage(6, -1),
			want: []int{2, 1, 3}, source: Estimate, counted: ByBytes},
		{name: "usage by bytes, channel by channel", text: []string{"aaaa", "bbbb", "cccccccc"}, channel: []bench.Channel{1, 1, 0}, usage: usage(9, 6),
			want: []int{3, 3, 3}, source: Estimate, counted: ByBytes},
		{name: "hidden reasoning", text: []string{"aaaa", "bbbb"}, usage: usage(100, 98),
			want: []int{1, 1}, source: Server, counted: ByOne, unseen: 98},
		{name: "more tokens than bytes", text: []string{"a", "b"}, usage: usage(500, -1),
			want: []int{1, 1}, source: Estimate, counted: ByBytes, unseen: 498},
		{name: "fewer tokens than chunks", text: []string{"aaaa", "b", "cccc", "d"}, usage: usage(2, -1), finish: "length",
			want: []int{1, 0, 1, 0}, source: Estimate, counted: ByBytes},
		{name: "text length", text: []string{"aaaa", "bbbbbbbb", "c"},
			want: []int{1, 2, 1}, source: Estimate, counted: ByLength, unseen: math.NaN()},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := script{at: every(100, 10, len(c.text)), text: c.text, channel: c.channel, usage: c.usage, none: true}.exchange(0)
			x.End.Finish = c.finish
			for i := range x.Chunks {
				if c.continuous != nil {
					x.Chunks[i].Usage = c.continuous[i]
				}
				if c.exact != nil {
					x.Chunks[i].Exact = c.exact[i]
				}
				if c.channel != nil && i > 0 && c.continuous != nil && c.continuous[i] == c.continuous[i-1] {
					x.Chunks[i].Read, x.Chunks[i].User, x.Chunks[i].Kernel = x.Chunks[i-1].Read, x.Chunks[i-1].User, x.Chunks[i-1].Kernel
				}
			}
			r := Of(x, Options{Tokens: c.tokenizer})
			if c.tokenizer != nil { // what a session keeps says the same without the tokenizer
				kept := *x
				kept.Counts = CountChunks(x.Chunks, c.tokenizer)
				if again := Of(&kept, Options{}); again.Source != r.Source || !slices.Equal(again.Arrivals, r.Arrivals) {
					t.Errorf("with kept counts %s, %v, with the tokenizer %s, %v", again.Source, again.Arrivals, r.Source, r.Arrivals)
				}
				kept.Counts = &bench.Counts{Tokens: make([]int32, len(x.Chunks)+1)}
				if again, bare := Of(&kept, Options{}), Of(x, Options{}); !slices.Equal(again.Arrivals, bare.Arrivals) {
					t.Errorf("counts of other chunks were taken: %v", again.Arrivals)
				}
			}
			var got []int
			for _, a := range r.Arrivals {
				got = append(got, a.Tokens)
			}
			for i := range c.want {
				if got[i] != c.want[i] {
					t.Fatalf("tokens %v, want %v", got, c.want)
				}
			}
			if r.Source != c.source || r.Counted != c.counted {
				t.Errorf("source %s by %s, want %s by %s", r.Source, r.Counted, c.source, c.counted)
			}
			agree(t, "unseen", r.Unseen, Num(c.unseen))
			if (r.Source == Estimate) == r.ITL.Ok() {
				t.Errorf("ITL %v with source %s", r.ITL, r.Source)
			}
		})
	}
}

// letters is a tokenizer of one token a byte.
type letters struct{}

func (letters) Name() string       { return "letters" }
func (letters) Count(s string) int { return len(s) }
func (letters) Prefixes(parts []string) []int {
	var out []int
	n := 0
	for _, p := range parts {
		n += len(p)
		out = append(out, n)
	}
	return out
}

// merges gives prefix counts as written down.
type merges []int

func (m merges) Name() string                  { return "merges" }
func (m merges) Count(s string) int            { return m[len(m)-1] }
func (m merges) Prefixes(parts []string) []int { return m }

func TestStamp(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(x *bench.Exchange)
		want   bench.StampKind
	}{
		{"kernel stamps for all", func(x *bench.Exchange) {}, bench.KernelStamp},
		{"one missing", func(x *bench.Exchange) { x.Chunks[2].Kernel = bench.Unset }, bench.UserStamp},
		{"clock step", func(x *bench.Exchange) { x.End.ClockStep = true }, bench.UserStamp},
		{"the client says user", func(x *bench.Exchange) { x.End.Stamp = bench.UserStamp }, bench.UserStamp},
		{"after the read returned", func(x *bench.Exchange) { x.Chunks[1].Kernel = x.Chunks[1].User + ms }, bench.UserStamp},
		{"before the start", func(x *bench.Exchange) { x.Chunks[0].Kernel = x.Request.Start - ms }, bench.UserStamp},
		{"still running", func(x *bench.Exchange) { x.End = nil }, bench.KernelStamp},
	} {
		x := script{start: 1000, at: every(100, 10, 4)}.exchange(0)
		c.change(x)
		r := Of(x, Options{})
		if r.Stamp != c.want {
			t.Errorf("%s: %s, want %s", c.name, r.Stamp, c.want)
		}
		want := 0.1
		if c.want == bench.UserStamp {
			want += 20e-6
		}
		agree(t, c.name+": TTFT", r.TTFT, Num(want))
	}
}

func TestServed(t *testing.T) {
	x := script{at: every(500, 10, 10), usage: &bench.Usage{Prompt: 1000, Completion: 10, Reasoning: -1, Cached: 200, Accepted: 6, Rejected: 2}}.exchange(0)
	r := Of(x, Options{})
	agree(t, "prefill", r.Prefill, 1600)
	agree(t, "cache hit", r.CacheHit, 0.2)
	agree(t, "acceptance", r.Acceptance, 0.75)
	if r.PrefillSource != Estimate {
		t.Errorf("prefill source %s", r.PrefillSource)
	}
	x.End.Timings = &bench.Timings{PromptN: 800, PromptMS: 400, PredictedN: 10, PredictedMS: 100, CacheN: 200, DraftN: -1, DraftAccepted: -1}
	r = Of(x, Options{})
	agree(t, "prefill by the server", r.Prefill, 2000)
	if r.PrefillSource != Server {
		t.Errorf("prefill source %s", r.PrefillSource)
	}
	x.End.Usage = nil
	x.End.Timings.DraftN, x.End.Timings.DraftAccepted = 10, 5
	r = Of(x, Options{})
	agree(t, "prompt by timings", r.Prompt, 1000)
	agree(t, "acceptance by timings", r.Acceptance, 0.5)
}

func TestBroken(t *testing.T) {
	u := func(n int) *bench.Usage {
		return &bench.Usage{Prompt: -1, Completion: n, Reasoning: -1, Cached: -1, Accepted: -1, Rejected: -1}
	}
	for _, c := range []struct {
		name   string
		s      script
		change func(x *bench.Exchange)
		want   string
	}{
		{"tokens never seen", script{at: every(10, 10, 100), usage: u(120)}, nil, "20 of the 120 completion tokens"},
		{"within the bound", script{at: every(10, 10, 100), usage: u(102)}, nil, ""},
		{"more seen than counted", script{at: every(10, 10, 100), tokens: nil, usage: u(99)}, func(x *bench.Exchange) {
			for i := range x.Chunks {
				x.Chunks[i].Usage, x.Chunks[i].Exact = -1, -1
			}
		}, ""}, // shared out by bytes: the server's count is kept
		{"times backwards", script{at: []float64{30, 20, 40}}, nil, "go backwards"},
		{"no time", script{at: every(10, 10, 3)}, func(x *bench.Exchange) { x.Chunks[1].User, x.Chunks[1].Kernel = bench.Unset, bench.Unset }, "have no time"},
		{"before the start", script{start: 1000, at: []float64{-500, 20}}, nil, "before the request started"},
	} {
		x := c.s.exchange(0)
		if c.change != nil {
			c.change(x)
		}
		got := strings.Join(Of(x, Options{}).Broken, "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: broken %q, want %q", c.name, got, c.want)
		}
	}
}

func TestBuffered(t *testing.T) {
	together := make([]float64, 50)
	for i := range together {
		together[i] = 2000 + 0.01*float64(i)
	}
	for _, c := range []struct {
		name string
		s    script
		want bool
	}{
		{"everything at the end", script{at: together}, true},
		{"an ordinary stream", script{at: every(100, 10, 50)}, false},
		{"a fast one", script{at: every(100, 0.05, 5000)}, false},
		{"in one chunk", script{at: []float64{2000}, tokens: []int{300}}, true},
		{"a short tool call in one chunk", script{at: []float64{300}, tokens: []int{12}}, false},
	} {
		if got := Of(c.s.exchange(0), Options{}).Buffered; got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A linear decay from 100 to 40 tok/s has a stability of about one half; sorted by value it would be
// 0.9 and more.
func TestStability(t *testing.T) {
	var times []float64
	rate, now := 100.0, 100.0
	for now < 60100 {
		times = append(times, now)
		rate = 100 - 60*(now-100)/60000
		now += 1000 / rate
	}
	r := Of(script{at: times}.exchange(0), Options{})
	if s := float64(r.Rolling.Stability); s < 0.47 || s > 0.54 {
		t.Errorf("stability %.3f, want about 0.5", s)
	}
	steady := Of(script{at: every(100, 10, 3000)}.exchange(0), Options{})
	if s := float64(steady.Rolling.Stability); s < 0.98 || s > 1 {
		t.Errorf("stability of a steady rate %.3f", s)
	}
}

// The rolling rate falls during a stall and covers no time before the first chunk.
func TestRolling(t *testing.T) {
	times := every(100, 10, 201) // to 2.1 s, then a stall of 3 s
	times = append(times, 5100)
	r := Of(script{at: times}.exchange(0), Options{})
	for _, s := range r.Rolling.Samples {
		want := 100.0
		switch {
		case s.At > 3100*ms && s.At < 5100*ms:
			want = 0
		case s.At > 2100*ms:
			want = 100 * (3100*ms - s.At).Seconds()
		}
		if s.At == 5100*ms {
			want = 1
		}
		if math.Abs(s.Rate-want) > 1.01/0.3 {
			t.Errorf("at %v: %.2f tok/s, want %.2f", s.At, s.Rate, want)
		}
	}
	if first := r.Rolling.Samples[0].At; first != 400*ms {
		t.Errorf("first sample at %v, want 0.4 s: the first line of the grid a quarter of a second after c1", first)
	}
	if n := len(r.Rolling.Samples); n != 48 {
		t.Errorf("%d samples, want 48: every 100 ms from 0.4 s to 5.1 s", n)
	}
	short := Of(script{at: every(100, 10, 20)}.exchange(0), Options{})
	if len(short.Rolling.Samples) != 0 || short.Rolling.Median.Ok() {
		t.Error("samples of a decode shorter than a quarter of a second")
	}
	coarse := rolling([]Arrival{{At: 0, Tokens: 1}, {At: 100 * 365 * 24 * time.Hour / 4, Tokens: 1}}, time.Second)
	if len(coarse) > mostSamples+1 {
		t.Errorf("%d samples of a request of 25 years", len(coarse))
	}
}
