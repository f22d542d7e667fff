package sched

import (
	"fmt"
	"math"
	"strings"

	"velo/engine/ops"
	"velo/engine/weights"
)

// Sizes are what a memory plan is made for. Zero members get the defaults of
// serving.
type Sizes struct {
	Context     int        // tokens of one request; 0 = 4096 or the model's own, if less
	Lanes       int        // answers written at a time; 0 = 8
	Tokens      int        // tokens remembered of all together; 0 = Lanes × Context
	Checkpoints int        // recurrent states beside the lanes' own, of a hybrid model
	Rows        int        // most rows of a step; 0 = 512
	KV          ops.KVType // how keys and values are stored
	Available   int64      // memory that may be used, bytes; 0 = not known
}

// Memory is the memory plan of a model, in bytes.
type Memory struct {
	Sizes Sizes

	Weights     int64 // as the backend holds them
	Pages       int64 // keys and values
	States      int64 // recurrent states of the lanes
	Checkpoints int64 // recurrent states of the prefix cache
	Scratch     int64 // activations and logits of a step (estimate)
	Total       int64
}

// Plan works out the memory that serving takes, from a model's shape and the
// bytes of its weights, before anything of it is loaded.
func Plan(c *weights.Config, weightBytes int64, z Sizes) Memory {
	if z.Context <= 0 {
		z.Context = 4096
		if c.MaxPosition > 0 {
			z.Context = min(z.Context, c.MaxPosition)
		}
	}
	if z.Lanes <= 0 {
		z.Lanes = 8
	}
	if z.Tokens <= 0 {
		z.Tokens = times(z.Lanes, z.Context)
	}
	if z.Rows <= 0 {
		z.Rows = 512
	}
	one := c.Fit(ops.PageTokens, 1)
	m := Memory{Sizes: z, Weights: weightBytes}
	hybrid := one.State > 0
	if !hybrid {
		m.Sizes.Checkpoints = 0
	}
	sequences := z.Lanes + m.Sizes.Checkpoints
	pages := (z.Tokens-1)/ops.PageTokens + 1 + sequences // as model.New makes them
	m.Pages = product(int64(pages), c.KVBytes(ops.PageTokens, 1, z.KV))
	m.States = product(int64(z.Lanes), one.State)
	m.Checkpoints = product(int64(m.Sizes.Checkpoints), one.State)
	// A step of weights.FitRows rows, of which weights.FitOutputs have logits,
	// made smaller or larger.
	logits := product(int64(c.Vocab), 4)
	row := max(0, one.Scratch-product(weights.FitOutputs, logits)) / weights.FitRows
	m.Scratch = sum(product(int64(z.Rows), row), product(int64(z.Lanes), logits))
	m.Total = sum(m.Weights, m.Pages, m.States, m.Checkpoints, m.Scratch)
	return m
}

// Check refuses what does not fit, with the arithmetic and what could be
// smaller.
func (m Memory) Check() error {
	if m.Sizes.Available <= 0 || m.Total <= m.Sizes.Available {
		return nil
	}
	advice := []string{"fewer lanes or a shorter context"}
	if m.Checkpoints > 0 {
		advice = append(advice, "fewer checkpoints")
	}
	if m.Weights > m.Sizes.Available/2 {
		advice = append(advice, "a smaller model or quantisation")
	}
	return fmt.Errorf("cannot fit the model: it takes %s (%s) and %s are available; use %s",
		bytes(m.Total), m.sum(), bytes(m.Sizes.Available), strings.Join(advice, ", or "))
}

// sum is the arithmetic in a line.
func (m Memory) sum() string {
	s := fmt.Sprintf("weights %s + keys and values %s", bytes(m.Weights), bytes(m.Pages))
	if m.States > 0 {
		s += fmt.Sprintf(" + recurrent states %s + checkpoints %s", bytes(m.States), bytes(m.Checkpoints))
	}
	return s + " + scratch " + bytes(m.Scratch)
}

// String is the plan in words, a line each.
func (m Memory) String() string {
	var b strings.Builder
	line := func(what string, n int64, why string) { fmt.Fprintf(&b, "%-18s %10s  %s\n", what, bytes(n), why) }
	line("weights", m.Weights, "as they are computed with")
	line("keys and values", m.Pages, fmt.Sprintf("%d tokens in %s, in pages of %d, for all requests together", m.Sizes.Tokens, m.Sizes.KV, ops.PageTokens))
	if m.States > 0 {
		line("recurrent states", m.States, fmt.Sprintf("one for each of %d lanes", m.Sizes.Lanes))
		line("checkpoints", m.Checkpoints, fmt.Sprintf("%d states for the prefix cache", m.Sizes.Checkpoints))
	}
	line("scratch", m.Scratch, fmt.Sprintf("a step of %d rows (estimate)", m.Sizes.Rows))
	line("total", m.Total, "")
	if m.Sizes.Available > 0 {
		line("available", m.Sizes.Available, "")
	}
	return b.String()
}

func bytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}

// times multiplies sizes that a user gave and stops at the largest int32.
func times(a, b int) int {
	if a > 0 && b > math.MaxInt32/a {
		return math.MaxInt32
	}
	return a * b
}

// product multiplies numbers ≥ 0 and stops at the largest int64.
func product(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// sum adds numbers ≥ 0 and stops at the largest int64.
func sum(terms ...int64) (s int64) {
	for _, t := range terms {
		if s > math.MaxInt64-t {
			return math.MaxInt64
		}
		s += t
	}
	return s
}
