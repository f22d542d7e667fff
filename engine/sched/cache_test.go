package sched

import (
	"slices"
	"testing"

	"velo/engine/sample"
)

// ask answers a request to its end, checks it against a lone run, and gives
// the tokens and how many of the prompt were cached.
func ask(t *testing.T, s *Scheduler, o *oracle, r *Request) ([]int32, int) {
	t.Helper()
	r.Top = sample.NoLogProbs
	stream := submit(t, s, r)[0]
	turns(t, s)
	got, res := read(stream)
	if want := o.answer(t, r, 0, s.o.Context); !slices.Equal(got, want) {
		t.Fatalf("with %d tokens cached: %v instead of %v, then %+v", res.Cached, got, want, res)
	}
	return got, res.Cached
}

// TestPrefixPlain: any whole pages of a text that was seen are not computed again.
func TestPrefixPlain(t *testing.T) {
	o := newOracle(t, "plain")
	seen := newTally()
	s := New(newModel(t, "plain", size{tokens: 1024, sequences: 2}), Options{Lanes: 2, PrefixCache: true, Observer: seen})
	prompt := text(1, 100)
	answer, cached := ask(t, s, o, &Request{Prompt: prompt, MaxTokens: 30})
	if cached != 0 {
		t.Errorf("%d tokens of the first prompt are cached", cached)
	}
	if st := s.Status(); st.Checkpoints != 1 || st.CachedTokens != 128 || st.PagesCached != 8 {
		t.Errorf("the answer covers its prompt, but kept are %+v", st)
	}
	for what, c := range map[string]struct {
		prompt []int32
		want   int
	}{
		"the same":                 {prompt, 96},
		"whole pages":              {prompt[:96], 80}, // the last token is computed
		"a beginning":              {prompt[:50], 48},
		"another end":              {slices.Concat(prompt[:70], text(2, 30)), 64},
		"the next turn":            {slices.Concat(prompt, answer, text(3, 9)), 128},
		"nothing in common":        {slices.Concat([]int32{prompt[0] ^ 1}, prompt[1:]), 0},
		"less than a page":         {prompt[:16], 0},
		"a page and one token":     {prompt[:17], 16},
		"in the middle of a page":  {slices.Concat(prompt[:31], text(4, 20)), 16},
		"the end of the prompt +1": {slices.Concat(prompt, answer[:1]), 96},
	} {
		before := seen.prefill
		if _, cached := ask(t, s, o, &Request{Prompt: c.prompt, MaxTokens: 3}); cached != c.want {
			t.Errorf("%s: %d tokens are cached instead of %d", what, cached, c.want)
		}
		if n := seen.prefill - before; n != len(c.prompt)-c.want {
			t.Errorf("%s: %d rows are computed instead of %d", what, n, len(c.prompt)-c.want)
		}
	}
	s.shutDown(Cancelled, nil)
	whole(t, s.pool)
}

// TestPrefixHybrid: a recurrent state is found again at the ends of prompt and
// answer and at the boundaries.
func TestPrefixHybrid(t *testing.T) {
	o := newOracle(t, "hybrid")
	seen := newTally()
	prompt := text(1, 100)
	bounds := []int{20, 77}
	var answer []int32
	{
		s := New(newModel(t, "hybrid", size{tokens: 1024, sequences: 8}), Options{Lanes: 2, PrefixCache: true})
		answer, _ = ask(t, s, o, &Request{Prompt: prompt, MaxTokens: 30})
	}
	for what, c := range map[string]struct {
		prompt []int32
		want   int
	}{
		"the same":                     {prompt, 100}, // with its logits
		"the next turn":                {slices.Concat(prompt, answer, text(3, 9)), 129},
		"the prompt goes on":           {slices.Concat(prompt, text(3, 9)), 100},
		"another end":                  {slices.Concat(prompt[:90], text(3, 9)), 77},
		"up to a boundary":             {prompt[:77], 20}, // no logits are kept there
		"short of a boundary":          {prompt[:50], 20},
		"before all boundaries":        {prompt[:19], 0},
		"the answer without its end":   {slices.Concat(prompt, answer[:20], text(3, 5)), 100},
		"the answer without its token": {slices.Concat(prompt, answer[:29]), 100}, // no logits are kept there either
	} {
		s := New(newModel(t, "hybrid", size{tokens: 1024, sequences: 8}), Options{Lanes: 2, PrefixCache: true, Observer: seen})
		ask(t, s, o, &Request{Prompt: prompt, MaxTokens: 30, Boundaries: bounds})
		if n := s.Status().Checkpoints; n != 4 {
			t.Fatalf("%d checkpoints are kept", n)
		}
		before := seen.prefill
		if _, cached := ask(t, s, o, &Request{Prompt: c.prompt, MaxTokens: 3}); cached != c.want {
			t.Errorf("%s: %d tokens are cached instead of %d", what, cached, c.want)
		}
		if n := seen.prefill - before; n != len(c.prompt)-c.want {
			t.Errorf("%s: %d rows are computed instead of %d", what, n, len(c.prompt)-c.want)
		}
		s.shutDown(Cancelled, nil)
		whole(t, s.pool)
	}
}

// TestOneState: with a single state the checkpoint turns into the next turn's
// sequence.
func TestOneState(t *testing.T) {
	o := newOracle(t, "hybrid")
	s := New(newModel(t, "hybrid", size{tokens: 512, sequences: 1}), Options{Lanes: 3, PrefixCache: true})
	prompt := text(1, 20)
	for turn := range 4 {
		answer, cached := ask(t, s, o, &Request{Prompt: prompt, MaxTokens: 6, Boundaries: []int{7}})
		if want := []int{0, len(prompt) - 4}[min(turn, 1)]; cached != want {
			t.Errorf("turn %d: %d tokens are cached instead of %d", turn, cached, want)
		}
		if st := s.Status(); st.Checkpoints != 1 || st.StatesUsed != 1 {
			t.Errorf("turn %d: %+v", turn, st)
		}
		prompt = slices.Concat(prompt, answer, text(uint64(turn), 3))
	}
	s.shutDown(Cancelled, nil)
	whole(t, s.pool)
}

// TestCuts: of many boundaries the first and the last ones are kept.
func TestCuts(t *testing.T) {
	s := New(newModel(t, "hybrid", size{tokens: 64, sequences: 2}), Options{PrefixCache: true})
	var all []int
	for i := range 20 {
		all = append(all, 10*i, 10*i) // twice is once
	}
	if got, want := s.cuts(all, 0), []int{10, 130, 140, 150, 160, 170, 180, 190}; !slices.Equal(got, want) {
		t.Errorf("%v instead of %v", got, want)
	}
	if got, want := s.cuts(all, 170), []int{180, 190}; !slices.Equal(got, want) {
		t.Errorf("%v instead of %v", got, want)
	}
	if got := New(newModel(t, "plain", size{tokens: 64, sequences: 2}), Options{PrefixCache: true}).cuts(all, 0); got != nil {
		t.Errorf("a model of attention alone cuts at %v", got)
	}
}

// TestCheckpointBytes: the bound holds and the least recently used goes first.
func TestCheckpointBytes(t *testing.T) {
	o := newOracle(t, "hybrid")
	m := newModel(t, "hybrid", size{tokens: 2048, sequences: 32})
	one := m.Pool().Shape().StateBytes() + 4*vocab
	s := New(m, Options{Lanes: 1, PrefixCache: true, CheckpointBytes: 4 * one})
	request := func(i int) *Request { return &Request{Prompt: text(uint64(i), 40), MaxTokens: 2} }
	for i := range 5 { // each leaves two checkpoints; one of them has no logits
		ask(t, s, o, request(i))
		if _, cached := ask(t, s, o, request(0)); (cached == 40) != (i > 0) && i > 0 {
			t.Errorf("after %d others the first, just used again, has %d tokens cached", i, cached)
		}
		if st := s.Status(); st.CheckpointBytes > 4*one || st.Checkpoints > 4 {
			t.Fatalf("checkpoints take %d of %d bytes", st.CheckpointBytes, 4*one)
		}
	}
	if _, cached := ask(t, s, o, request(1)); cached != 0 {
		t.Errorf("the least recently used has %d tokens cached", cached)
	}
	if s.Status().Evicted == 0 {
		t.Error("nothing was evicted")
	}
	// A bound that not even one fits in keeps none.
	s.shutDown(Cancelled, nil)
	whole(t, m.Pool())
	s = New(m, Options{Lanes: 1, PrefixCache: true, CheckpointBytes: 10})
	ask(t, s, o, request(1))
	if st := s.Status(); st.Checkpoints != 0 || st.CheckpointBytes != 0 {
		t.Errorf("in 10 bytes there are %d checkpoints", st.Checkpoints)
	}
	s.shutDown(Cancelled, nil)
	whole(t, m.Pool())
}

// TestEviction: cached pages give way to requests, from the ends of the least
// recently used texts.
func TestEviction(t *testing.T) {
	o := newOracle(t, "plain")
	m := newModel(t, "plain", size{tokens: 40 * 16, sequences: 0})
	s := New(m, Options{Lanes: 2, PrefixCache: true})
	old, recent := text(1, 16*16+1), text(2, 16*16+1)
	ask(t, s, o, &Request{Prompt: old, MaxTokens: 1})
	ask(t, s, o, &Request{Prompt: recent, MaxTokens: 1})
	if st := s.Status(); st.PagesCached != 32 || st.CachedTokens != 32*16 {
		t.Fatalf("cached: %+v", st)
	}
	ask(t, s, o, &Request{Prompt: text(3, 14*16), MaxTokens: 1})
	if st := s.Status(); st.Evicted != 1 || st.Preempted != 0 {
		t.Errorf("after a request for 6 pages more than are free: %+v", st)
	}
	if _, cached := ask(t, s, o, &Request{Prompt: recent, MaxTokens: 1}); cached != 16*16 {
		t.Errorf("of the recent text %d tokens are cached", cached)
	}
	if _, cached := ask(t, s, o, &Request{Prompt: old[:100], MaxTokens: 1}); cached != 6*16 {
		t.Errorf("of the beginning of the old text %d tokens are cached", cached)
	}
	// Two long answers leave no page to the cache, and are not harmed.
	a := submit(t, s, &Request{Prompt: text(4, 10), MaxTokens: 400})[0]
	b := submit(t, s, &Request{Prompt: text(5, 10), MaxTokens: 400})[0]
	turns(t, s)
	for _, stream := range []*Stream{a, b} {
		if got, res := read(stream); len(got) != 400 && res.Reason != ReasonLoop {
			t.Errorf("%d tokens, then %+v", len(got), res)
		}
	}
	s.shutDown(Cancelled, nil)
	whole(t, m.Pool())
}

// TestShared: what two prompts have in common is in memory once.
func TestShared(t *testing.T) {
	m := newModel(t, "plain", size{tokens: 64 * 16, sequences: 0})
	s := New(m, Options{Lanes: 4, PrefixCache: true})
	system := text(1, 32*16)
	o := newOracle(t, "plain")
	ask(t, s, o, &Request{Prompt: system, MaxTokens: 1})
	var streams []*Stream
	for i := range 4 {
		streams = append(streams, submit(t, s, &Request{Prompt: slices.Concat(system, text(uint64(i), 20)), MaxTokens: 10})...)
	}
	s.turn()
	if st := s.Status(); st.Running != 4 || st.PagesUsed > 32+4*2 {
		t.Errorf("four prompts with 32 pages in common: %+v", st)
	}
	turns(t, s)
	for _, stream := range streams {
		if _, res := read(stream); res.Cached != 31*16 && res.Cached != 32*16 {
			t.Errorf("%d tokens are cached", res.Cached)
		}
	}
	s.shutDown(Cancelled, nil)
	whole(t, m.Pool())
}

// TestPreemptedWhileReading: a prompt that is read again may begin beyond a
// boundary at which it was to be cut.
func TestPreemptedWhileReading(t *testing.T) {
	s := New(newModel(t, "hybrid", size{tokens: 1024, sequences: 8}), Options{Lanes: 1, StepTokens: 8, PrefixCache: true})
	o := newOracle(t, "hybrid")
	prompt := text(1, 100)
	r := &Request{Prompt: prompt, Boundaries: []int{20, 40, 80}, MaxTokens: 5}
	stream := submit(t, s, r)[0]
	s.turn()
	s.preempt(stream.job)
	s.waiting = nil // it waits while another is served
	ask(t, s, o, &Request{Prompt: slices.Concat(prompt[:50], text(2, 9)), Boundaries: []int{50}, MaxTokens: 5})
	s.requeue(stream.job)
	s.turn()
	if n := stream.job.seq.Len(); n != 58 {
		t.Errorf("a step after it began again at 50, %d tokens are read", n)
	}
	turns(t, s)
	if got, res := read(stream); !slices.Equal(got, o.answer(t, r, 0, s.o.Context)) || res.Preempted != 1 || res.Cached != 0 {
		t.Errorf("%v, then %+v", got, res)
	}
	if _, cached := ask(t, s, o, &Request{Prompt: slices.Concat(prompt[:90], text(3, 5)), MaxTokens: 1}); cached != 80 {
		t.Errorf("the boundary at 80 was not kept: %d tokens are cached", cached)
	}
	s.shutDown(Cancelled, nil)
	whole(t, s.pool)
}
