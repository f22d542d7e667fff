package measure

import (
	"cmp"
	"math"
	"slices"

	"velo/bench"
)

// How the tokens of a request's chunks were counted, in words; see Request.Counted.
const (
	ByContinuous = "continuous usage"
	ByExact      = "logprobs or token ids"
	ByTokenizer  = "tokenizer"
	ByOne        = "one token a chunk"
	ByBytes      = "usage shared by bytes"
	ByLength     = "text length"
)

// bytesPerToken is what a token is taken to hold where nothing else is known.
const bytesPerToken = 4

// mostTokens bounds a believable count of completion tokens.
const mostTokens = 1 << 32

// counts are the tokens of each chunk, and how they are known.
type counts struct {
	tokens  []int
	source  Source
	counted string
}

// countTokens finds tokens(i) by the first way that applies: differences of continuous usage;
// logprobs or token ids; the model's tokenizer over the whole text; usage shared out by bytes; the
// length of the text. A way whose figures are incomplete or contradict themselves does not apply.
//
// One case of usage is exact: as many chunks as completion tokens. A chunk with text holds at least
// one token, so each holds just one. The same is said of one chunk fewer, the missing one being the
// end token, unless the generation ended by length and so without one.
func countTokens(x *bench.Exchange, tokenizer bench.TokenCounter) counts {
	c := x.Chunks
	if len(c) == 0 {
		return counts{}
	}
	out := make([]int, len(c))
	completion, hidden := completionOf(x)
	if continuous(c, completion, out) {
		return counts{out, Server, ByContinuous}
	}
	if exact(c, completion, out) {
		return counts{out, Server, ByExact}
	}
	if noted(x, out) || tokenizer != nil && tokenized(c, tokenizer, out) {
		return counts{out, Tokenizer, ByTokenizer}
	}
	if completion > 0 {
		seen := completion
		if hidden < seen {
			seen -= hidden
		}
		if len(c) == seen || len(c) == seen-1 && x.End.Finish != "length" {
			for i := range out {
				out[i] = 1
			}
			return counts{out, Server, ByOne}
		}
		shareUsage(x, seen, out)
		return counts{out, Estimate, ByBytes}
	}
	byLength(c, out)
	return counts{out, Estimate, ByLength}
}

// completionOf is the server's count of completion tokens (0 = not given) and, of these, the
// reasoning tokens that were never streamed.
func completionOf(x *bench.Exchange) (completion, hidden int) {
	if x.End == nil || x.End.Usage == nil || x.End.Usage.Completion <= 0 || x.End.Usage.Completion > mostTokens {
		return 0, 0
	}
	u := x.End.Usage
	if u.Reasoning > 0 && u.Reasoning <= u.Completion && !slices.ContainsFunc(x.Chunks, reasons) {
		hidden = u.Reasoning
	}
	return u.Completion, hidden
}

func reasons(c bench.Chunk) bool { return c.Channel == bench.Reasoning }

// continuous takes the differences of continuous usage. The series must be whole, never fall, stay
// within the final usage and grow with at least half of the events after the first: some servers
// repeat one figure on every chunk.
func continuous(c bench.Chunks, completion int, out []int) bool {
	last, events, grown := int32(0), 0, 0
	for i := range c {
		u := c[i].Usage
		if u < last {
			return false
		}
		out[i] = int(u - last)
		if i > 0 && !twins(c, i) {
			events++
			if u > last {
				grown++
			}
		}
		last = u
	}
	if last <= 0 || completion > 0 && int(last) > completion || 2*grown < events {
		return false
	}
	for i := 0; i < len(c); { // an event with text of two channels: its tokens go to both
		j := i + 1
		for j < len(c) && twins(c, j) {
			j++
		}
		if j-i > 1 {
			total := out[i]
			clear(out[i:j])
			share(c[i:j], total, out[i:j])
		}
		i = j
	}
	return true
}

// twins tells whether chunk i comes from the same event as the one before it.
func twins(c bench.Chunks, i int) bool {
	a, b := &c[i-1], &c[i]
	return a.Read == b.Read && a.Usage == b.Usage && a.User == b.User && a.Channel != b.Channel
}

// exact takes the tokens that came with logprobs or token ids.
func exact(c bench.Chunks, completion int, out []int) bool {
	n := 0
	for i := range c {
		if c[i].Exact < 0 {
			return false
		}
		out[i] = int(c[i].Exact)
		n += out[i]
	}
	return n > 0 && (completion == 0 || n <= completion)
}

// CountChunks counts a request's chunks, for the session to keep: see bench.Counts. It is nil where there
// is nothing to count.
func CountChunks(c bench.Chunks, t bench.TokenCounter) *bench.Counts {
	out := make([]int, len(c))
	if len(c) == 0 || !tokenized(c, t, out) {
		return nil
	}
	n := &bench.Counts{Request: c[0].Request, Tokenizer: t.Name(), Tokens: make([]int32, len(c))}
	for i, v := range out {
		n.Tokens[i] = int32(v)
	}
	return n
}

// noted takes the counts that the session holds, if they are those of these chunks.
func noted(x *bench.Exchange, out []int) bool {
	if x.Counts == nil || len(x.Counts.Tokens) != len(out) {
		return false
	}
	n := 0
	for i, v := range x.Counts.Tokens {
		if v < 0 {
			return false
		}
		out[i] = int(v)
		n += out[i]
	}
	return 0 < n && n < mostTokens
}

// tokenized takes the growth of the tokenizer's count over the whole text. A count may fall for a
// moment, when a merge reaches back; such tokens belong to the chunk after which they stay.
func tokenized(c bench.Chunks, t bench.TokenCounter, out []int) bool {
	parts := make([]string, len(c))
	bytes := 0
	for i := range c {
		parts[i] = c[i].Text
		bytes += len(parts[i])
	}
	if bytes == 0 {
		return false
	}
	p := t.Prefixes(parts)
	if len(p) != len(c) || p[len(p)-1] <= 0 {
		return false
	}
	least := p[len(p)-1]
	for i := len(p) - 1; i > 0; i-- {
		before := min(least, max(0, p[i-1]))
		out[i] = least - before
		least = before
	}
	out[0] = least
	return true
}

// shareUsage shares the server's count out to the chunks, channel by channel where it counts
// reasoning apart and both channels came.
func shareUsage(x *bench.Exchange, seen int, out []int) {
	c, reasoning := x.Chunks, x.End.Usage.Reasoning
	answers := slices.ContainsFunc(c, func(c bench.Chunk) bool { return c.Channel.Answer() })
	if reasoning <= 0 || reasoning >= seen || !answers || !slices.ContainsFunc(c, reasons) {
		share(c, seen, out)
		return
	}
	for _, answer := range []bool{false, true} {
		var part bench.Chunks
		var at []int
		for i := range c {
			if c[i].Channel.Answer() == answer {
				part = append(part, c[i])
				at = append(at, i)
			}
		}
		total := reasoning
		if answer {
			total = seen - reasoning
		}
		given := make([]int, len(part))
		share(part, total, given)
		for k, i := range at {
			out[i] = given[k]
		}
	}
}

// share gives total tokens to chunks by their bytes, with the largest remainders; each chunk gets
// one at least where there are enough. As a token that is seen holds a byte at least, no more tokens
// are given than there are bytes: the rest was never shown. Chunks without any text share alike.
func share(c bench.Chunks, total int, out []int) {
	weights := make([]float64, len(c))
	bytes := 0
	for i := range c {
		bytes += len(c[i].Text)
	}
	if bytes > 0 {
		total = min(total, bytes)
	}
	for i := range c {
		weights[i] = 1
		if bytes > 0 {
			weights[i] = float64(len(c[i].Text)) / float64(bytes)
		}
	}
	if total >= len(c) {
		for i := range out {
			out[i] = 1
			if bytes > 0 {
				weights[i] = max(0, weights[i]*float64(total)-1)
			}
		}
		total -= len(c)
	}
	apportion(total, weights, out)
}

// apportion adds total to out in proportion to the weights, whole numbers by the largest remainders
// (Hamilton's method); ties go to the earlier one.
func apportion(total int, weights []float64, out []int) {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	if total <= 0 || !(sum > 0) {
		for i := 0; total > 0; i, total = i+1, total-1 { // no weight at all: alike
			n := max(1, total/len(out))
			out[i%len(out)] += n
			total -= n - 1
		}
		return
	}
	rest := make([]float64, len(weights))
	order := make([]int, len(weights))
	left := total
	for i, w := range weights {
		quota := float64(total) * (w / sum)
		n := math.Floor(quota)
		rest[i], order[i] = quota-n, i
		out[i] += int(n)
		left -= int(n)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for i := 0; left > 0; i, left = i+1, left-1 {
		out[order[i%len(order)]]++
	}
	for i := len(order) - 1; left < 0 && i >= 0; i-- { // rounding gave one too many
		if out[order[i]] > 0 {
			out[order[i]]--
			left++
		}
	}
}

// ByTextLength estimates the tokens of a chunk from the length of the text: one for every four bytes of
// the stream so far, this chunk's included, less the given tokens of the chunks before it, and one at
// least.
func ByTextLength(bytes, given int) int {
	return max(1, (bytes+bytesPerToken-1)/bytesPerToken-given)
}

// byLength counts by ByTextLength.
func byLength(c bench.Chunks, out []int) {
	bytes, given := 0, 0
	for i := range c {
		bytes += len(c[i].Text)
		out[i] = ByTextLength(bytes, given)
		given += out[i]
	}
}
