package sched

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"velo/engine/model"
	"velo/engine/sample"
)

// tally is an Observer that adds up.
type tally struct {
	finished                   map[*Request]int
	prompt, cached, generated  int
	rows, prefill, decode      int
	steps, largest             int
	stop, length, cancel, fail int
}

func newTally() *tally { return &tally{finished: map[*Request]int{}} }

func (a *tally) Finished(r *Request, res Result) {
	a.finished[r]++
	a.prompt, a.cached, a.generated = a.prompt+res.Prompt, a.cached+res.Cached, a.generated+res.Generated
	switch res.Finish {
	case Stop:
		a.stop++
	case Length:
		a.length++
	case Cancelled:
		a.cancel++
	case Failed:
		a.fail++
	}
}

func (a *tally) Stepped(s Step) {
	a.rows, a.prefill, a.decode, a.steps = a.rows+s.Rows, a.prefill+s.Prefill, a.decode+s.Decode, a.steps+1
	a.largest = max(a.largest, s.Rows)
}

// sent is a request of a test and what came of it.
type sent struct {
	r         *Request
	streams   []*Stream
	tokens    [][]int32
	cancelled []bool
}

// poll takes what is there without waiting.
func (q *sent) poll() {
	for i, s := range q.streams {
		s.mu.Lock()
		n := s.size
		s.mu.Unlock()
		if n > 0 {
			buf := make([]Token, n)
			s.Next(buf)
			for _, token := range buf {
				q.tokens[i] = append(q.tokens[i], token.ID)
			}
		}
	}
}

// TestRandom sends, cancels and steps at random with little memory. Nothing is
// stuck or lost, everything adds up, and every answer is that of a lone run.
func TestRandom(t *testing.T) {
	for family := range families(vocab) {
		t.Run(family, func(t *testing.T) {
			o := newOracle(t, family)
			models := map[size]*model.Model{}
			rapid.Check(t, func(rt *rapid.T) {
				z := size{tokens: rapid.SampledFrom([]int{48, 128, 512}).Draw(rt, "tokens"), sequences: rapid.SampledFrom([]int{1, 2, 5, 16}).Draw(rt, "sequences")}
				m := models[z]
				if m == nil {
					m = newModel(t, family, z)
					models[z] = m
				}
				seen := newTally()
				s := New(m, Options{
					Lanes: rapid.IntRange(1, 6).Draw(rt, "lanes"), Context: 64, StepTokens: rapid.IntRange(1, 64).Draw(rt, "step"),
					Waiting: 12, PrefixCache: rapid.Bool().Draw(rt, "cache"), CheckpointBytes: rapid.SampledFrom([]int64{0, 0, 4000}).Draw(rt, "bytes"), Observer: seen,
				})
				var all []*sent
				refused := 0
				rt.Repeat(map[string]func(*rapid.T){
					"submit": func(rt *rapid.T) {
						r := drawRequest(rt, all)
						streams, err := s.Submit(context.Background(), r)
						if err == ErrBusy {
							refused++
							return
						}
						if err != nil {
							rt.Fatal(err)
						}
						all = append(all, &sent{r, streams, make([][]int32, len(streams)), make([]bool, len(streams))})
					},
					"cancel": func(rt *rapid.T) {
						if len(all) == 0 {
							rt.Skip("none")
						}
						q := rapid.SampledFrom(all).Draw(rt, "whom")
						i := rapid.IntRange(0, len(q.streams)-1).Draw(rt, "copy")
						q.streams[i].Cancel()
						q.cancelled[i] = true
					},
					"preempt": func(rt *rapid.T) { // the memory may run out between any two steps
						if len(s.lanes) == 0 {
							rt.Skip("none")
						}
						s.preempt(s.lanes[len(s.lanes)-1])
					},
					"turn": func(rt *rapid.T) {
						for range rapid.IntRange(1, 12).Draw(rt, "turns") {
							if _, err := s.turn(); err != nil {
								rt.Fatal(err)
							}
						}
						for _, q := range all {
							q.poll()
						}
					},
				})
				turns(t, s)
				streams := 0
				for _, q := range all {
					streams += len(q.streams)
					q.check(rt, t, o, s.o.Context)
					if seen.finished[q.r] != len(q.streams) {
						rt.Fatalf("the observer heard of %d of %d answers", seen.finished[q.r], len(q.streams))
					}
				}
				st := s.Status()
				if st.Running+st.Waiting+st.PagesUsed != 0 || int(st.Rejected) != refused || len(s.jobs) != 0 || len(s.forks) != 0 {
					rt.Fatalf("after everything ended: %+v, %d in flight, %d forks", st, len(s.jobs), len(s.forks))
				}
				if seen.stop+seen.length+seen.cancel != streams || seen.fail > 0 {
					rt.Fatalf("%d answers ended as %+v", streams, seen)
				}
				if int(st.PromptTokens) != seen.prompt || int(st.ReusedTokens) != seen.cached || int(st.GeneratedTokens) != seen.generated || int(st.Steps) != seen.steps {
					rt.Fatalf("counters %+v, told %+v", st, seen)
				}
				if seen.largest > s.o.StepTokens || seen.rows != seen.prefill+seen.decode {
					rt.Fatalf("steps of up to %d rows, %d allowed: %+v", seen.largest, s.o.StepTokens, seen)
				}
				if s.o.CheckpointBytes > 0 && st.CheckpointBytes > s.o.CheckpointBytes {
					rt.Fatalf("checkpoints take %d of %d bytes", st.CheckpointBytes, s.o.CheckpointBytes)
				}
				if !s.o.PrefixCache && st.CachedTokens != 0 {
					rt.Fatal("tokens are cached without a cache")
				}
				s.shutDown(Cancelled, nil)
				p := s.pool
				if p.FreePages() != p.Pages() || p.FreeStates() != p.States() || p.KeptPages() != 0 || s.cache.bytes != 0 || s.cache.tree.held != 0 {
					rt.Fatalf("%d of %d pages, %d of %d states are free", p.FreePages(), p.Pages(), p.FreeStates(), p.States())
				}
			})
		})
	}
}

// drawRequest makes a request up: something new, a known prefix with another
// end, or the next turn of an answer.
func drawRequest(t *rapid.T, all []*sent) *Request {
	r := &Request{Top: sample.NoLogProbs, End: []int32{1, 2}}
	r.Prompt = text(uint64(rapid.IntRange(0, 2).Draw(t, "seed")), rapid.IntRange(1, 60).Draw(t, "length"))
	if len(all) > 0 && rapid.Bool().Draw(t, "next turn") {
		q := rapid.SampledFrom(all).Draw(t, "of")
		next := slices.Concat(q.r.Prompt, q.tokens[0], text(9, 3))
		if len(next) < 60 {
			r.Prompt = next
			r.Boundaries = []int{len(q.r.Prompt), len(next) - 3}
		}
	}
	if len(r.Prompt) > 20 && r.Boundaries == nil {
		r.Boundaries = []int{7, 13, 20}
	}
	r.MaxTokens = rapid.IntRange(0, 30).Draw(t, "max")
	r.MinTokens = rapid.IntRange(0, 5).Draw(t, "min")
	r.Copies = rapid.IntRange(0, 4).Draw(t, "copies")
	r.IgnoreEOS = rapid.Bool().Draw(t, "ignore")
	if rapid.Bool().Draw(t, "warm") {
		r.Sampling = warm
	}
	return r
}

// check compares what came with the answers of a lone run.
func (q *sent) check(t *rapid.T, tb testing.TB, o *oracle, context int) {
	for i, s := range q.streams {
		rest, res := read(s)
		got := append(q.tokens[i], rest...)
		want := o.answer(tb, q.r, i, context)
		if res.Finish == Cancelled && q.cancelled[i] {
			want = want[:min(len(got), len(want))]
		}
		if !slices.Equal(got, want) {
			t.Fatalf("copy %d of %v gets %v instead of %v, then %+v", i, q.r.Prompt, got, want, res)
		}
		if res.Generated != len(got) || res.Prompt != len(q.r.Prompt) || res.Cached > res.Prompt || res.End.IsZero() || res.First.IsZero() != (len(got) == 0) {
			t.Fatalf("%d tokens came, then %+v", len(got), res)
		}
		if res.Finish == Cancelled && !q.cancelled[i] {
			t.Fatalf("nobody cancelled: %+v", res)
		}
	}
}

// TestTogether lets many clients at one scheduler at once, which the race
// detector looks at.
func TestTogether(t *testing.T) {
	for family := range families(vocab) {
		t.Run(family, func(t *testing.T) {
			o := newOracle(t, family)
			want := map[string][]int32{}
			request := func(client, i int) *Request {
				r := &Request{Prompt: text(uint64(client%3), 5+7*i), MaxTokens: 15, Top: 2, Copies: 1 + i%2, End: []int32{3}}
				if client%2 == 1 {
					r.Sampling = warm
				}
				return r
			}
			const clients, each = 6, 5
			for client := range clients {
				for i := range each {
					for k := range 1 + i%2 {
						want[fmt.Sprint(client, i, k)] = o.answer(t, request(client, i), k, 64)
					}
				}
			}
			s := New(newModel(t, family, size{tokens: 128, sequences: 8}), Options{Lanes: 4, Context: 64, PrefixCache: true})
			s.choose.alone = 0 // several at a time, also with a small vocabulary
			run(t, s)
			var group sync.WaitGroup
			for client := range clients {
				group.Go(func() {
					for i := range each {
						ctx, stop := context.WithCancel(context.Background())
						streams, err := s.Submit(ctx, request(client, i))
						if err != nil {
							t.Error(err)
							stop()
							return
						}
						if i == 3 && client%2 == 0 {
							stop()
						}
						for k, stream := range streams {
							got, res := read(stream)
							all := want[fmt.Sprint(client, i, k)]
							if res.Finish == Cancelled && i == 3 {
								all = all[:len(got)]
							}
							if !slices.Equal(got, all) {
								t.Errorf("client %d, request %d, copy %d: %v instead of %v (%+v)", client, i, k, got, all, res)
							}
						}
						s.Status()
						stop()
					}
				})
			}
			within(t, "serving", group.Wait)
			if st := s.Status(); st.Waiting != 0 || st.Hits == 0 {
				t.Errorf("after everything: %+v", st)
			}
		})
	}
}
