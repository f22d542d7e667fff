package model

import (
	"fmt"
	"math"

	"velo/engine/ops"
)

// attention is causal grouped-query softmax attention with what the families
// add to it: biases (Qwen2), a norm of each head of q and k (Qwen3), a
// sigmoid gate on the result (Qwen3.5).
type attention struct {
	qkv           ops.Matrix
	bias          ops.Vector
	out           ops.Matrix
	outBias       ops.Vector
	qNorm, kNorm  ops.Vector
	rope          *ops.Rope
	eps, scale    float32
	index, window int

	q, k, v, gate ops.Tensor // views of qkv's output
	all           ops.Tensor
	result        ops.Tensor
	gated         bool
}

// attention binds prefix + ".q_proj" and so on.
func (b *binder) newAttention(prefix string, window int) *attention {
	c := b.config
	a := &attention{rope: b.rope, eps: float32(c.RMSEps), scale: float32(1 / math.Sqrt(float64(c.HeadDim))),
		index: b.attention, window: window, gated: c.AttentionGate}
	b.attention++
	nq, nk := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	stride := c.HeadDim
	if a.gated {
		nq, stride = 2*nq, 2*stride // each head of q is followed by its gate
	}
	parts := []linear{{prefix + ".q_proj", nq}, {prefix + ".k_proj", nk}, {prefix + ".v_proj", nk}}
	a.qkv = b.stack(c.Hidden, parts...)
	a.bias = b.bias(c.AttentionBias, parts...)
	out := linear{prefix + ".o_proj", c.Hidden}
	a.out = b.stack(c.Heads*c.HeadDim, out)
	a.outBias = b.bias(c.OutputBias, out)
	if c.QKNorm {
		a.qNorm = b.norm(c.HeadDim, prefix+".q_norm.weight")
		a.kNorm = b.norm(c.HeadDim, prefix+".k_norm.weight")
	}
	buffer := b.shared("qkv", nq+2*nk)
	a.all = ops.All(buffer)
	a.q = ops.Tensor{Buffer: buffer, Heads: c.Heads, Dim: c.HeadDim, Stride: stride}
	a.gate = ops.Tensor{Buffer: buffer, Offset: c.HeadDim, Heads: c.Heads, Dim: c.HeadDim, Stride: stride}
	a.k = ops.Part(buffer, nq, nk, c.KVHeads)
	a.v = ops.Part(buffer, nq+nk, nk, c.KVHeads)
	a.result = ops.Part(b.shared("attention", c.Heads*c.HeadDim), 0, c.Heads*c.HeadDim, c.Heads)
	return a
}

// forward adds the attention of x to hidden.
func (a *attention) forward(b ops.Backend, cache ops.Cache, hidden, x ops.Tensor) {
	b.Linear(a.all, x, a.qkv, a.bias)
	if a.qNorm != nil {
		b.Norm(a.q, a.q, a.qNorm, a.eps)
		b.Norm(a.k, a.k, a.kNorm, a.eps)
	}
	b.Rope(a.q, a.rope)
	b.Rope(a.k, a.rope)
	b.Attend(a.result, a.q, a.k, a.v, cache, a.index, a.window, a.scale)
	if a.gated {
		b.Sigmoid(a.result, a.gate)
	}
	b.AddLinear(hidden, a.result, a.out, a.outBias)
}

// mlp is the SwiGLU feed-forward block: down(silu(gate x) ⊙ up x).
type mlp struct {
	gateUp, down           ops.Matrix
	bias, downBias         ops.Vector
	all, gate, up, product ops.Tensor
}

func (b *binder) newMLP(prefix string) *mlp {
	c := b.config
	n := c.Intermediate
	parts := []linear{{prefix + ".gate_proj", n}, {prefix + ".up_proj", n}}
	down := linear{prefix + ".down_proj", c.Hidden}
	m := &mlp{gateUp: b.stack(c.Hidden, parts...), down: b.stack(n, down)}
	m.bias, m.downBias = b.bias(c.MLPBias, parts...), b.bias(c.MLPBias, down)
	buffer := b.shared("gateUp", 2*n)
	m.all, m.gate, m.up = ops.All(buffer), ops.Part(buffer, 0, n, 1), ops.Part(buffer, n, n, 1)
	m.product = ops.All(b.shared("product", n))
	return m
}

// forward adds the block's result for x to hidden.
func (m *mlp) forward(b ops.Backend, hidden, x ops.Tensor) {
	b.Linear(m.all, x, m.gateUp, m.bias)
	b.SiLU(m.product, m.gate, m.up)
	b.AddLinear(hidden, m.product, m.down, m.downBias)
}

func layerName(i int) string { return fmt.Sprintf("model.layers.%d", i) }
