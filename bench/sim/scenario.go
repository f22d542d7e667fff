package sim

// Scenario is everything that the endpoint does for one request. Its JSON form
// is the scenario file; docs/sim.md describes each member. The zero value of a
// member means the ordinary behaviour, so that a scenario states only what is
// special about it.
type Scenario struct {
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`

	// Timing. The schedule is absolute: every chunk is due at the moment the
	// request was read, plus TTFT, plus the gaps before it.

	// TTFT is the time from the request read to its first token.
	TTFT Duration `json:"ttft"`
	// ITL is the time of one token; a chunk of k tokens comes k·ITL after the
	// one before it. With Speculation it is the time of one verify step.
	ITL Duration `json:"itl"`
	// Tokens is the natural length of the reply, reasoning included, before the
	// request's own limits; 0 means 64.
	Tokens int `json:"tokens,omitempty"`
	// TokensPerChunk is how many tokens share a chunk; 0 means 1.
	TokensPerChunk int `json:"tokens_per_chunk,omitempty"`
	// FirstChunkTokens is how many the first chunk holds; 0 means as the others.
	FirstChunkTokens int `json:"first_chunk_tokens,omitempty"`
	// Gaps is the distribution of the gaps between chunks.
	Gaps Gaps `json:"gaps,omitzero"`
	// Decay is the rate at the end of the reply over the rate at its start; it
	// falls linearly in time. 0 means 1, no decay.
	Decay float64 `json:"decay,omitempty"`
	// Drift makes each request slower than the one before it: the gaps of the
	// n-th request (from 0) are (1+Drift)^n times as long.
	Drift float64 `json:"drift,omitempty"`
	// Cold makes the first requests slower.
	Cold Cold `json:"cold,omitzero"`
	// Prefill, in prompt tokens a second, adds uncached/Prefill to TTFT; 0 means
	// that prompts cost nothing.
	Prefill float64 `json:"prefill,omitempty"`
	// PrefixCache keeps the prefixes of earlier prompts, in blocks of
	// CacheBlock tokens: what is found again costs no prefill and is reported as
	// cached.
	PrefixCache bool `json:"prefix_cache,omitempty"`
	// Speculation sends what each verify step accepted as one chunk.
	Speculation Speculation `json:"speculation,omitzero"`
	// Seed makes gaps, acceptance and the choice of text repeatable; each stream
	// draws from Seed and its own number.
	Seed uint64 `json:"seed,omitempty"`

	// What is said.

	// Regime is the kind of text: one of Regimes(); "" means prose.
	Regime string `json:"regime,omitempty"`
	// Reasoning comes before the answer.
	Reasoning Reasoning `json:"reasoning,omitzero"`
	// ToolCalls streams this many tool calls in place of an answer.
	ToolCalls int `json:"tool_calls,omitempty"`
	// Refusal streams the answer as delta.refusal.
	Refusal bool `json:"refusal,omitempty"`
	// Empty ends the reply without a token.
	Empty bool `json:"empty,omitempty"`
	// Separators puts raw U+2028, U+2029 and U+0085 into the text, each a token.
	Separators bool `json:"separators,omitempty"`
	// ContentParts sends content as an array of text parts.
	ContentParts bool `json:"content_parts,omitempty"`
	// Choices streams this many choices whatever n says; 0 means as asked.
	Choices int `json:"choices,omitempty"`
	// IgnoreN streams one choice whatever n says.
	IgnoreN bool `json:"ignore_n,omitempty"`
	// IgnoreLimits ignores max_tokens, min_tokens and ignore_eos.
	IgnoreLimits bool `json:"ignore_limits,omitempty"`

	// Accounts.

	// Usage is where usage goes: "" as asked by stream_options, own, finish,
	// continuous, absent, null, null_only.
	Usage string `json:"usage,omitempty"`
	// Timings adds llama.cpp's timings beside the finish reason.
	Timings bool `json:"timings,omitempty"`
	// Prediction reports accepted_prediction_tokens and its pair: "" not,
	// details (in completion_tokens_details) or root (in usage itself).
	Prediction string `json:"prediction,omitempty"`
	// CachedTokens reports this many prompt tokens as cached.
	CachedTokens int `json:"cached_tokens,omitempty"`
	// UnseenEnd is how many end tokens usage counts that never stream.
	UnseenEnd int `json:"unseen_end,omitempty"`

	// The form of the stream.

	// Role is where the role goes: "" on a chunk of its own at the start, none,
	// or every (on each chunk).
	Role string `json:"role,omitempty"`
	// RoleAt delays the role chunk; by default it follows the headers.
	RoleAt Duration `json:"role_at,omitempty"`
	// EmptyDeltas is how many chunks with an empty content come before the first
	// token, spread over the wait.
	EmptyDeltas int `json:"empty_deltas,omitempty"`
	// Finish is where the finish reason goes: "" on its own chunk, content (on
	// the last chunk that has text) or none.
	Finish string `json:"finish,omitempty"`
	// Done is the closing event: "" [DONE], none, or spaces ([DONE] among blanks).
	Done string `json:"done,omitempty"`
	// LineEnd ends the lines of events: "" or lf, crlf, cr.
	LineEnd string `json:"line_end,omitempty"`
	// NoSpace leaves out the space after "data:".
	NoSpace bool `json:"no_space,omitempty"`
	// KeepAlive sends a comment line each time this long passes without a chunk.
	KeepAlive Duration `json:"keep_alive,omitempty"`
	// Comments puts a comment line in front of every Comments-th event.
	Comments int `json:"comments,omitempty"`
	// EventFields gives every event event, id and retry lines.
	EventFields bool `json:"event_fields,omitempty"`
	// MultiLine spreads the JSON of an event over several data lines.
	MultiLine bool `json:"multi_line,omitempty"`
	// LineBytes pads every chunk with text to a data line of this many bytes.
	LineBytes int `json:"line_bytes,omitempty"`
	// BOM starts the stream with a byte order mark.
	BOM bool `json:"bom,omitempty"`
	// NoFinalBlank leaves out the blank line after the last event.
	NoFinalBlank bool `json:"no_final_blank,omitempty"`

	// The path to the client.

	// Split makes several writes of an event: utf8 (inside its first multi-byte
	// character), crlf (between CR and LF), bytes (every SplitBytes).
	Split string `json:"split,omitempty"`
	// SplitBytes is the size of a piece for Split bytes; 0 means 7.
	SplitBytes int `json:"split_bytes,omitempty"`
	// SplitDelay is the time between the pieces of one event.
	SplitDelay Duration `json:"split_delay,omitempty"`
	// Framing of the body: "" or chunked, or close (ended by the connection).
	Framing string `json:"framing,omitempty"`
	// Gzip compresses the body, flushed after each event, whatever was accepted.
	Gzip bool `json:"gzip,omitempty"`
	// Close closes the connection after each reply.
	Close bool `json:"close,omitempty"`
	// HeaderDelay delays the response headers; nothing is sent before them.
	HeaderDelay Duration `json:"header_delay,omitempty"`
	// HeaderTrickle sends the header lines one by one during HeaderDelay.
	HeaderTrickle bool `json:"header_trickle,omitempty"`
	// BufferAll holds headers and body back until the reply is complete.
	BufferAll bool `json:"buffer_all,omitempty"`
	// BufferBytes holds the body back in blocks of this size, 16384 for a proxy.
	BufferBytes int `json:"buffer_bytes,omitempty"`

	// Replies that are no stream, and failures.

	// Reply is "" for the stream that was asked for, or json: one JSON document
	// where a stream was asked for.
	Reply string `json:"reply,omitempty"`
	// Status answers with an error of this HTTP status; 200 is an error body
	// under 200. 0 means no error.
	Status int `json:"status,omitempty"`
	// RetryAfter is the Retry-After header of an error reply, in whole seconds.
	RetryAfter Duration `json:"retry_after,omitempty"`
	// HTML makes the error reply a web page.
	HTML bool `json:"html,omitempty"`
	// Fault breaks the stream.
	Fault Fault `json:"fault,omitzero"`
	// FailEvery limits Status and Fault to every FailEvery-th request; 0 means
	// every request. A scenario with neither then answers 503.
	FailEvery int `json:"fail_every,omitempty"`
	// APIKey is the key that requests must bear; "" means none.
	APIKey string `json:"api_key,omitempty"`
	// Strict refuses members of a request that the OpenAI API does not have, and
	// models that are not there.
	Strict bool `json:"strict,omitempty"`
}

// Gaps is the distribution of the gap before a chunk.
type Gaps struct {
	// Kind is "" or constant, normal, bimodal, stall.
	Kind string `json:"kind,omitempty"`
	// SD is the standard deviation of normal gaps; a gap is never below 0.
	SD Duration `json:"sd,omitempty"`
	// Fast and Slow are the two gaps of bimodal, which ignores ITL.
	Fast Duration `json:"fast,omitempty"`
	Slow Duration `json:"slow,omitempty"`
	// FastShare is the probability of the fast gap, 0 to 1.
	FastShare float64 `json:"fast_share,omitempty"`
	// Stall is added to the gap before token At (from 0), and then before every
	// Every-th token after it.
	Stall Duration `json:"stall,omitempty"`
	At    int      `json:"at,omitempty"`
	Every int      `json:"every,omitempty"`
}

// Cold makes the first Requests requests slower: TTFT is added to their TTFT
// and their gaps are Slowdown times as long (0 means 1).
type Cold struct {
	Requests int      `json:"requests"`
	TTFT     Duration `json:"ttft,omitempty"`
	Slowdown float64  `json:"slowdown,omitempty"`
}

// Speculation models speculative decoding: each verify step drafts Draft tokens
// and sends those accepted plus one of the model's own, 1 to Draft+1 tokens in
// one chunk.
type Speculation struct {
	Draft int `json:"draft"`
	// Acceptance is the expected accepted/drafted, 0 to 1. Acceptance stops at
	// the first rejected token of a step, with the same chance at each position.
	Acceptance float64 `json:"acceptance"`
}

// Reasoning is what comes before the answer.
type Reasoning struct {
	// Tokens of the reply that are reasoning.
	Tokens int `json:"tokens,omitempty"`
	// Field carries them: "" or reasoning_content, reasoning, thinking, or
	// think_tags (inside content, between <think> and </think>, tags counted).
	Field string `json:"field,omitempty"`
	// Hidden tokens are counted by usage and never streamed.
	Hidden int `json:"hidden,omitempty"`
}

// Fault breaks a stream once After tokens have been streamed.
type Fault struct {
	// Kind is one of:
	//   error      an error event; After 0 makes it the very first event
	//   malformed  a chunk of broken JSON; the stream goes on after it
	//   truncate   the connection closes in the middle of a chunk
	//   reset      the connection is reset
	//   eof        the body ends properly, with neither finish reason nor [DONE]
	//   hang       nothing more, until the client hangs up
	//   silence    nothing at all, not even headers
	Kind  string `json:"kind"`
	After int    `json:"after,omitempty"`
}

// Limits that Validate holds a scenario to.
const (
	MaxTokens    = 1 << 20  // tokens of one reply
	MaxLineBytes = 16 << 20 // bytes of one padded line
	MaxChoices   = 128
)
