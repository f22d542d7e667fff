//go:build linux && cuda && cgo

package cuda

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"velo/engine/model"
	"velo/engine/ops"
	"velo/engine/weights"
)

// faultCode is what a process ends with that met the fault it was asked for and said so.
const faultCode = 7

// faults are what can go wrong on a device, and what the sentence about it has in it.
var faults = []struct {
	name  string
	words []string
	fault bool // it is an [ops.Fault] of a running model
}{
	{"memory", []string{"cannot allocate ", " GiB are free"}, false},
	{"model", []string{"cannot make room for ", "cannot place keys and values", " GiB are free"}, false},
	{"trap", []string{"cannot compute on the GPU: ", "trap_now", "CUDA_ERROR_"}, true},
	{"bounds", []string{"cannot compute on the GPU: ", "write_word", "CUDA_ERROR_ILLEGAL_ADDRESS"}, true},
}

// TestGateFaults makes each fault in a process of its own: it ends with a sentence and an exit code, in
// bounded time. A device on which one process faulted serves the next one.
func TestGateFaults(t *testing.T) {
	if mode := os.Getenv("VELO_FAULT"); mode != "" {
		fail(t, mode)
		return
	}
	open(t, Options{})
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			begin := time.Now()
			out, err := child(t, 40*time.Second, []string{"VELO_FAULT=" + f.name}, "-test.run=^TestGateFaults$")
			text := regexp.MustCompile(`(?m)^velo emulator: .*\n`).ReplaceAllString(string(out), "") // the backend's own words count
			var e *exec.ExitError
			if !errors.As(err, &e) || e.ExitCode() != faultCode {
				t.Fatalf("%v\n%s", err, text)
			}
			for _, w := range f.words {
				if !strings.Contains(text, w) {
					t.Errorf("nothing of %q in: %s", w, text)
				}
			}
			if strings.Contains(text, "goroutine ") {
				t.Errorf("a stack instead of a sentence: %s", text)
			}
			t.Logf("%v: %s", time.Since(begin).Round(time.Millisecond), strings.TrimSpace(text))
		})
	}
	if out, err := child(t, 60*time.Second, nil, "-test.run=^TestGateStart$"); err != nil {
		t.Errorf("after all faults a process cannot compute: %v\n%s", err, out)
	}
}

// fail makes a fault and ends the process with what is said about it.
func fail(t *testing.T, mode string) {
	w := openModel(t, "qwen3_5")
	b, err := NewBackend(BackendOptions{Rows: 32, Options: Options{Cache: os.Getenv("VELO_KERNELS")}})
	if err != nil {
		t.Fatal(err)
	}
	switch mode {
	case "memory":
		for err == nil { // until the device is full
			_, err = b.device.Pool(8 << 30)
		}
	case "model":
		_, err = model.New(&w.Config, w, b, model.Options{Tokens: 1 << 36, Sequences: 2, Outputs: 1})
	default:
		err = failing(t, w, b, mode)
	}
	if err == nil {
		t.Fatalf("%s: nothing went wrong", mode)
	}
	fmt.Fprintln(os.Stderr, err)
	_ = b.Close() // must come back, whatever it says
	os.Exit(faultCode)
}

// failing computes with a model, then launches a kernel that fails, and computes again.
func failing(t *testing.T, w *weights.Model, b *Backend, mode string) error {
	m, err := model.New(&w.Config, w, b, model.Options{Tokens: 256, Sequences: 2, Outputs: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := sequence(t, m)
	for range 3 {
		feed(t, m, s, words(m, 1, 1))
	}
	if err := breakDevice(b, mode); err != nil {
		t.Fatal(err)
	}
	step := m.NewStep()
	if err := step.Add(s, words(m, 2, 1), 1); err != nil {
		t.Fatal(err)
	}
	_, err = m.Run(step)
	var f *ops.Fault
	if !errors.As(err, &f) {
		t.Fatalf("not a fault of the device: %v", err)
	}
	return err
}

// breakDevice launches one of the kernels of testdata/faults.ptx: trap, bounds (far outside), or near
// (right behind a piece of memory, which only a checker sees).
func breakDevice(b *Backend, mode string) error {
	ptx, err := os.ReadFile("testdata/faults.ptx")
	if err != nil {
		return err
	}
	module, err := b.device.Load("faults", ptx)
	if err != nil {
		return err
	}
	name, args := "trap_now", new(Args)
	if mode != "trap" {
		p, err := b.device.Pool(2 << 20)
		if err != nil {
			return err
		}
		name = "write_word"
		at := p.whole.at + uint64(p.whole.bytes)
		if mode == "bounds" {
			at += 1 << 40
		}
		args.Pointer(at)
	}
	k, err := module.Kernel(name)
	if err != nil {
		return err
	}
	return k.Launch(Grid{X: 1, Block: 1}, args)
}

// TestGatePlanted writes right behind a piece of memory, which compute-sanitizer has to find. It runs
// where VELO_FAULT is near.
func TestGatePlanted(t *testing.T) {
	if os.Getenv("VELO_FAULT") != "near" {
		t.Skip("it is for compute-sanitizer")
	}
	b := newBackend(t, BackendOptions{})
	if err := breakDevice(b, "near"); err != nil {
		t.Fatal(err)
	}
	if err := b.device.Wait(); err != nil {
		t.Log(err)
	}
}
