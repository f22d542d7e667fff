package app

import (
	"context"
	"strings"
	"sync"
	"time"

	"velo/bench"
	"velo/bench/measure"
	"velo/store"
	"velo/ui/console"
)

// The phases of a turn.
const (
	phasePreparing = "preparing"
	phaseWaiting   = "waiting"
	phaseReasoning = "reasoning"
	phaseAnswering = "answering"
)

// chatTurn is the turn that goes on, or the last one. The goroutine that asks it fills it; the window
// looks at it.
type chatTurn struct {
	chat   string
	id     string
	asked  time.Time // by the monotonic clock
	cancel context.CancelFunc
	done   chan struct{} // closed when the turn has been kept

	looking sync.Mutex // held by who looks: the follower is for one at a time

	mu        sync.Mutex
	over      bool
	phase     string
	answer    strings.Builder // texts only grow, so that a string of one stays as it is
	reasoning strings.Builder
	call      strings.Builder
	tags      tagRemover
	live      *measure.Live
	follower  *measure.Follower
	clock     bench.Clock
	start     time.Duration      // t0, by the clock; Unset before
	ended     time.Duration      // by the clock
	took      time.Duration      // in all, once it is over
	last      *measure.Following // once the request has ended
	context   int                // prompt tokens, by the server; 0 = not known
}

// active tells whether a turn of the chat goes on; of any chat when it is empty. A nil turn is none.
func (u *chatTurn) active(chat string) bool {
	if u == nil || chat != "" && u.chat != chat {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.over
}

// begin readies the turn for a request; texts of one that was refused are forgotten.
func (u *chatTurn) begin(clock bench.Clock, number int, think bool) *measure.Live {
	u.looking.Lock()
	defer u.looking.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.live = measure.NewLive(measure.Options{})
	u.follower = u.live.Follow(number)
	u.clock, u.start, u.phase = clock, bench.Unset, phaseWaiting
	u.tags = tagRemover{on: think}
	return u.live
}

// chunks takes texts as they come.
func (u *chatTurn) chunks(list bench.Chunks) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range list {
		c := &list[i]
		switch c.Channel {
		case bench.Reasoning:
			u.phase = phaseReasoning
			u.reasoning.WriteString(u.tags.next(c.Text))
		case bench.Tool:
			u.phase = phaseAnswering
			u.call.WriteString(c.Text)
		default:
			u.phase = phaseAnswering
			u.answer.WriteString(c.Text)
		}
	}
}

// Live implements console.Chats.
func (t *theChats) Live() console.ChatLive {
	t.mu.Lock()
	u := t.turn
	t.mu.Unlock()
	none := measure.Missing
	if u == nil {
		return console.ChatLive{Snapshot: measure.Snapshot{Rate: none, Median: none, Min: none, Max: none, TTFT: none, TTFTMedian: none, MaxGap: none},
			GapP50: none, GapP90: none, GapMax: none, TTFT: none, TTFO: none}
	}
	return u.look()
}

// look is the state of the turn.
func (u *chatTurn) look() console.ChatLive {
	u.looking.Lock()
	defer u.looking.Unlock()
	u.mu.Lock()
	o := console.ChatLive{
		Active: !u.over, ChatID: u.chat, TurnID: u.id, Phase: u.phase,
		Answer: u.answer.String(), Reasoning: u.reasoning.String(), Call: u.call.String(),
	}
	live, follower, last := u.live, u.follower, u.last
	o.Context = u.context
	now, start := u.ended, u.start
	switch {
	case u.over:
		o.Elapsed = u.took
	case live != nil:
		if now = u.clock.Now(); start != bench.Unset {
			o.Elapsed = now - start
		}
	default:
		o.Elapsed = time.Since(u.asked)
	}
	u.mu.Unlock()
	none := measure.Missing
	o.GapP50, o.GapP90, o.GapMax, o.TTFT, o.TTFO = none, none, none, none, none
	o.Snapshot = measure.Snapshot{Rate: none, Median: none, Min: none, Max: none, TTFT: none, TTFTMedian: none, MaxGap: none}
	if live != nil {
		o.Snapshot = live.Snapshot(now)
		f := follower.Now()
		o.Gaps, o.GapCounts = follower.Gaps()
		if last != nil { // it has ended: what was computed from all of it counts
			f = *last
		}
		o.AnswerTokens, o.ReasoningTokens, o.Source = f.Answer, f.Thought, f.Source
		o.GapP50, o.GapP90, o.GapMax, o.TTFT, o.TTFO = f.GapP50, f.GapP90, f.GapMax, f.TTFT, f.TTFO
	}
	return o
}

// StopChat implements console.Chats.
func (t *theChats) StopChat() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.turn.active("") {
		t.turn.cancel()
	}
}

// tagRemover takes <think> and </think> out of thoughts that come in pieces.
type tagRemover struct {
	on   bool
	held string // the beginning of what may become a tag
}

var thinkTags = []string{"<think>", "</think>"}

func (r *tagRemover) next(text string) string {
	if !r.on || r.held == "" && strings.IndexByte(text, '<') < 0 {
		return text
	}
	text = r.held + text
	for _, tag := range thinkTags {
		text = strings.ReplaceAll(text, tag, "")
	}
	r.held = ""
	if i := strings.LastIndexByte(text, '<'); i >= 0 {
		for _, tag := range thinkTags {
			if strings.HasPrefix(tag, text[i:]) {
				text, r.held = text[:i], text[i:]
				break
			}
		}
	}
	return text
}

// chatSink takes the events of one request of a turn. They are recorded from its first text on: a
// request that the server refuses for one of its parameters is not part of the session, the note is that
// says so.
type chatSink struct {
	turn    *chatTurn
	rec     *store.Recorder
	told    bench.Sink // the receiver of telemetry: it joins the request with what the engine tells
	live    *measure.Live
	step    *bench.Step
	x       bench.Exchange // without its chunks: live has them
	result  *measure.Request
	held    []bench.Event
	through bool
}

func (s *chatSink) Append(e bench.Event) {
	s.told.Append(e)
	switch e := e.(type) {
	case *bench.Request:
		e.Planned = e.Start
		s.step.Released = e.Start
		s.x.Request = e
		s.turn.mu.Lock()
		s.turn.start = e.Start
		s.turn.mu.Unlock()
		s.live.Append(s.step)
		s.live.Append(e)
		s.held = append(s.held, s.step, e)
		return
	case *bench.Conn:
		s.x.Conn = e
	case bench.Chunks:
		s.turn.chunks(e)
		s.pass()
	case *bench.End:
		s.x.End = e
	}
	if !s.through {
		s.held = append(s.held, e)
		return
	}
	s.live.Append(e)
	s.rec.Append(e)
}

// computed is the request as far as it got.
func (s *chatSink) computed() *measure.Request {
	if s.result == nil { // it never began, or never ended: nothing of it came
		r := measure.Of(&s.x, measure.Options{})
		s.result = &r
	}
	return s.result
}

// pass lets what was held go to the session, and everything that follows.
func (s *chatSink) pass() {
	if s.through {
		return
	}
	s.through = true
	for _, e := range s.held {
		s.rec.Append(e)
		switch e.(type) {
		case *bench.Conn, *bench.End:
			s.live.Append(e)
		}
	}
	s.held = nil
}
