//go:build linux && cuda && cgo

package cuda

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"velo/engine/enginetest/smollm2"
	"velo/engine/ops"
	"velo/engine/weights"
)

// TestConvertedVanish: a file that is shortened while its tensors are converted, on all cores, is an error.
// No device is needed for that.
func TestConvertedVanish(t *testing.T) {
	data, err := os.ReadFile(smollm2.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := weights.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	const name = "model.layers.29.mlp.down_proj.weight"
	x, ok := w.Tensor(name)
	if !ok || asItIs(x.Type) {
		t.Fatalf("%s is %+v", name, x)
	}
	as := stored{format: F16, matrices: 1}
	if _, err := converted((*ops.Weight)(x), as, 0, x.Rows()); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 4<<20); err != nil {
		t.Fatal(err)
	}
	var fault *weights.Fault
	if _, err := converted((*ops.Weight)(x), as, 0, x.Rows()); !errors.As(err, &fault) || fault.Path != path {
		t.Errorf("%v", err)
	}
}
