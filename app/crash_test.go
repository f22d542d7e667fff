//go:build unix

package app

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// crashEnv makes the test binary a program that ends in the way it names, in the data folder behind it.
const crashEnv = "VELO_TEST_CRASH"

// TestCrashChild is that program.
func TestCrashChild(t *testing.T) {
	how, dir, ok := strings.Cut(os.Getenv(crashEnv), ":")
	if !ok {
		t.Skip("this is the child of TestCrashLeavesAReport")
	}
	w, _, err := watchCrashes(dir)
	if err != nil {
		t.Fatal(err)
	}
	switch how {
	case "panic":
		go func() { panic("it asked with Authorization: Bearer sk-verysecretkey0123456789 and with my-own-key-77") }()
		select {}
	case "nil":
		var p *int
		*p = 1
	case "fatal":
		m := map[int]int{}
		go func() {
			for {
				m[1]++
			}
		}()
		for {
			m[2]++
		}
	case "abort":
		_ = syscall.Kill(os.Getpid(), syscall.SIGABRT)
		select {}
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "end":
		w.end()
		os.Exit(0)
	}
}

func TestCrashLeavesAReport(t *testing.T) {
	for _, c := range []struct{ how, trace string }{
		{"panic", "it asked with"}, {"nil", "nil pointer dereference"}, {"fatal", "maps.fatal("}, {"abort", "SIGABRT"}, {"kill", ""},
	} {
		t.Run(c.how, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command(os.Args[0], "-test.run=TestCrashChild$")
			cmd.Env = append(os.Environ(), crashEnv+"="+c.how+":"+dir)
			out, err := cmd.CombinedOutput()
			var status *exec.ExitError
			if !errors.As(err, &status) {
				t.Fatalf("the child ended in order: %v\n%s", err, out)
			}
			last := lastFault(filepath.Join(dir, openMark))
			if last == nil {
				t.Fatal("nothing tells that it did not end in order")
			}
			if c.trace == "" {
				if last.report != "" || !strings.Contains(last.String(), "killed") {
					t.Errorf("a killed program leaves the report %q: %s", last.report, last)
				}
				return
			}
			if !strings.Contains(last.String(), last.report) || last.report == "" {
				t.Fatalf("the report is not named: %s", last)
			}
			if err := cleanReport(last.report, []string{"my-own-key-77"}); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(last.report)
			if err != nil {
				t.Fatal(err)
			}
			text := string(b)
			for _, want := range []string{"velo " + version, runtime.Version(), c.trace, "goroutine ", "crash_test.go"} {
				if !strings.Contains(text, want) {
					t.Errorf("the report lacks %q:\n%.2000s", want, text)
				}
			}
			for _, secret := range []string{"verysecret", "my-own-key"} {
				if strings.Contains(text, secret) {
					t.Errorf("the report tells the key %q", secret)
				}
			}
			// The next window tells of it once.
			w, again, err := watchCrashes(dir)
			if err != nil || again == nil {
				t.Fatalf("%v, %v", again, err)
			}
			w.end()
			if w, again, _ = watchCrashes(dir); again != nil {
				t.Errorf("told twice: %s", again)
			}
			w.end()
			if _, err := os.Stat(last.report); err != nil {
				t.Errorf("the report did not outlast the next window: %v", err)
			}
		})
	}
}

func TestEndInOrderLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=TestCrashChild$")
	cmd.Env = append(os.Environ(), crashEnv+"=end:"+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if f := lastFault(filepath.Join(dir, openMark)); f != nil {
		t.Errorf("told: %s", f)
	}
	left, _ := os.ReadDir(filepath.Join(dir, crashFolder))
	if len(left) != 0 {
		t.Errorf("%d crash reports are left", len(left))
	}
}

func TestDamagedMarkIsTold(t *testing.T) {
	dir := t.TempDir()
	mark := filepath.Join(dir, openMark)
	if err := os.WriteFile(mark, []byte(`{"began":"20`), 0o600); err != nil {
		t.Fatal(err)
	}
	f := lastFault(mark)
	if f == nil || f.Began.IsZero() || f.report != "" {
		t.Errorf("%+v", f)
	}
}

func TestOnlyTheNewestReportsAreKept(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, crashFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, day := range []string{"01", "02", "03", "04", "05", "06", "07"} {
		if err := os.WriteFile(filepath.Join(folder, "crash-202601"+day+"-000000.000.txt"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, _, err := watchCrashes(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.end()
	left, _ := filepath.Glob(filepath.Join(folder, "*"))
	if len(left) != mostCrashes || strings.Contains(left[0], "20260103") || !strings.Contains(left[0], "20260104") {
		t.Errorf("left: %v", left)
	}
}

func TestSecretsAreTakenOut(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{"Authorization: Bearer abc.def-123", "Authorization: [key] [key]"},
		{`{"api_key":"abcdef"}`, `{"api_key":"[key]"}`},
		{"api-key=abcdef, next", "api-key=[key], next"},
		{"key sk-ant-0123456789abcdef here", "key [key] here"},
		{"hf_abcdefghijklmnop", "[key]"},
		{"panic: index out of range [5] with length 3", "panic: index out of range [5] with length 3"},
		{"velo/ui.(*Shell).Show(0xc000123456, {0xdeadbeef, 0x5})", "velo/ui.(*Shell).Show(0xc000123456, {0xdeadbeef, 0x5})"},
		{"my own words", "my own words"},
	} {
		if got := withoutSecrets(c.in, []string{"own"}); got != c.out {
			t.Errorf("%q becomes %q, want %q", c.in, got, c.out)
		}
	}
}
