package enginetest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strconv"

	"velo/engine/weights"
)

// Tensors makes up the tensors of a model in float32, the same every time: it is a model.Source. Keys
// are their names.
type Tensors map[string][]int

// TensorsOf are all that a model of this configuration may ask for, biases and the prediction head's
// among them. Norms are around 1, all else around 0.
func TensorsOf(c *weights.Config) Tensors {
	s := Tensors{"model.embed_tokens.weight": {c.Vocab, c.Hidden}, "lm_head.weight": {c.Vocab, c.Hidden}, "model.norm.weight": {c.Hidden}}
	for i := range c.Layers {
		s.block(c, "model.layers."+strconv.Itoa(i), i < len(c.LayerTypes) && c.LayerTypes[i] == weights.LinearAttention)
	}
	s.block(c, "mtp.layers.0", false)
	s["mtp.fc.weight"] = []int{c.Hidden, 2 * c.Hidden}
	for _, name := range []string{"pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"} {
		s["mtp."+name+".weight"] = []int{c.Hidden}
	}
	return s
}

func (s Tensors) block(c *weights.Config, prefix string, linearAttention bool) {
	s[prefix+".input_layernorm.weight"] = []int{c.Hidden}
	s[prefix+".post_attention_layernorm.weight"] = []int{c.Hidden}
	s[prefix+".mlp.gate_proj.weight"] = []int{c.Intermediate, c.Hidden}
	s[prefix+".mlp.up_proj.weight"] = []int{c.Intermediate, c.Hidden}
	s[prefix+".mlp.down_proj.weight"] = []int{c.Hidden, c.Intermediate}
	if linearAttention {
		p := prefix + ".linear_attn"
		nk, nv := c.LinearKeyHeads*c.LinearKeyDim, c.LinearValueHeads*c.LinearValueDim
		s[p+".in_proj_qkv.weight"] = []int{2*nk + nv, c.Hidden}
		s[p+".in_proj_z.weight"] = []int{nv, c.Hidden}
		s[p+".in_proj_b.weight"] = []int{c.LinearValueHeads, c.Hidden}
		s[p+".in_proj_a.weight"] = []int{c.LinearValueHeads, c.Hidden}
		s[p+".out_proj.weight"] = []int{c.Hidden, nv}
		s[p+".conv1d.weight"] = []int{2*nk + nv, 1, c.ConvKernel}
		s[p+".norm.weight"] = []int{c.LinearValueDim}
		s[p+".A_log"], s[p+".dt_bias"] = []int{c.LinearValueHeads}, []int{c.LinearValueHeads}
		return
	}
	p := prefix + ".self_attn"
	nq, nk := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	gate := 1
	if c.AttentionGate {
		gate = 2
	}
	s[p+".q_proj.weight"], s[p+".q_proj.bias"] = []int{gate * nq, c.Hidden}, []int{gate * nq}
	s[p+".k_proj.weight"], s[p+".k_proj.bias"] = []int{nk, c.Hidden}, []int{nk}
	s[p+".v_proj.weight"], s[p+".v_proj.bias"] = []int{nk, c.Hidden}, []int{nk}
	s[p+".o_proj.weight"] = []int{c.Hidden, nq}
	s[p+".q_norm.weight"], s[p+".k_norm.weight"] = []int{c.HeadDim}, []int{c.HeadDim}
}

// Tensor makes one up; ok tells whether it is among them.
func (s Tensors) Tensor(name string) (t *weights.Tensor, ok bool) {
	shape, ok := s[name]
	if !ok {
		return nil, false
	}
	n, seed := 1, uint64(0)
	for _, d := range shape {
		n *= d
	}
	for _, c := range name {
		seed = seed*31 + uint64(c)
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	t = &weights.Tensor{Name: name, Type: weights.F32, Shape: shape, Data: make([]byte, 0, 4*n)}
	for range n {
		v := rng.NormFloat64() * 0.2
		if len(shape) == 1 {
			v += 1
		}
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(float32(v)))
	}
	return t, true
}
