package weights

import (
	"fmt"
	"math"
	"math/bits"
)

// Fit is the memory that serving a model takes, in bytes. Weights, keys and
// values, and recurrent states are exact; scratch is an estimate.
type Fit struct {
	Context, Sequences int

	Weights int64 // as stored
	KV      int64 // keys and values: Sequences × Context tokens
	State   int64 // recurrent states: one a sequence
	Scratch int64 // activations and logits of a step (estimate)
	Total   int64
}

// What Fit reckons with: keys, values, states and activations in single
// precision, a step of FitRows tokens of which FitOutputs get logits, and the
// cache handed out in pages of FitPage tokens.
const (
	FitRows    = 512
	FitOutputs = 16
	FitPage    = 16
)

// Fit works out the memory for so many sequences of so many tokens each.
// Numbers that no machine could hold are capped at the largest int64.
func (m *Model) Fit(context, sequences int) Fit {
	f := m.Config.Fit(context, sequences)
	f.Weights = m.bytes
	f.Total = sum(f.Weights, f.KV, f.State, f.Scratch)
	return f
}

// Fit is that of a model of this shape without its weights.
func (c *Config) Fit(context, sequences int) Fit {
	context, sequences = max(0, context), max(0, sequences)
	f := Fit{Context: context, Sequences: sequences}
	linear := 0
	for _, kind := range c.LayerTypes {
		if kind == LinearAttention {
			linear++
		}
	}
	f.KV = c.KVBytes(context, sequences, KVF32)
	channels := 2*c.LinearKeyHeads*c.LinearKeyDim + c.LinearValueHeads*c.LinearValueDim
	state := max(0, c.ConvKernel-1)*channels + c.LinearValueHeads*c.LinearKeyDim*c.LinearValueDim
	f.State = product(int64(sequences), int64(linear), int64(state), 4)
	heads := c.HeadDim * (c.Heads + 2*c.KVHeads)
	if c.AttentionGate {
		heads += c.HeadDim * c.Heads
	}
	mixer := max(heads+c.HeadDim*c.Heads, channels+3*c.LinearValueHeads*c.LinearValueDim)
	f.Scratch = sum(product(FitRows, int64(4*c.Hidden+mixer+3*c.Intermediate), 4), product(FitOutputs, int64(c.Vocab), 4))
	f.Total = sum(f.KV, f.State, f.Scratch)
	return f
}

// Check fails with the arithmetic if the total exceeds what is available.
func (f Fit) Check(available int64) error {
	if f.Total <= available {
		return nil
	}
	return fmt.Errorf("cannot fit the model: %s, but %s are available; use a shorter context, fewer sequences or a smaller quantisation", f, size(available))
}

// String is the arithmetic in words.
func (f Fit) String() string {
	s := fmt.Sprintf("weights %s + keys and values %s (%d × %d tokens)", size(f.Weights), size(f.KV), f.Sequences, f.Context)
	if f.State > 0 {
		s += " + recurrent state " + size(f.State)
	}
	return s + fmt.Sprintf(" + scratch %s (estimate) = %s", size(f.Scratch), size(f.Total))
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}

// product multiplies numbers ≥ 0 and stops at the largest int64.
func product(factors ...int64) int64 {
	p := uint64(1)
	for _, f := range factors {
		high, low := bits.Mul64(p, uint64(f))
		if high > 0 || low > math.MaxInt64 {
			for _, g := range factors { // unless a later factor is zero
				if g == 0 {
					return 0
				}
			}
			return math.MaxInt64
		}
		p = low
	}
	return int64(p)
}

// sum adds numbers ≥ 0 and stops at the largest int64.
func sum(terms ...int64) int64 {
	s := int64(0)
	for _, t := range terms {
		if s > math.MaxInt64-t {
			return math.MaxInt64
		}
		s += t
	}
	return s
}
