// Package bench holds what a measurement leaves behind: the raw events of a session, the only truth
// that is stored. Everything else (rates, percentiles, reports, charts) is computed from them, in
// package measure, and can be computed again by a later version.
//
// The packages below it produce events (client, runner), compute with them (measure, regime,
// report) or generate them in a known way (sim). None of them needs a window or a database: where
// they need something from outside, this package declares it as a small interface.
package bench

import (
	"encoding/json"
	"time"
)

// Unset marks a time that was not measured. It is shown as a dash, never as zero.
const Unset = time.Duration(-1 << 63)

// An Event is one record of a session's append-only log: *Header, *Step, *Request, *Conn, Chunks,
// *Counts, *End, *Sample, *Note or *Finish. Times are monotonic, in nanoseconds since the anchor of the
// session (Header.Anchor), unless the field says otherwise.
type Event interface{ event() }

// A Sink takes the events of a session as they happen. Append must not block for long: it is called
// by the goroutines that follow streams (never by the one that stamps). Events of one request come
// in order; those of different requests interleave.
type Sink interface {
	Append(Event)
}

// Header opens a session: what is measured, how, where and with which program.
type Header struct {
	Schema      int             `json:"schema"` // of the events; see SchemaVersion
	ID          string          `json:"id"`     // sortable by time, unique; NewID makes one
	Anchor      time.Time       `json:"anchor"` // wall clock at monotonic zero
	Title       string          `json:"title"`
	Endpoint    Endpoint        `json:"endpoint"`
	Suite       json.RawMessage `json:"suite,omitempty"` // the suite file as run
	Plan        Plan            `json:"plan"`
	Environment Environment     `json:"environment"`
	Drawing     string          `json:"drawing"` // what the window did meanwhile: DrawingNone, DrawingQuiet or DrawingLive
}

// SchemaVersion is the version of the events that this program writes.
const SchemaVersion = 1

// What a window did while the session was measured.
const (
	DrawingNone  = "none"  // no window
	DrawingQuiet = "quiet" // at most one redraw a second
	DrawingLive  = "live"  // charts and numbers as they come
)

// Endpoint is what was measured. It never holds a key.
type Endpoint struct {
	Name    string `json:"name,omitempty"` // the user's name for it
	URL     string `json:"url"`            // base URL, with the /v1; user info removed
	Model   string `json:"model"`
	OwnedBy string `json:"owned_by,omitempty"` // as /models says
	Server  string `json:"server,omitempty"`   // Server response header
	BuiltIn bool   `json:"built_in,omitempty"` // the scripted endpoint of this program: not a real model
}

// Plan is how the suite was run.
type Plan struct {
	Workers  int     `json:"workers"`           // concurrent streams asked for
	Repeat   int     `json:"repeat"`            // repetitions of the whole suite
	Seed     int64   `json:"seed"`              // of fills, salts and order
	Prefix   string  `json:"prefix"`            // PrefixSalted or PrefixShared
	Failure  string  `json:"failure"`           // FailureStop, FailureSkip or FailureContinue
	Warmup   int     `json:"warmup"`            // requests before each measured step, not counted in request metrics
	Protocol string  `json:"protocol"`          // "http/1.1" or "h2"
	SLO      []SLO   `json:"slo,omitempty"`     // objectives that each request, or the run, must meet
	Channel  string  `json:"channel,omitempty"` // "think-tags" where inline <think> is split off
	Timeouts Timeout `json:"timeouts"`          // limits in force
	Rate     float64 `json:"rate,omitempty"`    // requests a second, open loop; 0 = closed loop
}

// How prompts begin.
const (
	PrefixSalted = "salted" // every prompt starts with its own nonce, so that no prefix cache can help
	PrefixShared = "shared" // prompts of a step start alike: the warm-prefix mode
)

// What a failed request does to the run.
const (
	FailureStop     = "stop"     // the run ends
	FailureSkip     = "skip"     // the rest of that step (all workers, this repetition) is left out
	FailureContinue = "continue" // the failure is recorded, everything else goes on
)

// Timeout holds the limits of a request; zero means none.
type Timeout struct {
	Connect   time.Duration `json:"connect"`
	FirstByte time.Duration `json:"first_byte"`
	Idle      time.Duration `json:"idle"` // between two reads
	Total     time.Duration `json:"total"`
}

// SLO is one objective, as `--slo ttft_p95=200ms` gives it.
type SLO struct {
	Metric   string  `json:"metric"`             // ttft, ttfo, itl, tpot, e2e, rate, goodput or error_rate
	Quantile float64 `json:"quantile,omitempty"` // 0.95; 0 = each request must meet it
	Bound    float64 `json:"bound"`              // seconds, tokens/s, requests/s or a fraction, by the metric
}

// Environment is the machine that measured.
type Environment struct {
	Velo     string            `json:"velo"` // version
	Go       string            `json:"go"`
	OS       string            `json:"os"` // linux/amd64
	Kernel   string            `json:"kernel,omitempty"`
	Host     string            `json:"host,omitempty"`
	CPU      string            `json:"cpu,omitempty"`
	Cores    int               `json:"cores"`
	MemoryGB float64           `json:"memory_gb,omitempty"` // GiB
	Governor string            `json:"governor,omitempty"`  // CPU frequency governor
	Extra    map[string]string `json:"extra,omitempty"`
}

// Step says that a step of the suite begins: its requests are prepared and about to be released
// together at Released.
type Step struct {
	Number     int           `json:"number"`     // 0, 1, … over the whole session, repetitions included
	Index      int           `json:"index"`      // of the step in the suite file, from 0
	Repetition int           `json:"repetition"` // from 0
	Section    string        `json:"section"`
	Title      string        `json:"title"`
	Kind       string        `json:"kind"`    // prompt, context, bench or image
	Workers    int           `json:"workers"` // streams released together: the target of in-flight
	Warmup     bool          `json:"warmup,omitempty"`
	Barrier    bool          `json:"barrier"` // the step drains before the next begins
	Released   time.Duration `json:"released"`
	Depth      int           `json:"depth,omitempty"` // bench steps: tokens before the prompt
	PP         int           `json:"pp,omitempty"`    // bench steps: prompt tokens
	TG         int           `json:"tg,omitempty"`    // tokens to generate, 0 = as the model likes
}

// Request says that a request starts.
type Request struct {
	Number      int             `json:"number"` // of the request in the session, from 0
	Step        int             `json:"step"`   // Step.Number
	Worker      int             `json:"worker"`
	Turn        int             `json:"turn"` // of the worker's conversation, from 0
	Warmup      bool            `json:"warmup,omitempty"`
	Session     string          `json:"session"`                // X-Session-Id, joins a server's telemetry
	Planned     time.Duration   `json:"planned"`                // when the schedule wanted it sent
	Start       time.Duration   `json:"start"`                  // t0: just before the request is handed to the connection pool
	AskedPrompt int             `json:"asked_prompt,omitempty"` // prompt tokens aimed at; 0 = no aim
	AskedOutput int             `json:"asked_output,omitempty"` // max_tokens; 0 = no limit sent
	ExactOutput bool            `json:"exact_output,omitempty"` // ignore_eos and min_tokens were sent
	Fill        string          `json:"fill,omitempty"`         // how a fill's length is known: "tokenizer", "server" or "estimate"
	Prompt      string          `json:"prompt,omitempty"`       // the last user message; fills are shortened in the middle
	PromptBytes int             `json:"prompt_bytes"`           // of all messages as sent
	Images      []string        `json:"images,omitempty"`       // names
	Parameters  json.RawMessage `json:"parameters,omitempty"`   // the body without its messages
}

// Conn is what the connection of a request did. Phases are durations, Unset where they did not
// happen (a reused connection has no DNS, Connect and TLS).
type Conn struct {
	Request   int           `json:"request"`
	Reused    bool          `json:"reused"`
	Remote    string        `json:"remote,omitempty"`
	DNS       time.Duration `json:"dns"`
	Connect   time.Duration `json:"connect"`
	TLS       time.Duration `json:"tls"`
	Wrote     time.Duration `json:"wrote"`      // time when the request had been written
	FirstByte time.Duration `json:"first_byte"` // time of the first response byte: kernel stamp if there is one, else the read's return
	Status    int           `json:"status"`     // HTTP status, 0 = none came
	Server    string        `json:"server,omitempty"`
}

// Channel is where a chunk's text belongs.
type Channel uint8

// The channels. Content, Refusal and Tool make up the answer; Reasoning is the other one.
const (
	Content Channel = iota
	Reasoning
	Refusal
	Tool
)

func (c Channel) String() string {
	return [...]string{"content", "reasoning", "refusal", "tool"}[c&3]
}

// Answer tells whether the channel is part of the answer.
func (c Channel) Answer() bool { return c != Reasoning }

// Chunk is one stream event that carries text. An event that carries text of two channels becomes
// two chunks with the same read and stamps.
type Chunk struct {
	Request int
	Read    int32         // number of the socket read, within the request, that completed the event
	User    time.Duration // return of that read
	Kernel  time.Duration // when the kernel received its last segment; Unset where it does not say
	Channel Channel
	Usage   int32 // completion tokens so far, by continuous usage; -1 = the event had none
	Exact   int32 // tokens of this chunk by logprobs or token ids; -1 = the event had none
	Text    string
}

// Chunks are consecutive chunks of one request.
type Chunks []Chunk

// Counts are the tokens of a request's chunks as the model's own tokenizer counts them. They come
// before the request's End, so that a report needs no tokenizer.
type Counts struct {
	Request   int     `json:"request"`
	Tokenizer string  `json:"tokenizer"` // TokenCounter.Name
	Tokens    []int32 `json:"tokens"`    // of each chunk, in order
}

// Status is how a request ended.
type Status string

// The statuses of a request.
const (
	OK           Status = "ok"
	Stopped      Status = "stopped"       // by the user
	Failed       Status = "error"         // HTTP or in-stream
	Truncated    Status = "truncated"     // end of stream with neither finish reason nor [DONE]
	Empty        Status = "empty"         // no token
	NotStreaming Status = "not-streaming" // a JSON body instead of a stream
	TimedOut     Status = "timeout"
)

// StampKind is the clock that a request's chunk times come from, one for all of them.
type StampKind string

// The kinds of stamp.
const (
	KernelStamp  StampKind = "kernel"
	UserStamp    StampKind = "user"
	EmitterStamp StampKind = "emitter" // of the engine that told of it by telemetry; no client measured
)

// End closes a request.
type End struct {
	Request    int           `json:"request"`
	Status     Status        `json:"status"`
	By         string        `json:"by"` // what ended it: EndDone, EndFinish, EndEOF, EndError, EndCancel
	Finish     string        `json:"finish,omitempty"`
	Class      string        `json:"class,omitempty"`       // of the error: connect, dns, tls, http-401, http-429, http-5xx, in-stream, malformed, timeout-idle, …
	Error      string        `json:"error,omitempty"`       // one sentence that says what to do
	RetryAfter time.Duration `json:"retry_after,omitempty"` // as the server asked, 0 = it did not
	End        time.Duration `json:"end"`                   // when By was seen
	Close      time.Duration `json:"close"`                 // when the body had been read to its end or was closed
	Stamp      StampKind     `json:"stamp"`
	ClockStep  bool          `json:"clock_step,omitempty"` // the wall clock was set during the request
	Usage      *Usage        `json:"usage,omitempty"`
	Timings    *Timings      `json:"timings,omitempty"`
	Reads      int           `json:"reads"`  // socket reads with body bytes
	Multi      int           `json:"multi"`  // of these, reads that completed more than one chunk event
	Events     int           `json:"events"` // SSE events with data
	Silent     int           `json:"silent"` // of these, without text (role, empty deltas, usage)
	Malformed  int           `json:"malformed"`
	Comments   int           `json:"comments"`
	Bytes      int64         `json:"bytes"`              // of the body
	Encoding   string        `json:"encoding,omitempty"` // Content-Encoding that came although identity was asked
}

// What ended a request.
const (
	EndDone   = "done"   // data: [DONE]
	EndFinish = "finish" // a finish reason, then the end of the stream
	EndEOF    = "eof"
	EndError  = "error"
	EndCancel = "cancel"
)

// Usage is what the server says it counted. Fields it did not give are -1.
type Usage struct {
	Prompt     int `json:"prompt"`
	Completion int `json:"completion"`
	Reasoning  int `json:"reasoning"`
	Cached     int `json:"cached"`   // prompt tokens found in a prefix cache
	Accepted   int `json:"accepted"` // drafted tokens that were accepted
	Rejected   int `json:"rejected"`
}

// Timings are llama.cpp's own measurements. Fields that were not given are -1.
type Timings struct {
	PromptN       int     `json:"prompt_n"`
	PromptMS      float64 `json:"prompt_ms"`
	PredictedN    int     `json:"predicted_n"`
	PredictedMS   float64 `json:"predicted_ms"`
	CacheN        int     `json:"cache_n"`
	DraftN        int     `json:"draft_n"`
	DraftAccepted int     `json:"draft_accepted"`
}

// Sample is the measuring process as it watched itself, once a second. Counters are since the
// process began; their differences count.
type Sample struct {
	At          time.Duration `json:"at"`
	CPU         time.Duration `json:"cpu"`          // user + system time of the process
	Readers     int           `json:"readers"`      // goroutines reading streams now
	InFlight    int           `json:"in_flight"`    // requests between t0 and their end
	GCPauses    int           `json:"gc_pauses"`    // number
	GCPauseMax  time.Duration `json:"gc_pause_max"` // longest stop-the-world pause since the last sample
	GCPauseP99  time.Duration `json:"gc_pause_p99"` // over the process's life so far
	Heap        int64         `json:"heap"`         // bytes in use
	Offset      time.Duration `json:"offset"`       // real-time clock − monotonic time of the session, less its value at the anchor
	OffsetError time.Duration `json:"offset_error"` // half the width of the bracket it was taken in
}

// Note is something worth telling the reader, at a time.
type Note struct {
	At   time.Duration `json:"at"`
	Text string        `json:"text"`
}

// Finish closes a session. A session without one was cut off.
type Finish struct {
	At     time.Duration `json:"at"`
	State  string        `json:"state"` // Done, Aborted or Broken
	Reason string        `json:"reason,omitempty"`
}

// The states in which a run ends.
const (
	Done    = "done"
	Aborted = "stopped" // by the user; what there is was kept
	Broken  = "failed"
)

func (*Header) event()  {}
func (*Step) event()    {}
func (*Request) event() {}
func (*Conn) event()    {}
func (Chunks) event()   {}
func (*Counts) event()  {}
func (*End) event()     {}
func (*Sample) event()  {}
func (*Note) event()    {}
func (*Finish) event()  {}
