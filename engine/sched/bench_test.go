package sched

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"velo/engine/sample"
)

// decoding is a scheduler with that many answers running, and a function that
// does a step and reads its tokens.
func decoding(t testing.TB, family string, lanes, longest, window int) func() {
	s := New(newModel(t, family, size{tokens: lanes * (longest + 32), sequences: lanes}), Options{Lanes: lanes, LoopWindow: window})
	var streams []*Stream
	for i := range lanes {
		r := &Request{Prompt: text(uint64(i), 9), MaxTokens: longest, Top: sample.NoLogProbs, IgnoreEOS: true, End: []int32{1}}
		if i%2 == 1 {
			r.Sampling = warm
			r.Sampling.Temperature = 3
		}
		if i%4 == 3 {
			r.Guide = by(open{})
			r.MinTokens = longest
		}
		streams = append(streams, submit(t, s, r)...)
	}
	buf := make([]Token, 16)
	step := func() {
		if worked, err := s.turn(); err != nil || !worked {
			t.Fatalf("a step says %v, %v", worked, err)
		}
		for _, stream := range streams {
			if n, more := stream.Next(buf); n != 1 || !more {
				t.Fatalf("%d tokens in a step, %v, %+v", n, more, stream.Result())
			}
		}
	}
	for range 20 { // until all have begun and everything has its size
		if _, err := s.turn(); err != nil {
			t.Fatal(err)
		}
	}
	for _, stream := range streams {
		if stream.size == 0 {
			t.Fatal("an answer has not begun")
		}
		for n := stream.size; n > 0; {
			k, _ := stream.Next(buf)
			n -= k
		}
	}
	return step
}

// TestNoAllocation: a step in which answers go on allocates nothing.
func TestNoAllocation(t *testing.T) {
	for family := range families(vocab) {
		step := decoding(t, family, 8, 200, 300)
		// A page table grows now and then, so the mean is below one and not none.
		if n := testing.AllocsPerRun(100, step); n >= 1 {
			t.Errorf("%s: a step allocates %v times", family, n)
		}
	}
}

// BenchmarkDecode is a step of running answers, model included.
func BenchmarkDecode(b *testing.B) {
	for _, family := range []string{"plain", "hybrid"} {
		for _, lanes := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/lanes=%d", family, lanes), func(b *testing.B) {
				const longest = 500
				step := decoding(b, family, lanes, longest, -1)
				left := longest - 25
				b.ReportAllocs()
				for b.Loop() {
					if left--; left == 0 {
						b.StopTimer()
						step = decoding(b, family, lanes, longest, -1)
						left = longest - 25
						b.StartTimer()
					}
					step()
				}
			})
		}
	}
}

// BenchmarkLongPrompt is the longest time that a running answer waits for a
// token while a prompt of 2000 tokens is read, in chunks and in one piece.
func BenchmarkLongPrompt(b *testing.B) {
	for _, step := range []int{64, 256, 2048} {
		b.Run(fmt.Sprintf("step=%d", step), func(b *testing.B) {
			m := newModel(b, "plain", size{vocab: 1000, tokens: 8192, sequences: 2, rows: 2048})
			var steps []time.Duration
			for b.Loop() {
				s := New(m, Options{Lanes: 2, StepTokens: step, Backlog: 1 << 20})
				running := submit(b, s, &Request{Prompt: text(1, 4), MaxTokens: 3000, Top: sample.NoLogProbs, End: []int32{1}, MinTokens: 3000})[0]
				for range 10 {
					s.turn()
				}
				long := submit(b, s, &Request{Prompt: text(2, 2000), MaxTokens: 1, Top: sample.NoLogProbs})[0]
				for !long.ended {
					began := time.Now()
					before := running.size
					s.turn()
					if running.size != before+1 {
						b.Fatalf("the running answer gets %d tokens in a step", running.size-before)
					}
					steps = append(steps, time.Since(began))
				}
				s.shutDown(Cancelled, nil)
			}
			b.ReportMetric(float64(slices.Max(steps))/1e6, "max-gap-ms")
			slices.Sort(steps)
			b.ReportMetric(float64(steps[len(steps)/2])/1e6, "median-gap-ms")
			b.ReportMetric(1, "gap-steps")
			b.ReportMetric(float64(len(steps))/float64(b.N), "steps/prompt")
		})
	}
}

// BenchmarkPrefix is a turn of a conversation of 1500 tokens, with and without
// the prefix cache.
func BenchmarkPrefix(b *testing.B) {
	for _, family := range []string{"plain", "hybrid"} {
		for _, cached := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/cache=%v", family, cached), func(b *testing.B) {
				s := New(newModel(b, family, size{tokens: 8192, sequences: 16, rows: 512}), Options{Lanes: 1, PrefixCache: cached})
				prompt := text(1, 1500)
				i := 0
				for b.Loop() {
					i++
					submit(b, s, &Request{Prompt: slices.Concat(prompt, text(uint64(i), 20)), Boundaries: []int{1500}, MaxTokens: 4, Top: sample.NoLogProbs})
					turns(b, s)
				}
			})
		}
	}
}

// BenchmarkSoak is requests of all kinds from 48 clients at 16 lanes; an
// operation is a request. At the end everything is free and adds up, and a
// sample of the answers is compared with lone runs.
func BenchmarkSoak(b *testing.B) {
	for _, family := range []string{"plain", "hybrid"} {
		b.Run(family, func(b *testing.B) { soak(b, family) })
	}
}

func soak(b *testing.B, family string) {
	m := newModel(b, family, size{tokens: 500, sequences: 32})
	seen := newTally()
	s := New(m, Options{Lanes: 16, Context: 256, StepTokens: 64, PrefixCache: true, Observer: seen})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var left, answers, tokens, refused atomic.Int64
	left.Store(int64(b.N))
	var mu sync.Mutex
	var checks []*sent
	client := func(seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 5))
		for left.Add(-1) >= 0 {
			r := &Request{Prompt: text(rng.Uint64N(20), 1+rng.IntN(150)), MaxTokens: 1 + rng.IntN(80), Copies: 1 + rng.IntN(8)/6,
				End: []int32{1, 2}, MinTokens: rng.IntN(10), Top: rng.IntN(4) - 1, IgnoreEOS: rng.IntN(4) == 0}
			if rng.IntN(2) == 0 {
				r.Sampling = warm
			}
			if n := len(r.Prompt); n > 40 {
				r.Boundaries = []int{20, n - 5}
			}
			own, end := context.WithCancel(ctx)
			streams, err := s.Submit(own, r)
			if err != nil {
				refused.Add(1)
				end()
				continue
			}
			answers.Add(int64(len(streams)))
			if rng.IntN(5) == 0 { // leave before, or while it is written
				after := rng.IntN(40)
				go func() {
					buf := make([]Token, 1)
					for range after {
						streams[0].Next(buf)
					}
					end()
				}()
				for _, stream := range streams[1:] {
					got, _ := read(stream)
					tokens.Add(int64(len(got)))
				}
				read(streams[0])
			} else {
				q := &sent{r, streams, make([][]int32, len(streams)), make([]bool, len(streams))}
				for i, stream := range streams {
					q.tokens[i], _ = read(stream)
					tokens.Add(int64(len(q.tokens[i])))
				}
				if rng.IntN(10) == 0 {
					mu.Lock()
					checks = append(checks, q)
					mu.Unlock()
				}
			}
			end()
		}
	}
	var clients sync.WaitGroup
	for i := range 48 {
		clients.Go(func() { client(uint64(i)) })
	}
	clients.Wait()
	b.StopTimer()
	if err := s.Drain(ctx); err != nil {
		b.Fatal(err)
	}
	stop()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	whole(b, m.Pool())
	if n := seen.stop + seen.length + seen.cancel; int64(n) != answers.Load() || seen.fail != 0 {
		b.Errorf("%d answers ended of %d, %d failed", n, answers.Load(), seen.fail)
	}
	if st := s.Status(); int(st.GeneratedTokens) != seen.generated || int(st.PromptTokens) != seen.prompt || st.Waiting+st.Running != 0 {
		b.Errorf("counters do not add up: %+v", st)
	}
	o := newOracle(b, family)
	for _, q := range checks {
		for i := range q.streams {
			if want := o.answer(b, q.r, i, 256); !slices.Equal(q.tokens[i], want) {
				b.Fatalf("an answer is %v instead of %v", q.tokens[i], want)
			}
		}
	}
	st := s.Status()
	b.ReportMetric(float64(tokens.Load())/b.Elapsed().Seconds(), "tokens/s")
	b.ReportMetric(float64(st.Preempted), "preempted")
	b.ReportMetric(float64(st.ReusedTokens)/float64(st.PromptTokens), "reused/prompt")
	b.ReportMetric(float64(refused.Load()), "refused")
	b.ReportMetric(float64(len(checks)), "compared")
}
