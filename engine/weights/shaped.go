package weights

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// Shaped is a model of a shape whose matrices have no data: a backend that can makes random
// numbers up in its own memory, so that the speed of a model is measured without its files, however
// large they are. Matrices are of type t, but for the embedding and the decay and write strength of
// recurrent layers, which are BF16 in the models that are published so. Everything else has random
// values of its own, the same ones every time. The error says what is wrong with the shape.
func Shaped(name string, c *Config, t Type, files TokenizerFiles) (*Model, error) {
	if err := c.valid(); err != nil {
		return nil, err
	}
	m := &Model{Path: name, Config: *c, tensors: map[string]*Tensor{}, halves: map[string]int{}, tokenizer: files}
	rng := rand.New(rand.NewPCG(1, 0))
	for _, e := range c.expect() {
		x := &Tensor{Name: e.name, Stored: e.name, Type: BF16, Shape: e.shape, Global: 1}
		m.tensors[e.name] = x
		m.names = append(m.names, e.name)
		if !e.matrix {
			x.Data = small(rng, x, c)
		} else if !strings.HasSuffix(e.name, "in_proj_a.weight") && !strings.HasSuffix(e.name, "in_proj_b.weight") && !strings.Contains(e.name, "embed_tokens") {
			x.Type = t
		}
		values, octets := x.Type.Block()
		m.bytes += int64(x.Rows()) * int64(x.Cols()) / int64(values) * int64(octets)
		if x.Type == NVFP4 {
			m.bytes += int64(x.Rows()) * int64(x.Cols()) / NVFP4Group
		}
	}
	slices.Sort(m.names)
	return m, nil
}

// small is values of a parameter that is no matrix, in BF16.
func small(rng *rand.Rand, t *Tensor, c *Config) []byte {
	scale, mean := 0.1, 0.0
	switch {
	case len(t.Shape) > 1:
		scale = 1 / math.Sqrt(float64(t.Cols()))
	case strings.HasSuffix(t.Name, "linear_attn.norm.weight"), strings.HasSuffix(t.Name, "norm.weight") && !c.NormOnePlus:
		mean = 1
	}
	data := make([]byte, 2*t.Rows()*t.Cols())
	for i := 0; i < len(data); i += 2 {
		v := math.Float32bits(float32(mean + scale*rng.NormFloat64()))
		data[i], data[i+1] = byte(v>>16), byte(v>>24)
	}
	return data
}
