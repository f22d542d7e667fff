package runner

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"velo/bench"
	"velo/bench/client"
	"velo/bench/suite"
)

// A turn is a request that is ready to be sent.
type turn struct {
	request *bench.Request
	call    *client.Call
	message client.Message // what the worker says in it
	salted  bool
	ended   client.Result
}

// step runs a stage once, or its warm-up: everything is prepared, released together, and waited for. It
// tells whether a request failed. The error is ctx's, or a *failure by the policy to stop.
func (r *run) step(ctx context.Context, st stage, repetition int, warmup bool) (failed bool, err error) {
	phase := Preparing
	r.report.phase(phase, st.section, st.Name())
	turns, err := r.prepare(ctx, st, repetition, warmup)
	if err != nil {
		return false, err
	}
	number := r.steps
	r.steps++
	for _, queue := range turns {
		for _, t := range queue {
			t.request.Number, t.request.Step = r.requests, number
			t.request.Session = r.session(r.requests)
			r.requests++
		}
	}
	stepCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	phase = Running
	if warmup {
		phase = WarmingUp
	}
	r.report.phase(phase, st.section, st.Name())
	var (
		ready, done sync.WaitGroup
		gate        = make(chan struct{})
		mu          sync.Mutex
		cause       *failure
	)
	for _, queue := range turns {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-gate
			for _, t := range queue {
				t.ended = r.send(stepCtx, t)
				if !fails(t.ended.End) {
					continue
				}
				mu.Lock()
				failed = true
				if cause == nil && r.o.Failure == bench.FailureStop {
					where := fmt.Sprintf("step %q, worker %d", st.Name(), t.request.Worker+1)
					if warmup {
						where += ", warm-up"
					}
					cause = &failure{fmt.Sprintf("the run ended at the first failure (%s): %s", where, why(t.ended.End))}
				}
				mu.Unlock()
				if r.o.Failure != bench.FailureContinue {
					cancel()
				}
			}
		})
	}
	ready.Wait()
	release := &bench.Step{
		Number: number, Index: st.index, Repetition: repetition, Section: st.section, Title: st.Name(), Kind: st.Type,
		Workers: len(turns), Warmup: warmup, Barrier: true, Depth: st.Depth, PP: st.PP, TG: st.TG,
		Released: r.o.Clock.Now(),
	}
	r.events.Append(release)
	close(gate)
	done.Wait()

	if !warmup {
		r.remember(st, turns)
	}
	if err := ctx.Err(); err != nil {
		return failed, err
	}
	if cause != nil {
		return failed, cause
	}
	return failed, nil
}

// send does one request, from its release to its end.
func (r *run) send(ctx context.Context, t *turn) client.Result {
	w := r.report.worker(t.request)
	res := t.call.Do(ctx, t.request, &stream{r.events, w})
	w.ended(res.End)
	return res
}

// stream is the sink of one request. It belongs to the goroutine that follows it.
type stream struct {
	events *fanIn
	worker *worker
}

func (s *stream) Append(e bench.Event) {
	switch e := e.(type) {
	case *bench.Request:
		e.Planned = e.Start // a closed loop wants a request when it can be sent
	case bench.Chunks:
		s.worker.streams()
	}
	s.events.Append(e)
}

// fails tells whether a request did not give what was asked of it, other than by being stopped.
func fails(e *bench.End) bool { return e.Status != bench.OK && e.Status != bench.Stopped }

// why says in words how a request failed.
func why(e *bench.End) string {
	if e.Error != "" {
		return e.Error
	}
	switch e.Status {
	case bench.Empty:
		return "the answer had no token"
	case bench.Truncated:
		return "the stream ended in the middle of the answer"
	case bench.NotStreaming:
		return "the server answered with one document in place of a stream"
	case bench.TimedOut:
		return "the request took too long"
	}
	return string(e.Status)
}

// remember adds what was said to each worker's conversation. A turn that did not end well is not part of
// it: the next one is asked as if it had never been.
func (r *run) remember(st stage, turns [][]*turn) {
	for w, queue := range turns {
		for _, t := range queue {
			if t.ended.End == nil || t.ended.End.Status != bench.OK {
				continue
			}
			if st.Reasoning == "" {
				r.thoughts.add(t.ended)
			}
			if st.Reasoning == suite.ReasoningOff && t.ended.Reasoning != "" {
				r.note("The model thought in step %q although the suite turns reasoning off: the server does not honour it.", st.Name())
			}
			if st.Type != suite.Bench {
				r.conversations[w].answered(t.message, t.ended.Answer, t.salted)
			}
		}
	}
}

// prepare makes the requests of a step, a queue for each worker: as many as the step says, one after
// another. Those of a warm-up are spread over the workers in turn.
func (r *run) prepare(ctx context.Context, st stage, repetition int, warmup bool) ([][]*turn, error) {
	total := r.o.Workers * st.PerWorker()
	if warmup {
		total = r.o.Warmup
	}
	turns := make([][]*turn, min(total, r.o.Workers))
	for i := range total {
		w := i % r.o.Workers
		turns[w] = append(turns[w], nil)
	}
	// Counting at the server takes a round trip each, so some are made at once. What they become does
	// not depend on the order.
	var group sync.WaitGroup
	var once sync.Once
	var failed error
	places := make(chan place)
	for range min(total, max(4, runtime.GOMAXPROCS(0)), 8) {
		group.Go(func() {
			for p := range places {
				t, err := r.compose(ctx, st, p)
				if err != nil {
					once.Do(func() { failed = err })
					continue
				}
				turns[p.worker][p.wave] = t
			}
		})
	}
	for i := range total {
		places <- place{repetition: repetition, index: st.index, worker: i % r.o.Workers, wave: i / r.o.Workers, warmup: warmup}
	}
	close(places)
	group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, &failure{failed.Error()}
	}
	return turns, nil
}

// compose makes one request: the worker's conversation so far, and what the step adds to it.
func (r *run) compose(ctx context.Context, st stage, p place) (*turn, error) {
	talk := &r.conversations[p.worker]
	if st.Type == suite.Bench {
		talk = &conversation{}
	}
	alone := len(talk.messages) == 0
	t := &turn{message: client.Message{Role: "user"}}
	q := &bench.Request{Worker: p.worker, Turn: talk.turns, Warmup: p.warmup}
	t.request = q
	switch st.Type {
	case suite.Prompt:
		t.message.Content = st.Text
	case suite.Image:
		img := r.pictures[st.Image]
		t.message.Content, t.message.Images = first(st.Step.Prompt, suite.DefaultImagePrompt), []client.Image{img}
		q.Images = []string{img.Name}
	default:
		text, salted, source, err := r.fill(ctx, st, p, alone)
		if err != nil {
			return nil, err
		}
		t.message.Content, t.salted = text, salted
		q.Fill = source
		if alone {
			q.AskedPrompt = st.Fill() // with a history before it, the length of the whole is not aimed at
		}
	}
	fill := st.Fill() > 0
	q.Prompt = excerpt(t.message.Content, fill)
	if alone && !fill {
		t.message.Content, t.salted = r.salt(p)+t.message.Content, true
	}

	chat := client.Chat{Model: r.o.Model, Temperature: r.o.Suite.Temperature}
	salt := ""
	if p.warmup && r.o.Prefix == bench.PrefixSalted {
		salt = r.salt(p)
	}
	chat.Messages = talk.extended(t.message, salt)
	tokens := r.o.Suite.OutputLimit(st.Step)
	if p.warmup && (tokens == 0 || tokens > WarmupOutput) {
		tokens = WarmupOutput
	}
	r.adapt(&chat, tokens)
	r.defaults(&chat, st, tokens)
	allowed := func(field string) bool { return !r.rules.refused[field] }
	if st.Exact() {
		if allowed("min_tokens") {
			chat.MinTokens = tokens
		}
		chat.IgnoreEOS = allowed("ignore_eos")
		q.ExactOutput = chat.MinTokens > 0 && chat.IgnoreEOS
	}
	chat.ContinuousUsage = r.o.ContinuousUsage && allowed("continuous_usage_stats")
	call, err := r.o.Client.Prepare(chat)
	if err != nil {
		return nil, err
	}
	t.call = call
	q.AskedOutput, q.PromptBytes, q.Parameters = tokens, call.Bytes(), call.Parameters()
	return t, nil
}

// session is the X-Session-Id of a request: unique, and sorted like the requests.
func (r *run) session(number int) string {
	if number < 0 {
		return "velo-" + r.o.Header.ID + "-probe"
	}
	return fmt.Sprintf("velo-%s-%06d", r.o.Header.ID, number)
}
