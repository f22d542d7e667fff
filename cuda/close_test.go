//go:build linux && cuda && cgo

package cuda

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"velo/engine/model"
	"velo/engine/ops"
)

// TestCloseWhileAStepRuns: closing waits for a step, which ends as if nothing had been; with a device that
// does not come back closing ends all the same, with a sentence that names what was launched, and gives
// nothing back that the device may still write to.
func TestCloseWhileAStepRuns(t *testing.T) {
	h, ok := onHollow(t)
	if !ok {
		return
	}
	for _, hangs := range []bool{false, true} {
		b, m, _ := hollowModel(t, "llama", BackendOptions{Rows: 32, patience: 100 * time.Millisecond}, model.Options{Tokens: 256, Sequences: 3, Outputs: 1})
		if !hangs {
			b.options.patience = time.Minute
		}
		feedLast(t, m, sequence(t, m), 3)
		s, step := sequence(t, m), m.NewStep()
		if err := step.Add(s, words(m, 1, 3), 1); err != nil {
			t.Fatal(err)
		}
		h.set(t, "hang", "")
		held := outstanding(t, h.log(t), "device")
		launches := b.device.next.Load()
		ran, closed := make(chan error, 1), make(chan error, 1)
		go func() { _, err := m.Run(step); ran <- err }()
		for b.device.next.Load() == launches { // until it is on the device
			time.Sleep(time.Millisecond)
		}
		if last, preparing := b.Doing(); preparing || !strings.Contains(last, "linear_") {
			t.Errorf("while it runs: %q, preparing %v", last, preparing)
		}
		go func() { closed <- b.Close() }()
		if hangs {
			if err := <-closed; err == nil || !strings.Contains(err.Error(), "did not end within 100ms") || !strings.Contains(err.Error(), "linear_") {
				t.Errorf("closing a device that hangs: %v", err)
			}
			if now := outstanding(t, h.log(t), "device"); now != held {
				t.Errorf("%d bytes were given back under a step that runs", held-now)
			}
		}
		h.unset(t, "hang")
		if err := <-ran; err != nil {
			t.Errorf("the step ends with %v", err)
		}
		if !hangs {
			if err := <-closed; err != nil {
				t.Errorf("closing behind a step: %v", err)
			}
		}
		if err := b.Close(); err != nil {
			t.Errorf("closing again: %v", err)
		}
		step.Reset()
		if err := step.Add(s, words(m, 1, 1), 1); err != nil {
			t.Fatal(err)
		}
		var fault *ops.Fault
		if _, err := m.Run(step); !errors.As(err, &fault) || !errors.Is(err, errClosed) {
			t.Errorf("a step after closing: %v", err)
		}
		if _, err := m.Pool().NewSequence(); err != nil { // of this model it does nothing on the device
			t.Error(err)
		}
	}
}

// TestOpenAfterAFault: a device that failed for good is given back as far as that goes, closing comes
// back with an error, and the device can be opened anew.
func TestOpenAfterAFault(t *testing.T) {
	h, ok := onHollow(t)
	if !ok {
		return
	}
	w := openModel(t, "qwen3_5")
	for range 3 {
		b, err := NewBackend(BackendOptions{Rows: 32, Options: Options{Cache: os.Getenv("VELO_KERNELS")}})
		if err != nil {
			t.Fatal(err)
		}
		m, err := model.New(&w.Config, w, b, model.Options{Tokens: 256, Sequences: 3, Outputs: 4})
		if err != nil {
			t.Fatal(err)
		}
		s := sequence(t, m)
		feedLast(t, m, s, 3)
		before := count(h.log(t), "context closed")
		h.set(t, "sticky", "")
		step := m.NewStep()
		if err := step.Add(s, words(m, 1, 1), 1); err != nil {
			t.Fatal(err)
		}
		var fault *ops.Fault
		for range 2 {
			if _, err := m.Run(step); !errors.As(err, &fault) || !strings.Contains(err.Error(), "IllegalAddress") {
				t.Errorf("a step of a device that failed: %v", err)
			}
		}
		if err := b.Close(); err == nil {
			t.Error("a device that failed is closed without an error")
		}
		if n := count(h.log(t), "context closed"); n != before+1 {
			t.Errorf("%d contexts were given back", n-before)
		}
		if err := b.Close(); err != nil {
			t.Errorf("closing again: %v", err)
		}
		if err := b.device.Close(); err != nil {
			t.Errorf("closing the device again: %v", err)
		}
		h.unset(t, "sticky")
	}
}

// TestWantOfMemory: wherever memory is taken, want of it is an [ops.NoRoom] with a sentence that says how
// much was asked for and how much is free, and what was taken until then is given back.
func TestWantOfMemory(t *testing.T) {
	h, ok := onHollow(t)
	if !ok {
		return
	}
	w := openModel(t, "qwen3_5")
	kernels := os.Getenv("VELO_KERNELS")
	for _, c := range []struct {
		what, file, text string
		o                BackendOptions
		m                model.Options
		words            []string
	}{
		{what: "the model's memory at once", o: BackendOptions{Reserve: 5 << 30}, words: []string{"cannot reserve the model's memory on the GPU", "cannot allocate 5.00 GiB on hollow", "GiB are free"}},
		{what: "what the kernels need", file: "memory", text: "20000000", words: []string{"scratch of the kernels", "GiB are free"}},
		{what: "keys and values", m: model.Options{Tokens: 1 << 36, Sequences: 2, Outputs: 1}, words: []string{"cannot make room for 68719476736 tokens", "cannot place keys and values", "GiB are free"}},
		{what: "states", m: model.Options{Tokens: 64, Sequences: 250_000, Outputs: 1}, words: []string{"recurrent states", "GiB are free"}},
		{what: "weights on their way", o: BackendOptions{Rows: 65535}, file: "memory", text: "130000000", words: []string{"weights on their way", "GiB are free"}},
		{what: "page-locked memory", file: "unpinned", words: []string{"page-locked memory", "hollow"}},
	} {
		if c.file != "" {
			h.set(t, c.file, c.text)
		}
		before := len(h.log(t))
		c.o.Cache = kernels
		if c.m.Tokens == 0 {
			c.m = model.Options{Tokens: 256, Sequences: 2, Outputs: 4}
		}
		b, err := NewBackend(c.o)
		if err == nil {
			_, err = model.New(&w.Config, w, b, c.m)
			if closed := b.Close(); closed != nil {
				t.Errorf("%s: closing: %v", c.what, closed)
			}
		}
		var none *ops.NoRoom
		if !errors.As(err, &none) || !strings.HasPrefix(err.Error(), "cannot ") {
			t.Errorf("%s: %v", c.what, err)
		}
		for _, word := range c.words {
			if err != nil && !strings.Contains(err.Error(), word) {
				t.Errorf("%s: nothing of %q in %v", c.what, word, err)
			}
		}
		log := h.log(t)[before:]
		if d, p := outstanding(t, log, "device"), outstanding(t, log, "pinned"); d != 0 || p != 0 {
			t.Errorf("%s: %d bytes of the device and %d page-locked ones are not given back", c.what, d, p)
		}
		if c.file != "" {
			h.unset(t, c.file)
		}
	}
	b := newBackend(t, BackendOptions{})
	b.Buffer(1<<20, 1<<20)
	if _, err := b.Vector(0); !errors.As(err, new(*ops.NoRoom)) || !strings.Contains(err.Error(), "activations of 1048576 × 1048576 values") {
		t.Errorf("activations that no device holds: %v", err)
	}
	if _, err := NewBackend(BackendOptions{Rows: 65536}); err == nil || !strings.Contains(err.Error(), "up to 65535 are possible") {
		t.Errorf("more rows than a grid has: %v", err)
	}
}
