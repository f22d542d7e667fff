package sched

import (
	"fmt"
	"slices"
	"testing"

	"velo/engine/sample"
)

var warm = sample.Params{Temperature: 0.9, TopP: 0.95, RepetitionPenalty: 1.1, Seed: 7}

// requests are a mix that runs together.
func requests() (list []*Request) {
	for i := range 8 {
		r := &Request{ID: fmt.Sprint(i), Prompt: text(uint64(i), 3+i*11), MaxTokens: 40 + i, Top: sample.NoLogProbs, End: []int32{1}, MinTokens: i}
		if i%2 == 1 {
			r.Sampling = warm
			r.Copies = 1 + i%3
		}
		list = append(list, r)
	}
	return list
}

// TestSameAnswers: an answer is the same alone, in a batch, in chunks of any
// size, from the cache, and after it was preempted.
func TestSameAnswers(t *testing.T) {
	for family := range families(vocab) {
		o := newOracle(t, family)
		for name, c := range map[string]struct {
			z size
			o Options
		}{
			"one lane":            {size{tokens: 256, sequences: 1}, Options{Lanes: 1}},
			"batch":               {size{tokens: 1024, sequences: 8}, Options{Lanes: 8}},
			"small step":          {size{tokens: 1024, sequences: 8}, Options{Lanes: 8, StepTokens: 9}},
			"cache":               {size{tokens: 2048, sequences: 40}, Options{Lanes: 4, PrefixCache: true}},
			"few pages":           {size{tokens: 64, sequences: 4}, Options{Lanes: 4}},
			"few pages and cache": {size{tokens: 32, sequences: 6}, Options{Lanes: 4, PrefixCache: true}},
		} {
			t.Run(family+"/"+name, func(t *testing.T) {
				c.o.Context = 128
				s := New(newModel(t, family, c.z), c.o)
				for round := range 2 {
					var streams [][]*Stream
					list := requests()
					for _, r := range list {
						streams = append(streams, submit(t, s, r))
					}
					if round == 0 {
						run(t, s) // with all of them waiting, so that memory is short
					}
					for i, r := range list {
						for k, stream := range streams[i] {
							got, res := read(stream)
							want := o.answer(t, r, k, c.o.Context)
							if !slices.Equal(got, want) {
								t.Errorf("round %d, request %d, copy %d: %v instead of %v", round, i, k, got, want)
							}
							finish := Length
							if slices.Contains(r.End, want[len(want)-1]) {
								finish = Stop
							}
							if res.Finish != finish || res.Err != nil || res.Generated != len(want) || res.Prompt != len(r.Prompt) {
								t.Errorf("round %d, request %d, copy %d: %+v", round, i, k, res)
							}
							if round == 1 && name == "cache" && len(r.Prompt) > 16 && res.Cached < len(r.Prompt)-16 {
								t.Errorf("request %d, copy %d: %d of %d tokens come from the cache the second time", i, k, res.Cached, len(r.Prompt))
							}
						}
					}
				}
				if st := s.Status(); c.z.tokens <= 64 && st.Preempted == 0 {
					t.Errorf("nothing was preempted: %+v", st)
				}
			})
		}
	}
}
