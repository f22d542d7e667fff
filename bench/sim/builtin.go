package sim

import "time"

const ms = Duration(time.Millisecond)

// Scenarios lists the built-in scenarios. Those that misbehave are short, about
// 200 ms, so that a test of a client can afford all of them.
func Scenarios() []Scenario {
	// one is a short ordinary stream and its one peculiarity.
	one := func(name, description string, change func(*Scenario)) Scenario {
		s := Scenario{Name: name, Description: description, TTFT: 50 * ms, ITL: 5 * ms, Tokens: 24}
		change(&s)
		return s
	}
	return []Scenario{
		// Timing.
		{Name: "steady", Description: "first token after 100 ms, then one every 10 ms", TTFT: 100 * ms, ITL: 10 * ms, Tokens: 64},
		{Name: "fast", Description: "first token after 20 ms, then 500 a second", TTFT: 20 * ms, ITL: 2 * ms, Tokens: 256},
		{Name: "slow", Description: "one token a second for a minute: for many open streams", TTFT: 1000 * ms, ITL: 1000 * ms, Tokens: 60},
		{Name: "instant", Description: "16 tokens with no wait at all: for CPU measurements", Tokens: 16},
		one("normal-gaps", "normal gaps, 10 ms with a deviation of 2 ms", func(s *Scenario) {
			s.ITL, s.Tokens, s.Gaps = 10*ms, 64, Gaps{Kind: "normal", SD: 2 * ms}
		}),
		one("bimodal-gaps", "gaps of 2 ms (70 %) and 20 ms", func(s *Scenario) {
			s.Tokens, s.Gaps = 64, Gaps{Kind: "bimodal", Fast: 2 * ms, Slow: 20 * ms, FastShare: 0.7}
		}),
		one("stall", "stands still for 400 ms before token 12", func(s *Scenario) {
			s.Gaps = Gaps{Kind: "stall", Stall: 400 * ms, At: 12}
		}),
		one("chunks", "four tokens a chunk, 5 ms a token", func(s *Scenario) { s.Tokens, s.TokensPerChunk = 64, 4 }),
		one("first-chunk-large", "sixteen tokens in the first chunk, then one by one", func(s *Scenario) {
			s.Tokens, s.FirstChunkTokens = 48, 16
		}),
		one("speculation", "drafts of 4 accepted at 60 %: chunks of 1 to 5 tokens every 10 ms, counters in usage", func(s *Scenario) {
			s.ITL, s.Tokens, s.Speculation, s.Prediction = 10*ms, 96, Speculation{Draft: 4, Acceptance: 0.6}, "details"
		}),
		one("decay", "the rate falls linearly to 40 % within the reply", func(s *Scenario) { s.Tokens, s.Decay = 96, 0.4 }),
		one("drift", "each request is 5 % slower than the one before", func(s *Scenario) { s.Drift = 0.05 }),
		one("cold-start", "the first four requests start 300 ms later and run at half the rate", func(s *Scenario) {
			s.Cold = Cold{Requests: 4, TTFT: 300 * ms, Slowdown: 2}
		}),
		one("prefill", "prompts cost time: 5,000 tokens a second", func(s *Scenario) { s.Prefill = 5000 }),
		one("prefix-cache", "as prefill, but a prompt's known prefix is free and reported as cached", func(s *Scenario) {
			s.Prefill, s.PrefixCache = 5000, true
		}),

		// What is said.
		one("prose", "text: prose", func(s *Scenario) { s.Tokens, s.Regime = 96, "prose" }),
		one("code", "text: code in fences", func(s *Scenario) { s.Tokens, s.Regime = 96, "code" }),
		one("math", "text: mathematics in TeX", func(s *Scenario) { s.Tokens, s.Regime = 96, "math" }),
		one("structured", "text: JSON, tables and lists", func(s *Scenario) { s.Tokens, s.Regime = 96, "structured" }),
		one("creative", "text: a story", func(s *Scenario) { s.Tokens, s.Regime = 96, "creative" }),
		one("plain", "text: short words, each one token", func(s *Scenario) { s.Tokens, s.Regime = 96, "plain" }),
		one("unicode", "text: many scripts and emoji", func(s *Scenario) { s.Tokens, s.Regime = 96, "unicode" }),
		one("mixed", "text: all regimes in turn", func(s *Scenario) { s.Tokens, s.ITL, s.Regime = 768, 2*ms, "mixed" }),
		one("reasoning", "12 tokens of reasoning_content, then 12 of answer", func(s *Scenario) { s.Reasoning = Reasoning{Tokens: 12} }),
		one("reasoning-field", "reasoning in the field reasoning", func(s *Scenario) {
			s.Reasoning = Reasoning{Tokens: 12, Field: "reasoning"}
		}),
		one("reasoning-thinking", "reasoning in the field thinking", func(s *Scenario) {
			s.Reasoning = Reasoning{Tokens: 12, Field: "thinking"}
		}),
		one("think-tags", "reasoning inside content, between <think> tags", func(s *Scenario) {
			s.Reasoning = Reasoning{Tokens: 16, Field: "think_tags"}
		}),
		one("reasoning-only", "reasoning and never an answer", func(s *Scenario) { s.Reasoning = Reasoning{Tokens: 24} }),
		one("reasoning-hidden", "usage counts 40 reasoning tokens that never stream", func(s *Scenario) {
			s.Reasoning = Reasoning{Hidden: 40}
		}),
		one("tool-calls", "two tool calls in place of an answer", func(s *Scenario) { s.Tokens, s.ToolCalls = 32, 2 }),
		one("refusal", "the answer is a refusal", func(s *Scenario) { s.Refusal = true }),
		one("content-parts", "content as an array of text parts", func(s *Scenario) { s.ContentParts = true }),
		one("separators", "raw U+2028, U+2029 and U+0085 in the text", func(s *Scenario) { s.Separators = true }),
		one("choices", "two choices whatever was asked for", func(s *Scenario) { s.Choices = 2 }),
		one("n-ignored", "one choice whatever was asked for", func(s *Scenario) { s.IgnoreN = true }),
		one("length-ignored", "max_tokens, min_tokens and ignore_eos have no effect", func(s *Scenario) { s.IgnoreLimits = true }),
		one("empty", "a proper stream without a token", func(s *Scenario) { s.Empty = true }),

		// Accounts.
		one("usage-own", "usage on a chunk of its own, asked for or not", func(s *Scenario) { s.Usage = "own" }),
		one("usage-finish", "usage on the chunk with the finish reason", func(s *Scenario) { s.Usage = "finish" }),
		one("usage-last", "usage and finish reason on the last chunk that has text", func(s *Scenario) {
			s.Usage, s.Finish = "finish", "content"
		}),
		one("usage-continuous", "usage on every chunk, two tokens a chunk", func(s *Scenario) { s.Usage, s.TokensPerChunk = "continuous", 2 }),
		one("usage-absent", "no usage, asked for or not", func(s *Scenario) { s.Usage = "absent" }),
		one("usage-null", "usage null on every chunk, then usage on its own", func(s *Scenario) { s.Usage = "null" }),
		one("usage-null-only", "usage null on every chunk and never a value", func(s *Scenario) { s.Usage = "null_only" }),
		one("unseen-end", "usage counts one end token that never streams", func(s *Scenario) { s.Usage, s.UnseenEnd = "own", 1 }),
		one("timings", "llama.cpp's timings and usage on the finish chunk", func(s *Scenario) { s.Usage, s.Timings = "finish", true }),
		one("cached", "16 prompt tokens reported as cached", func(s *Scenario) { s.Usage, s.CachedTokens = "own", 16 }),

		// The form of the stream.
		one("no-role", "no role anywhere", func(s *Scenario) { s.Role = "none" }),
		one("role-every", "the role on every chunk", func(s *Scenario) { s.Role = "every" }),
		one("empty-deltas", "five empty deltas before the first token", func(s *Scenario) { s.EmptyDeltas = 5 }),
		one("finish-with-content", "the finish reason on the last chunk that has text", func(s *Scenario) { s.Finish = "content" }),
		one("no-finish", "no finish reason, but [DONE]", func(s *Scenario) { s.Finish = "none" }),
		one("no-done", "a finish reason, but no [DONE]", func(s *Scenario) { s.Done = "none" }),
		one("done-spaced", "[DONE] with blanks around it", func(s *Scenario) { s.Done = "spaces" }),
		one("crlf", "lines end in CRLF", func(s *Scenario) { s.LineEnd = "crlf" }),
		one("cr", "lines end in CR", func(s *Scenario) { s.LineEnd = "cr" }),
		one("no-space", "no space after data:", func(s *Scenario) { s.NoSpace = true }),
		one("crlf-no-space", "CRLF, and no space after data:", func(s *Scenario) { s.LineEnd, s.NoSpace = "crlf", true }),
		one("comments", "a comment in front of every second event", func(s *Scenario) { s.Comments = 2 }),
		one("keep-alive", "a comment every 20 ms while the first token takes 200 ms", func(s *Scenario) {
			s.TTFT, s.KeepAlive = 200*ms, 20*ms
		}),
		one("event-fields", "event, id and retry lines in every event", func(s *Scenario) { s.EventFields = true }),
		one("multi-line", "the JSON of an event on several data lines", func(s *Scenario) { s.MultiLine = true }),
		one("long-lines", "data lines of 1 MB", func(s *Scenario) { s.Tokens, s.ITL, s.LineBytes = 6, 20*ms, 1<<20 }),
		one("bom", "a byte order mark at the start", func(s *Scenario) { s.BOM = true }),
		one("no-final-blank", "the last event lacks its blank line", func(s *Scenario) { s.NoFinalBlank = true }),

		// The path to the client.
		one("split-utf8", "writes that end inside a character", func(s *Scenario) {
			s.ITL, s.Regime, s.Split, s.SplitDelay = 10*ms, "unicode", "utf8", 2*ms
		}),
		one("split-crlf", "writes that end between CR and LF", func(s *Scenario) {
			s.ITL, s.LineEnd, s.Split, s.SplitDelay = 15*ms, "crlf", "crlf", 2*ms
		}),
		one("split-bytes", "writes of seven bytes", func(s *Scenario) { s.Tokens, s.ITL, s.Split = 8, 20*ms, "bytes" }),
		one("unframed", "a body that only the end of the connection ends", func(s *Scenario) { s.Framing = "close" }),
		one("gzip", "a compressed body, accepted or not", func(s *Scenario) { s.Gzip = true }),
		one("close", "the connection closes after each reply", func(s *Scenario) { s.Close = true }),
		one("slow-headers", "headers after 300 ms, the first token with them", func(s *Scenario) { s.HeaderDelay = 300 * ms }),
		one("trickled-headers", "header lines one by one over 300 ms", func(s *Scenario) {
			s.HeaderDelay, s.HeaderTrickle = 300*ms, true
		}),
		one("buffer-all", "a proxy that holds everything back until the end", func(s *Scenario) { s.BufferAll = true }),
		one("buffer-16k", "a proxy that passes blocks of 16 KB", func(s *Scenario) {
			s.Tokens, s.ITL, s.BufferBytes = 256, 2*ms, 16<<10
		}),

		// Replies that are no stream, and failures.
		one("json", "one JSON document where a stream was asked for", func(s *Scenario) { s.Reply = "json" }),
		one("error-200", "an error document under status 200", func(s *Scenario) { s.Status = 200 }),
		one("error-first", "status 200 and an error as the first event", func(s *Scenario) { s.Fault = Fault{Kind: "error"} }),
		one("error-mid", "an error event after 10 tokens", func(s *Scenario) { s.Fault = Fault{Kind: "error", After: 10} }),
		one("malformed", "a chunk of broken JSON after 10 tokens; the stream goes on", func(s *Scenario) {
			s.Fault = Fault{Kind: "malformed", After: 10}
		}),
		one("truncated", "the connection closes inside a chunk after 10 tokens", func(s *Scenario) {
			s.Fault = Fault{Kind: "truncate", After: 10}
		}),
		one("reset", "the connection is reset after 10 tokens", func(s *Scenario) { s.Fault = Fault{Kind: "reset", After: 10} }),
		one("clean-eof", "the body ends properly after 10 tokens, without finish reason and [DONE]", func(s *Scenario) {
			s.Fault = Fault{Kind: "eof", After: 10}
		}),
		one("hang", "nothing more after 10 tokens", func(s *Scenario) { s.Fault = Fault{Kind: "hang", After: 10} }),
		one("silence", "no answer at all", func(s *Scenario) { s.Fault = Fault{Kind: "silence"} }),
		one("rate-limited", "429 with Retry-After: 2", func(s *Scenario) { s.Status, s.RetryAfter = 429, 2000*ms }),
		one("unavailable", "503 with a JSON error", func(s *Scenario) { s.Status = 503 }),
		one("unauthorized", "401 whatever the key", func(s *Scenario) { s.Status = 401 }),
		one("html-error", "502 and a web page", func(s *Scenario) { s.Status, s.HTML = 502, true }),
		one("html-200", "a web page under status 200, as a captive portal sends", func(s *Scenario) { s.Status, s.HTML = 200, true }),
		one("fail-every-third", "every third request gets 503", func(s *Scenario) { s.FailEvery = 3 }),
		one("strict", "refuses what the OpenAI API does not have", func(s *Scenario) { s.Strict = true }),
		one("key", "wants the key velo-sim-key", func(s *Scenario) { s.APIKey = "velo-sim-key" }),
	}
}
