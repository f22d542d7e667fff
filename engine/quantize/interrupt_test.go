package quantize

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"velo/engine/weights"
)

// TestWriteStops: writing ends where its context does, and leaves nothing.
func TestWriteStops(t *testing.T) {
	m := model(t, nil)
	recipe, err := ParseRecipe("all")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	_, err = Write(ctx, m, filepath.Join(dir, "small"), Options{Recipe: recipe, Progress: func(Loss) { seen++; cancel() }})
	if !errors.Is(err, context.Canceled) || seen != 1 {
		t.Errorf("after %d matrices: %v", seen, err)
	}
	nothing(t, dir)
	w := matrix("w", 64, 64, func(int) float32 { return 1 })
	for name, err := range map[string]error{
		"largest": func() error { _, _, err := largest(ctx, w); return err }(),
		"NVFP4":   func() error { _, err := toNVFP4(ctx, w, 500); return err }(),
		"FP8":     func() error { _, err := toFP8(ctx, w); return err }(),
		"compare": func() error { _, _, err := compare(ctx, w, w); return err }(),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s goes on: %v", name, err)
		}
	}
}

// nothing makes sure that a folder is empty.
func nothing(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("%s was left", left[0].Name())
	}
}

// TestSourceVanishes: a source that is shortened, whether its matrices are rounded or copied, is an error
// that names it, and nothing is left of the new folder.
func TestSourceVanishes(t *testing.T) {
	for _, recipe := range []string{"all", "all:fp8", "all:bf16"} {
		m := model(t, nil)
		chosen, err := ParseRecipe(recipe)
		if err != nil {
			t.Fatal(err)
		}
		source := filepath.Join(m.Path, "model.safetensors")
		if err := os.Truncate(source, 8192); err != nil {
			t.Skip(err)
		}
		dir := t.TempDir()
		_, err = Write(t.Context(), m, filepath.Join(dir, "small"), Options{Recipe: chosen})
		var fault *weights.Fault
		if !errors.As(err, &fault) || fault.Path != source {
			t.Errorf("%s: %v", recipe, err)
		}
		nothing(t, dir)
	}
}

// TestCheck: what Write would refuse is refused before the work that may come between.
func TestCheck(t *testing.T) {
	m := model(t, nil)
	dir := t.TempDir()
	o := Options{Recipe: Recipe{}}
	if err := Check(m, filepath.Join(dir, "small"), o); err != nil {
		t.Error(err)
	}
	nothing(t, dir)
	for _, name := range []string{"there", "half.part"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "there"):        "there exists already; choose a new folder",
		filepath.Join(dir, "half"):         "half.part exists already: another run is writing there",
		filepath.Join(dir, "none", "deep"): "there is no folder " + filepath.Join(dir, "none"),
	} {
		if err := Check(m, path, o); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "cannot quantise "+m.Path) {
			t.Errorf("%s: %v", path, err)
		}
		if _, err := Write(t.Context(), m, path, o); err == nil {
			t.Errorf("%s was written", path)
		}
	}
}
