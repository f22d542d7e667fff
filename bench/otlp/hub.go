package otlp

import (
	"math"
	"strings"
	"sync"
	"time"

	"velo/bench/measure"
	"velo/bench/otlp/decode"
	"velo/bench/otlp/offset"
	"velo/bench/otlp/series"
	"velo/bench/otlp/stream"
)

// hub is the state that records are put into. mu guards all of it. Records hold it for a portion at a
// time; whoever else wants it goes through lock, so that the next portion waits for them.
type hub struct {
	mu       sync.Mutex
	door     sync.Mutex // held by whoever waits for mu and is not a record
	streams  *stream.Table
	series   *series.Table
	join     *offset.Join
	raw      rawRing
	calls    []Call
	dataSeen bool
	lastData time.Duration
	status   time.Duration
	statuses bool
	jumps    []Jump

	scope     *decode.Origin // of the record before: its service need not be made again
	service   string
	estimator *offset.Estimator
}

func newHub(c Config) *hub {
	h := &hub{streams: stream.NewTable(c.Streams), series: series.NewTable(series.Options{}), join: offset.NewJoin()}
	h.raw.resize(c.Raw)
	h.streams.OnStart(func(s *stream.Stream) {
		if at, received, ok := s.Start(); ok {
			k := s.Key()
			h.join.Start(received, k.Conversation, k.Service, at)
		}
	})
	h.streams.OnFirst(func(s *stream.Stream, ttft time.Duration) {
		h.join.ServerTTFT(s.Key().Conversation, measure.Num(ttft.Seconds()))
	})
	return h
}

// lock takes mu, in front of the records that wait for it.
func (h *hub) lock() {
	h.door.Lock()
	h.mu.Lock()
	h.door.Unlock()
}

// letIn gives mu to whoever waits at the door, and takes it again.
func (h *hub) letIn() {
	h.mu.Unlock()
	h.door.Lock()
	h.mu.Lock()
	h.door.Unlock()
}

// from makes the service of an origin known; records of one scope share it.
func (h *hub) from(o *decode.Origin) {
	if o == h.scope {
		return
	}
	name, instance := o.Service()
	if instance != "" {
		name += "/" + instance
	}
	h.scope, h.service = o, decode.Short(name, mostName)
	h.estimator = h.join.Estimator(h.service)
}

func (h *hub) log(received time.Duration, wall int64, o *decode.Origin, l *decode.Log) {
	h.from(o)
	h.raw.log(received, h.service, l)
	if l.Time != 0 && h.estimator != nil {
		h.estimator.Record(int64(l.Time), wall)
	}
	before := h.streams.Counts().Statuses
	h.streams.Log(received, wall, o, l)
	if h.streams.Counts().Statuses != before {
		h.status, h.statuses = received, true
	}
}

func (h *hub) point(received time.Duration, o *decode.Origin, p *decode.Point) {
	h.from(o)
	h.raw.point(received, h.service, p)
	h.series.Point(received, o, p)
}

func (h *hub) span(received time.Duration, o *decode.Origin, s *decode.Span) {
	h.from(o)
	h.raw.span(received, h.service, s)
	if c, ok := callOf(received, h.service, s); ok {
		if len(h.calls) >= mostCalls {
			h.calls = append(h.calls[:0], h.calls[mostCalls/10:]...)
		}
		h.calls = append(h.calls, c)
	}
}

// clear empties the views.
func (h *hub) clear() {
	h.streams.Clear()
	h.series.Clear()
	h.raw.clear()
	h.calls = nil
}

// mostName bounds names that are kept.
const mostName = 256

// mostCalls bounds the requests that came as spans.
const mostCalls = 1000

// Call is one request to a model that came as a span of the semantic conventions for generative AI,
// under their present or their former names.
type Call struct {
	Service      string
	Name         string
	Model        string
	Conversation string
	Received     time.Duration // receiver's time
	Began        int64         // the emitter's, nanoseconds since 1970; 0 = not given
	Duration     measure.Num   // seconds, of the span
	TTFT         measure.Num   // seconds, as the span says
	Queue        measure.Num   // seconds, as the span says
	Prompt       measure.Num   // tokens
	Completion   measure.Num   // tokens
	Finish       string
	Error        string
}

// The attributes of a call; those that were renamed stand beside each other, the present name first.
var (
	callModel      = []string{"gen_ai.response.model", "gen_ai.request.model", "llm.request.model"}
	callSession    = []string{"gen_ai.conversation.id", "session.id", "request.id"}
	callPrompt     = []string{"gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens"}
	callCompletion = []string{"gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens"}
	callTTFT       = []string{"gen_ai.response.time_to_first_chunk", "gen_ai.server.time_to_first_token", "gen_ai.latency.time_to_first_token", "llm.latency.time_to_first_token"}
	callQueue      = []string{"gen_ai.latency.time_in_queue", "llm.latency.time_in_queue"}
	callFinish     = []string{"gen_ai.response.finish_reasons", "gen_ai.response.finish_reason"}
)

func callOf(received time.Duration, service string, s *decode.Span) (Call, bool) {
	known := false
	for _, a := range s.Attributes {
		if strings.HasPrefix(a.Key, "gen_ai.") || strings.HasPrefix(a.Key, "llm.") {
			known = true
			break
		}
	}
	if !known {
		return Call{}, false
	}
	number := func(keys []string) measure.Num {
		for _, k := range keys {
			if v, ok := s.Attributes.Get(k); ok {
				if f, ok := v.Float(); ok && f >= 0 {
					return measure.Num(f)
				}
			}
		}
		return measure.Missing
	}
	c := Call{Service: service, Name: decode.Short(s.Name, mostName), Model: decode.Short(s.Attributes.Text(callModel...), mostName),
		Conversation: decode.Short(s.Attributes.Text(callSession...), mostName), Received: received, Duration: measure.Missing,
		TTFT: number(callTTFT), Queue: number(callQueue), Prompt: number(callPrompt), Completion: number(callCompletion),
		Finish: decode.Short(finishOf(s.Attributes), mostName), Began: int64(min(s.Start, math.MaxInt64))}
	if s.End >= s.Start && s.Start != 0 {
		c.Duration = measure.Num(float64(s.End-s.Start) / 1e9)
	}
	if s.Status == 2 {
		c.Error = decode.Short(s.StatusDetail, 2*mostName)
		if c.Error == "" {
			c.Error = "error"
		}
	}
	return c, true
}

// finishOf is why a call ended: one reason for each choice that was asked for.
func finishOf(a decode.Attributes) string {
	for _, k := range callFinish {
		if v, ok := a.Get(k); ok && v.Kind == decode.List {
			var reasons []string
			for _, x := range v.List() {
				reasons = append(reasons, x.String())
			}
			return strings.Join(reasons, ", ")
		}
	}
	return a.Text(callFinish...)
}
