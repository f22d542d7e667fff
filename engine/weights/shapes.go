package weights

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// expected is a tensor that a model of a given Config must have.
type expected struct {
	name  string
	shape []int
	// matrix: it may be stored in any type; all others only as F32, F16 or
	// BF16.
	matrix bool
}

// expect lists every tensor of the model, in the order of computation.
func (c *Config) expect() []expected {
	list := []expected{
		{"model.embed_tokens.weight", []int{c.Vocab, c.Hidden}, true},
	}
	for i := range c.Layers {
		list = c.expectLayer(list, "model.layers."+strconv.Itoa(i)+".", c.LayerTypes[i])
	}
	list = append(list, expected{"model.norm.weight", []int{c.Hidden}, false})
	if !c.TieEmbeddings {
		list = append(list, expected{"lm_head.weight", []int{c.Vocab, c.Hidden}, true})
	}
	if c.MTPLayers > 0 {
		list = append(list,
			expected{"mtp.pre_fc_norm_embedding.weight", []int{c.Hidden}, false},
			expected{"mtp.pre_fc_norm_hidden.weight", []int{c.Hidden}, false},
			expected{"mtp.fc.weight", []int{c.Hidden, 2 * c.Hidden}, true})
		for i := range c.MTPLayers {
			list = c.expectLayer(list, "mtp.layers."+strconv.Itoa(i)+".", FullAttention)
		}
		list = append(list, expected{"mtp.norm.weight", []int{c.Hidden}, false})
	}
	return list
}

// expectLayer appends the tensors of one decoder layer.
func (c *Config) expectLayer(list []expected, prefix, kind string) []expected {
	add := func(matrix bool, name string, shape ...int) {
		list = append(list, expected{prefix + name, shape, matrix})
	}
	linear := func(name string, out, in int, bias bool) {
		add(true, name+".weight", out, in)
		if bias {
			add(false, name+".bias", out)
		}
	}
	add(false, "input_layernorm.weight", c.Hidden)
	if kind == LinearAttention {
		keys, values := c.LinearKeyHeads*c.LinearKeyDim, c.LinearValueHeads*c.LinearValueDim
		linear("linear_attn.in_proj_qkv", 2*keys+values, c.Hidden, false)
		linear("linear_attn.in_proj_z", values, c.Hidden, false)
		linear("linear_attn.in_proj_b", c.LinearValueHeads, c.Hidden, false)
		linear("linear_attn.in_proj_a", c.LinearValueHeads, c.Hidden, false)
		add(false, "linear_attn.conv1d.weight", 2*keys+values, 1, c.ConvKernel)
		add(false, "linear_attn.A_log", c.LinearValueHeads)
		add(false, "linear_attn.dt_bias", c.LinearValueHeads)
		add(false, "linear_attn.norm.weight", c.LinearValueDim)
		linear("linear_attn.out_proj", c.Hidden, values, false)
	} else {
		queries := c.Heads * c.HeadDim
		gated := queries
		if c.AttentionGate {
			gated *= 2
		}
		linear("self_attn.q_proj", gated, c.Hidden, c.AttentionBias)
		linear("self_attn.k_proj", c.KVHeads*c.HeadDim, c.Hidden, c.AttentionBias)
		linear("self_attn.v_proj", c.KVHeads*c.HeadDim, c.Hidden, c.AttentionBias)
		if c.QKNorm {
			add(false, "self_attn.q_norm.weight", c.HeadDim)
			add(false, "self_attn.k_norm.weight", c.HeadDim)
		}
		linear("self_attn.o_proj", c.Hidden, queries, c.OutputBias)
	}
	add(false, "post_attention_layernorm.weight", c.Hidden)
	linear("mlp.gate_proj", c.Intermediate, c.Hidden, c.MLPBias)
	linear("mlp.up_proj", c.Intermediate, c.Hidden, c.MLPBias)
	linear("mlp.down_proj", c.Hidden, c.Intermediate, c.MLPBias)
	return list
}

// valid checks that the numbers of a Config fit together, so that sizes
// computed from it neither overflow nor make a division by zero.
func (c *Config) valid() error {
	for _, n := range []struct {
		name  string
		value int
		most  int
	}{
		{"number of layers", c.Layers, 1 << 10},
		{"hidden size", c.Hidden, 1 << 18},
		{"number of attention heads", c.Heads, 1 << 12},
		{"number of key/value heads", c.KVHeads, 1 << 12},
		{"head dimension", c.HeadDim, 1 << 12},
		{"intermediate size", c.Intermediate, 1 << 20},
		{"vocabulary size", c.Vocab, 1 << 24},
		{"maximum position", c.MaxPosition, 1 << 30},
	} {
		if n.value < 1 || n.value > n.most {
			return fmt.Errorf("the %s is %d, which is not between 1 and %d", n.name, n.value, n.most)
		}
	}
	switch {
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("%d attention heads cannot share %d key/value heads evenly", c.Heads, c.KVHeads)
	case !(c.RMSEps > 0 && c.RMSEps < 1):
		return fmt.Errorf("the epsilon of the RMS norm is %v", c.RMSEps)
	case !(c.RopeTheta > 1) || math.IsInf(c.RopeTheta, 0):
		return fmt.Errorf("the base of the rotary embedding is %v", c.RopeTheta)
	case !(c.PartialRotary > 0 && c.PartialRotary <= 1):
		return fmt.Errorf("the rotated share of a head is %v, not between 0 and 1", c.PartialRotary)
	case c.RotaryDim() < 2 || c.RotaryDim()%2 != 0:
		return fmt.Errorf("%d rotated dimensions of a head are not pairs", c.RotaryDim())
	case len(c.LayerTypes) != c.Layers:
		return fmt.Errorf("the list of layer types has %d entries for %d layers", len(c.LayerTypes), c.Layers)
	case c.SlidingWindow < 0:
		return fmt.Errorf("the sliding window is %d tokens", c.SlidingWindow)
	case c.MTPLayers < 0 || c.MTPLayers > 8:
		return fmt.Errorf("the prediction head has %d layers", c.MTPLayers)
	}
	for i, kind := range c.LayerTypes {
		switch {
		case kind != FullAttention && kind != SlidingAttention && kind != LinearAttention:
			return fmt.Errorf("layer %d is of kind %q, which is not computed here", i, kind)
		case kind == SlidingAttention && c.SlidingWindow == 0:
			return fmt.Errorf("layer %d has sliding-window attention but there is no window size", i)
		}
	}
	if slices.Contains(c.LayerTypes, LinearAttention) {
		for _, n := range []int{c.LinearKeyHeads, c.LinearValueHeads, c.LinearKeyDim, c.LinearValueDim} {
			if n < 1 || n > 1<<12 {
				return fmt.Errorf("linear attention with %d × %d keys and %d × %d values cannot be",
					c.LinearKeyHeads, c.LinearKeyDim, c.LinearValueHeads, c.LinearValueDim)
			}
		}
		if c.LinearValueHeads%c.LinearKeyHeads != 0 {
			return fmt.Errorf("%d linear-attention value heads cannot share %d key heads evenly", c.LinearValueHeads, c.LinearKeyHeads)
		}
		if c.ConvKernel < 1 || c.ConvKernel > 16 {
			return fmt.Errorf("the convolution before linear attention is %d wide", c.ConvKernel)
		}
	}
	for _, id := range append([]int{c.BOS}, c.EOS...) {
		if id < -1 || id >= c.Vocab {
			return fmt.Errorf("token %d, named as begin or end of text, is not in the vocabulary of %d", id, c.Vocab)
		}
	}
	return c.RopeScaling.valid(c)
}

func (s *RopeScaling) valid(c *Config) error {
	if s.FreqDivisors != nil {
		if len(s.FreqDivisors) != c.RotaryDim()/2 {
			return fmt.Errorf("there are %d rotary frequency divisors for %d pairs", len(s.FreqDivisors), c.RotaryDim()/2)
		}
		for _, d := range s.FreqDivisors {
			if !(d > 0) || math.IsInf(float64(d), 0) {
				return fmt.Errorf("a rotary frequency divisor is %v", d)
			}
		}
	}
	positive := func(v float64) bool { return v > 0 && !math.IsInf(v, 0) }
	switch s.Type {
	case "":
		return nil
	case "linear", "llama3", "yarn":
	default:
		return fmt.Errorf("rotary scaling of type %q is not computed here", s.Type)
	}
	if !positive(s.Factor) {
		return fmt.Errorf("the factor of rotary scaling is %v", s.Factor)
	}
	if s.Type != "linear" && (s.OriginalMaxPosition < 1 || s.OriginalMaxPosition > 1<<30) {
		return fmt.Errorf("rotary scaling of type %s starts from a context of %d", s.Type, s.OriginalMaxPosition)
	}
	if s.Type == "llama3" && !(positive(s.LowFreqFactor) && positive(s.HighFreqFactor) && s.HighFreqFactor > s.LowFreqFactor) {
		return fmt.Errorf("rotary scaling of type llama3 has frequency factors %v and %v", s.LowFreqFactor, s.HighFreqFactor)
	}
	if s.Type == "yarn" && !(positive(s.BetaFast) && positive(s.BetaSlow) && positive(s.AttentionFactor)) {
		return errors.New("rotary scaling of type yarn has a beta or an attention factor that is not positive")
	}
	return nil
}

// check compares the tensors found with those that the configuration calls
// for. what names the file or folder's part in messages.
func (m *Model) check() error {
	list := m.Config.expect()
	wanted := make(map[string]bool, len(list))
	for _, e := range list {
		wanted[e.name] = true
		t, ok := m.tensors[e.name]
		if !ok {
			return fmt.Errorf("tensor %s is missing; a %s model of %d layers has it", e.name, m.Config.Architecture, m.Config.Layers)
		}
		if !slices.Equal(t.Shape, e.shape) {
			return fmt.Errorf("tensor %s has shape %v; the configuration calls for %v", e.name, t.Shape, e.shape)
		}
		if !e.matrix && t.Type != F32 && t.Type != F16 && t.Type != BF16 {
			return fmt.Errorf("tensor %s is stored as %v; norms, biases and the like must be F32, F16 or BF16", e.name, t.Type)
		}
	}
	for name := range m.tensors {
		if !wanted[name] && !tolerated(name, &m.Config) {
			return fmt.Errorf("tensor %s is no part of a %s model as it is computed here, so the answers would be wrong", name, m.Config.Architecture)
		}
	}
	return nil
}
