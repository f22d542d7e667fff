package runner

import (
	"fmt"
	"sync/atomic"

	"velo/bench"
	"velo/bench/measure"
)

// counting is a sink that counts each answer with the model's own tokenizer when its end comes by,
// and puts the counts before it. It runs on the goroutine that carries events to the sink: streams
// are stamped elsewhere meanwhile.
//
// A tokenizer is believed until the server's own count says otherwise, and not once more after that.
type counting struct {
	sink   bench.Sink
	clock  bench.Clock
	tokens bench.TokenCounter
	open   map[int]bench.Chunks // of requests that have not ended
	off    atomic.Bool          // the tokenizer is not the model's
	why    atomic.Pointer[string]
}

func newCounting(sink bench.Sink, clock bench.Clock, tokens bench.TokenCounter) *counting {
	return &counting{sink: sink, clock: clock, tokens: tokens, open: map[int]bench.Chunks{}}
}

func (c *counting) Append(e bench.Event) {
	switch e := e.(type) {
	case bench.Chunks:
		if len(e) > 0 && !c.off.Load() {
			c.open[e[0].Request] = append(c.open[e[0].Request], e...)
		}
	case *bench.End:
		c.count(e)
		delete(c.open, e.Request)
	}
	c.sink.Append(e)
}

func (c *counting) count(end *bench.End) {
	if c.off.Load() {
		return
	}
	n := measure.CountChunks(c.open[end.Request], c.tokens)
	if n == nil {
		return
	}
	if why := disagreement(n, end); why != "" {
		c.reject(fmt.Sprintf("It %s.", why))
		c.sink.Append(&bench.Note{At: c.clock.Now(), Text: fmt.Sprintf("The tokenizer %s %s: it is not the model's, and was not used from there on.", n.Tokenizer, why)})
		return
	}
	c.sink.Append(n)
}

// reject goes without the tokenizer from now on.
func (c *counting) reject(why string) {
	c.why.CompareAndSwap(nil, &why)
	c.off.Store(true)
}

// reason is why the tokenizer was rejected, "" if it was not.
func (c *counting) reason() string {
	if why := c.why.Load(); why != nil {
		return *why
	}
	return ""
}

// disagreement tells how far the tokenizer's count of a whole answer is from the server's, "" if it
// may be right. The server may count tokens that it does not show: an end token, stripped marks,
// hidden reasoning. It cannot show tokens that it does not count. Beyond two tokens and 2 % a
// difference is too large to be of that kind, unless reasoning explains it (docs/definitions.md).
func disagreement(n *bench.Counts, end *bench.End) string {
	sum := 0
	for _, t := range n.Tokens {
		sum += int(t)
	}
	return Disagreement(sum, end)
}

// Disagreement is that of a count of a whole answer and the server's: words that follow the counter's
// name, or "".
func Disagreement(sum int, end *bench.End) string {
	if end.Status != bench.OK || end.Usage == nil || end.Usage.Completion <= 0 {
		return ""
	}
	unseen, most := end.Usage.Completion-sum, max(2, end.Usage.Completion/50)
	if unseen < -most || unseen > most && end.Usage.Reasoning <= 0 {
		return fmt.Sprintf("makes %d tokens of an answer that the server counts as %d", sum, end.Usage.Completion)
	}
	return ""
}
