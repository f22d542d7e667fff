package bench_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"velo/bench"
	"velo/bench/client"
	"velo/bench/measure"
	"velo/bench/runner"
	"velo/bench/sim"
	"velo/bench/suite"
)

// Pitfalls 7 to 12: what was asked of the server, and when.

// prompt is a step that asks what the prefix cache could know of: several blocks long.
func prompt() suite.Step {
	return suite.Step{Type: suite.Prompt, Text: strings.Repeat("Say more about the sea. ", 30)}
}

// Prompts that the server has in its prefix cache cost no prefill. Without the salt at the front of every
// prompt the second repetition finds the first one's prompts, TTFT falls to a fraction and cached tokens
// count as read.
func TestPitfall07(t *testing.T) {
	t.Parallel()
	const speed = 5000 // prompt tokens a second
	s := newStage(t, sim.Scenario{TTFT: 10 * simMS, ITL: 2 * simMS, Tokens: 8, Prefill: speed, PrefixCache: true})
	fill := suite.Step{Type: suite.Bench, PP: 1024, TG: 8}
	measured := func(o runner.Options, step suite.Step) *measure.Run {
		t.Helper()
		o.Workers, o.Repeat = 2, 2
		session, out := s.run(t.Context(), o, step)
		if out.OK != 4 {
			t.Fatalf("%+v", out)
		}
		return measure.Compute(session, measure.Options{})
	}
	for seed := range int64(2) {
		run := measured(runner.Options{Seed: 1 + seed}, fill)
		level(t, run, "cache_hits", measure.Green)
		if run.CacheHit != 0 {
			t.Errorf("%.3g of the prompt tokens were cached though every prompt is new", run.CacheHit)
		}
		for _, r := range run.Requests {
			if least := float64(r.Prompt) / speed; float64(r.TTFT) < least {
				t.Errorf("TTFT is %.3g s, the endpoint takes %.3g s to read the prompt", r.TTFT, least)
			}
		}
	}
	again := measured(runner.Options{Seed: 1}, fill) // the same prompts once more
	level(t, again, "cache_hits", measure.Red)
	if again.CacheHit < 0.9 {
		t.Errorf("%.3g of the prompt tokens were cached; the endpoint knew all prompts", again.CacheHit)
	}
	for _, r := range again.Requests {
		if r.Prefill > 1.1*speed {
			t.Errorf("the prefill rate is %.4g: cached tokens count as read", r.Prefill)
		}
	}
	shared := measured(runner.Options{Seed: 3, Prefix: bench.PrefixShared}, suite.Step{Type: suite.Bench, Depth: 1024, PP: 64, TG: 8})
	if k := line(t, shared, "cache_hits"); k.Level != measure.Green || !strings.Contains(k.Value, "shared") || shared.CacheHit < 0.4 {
		t.Errorf("with a shared prefix, asked for: %s, %q, %.3g cached", k.Level, k.Value, shared.CacheHit)
	}
}

// The first requests are slow and belong to nobody's statistics. With fewer warm-up requests than workers,
// or with them counted, the highest TTFT is 350 ms; with one prompt for all of them the server has it cached.
func TestPitfall08(t *testing.T) {
	t.Parallel()
	s := newStage(t, sim.Scenario{
		TTFT: 50 * simMS, ITL: 5 * simMS, Tokens: 24, PrefixCache: true, Cold: sim.Cold{Requests: 4, TTFT: 300 * simMS, Slowdown: 2},
	})
	session, _ := s.run(t.Context(), runner.Options{Workers: 4, Warmup: -1}, prompt())
	run := measure.Compute(session, measure.Options{})
	if run.Warm != 4 || run.Attempted != 4 || run.TTFT.N != 4 || run.Whole.Tokens != 4*24 {
		t.Errorf("%d warm-up and %d measured requests, TTFT of %d, %d tokens; want 4, 4, 4 and 96", run.Warm, run.Attempted, run.TTFT.N, run.Whole.Tokens)
	}
	streams := s.streams()
	first := time.Duration(math.MaxInt64)
	var highest bracket
	for i, x := range session.Exchanges {
		q := &run.Requests[i]
		tokens := withTokens(streams[x.Request.Session])
		due := 50 * ms
		if x.Request.Warmup {
			due = 350 * ms
		} else {
			first = min(first, x.Request.Start)
			b := s.from(x.Request.Start, tokens[0])
			highest.lo, highest.hi = max(highest.lo, b.lo), max(highest.hi, b.hi)
		}
		if got := time.Duration(tokens[0].Due); got != due {
			t.Errorf("request %d, warm-up %v: the endpoint wanted its first token after %v, not %v", i, x.Request.Warmup, got, due)
		}
		if q.Cached != 0 {
			t.Errorf("request %d: %v prompt tokens were cached; prompts must differ, those of the warm-up as well", i, q.Cached)
		}
	}
	came(t, "the highest TTFT", run.TTFT.Max, highest, slack(&run.Requests[0]))
	if run.Whole.From != first {
		t.Errorf("the run begins at %v, its first measured request started at %v", run.Whole.From, first)
	}
}

// Ramp and tail are not the load that was asked for, and requests that fail or are stopped do not vanish.
// With the tail in the average the rate of four streams reads as little more than half of it; with the
// failures left out of the account the run looks perfect.
func TestPitfall09(t *testing.T) {
	t.Parallel()
	t.Run("tail", steadyState)
	t.Run("failures", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, sim.Scenario{TTFT: 20 * simMS, ITL: 2 * simMS, Tokens: 24, Fault: sim.Fault{Kind: "error", After: 10}, FailEvery: 3})
		session, out := s.run(t.Context(), runner.Options{Workers: 3, Repeat: 4, ContinuousUsage: true}, prompt())
		run := measure.Compute(session, measure.Options{})
		if out.Failed != 4 || run.Attempted != 12 || run.OK != 8 || run.Failed != 4 || run.Errors["in-stream"] != 4 {
			t.Errorf("%d attempted, %d ok, %d failed %v; every third of 12 failed", run.Attempted, run.OK, run.Failed, run.Errors)
		}
		if run.TTFT.N != 8 || run.E2E.N != 8 || run.Whole.Tokens != 8*24+4*10 {
			t.Errorf("TTFT of %d and E2E of %d requests, %d tokens; 8 and 8 ended well, 232 tokens came", run.TTFT.N, run.E2E.N, run.Whole.Tokens)
		}
		if q := run.E2EWithFailures.Q(0.9); !math.IsInf(float64(q.Value), 1) {
			t.Errorf("the 90th percentile with failures is %v; a third failed", q.Value)
		}
		level(t, run, "failures", measure.Red)
	})
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, sim.Scenario{TTFT: 10 * simMS, ITL: 20 * simMS, Tokens: 2000})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		session, out := s.run(ctx, runner.Options{Workers: 2, OnProgress: func(p runner.Progress) {
			streaming := 0
			for _, w := range p.Workers {
				if w.State == runner.Streaming {
					streaming++
				}
			}
			if streaming == 2 {
				cancel()
			}
		}}, prompt())
		run := measure.Compute(session, measure.Options{})
		if out.State != bench.Aborted || run.Attempted != 2 || run.Unfinished != 2 || run.OK+run.Failed != 0 {
			t.Errorf("%s: %d attempted, %d not finished, %d ok, %d failed; two were stopped", out.State, run.Attempted, run.Unfinished, run.OK, run.Failed)
		}
		if run.E2E.N != 0 || run.TTFT.N != 2 || run.Tokens < 2 {
			t.Errorf("E2E of %d and TTFT of %d requests, %d tokens; two had begun and none ended", run.E2E.N, run.TTFT.N, run.Tokens)
		}
	})
}

// steadyState runs four streams with a long tail of one.
func steadyState(t *testing.T) {
	t.Parallel()
	const workers, each = 4, 20
	s := newStage(t, sim.Scenario{TTFT: 20 * simMS, ITL: 5 * simMS, Tokens: 16})
	s.session.Header.Plan.Workers = workers
	s.Append(&bench.Step{Workers: workers, Barrier: true, Kind: suite.Prompt, Released: s.clock.Now()})
	usual, long := s.call(nil), s.call(&sim.Scenario{TTFT: 20 * simMS, ITL: 5 * simMS, Tokens: 300})
	var number atomic.Int64
	var group sync.WaitGroup
	last := make([]string, workers)
	for w := range workers {
		group.Go(func() {
			send := func(call *client.Call) {
				q := &bench.Request{Number: int(number.Add(1) - 1), Worker: w}
				call.Do(context.Background(), q, planned{s})
				last[w] = q.Session
			}
			for range each {
				send(usual)
			}
			if w == 0 {
				send(long)
			}
		})
	}
	group.Wait()
	run := measure.Compute(&s.session, measure.Options{})
	if run.Steady.None != "" {
		t.Fatal(run.Steady.None)
	}
	streams := s.streams()
	var ends []bracket
	for _, session := range last {
		tokens := withTokens(streams[session])
		ends = append(ends, s.at(tokens[len(tokens)-1]))
	}
	slices.SortFunc(ends, func(a, b bracket) int { return cmp.Compare(a.hi, b.hi) })
	// Three of four are 95 % rounded down: they are there until the second worker is done.
	off := slack(&run.Requests[0])
	if run.Steady.To > ends[1].hi+50*ms+off {
		t.Errorf("the steady state ends at %v; two streams were over at %v", run.Steady.To, ends[1].hi)
	}
	all, surely, perhaps := 0, 0, 0
	for _, writes := range streams {
		for _, w := range withTokens(writes) {
			at := s.at(w)
			all += w.Tokens
			if at.lo-off > run.Steady.From && at.hi+off <= run.Steady.To {
				surely += w.Tokens
			}
			if at.hi+off > run.Steady.From && at.lo-off <= run.Steady.To {
				perhaps += w.Tokens
			}
		}
	}
	if run.Steady.Tokens < surely || run.Steady.Tokens > perhaps {
		t.Errorf("%d tokens in the steady state; the endpoint sent %d to %d in that time", run.Steady.Tokens, surely, perhaps)
	}
	if run.Whole.Tokens != all || all != workers*each*16+300 {
		t.Errorf("%d tokens in the run; the endpoint sent %d", run.Whole.Tokens, all)
	}
	if run.Steady.OutputRate < 1.2*run.Whole.OutputRate {
		t.Errorf("%.4g tok/s in the steady state and %.4g in the whole run: the tail is in both", run.Steady.OutputRate, run.Whole.OutputRate)
	}
	holds(t, run.Broken)
}

// planned is the sink of a closed loop that a test drives itself: a request is wanted when it can be sent.
type planned struct{ *stage }

func (p planned) Append(e bench.Event) {
	if q, ok := e.(*bench.Request); ok {
		q.Planned = q.Start
	}
	p.stage.Append(e)
}

// In an open loop the wait for a free sender is part of the latency. Taken from the start of each request
// latency is 170 ms for all of them, while the last one was late by 1.3 s.
func TestPitfall10(t *testing.T) {
	t.Parallel()
	const n, every = 12, 50 * ms
	s := newStage(t, sim.Scenario{TTFT: 20 * simMS, ITL: 10 * simMS, Tokens: 16})
	s.session.Header.Plan = bench.Plan{Workers: 1, Rate: 20}
	s.Append(&bench.Step{Workers: 1, Barrier: true, Released: s.clock.Now()})
	call, began := s.call(nil), s.clock.Now()
	for i := range n {
		q := &bench.Request{Number: i, Planned: began + time.Duration(i)*every}
		time.Sleep(q.Planned - s.clock.Now())
		call.Do(context.Background(), q, s)
	}
	run := measure.Compute(&s.session, measure.Options{})
	streams := s.streams()
	for i := range run.Requests {
		q := &run.Requests[i]
		tokens := withTokens(streams[s.session.Exchanges[i].Request.Session])
		first, last := tokens[0], tokens[len(tokens)-1]
		came(t, "latency from the plan", q.Latency, s.from(q.Planned, last), slack(q))
		came(t, "TTFT from the plan", q.TTFTPlanned, s.from(q.Planned, first), slack(q))
		came(t, "E2E", q.E2E, s.from(q.Start, last), slack(q))
	}
	end := &run.Requests[n-1]
	if least := measure.Num((n - 1) * (170*ms - every).Seconds()); end.Latency < end.E2E+0.9*least || run.Latency.Max < end.Latency {
		t.Errorf("the last request has a latency of %.3g s (E2E %.3g s, highest of the run %.3g s); the backlog before it was %.3g s",
			end.Latency, end.E2E, run.Latency.Max, least)
	}
	if run.Late < n-1 {
		t.Errorf("%d requests were late; all but the first were", run.Late)
	}
	level(t, run, "schedule_delay", measure.Red)

	session, _ := s.run(t.Context(), runner.Options{Workers: 1, Repeat: 2}, prompt())
	closed := measure.Compute(session, measure.Options{})
	for _, q := range closed.Requests {
		if q.Latency != q.E2E || q.Planned != q.Start {
			t.Errorf("in a closed loop latency %v is not E2E %v", q.Latency, q.E2E)
		}
	}
	if k := line(t, closed, "schedule_delay"); !strings.Contains(k.Value, "closed loop") {
		t.Errorf("the trust panel does not say that the loop was closed: %q", k.Value)
	}
}

// sleepy is a sink that sleeps over the first tokens.
type sleepy struct {
	bench.Sink
	for_ time.Duration
}

func (s *sleepy) Append(e bench.Event) {
	s.Sink.Append(e)
	if _, ok := e.(bench.Chunks); ok && s.for_ > 0 {
		time.Sleep(s.for_)
		s.for_ = 0
	}
}

// A client that is busy must not measure itself. Stamped where they are looked at, the chunks that came
// while the reader of JSON slept bear times more than a second late; and the trust panel is never green
// about a client that came late or had no CPU left.
func TestPitfall11(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"auto", "user"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, sim.Scenario{TTFT: 20 * simMS, ITL: 25 * simMS, Tokens: 50}, func(o *client.Options) { o.Stamps = kind })
			q := &bench.Request{Session: "sleepy"}
			res := s.call(nil).Do(context.Background(), q, &sleepy{s, 2 * time.Second})
			a := s.answer(0, res)
			if len(a.Arrivals) != 50 || len(a.tokens) != 50 {
				t.Fatalf("%d chunks came, %d were sent", len(a.Arrivals), len(a.tokens))
			}
			off := slack(&a.Request)
			if a.Stamp == bench.UserStamp {
				off = 1000 * ms
			}
			for i, w := range a.tokens {
				came(t, fmt.Sprintf("time of chunk %d", i), measure.Num(a.Arrivals[i].At.Seconds()), s.at(w), off)
			}
			for i := range a.exchange.Chunks { // a reader that comes 20 ms late to each read
				if c := &a.exchange.Chunks[i]; c.Kernel != bench.Unset {
					c.User = c.Kernel + 20*ms
				}
			}
			run := measure.Compute(&s.session, measure.Options{})
			level(t, run, "stamp_delay", map[bench.StampKind]measure.Level{bench.KernelStamp: measure.Red, bench.UserStamp: measure.Unknown}[a.Stamp])
			want := measure.Green
			if a.Stamp == bench.UserStamp {
				want = measure.Amber
			}
			level(t, run, "stamp_kind", want)
		})
	}
	t.Run("cpu", func(t *testing.T) {
		t.Parallel()
		s := newStage(t, sim.Scenario{TTFT: 20 * simMS, ITL: 20 * simMS, Tokens: 16})
		session, _ := s.run(t.Context(), runner.Options{}, prompt())
		run := measure.Compute(session, measure.Options{})
		for _, id := range []string{"client_cpu", "gc_pause", "clock_step"} {
			if k := line(t, run, id); k.Level == measure.Unknown {
				t.Errorf("%s was not measured", k.Name)
			}
		}
		for i, sample := range session.Samples { // a client that burns six cores
			sample.CPU = session.Samples[0].CPU + 6*(sample.At-session.Samples[0].At)
			sample.Readers = min(sample.Readers, 1)
			sample.GCPauseP99 = 20 * ms
			session.Samples[i] = sample
		}
		run = measure.Compute(session, measure.Options{})
		level(t, run, "client_cpu", measure.Red)
		level(t, run, "gc_pause", measure.Red)
		if run.Worst != measure.Red {
			t.Errorf("the worst of the trust panel is %s", run.Worst)
		}
	})
}

// Every worker has a connection of its own. A pool that is capped at 100, as that of a well-known library,
// sends the other requests a reply later, and one that keeps two idle connections connects anew each time.
func TestPitfall12(t *testing.T) {
	t.Parallel()
	const workers = 128
	s := newStage(t, sim.Scenario{TTFT: 2000 * simMS, ITL: 5 * simMS, Tokens: 8}, func(o *client.Options) { o.Connections = workers })
	session, out := s.run(t.Context(), runner.Options{Workers: workers, Warmup: -1}, prompt())
	run := measure.Compute(session, measure.Options{})
	if out.OK != workers {
		t.Fatalf("%+v", out)
	}
	streams, connections := s.streams(), map[int64]bool{}
	var edges []edge
	for _, x := range session.Exchanges {
		writes := streams[x.Request.Session]
		connections[writes[0].Conn] = true
		if !x.Request.Warmup {
			edges = append(edges, edge{writes[0].Request, 1}, edge{writes[len(writes)-1].After, -1})
		}
	}
	if n := most(edges); n != workers {
		t.Errorf("the endpoint had %d requests at once, %d were to be", n, workers)
	}
	if len(connections) != workers {
		t.Errorf("%d connections for %d workers", len(connections), workers)
	}
	if n := run.Steps[0].System.InFlightMax; n != workers {
		t.Errorf("%d in flight seen, %d were to be", n, workers)
	}
	level(t, run, "concurrency", measure.Green)
	level(t, run, "reuse", measure.Green)

	capped := newStage(t, sim.Scenario{TTFT: 20 * simMS, ITL: 5 * simMS, Tokens: 8})
	capped.Append(&bench.Step{Workers: 4, Barrier: true, Released: capped.clock.Now()})
	call, free := capped.call(nil), make(chan bool, 2) // the sender lets two through where four are to run
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			free <- true
			call.Do(context.Background(), &bench.Request{Number: i, Worker: i % 4}, planned{capped})
			<-free
		})
	}
	group.Wait()
	run = measure.Compute(&capped.session, measure.Options{})
	level(t, run, "concurrency", measure.Red)
	if k := line(t, run, "concurrency"); k.Value != "2 of 4" {
		t.Errorf("the trust panel says %q of a client that let 2 of 4 through", k.Value)
	}
}

// edge is the beginning or the end of something.
type edge struct {
	at int64
	d  int
}

// most is how many there were at once; of what happens at one instant the ends come first.
func most(edges []edge) int {
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.d, b.d)) })
	n, highest := 0, 0
	for _, e := range edges {
		n += e.d
		highest = max(highest, n)
	}
	return highest
}
