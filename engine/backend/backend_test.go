package backend

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"velo/engine/synthetic"
)

func TestNew(t *testing.T) {
	if !slices.Contains(Names(), CPU) {
		t.Errorf("the processor is not among %v", Names())
	}
	for _, name := range []string{"", "auto", CPU} {
		b, err := New(Options{Name: name, Rows: 3, Workers: 1})
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if b.Rows() != 3 || name == CPU && !strings.HasPrefix(b.Name(), "cpu") {
			t.Errorf("%q is %s with %d rows", name, b.Name(), b.Rows())
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := New(Options{Name: "abacus"}); err == nil || !strings.Contains(err.Error(), "abacus") || !strings.Contains(err.Error(), CPU) {
		t.Errorf("an unknown backend: %v", err)
	}
	// Without a GPU, or without the tag, asking for one by name is an error that says so.
	if b, err := New(Options{Name: CUDA}); err == nil {
		if !strings.HasPrefix(b.Name(), "cuda") {
			t.Errorf("asked for cuda, got %s", b.Name())
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	} else if !strings.HasPrefix(err.Error(), "cannot ") {
		t.Errorf("not a sentence: %v", err)
	}
}

// TestFP4: prompts in FP4 are refused where they cannot be had, whatever else would be chosen, and
// with a model that has no weights for it.
func TestFP4(t *testing.T) {
	for _, name := range []string{"", "auto", CPU, CUDA} {
		o := Options{Name: name, Rows: 32, Workers: 1, PrefillFP4: true}
		b, err := New(o)
		if err == nil {
			if strings.HasPrefix(b.Name(), CPU) {
				t.Errorf("%q: the processor was chosen", name)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		} else if !strings.HasPrefix(err.Error(), "cannot ") {
			t.Errorf("%q: not a sentence: %v", name, err)
		}
		if early := CheckFP4(o); (early != nil) != (name == CPU || gpu == nil) {
			t.Errorf("%q is refused early: %v", name, early)
		}
		if o.PrefillFP4 = false; CheckFP4(o) != nil {
			t.Errorf("%q is refused without being asked for", name)
		}
	}
	for name, has := range map[string]bool{"qwen3.5-0.8b:nvfp4": true, "qwen3.5-0.8b:bf16": false} {
		w, err := synthetic.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckFP4Weights(Options{PrefillFP4: true}, w); (err == nil) != has || err != nil && !strings.Contains(err.Error(), "no weights in NVFP4") {
			t.Errorf("%s: %v", name, err)
		}
		if err := CheckFP4Weights(Options{}, w); err != nil {
			t.Errorf("%s, without being asked for: %v", name, err)
		}
	}
}

// TestKVType: the processor has float32 alone, and says so.
func TestKVType(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "f32"}, {Options{Name: CPU, KV: "auto"}, "f32"}, {Options{Name: CPU, KV: "f32"}, "f32"},
		{Options{Name: CPU, KV: "bf16"}, "f32 alone"}, {Options{Name: CPU, KV: "fp8"}, "f32 alone"}, {Options{KV: "int3"}, "f32, bf16, fp8 and q8"},
		{Options{Name: CUDA, KV: "q8"}, "q8"},
	} {
		kv, err := KVType(c.o)
		if got := fmt.Sprint(kv, err); !strings.Contains(got, c.want) || (err != nil) != (len(c.want) > 4) {
			t.Errorf("%+v: %s", c.o, got)
		}
		if err != nil {
			if b, again := New(c.o); again == nil || again.Error() != err.Error() {
				t.Errorf("%+v makes %v, %v", c.o, b, again)
			}
		}
	}
	kv, err := KVType(Options{Name: CUDA})
	if want := map[bool]string{true: "bf16", false: "f32"}[gpu != nil]; err != nil || kv.String() != want {
		t.Errorf("the GPU stores %s, %v; want %s", kv, err, want)
	}
	// Where no GPU opens, a type that only it has is an error and not another type.
	b, err := New(Options{KV: "fp8", Rows: 1, Workers: 1})
	if err == nil {
		defer b.Close()
	}
	if err == nil && strings.HasPrefix(b.Name(), CPU) || err != nil && !strings.Contains(err.Error(), "f32 alone") {
		t.Errorf("fp8 anywhere: %v", err)
	}
}
