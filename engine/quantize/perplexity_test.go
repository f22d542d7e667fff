package quantize

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// A model that always gives token 0 probability ½ and the others ¼, whatever
// offset its logits have: the perplexity follows by hand.
func TestPerplexity(t *testing.T) {
	var windows [][]int32
	model := func(window []int32, predict func([]float32)) error {
		windows = append(windows, slices.Clone(window))
		for range len(window) - 1 {
			predict([]float32{1000 + float32(math.Ln2), 1000, 1000})
		}
		return nil
	}
	got, err := Perplexity([]int32{2, 0, 0, 1, 0, 2, 1}, 3, model)
	if err != nil {
		t.Fatal(err)
	}
	// Windows 2 0 0 | 1 0 2 | 1: predicted are 0, 0, 0 and 2.
	want := math.Pow(2*2*2*4, 0.25)
	if math.Abs(got-want) > 1e-4 || len(windows) != 2 || !slices.Equal(windows[1], []int32{1, 0, 2}) {
		t.Errorf("%v over %v, want %v", got, windows, want)
	}
	broken := errors.New("broken")
	for name, f := range map[string]func([]int32, func([]float32)) error{
		"error":     func([]int32, func([]float32)) error { return broken },
		"too few":   func([]int32, func([]float32)) error { return nil },
		"too many":  func(w []int32, p func([]float32)) error { return model(append(w, 0, 0), p) },
		"too small": func(w []int32, p func([]float32)) error { p(nil); return nil },
	} {
		if _, err := Perplexity([]int32{1, 2}, 8, f); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Perplexity([]int32{1}, 8, model); err == nil {
		t.Error("one token: no error")
	}
}
