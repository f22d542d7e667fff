package server

import (
	"math"
	"strconv"
	"strings"
	"time"

	"velo/engine/chat"
	"velo/engine/sched"
)

// answer is one answer while it comes.
type answer struct {
	index    int
	stream   *sched.Stream
	reader   *reader
	parser   *chat.Parser // nil for a plain completion
	logprobs logprobs     // of tokens whose text is not out yet
	begun    *callStream  // of a stream: calls that are not complete yet
	calls    int          // indices given to calls
	complete int          // calls that are complete
	stop     int          // index of the stop string that ended it, else -1
	tokens   int
	times    []time.Time // of tokens, where somebody wants them
	pieces   []chat.Piece
	over     bool // a stop string was met: what still comes is nobody's
}

// newAnswers has an answer for each stream of a job.
func (s *Server) newAnswers(j *job, streams []*sched.Stream, plain bool) []*answer {
	answers := make([]*answer, len(streams))
	for i, st := range streams {
		a := &answer{index: i, stream: st, reader: s.newReader(j), stop: -1}
		if !plain {
			a.parser = chat.NewParser(j.style)
		}
		if j.stream && !plain {
			a.begun = newCallStream(j.style)
		}
		a.logprobs = logprobs{server: s, want: j.top, plain: plain}
		answers[i] = a
	}
	return answers
}

// push takes a token and returns what is known to be said now; valid until the next call.
func (a *answer) push(t sched.Token, keepTimes bool) []chat.Piece {
	if a.over {
		return nil
	}
	a.tokens++
	if keepTimes {
		a.times = append(a.times, t.At)
	}
	text, stop := a.reader.push(t.ID)
	a.logprobs.add(t, a.reader.end)
	if stop >= 0 {
		a.stop, a.over = stop, true
	}
	return a.say(text, false)
}

// end returns what was held back until the answer's end.
func (a *answer) end() []chat.Piece {
	if a.over {
		return a.say("", true)
	}
	text, stop := a.reader.flush()
	if stop >= 0 {
		a.stop = stop
	}
	a.over = true
	return a.say(text, true)
}

func (a *answer) say(text string, end bool) []chat.Piece {
	a.pieces = a.pieces[:0]
	if a.parser == nil {
		if text != "" {
			a.pieces = append(a.pieces, chat.Piece{Kind: chat.Text, Text: text})
		}
		return a.pieces
	}
	if a.begun != nil {
		a.begun.push(text)
	}
	if text != "" {
		a.pieces = append(a.pieces, a.parser.Push(text)...)
	}
	if end {
		a.pieces = append(a.pieces, a.parser.Flush()...)
	}
	return a.pieces
}

// finish is the finish reason, and the stop reason as JSON where there is one.
func (a *answer) finish(r sched.Result, stops []string) (reason string, stopReason []byte) {
	switch {
	case r.Finish == sched.Length:
		return "length", nil
	case r.Reason == sched.ReasonLoop:
		return "stop", []byte(`"loop_detected"`)
	case a.complete > 0 && r.Finish == sched.Stop:
		return "tool_calls", nil
	case a.stop >= 0:
		return "stop", quoted(stops[a.stop])
	}
	return "stop", nil
}

// total sums up the answers of one request.
type total struct {
	prompt, cached, generated int
	admitted, first, end      time.Time
	failure                   error
}

func (t *total) add(r sched.Result, firstOfPrompt bool) {
	if firstOfPrompt {
		t.prompt += r.Prompt
		t.cached += r.Cached
	}
	t.generated += r.Generated
	earlier := func(a *time.Time, b time.Time) {
		if !b.IsZero() && (a.IsZero() || b.Before(*a)) {
			*a = b
		}
	}
	earlier(&t.admitted, r.Admitted)
	earlier(&t.first, r.First)
	if r.End.After(t.end) {
		t.end = r.End
	}
	if r.Finish == sched.Failed && t.failure == nil {
		t.failure = r.Err
	}
}

// appendUsage writes usage as OpenAI has it.
func appendUsage(b []byte, prompt, cached, generated int) []byte {
	b = append(b, `"usage":{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(prompt), 10)
	b = append(b, `,"completion_tokens":`...)
	b = strconv.AppendInt(b, int64(generated), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(prompt+generated), 10)
	b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
	b = strconv.AppendInt(b, int64(cached), 10)
	return append(b, "}}"...)
}

// appendTimings writes llama.cpp's timings: the prompt from its admission to the first token, the
// answer from there to its end. cache_n tokens of the prompt were not computed.
func (t *total) appendTimings(b []byte) []byte {
	computed := max(0, t.prompt-t.cached)
	prompt := milliseconds(t.admitted, t.first)
	predicted := milliseconds(t.first, t.end)
	b = append(b, `"timings":{"cache_n":`...)
	b = strconv.AppendInt(b, int64(t.cached), 10)
	part := func(name string, n int, ms float64) {
		b = append(b, `,"`+name+`_n":`...)
		b = strconv.AppendInt(b, int64(n), 10)
		b = append(b, `,"`+name+`_ms":`...)
		b = appendRounded(b, ms)
		b = append(b, `,"`+name+`_per_token_ms":`...)
		b = appendRounded(b, ratio(ms, float64(n)))
		b = append(b, `,"`+name+`_per_second":`...)
		b = appendRounded(b, ratio(1000*float64(n), ms))
	}
	part("prompt", computed, prompt)
	part("predicted", t.generated, predicted)
	return append(b, '}')
}

func milliseconds(from, to time.Time) float64 {
	if from.IsZero() || to.Before(from) {
		return 0
	}
	return float64(to.Sub(from)) / 1e6
}

// appendRounded writes a number with as many digits as a clock has.
func appendRounded(b []byte, v float64) []byte {
	return strconv.AppendFloat(b, math.Round(v*1e4)/1e4, 'f', -1, 64)
}

// ratio is 0 where nothing was counted or timed.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// document is an answer as a whole, for a request that does not stream.
type document struct {
	content, reasoning strings.Builder
	calls              []byte // tool_calls as JSON, without the brackets
}
