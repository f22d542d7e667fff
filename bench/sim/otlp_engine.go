package sim

import (
	"encoding/json"
	"fmt"
	"time"
)

// emitRecord is one generation record.
type emitRecord struct {
	at         time.Time
	event      string
	session    string
	generation string
	index      int
	body       string
}

// emitEngine is the engine that the emitter stands for, as its metrics see it.
type emitEngine struct {
	instance  string
	model     string
	began     time.Time
	running   int
	prompt    uint64
	generated uint64
	requests  uint64
	first     []uint64 // counts of TTFT by emitBounds
	firstSum  float64
	steps     []uint64 // counts of an exponential histogram of step times from emitOffset on
	stepSum   float64
	stepCount uint64
}

// emitBounds are the buckets of time_to_first_token_seconds.
var emitBounds = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}

// The exponential histogram of step times: scale 0, buckets (2^i, 2^(i+1)] from 2^−20 s on.
const (
	emitScale  = 0
	emitOffset = -20
)

func (e *emitEngine) token(ttft, step float64) {
	e.generated++
	if ttft >= 0 {
		i := 0
		for i < len(emitBounds) && ttft > emitBounds[i] {
			i++
		}
		e.first[i]++
		e.firstSum += ttft
		e.requests++
	}
	if step > 0 {
		i := 0
		for bound := 1.0 / (1 << -(emitOffset + 1)); i < len(e.steps)-1 && step > bound; bound *= 2 {
			i++
		}
		e.steps[i]++
		e.stepSum += step
		e.stepCount++
	}
}

// emitStream is one generation on its way.
type emitStream struct {
	session, generation string
	words               []*token
	began               time.Time
	last                time.Time
	index               int // of the next record: 0 = start
}

// start begins a life of the engine: generations that ran are gone, counters are zero.
func (e *emitter) start() {
	e.engine = &emitEngine{instance: fmt.Sprintf("sim-%d-%d", e.o.Seed, e.counts.Restarts), model: e.o.Model, began: time.Now(),
		first: make([]uint64, len(emitBounds)+1), steps: make([]uint64, 40)}
	e.streams = make([]*emitStream, e.o.Streams)
	e.late = nil
}

// record makes the next record: those of the streams take turns.
func (e *emitter) record(at time.Time) emitRecord {
	slot := e.next % len(e.streams)
	e.next++
	s := e.streams[slot]
	if s == nil {
		n := e.counts.Starts
		e.counts.Starts++
		w := &words{}
		w.addRegime("mixed", e.o.Tokens, int(n), false)
		s = &emitStream{session: fmt.Sprintf("sess-%d-%d", e.o.Seed, n/2), generation: fmt.Sprintf("gen-%d-%d", e.o.Seed, n), words: w.tokens, began: at, last: at}
		e.streams[slot] = s
		e.engine.running++
		e.engine.prompt += 100
		s.index = 1
		return e.made(s, at, 0, "stream_start", `{"role":"assistant"}`, "null", 0)
	}
	i := s.index
	s.index++
	if i <= len(s.words) {
		ttft := -1.0
		if i == 1 {
			ttft = at.Sub(s.began).Seconds()
		}
		e.engine.token(ttft, at.Sub(s.last).Seconds())
		s.last = at
		return e.made(s, at, i, "stream_delta", `{"content":"`+s.words[i-1].escaped+`"}`, "null", i)
	}
	e.streams[slot] = nil
	e.engine.running--
	e.counts.Ends++
	return e.made(s, at, i, "stream_end", "{}", `"stop"`, len(s.words))
}

func (e *emitter) made(s *emitStream, at time.Time, index int, event, delta, finish string, tokens int) emitRecord {
	usage := ""
	if e.o.Usage && tokens > 0 || event == "stream_end" {
		usage = fmt.Sprintf(`,"usage":{"prompt_tokens":100,"completion_tokens":%d,"total_tokens":%d}`, tokens, 100+tokens)
	}
	model, _ := json.Marshal(e.o.Model)
	return emitRecord{at: at, event: event, session: s.session, generation: s.generation, index: index,
		body: fmt.Sprintf(`{"id":"chatcmpl-%s","object":"chat.completion.chunk","created":%d,"model":%s,"choices":[{"index":0,"delta":%s,"finish_reason":%s}]%s}`,
			s.generation, s.began.Unix(), model, delta, finish, usage)}
}
