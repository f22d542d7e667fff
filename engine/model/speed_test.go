package model

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"velo/engine/cpu"
	"velo/engine/enginetest"
	"velo/engine/weights"
)

// shaped is a Source of random tensors in the storage types of
// SmolLM2-135M-Instruct's Q4_1 file.
type shaped struct{ enginetest.Tensors }

func (s shaped) Tensor(name string) (*weights.Tensor, bool) {
	shape := s.Tensors[name]
	if len(shape) < 2 {
		return s.Tensors.Tensor(name)
	}
	t := &weights.Tensor{Name: name, Type: weights.Q4_1, Shape: shape}
	if name == "model.embed_tokens.weight" {
		t.Type = weights.Q8_0
	}
	values, octets := t.Type.Block()
	r := rand.New(rand.NewPCG(uint64(len(name)), 1))
	t.Data = make([]byte, shape[0]*shape[1]/values*octets)
	for i := 0; i+8 <= len(t.Data); i += 8 {
		binary.LittleEndian.PutUint64(t.Data[i:], r.Uint64())
	}
	for i := 0; i < len(t.Data); i += octets {
		binary.LittleEndian.PutUint16(t.Data[i:], 0x1c00) // 2⁻⁸
		if t.Type == weights.Q4_1 {
			binary.LittleEndian.PutUint16(t.Data[i+2:], 0xab80) // −7.5 · 2⁻⁸
		}
	}
	return t, true
}

// BenchmarkShape is decode and prefill of a model of SmolLM2-135M's shape with
// random weights, for machines without the file.
func BenchmarkShape(b *testing.B) {
	c := &weights.Config{Architecture: weights.Llama, TieEmbeddings: true, Layers: 30, Hidden: 576, Heads: 9, KVHeads: 3,
		HeadDim: 64, Intermediate: 1536, Vocab: 49152, MaxPosition: 2048, RopeTheta: 100000, PartialRotary: 1, RMSEps: 1e-5}
	backend := cpu.New(cpu.Options{})
	defer backend.Close()
	m, err := New(c, shaped{enginetest.TensorsOf(c)}, backend, Options{Tokens: 600, Sequences: 1, Outputs: 1})
	if err != nil {
		b.Fatal(err)
	}
	s, step := sequence(b, m), m.NewStep()
	timed := func(b *testing.B, past int, tokens []int32) {
		if err := s.Truncate(0); err != nil {
			b.Fatal(err)
		}
		if past > 0 {
			step.Reset()
			if err := step.Add(s, text(2, past), 0); err != nil {
				b.Fatal(err)
			}
			if _, err := m.Run(step); err != nil {
				b.Fatal(err)
			}
		}
		for b.Loop() {
			if err := s.Truncate(past); err != nil {
				b.Fatal(err)
			}
			step.Reset()
			if err := step.Add(s, tokens, 1); err != nil {
				b.Fatal(err)
			}
			if _, err := m.Run(step); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(tokens)*b.N)/b.Elapsed().Seconds(), "tok/s")
	}
	b.Run("prefill", func(b *testing.B) { timed(b, 0, text(1, 512)) })
	b.Run("decode", func(b *testing.B) { timed(b, 64, text(1, 1)) })
}
