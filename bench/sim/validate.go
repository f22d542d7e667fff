package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Validate says which member of the scenario cannot be, and why; nil when the
// endpoint can act on all of it.
func (s *Scenario) Validate() error {
	r := s.withDefaults()
	longest := Duration(24 * time.Hour)
	for _, d := range []struct {
		member string
		value  Duration
	}{
		{"ttft", r.TTFT}, {"itl", r.ITL}, {"gaps.sd", r.Gaps.SD}, {"gaps.fast", r.Gaps.Fast},
		{"gaps.slow", r.Gaps.Slow}, {"gaps.stall", r.Gaps.Stall}, {"cold.ttft", r.Cold.TTFT},
		{"role_at", r.RoleAt}, {"keep_alive", r.KeepAlive}, {"split_delay", r.SplitDelay},
		{"header_delay", r.HeaderDelay}, {"retry_after", r.RetryAfter},
	} {
		if d.value < 0 || d.value > longest {
			return fmt.Errorf("%s is %s: it must be between 0s and %s", d.member, d.value, longest)
		}
	}
	for _, n := range []struct {
		member      string
		value, most int
	}{
		{"tokens", r.Tokens, MaxTokens}, {"tokens_per_chunk", r.TokensPerChunk, MaxTokens},
		{"first_chunk_tokens", r.FirstChunkTokens, MaxTokens}, {"gaps.at", r.Gaps.At, MaxTokens},
		{"gaps.every", r.Gaps.Every, MaxTokens}, {"cold.requests", r.Cold.Requests, math.MaxInt32},
		{"speculation.draft", r.Speculation.Draft, 64}, {"reasoning.tokens", r.Reasoning.Tokens, MaxTokens},
		{"reasoning.hidden", r.Reasoning.Hidden, MaxTokens}, {"tool_calls", r.ToolCalls, 16},
		{"choices", r.Choices, MaxChoices}, {"cached_tokens", r.CachedTokens, math.MaxInt32},
		{"unseen_end", r.UnseenEnd, MaxTokens}, {"empty_deltas", r.EmptyDeltas, MaxTokens},
		{"comments", r.Comments, math.MaxInt32}, {"line_bytes", r.LineBytes, MaxLineBytes},
		{"split_bytes", r.SplitBytes, MaxLineBytes}, {"buffer_bytes", r.BufferBytes, 1 << 30},
		{"fault.after", r.Fault.After, MaxTokens}, {"fail_every", r.FailEvery, math.MaxInt32},
	} {
		if n.value < 0 || n.value > n.most {
			return fmt.Errorf("%s is %d: it must be between 0 and %d", n.member, n.value, n.most)
		}
	}
	for _, f := range []struct {
		member      string
		value, most float64
	}{
		{"gaps.fast_share", r.Gaps.FastShare, 1}, {"speculation.acceptance", r.Speculation.Acceptance, 1},
		{"decay", r.Decay, 1}, {"drift", r.Drift, 1}, {"cold.slowdown", r.Cold.Slowdown, 1000},
		{"prefill", r.Prefill, 1e9},
	} {
		if !(f.value >= 0 && f.value <= f.most) {
			return fmt.Errorf("%s is %g: it must be between 0 and %g", f.member, f.value, f.most)
		}
	}
	for _, w := range []struct {
		member, value string
		words         []string
	}{
		{"gaps.kind", r.Gaps.Kind, []string{"constant", "normal", "bimodal", "stall"}},
		{"regime", r.Regime, Regimes()},
		{"reasoning.field", r.Reasoning.Field, []string{"reasoning_content", "reasoning", "thinking", "think_tags"}},
		{"usage", r.Usage, []string{"", "own", "finish", "continuous", "absent", "null", "null_only"}},
		{"prediction", r.Prediction, []string{"", "details", "root"}},
		{"role", r.Role, []string{"", "none", "every"}},
		{"finish", r.Finish, []string{"", "content", "none"}},
		{"done", r.Done, []string{"", "none", "spaces"}},
		{"line_end", r.LineEnd, []string{"lf", "crlf", "cr"}},
		{"split", r.Split, []string{"", "utf8", "crlf", "bytes"}},
		{"framing", r.Framing, []string{"chunked", "close"}},
		{"reply", r.Reply, []string{"", "json"}},
		{"fault.kind", r.Fault.Kind, []string{"", "error", "malformed", "truncate", "reset", "eof", "hang", "silence"}},
	} {
		if !slices.Contains(w.words, w.value) {
			return fmt.Errorf("%s is %q: it must be one of %s", w.member, w.value, quoted(w.words))
		}
	}
	if r.Status != 0 && (r.Status < 200 || r.Status > 599) {
		return fmt.Errorf("status is %d: it must be 0 or between 200 and 599", r.Status)
	}
	return r.validatePairs()
}

// maxReply bounds the bytes of padding in one reply.
const maxReply = 1 << 30

// validatePairs refuses members that contradict each other.
func (s *Scenario) validatePairs() error {
	switch {
	case s.Gaps.Kind == "bimodal" && s.Gaps.Slow == 0:
		return fmt.Errorf("gaps.slow is missing: bimodal needs gaps.fast, gaps.slow and gaps.fast_share")
	case s.Gaps.Kind == "bimodal" && s.Gaps.Fast > s.Gaps.Slow:
		return fmt.Errorf("gaps.fast is %s, above gaps.slow %s: exchange them", s.Gaps.Fast, s.Gaps.Slow)
	case s.Gaps.Kind == "stall" && s.Gaps.Stall == 0:
		return fmt.Errorf("gaps.stall is missing: stall needs its length")
	case s.Gaps.Kind == "normal" && s.Gaps.SD == 0:
		return fmt.Errorf("gaps.sd is missing: normal gaps need their standard deviation")
	case s.Speculation.Draft > 0 && s.TokensPerChunk > 1:
		return fmt.Errorf("tokens_per_chunk is %d beside speculation: with speculation the accepted tokens make the chunk", s.TokensPerChunk)
	case s.Speculation.Acceptance > 0 && s.Speculation.Draft == 0:
		return fmt.Errorf("speculation.draft is missing: acceptance is of drafted tokens")
	case s.Reasoning.Tokens > s.Tokens:
		return fmt.Errorf("reasoning.tokens is %d, above tokens %d: tokens counts the whole reply", s.Reasoning.Tokens, s.Tokens)
	case s.Reasoning.Field == "think_tags" && s.Reasoning.Tokens > 0 && s.Reasoning.Tokens < minThinkTokens:
		return fmt.Errorf("reasoning.tokens is %d: with think_tags at least %d, the tags count", s.Reasoning.Tokens, minThinkTokens)
	case s.ToolCalls > 0 && s.Refusal:
		return fmt.Errorf("refusal contradicts tool_calls: a reply has one of them")
	case s.Split == "crlf" && s.LineEnd != "crlf":
		return fmt.Errorf("split is crlf but line_end is %s: there is no CRLF to split", s.LineEnd)
	case s.Gzip && s.Split != "":
		return fmt.Errorf("split contradicts gzip: compressed bytes have no characters to split at")
	case s.BufferAll && s.BufferBytes > 0:
		return fmt.Errorf("buffer_bytes contradicts buffer_all: choose one")
	case s.BufferBytes > 0 && s.BufferBytes < 64:
		return fmt.Errorf("buffer_bytes is %d: a block has at least 64", s.BufferBytes)
	case s.KeepAlive > 0 && s.KeepAlive < ms:
		return fmt.Errorf("keep_alive is %s: at least 1ms between comments", s.KeepAlive)
	case s.Split == "bytes" && s.LineBytes > 1<<16 && s.SplitBytes < 1024:
		return fmt.Errorf("split_bytes is %d for lines of %d bytes: pieces of such lines have at least 1024", s.SplitBytes, s.LineBytes)
	case s.IgnoreN && s.Choices > 0:
		return fmt.Errorf("choices contradicts ignore_n: choose one")
	case s.Fault.After > 0 && s.Fault.Kind == "":
		return fmt.Errorf("fault.kind is missing: fault.after alone breaks nothing")
	case s.HTML && s.Status == 0:
		return fmt.Errorf("html is set without a status: give the status of the page, such as 502")
	case s.HeaderTrickle && s.HeaderDelay == 0:
		return fmt.Errorf("header_delay is missing: header_trickle spreads the lines over it")
	case s.Usage == "finish" && s.Finish == "none":
		return fmt.Errorf("usage finish contradicts finish none: there is no chunk to carry it")
	case s.Tokens*s.LineBytes > maxReply:
		return fmt.Errorf("line_bytes is %d for %d tokens: a reply must stay below 1 GiB", s.LineBytes, s.Tokens)
	}
	return nil
}

// withDefaults is the scenario with the meaning of its zero members written out.
func (s *Scenario) withDefaults() Scenario {
	r := *s
	set := func(word *string, value string) {
		if *word == "" {
			*word = value
		}
	}
	set(&r.Gaps.Kind, "constant")
	set(&r.Regime, "prose")
	set(&r.Reasoning.Field, "reasoning_content")
	set(&r.LineEnd, "lf")
	set(&r.Framing, "chunked")
	if r.Tokens == 0 {
		r.Tokens = 64
	}
	if r.Empty {
		r.Tokens = 0
		r.Reasoning.Tokens = 0
	}
	if r.TokensPerChunk == 0 {
		r.TokensPerChunk = 1
	}
	if r.SplitBytes == 0 {
		r.SplitBytes = 7
	}
	if r.Decay == 0 {
		r.Decay = 1
	}
	if r.Cold.Slowdown == 0 {
		r.Cold.Slowdown = 1
	}
	if r.FailEvery > 0 && r.Status == 0 && r.Fault.Kind == "" {
		r.Status = 503
	}
	return r
}

func quoted(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", w)
	}
	return b.String()
}
