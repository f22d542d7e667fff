// Package synthetic makes models of true shapes without files: random weights that the backend
// makes up in its own memory, and a tokenizer of as many ids that reads a text byte by byte. What
// such a model says is nonsense; what it costs is what the real one costs.
//
// The package is under the Apache License 2.0, see engine/LICENSE.
package synthetic

import (
	"fmt"
	"strings"

	"velo/engine/weights"
)

// shape is a model that is known by name.
type shape struct {
	name                                              string
	layers, hidden, heads, kvHeads, inner, valueHeads int
	tied                                              bool
}

// The published shapes of Qwen3.5 and 3.6: three of four layers are recurrent, heads of attention
// are 256 wide, those of the delta rule 128.
var shapes = []shape{
	{"qwen3.6-27b", 64, 5120, 24, 4, 17408, 48, false},
	{"qwen3.5-9b", 32, 4096, 16, 4, 12288, 32, false},
	{"qwen3.5-0.8b", 24, 1024, 8, 2, 3584, 16, true},
}

// types are the formats that weights may be in, the first one if none is named.
var types = []struct {
	name string
	t    weights.Type
}{{"nvfp4", weights.NVFP4}, {"fp8", weights.FP8Row}, {"bf16", weights.BF16}}

// Names lists the models, "qwen3.5-9b" for example. A format may follow each, as in
// "qwen3.5-9b:fp8": nvfp4 (if none is named), fp8 or bf16.
func Names() []string {
	var names []string
	for _, s := range shapes {
		names = append(names, s.name)
	}
	return names
}

// Open makes the model of that name. Its matrices have no data, see [weights.Shaped]. The error
// says which names there are.
func Open(name string) (*weights.Model, error) {
	model, format, named := strings.Cut(strings.ToLower(name), ":")
	for _, s := range shapes {
		if s.name != model {
			continue
		}
		for _, t := range types {
			if t.name == format || !named {
				return weights.Shaped(s.name+":"+t.name, s.config(), t.t, weights.TokenizerFiles{})
			}
		}
		return nil, fmt.Errorf("cannot make %s up in %q: the formats are nvfp4, fp8 and bf16", s.name, format)
	}
	return nil, fmt.Errorf("cannot make a model %q up: there are %s, each with :nvfp4, :fp8 or :bf16 behind it", name, strings.Join(Names(), ", "))
}

// config is the shape in full.
func (s *shape) config() *weights.Config {
	c := &weights.Config{Architecture: weights.Qwen35, Layers: s.layers, Hidden: s.hidden, Heads: s.heads, KVHeads: s.kvHeads, HeadDim: 256,
		Intermediate: s.inner, Vocab: Vocab, MaxPosition: 262144, RopeTheta: 1e7, PartialRotary: 0.25, RMSEps: 1e-6, QKNorm: true,
		AttentionGate: true, NormOnePlus: true, TieEmbeddings: s.tied, LinearKeyHeads: 16, LinearValueHeads: s.valueHeads, LinearKeyDim: 128,
		LinearValueDim: 128, ConvKernel: 4, BOS: -1, EOS: []int{Vocab - 1}}
	for i := range s.layers {
		kind := weights.LinearAttention
		if i%4 == 3 {
			kind = weights.FullAttention
		}
		c.LayerTypes = append(c.LayerTypes, kind)
	}
	return c
}

// Vocab is how many ids the models know.
const Vocab = 248320
