package backend

import (
	"slices"
	"strings"
	"testing"
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
