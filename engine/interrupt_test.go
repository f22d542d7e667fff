package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"velo/engine/enginetest"
	"velo/engine/quantize"
	"velo/engine/sample"
	"velo/engine/weights"
)

// TestLoadStops: loading ends with the tensor at which its context ended, and the error says so.
func TestLoadStops(t *testing.T) {
	folder := enginetest.Folder(t, enginetest.Hybrid)
	reason := errors.New("enough")
	for _, at := range []int{1, 5} {
		ctx, cancel := context.WithCancelCause(t.Context())
		calls := 0
		e, err := Load(ctx, folder, Options{Backend: "cpu", Workers: 1, Progress: func(Progress) {
			if calls++; calls == at {
				cancel(reason)
			}
		}})
		if e != nil || !errors.Is(err, reason) || !strings.HasPrefix(err.Error(), "cannot load "+folder+": ") {
			t.Errorf("stopped at tensor %d: %v", at, err)
		}
		if calls != at {
			t.Errorf("stopped at tensor %d, %d were taken over", at, calls)
		}
	}
	// The answer of a model that ended up whole in spite of it is not taken either.
	ctx, cancel := context.WithCancel(t.Context())
	if e, err := Load(ctx, folder, Options{Backend: "cpu", Workers: 1, Progress: func(p Progress) {
		if p.Done == p.Total {
			cancel()
		}
	}}); err == nil { // told when it was loaded already: then it is
		_ = e.Close()
	} else if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// shard is the file of a folder's weights.
func shard(folder string) string { return filepath.Join(folder, "model.safetensors") }

// cut shortens a file to a few pages and returns what makes it as long as it was.
func cut(t *testing.T, path string) (restore func()) {
	t.Helper()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 8192); err != nil {
		t.Skip(err) // a system that keeps mapped files from being shortened
	}
	return func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt(whole, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWeightsVanish: a file that is shortened while a model computes with weights that lie in it ends the
// answer with a sentence that names the file, on any number of workers; nothing else is harmed, and with the
// file whole again the answer is what it was.
func TestWeightsVanish(t *testing.T) {
	for _, workers := range []int{1, 2, 5} {
		for _, family := range []string{enginetest.Plain, enginetest.Hybrid} {
			folder := enginetest.Folder(t, family)
			e, err := Load(t.Context(), folder, Options{Backend: "cpu", Context: 256, Lanes: 2, Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			answer := func() (string, error) {
				var text strings.Builder
				_, err := e.Generate(t.Context(), e.Text(strings.Repeat("the thing ", 8)), sample.Params{}, 8, true, func(s string) { text.WriteString(s) })
				return text.String(), err
			}
			before, err := answer()
			if err != nil {
				t.Fatal(err)
			}
			restore := cut(t, shard(folder))
			for range 3 {
				_, err := answer()
				var fault *weights.Fault
				if !errors.As(err, &fault) || fault.Path != shard(folder) || !strings.Contains(err.Error(), "it was changed while it was in use") {
					t.Fatalf("%s, %d workers: %v", family, workers, err)
				}
			}
			if _, err := e.Perplexity(t.Context(), e.Text("the thing and another"), 16, nil); !errors.As(err, new(*weights.Fault)) {
				t.Errorf("a perplexity: %v", err)
			}
			restore()
			if after, err := answer(); err != nil || after != before {
				t.Errorf("%s, %d workers: %q and then %q, %v", family, workers, before, after, err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestWeightsVanishWhileLoading: the same while quantised weights are packed, which is done once.
func TestWeightsVanishWhileLoading(t *testing.T) {
	folder, small := enginetest.Folder(t, enginetest.Plain), filepath.Join(t.TempDir(), "small")
	source, err := weights.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	recipe, err := quantize.ParseRecipe("all:nvfp4")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := quantize.Write(t.Context(), source, small, quantize.Options{Recipe: recipe}); err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{1, 4} {
		w, err := weights.Open(small)
		if err != nil {
			t.Fatal(err)
		}
		restore := cut(t, shard(small))
		e, err := Open(t.Context(), w, Options{Backend: "cpu", Workers: workers})
		var fault *weights.Fault
		if e != nil || !errors.As(err, &fault) || fault.Path != shard(small) || !strings.HasPrefix(err.Error(), "cannot load "+small) {
			t.Errorf("%d workers: %v", workers, err)
		}
		restore()
		// It is whole, but nobody knows of which version what was read before is.
		if e, err := Open(t.Context(), w, Options{Backend: "cpu", Workers: workers}); e != nil || err == nil || !strings.Contains(err.Error(), "it was written to since it was opened") {
			t.Errorf("%d workers, after it was written again: %v", workers, err)
		}
		_ = w.Close()
	}
}
