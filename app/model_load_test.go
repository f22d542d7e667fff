package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"velo/engine"
	"velo/engine/weights"
)

// hangingFiles is a variable of the environment that makes a child of this test's binary wait for ever
// for the model's files.
const hangingFiles = "VELO_TEST_HANGING_FILES"

// hangOnFiles puts what never answers in the place of what reads models.
func hangOnFiles() {
	wait := func() {
		fmt.Fprintln(os.Stderr, "hanging")
		select {}
	}
	openModel = func(string) (*weights.Model, error) { wait(); return nil, nil }
	loadEngine = func(context.Context, string, engine.Options) (*engine.Engine, error) { wait(); return nil, nil }
}

// TestWithin: work is waited for while it comes back, and left behind when it does not.
func TestWithin(t *testing.T) {
	if n, left, err := within(t.Context(), func() (int, error) { return 3, io.EOF }); n != 3 || left || err != io.EOF {
		t.Errorf("work that ends gave %d, %v, %v", n, left, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if n, left, err := within(ctx, func() (int, error) { cancel(); <-ctx.Done(); return 4, nil }); n != 4 || left || err != nil {
		t.Errorf("work that ends when it is told to gave %d, %v, %v", n, left, err)
	}
	never := make(chan struct{})
	defer close(never)
	if n, left, err := within(ctx, func() (int, error) { <-never; return 5, nil }); n != 0 || !left || !errors.Is(err, context.Canceled) {
		t.Errorf("work that hangs gave %d, %v, %v", n, left, err)
	}
}

// zeros is a file that never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestReadTextHasAnEnd(t *testing.T) {
	text, err := readText(t.Context(), "the text", func() (io.ReadCloser, error) { return io.NopCloser(zeros{}), nil })
	if text != "" || err == nil || !strings.Contains(err.Error(), "cannot read the text: it has more than 256 MiB") {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	path := filepath.Join(t.TempDir(), "none")
	if _, err := fileText(t.Context(), "the text", path); err == nil || err.Error() != "cannot read the text from "+path+": no such file or directory" {
		t.Errorf("a file that is not there: %v", err)
	}
}
