package sim

import (
	"math/rand/v2"
	"time"
)

// Kinds of Write: what a chunk was.
const (
	KindHeaders   = "headers"   // the response headers
	KindRole      = "role"      // a chunk with the role and no text
	KindEmpty     = "empty"     // a chunk with an empty text
	KindReasoning = "reasoning" // tokens of reasoning, in whichever field
	KindContent   = "content"   // tokens of the answer
	KindRefusal   = "refusal"   // tokens of a refusal
	KindTool      = "tool"      // tokens of a tool call
	KindFinish    = "finish"    // a finish reason without text
	KindUsage     = "usage"     // usage alone
	KindDone      = "done"      // [DONE]
	KindComment   = "comment"   // a comment line alone
	KindError     = "error"     // an error event, or an error reply
	KindMalformed = "malformed" // a chunk that is no JSON
	KindTruncated = "truncated" // the part of a chunk before the connection closed
	KindJSON      = "json"      // a reply that is one JSON document
	KindEnd       = "end"       // the end of the chunked body
	KindCancel    = "cancel"    // the client hung up; nothing was sent
)

// segment is a run of output tokens that go to one place.
type segment struct {
	kind   string // KindReasoning, KindContent, KindRefusal or KindTool
	field  string // JSON member of the delta; "" for tools
	tool   int    // index of the tool call
	named  bool   // the first token is the tool's name
	tokens []*token
}

// reply is an answer in the making.
type reply struct {
	*request
	id       string
	created  int64
	plan     schedule
	finish   string
	cached   int
	segments [][]segment // of each choice
	n        int         // tokens of each choice
}

// event is one server-sent event of the body.
type event struct {
	kind   string
	choice int
	tokens int
	due    time.Duration
	end    int // offset in the body behind it
}

// ending is what happens to the connection after the reply.
type ending int

const (
	endKeep ending = iota
	endClose
	endReset
	endHang // stays open and silent
)

// compose words each choice of a reply.
func (r *reply) compose(rng *rand.Rand) {
	s := &r.scenario
	thought := min(s.Reasoning.Tokens, r.n)
	first := rng.IntN(1 << 16)
	for c := range r.choices {
		at := first + c // so that choices differ
		var list []segment
		if thought > 0 {
			field := s.Reasoning.Field
			tagged := field == "think_tags"
			if tagged {
				field = "content"
			}
			words := reasoningWords(s.Reasoning.Tokens, tagged, at)
			list = append(list, segment{kind: KindReasoning, field: field, tokens: words[:thought]})
		}
		rest := r.n - thought
		switch {
		case rest == 0:
		case r.toolCalls() > 0:
			calls := r.toolCalls()
			for i := range calls {
				share := rest/calls + min(1, max(0, rest%calls-i))
				if share == 0 {
					continue
				}
				name, arguments := toolWords(share, r.finish == "stop" || i < calls-1, at+i)
				list = append(list, segment{kind: KindTool, tool: i, named: true, tokens: append([]*token{name}, arguments...)})
			}
		case s.Refusal && r.chat:
			list = append(list, segment{kind: KindRefusal, field: "refusal", tokens: answerWords(s, rest, at)})
		default:
			list = append(list, segment{kind: KindContent, field: "content", tokens: answerWords(s, rest, at)})
		}
		r.segments = append(r.segments, list)
	}
}

// toolCalls is how many tool calls stand in for the answer.
func (r *reply) toolCalls() int {
	switch {
	case !r.chat:
		return 0
	case r.scenario.ToolCalls > 0:
		return r.scenario.ToolCalls
	case r.forceTool:
		return 1
	}
	return 0
}

// take cuts tokens from..to out of the segments of a choice.
func take(list []segment, from, to int) (part []segment) {
	at := 0
	for _, s := range list {
		low, high := max(from-at, 0), min(to-at, len(s.tokens))
		if low < high {
			cut := s
			cut.tokens = s.tokens[low:high]
			cut.named = s.named && low == 0
			part = append(part, cut)
		}
		at += len(s.tokens)
	}
	return part
}

// stream writes all events of a streamed reply into the renderer, and says how
// the connection ends.
func (r *reply) stream(w *renderer) ending {
	s := &r.scenario
	if s.Fault.Kind == "silence" {
		return endHang
	}
	if !(s.Fault.Kind == "error" && s.Fault.After == 0) {
		r.opening(w)
	}
	broken := s.Fault.Kind == ""
	done := 0
	for i, step := range r.plan.steps {
		if !broken && done+step.tokens > s.Fault.After {
			broken = true
			if end, over := r.breakStream(w, step.due, func() { r.textChunks(w, i, done) }); over {
				return end
			}
		}
		r.textChunks(w, i, done)
		done += step.tokens
	}
	if !broken {
		if end, over := r.breakStream(w, r.plan.last(), func() { r.closing(w) }); over {
			return end
		}
	}
	r.closing(w)
	return endKeep
}

// opening is what comes before the first token.
func (r *reply) opening(w *renderer) {
	s := &r.scenario
	start := max(time.Duration(s.HeaderDelay), min(time.Duration(s.RoleAt), r.plan.ttft))
	if s.Role == "" && r.chat {
		for c := range r.choices {
			w.begin()
			w.choice(c, nil, true, true, "")
			w.finish(KindRole, c, 0, start)
		}
	}
	for i := range s.EmptyDeltas {
		wait := r.plan.ttft - start
		due := start + wait*time.Duration(i+1)/time.Duration(s.EmptyDeltas+1)
		w.begin()
		w.choice(0, nil, false, true, "")
		w.finish(KindEmpty, 0, 0, due)
	}
}

// textChunks writes step i of each choice; done tokens came before it.
func (r *reply) textChunks(w *renderer, i, done int) {
	s, step := &r.scenario, r.plan.steps[i]
	last := i == len(r.plan.steps)-1
	for c := range r.choices {
		part := take(r.segments[c], done, done+step.tokens)
		finish := ""
		if last && s.Finish == "content" {
			finish = r.finishReason()
		}
		w.begin()
		w.choice(c, part, s.Role == "every", false, finish)
		w.streamed += step.tokens
		w.finish(part[0].kind, c, step.tokens, step.due)
	}
}

// closing is what comes after the last token.
func (r *reply) closing(w *renderer) {
	s, due := &r.scenario, r.plan.last()
	own := s.Finish == "" || (s.Finish == "content" && r.n == 0)
	if own {
		for c := range r.choices {
			w.begin()
			w.choice(c, nil, s.Role == "every", false, r.finishReason())
			w.finish(KindFinish, c, 0, due)
		}
	}
	switch w.usageMode {
	case "own", "continuous", "null":
		w.begin()
		w.finish(KindUsage, 0, 0, due)
	}
	r.doneEvent(w, due)
}

func (r *reply) doneEvent(w *renderer, due time.Duration) {
	switch r.scenario.Done {
	case "":
		w.raw(KindDone, "[DONE]", due)
	case "spaces":
		w.raw(KindDone, "  [DONE]  ", due)
	}
}

func (r *reply) finishReason() string {
	if r.finish == "stop" && r.toolCalls() > 0 {
		return "tool_calls"
	}
	return r.finish
}

// breakStream does what the fault says at the moment a chunk is due; next
// writes that chunk. over says that the stream ends here.
func (r *reply) breakStream(w *renderer, due time.Duration, next func()) (end ending, over bool) {
	switch r.scenario.Fault.Kind {
	case "error":
		fail := failure{status: 500, kind: "server_error", code: "500", message: "The scripted fault: the engine stopped."}
		w.raw(KindError, string(fail.body()), due)
		r.doneEvent(w, due)
		return endKeep, true
	case "malformed":
		w.raw(KindMalformed, `{"id":"`+r.id+`","choices":[{"index":0,"delta":{"content":"bro`, due)
		return 0, false
	case "truncate":
		first := len(w.events)
		next()
		w.truncate(first)
		return endClose, true
	case "reset":
		w.rest = due
		return endReset, true
	case "hang":
		return endHang, true
	default: // eof
		w.rest = due
		return endKeep, true
	}
}
