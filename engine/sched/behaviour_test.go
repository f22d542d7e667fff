package sched

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"velo/engine/sample"
)

// TestLongPrompt: while long prompts are read, every step still gives each
// running answer a token, keeps to its rows, and shares what is left.
func TestLongPrompt(t *testing.T) {
	seen := newTally()
	s := New(newModel(t, "plain", size{tokens: 2048, sequences: 4}), Options{Lanes: 4, StepTokens: 16, Observer: seen})
	short := submit(t, s, &Request{Prompt: text(1, 4), MaxTokens: 1000, Top: sample.NoLogProbs})[0]
	if _, err := s.turn(); err != nil {
		t.Fatal(err)
	}
	submit(t, s, &Request{Prompt: text(2, 300), MaxTokens: 2})
	submit(t, s, &Request{Prompt: text(3, 300), MaxTokens: 2})
	steps := 0
	for ; seen.length < 2; steps++ {
		before, rows := short.size, seen.rows
		if _, err := s.turn(); err != nil {
			t.Fatal(err)
		}
		if short.size != before+1 {
			t.Fatalf("step %d gives the running answer %d tokens", steps, short.size-before)
		}
		if n := seen.rows - rows; n > 16 || steps < 38 && n < 16 {
			t.Fatalf("step %d has %d rows", steps, n)
		}
		if len(s.lanes) == 3 && s.lanes[1].reads() && s.lanes[2].reads() {
			if a, b := s.lanes[1].seq.Len(), s.lanes[2].seq.Len(); a-b > 1 || b-a > 1 {
				t.Fatalf("step %d: of two prompts %d and %d tokens are read", steps, a, b)
			}
		}
	}
	if want := 600/15 + 2; steps > want {
		t.Errorf("two prompts of 300 tokens take %d steps instead of %d", steps, want)
	}
}

// TestShortStep: a step that has no room for everybody leaves nobody behind.
func TestShortStep(t *testing.T) {
	s := New(newModel(t, "plain", size{tokens: 2048, sequences: 4}), Options{Lanes: 4, StepTokens: 1})
	var streams []*Stream
	for i := range 6 {
		streams = append(streams, submit(t, s, &Request{Prompt: text(uint64(i), 20), MaxTokens: 5})...)
	}
	turns(t, s)
	for _, stream := range streams {
		if tokens, res := read(stream); len(tokens) != 5 || res.Finish != Length {
			t.Errorf("%d tokens, then %+v", len(tokens), res)
		}
	}
}

// TestOrder: answers begin in the order of their requests, and a large one is
// not passed by small ones.
func TestOrder(t *testing.T) {
	s := New(newModel(t, "plain", size{tokens: 160, sequences: 4}), Options{Lanes: 4, Context: 160})
	var streams []*Stream
	for i, n := range []int{60, 120, 4, 4, 4} {
		streams = append(streams, submit(t, s, &Request{Prompt: text(uint64(i), n), MaxTokens: 30})...)
	}
	turns(t, s)
	var admitted []time.Time
	for _, stream := range streams {
		_, res := read(stream)
		admitted = append(admitted, res.Admitted)
		if res.Submitted.After(res.Admitted) || res.Admitted.After(res.First) || res.First.After(res.End) {
			t.Errorf("times out of order: %+v", res)
		}
	}
	if !slices.IsSortedFunc(admitted, time.Time.Compare) {
		t.Errorf("admitted out of order: %v", admitted)
	}
}

// TestAdmission: a prompt that would take the pages of those who run waits.
func TestAdmission(t *testing.T) {
	s := New(newModel(t, "plain", size{tokens: 160, sequences: 0}), Options{Lanes: 4})
	first := submit(t, s, &Request{Prompt: text(1, 90), MaxTokens: 5})[0]
	second := submit(t, s, &Request{Prompt: text(2, 90), MaxTokens: 5})[0]
	s.turn()
	if st := s.Status(); st.Running != 1 || st.Waiting != 1 {
		t.Errorf("two prompts of 6 pages in 10: %+v", st)
	}
	turns(t, s)
	for _, stream := range []*Stream{first, second} {
		if got, res := read(stream); len(got) != 5 || res.Preempted != 0 {
			t.Errorf("%d tokens, then %+v", len(got), res)
		}
	}
}

// TestCancel: wherever an answer is, it ends before the next step.
func TestCancel(t *testing.T) {
	ctx, stop := context.WithCancelCause(context.Background())
	m := newModel(t, "hybrid", size{tokens: 512, sequences: 2})
	s := New(m, Options{Lanes: 2, StepTokens: 16, Waiting: 2})
	prompt := text(1, 100)
	running := submit(t, s, &Request{Prompt: text(2, 3), MaxTokens: 100})[0]
	reading, err := s.Submit(ctx, &Request{Prompt: prompt, MaxTokens: 100})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.turn()
	}
	queued := submit(t, s, &Request{Prompt: prompt})[0]
	second := submit(t, s, &Request{Prompt: prompt})[0]
	if _, err := s.Submit(context.Background(), &Request{Prompt: prompt}); !errors.Is(err, ErrBusy) {
		t.Fatalf("a full queue says %v", err)
	}
	// A waiting one leaves without the loop, and its place is free at once.
	queued.Cancel()
	queued.Cancel()
	if tokens, res := read(queued); len(tokens) != 0 || res.Finish != Cancelled || !res.Admitted.IsZero() || res.End.IsZero() {
		t.Errorf("cancelled while waiting: %d tokens, %+v", len(tokens), res)
	}
	submit(t, s, &Request{Prompt: prompt})[0].Cancel()
	second.Cancel()
	// One whose prompt is being read, by its context.
	if len(s.lanes) != 2 || !s.lanes[1].reads() {
		t.Fatal("the prompt is not being read")
	}
	free := s.pool.FreePages()
	stop(errTest)
	within(t, "the context's end", func() {
		for !func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.lanes[1].cancel }() {
			time.Sleep(time.Millisecond)
		}
	})
	s.turn()
	if tokens, res := read(reading[0]); len(tokens) != 0 || res.Finish != Cancelled || !errors.Is(res.Err, errTest) {
		t.Errorf("cancelled while reading: %d tokens, %+v", len(tokens), res)
	}
	if len(s.lanes) != 1 || s.pool.FreePages() <= free || s.pool.FreeStates() != 1 {
		t.Errorf("a cancelled prompt holds memory: %d lanes, %d pages free", len(s.lanes), s.pool.FreePages())
	}
	// And one that runs.
	running.Cancel()
	s.turn()
	if tokens, res := read(running); len(tokens) != 4 || res.Finish != Cancelled || res.Generated != 4 {
		t.Errorf("cancelled while running: %d tokens, %+v", len(tokens), res)
	}
	whole(t, s.pool)
}

// TestBacklog: who does not read loses the answer, and nobody else waits.
func TestBacklog(t *testing.T) {
	s := New(newModel(t, "plain", size{tokens: 512, sequences: 2}), Options{Lanes: 2, Backlog: 20})
	slow := submit(t, s, &Request{Prompt: text(1, 3), MaxTokens: 100})[0]
	turns(t, s)
	tokens, res := read(slow)
	if len(tokens) != 20 || res.Finish != Cancelled || res.Reason != ReasonBacklog || res.Generated != 20 {
		t.Errorf("a slow reader gets %d tokens, then %+v", len(tokens), res)
	}
	quick := submit(t, s, &Request{Prompt: text(1, 3), MaxTokens: 100})[0]
	q := &sent{streams: []*Stream{quick}, tokens: make([][]int32, 1)}
	for range 101 {
		s.turn()
		q.poll()
	}
	if _, res := read(quick); len(q.tokens[0]) != 100 || res.Finish != Length {
		t.Errorf("a quick reader gets %d tokens, then %+v", len(q.tokens[0]), res)
	}
}

func TestBadRequests(t *testing.T) {
	s := New(newModel(t, "plain", size{tokens: 64, sequences: 1}), Options{Lanes: 1, Context: 64, Waiting: 3})
	for what, r := range map[string]*Request{
		"an empty prompt":      {},
		"an unknown token":     {Prompt: []int32{vocab}},
		"a negative token":     {Prompt: []int32{-1}},
		"a boundary behind":    {Prompt: text(1, 5), Boundaries: []int{6}},
		"boundaries backwards": {Prompt: text(1, 5), Boundaries: []int{3, 2}},
		"negative copies":      {Prompt: text(1, 5), Copies: -1},
		"more than may wait":   {Prompt: text(1, 5), Copies: 5},
		"negative max":         {Prompt: text(1, 5), MaxTokens: -1},
		"many probabilities":   {Prompt: text(1, 5), Top: sample.MaxTop + 1},
		"bad sampling":         {Prompt: text(1, 5), Sampling: sample.Params{Temperature: -1}},
	} {
		if _, err := s.Submit(context.Background(), r); err == nil || !strings.HasPrefix(err.Error(), "cannot ") && what != "bad sampling" {
			t.Errorf("%s: %v", what, err)
		}
	}
	var long *TooLongError
	if _, err := s.Submit(context.Background(), &Request{Prompt: text(1, 64)}); !errors.As(err, &long) || *long != (TooLongError{64, 64}) {
		t.Errorf("a prompt as long as the context: %v", err)
	}
	if said := (&TooLongError{64, 64}).Error(); !strings.Contains(said, "64 tokens") {
		t.Errorf("it says %q", said)
	}
	stream := submit(t, s, &Request{Prompt: text(1, 60), MaxTokens: 1000})[0]
	turns(t, s)
	if tokens, res := read(stream); len(tokens) != 4 || res.Finish != Length {
		t.Errorf("4 tokens are left in the context: %d come, %+v", len(tokens), res)
	}
	// A context longer than the memory is cut to it.
	if n := New(newModel(t, "plain", size{tokens: 60, sequences: 1}), Options{Context: 1000}).Options().Context; n != 80 {
		t.Errorf("the context of 5 pages is %d", n)
	}
}

// TestEnds: panics and errors of a step end everything with what happened,
// and nothing is taken any more.
func TestEnds(t *testing.T) {
	m := newModel(t, "plain", size{tokens: 256, sequences: 2})
	s := New(m, Options{Lanes: 1, PanicSteps: 5})
	running, queued := submit(t, s, &Request{Prompt: text(1, 3)})[0], submit(t, s, &Request{Prompt: text(1, 3)})[0]
	err := s.Run(context.Background())
	var panicked *PanicError
	if !errors.As(err, &panicked) || panicked.Step != 5 || len(panicked.Stack) == 0 {
		t.Fatalf("a panic at step 5 gives %v", err)
	}
	if tokens, res := read(running); len(tokens) != 4 || res.Finish != Failed || !errors.Is(res.Err, err) {
		t.Errorf("the running answer: %d tokens, %+v", len(tokens), res)
	}
	if _, res := read(queued); res.Finish != Failed || !errors.Is(res.Err, err) {
		t.Errorf("the waiting answer: %+v", res)
	}
	if _, err := s.Submit(context.Background(), &Request{Prompt: text(1, 3)}); !errors.Is(err, ErrStopped) || !errors.As(err, &panicked) {
		t.Errorf("a request after the panic: %v", err)
	}
	if s.Run(context.Background()) == nil {
		t.Error("a scheduler runs twice")
	}
	if s.Status().Alive {
		t.Error("it is said to be alive")
	}
	within(t, "draining", func() { s.Drain(context.Background()) })
	whole(t, s.pool)

	// A hybrid model without states cannot run, and says so instead of waiting.
	s = New(newModel(t, "hybrid", size{tokens: 256}), Options{})
	stream := submit(t, s, &Request{Prompt: text(1, 3)})[0]
	if err := s.Run(context.Background()); err == nil {
		t.Error("a model without states runs")
	}
	if _, res := read(stream); res.Finish != Failed {
		t.Errorf("its request: %+v", res)
	}
}

// TestStop: the end of the context ends Run and all that runs and waits.
func TestStop(t *testing.T) {
	s := New(newModel(t, "plain", size{tokens: 4096, sequences: 2}), Options{Lanes: 1, Context: 4096, Backlog: 1 << 20})
	ctx, stop := context.WithCancelCause(context.Background())
	running, queued := submit(t, s, &Request{Prompt: text(1, 3)})[0], submit(t, s, &Request{Prompt: text(1, 3)})[0]
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	running.Next(make([]Token, 1))
	if !s.Status().Alive {
		t.Error("it is not said to be alive")
	}
	stop(errTest)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, stream := range []*Stream{running, queued} {
		if _, res := read(stream); res.Finish != Cancelled || !errors.Is(res.Err, errTest) {
			t.Errorf("after the stop: %+v", res)
		}
	}
	if _, err := s.Submit(context.Background(), &Request{Prompt: text(1, 3)}); !errors.Is(err, ErrStopped) {
		t.Errorf("a request after the stop: %v", err)
	}
	whole(t, s.pool)
}

func TestDrain(t *testing.T) {
	s := New(newModel(t, "plain", size{tokens: 512, sequences: 2}), Options{Lanes: 1})
	var streams []*Stream
	for range 3 {
		streams = append(streams, submit(t, s, &Request{Prompt: text(1, 3), MaxTokens: 50})...)
	}
	ended, stop := context.WithCancel(context.Background())
	stop()
	if err := s.Drain(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("draining with no time: %v", err)
	}
	if _, err := s.Submit(context.Background(), &Request{Prompt: text(1, 3)}); !errors.Is(err, ErrStopped) {
		t.Errorf("a request while draining: %v", err)
	}
	run(t, s) // not before: the answers could be done while this test has no processor
	within(t, "draining", func() {
		if err := s.Drain(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for _, stream := range streams {
		if tokens, res := read(stream); len(tokens) != 50 || res.Finish != Length {
			t.Errorf("drained: %d tokens, %+v", len(tokens), res)
		}
	}
}

// TestCopies: one prefill, and each copy has a seed of its own.
func TestCopies(t *testing.T) {
	for family := range families(vocab) {
		for _, lanes := range []int{1, 2, 5} {
			seen := newTally()
			s := New(newModel(t, family, size{tokens: 2048, sequences: lanes}), Options{Lanes: lanes, Observer: seen})
			r := &Request{Prompt: text(1, 90), MaxTokens: 12, Copies: 5, Sampling: warm, Top: sample.NoLogProbs}
			streams := submit(t, s, r)
			turns(t, s)
			o := newOracle(t, family)
			different := map[string]bool{}
			for i, stream := range streams {
				got, res := read(stream)
				if want := o.answer(t, r, i, 2048); !slices.Equal(got, want) {
					t.Errorf("%s, copy %d: %v instead of %v", family, i, got, want)
				}
				if want := []int{0, 90}[min(i, 1)]; res.Cached != want && lanes > 1 {
					t.Errorf("%s, %d lanes, copy %d: %d tokens are cached instead of %d", family, lanes, i, res.Cached, want)
				}
				different[fmt.Sprint(got)] = true
			}
			// With one lane the hybrid's only state is in use until the first copy ends.
			if want := 90; seen.prefill != want && lanes > 1 {
				t.Errorf("%s, %d lanes: %d rows of prefill instead of %d", family, lanes, seen.prefill, want)
			}
			if len(different) != 5 {
				t.Errorf("%s: 5 seeds give %d answers", family, len(different))
			}
			whole(t, s.pool)
		}
	}
}

// TestLogProbs: they are the sampler's own, and a reader may keep them.
func TestLogProbs(t *testing.T) {
	s := New(newModel(t, "plain", size{tokens: 512, sequences: 2}), Options{Lanes: 2})
	a := submit(t, s, &Request{Prompt: text(1, 3), MaxTokens: 100, Top: 3})[0]
	b := submit(t, s, &Request{Prompt: text(1, 3), MaxTokens: 100, Top: sample.NoLogProbs})[0]
	turns(t, s)
	tokens, plain := make([]Token, 200), make([]Token, 200)
	n, _ := a.Next(tokens)
	k, _ := b.Next(plain)
	if n != 100 || k != 100 {
		t.Fatalf("%d and %d tokens", n, k)
	}
	for i, token := range tokens[:n] {
		if len(token.Top) != 3 || token.Top[0].Token != token.ID || token.Top[0].LogProb != token.LogProb || token.LogProb >= 0 {
			t.Fatalf("token %d of a greedy answer: %+v", i, token)
		}
		if token.Top[1].LogProb > token.Top[0].LogProb || math.IsNaN(float64(token.Top[2].LogProb)) {
			t.Fatalf("token %d: %+v", i, token)
		}
		if plain[i].ID != token.ID || plain[i].Top != nil || plain[i].LogProb != 0 {
			t.Fatalf("token %d without probabilities: %+v", i, plain[i])
		}
	}
}

// TestStatus: what is shown is what is there.
func TestStatus(t *testing.T) {
	s := New(newModel(t, "hybrid", size{tokens: 512, sequences: 6}), Options{Lanes: 2, PrefixCache: true})
	if st := s.Status(); st.Alive || st.Busy || st.Lanes != 2 || st.Pages != 38 || st.States != 6 {
		t.Errorf("new: %+v", st)
	}
	for range 3 {
		submit(t, s, &Request{Prompt: text(1, 30), MaxTokens: 20})
	}
	s.turn()
	if st := s.Status(); !st.Busy || st.Running != 2 || st.Waiting != 1 || st.PagesUsed < 4 || st.StatesUsed < 2 || st.Steps != 1 || st.LastStep.IsZero() || st.StepP50 <= 0 {
		t.Errorf("after a step: %+v", st)
	}
	turns(t, s)
	st := s.Status()
	if st.Busy || st.Running+st.Waiting+st.PagesUsed != 0 || st.PagesCached == 0 || st.CachedTokens != 49 || st.StepP50 > st.StepP90 {
		t.Errorf("at the end: %+v", st)
	}
	if st.Hits != 1 || st.Misses != 2 || st.PromptTokens != 90 || st.ReusedTokens != 30 || st.GeneratedTokens != 60 {
		t.Errorf("counters at the end: %+v", st)
	}
}

func TestQuantile(t *testing.T) {
	list := []time.Duration{10, 20, 30, 40, 50}
	for q, want := range map[float64]time.Duration{0: 10, 0.5: 30, 0.9: 46, 1: 50} {
		if got := quantile(list, q); got != want {
			t.Errorf("quantile %v is %d instead of %d", q, got, want)
		}
	}
	if quantile(nil, 0.5) != 0 {
		t.Error("a quantile of nothing")
	}
}
