package server

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"velo/engine/emit"
	"velo/engine/meter"
	"velo/engine/sched"
)

// submit hands a job to the scheduler: a request for each prompt, with as many copies of each as
// are wanted. The streams come in the order of choices. On an error nothing is left running.
func (s *Server) submit(ctx context.Context, cancel context.CancelFunc, j *job, id string) ([]*sched.Stream, *Error) {
	var streams []*sched.Stream
	for _, prompt := range j.prompts {
		r := &sched.Request{ID: id, Prompt: prompt, Boundaries: j.boundaries, Sampling: j.sampling, MaxTokens: j.maxTokens,
			MinTokens: j.minTokens, End: s.o.Engine.EOS, IgnoreEOS: j.ignoreEOS, Top: j.top, Copies: j.copies}
		if j.guide != nil {
			first := j.guide.NewMatcher(s.vocabulary()) // here, since the loop must not wait for it
			r.Guide = func(int) sched.Guide { return first.Clone() }
		}
		if len(j.stops) > 0 {
			r.Watch = func(int) func(int32) bool {
				reader := s.newReader(j)
				return func(id int32) bool {
					_, stop := reader.push(id)
					return stop >= 0
				}
			}
		}
		some, err := s.o.Scheduler.Submit(ctx, r)
		if err != nil {
			cancel()
			drop(streams)
			e := asError(err)
			if e.Code == Busy {
				s.o.Meter.Rejected()
			}
			return nil, e
		}
		streams = append(streams, some...)
	}
	return streams, nil
}

// drop cancels streams that nobody will read.
func drop(streams []*sched.Stream) {
	for _, st := range streams {
		st.Cancel()
	}
}

// arrival is what came of one answer.
type arrival struct {
	answer *answer
	tokens []sched.Token
	more   bool
}

// follow reads all answers as they come and calls take with each arrival, from one goroutine. It
// returns when all have ended, or when take says that nobody listens any more.
func follow(answers []*answer, take func(arrival) bool) {
	if len(answers) == 1 {
		buf := make([]sched.Token, 64)
		for more := true; more; {
			var n int
			n, more = answers[0].stream.Next(buf)
			if !take(arrival{answers[0], buf[:n], more}) {
				answers[0].stream.Cancel()
				return
			}
		}
		return
	}
	arrivals, taken := make(chan arrival), make(chan struct{})
	defer close(taken)
	for _, a := range answers {
		go func() {
			for more := true; more; {
				buf := make([]sched.Token, 64)
				var n int
				n, more = a.stream.Next(buf)
				select {
				case arrivals <- arrival{a, buf[:n], more}:
				case <-taken:
					a.stream.Cancel()
					return
				}
			}
		}()
	}
	for left := len(answers); left > 0; {
		got := <-arrivals
		if !got.more {
			left--
		}
		if !take(got) {
			for _, a := range answers {
				a.stream.Cancel()
			}
			return
		}
	}
}

// serve answers a job: the part that both endpoints share. write makes chunks or the document.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, j *job, f form) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	begin := time.Now()
	streams, e := s.submit(ctx, cancel, j, f.id)
	if e != nil {
		writeError(w, e)
		return
	}
	request := s.o.Meter.Request()
	defer request.Close()
	answers := s.newAnswers(j, streams, f.plain)
	w.Header().Set("X-Request-Id", f.id)
	if j.session != "" {
		w.Header().Set("X-Session-Id", j.session)
	}
	if j.enforced != "" {
		w.Header().Set("X-Json-Schema-Enforced", j.enforced)
	}
	if j.stream {
		s.stream(w, r, j, f, answers)
	} else {
		s.collect(w, r, j, f, answers)
	}
	finish := outcome(answers)
	request.Finish(finish)
	s.logAnswer(j, f, answers, string(finish), begin)
	s.trace(r, j, f, answers, begin)
}

// trace tells the emitter of the answers as spans.
func (s *Server) trace(r *http.Request, j *job, f form, answers []*answer, begin time.Time) {
	if !s.o.Traces {
		return
	}
	for _, a := range answers {
		result := a.stream.Result()
		if result.End.IsZero() {
			result.End = time.Now() // nobody waited for its end
		}
		span := emit.Span{Name: f.span, Request: j.session, Generation: f.generation, Response: f.id, Model: s.o.Model, Stream: j.stream,
			Traceparent: r.Header.Get("Traceparent"), Tracestate: r.Header.Get("Tracestate"), Begin: begin, First: result.First,
			End: result.End, PromptTokens: result.Prompt, CachedTokens: result.Cached, Generated: result.Generated,
			Finish: result.Finish.String(), Tokens: a.times}
		if a.complete > 0 && result.Finish == sched.Stop {
			span.Finish = "tool_calls"
		}
		if result.Finish == sched.Failed {
			span.Error, span.ErrorType = result.Err.Error(), string(GenerationFailed)
		}
		s.o.Emitter.Span(span)
	}
}

// collect answers with one document.
func (s *Server) collect(w http.ResponseWriter, r *http.Request, j *job, f form, answers []*answer) {
	var t total
	documents := make([]document, len(answers))
	follow(answers, func(got arrival) bool {
		a := got.answer
		d := &documents[a.index]
		for _, token := range got.tokens {
			d.add(s, a, a.push(token, s.o.Traces))
		}
		if !got.more {
			d.add(s, a, a.end())
		}
		return true
	})
	for i, a := range answers {
		t.add(a.stream.Result(), i%j.copies == 0)
	}
	if e := s.failure(answers, &t); e != nil {
		if r.Context().Err() == nil {
			writeError(w, e)
		}
		return
	}
	b := f.appendHead(nil, f.object)
	b = append(b, `"choices":[`...)
	for i, a := range answers {
		if i > 0 {
			b = append(b, ',')
		}
		reason, stopReason := a.finish(a.stream.Result(), j.stops)
		b = f.appendChoice(b, a, &documents[i])
		b = append(append(append(b, `,"finish_reason":"`...), reason...), '"')
		if stopReason != nil {
			b = append(append(b, `,"stop_reason":`...), stopReason...)
		}
		b = append(b, '}')
	}
	b = append(b, "],"...)
	b = appendUsage(b, t.prompt, t.cached, t.generated)
	b = t.appendTimings(append(b, ','))
	b = f.appendSession(b, j)
	b = append(b, '}', '\n')
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(s.writeTimeout))
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b)
}

// failure is the error that answers ended with, if one did: an engine that failed, or answers that
// were cancelled without the client's doing.
func (s *Server) failure(answers []*answer, t *total) *Error {
	for _, a := range answers {
		switch r := a.stream.Result(); {
		case r.Finish == sched.Failed:
			why := "the engine failed"
			if r.Err != nil {
				why = strings.TrimPrefix(r.Err.Error(), "cannot go on: ")
			}
			e := fail(GenerationFailed, "", "cannot go on: %s", why)
			e.Generated = t.generated
			return e
		case r.Finish == sched.Cancelled && r.Reason == sched.ReasonBacklog:
			return &Error{Code: GenerationFailed, Generated: t.generated,
				Message: "cannot go on: the client has left too much of the answer unread; read it faster or raise --stream-backlog-events"}
		case r.Finish == sched.Cancelled:
			e := fail(Unavailable, "", "cannot go on: the engine is stopping; start it again")
			e.Generated = t.generated
			return e
		}
	}
	return nil
}

// stream answers with chunks.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, j *job, f form, answers []*answer) {
	out := newEvents(w, s.writeTimeout)
	if !f.plain { // telemetry is of conversations
		out.emitter, out.session, out.generation = s.o.Emitter, j.session, f.generation
	}
	var t total
	var failed *Error
	prompt := 0
	for _, p := range j.prompts {
		prompt += len(p)
	}
	left, tokens := len(answers), 0
	f.usage = func(b []byte) []byte {
		if !j.everyUse {
			return b
		}
		return appendUsage(append(b, ','), prompt, t.cached, tokens)
	}
	for i, a := range answers {
		if f.plain {
			break
		}
		event := emit.Start
		if i > 0 {
			event = emit.Delta
		}
		out.emit(f.chunk(a, `"delta":{"role":"assistant","content":""}`, nil), event)
	}
	_ = out.flush()
	follow(answers, func(got arrival) bool {
		a := got.answer
		for _, token := range got.tokens {
			tokens++
			f.say(s, out, a, a.push(token, s.o.Traces))
		}
		if got.more {
			return out.flush() == nil
		}
		f.say(s, out, a, a.end())
		result := a.stream.Result()
		if result.Finish == sched.Cancelled && r.Context().Err() != nil {
			out.err = context.Cause(r.Context())
			return false
		}
		t.add(result, a.index%j.copies == 0)
		left--
		reason, stopReason := a.finish(result, j.stops)
		if e := s.failure([]*answer{a}, &t); e != nil {
			if failed == nil {
				failed = e
				out.send(e.body())
			}
			reason, stopReason = "stop", nil
		}
		event := emit.Delta
		if left == 0 {
			event = emit.End
		}
		var more []byte
		if left == 0 && !j.usage {
			more = f.appendSession(t.appendTimings([]byte{','}), j)
		}
		out.emit(f.last(a, reason, stopReason, more), event)
		return out.flush() == nil
	})
	if out.err != nil {
		if left > 0 { // the reader has gone; whoever watches learns that it is over
			out.record(f.last(answers[0], "cancelled", nil, nil), emit.End)
		}
		return
	}
	if j.usage && failed == nil {
		b := f.appendHead(nil, f.chunkObject)
		b = appendUsage(append(b, `"choices":[],`...), t.prompt, t.cached, t.generated)
		b = t.appendTimings(append(b, ','))
		b = f.appendSession(b, j)
		out.send(append(b, '}'))
	}
	out.send([]byte("[DONE]"))
	_ = out.flush()
}

// logAnswer logs a line for each request that was answered, or began to be.
func (s *Server) logAnswer(j *job, f form, answers []*answer, finish string, begin time.Time) {
	prompt, cached, generated := 0, 0, 0
	for i, a := range answers {
		r := a.stream.Result()
		if i%j.copies == 0 {
			prompt, cached = prompt+r.Prompt, cached+r.Cached
		}
		generated += r.Generated
	}
	s.o.Log.Info("answered", "request", f.id, "session", j.session, "stream", j.stream, "answers", len(answers), "finish", finish,
		"prompt", prompt, "cached", cached, "generated", generated, "seconds", strconv.FormatFloat(time.Since(begin).Seconds(), 'f', 3, 64))
}

// logPrompt logs the beginning of a prompt where that is wanted.
func (s *Server) logPrompt(id, text string) {
	if s.o.Prompts <= 0 {
		return
	}
	runes := []rune(text)
	s.o.Log.Info("prompt", "request", id, "characters", len(runes), "text", strings.ToValidUTF8(string(runes[:min(len(runes), s.o.Prompts)]), "\uFFFD"))
}

// outcome is how a request ended, as the meter counts it.
func outcome(answers []*answer) meter.Finish {
	finish := meter.Stop
	for _, a := range answers {
		switch r := a.stream.Result(); {
		case r.Finish == sched.Failed:
			return meter.Error
		case r.Finish == sched.Cancelled, r.End.IsZero():
			return meter.Cancelled
		case a.complete > 0 && r.Finish == sched.Stop:
			finish = meter.ToolCalls
		case r.Finish == sched.Length && finish == meter.Stop:
			finish = meter.Length
		}
	}
	return finish
}
