package model

import (
	"velo/engine/ops"
	"velo/engine/weights"
)

// Shape is what a model of this configuration keeps of each token and of each sequence, before it is
// made. How keys and values are stored is up to the backend.
func Shape(c *weights.Config) ops.CacheShape {
	s := ops.CacheShape{Attention: c.Layers + draftLayers(c), Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.HeadDim}
	for _, kind := range c.LayerTypes {
		if kind == weights.LinearAttention {
			s.Recurrent++
		}
	}
	if s.Attention -= s.Recurrent; s.Recurrent > 0 {
		s.KeyHeads, s.ValueHeads = c.LinearKeyHeads, c.LinearValueHeads
		s.KeyDim, s.ValueDim = c.LinearKeyDim, c.LinearValueDim
		s.ConvKernel = c.ConvKernel
		s.ConvCols = 2*c.LinearKeyHeads*c.LinearKeyDim + c.LinearValueHeads*c.LinearValueDim
	}
	return s
}

// Activations are the bytes of a model's buffers for a row of a step, and for one whose logits are
// wanted besides. Layers of a kind take turns in one set of buffers.
func Activations(c *weights.Config) (row, output int64) {
	shape := Shape(c)
	n := 3*c.Hidden + 3*c.Intermediate // hidden, and it normed within and behind the layers; gate, up and their product
	if shape.Attention > 0 {
		n += 2*c.Heads*c.HeadDim + 2*c.KVHeads*c.HeadDim // q, k, v and the result
		if c.AttentionGate {
			n += c.Heads * c.HeadDim
		}
	}
	if shape.Recurrent > 0 {
		n += 2*c.LinearKeyHeads*c.LinearKeyDim + 3*c.LinearValueHeads*c.LinearValueDim + 2*c.LinearValueHeads
	}
	if draftLayers(c) > 0 {
		n += 5 * c.Hidden // both inputs, a token, hidden and it normed
	}
	return 4 * int64(n), 4 * int64(c.Hidden+c.Vocab)
}

// Widest is the most columns of a model's matrices.
func Widest(c *weights.Config) int {
	n := max(c.Hidden, c.Intermediate, c.Heads*c.HeadDim, c.LinearValueHeads*c.LinearValueDim)
	if draftLayers(c) > 0 {
		n = max(n, 2*c.Hidden)
	}
	return n
}

// draftLayers is how many layers the prediction head has; Qwen 3.5 alone is drafted with.
func draftLayers(c *weights.Config) int {
	if c.Architecture == weights.Qwen35 {
		return c.MTPLayers
	}
	return 0
}
