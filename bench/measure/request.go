package measure

import (
	"time"

	"velo/bench"
)

// Arrival is one chunk of a request on the request's own clock.
type Arrival struct {
	At      time.Duration // session time c(i), by the request's stamp kind
	Tokens  int
	Channel bench.Channel
	Read    int32
}

// Request is everything computed from one exchange. Times are in seconds.
type Request struct {
	Number, Step, Worker, Turn int
	Warmup                     bool
	Status                     bench.Status
	Error                      string
	Class                      string

	Stamp    bench.StampKind
	Arrivals []Arrival
	N, N1    int // tokens in all, and in the first chunk
	Answer   int // tokens of the answer channel
	Thought  int // tokens of the reasoning channel
	Unseen   Num // usage's completion tokens − N
	Source   Source
	Prompt   Num // prompt tokens, by the server
	Cached   Num // of these, found in a prefix cache

	TTFB, TTFT, TTFO, TTST Num
	E2E, Close             Num // cm − t0; stream close − t0
	ITL                    Num // mean, (cm − c1)/(N − n1); Missing where tokens(i) is an estimate
	TPOT                   Num // (cm − c1)/(N − 1)
	Rate                   Num // decode rate, (N − n1)/(cm − c1)
	MaxGap                 Num
	Prefill                Num // tokens/s
	PrefillSource          Source
	Latency, TTFTPlanned   Num // from planned; equal to E2E and TTFT in closed loop
	ScheduleDelay          Num // start − planned
	WrittenDelay           Num // request written − start
	Acceptance             Num // accepted/drafted, from server counters only
	CacheHit               Num // cached/prompt
	MeanChunk              Num // tokens a chunk: mean accepted length (estimate) where it is > 1
	ShortGaps              Num // share of short gaps (estimate), Missing when gaps are not in two modes
	Peak                   Num // highest rate over windows of T/⌈T/w⌉
	Rolling                RollingStats
	ICL                    []float64 // gaps in seconds, zero gaps of one read kept
	ZeroGaps               int
	Buffered               bool     // everything at the end, gaps < 0.1 ms
	Broken                 []string // invariants that do not hold, in words
}

// Options are the choices that change what is computed; the zero value is the default of
// docs/definitions.md.
type Options struct {
	Window time.Duration      // w of the rolling rate; 0 = 1 s
	Tokens bench.TokenCounter // the model's own tokenizer; nil = none
}

// Of computes one exchange. An exchange that still runs is computed as far as it got.
func Of(x *bench.Exchange, o Options) Request { return Request{} }
