//go:build linux && cuda && cgo

package emulator

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"velo/cuda"
)

// The library has to be there before the process begins, since the loader looks for it in the
// environment of then: it is built, and the tests begin again.
func TestMain(m *testing.M) {
	const built = "VELO_EMULATOR_BUILT"
	if os.Getenv(built) != "" {
		os.Exit(m.Run())
	}
	root, err := filepath.Abs("../..")
	if err == nil {
		if _, err = exec.LookPath("g++"); err != nil && os.Getenv("CXX") == "" {
			fmt.Println("there is no g++, so the emulator is not tested")
			os.Exit(0)
		}
		var out []byte
		if out, err = exec.Command(filepath.Join(root, "scripts/emulate")).CombinedOutput(); err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
	}
	if err == nil {
		err = os.Setenv("LD_LIBRARY_PATH", filepath.Join(root, "build/emulator"))
	}
	if err == nil {
		err = os.Setenv(built, "1")
	}
	if err == nil {
		err = syscall.Exec("/proc/self/exe", os.Args, os.Environ())
	}
	fmt.Fprintln(os.Stderr, "cannot test the emulator:", err)
	os.Exit(1)
}

// device is a device of its own for a test: what fails spoils no other.
type device struct {
	*testing.T
	*cuda.Device
	pool *cuda.Pool
}

func open(t *testing.T) *device {
	t.Helper()
	d, err := cuda.Open(0, cuda.Options{Cache: "-"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(d.Facts().Name, "Velo emulator") {
		t.Fatalf("this is %s", d.Facts().Name)
	}
	p, err := d.Pool(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return &device{t, d, p}
}

func (d *device) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *device) take(bytes int) cuda.Memory {
	d.Helper()
	m, err := d.pool.Take("a test", int64(bytes))
	d.must(err)
	return m
}

func (d *device) kernel(ptx, name string) *cuda.Kernel {
	d.Helper()
	m, err := d.Load("a test", []byte(ptx))
	d.must(err)
	k, err := m.Kernel(name)
	d.must(err)
	return k
}

func file(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// run launches and waits.
func (d *device) run(k *cuda.Kernel, blocks, threads int, args ...uint64) {
	d.Helper()
	a := new(cuda.Args)
	for _, v := range args {
		a.Pointer(v)
	}
	d.must(k.Launch(cuda.Grid{X: blocks, Block: threads}, a))
	d.must(d.Wait())
}

func read[T any](d *device, m cuda.Memory, n int) []T {
	d.Helper()
	v := make([]T, n)
	d.must(cuda.Download(m, v))
	return v
}

// code is the driver's word for an error.
func code(err error) string {
	var e *cuda.Error
	if errors.As(err, &e) {
		return e.Name
	}
	return fmt.Sprint(err)
}

func TestWarps(t *testing.T) {
	text := file(t, "warp.ptx")
	t.Run("divergence", func(t *testing.T) {
		d := open(t)
		to := d.take(64 * 16)
		d.run(d.kernel(text, "collatz"), 1, 64, to.Address())
		got := read[[4]uint32](d, to, 64)
		var steps [64]uint32
		var sums [2]uint32
		for i := range steps {
			for n := i + 1; n != 1; steps[i]++ {
				if n%2 == 0 {
					n /= 2
				} else {
					n = 3*n + 1
				}
			}
			sums[i/32] += steps[i]
		}
		for i, g := range got {
			if want := [4]uint32{steps[i], sums[i/32], steps[i^1], 1}; g != want {
				t.Errorf("thread %d: %v, not %v", i, g, want)
			}
		}
	})
	t.Run("some lanes", func(t *testing.T) {
		d := open(t)
		to := d.take(32 * 16)
		d.run(d.kernel(text, "some"), 1, 32, to.Address())
		for i, g := range read[[4]uint32](d, to, 20) {
			up, down := uint32(max(i-2, 0)), uint32(i+1)
			if i < 2 {
				up = uint32(i)
			}
			if i%4 == 3 {
				down = uint32(i)
			}
			if want := [4]uint32{7, 1, up, down}; g != want {
				t.Errorf("lane %d: %v, not %v", i, g, want)
			}
		}
	})
	t.Run("calls", func(t *testing.T) {
		d := open(t)
		to := d.take(64 * 8)
		d.run(d.kernel(text, "calls"), 1, 64, to.Address())
		for i, g := range read[[2]uint32](d, to, 64) {
			by := []uint32{3, 5, 7, 11}[i%4]
			if want := [2]uint32{uint32(i) / by, uint32(i) % by}; g != want {
				t.Errorf("thread %d: %v, not %v", i, g, want)
			}
		}
	})
	t.Run("last block", func(t *testing.T) {
		d := open(t)
		counter, to := d.take(4), d.take(4)
		d.must(counter.Fill(0))
		d.run(d.kernel(text, "last_block"), 1000, 64, counter.Address(), to.Address())
		if got := read[uint32](d, to, 1)[0]; got != 999 {
			t.Errorf("the last of 1000 blocks was number %d", got)
		}
	})
}

func TestCopies(t *testing.T) {
	text := file(t, "faults.ptx")
	d := open(t)
	data := make([]uint32, 128)
	for i := range data {
		data[i] = uint32(i + 1)
	}
	from, to := d.take(512), d.take(512)
	d.must(cuda.Upload(from, data))
	d.run(d.kernel(text, "copy_waited"), 1, 32, from.Address(), to.Address())
	for i, v := range read[uint32](d, to, 128) {
		want := data[i]
		if i < 64 {
			want = 0
		}
		if v != want {
			t.Fatalf("word %d of a copy is %#x, not %#x", i, v, want)
		}
	}
	d.run(d.kernel(text, "copy_too_early"), 1, 32, from.Address(), to.Address())
	for i, v := range read[uint32](d, to, 128) {
		if v != 0xffffffff {
			t.Fatalf("word %d of a copy that was not waited for is there: %#x", i, v)
		}
	}
	k := d.kernel(text, "dynamic_size")
	a := new(cuda.Args).Pointer(to.Address())
	d.must(k.Launch(cuda.Grid{X: 1, Block: 1, Shared: 4096}, a))
	if got := read[uint32](d, to, 2); got[0] != 4096 || got[1] != 0 {
		t.Errorf("dynamic shared memory of 4096 bytes at 0: %v", got)
	}
}

// TestFaults makes each fault; each has its own error.
func TestFaults(t *testing.T) {
	if os.Getenv("VELO_EMULATOR_MOST") == "" { // endless kernels end sooner
		again(t, "VELO_EMULATOR_MOST=1000000")
		return
	}
	text := file(t, "faults.ptx")
	for _, f := range []struct {
		what, kernel, want string
		grid               cuda.Grid
		args               func(d *device) []uint64
	}{
		{what: "behind an allocation", kernel: "write_at", want: "CUDA_ERROR_ILLEGAL_ADDRESS", args: func(d *device) []uint64 { return []uint64{d.take(1<<20).Address() + 1<<20} }},
		{what: "across its end", kernel: "write_at", want: "CUDA_ERROR_ILLEGAL_ADDRESS", args: func(d *device) []uint64 {
			p, err := d.Pool(1022)
			d.must(err)
			m, err := p.Take("all", 1022)
			d.must(err)
			return []uint64{m.Address() + 1020}
		}},
		{what: "freed", kernel: "read_generic", want: "CUDA_ERROR_ILLEGAL_ADDRESS", args: func(d *device) []uint64 {
			p, err := d.Pool(4096)
			d.must(err)
			m, err := p.Take("all", 4096)
			d.must(err)
			d.must(p.Close())
			return []uint64{m.Address()}
		}},
		{what: "nowhere", kernel: "read_generic", want: "CUDA_ERROR_ILLEGAL_ADDRESS", args: func(*device) []uint64 { return []uint64{0} }},
		{what: "not aligned", kernel: "write_at", want: "CUDA_ERROR_MISALIGNED_ADDRESS", args: func(d *device) []uint64 { return []uint64{d.take(64).Address() + 2} }},
		{what: "a trap", kernel: "trap_in_one", want: "CUDA_ERROR_LAUNCH_FAILED"},
		{what: "no end", kernel: "endless", want: "CUDA_ERROR_LAUNCH_TIMEOUT"},
		{what: "behind shared memory", kernel: "behind_shared", want: "CUDA_ERROR_ILLEGAL_ADDRESS"},
		{what: "two barriers", kernel: "half_a_barrier", want: "CUDA_ERROR_LAUNCH_FAILED"},
		{what: "lanes that miss each other", kernel: "lanes_that_miss", want: "CUDA_ERROR_LAUNCH_FAILED"},
		{what: "too much shared memory", kernel: "dynamic_size", want: "CUDA_ERROR_INVALID_VALUE", grid: cuda.Grid{X: 1, Block: 32, Shared: 49 << 10}, args: func(d *device) []uint64 { return []uint64{d.take(8).Address()} }},
		{what: "too many threads", kernel: "trap_in_one", want: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", grid: cuda.Grid{X: 1, Block: 1025}},
		{what: "more threads than the kernel says", kernel: "at_most_64", want: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", grid: cuda.Grid{X: 1, Block: 96}},
		{what: "too many arguments", kernel: "at_most_64", want: "CUDA_ERROR_INVALID_VALUE", args: func(*device) []uint64 { return []uint64{1} }},
		{what: "no block", kernel: "at_most_64", want: "CUDA_ERROR_INVALID_VALUE", grid: cuda.Grid{X: 0, Block: 32}},
	} {
		t.Run(f.what, func(t *testing.T) {
			d := open(t)
			k := d.kernel(text, f.kernel)
			a := new(cuda.Args)
			if f.args != nil {
				for _, v := range f.args(d) {
					a.Pointer(v)
				}
			}
			g := f.grid
			if g.Block == 0 {
				g = cuda.Grid{X: 1, Block: 32}
			}
			launched := k.Launch(g, a)
			if err := errors.Join(launched, d.Wait()); code(err) != f.want {
				t.Errorf("%v, not %s", err, f.want)
			}
			if launched != nil {
				return
			}
			if err := d.Wait(); code(err) != f.want { // for good
				t.Errorf("afterwards: %v", err)
			}
		})
	}
	d := open(t) // the next one computes
	to := d.take(4)
	d.run(d.kernel(text, "write_at"), 1, 1, to.Address())
	if v := read[uint32](d, to, 1)[0]; v != 7 {
		t.Errorf("a device after all that computes %d", v)
	}
}

// again runs a test in a process with something in its environment.
func again(t *testing.T, environment string) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), environment)
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestRaces(t *testing.T) {
	if os.Getenv("VELO_EMULATOR") == "" {
		again(t, "VELO_EMULATOR=races")
		return
	}
	text := file(t, "faults.ptx")
	d := open(t)
	to := d.take(1024)
	d.run(d.kernel(text, "with_barrier"), 1, 256, to.Address())
	for i, v := range read[uint32](d, to, 256) {
		if v != uint32(i^32) {
			t.Fatalf("thread %d read %d", i, v)
		}
	}
	d.must(d.kernel(text, "without_barrier").Launch(cuda.Grid{X: 1, Block: 256}, new(cuda.Args).Pointer(to.Address())))
	if err := d.Wait(); code(err) != "CUDA_ERROR_LAUNCH_FAILED" {
		t.Errorf("a race: %v", err)
	}
}
