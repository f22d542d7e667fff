package model

import (
	"velo/engine/ops"
	"velo/engine/weights"
)

// deltaNet is a layer of gated linear attention (Gated DeltaNet): a causal
// convolution over q, k and v, the gated delta rule, and a norm of each head
// that z gates.
type deltaNet struct {
	qkvz, ba, out ops.Matrix
	conv          ops.Vector
	norm          ops.Vector
	eps           float32
	index         int

	delta            ops.Delta
	all, mixed, gate ops.Tensor // output of qkvz: whole, that of qkv, that of z by head
	strength         ops.Tensor // output of ba
	result, heads    ops.Tensor // the same columns, whole and by head
}

func (b *binder) newDeltaNet(prefix string) *deltaNet {
	c := b.config
	nk, nv := c.LinearKeyHeads*c.LinearKeyDim, c.LinearValueHeads*c.LinearValueDim
	d := &deltaNet{eps: float32(c.RMSEps), index: b.recurrent}
	b.recurrent++
	d.qkvz = b.stack(c.Hidden, linear{prefix + ".in_proj_qkv", 2*nk + nv}, linear{prefix + ".in_proj_z", nv})
	d.ba = b.stack(c.Hidden, linear{prefix + ".in_proj_b", c.LinearValueHeads}, linear{prefix + ".in_proj_a", c.LinearValueHeads})
	d.out = b.stack(nv, linear{prefix + ".out_proj", c.Hidden})
	d.conv = b.vector(0, b.tensor(prefix+".conv1d.weight", 2*nk+nv, 1, c.ConvKernel))
	// This norm multiplies by its weight as it is, unlike the others.
	d.norm = b.vector(0, b.tensor(prefix+".norm.weight", c.LinearValueDim))
	d.delta.ALog = b.vector(0, b.tensor(prefix+".A_log", c.LinearValueHeads))
	d.delta.Bias = b.vector(0, b.tensor(prefix+".dt_bias", c.LinearValueHeads))

	mixed := b.shared("delta mixed", 2*nk+2*nv)
	d.all, d.mixed = ops.All(mixed), ops.Part(mixed, 0, 2*nk+nv, 1)
	d.gate = ops.Part(mixed, 2*nk+nv, nv, c.LinearValueHeads)
	d.delta.Q = ops.Part(mixed, 0, nk, c.LinearKeyHeads)
	d.delta.K = ops.Part(mixed, nk, nk, c.LinearKeyHeads)
	d.delta.V = ops.Part(mixed, 2*nk, nv, c.LinearValueHeads)
	d.delta.Tiled = c.LinearTiled
	ba := b.shared("delta ba", 2*c.LinearValueHeads)
	d.strength = ops.All(ba)
	d.delta.B = ops.Part(ba, 0, c.LinearValueHeads, 1)
	d.delta.A = ops.Part(ba, c.LinearValueHeads, c.LinearValueHeads, 1)
	result := b.shared("delta result", nv)
	d.result, d.heads = ops.All(result), ops.Part(result, 0, nv, c.LinearValueHeads)
	return d
}

// forward adds the layer's result for x to hidden.
func (d *deltaNet) forward(b ops.Backend, cache ops.Cache, hidden, x ops.Tensor) {
	b.Linear(d.all, x, d.qkvz, nil)
	b.Linear(d.strength, x, d.ba, nil)
	b.Convolve(d.mixed, d.conv, cache, d.index)
	b.DeltaRule(d.heads, &d.delta, cache, d.index)
	b.Norm(d.heads, d.heads, d.norm, d.eps)
	b.SiLU(d.heads, d.gate, d.heads)
	b.AddLinear(hidden, d.result, d.out, nil)
}

// deltaBlock is a layer of Qwen3.5 and 3.6 with linear attention.
type deltaBlock struct {
	norm1, norm2 ops.Vector
	eps          float32
	delta        *deltaNet
	mlp          *mlp
	normed       ops.Tensor
}

func (l *deltaBlock) forward(b ops.Backend, cache ops.Cache, hidden ops.Tensor) {
	b.Norm(l.normed, hidden, l.norm1, l.eps)
	l.delta.forward(b, cache, hidden, l.normed)
	b.Norm(l.normed, hidden, l.norm2, l.eps)
	l.mlp.forward(b, hidden, l.normed)
}

// qwen35 binds the layers of Qwen3.5 and 3.6: linear attention, and every
// fourth layer (as LayerTypes says) gated softmax attention.
func (b *binder) qwen35() []layer {
	var layers []layer
	n := b.config.Hidden
	for i := range b.config.Layers {
		prefix := layerName(i)
		if i < len(b.config.LayerTypes) && b.config.LayerTypes[i] == weights.LinearAttention {
			layers = append(layers, &deltaBlock{
				norm1:  b.norm(n, prefix+".input_layernorm.weight"),
				norm2:  b.norm(n, prefix+".post_attention_layernorm.weight"),
				eps:    float32(b.config.RMSEps),
				delta:  b.newDeltaNet(prefix + ".linear_attn"),
				mlp:    b.newMLP(prefix + ".mlp"),
				normed: ops.All(b.shared("normed", n)),
			})
		} else {
			layers = append(layers, b.newBlock(prefix, b.window(i)))
		}
	}
	return layers
}
