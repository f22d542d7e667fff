//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"velo/cuda/stub"
	"velo/engine/kv"
	"velo/engine/model"
	"velo/engine/weights"
)

// hollow is a driver that computes nothing (testdata/hollow.c), which the test runs on in a process of
// its own: what the host does around kernels shows on any machine. Its folder has the files that change
// what it does, and its log.
type hollow struct{ folder string }

// onHollow runs the test that calls it again in a child, on that driver. ok is true there; elsewhere
// the child has run and the test is done.
func onHollow(t *testing.T) (h hollow, ok bool) {
	t.Helper()
	if folder := os.Getenv("HOLLOW"); folder != "" {
		return hollow{folder}, true
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	if _, err := exec.LookPath(cc); err != nil {
		t.Skip("no C compiler: ", err)
	}
	folder := t.TempDir()
	if out, err := exec.Command(cc, "-O1", "-w", "-shared", "-fPIC", "-o", filepath.Join(folder, stub.Library), "testdata/hollow.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := child(t, 2*time.Minute, []string{"HOLLOW=" + folder, "LD_LIBRARY_PATH=" + folder, "VELO_GPU=1", "VELO_KERNELS=" + t.TempDir()},
		"-test.run=^"+t.Name()+"$", "-test.v")
	if err != nil {
		t.Errorf("on the hollow driver: %v\n%s", err, out)
	} else if !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("on the hollow driver nothing was tested:\n%s", out)
	}
	return h, false
}

// set makes a file of the driver, with a text.
func (h hollow) set(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// unset takes a file away.
func (h hollow) unset(t testing.TB, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(h.folder, name)); err != nil {
		t.Fatal(err)
	}
}

// log is what was taken and given back so far.
func (h hollow) log(t testing.TB) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(h.folder, "log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' })
}

// outstanding adds up the bytes of a kind, device or pinned, that lines of the log took and did not give back.
func outstanding(t testing.TB, log []string, kind string) (n int64) {
	t.Helper()
	for _, line := range log {
		var bytes int64
		if _, err := fmt.Sscanf(line, kind+" given back %d", &bytes); err == nil {
			n -= bytes
		} else if _, err := fmt.Sscanf(line, kind+" %d", &bytes); err == nil {
			n += bytes
		}
	}
	return n
}

// count is how many lines of the log are that one.
func count(log []string, line string) (n int) {
	for _, l := range log {
		if l == line {
			n++
		}
	}
	return n
}

// hollowModel makes a small model on a backend of a hollow driver.
func hollowModel(t *testing.T, name string, o BackendOptions, m model.Options) (*Backend, *model.Model, *weights.Model) {
	t.Helper()
	w := openModel(t, name)
	b := newBackend(t, o)
	made, err := model.New(&w.Config, w, b, m)
	if err != nil {
		t.Fatal(err)
	}
	return b, made, w
}

// TestHollow: the driver that computes nothing takes a model through steps of all kinds, so that what
// is tested on it was really done.
func TestHollow(t *testing.T) {
	h, ok := onHollow(t)
	if !ok {
		return
	}
	for _, name := range models {
		b, m, _ := hollowModel(t, name, BackendOptions{Rows: 64}, model.Options{Tokens: 256, Sequences: 3, Outputs: 16})
		s := sequence(t, m)
		for _, n := range []int{1, 1, 1, 5, 16, 17, 40} {
			if rows := feedLast(t, m, s, n); len(rows) != 1 || rows[0][0] != 0 {
				t.Errorf("%s: a step of %d rows gives %d rows of logits", name, n, len(rows))
			}
		}
		if n := len(b.device.launched()); n == 0 {
			t.Error("nothing was launched")
		}
	}
	log := h.log(t)
	if outstanding(t, log, "device") == 0 || outstanding(t, log, "pinned") == 0 || count(log, "graph") == 0 {
		t.Errorf("the log is %q", log)
	}
}

// feedLast runs a step of n more tokens of a sequence and gives the logits after the last.
func feedLast(t testing.TB, m *model.Model, s *kv.Sequence, n int) [][]float32 {
	t.Helper()
	step := m.NewStep()
	if err := step.Add(s, words(m, uint64(n), n), 1); err != nil {
		t.Fatal(err)
	}
	return logitsOf(t, m, step)
}

// OnHollow is onHollow for tests outside of the package: log is what was taken and given back so far,
// held what lines of it took and did not give back, in the pieces that a driver hands out.
func OnHollow(t *testing.T) (log func() []string, held func(lines []string, kind string) int64, ok bool) {
	t.Helper()
	h, ok := onHollow(t)
	return func() []string { return h.log(t) }, func(lines []string, kind string) (n int64) {
		for _, line := range lines {
			bytes := outstanding(t, []string{line}, kind)
			switch {
			case kind != "device":
				n += bytes
			case bytes > 0:
				n += grains(bytes)
			default:
				n -= grains(-bytes)
			}
		}
		return n
	}, ok
}
