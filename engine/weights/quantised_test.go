package weights

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// quantised are the tensors of testdata/quantised.safetensors as a folder's,
// and what compressed-tensors makes of them.
func quantised(t *testing.T) (list []stored, want map[string]*Tensor) {
	t.Helper()
	all, err := parseSafetensors(readFile(t, "testdata/quantised.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	want = map[string]*Tensor{}
	for _, s := range all {
		if name, ok := strings.CutPrefix(s.name, "want."); ok {
			want[name+".weight"] = &Tensor{Type: F32, Shape: s.shape, Data: s.data}
		} else {
			list = append(list, s)
		}
	}
	return list, want
}

// FP8 and NVFP4 in all dialects mean what compressed-tensors says.
func TestQuantisedDialects(t *testing.T) {
	list, want := quantised(t)
	// The block dialect of other checkpoints calls the same scales
	// weight_scale_inv.
	for _, s := range list {
		if rest, ok := strings.CutPrefix(s.name, "block."); ok {
			s.name = "inverse." + strings.Replace(rest, "weight_scale", "weight_scale_inv", 1)
			list = append(list, s)
		}
	}
	want["inverse.weight"] = want["block.weight"]
	m := &Model{tensors: map[string]*Tensor{}}
	if err := m.addFolder(list); err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]Type{"packed": NVFP4, "modelopt": NVFP4, "row": FP8Row, "whole": FP8Row, "block": FP8Block, "inverse": FP8Block} {
		name += ".weight"
		got, exact := m.tensors[name], want[name]
		if got == nil || exact == nil {
			t.Errorf("%s: %v %v", name, got, exact)
			continue
		}
		if got.Type != kind || !slices.Equal(got.Shape, exact.Shape) {
			t.Errorf("%s: %v %v, want %v %v", name, got.Type, got.Shape, kind, exact.Shape)
			continue
		}
		a, b := make([]float32, got.Cols()), make([]float32, got.Cols())
		nonzero := 0
		for i := range got.Rows() {
			got.Row(a, i)
			exact.Row(b, i)
			for j := range a {
				if b[j] != 0 {
					nonzero++
				}
				// FP8 is exact; a global scale may be multiplied or divided
				// by, which rounds differently.
				limit := 0.0
				if kind == NVFP4 {
					limit = 3e-7 * math.Abs(float64(b[j]))
				}
				if math.Abs(float64(a[j])-float64(b[j])) > limit {
					t.Fatalf("%s [%d %d]: %v, want %v", name, i, j, a[j], b[j])
				}
			}
		}
		if nonzero < len(a)*got.Rows()/2 {
			t.Errorf("%s: only %d values say anything", name, nonzero)
		}
	}
}
