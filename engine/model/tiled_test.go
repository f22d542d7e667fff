package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"velo/engine/cpu"
	"velo/engine/enginetest"
	"velo/engine/weights"
)

// tiled is a hybrid model with its value heads in the order of GGUF files:
// value head i goes with key head i mod LinearKeyHeads. In transformers' order
// it goes with key head i / (LinearValueHeads/LinearKeyHeads).
type tiled struct {
	enginetest.Tensors
	config *weights.Config
}

func (s tiled) Tensor(name string) (*weights.Tensor, bool) {
	t, ok := s.Tensors.Tensor(name)
	c := s.config
	if !ok || !strings.Contains(name, ".linear_attn.") || strings.Contains(name, ".norm.") {
		return t, ok
	}
	heads, keys := c.LinearValueHeads, 2*c.LinearKeyHeads*c.LinearKeyDim
	rows, bytes := t.Shape[0], len(t.Data)/t.Shape[0]
	var order []byte
	if strings.HasSuffix(name, "out_proj.weight") {
		for row := range slices.Chunk(t.Data, bytes) {
			order = append(order, s.heads(row, bytes/heads)...)
		}
	} else {
		skip := 0
		if strings.Contains(name, "qkv") || strings.Contains(name, "conv1d") {
			skip = keys // rows of q and k
		}
		order = append(order, t.Data[:skip*bytes]...)
		order = append(order, s.heads(t.Data[skip*bytes:], (rows-skip)*bytes/heads)...)
	}
	t.Data = order
	return t, ok
}

// heads puts the value heads in data, unit bytes each, into the other order.
func (s tiled) heads(data []byte, unit int) (out []byte) {
	keys := s.config.LinearKeyHeads
	share := s.config.LinearValueHeads / keys
	for i := range s.config.LinearValueHeads {
		from := i%keys*share + i/keys
		out = append(out, data[from*unit:(from+1)*unit]...)
	}
	return out
}

// TestTiled: the same model in both orders of value heads has the same logits,
// but for the order of the sums in its output projection, and another one if
// the order is not told.
func TestTiled(t *testing.T) {
	c := *families()["qwen35"]
	c.LinearKeyHeads, c.LinearValueHeads = 2, 6 // orders of 4 heads would be each other's inverse
	tokens := text(9, 33)
	logits := func(config weights.Config, source Source) [][]float32 {
		b := cpu.New(cpu.Options{Rows: 64, Workers: 2})
		defer b.Close()
		m, err := New(&config, source, b, Options{Tokens: 64, Sequences: 1, Outputs: 64})
		if err != nil {
			t.Fatal(err)
		}
		return feed(t, m, sequence(t, m), tokens)
	}
	want := logits(c, enginetest.TensorsOf(&c))
	permuted := tiled{enginetest.TensorsOf(&c), &c}
	untold := logits(c, permuted)
	told := c
	told.LinearTiled = true
	got := logits(told, permuted)
	largest, without := 0.0, 0.0
	for i := range want {
		for j, v := range want[i] {
			largest = max(largest, math.Abs(float64(got[i][j]-v)))
			without = max(without, math.Abs(float64(untold[i][j]-v)))
		}
	}
	if largest > 2e-4 || without < 0.1 {
		t.Errorf("logits in GGUF's order differ by %g, by %g when it is not told", largest, without)
	}
	t.Logf("largest difference %.2g, not told %.2g", largest, without)
}
