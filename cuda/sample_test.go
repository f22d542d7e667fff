//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"velo/engine/sample"
)

// sampleTest is the choice of tokens from some rows of logits.
type sampleTest struct {
	k      *Kernels
	c      choices
	chosen *HostMemory
	input  Memory
	words  []int32
	used   int
	logits Memory
}

func newSampleTest(t testing.TB, k *Kernels, p *Pool, logits []float32, vocab, rows int) *sampleTest {
	t.Helper()
	s := &sampleTest{k: k, words: make([]int32, rows*(pickWords+4*vocab+vocab/16))}
	take := func(bytes int64) Memory {
		m, err := p.Take("the choice of tokens", bytes)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	s.logits, s.input = take(int64(4*len(logits))), take(int64(4*len(s.words)))
	if err := Upload(s.logits, logits); err != nil {
		t.Fatal(err)
	}
	if err := s.c.take(p.Take, vocab, rows); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.chosen, err = k.device.HostMemory(4 * choiceWords * rows); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.chosen.Close() })
	s.c.chosen = s.chosen.Memory
	return s
}

// set brings choices, from a row each, to the device.
func (s *sampleTest) set(t testing.TB, picks []sample.Pick, rows []int32) (all stages) {
	t.Helper()
	s.used = len(picks) * pickWords
	for i := range picks {
		one := words32(s.words[i*pickWords:(i+1)*pickWords], &picks[i], rows[i], func(n int) (int, []int32) {
			s.used += n
			return s.used - n, s.words[s.used-n : s.used]
		})
		all.draws, all.tops = all.draws || one.draws, all.tops || one.tops
	}
	if err := Upload(s.input, s.words[:s.used]); err != nil {
		t.Fatal(err)
	}
	return all
}

// run chooses, with what was there before overwritten.
func (s *sampleTest) run(t testing.TB, picks []sample.Pick, rows []int32) []sample.Result {
	t.Helper()
	all := s.set(t, picks, rows)
	out := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(s.chosen.Host))), len(s.chosen.Host)/4)
	for i := range out {
		out[i] = -77
	}
	for _, m := range []Memory{s.c.best, s.c.raw, s.c.totals, s.c.sums, s.c.candidates, s.c.found, s.c.masses, s.c.counts, s.c.least} {
		if err := m.Fill(0xff); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.k.Choose(&s.c, s.logits, s.input, 0, len(picks), all); err != nil {
		t.Fatal(err)
	}
	if err := s.k.device.Wait(); err != nil {
		t.Fatal(err)
	}
	results := make([]sample.Result, len(picks))
	for i := range picks {
		results[i] = result32(out[i*choiceWords:(i+1)*choiceWords], max(picks[i].Top, 0), nil)
	}
	return results
}

// drawnLogits are rows from peaked to flat, some with ties, infinities and NaN.
func drawnLogits(r *rand.Rand, rows, vocab int) []float32 {
	x := make([]float32, rows*vocab)
	for i := range rows {
		row, spread := x[i*vocab:(i+1)*vocab], math.Exp(r.Float64()*4-2)
		for j := range row {
			row[j] = float32(r.NormFloat64() * spread)
			if i%4 == 1 {
				row[j] = float32(math.Round(float64(row[j])*4) / 4)
			}
		}
		for range 4 { // a few that stand out
			if i%3 == 0 {
				row[r.IntN(vocab)] += 8
			}
		}
		for range vocab / 50 {
			switch i % 8 {
			case 5:
				row[r.IntN(vocab)] = float32(math.Inf(-1))
			case 6:
				row[r.IntN(vocab)] = float32(math.NaN())
			}
		}
	}
	row := x[7%rows*vocab : (7%rows+1)*vocab]
	row[r.IntN(vocab)] = float32(math.Inf(1))
	return x
}

// drawnPick is a choice somewhere in the space of parameters.
func drawnPick(r *rand.Rand, vocab int) sample.Pick {
	one := func(values ...float32) float32 { return values[r.IntN(len(values))] }
	p := sample.Pick{Temperature: one(0, 0.2, 0.7, 1, 1, 1.5, r.Float32()*3), TopP: one(0, 1, 0.5, 0.8, 0.95, r.Float32()), MinP: one(0, 0, 0.05, 0.3, r.Float32()*0.1),
		TopK: int(one(0, 0, 1, 5, 20, 20, 50, 200, 256, 257, 1000, 5000, 1e6)), Repetition: one(0, 0, 1, 1.1, 0.9), Presence: one(0, 0, 0.5, -0.3), Frequency: one(0, 0, 0.1),
		Uniform: r.Float64(), Top: r.IntN(25) - 4}
	if p.Top < -1 {
		p.Top = sample.NoLogProbs
	}
	p.Top = min(p.Top, mostTop)
	if p.Repeats() || p.Presence != 0 || p.Frequency != 0 {
		p.Count = make([]int32, vocab)
		for _, id := range r.Perm(vocab)[:min(vocab, r.IntN(500))] {
			p.Seen = append(p.Seen, int32(id))
			p.Count[id] = int32(r.IntN(4))
		}
	}
	if r.IntN(3) == 0 {
		for _, id := range r.Perm(vocab)[:r.IntN(min(20, vocab))] {
			p.Bias = append(p.Bias, sample.Bias{Token: int32(id), Bias: one(float32(math.Inf(-1)), -5, 5, r.Float32()*20)})
		}
	}
	if r.IntN(3) == 0 {
		p.Mask = sample.NewMask(vocab)
		n := []int{0, 1, 3, 100, vocab, 3 * vocab}[r.IntN(6)]
		for range n {
			p.Mask.Allow(int32(r.IntN(vocab)))
		}
	}
	return p
}

// edge tells whether a choice of the processor is the device's when the draw and the cuts move
// by 10⁻⁵.
func edge(s *sample.Sampler, p sample.Pick, logits []float32, token int32) bool {
	for _, u := range []float64{0, -1e-5, 1e-5} {
		for _, top := range []float32{0, -1e-5, 1e-5} {
			for _, least := range []float32{0, -1e-5, 1e-5} {
				q := p
				q.Uniform = min(max(0, p.Uniform+u), 1-1e-12)
				if q.TopP > 0 && q.TopP < 1 {
					q.TopP = min(max(1e-6, q.TopP+top), 0.9999999)
				}
				q.MinP *= 1 + least
				if r, err := s.Choose(&q, logits); err == nil && r.Token == token {
					return true
				}
			}
		}
	}
	return false
}

// Ten thousand choices over the space of parameters are those of engine/sample, but where a draw
// or a cut is within 10⁻⁵ of an edge.
func TestChoose(t *testing.T) {
	d := open(t, Options{})
	k := loadKernels(t, d)
	seed := rand.Uint64()
	t.Log("seed", seed)
	for _, size := range []struct{ vocab, draws int }{{3, 160}, {274, 1920}, {2048, 1600}, {2049, 1600}, {49152, 1920}, {151936, 960}, {248320, 1920}} {
		r := rand.New(rand.NewPCG(seed, uint64(size.vocab)))
		const rows = 16
		logits := drawnLogits(r, rows, size.vocab)
		s := newSampleTest(t, k, pool(t, d, 256<<20), logits, size.vocab, rows)
		type draw struct {
			p   sample.Pick
			row int
			got sample.Result
		}
		var list []draw
		for len(list) < size.draws {
			n := 1 + r.IntN(rows)
			var picks []sample.Pick
			var from []int32
			for range n {
				picks, from = append(picks, drawnPick(r, size.vocab)), append(from, int32(r.IntN(rows)))
			}
			for i, got := range s.run(t, picks, from) {
				list = append(list, draw{picks[i], int(from[i]), got})
			}
		}
		var mutex sync.Mutex
		edges, none, next := 0, 0, 0
		var wait sync.WaitGroup
		for range runtime.GOMAXPROCS(0) {
			wait.Go(func() {
				cpu := sample.New(size.vocab)
				for {
					mutex.Lock()
					i := next
					next++
					mutex.Unlock()
					if i >= len(list) {
						return
					}
					x := &list[i]
					row := logits[x.row*size.vocab : (x.row+1)*size.vocab]
					want, err := cpu.Choose(&x.p, row)
					if err != nil {
						mutex.Lock()
						none++
						mutex.Unlock()
						if x.got.Token != -1 {
							t.Errorf("vocabulary of %d: %d is chosen, where %v", size.vocab, x.got.Token, err)
						}
						continue
					}
					if x.p.Top >= 0 {
						sameProbabilities(t, x.p.Top, row, want, x.got)
					}
					if want.Token == x.got.Token {
						continue
					}
					mutex.Lock()
					edges++
					mutex.Unlock()
					if !edge(cpu, x.p, row, x.got.Token) {
						x.p.Seen, x.p.Count, x.p.Bias = nil, nil, nil
						mask := x.p.Mask != nil
						x.p.Mask = nil
						t.Errorf("vocabulary of %d, row %d, mask %v: %d (%v) is chosen, not %d (%v): %+v", size.vocab, x.row, mask, x.got.Token,
							at(row, x.got.Token), want.Token, at(row, want.Token), x.p)
					}
				}
			})
		}
		wait.Wait()
		t.Logf("vocabulary of %6d: %d choices, %d without a token, %d at an edge", size.vocab, len(list), none, edges)
	}
}

func at(x []float32, i int32) float32 {
	if i < 0 || int(i) >= len(x) {
		return float32(math.NaN())
	}
	return x[i]
}

// sameProbabilities holds likeliest tokens and logarithms against the processor's.
func sameProbabilities(t *testing.T, n int, row []float32, want, got sample.Result) {
	t.Helper()
	near := func(a, b float32) bool {
		return a == b || a != a && b != b || math.Abs(float64(a)-float64(b)) <= 1e-4*max(1, math.Abs(float64(b)))
	}
	for _, v := range row {
		if math.IsInf(float64(v), 1) {
			return // no probabilities
		}
	}
	if want.Token == got.Token && !near(got.LogProb.LogProb, want.LogProb.LogProb) {
		t.Errorf("the logarithm of the probability of %d is %v, not %v", got.Token, got.LogProb.LogProb, want.LogProb.LogProb)
	}
	if n == 0 {
		return
	}
	if len(got.Top) < min(len(want.Top), n) {
		t.Errorf("%d likeliest tokens, not %d", len(got.Top), len(want.Top))
		return
	}
	for i, w := range want.Top {
		if math.IsInf(float64(w.LogProb), -1) {
			break
		}
		if g := got.Top[i]; g.Token != w.Token || !near(g.LogProb, w.LogProb) {
			t.Errorf("likeliest token %d is %v, not %v", i, g, w)
		}
	}
}

// A choice has the same bits in any company and at any place.
func TestChooseInCompany(t *testing.T) {
	d := open(t, Options{})
	k := loadKernels(t, d)
	r := rand.New(rand.NewPCG(rand.Uint64(), 0))
	const vocab, rows = 32000, 16
	s := newSampleTest(t, k, pool(t, d, 64<<20), drawnLogits(r, rows, vocab), vocab, rows)
	rounds := 20
	if testing.Short() { // under a tool that is slow
		rounds = 1
	}
	for range rounds {
		var picks []sample.Pick
		var from []int32
		for range rows {
			picks, from = append(picks, drawnPick(r, vocab)), append(from, int32(r.IntN(rows)))
		}
		all := s.run(t, picks, from)
		for i := range rows {
			if testing.Short() && i > 2 {
				break
			}
			alone := s.run(t, picks[i:i+1], from[i:i+1])[0]
			if fmt.Sprint(alone) != fmt.Sprint(all[i]) {
				t.Fatalf("alone %v, with others %v", alone, all[i])
			}
		}
	}
}

// BenchmarkChoose times the choice of tokens of a vocabulary of 248,320 at the end of a step.
func BenchmarkChoose(b *testing.B) {
	const vocab, rows = 248320, 16
	d := open(b, Options{})
	k := loadKernels(b, d)
	r := rand.New(rand.NewPCG(1, 0))
	flat, peaked := make([]float32, rows*vocab), make([]float32, rows*vocab)
	for i := range flat {
		flat[i] = float32(r.NormFloat64())
		peaked[i] = float32(r.NormFloat64() * 3)
	}
	for i := range rows {
		for j := range 40 {
			peaked[i*vocab+r.IntN(vocab)] = 20 - float32(j)/4
		}
	}
	seen := sample.Pick{Temperature: 0.7, TopK: 20, TopP: 0.8, Repetition: 1.1, Presence: 0.5, Count: make([]int32, vocab), Mask: sample.NewMask(vocab)}
	seen.Mask.AllowAll()
	for _, id := range r.Perm(vocab)[:2000] {
		seen.Seen = append(seen.Seen, int32(id))
		seen.Count[id] = 1
	}
	none := sample.NoLogProbs
	for _, c := range []struct {
		name   string
		p      sample.Pick
		logits []float32
	}{
		{"greedy", sample.Pick{Top: none}, peaked},
		{"greedy, 20 likeliest", sample.Pick{Top: 20}, peaked},
		{"top-k 20", sample.Pick{Temperature: 1, TopK: 20, Top: none}, peaked},
		{"top-k 20, top-p 0.8", sample.Pick{Temperature: 0.7, TopK: 20, TopP: 0.8, Top: none}, peaked},
		{"that, 2,000 seen and a mask", seen, peaked},
		{"top-p 0.95", sample.Pick{Temperature: 1, TopP: 0.95, Top: none}, peaked},
		{"min-p 0.05", sample.Pick{Temperature: 1, MinP: 0.05, Top: none}, peaked},
		{"temperature alone", sample.Pick{Temperature: 1, Top: none}, flat},
		{"top-p 0.95 of a flat row, by counting", sample.Pick{Temperature: 1, TopP: 0.95, Top: none}, flat},
		{"top-k 5,000 and top-p, by counting", sample.Pick{Temperature: 1, TopK: 5000, TopP: 0.9, Top: none}, flat},
	} {
		var line strings.Builder
		for _, n := range []int{1, 4, 16} {
			s := newSampleTest(b, k, pool(b, d, 128<<20), c.logits, vocab, rows)
			picks, from := make([]sample.Pick, n), make([]int32, n)
			for i := range picks {
				picks[i], from[i] = c.p, int32(i)
				picks[i].Uniform = r.Float64()
			}
			all := s.set(b, picks, from)
			g := graph(b, d, 16, func(int) error { return k.Choose(&s.c, s.logits, s.input, 0, n, all) })
			fmt.Fprintf(&line, " %8.1f", float64(median(b, d, g))/1e3/16)
			if err := g.Close(); err != nil {
				b.Fatal(err)
			}
		}
		fmt.Printf("%-40s%s µs at 1, 4, 16 rows\n", c.name, line.String())
	}
}

// TestChoiceBytes: what is planned is what is taken, for as many rows as a step may choose for.
func TestChoiceBytes(t *testing.T) {
	for _, size := range []struct{ vocab, rows, most int }{{248320, 16, 16}, {300, 1, 1}, {mostVocab, 100, mostPicks}} {
		taken := int64(0)
		var c choices
		if err := c.take(func(_ string, bytes int64) (Memory, error) { taken += bytes; return Memory{}, nil }, size.vocab, choiceRows(size.rows)); err != nil {
			t.Fatal(err)
		}
		if got := ChoiceBytes(size.vocab, size.rows); got != taken || c.rows != size.most || got < int64(4*size.vocab*size.most) {
			t.Errorf("%+v: %d bytes are planned, %d taken for %d rows", size, got, taken, c.rows)
		}
	}
	if n := ChoiceBytes(mostVocab+1, 16); n != 0 {
		t.Errorf("a vocabulary that the host chooses from takes %d bytes", n)
	}
}

// A choice is written as sample.cu reads it; this runs without a device.
func TestPickWords(t *testing.T) {
	mask := sample.NewMask(70)
	mask.Allow(33)
	mask.Allow(69)
	p := sample.Pick{Temperature: 0.5, TopK: 100, TopP: 0.9, MinP: 0.1, Repetition: 1.5, Presence: 0.25, Frequency: 0.75, Uniform: 0.625,
		Bias: []sample.Bias{{Token: 7, Bias: -2}}, Seen: []int32{9, 4}, Count: []int32{4: 3, 9: 0}, Mask: mask, Top: 5}
	w, memory := make([]int32, pickWords), make([]int32, 0, 100)
	s := words32(w, &p, 6, func(n int) (int, []int32) {
		place := len(memory)
		memory = memory[:place+n]
		return 1000 + place, memory[place:]
	})
	float := func(i int) float32 { return math.Float32frombits(uint32(w[i])) }
	if u := math.Float64frombits(uint64(uint32(w[0])) | uint64(uint32(w[1]))<<32); u != 0.625 || w[2] != 6 || w[4] != 100 || w[5] != 5 || s != (stages{true, true}) {
		t.Errorf("%v, %v, %v", u, w, s)
	}
	if want := int32(draws | cuts | changes | probabilities | repeats | binned); w[3] != want {
		t.Errorf("flags are %b, not %b", w[3], want)
	}
	if float(6) != 2 || float(7) != float32(math.Log(float64(p.MinP))) || float(8) != 0.9 || float(9) != 1.5 || float(10) != 0.25 || float(11) != 0.75 {
		t.Errorf("numbers are %v", w)
	}
	if w[12] != 1000 || w[13] != 1 || memory[0] != 7 || math.Float32frombits(uint32(memory[1])) != -2 {
		t.Errorf("the bias is %v in %v", w[12:14], memory)
	}
	if w[14] != 1002 || w[15] != 2 || fmt.Sprint(memory[2:6]) != "[9 0 4 3]" {
		t.Errorf("what was seen is %v in %v", w[14:16], memory)
	}
	if w[16] != 1006 || fmt.Sprint(memory[6:]) != "[0 2 32 0]" || len(memory) != listWords(&p) {
		t.Errorf("the mask is %v in %v", w[16], memory)
	}
	greedy := sample.Pick{Temperature: 1, TopK: 1, Top: sample.NoLogProbs}
	if s := words32(w, &greedy, 0, nil); w[3] != 0 || s != (stages{}) {
		t.Errorf("a greedy choice has flags %b and needs %v", w[3], s)
	}
	for _, vocab := range []int{1, 256, 257, 2048, 2049, 32000, 151936, 248320, mostVocab} {
		if width, slices := sliced(vocab); slices > mostSlices || width%sliceThreads != 0 || width*slices < vocab || width*(slices-1) >= vocab {
			t.Errorf("a vocabulary of %d is cut into %d slices of %d", vocab, slices, width)
		}
	}
}
