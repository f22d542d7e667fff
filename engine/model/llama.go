package model

import (
	"velo/engine/ops"
	"velo/engine/weights"
)

// block is one layer of the Llama family, of which Qwen2 and Qwen3 are:
// x += attention(norm(x)); x += mlp(norm(x)).
type block struct {
	norm1, norm2 ops.Vector
	eps          float32
	attention    *attention
	mlp          *mlp
	normed       ops.Tensor
}

func (b *binder) newBlock(prefix string, window int) *block {
	n := b.config.Hidden
	return &block{
		norm1:     b.norm(n, prefix+".input_layernorm.weight"),
		norm2:     b.norm(n, prefix+".post_attention_layernorm.weight"),
		eps:       float32(b.config.RMSEps),
		attention: b.newAttention(prefix+".self_attn", window),
		mlp:       b.newMLP(prefix + ".mlp"),
		normed:    ops.All(b.shared("normed", n)),
	}
}

func (l *block) forward(b ops.Backend, cache ops.Cache, hidden ops.Tensor) {
	b.Norm(l.normed, hidden, l.norm1, l.eps)
	l.attention.forward(b, cache, hidden, l.normed)
	b.Norm(l.normed, hidden, l.norm2, l.eps)
	l.mlp.forward(b, hidden, l.normed)
}

// llama binds the layers of Llama, Qwen2 and Qwen3.
func (b *binder) llama() []layer {
	var layers []layer
	for i := range b.config.Layers {
		layers = append(layers, b.newBlock(layerName(i), b.window(i)))
	}
	return layers
}

// window is how far layer i sees, 0 for all.
func (b *binder) window(i int) int {
	if i < len(b.config.LayerTypes) && b.config.LayerTypes[i] == weights.SlidingAttention {
		return b.config.SlidingWindow
	}
	return 0
}
