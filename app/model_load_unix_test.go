//go:build unix

package app

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"velo/engine/enginetest"
)

// interrupted runs this test's binary as the program, sends it a signal once it wrote a line that has
// the word until, and returns how it ended. With no word it is given so long to begin.
func interrupted(t *testing.T, sent os.Signal, until string, env []string, args ...string) (code int, errs string) {
	t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), env...)
	in, err := c.StdinPipe() // open, and nothing comes
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	pipe, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(30*time.Second, func() { _ = c.Process.Kill() })
	defer limit.Stop()
	var said bytes.Buffer
	lines := bufio.NewReader(pipe)
	if until == "" {
		time.Sleep(300 * time.Millisecond)
	}
	for until != "" && !strings.Contains(said.String(), until) {
		line, err := lines.ReadString('\n')
		if said.WriteString(line); err != nil {
			t.Fatalf("%v: it ended before it said %q: %s", args, until, said.String())
		}
	}
	if err := c.Process.Signal(sent); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(&said, lines)
	var ended *exec.ExitError
	if err := c.Wait(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), said.String()
}

// TestInterruptedWhileLoading: files that never answer keep no command from ending when it is told to.
func TestInterruptedWhileLoading(t *testing.T) {
	out := filepath.Join(t.TempDir(), "small")
	hanging := []string{hangingFiles + "=1"}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"run", "model", "-p", "a"}, exitStopped, "velo: stopped while model was loaded"},
		{[]string{"quantize", "model", out}, exitStopped, "velo: stopped; nothing was written"},
		{[]string{"serve", "model", "--port", "0"}, exitOK, "stopped while loading"}, // it ended as asked
	} {
		for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
			if code, errs := interrupted(t, s, "hanging", hanging, c.args...); code != c.code || !strings.Contains(errs, c.want) {
				t.Errorf("%v, %v: exit %d\n%s", c.args, s, code, errs)
			}
		}
	}
}

// TestInterruptedWhileReading: a prompt that never comes.
func TestInterruptedWhileReading(t *testing.T) {
	folder := enginetest.Folder(t, enginetest.Plain)
	code, errs := interrupted(t, os.Interrupt, "", nil, "run", folder)
	if code != exitStopped || !strings.Contains(errs, "stopped while the prompt from the standard input was read") {
		t.Errorf("exit %d\n%s", code, errs)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	code, errs = interrupted(t, os.Interrupt, "", nil, "bench", pipe)
	if code != exitStopped || !strings.Contains(errs, "stopped while the suites were read") {
		t.Errorf("exit %d\n%s", code, errs)
	}
	code, errs = interrupted(t, os.Interrupt, "", nil, "run", folder, "--prompt-file", pipe)
	if code != exitStopped || !strings.Contains(errs, "stopped while the prompt from "+pipe+" was read") {
		t.Errorf("exit %d\n%s", code, errs)
	}
}
