package synthetic

import (
	"math"
	"strings"
	"testing"

	"velo/engine/weights"
)

// The bytes of weights are those of the published models.
func TestOpen(t *testing.T) {
	for _, c := range []struct {
		name string
		path string
		gb   float64
	}{
		{"qwen3.6-27b", "qwen3.6-27b:nvfp4", 17},
		{"qwen3.5-9b:bf16", "qwen3.5-9b:bf16", 17.9},
		{"Qwen3.5-9B:FP8", "qwen3.5-9b:fp8", 10},
		{"qwen3.5-0.8b:bf16", "qwen3.5-0.8b:bf16", 1.5},
	} {
		m, err := Open(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if gb := float64(m.Bytes()) / 1e9; m.Path != c.path || math.Abs(gb-c.gb) > 0.5 {
			t.Errorf("%s is %s of %.2f GB, not %s of %.1f", c.name, m.Path, gb, c.path, c.gb)
		}
		m.Each(func(x *weights.Tensor) {
			matrix := len(x.Shape) == 2
			if matrix != (x.Data == nil) {
				t.Errorf("%s: %s of shape %v has %d bytes of data", c.name, x.Name, x.Shape, len(x.Data))
			}
			if matrix {
				return
			}
			row, sum := make([]float32, x.Cols()), 0.0
			for i := range x.Rows() {
				x.Row(row, i)
				for _, v := range row {
					sum += math.Abs(float64(v))
				}
			}
			if mean := sum / float64(x.Rows()*x.Cols()); !(mean > 0.01 && mean < 2) {
				t.Errorf("%s: values of %s are %v in the mean", c.name, x.Name, mean)
			}
		})
	}
	for _, name := range []string{"", "qwen3.5-9b:q4", "gpt", "qwen3.5-9b:"} {
		if _, err := Open(name); err == nil || !strings.Contains(err.Error(), "nvfp4") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
