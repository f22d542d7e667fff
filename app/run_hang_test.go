package app

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"velo/engine/enginetest"
)

// TestRunOnAGPUThatHangs: a GPU whose kernels do not end any more ends `velo run` too, with a sentence that names
// the last ones, and a code of its own; what was answered before stands.
func TestRunOnAGPUThatHangs(t *testing.T) {
	env, hang := onHollow(t)
	folder := filepath.Join(t.TempDir(), "tiny")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := enginetest.Write(folder, enginetest.Plain, 1<<18); err != nil { // an answer longer than a pipe holds
		t.Fatal(err)
	}
	run := func(watch string) (out io.ReadCloser, errs *bytes.Buffer, end func() int) {
		c := exec.Command(os.Args[0], "run", folder, "--device", "cuda", "-p", "a", "-n", "0", "--ignore-eos", "--greedy", "--context", "262144", "--step-watchdog-s", watch)
		c.Env, errs = append(os.Environ(), env...), new(bytes.Buffer)
		c.Stderr = errs
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill() })
		return out, errs, func() int {
			late := time.AfterFunc(60*time.Second, func() { _ = c.Process.Kill() })
			defer late.Stop()
			_, _ = io.Copy(io.Discard, out)
			var ended *exec.ExitError
			if err := c.Wait(); err != nil && !errors.As(err, &ended) {
				t.Error(err)
			}
			return c.ProcessState.ExitCode()
		}
	}
	out, errs, end := run("1")
	if n, err := out.Read(make([]byte, 1)); n != 1 {
		t.Fatalf("no answer on a GPU that computes nothing: %v, exit %d\n%s", err, end(), errs)
	}
	time.Sleep(1500 * time.Millisecond) // it waits for its reader, which is no step that hangs
	hang(true)
	if code := end(); code != exitHung {
		t.Errorf("it ended with %d\n%s", code, errs)
	}
	for _, want := range []string{"velo: cannot go on: step ", " of the engine has not ended after 1", "the device was given last: ", "restart the machine"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("nothing is said of %q: %s", want, errs)
		}
	}
	if n := strings.Count(errs.String(), "goroutine "); n > 0 {
		t.Errorf("a stack instead of a sentence:\n%s", errs)
	}
	hang(false)
}

// TestRunStepWatchdog: a value that makes no sense is refused before anything is loaded.
func TestRunStepWatchdog(t *testing.T) {
	if code, _, errs := command(t, "", "run", "nowhere", "-p", "a", "--step-watchdog-s", "soon"); code != exitUsage || !strings.Contains(errs, `--step-watchdog-s cannot be "soon": it is auto, off, or a number of seconds`) {
		t.Errorf("exit %d: %s", code, errs)
	}
}
