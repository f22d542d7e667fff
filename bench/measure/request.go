package measure

import (
	"math"
	"time"

	"velo/bench"
)

// Arrival is one chunk of a request on the request's own clock.
type Arrival struct {
	At      time.Duration // session time c(i), by the request's stamp kind; never falls
	Tokens  int
	Channel bench.Channel
	Read    int32
}

// Request is everything computed from one exchange. Times are in seconds.
type Request struct {
	Number, Step, Worker, Turn int
	Warmup                     bool
	Status                     bench.Status // empty: it still runs, or the session was cut off
	Error                      string
	Class                      string
	Planned, Start, Ended      time.Duration // session time; Ended is when its end was seen; Unset where it was not

	Stamp     bench.StampKind
	ClockStep bool
	Arrivals  []Arrival
	N, N1     int // tokens in all, and in the first chunk
	Answer    int // tokens of the answer channel
	Thought   int // tokens of the reasoning channel
	Unseen    Num // usage's completion tokens − N
	Source    Source
	Counted   string // how the tokens of the chunks were counted: ByContinuous, …
	Prompt    Num    // prompt tokens, by the server
	Cached    Num    // of these, found in a prefix cache

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
	Accepted, Drafted      Num // tokens, by the server
	CacheHit               Num // cached/prompt
	MeanChunk              Num // tokens a chunk after the first; above 1 it is the mean accepted length (estimate)
	ShortGaps              Num // share of short gaps (estimate), Missing when gaps are not in two modes
	Peak                   Num // highest rate over windows of T/⌈T/w⌉
	Rolling                RollingStats
	ICL                    []float64 // gaps in seconds, zero gaps of one read kept
	ZeroGaps               int       // of these, between chunks of one read
	Buffered               bool      // everything at the end, gaps < 0.1 ms
	Broken                 []string  // invariants that do not hold, in words
}

// Measured tells whether the request counts: it is no warm-up.
func (r *Request) Measured() bool { return !r.Warmup }

// Finished tells whether the request ended, and not because the user stopped it.
func (r *Request) Finished() bool { return r.Status != "" && r.Status != bench.Stopped }

// Fails tells whether the request ended other than well or by the user.
func (r *Request) Fails() bool { return r.Finished() && r.Status != bench.OK }

// Options are the choices that change what is computed; the zero value is the default of
// docs/definitions.md.
type Options struct {
	Window time.Duration      // w of the rolling rate; 0 = 1 s; an hour at most
	Tokens bench.TokenCounter // the model's own tokenizer, for requests without bench.Counts; nil = none
}

// Of computes one exchange. An exchange that still runs is computed as far as it got.
func Of(x *bench.Exchange, o Options) Request {
	r := unmeasured()
	q := x.Request
	if q == nil {
		return r
	}
	r.Number, r.Step, r.Worker, r.Turn, r.Warmup = q.Number, q.Step, q.Worker, q.Turn, q.Warmup
	r.Planned, r.Start = q.Planned, q.Start
	r.ScheduleDelay = between(q.Planned, q.Start)
	r.connection(x)
	r.ending(x)
	r.arrive(x, countTokens(x, o.Tokens))
	r.times(x, o.window())
	r.served(x)
	r.Broken = append(r.Broken, r.invariants(x)...)
	return r
}

// unmeasured is a request of which nothing is known.
func unmeasured() Request {
	m := Missing
	return Request{
		Planned: bench.Unset, Start: bench.Unset, Ended: bench.Unset, Stamp: bench.UserStamp,
		Unseen: m, Prompt: m, Cached: m, TTFB: m, TTFT: m, TTFO: m, TTST: m, E2E: m, Close: m, ITL: m,
		TPOT: m, Rate: m, MaxGap: m, Prefill: m, Latency: m, TTFTPlanned: m, ScheduleDelay: m,
		WrittenDelay: m, Acceptance: m, Accepted: m, Drafted: m, CacheHit: m, MeanChunk: m,
		ShortGaps: m, Peak: m, Rolling: statsOf(nil),
	}
}

func (r *Request) connection(x *bench.Exchange) {
	if x.Conn == nil {
		return
	}
	if t := between(r.Start, x.Conn.FirstByte); t >= 0 {
		r.TTFB = t
	}
	if t := between(r.Start, x.Conn.Wrote); t >= 0 {
		r.WrittenDelay = t
	}
}

func (r *Request) ending(x *bench.Exchange) {
	if x.End == nil {
		return
	}
	r.Status, r.Error, r.Class, r.ClockStep = x.End.Status, x.End.Error, x.End.Class, x.End.ClockStep
	r.Ended = x.End.End
	if t := between(r.Start, x.End.Close); t >= 0 {
		r.Close = t
	}
}

// arrive lays the chunks out on the request's clock.
func (r *Request) arrive(x *bench.Exchange, n counts) {
	r.Stamp = stampOf(x)
	r.Source, r.Counted = n.source, n.counted
	if len(x.Chunks) == 0 {
		return
	}
	r.Arrivals = make([]Arrival, len(x.Chunks))
	back, lost := 0, 0
	last := bench.Unset
	for i := range x.Chunks {
		c := &x.Chunks[i]
		at := c.User
		if r.Stamp == bench.KernelStamp {
			at = c.Kernel
		}
		if !known(at) {
			lost++
			at = last
		} else if at < last {
			back++
			at = last
		}
		last = at
		r.Arrivals[i] = Arrival{at, n.tokens[i], c.Channel, c.Read}
		r.N += n.tokens[i]
		if c.Channel.Answer() {
			r.Answer += n.tokens[i]
		} else {
			r.Thought += n.tokens[i]
		}
	}
	r.N1 = n.tokens[0]
	for i := len(r.Arrivals) - 1; i >= 0; i-- { // chunks before the first known time came by then
		if known(r.Arrivals[i].At) {
			last = r.Arrivals[i].At
		}
		r.Arrivals[i].At = last
	}
	if back > 0 {
		r.breaks("the times of %d of its %d chunks go backwards", back, len(x.Chunks))
	}
	if lost > 0 {
		r.breaks("%d of its %d chunks have no time", lost, len(x.Chunks))
	}
}

// times computes what follows from the arrivals alone.
func (r *Request) times(x *bench.Exchange, w time.Duration) {
	a := r.Arrivals
	if len(a) == 0 || !known(a[0].At) {
		return
	}
	first, last := a[0].At, a[len(a)-1].At
	if known(r.Start) && first < r.Start {
		r.breaks("its first chunk is stamped %.3g s before the request started", float64(seconds(r.Start-first)))
	} else {
		r.TTFT, r.E2E = between(r.Start, first), between(r.Start, last)
		r.TTFTPlanned, r.Latency = between(r.Planned, first), between(r.Planned, last)
		for i := range a {
			if a[i].Channel.Answer() {
				r.TTFO = between(r.Start, a[i].At)
				break
			}
		}
	}
	if len(a) > 1 {
		r.TTST = seconds(a[1].At - first)
		r.gaps()
	}
	if decode := seconds(last - first); decode > 0 {
		if after := r.N - r.N1; after > 0 {
			r.Rate = Num(after) / decode
			if r.Source != Estimate {
				r.ITL = decode / Num(after)
			}
			r.Peak = peakRate(a, w)
		}
		if r.N > 1 {
			r.TPOT = decode / Num(r.N-1)
		}
		r.Rolling = statsOf(rolling(a, w))
	}
	if len(a) > 1 && r.Counted != ByLength && r.N > r.N1 {
		r.MeanChunk = Num(r.N-r.N1) / Num(len(a)-1)
	}
	r.Buffered = r.buffered()
}

// gaps computes the list of gaps and what it shows.
func (r *Request) gaps() {
	a := r.Arrivals
	r.ICL = make([]float64, len(a)-1)
	longest := 0.0
	for i := 1; i < len(a); i++ {
		g := float64(seconds(a[i].At - a[i-1].At))
		r.ICL[i-1] = g
		longest = max(longest, g)
		if g == 0 && a[i].Read == a[i-1].Read {
			r.ZeroGaps++
		}
	}
	r.MaxGap = Num(longest)
	if _, share, ok := split(r.ICL); ok {
		r.ShortGaps = Num(share)
	}
}

// A stream counts as buffered when it holds at least bufferedTokens tokens, nine in ten of its gaps
// are below 0.1 ms and all of it came within the last tenth of the request.
const bufferedTokens = 8

func (r *Request) buffered() bool {
	if r.N < bufferedTokens || !r.E2E.Ok() || !(r.E2E > 0) || r.E2E-r.TTFT > r.E2E/10 {
		return false
	}
	if len(r.Arrivals) == 1 {
		return r.N >= 2*bufferedTokens // one chunk; a short call of a tool comes like that from honest servers
	}
	short := 0
	for _, g := range r.ICL {
		if g < burst.Seconds() {
			short++
		}
	}
	return 10*short >= 9*len(r.ICL)
}

// served computes what the server's own counts add.
func (r *Request) served(x *bench.Exchange) {
	if x.End == nil {
		return
	}
	if u := x.End.Usage; u != nil {
		if u.Completion >= 0 && u.Completion <= mostTokens {
			r.Unseen = Num(u.Completion - r.N)
		}
		r.Prompt, r.Cached = counted(u.Prompt), counted(u.Cached)
		if u.Accepted >= 0 && u.Rejected >= 0 && u.Accepted+u.Rejected > 0 {
			r.Accepted, r.Drafted = counted(u.Accepted), counted(u.Accepted+u.Rejected)
		}
	}
	r.PrefillSource = Estimate
	if t := x.End.Timings; t != nil {
		if !r.Prompt.Ok() && t.PromptN >= 0 {
			r.Prompt = counted(t.PromptN + max(0, t.CacheN))
		}
		if !r.Cached.Ok() {
			r.Cached = counted(t.CacheN)
		}
		if !r.Drafted.Ok() && t.DraftN > 0 && t.DraftAccepted >= 0 {
			r.Accepted, r.Drafted = counted(t.DraftAccepted), counted(t.DraftN)
		}
		if t.PromptN > 0 && t.PromptMS > 0 && !math.IsInf(t.PromptMS, 0) {
			r.Prefill, r.PrefillSource = Num(float64(t.PromptN)/(t.PromptMS/1e3)), Server
		}
	}
	if !(r.Accepted <= r.Drafted) {
		r.Accepted, r.Drafted = Missing, Missing
	}
	if r.Drafted > 0 {
		r.Acceptance = r.Accepted / r.Drafted
	}
	if !(r.Cached <= r.Prompt) {
		r.Cached = Missing
	}
	if r.Prompt > 0 {
		r.CacheHit = r.Cached / r.Prompt
	}
	if r.PrefillSource == Estimate && r.TTFT > 0 && r.Prompt.Ok() {
		read := r.Prompt
		if r.Cached.Ok() {
			read -= r.Cached
		}
		if read > 0 {
			r.Prefill = read / r.TTFT
		}
	}
	if !r.Prefill.Ok() {
		r.PrefillSource = ""
	}
}

// counted is a count that a server gave: −1 and what no server can count are Missing.
func counted(n int) Num {
	if n < 0 || n > mostTokens {
		return Missing
	}
	return Num(n)
}
