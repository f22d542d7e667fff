package sample

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// exact is the distribution that Sample draws from, worked out the long way in float64: sort,
// cumulate, cut, renormalise.
func exact(logits []float32, p Params, prompt, generated []int32, mask Mask) []float64 {
	z := make([]float64, len(logits))
	for i, v := range logits {
		z[i] = float64(v)
	}
	for id, b := range p.LogitBias {
		z[id] += float64(b)
	}
	all := append(slices.Clone(prompt), generated...)
	from := 0
	if p.PenaltyWindow > 0 {
		from = max(0, len(all)-p.PenaltyWindow)
	}
	seen, counts := map[int32]bool{}, map[int32]float64{}
	for i, id := range all {
		if i < from {
			continue
		}
		seen[id] = true
		if i >= len(prompt) {
			counts[id]++
		}
	}
	for id := range seen {
		if r := float64(p.RepetitionPenalty); r != 0 {
			if z[id] > 0 {
				z[id] /= r
			} else {
				z[id] *= r
			}
		}
		if counts[id] > 0 {
			z[id] -= float64(p.PresencePenalty) + counts[id]*float64(p.FrequencyPenalty)
		}
	}
	for i := range z {
		if !mask.Allows(int32(i)) {
			z[i] = math.Inf(-1)
		}
	}
	order := make([]int, len(z))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return z[order[a]] > z[order[b]] })
	out := make([]float64, len(z))
	if p.Temperature == 0 {
		out[order[0]] = 1
		return out
	}
	prob := func(i int) float64 { return math.Exp((z[i] - z[order[0]]) / float64(p.Temperature)) }
	if p.TopK > 0 {
		order = order[:min(p.TopK, len(order))]
	}
	sum := func() (s float64) {
		for _, i := range order {
			s += prob(i)
		}
		return
	}
	if p.TopP > 0 && p.TopP < 1 {
		total, acc := sum(), 0.0
		for n, i := range order {
			if acc >= float64(p.TopP)*total {
				order = order[:n]
				break
			}
			acc += prob(i)
		}
	}
	if p.MinP > 0 {
		order = slices.DeleteFunc(order, func(i int) bool { return prob(i) < float64(p.MinP) })
	}
	total := sum()
	for _, i := range order {
		out[i] = prob(i) / total
	}
	return out
}

func logitsOf(n int, seed uint64, spread float64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64() * spread)
	}
	return x
}

func halfMask(n int) Mask {
	m := NewMask(n)
	m.AllowAll()
	for i := 0; i < n; i += 2 {
		m.Ban(int32(i))
	}
	return m
}

// Draws follow the exact distribution: Pearson's chi-square over the tokens expected at least five
// times, the rest in one cell. The seeds are fixed, so the test gives the same verdict every time;
// 5 standard deviations of the statistic are 1 in a million for a right sampler, and the negative
// control shows that a slightly wrong one is far beyond.
func TestDrawsFollowTheExactDistribution(t *testing.T) {
	const n, draws = 100, 8000
	prompt, generated := []int32{1, 2, 3, 3, 10}, []int32{4, 4, 5, 10, 2}
	for name, p := range map[string]Params{
		"temperature 1":   {Temperature: 1},
		"temperature 0.7": {Temperature: 0.7},
		"hot":             {Temperature: 3},
		"top-k":           {Temperature: 1, TopK: 20},
		"top-k 80":        {Temperature: 2, TopK: 80},
		"top-p":           {Temperature: 1, TopP: 0.8},
		"min-p":           {Temperature: 1, MinP: 0.1},
		"all three":       {Temperature: 1.3, TopK: 60, TopP: 0.9, MinP: 0.02},
		"penalties":       {Temperature: 1, RepetitionPenalty: 1.5, PresencePenalty: 0.5, FrequencyPenalty: 0.7},
		"window":          {Temperature: 1, RepetitionPenalty: 2, FrequencyPenalty: 1, PenaltyWindow: 4},
		"bias":            {Temperature: 1, TopK: 50, LogitBias: map[int32]float32{7: 4, 8: -100, 9: float32(math.Inf(-1))}},
	} {
		for _, mask := range []Mask{nil, halfMask(n)} {
			logits := logitsOf(n, 7, 1.5)
			count := tally(t, logits, p, prompt, generated, mask, draws)
			if z := chiSquare(count, exact(logits, p, prompt, generated, mask), draws); math.Abs(z) > 5 {
				t.Errorf("%s, mask %v: %.1f standard deviations from the exact distribution", name, mask != nil, z)
			}
		}
	}
	p := Params{Temperature: 1}
	logits := logitsOf(n, 7, 1.5)
	count := tally(t, logits, p, nil, nil, nil, draws)
	p.Temperature = 1.4
	if z := chiSquare(count, exact(logits, p, nil, nil, nil), draws); z < 20 {
		t.Errorf("temperature 1 passes for 1.4 (%.1f standard deviations): the test sees nothing", z)
	}
}

func tally(t *testing.T, logits []float32, p Params, prompt, generated []int32, mask Mask, draws int) []float64 {
	t.Helper()
	s, count := New(len(logits)), make([]float64, len(logits))
	q, err := NewSequence(p, len(logits), prompt, 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range generated {
		q.Append(id)
	}
	for i := range draws {
		q.params.Seed = uint64(i)
		r, err := s.Sample(q, logits, mask, NoLogProbs)
		if err != nil {
			t.Fatal(err)
		}
		count[r.Token]++
	}
	return count
}

// chiSquare returns how many standard deviations the statistic is above its mean.
func chiSquare(count, prob []float64, draws int) float64 {
	x, cells, restGot, restWant := 0.0, 0, 0.0, 0.0
	for i, p := range prob {
		want := p * float64(draws)
		if p == 0 && count[i] > 0 {
			return math.Inf(1) // drew what cannot be
		}
		if want < 5 {
			restGot += count[i]
			restWant += want
			continue
		}
		x += (count[i] - want) * (count[i] - want) / want
		cells++
	}
	if restWant >= 5 {
		x += (restGot - restWant) * (restGot - restWant) / restWant
		cells++
	}
	f := float64(cells - 1)
	return (x - f) / math.Sqrt(2*f)
}

// What truncation keeps is exactly what the long way keeps, ties and all.
func TestKeepsWhatSortingKeeps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 600).Draw(t, "n")                          // above heapMost, so that both ways to top-k are taken
		steps := rapid.SampledFrom([]int{1, 2, 5, 1000}).Draw(t, "steps") // few steps make ties
		logits := make([]float32, n)
		for i := range logits {
			logits[i] = float32(rapid.IntRange(-steps, steps).Draw(t, "logit")) * 8 / float32(steps)
		}
		p := Params{Temperature: 1, TopK: rapid.IntRange(0, n+1).Draw(t, "k"), Seed: rapid.Uint64().Draw(t, "seed")}
		if rapid.Bool().Draw(t, "with min-p") {
			p.MinP = float32(rapid.IntRange(1, 99).Draw(t, "m")) / 100
		}
		if rapid.Bool().Draw(t, "with top-p") {
			p.TopP = float32(rapid.IntRange(1, 99).Draw(t, "p"))/100 + 0.0031 // off the sums of equal weights
		}
		q, err := NewSequence(p, n, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := New(n)
		r, err := s.Sample(q, logits, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		want := exact(logits, p, nil, nil, nil)
		if want[r.Token] == 0 {
			t.Fatalf("drew token %d, which has probability 0", r.Token)
		}
		if p.TopK == 1 {
			return // greedy, nothing is kept
		}
		var keep []int32
		for i, w := range want {
			if w > 0 {
				keep = append(keep, int32(i))
			}
		}
		if !slices.Equal(keep, s.kept) {
			t.Fatalf("kept %v, want %v (top-k %d, top-p %v, min-p %v)", s.kept, keep, p.TopK, p.TopP, p.MinP)
		}
	})
}

// One request gives the same tokens whichever others share its sampler, and in whatever order.
func TestSeedsReproduceInAnyBatch(t *testing.T) {
	const n, length = 500, 40
	run := func(seeds []uint64, order func(step int, k []int)) map[uint64][]int32 {
		s := New(n)
		out := map[uint64][]int32{}
		var qs []*Sequence
		for _, seed := range seeds {
			q, err := NewSequence(Params{Temperature: 1.2, TopP: 0.95, FrequencyPenalty: 0.3, Seed: seed}, n, []int32{1, 2}, length)
			if err != nil {
				t.Fatal(err)
			}
			qs = append(qs, q)
		}
		rows := make([]int, len(qs))
		for i := range rows {
			rows[i] = i
		}
		for step := range length {
			order(step, rows)
			for _, k := range rows {
				r, err := s.Sample(qs[k], logitsOf(n, uint64(step)*1000+seeds[k], 2), nil, 3)
				if err != nil {
					t.Fatal(err)
				}
				qs[k].Append(r.Token)
				out[seeds[k]] = append(out[seeds[k]], r.Token)
			}
		}
		return out
	}
	batch := run([]uint64{5, 6, 7, 8}, func(step int, k []int) {
		rand.New(rand.NewPCG(uint64(step), 9)).Shuffle(len(k), func(i, j int) { k[i], k[j] = k[j], k[i] })
	})
	for _, seed := range []uint64{5, 6, 7, 8} {
		alone := run([]uint64{seed}, func(int, []int) {})
		if !slices.Equal(alone[seed], batch[seed]) {
			t.Errorf("seed %d: %v alone, %v in a batch", seed, alone[seed], batch[seed])
		}
	}
	if slices.Equal(batch[5], batch[6]) {
		t.Error("two seeds give the same tokens")
	}
}

// Appending and taking back leaves no trace.
func TestTruncateUndoesAppend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const vocab = 12
		token := rapid.Int32Range(0, vocab-1)
		p := Params{RepetitionPenalty: 1.3, FrequencyPenalty: 0.5, PenaltyWindow: rapid.IntRange(0, 9).Draw(t, "window")}
		prompt := rapid.SliceOfN(token, 0, 12).Draw(t, "prompt")
		kept := rapid.SliceOfN(token, 0, 12).Draw(t, "kept")
		dropped := rapid.SliceOfN(token, 0, 12).Draw(t, "dropped")
		make := func(ids ...int32) *Sequence {
			q, err := NewSequence(p, vocab, prompt, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range ids {
				q.Append(id)
			}
			return q
		}
		a := make(kept...)
		b := make(append(slices.Clone(kept), dropped...)...)
		b.Truncate(a.Len())
		slices.Sort(a.window.distinct)
		slices.Sort(b.window.distinct)
		if !slices.Equal(a.tokens, b.tokens) || !slices.Equal(a.window.count, b.window.count) ||
			!slices.Equal(a.window.generated, b.window.generated) || !slices.Equal(a.window.distinct, b.window.distinct) {
			t.Fatalf("%v became %v", a, b)
		}
	})
}

func TestLogProbsAreTheModelsOwn(t *testing.T) {
	logits := logitsOf(3000, 3, 3)
	want := exact(logits, Params{Temperature: 1}, nil, nil, nil)
	order := make([]int32, len(want))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		if want[a] > want[b] {
			return -1
		}
		return 1
	})
	q, err := NewSequence(Params{Temperature: 0.5, TopK: 3, LogitBias: map[int32]float32{17: 30}}, len(logits), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(len(logits)).Sample(q, logits, nil, 20)
	if err != nil {
		t.Fatal(err)
	}
	if r.Token != 17 || math.Abs(float64(r.LogProb.LogProb)-math.Log(want[17])) > 1e-5 {
		t.Errorf("token %d with %v, want 17 with %v", r.Token, r.LogProb.LogProb, math.Log(want[17]))
	}
	if len(r.Top) != 20 {
		t.Fatalf("%d likeliest tokens, want 20", len(r.Top))
	}
	for i, l := range r.Top {
		if l.Token != order[i] || math.Abs(float64(l.LogProb)-math.Log(want[order[i]])) > 1e-5 {
			t.Errorf("place %d: %v, want token %d with %v", i, l, order[i], math.Log(want[order[i]]))
		}
	}
}

func TestGreedyTakesTheFirstOfEquals(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		logits []float32
		want   int32
	}{{[]float32{1, 3, 3, 2}, 1}, {[]float32{nan, -inf, -5, nan}, 2}, {[]float32{1, inf, 2, inf}, 1}} {
		for _, temperature := range []float32{0, 1e-30, 1e-7} {
			q, _ := NewSequence(Params{Temperature: temperature}, 4, nil, 0)
			r, err := New(4).Sample(q, c.logits, nil, NoLogProbs)
			if err != nil || r.Token != c.want {
				t.Errorf("%v at %v: token %d %v, want %d", c.logits, temperature, r.Token, err, c.want)
			}
		}
	}
}

func TestBadInputIsASentence(t *testing.T) {
	nan := float32(math.NaN())
	for want, p := range map[string]Params{
		"temperature is -1":   {Temperature: -1},
		"temperature is NaN":  {Temperature: nan},
		"top_p is 2":          {TopP: 2},
		"min_p is -0.5":       {MinP: -0.5},
		"top_k is -1":         {TopK: -1},
		"window is -1":        {PenaltyWindow: -1},
		"names token 9":       {LogitBias: map[int32]float32{9: 1}},
		"logit_bias of token": {LogitBias: map[int32]float32{1: nan}},
		"repetition_penalty":  {RepetitionPenalty: -2},
	} {
		if _, err := NewSequence(p, 4, nil, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	q, _ := NewSequence(Params{Temperature: 1}, 4, []int32{-1, 99}, 0)
	s := New(4)
	inf := float32(math.Inf(-1))
	for want, f := range map[string]func() error{
		"no token can follow": func() error { _, err := s.Sample(q, []float32{inf, inf, nan, inf}, nil, 0); return err },
		"3 logits":            func() error { _, err := s.Sample(q, make([]float32, 3), nil, 0); return err },
		"mask of 2 words":     func() error { _, err := s.Sample(q, make([]float32, 4), make(Mask, 2), 0); return err },
		"64 is the most":      func() error { _, err := s.Sample(q, make([]float32, 4), nil, 65); return err },
		"or is forbidden":     func() error { _, err := s.Sample(q, make([]float32, 4), NewMask(4), 0); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestExp(t *testing.T) {
	worst := 0.0
	for x := 0.0; x > underflow; x -= 0.00037 {
		want := math.Exp(float64(float32(x)))
		worst = max(worst, math.Abs(float64(exp(float32(x)))-want)/want)
	}
	if worst > 2.5e-7 {
		t.Errorf("relative error %.3g", worst)
	}
}

// Uniform numbers of neighbouring seeds and positions fill 100 cells evenly and are not correlated.
func TestUniform(t *testing.T) {
	var cells [100]float64
	prob := make([]float64, 100)
	n, dot := 0, 0.0
	for seed := range uint64(200) {
		for position := range 500 {
			u := Uniform(seed, position, Draw)
			cells[int(u*100)]++
			dot += (u - 0.5) * (Uniform(seed, position+1, Draw) + Uniform(seed+1, position, Draw) + Uniform(seed, position, Accept) - 1.5)
			n++
		}
	}
	for i := range prob {
		prob[i] = 0.01
	}
	if z := chiSquare(cells[:], prob, n); math.Abs(z) > 5 {
		t.Errorf("%.1f standard deviations from even", z)
	}
	if r := dot / float64(n) * 12 / math.Sqrt(3); math.Abs(r) > 5/math.Sqrt(float64(n)) {
		t.Errorf("correlation %.4f", r)
	}
}

func FuzzSample(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, float32(1), 3, float32(0.9), float32(0.1), uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, temperature float32, k int, topP, minP float32, seed uint64) {
		n := len(data) / 4
		if n == 0 {
			return
		}
		logits := make([]float32, n)
		for i := range logits {
			logits[i] = math.Float32frombits(uint32(data[4*i]) | uint32(data[4*i+1])<<8 | uint32(data[4*i+2])<<16 | uint32(data[4*i+3])<<24)
		}
		q, err := NewSequence(Params{Temperature: temperature, TopK: k, TopP: topP, MinP: minP, RepetitionPenalty: 1.1, Seed: seed}, n, []int32{0}, 0)
		if err != nil {
			return
		}
		r, err := New(n).Sample(q, logits, nil, 5)
		if err == nil && (r.Token < 0 || int(r.Token) >= n || !(logits[r.Token] > float32(math.Inf(-1)))) {
			t.Fatalf("token %d of %v", r.Token, logits)
		}
	})
}

func TestNothingIsAllocatedAfterWarmUp(t *testing.T) {
	const n = 5000
	logits, mask := logitsOf(n, 1, 3), halfMask(n)
	for _, p := range []Params{{}, {Temperature: 1}, {Temperature: 1, TopK: 50, TopP: 0.9, MinP: 0.01, RepetitionPenalty: 1.1, FrequencyPenalty: 0.1, PenaltyWindow: 64, LogitBias: map[int32]float32{3: 1, 4: 2}}} {
		q, _ := NewSequence(p, n, []int32{1, 2, 3}, 10000)
		s := New(n)
		step := func() {
			r, err := s.Sample(q, logits, mask, 20)
			if err != nil {
				t.Fatal(err)
			}
			q.Append(r.Token)
		}
		step()
		if a := testing.AllocsPerRun(50, step); a != 0 {
			t.Errorf("%+v: %v allocations a token", p, a)
		}
	}
}

func BenchmarkSample(b *testing.B) {
	const n = 151_936
	logits := logitsOf(n, 1, 3)
	for _, c := range []struct {
		name string
		p    Params
		top  int
	}{
		{"greedy", Params{}, NoLogProbs},
		{"temperature", Params{Temperature: 1}, NoLogProbs},
		{"topk20_topp", Params{Temperature: 0.7, TopK: 20, TopP: 0.8}, NoLogProbs},
		{"topp", Params{Temperature: 1, TopP: 0.95}, NoLogProbs},
		{"minp", Params{Temperature: 1, MinP: 0.05}, NoLogProbs},
		{"all_logprobs20", Params{Temperature: 1, TopK: 50, TopP: 0.9, MinP: 0.01, RepetitionPenalty: 1.1, PresencePenalty: 0.1}, 20},
	} {
		b.Run(c.name, func(b *testing.B) {
			q, err := NewSequence(c.p, n, []int32{1, 2, 3}, 1<<20)
			if err != nil {
				b.Fatal(err)
			}
			s := New(n)
			b.ReportAllocs()
			for b.Loop() {
				r, err := s.Sample(q, logits, nil, c.top)
				if err != nil {
					b.Fatal(err)
				}
				q.Append(r.Token)
			}
		})
	}
}
