//go:build linux && cuda && cgo

package cuda

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"velo/engine/model"
	"velo/engine/weights"
)

// residentBytes is what this process holds of the host's memory.
func residentBytes(t testing.TB) int64 {
	t.Helper()
	debug.FreeOSMemory()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "VmRSS:")
	n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// cycle loads a small model on a backend of its own, runs a step and gives all back. It tells what was
// free on the device when it was opened.
func cycle(t testing.TB, name string) (free int64) {
	t.Helper()
	w, err := weights.Open(folder(name))
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewBackend(BackendOptions{Rows: 32, Options: Options{Cache: os.Getenv("VELO_KERNELS")}})
	if err != nil {
		if os.Getenv("VELO_GPU") == "" {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	free = b.Device().Facts().Free
	m, err := model.New(&w.Config, w, b, model.Options{Tokens: 64, Sequences: 2, Outputs: 8})
	if err != nil {
		t.Fatal(err)
	}
	feed(t, m, sequence(t, m), words(m, 1, 5))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return free
}

// TestGateCycles loads and unloads a model $VELO_CYCLES times (20 if it is not set): from the 100th
// time on, of 1,000, neither the device's memory nor the process's may grow.
func TestGateCycles(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("VELO_CYCLES"))
	if err != nil {
		n = 20
	}
	const slack = 16 << 20 // what an allocator may keep or not
	var free, resident int64
	begin := time.Now()
	for i := 1; i <= n; i++ {
		now := cycle(t, "qwen3_5")
		if i%max(1, n/10) != 0 {
			continue
		}
		rss := residentBytes(t)
		t.Logf("after %d: %.1f MiB free on the device, %.1f MiB resident, %.0f ms a cycle", i, float64(now)/(1<<20), float64(rss)/(1<<20),
			time.Since(begin).Seconds()*1000/float64(i))
		if free == 0 {
			if i >= max(n/10, min(100, n/2)) {
				free, resident = now, rss
			}
			continue
		}
		if free-now > slack || rss-resident > slack {
			t.Fatalf("memory grows: after %d cycles %d bytes less are free on the device and %d more are resident", i, free-now, rss-resident)
		}
	}
}

// TestGateStart is one start of a process: it loads a model and computes.
func TestGateStart(t *testing.T) { cycle(t, "llama") }

// TestGateStarts starts 20 processes one after another. Each ends well and in time, and leaves nothing
// on the device.
func TestGateStarts(t *testing.T) {
	d := open(t, Options{})
	before, _, err := d.MemoryInfo()
	if err != nil {
		t.Fatal(err)
	}
	var longest, all time.Duration
	for i := range 20 {
		begin := time.Now()
		out, err := child(t, 60*time.Second, nil, "-test.run=^TestGateStart$")
		if err != nil {
			t.Fatalf("start %d: %v\n%s", i+1, err, out)
		}
		took := time.Since(begin)
		longest, all = max(longest, took), all+took
	}
	after, _, err := d.MemoryInfo()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("20 starts, %v each, the longest %v", (all / 20).Round(time.Millisecond), longest.Round(time.Millisecond))
	if before-after > 16<<20 {
		t.Errorf("after 20 processes %d bytes less are free", before-after)
	}
}

// child runs this test binary in a process of its own, which is killed when its time is up.
func child(t testing.TB, limit time.Duration, env []string, args ...string) ([]byte, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return process(limit, env, self, args...)
}

func process(limit time.Duration, env []string, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), env...)
	c.WaitDelay = 5 * time.Second
	out, err := c.CombinedOutput()
	if ctx.Err() != nil {
		err = &late{filepath.Base(name), limit}
	}
	return out, err
}

// late is a process that did not end in time.
type late struct {
	name  string
	limit time.Duration
}

func (l *late) Error() string { return l.name + " did not end within " + l.limit.String() }
