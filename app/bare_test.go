//go:build linux

package app

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// binary is the built program, as the Makefile names it.
func binary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("VELO_BINARY")
	if path == "" {
		t.Skip("VELO_BINARY is not set: `make test` builds the program and names it")
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("VELO_BINARY: %v", err)
	}
	return path
}

// TestEveryCommandWithoutLibraries runs each command in a root that holds the program, libc, libm
// and nothing else: no libGL, no libX11, no libcuda.
func TestEveryCommandWithoutLibraries(t *testing.T) {
	bin := binary(t)
	if os.Geteuid() != 0 {
		t.Skip("changing the root needs root rights")
	}
	root := t.TempDir()
	copyInto(t, bin, filepath.Join(root, "velo"))
	needed, err := exec.Command("ldd", bin).Output()
	if err != nil {
		t.Fatalf("ldd: %v", err)
	}
	for _, path := range regexp.MustCompile(`/\S+`).FindAllString(string(needed), -1) {
		if base := filepath.Base(path); !regexp.MustCompile(`^(libc|libm|libdl|libpthread|librt|libresolv|ld-linux.*)\.so`).MatchString(base) {
			t.Errorf("the program links %s: it should need libc and libm only", base)
		}
		copyInto(t, path, filepath.Join(root, path))
	}
	for _, d := range []string{"tmp", "dev", "data"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	in := func(args ...string) (string, int) {
		cmd := exec.Command("/velo", args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		cmd.Dir = "/"
		cmd.Env = []string{"VELO_DATA=/data", "HOME=/", "TMPDIR=/tmp"}
		out, err := cmd.CombinedOutput()
		if exit, ok := err.(*exec.ExitError); ok {
			return string(out), exit.ExitCode()
		} else if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return string(out), 0
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"version"}, 0, "velo "},
		{[]string{"sim", "--scenario", "list"}, 0, "steady"},
		{[]string{"sessions"}, 0, "No sessions yet"},
		{[]string{"bench", "quick", "--out", "/data/out", "--format", "pdf,png,md,csv,json,svg,html,benchstat,vllm"}, 0, "not a real model"},
		{[]string{"report", "/data/none.velo"}, 1, "none.velo"},
		{[]string{"calibrate", "--streams", "1", "--duration", "1s"}, 0, "streams"},
		{[]string{"probe"}, 1, "is an NVIDIA driver installed?"},
		{[]string{"probe", "--facts"}, 0, `"name":"cpu"`},
		{[]string{"bench", "no-such-suite"}, 2, "no-such-suite"},
		{nil, 1, "DISPLAY"},
	} {
		out, code := in(c.args...)
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("velo %s: exit code %d, want %d; %q expected in:\n%s", strings.Join(c.args, " "), code, c.code, c.want, out)
		}
	}
	id := regexp.MustCompile(`(?m)^([0-9a-f]{20}) `)
	out, code := in("sessions")
	m := id.FindStringSubmatch(out)
	if code != 0 || m == nil {
		t.Fatalf("velo sessions after a run: exit code %d:\n%s", code, out)
	}
	if out, code = in("report", m[1], "--out", "/data/again", "--format", "pdf"); code != 0 {
		t.Errorf("velo report %s: exit code %d:\n%s", m[1], code, out)
	}
	files, _ := filepath.Glob(filepath.Join(root, "data/out/*.pdf"))
	again, _ := filepath.Glob(filepath.Join(root, "data/again/*.pdf"))
	if len(files) != 1 || len(again) != 1 {
		t.Fatalf("PDFs: %v and %v", files, again)
	}
	a, _ := os.ReadFile(files[0])
	b, _ := os.ReadFile(again[0])
	if !bytes.Equal(a, b) {
		t.Error("the report of a stored session is not the one that was written when it was measured")
	}
}

func copyInto(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	src, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = io.Copy(dst, src); err != nil {
		t.Fatal(err)
	}
	if err := dst.Close(); err != nil {
		t.Fatal(err)
	}
}
