package app

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
)

// TestUsage: what is said of a command line that means nothing, on which stream, and with which code.
func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args      []string
		code      int
		out, errs string
	}{
		{[]string{"help"}, exitOK, "Usage:\n  velo [FILE…]", ""},
		{[]string{"--help"}, exitOK, "Usage:\n  velo [FILE…]", ""},
		{[]string{"help", "quantize"}, exitOK, "velo quantize FOLDER OUT", ""},
		{[]string{"quantize", "--help"}, exitOK, "velo quantize FOLDER OUT", ""},
		{[]string{"serve", "-h"}, exitOK, "velo serve --model-dir", ""},
		{[]string{"help", "help"}, exitOK, "Explains a command", ""},
		{[]string{"version"}, exitOK, "velo unknown (go", ""},
		{[]string{"--version"}, exitOK, "velo unknown (go", ""},
		{[]string{"help", "quantise"}, exitUsage, "", "velo: there is no command \"quantise\"; did you mean quantize?\nvelo: `velo help"},
		{[]string{"help", "run", "serve"}, exitUsage, "", "help takes one command: \"serve\" is one too many"},
		{[]string{"help", "zzzz"}, exitUsage, "", "velo: there is no command \"zzzz\"\n"},
		{[]string{"rnu"}, exitUsage, "", "velo: there is no command and no file \"rnu\"; did you mean run?\nvelo: `velo help` lists the commands"},
		{[]string{"./rnu"}, exitUsage, "", "velo: cannot open \"./rnu\": no such file or directory\n"},
		{[]string{"--hlep"}, exitUsage, "", "there is no flag --hlep; did you mean --help?"},
		{[]string{"version", "a"}, exitUsage, "", "version takes flags alone: \"a\" is one too many\nvelo: `velo version --help` says what it takes"},
		{[]string{"sessions", "a"}, exitUsage, "", "\"a\" is one too many"},
		{[]string{"bench", "quick", "--worker", "2"}, exitUsage, "", "there is no flag --worker; did you mean --workers?"},
		{[]string{"bench", "quick", "--timeout-total", "5"}, exitUsage, "", "--timeout-total takes a time with its unit, such as 500ms or 2m, not \"5\""},
		{[]string{"bench", "quick", "--json=maybe"}, exitUsage, "", "--json takes true or false, not \"maybe\""},
		{[]string{"bench", "quick", "-workers", "2"}, exitUsage, "", "there is no flag -workers; did you mean --workers?"},
		{[]string{"bench", "quick", "--=2"}, exitUsage, "", "is no flag: write --name or --name=value"},
		{[]string{"serve", "m", "--prefix-cahce"}, exitUsage, "", "there is no flag --prefix-cahce; did you mean --prefix-cache?"},
		{[]string{"serve", "m", "--prefix-cache=maybe"}, exitUsage, "", "--prefix-cache takes on or off, not \"maybe\""},
		{[]string{"serve", "m", "--port", "http"}, exitUsage, "", "--port takes a whole number, not \"http\""},
		{[]string{"serve", "m", "--device", "gpu"}, exitUsage, "", "--device cannot be \"gpu\": it is auto, cpu"},
		{[]string{"probe", "--rows", "1,x"}, exitUsage, "", "--rows takes whole numbers with commas between them, not \"1,x\""},
		{[]string{"probe", "--synthetic", "a", "--model-dir", "b"}, exitUsage, "", "--synthetic and --model-dir exclude each other"},
		{[]string{"sim", "--addr", "here"}, exitUsage, "", "--addr takes HOST:PORT, not \"here\""},
		{[]string{"sim", "--addr", "127.0.0.1:70000"}, exitUsage, "", "--addr takes a port from 0 to 65535, not \"70000\""},
		{[]string{"sim", "--itl", "-5ms"}, exitUsage, "", "itl is -5ms"},
		{[]string{"sim", "--addr", "192.0.2.1:0"}, exitFailed, "", "cannot listen on 192.0.2.1:0: this machine has no such address"},
		{[]string{"quantize", "a"}, exitUsage, "", "1 of 2 arguments are there"},
		{[]string{"quantize", "a", "b", "--window", "9"}, exitUsage, "", "--window is of the perplexity: give --text FILE with it"},
	} {
		code, out, errs := command(t, "", c.args...)
		if code != c.code || !strings.Contains(out, c.out) || c.out == "" && out != "" || !strings.Contains(errs, c.errs) || c.errs == "" && errs != "" {
			t.Errorf("%v: exit %d\n%s\n%s", c.args, code, out, errs)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"ab", "", 2}, {"run", "rnu", 1}, {"quantise", "quantize", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}, {"serve", "serve", 0}} {
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d, not %d", c.a, c.b, got, c.want)
		}
		if got := edits(c.b, c.a); got != c.want {
			t.Errorf("%q to %q: %d, not %d", c.b, c.a, got, c.want)
		}
	}
	names := []string{"prompt", "prompt-file", "plain", "seed"}
	for name, want := range map[string]string{"prmopt": "prompt", "prompt-fil": "prompt-file", "promp": "prompt prompt-file", "zebra": "", "PLAIN": "plain", "s": ""} {
		if got := strings.Join(nearest(name, names), " "); got != want {
			t.Errorf("%q: %q, not %q", name, got, want)
		}
	}
}

// full is a disk that is full, or a pipe that nobody reads.
type full struct{ err error }

func (f full) Write([]byte) (int, error) { return 0, f.err }

// TestOutputThatCannotBeWritten: a command whose output is lost has not succeeded, and says so, unless
// nobody reads it any more.
func TestOutputThatCannotBeWritten(t *testing.T) {
	for err, want := range map[error]string{
		syscall.ENOSPC:   "velo: cannot write to the standard output: no space left on device\n",
		io.ErrShortWrite: "velo: cannot write to the standard output: short write\n",
		errors.Join(syscall.EPIPE, io.ErrShortWrite): "",
	} {
		var errs bytes.Buffer
		if code := run(t.Context(), []string{"version"}, strings.NewReader(""), full{err}, &errs, nil); code != exitFailed || errs.String() != want {
			t.Errorf("%v: exit %d, %q", err, code, errs.String())
		}
	}
}
