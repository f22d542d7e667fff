//go:build linux && cuda && cgo

package cuda

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestPool(t *testing.T) {
	d := open(t, Options{})
	p := pool(t, d, 1<<20)
	var last uint64
	for _, n := range []int64{1, 255, 256, 257, 4096} {
		m := take(t, p, n)
		if m.Address()%alignment != 0 || m.Bytes() != n || m.Address() <= last {
			t.Errorf("%d bytes were placed at %#x after %#x", n, m.Address(), last)
		}
		last = m.Address() + uint64(n) - 1
	}
	left := p.Left()
	if _, err := p.Take("the weights", left+1); err == nil || !strings.Contains(err.Error(), "the weights") {
		t.Errorf("more than is left: %v", err)
	}
	if _, err := p.Take("nonsense", -1); err == nil {
		t.Error("a negative size was placed")
	}
	take(t, p, left)
	if p.Left() != 0 {
		t.Errorf("%d bytes are left of a full pool", p.Left())
	}
	p.Reset()
	if p.Left() != 1<<20 {
		t.Errorf("%d bytes are left of an empty pool", p.Left())
	}
}

func TestOutOfMemory(t *testing.T) {
	d := open(t, Options{})
	p, err := d.Pool(d.Facts().Memory + 1<<30)
	if err == nil {
		p.Close()
		t.Fatal("more memory than there is was allocated")
	}
	var e *Error
	if s := err.Error(); !strings.HasPrefix(s, "cannot allocate ") || !strings.Contains(s, d.Facts().Name) {
		t.Errorf("not a sentence about it: %s (%v)", s, e)
	}
	if err := take(t, pool(t, d, 1<<20), 1<<20).Fill(1); err != nil {
		t.Errorf("after running out of memory: %v", err)
	}
}

func TestCopies(t *testing.T) {
	d := open(t, Options{})
	p := pool(t, d, 1<<20)
	m := take(t, p, 1000)
	want := []uint32{1, 2, 3, 0xffffffff}
	if err := Upload(m.Part(4, 16), want); err != nil {
		t.Fatal(err)
	}
	got := make([]uint32, 4)
	if err := Download(m.Part(4, 16), got); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("word %d is %d, not %d", i, got[i], want[i])
		}
	}
	if err := Upload(m, make([]byte, 1001)); err == nil {
		t.Error("1001 bytes were copied to 1000")
	}
	if err := Download(m, make([]byte, 1001)); err == nil {
		t.Error("1001 bytes were copied from 1000")
	}
	if err := m.Part(10, 10).Fill(7); err != nil {
		t.Fatal(err)
	}
	all := make([]byte, 30)
	if err := Download(m, all); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(all[10:20], bytes.Repeat([]byte{7}, 10)) || all[9] == 7 && all[20] == 7 {
		t.Errorf("filled: % x", all)
	}
	defer func() {
		if recover() == nil {
			t.Error("a part beyond the end was given")
		}
	}()
	m.Part(990, 11)
}

func TestHostMemory(t *testing.T) {
	d := open(t, Options{})
	k := loadKernels(t, d)
	h, err := d.HostMemory(4096)
	if err != nil {
		t.Fatal(err)
	}
	// The device writes to it, the host reads without a copy.
	if err := k.fillRandom(h.Memory, 1, 0, 0x01020304); err != nil {
		t.Fatal(err)
	}
	if err := d.Wait(); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(h.Host); i += 4 {
		if v := binary.LittleEndian.Uint32(h.Host[i:]); v != 0x01020304 {
			t.Fatalf("word %d is %#x", i/4, v)
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestModulesAreCached(t *testing.T) {
	cache := t.TempDir()
	d := open(t, Options{Cache: cache})
	ptx := []byte(".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry nothing()\n{\n\tret;\n}\n")
	for i, want := range []bool{false, true} {
		m, err := d.Load("nothing", ptx)
		if err != nil {
			t.Fatal(err)
		}
		if m.cached != want {
			t.Errorf("load %d: from the cache: %v", i, m.cached)
		}
		k, err := m.Kernel("nothing")
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Launch(Grid{X: 1, Block: 32}, new(Args)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the cache holds %v (%v)", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for name, damaged := range map[string][]byte{"half": data[:len(data)/2], "empty": nil, "changed": append(data[:len(data)-1:len(data)-1], data[len(data)-1]^1)} {
		if err := os.WriteFile(files[0], damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := d.Load("nothing", ptx)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m.cached {
			t.Errorf("%s: a damaged file was taken from the cache", name)
		}
	}
	if err := d.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Load("broken", []byte(".version 7.0\n.target sm_80\n.address_size 64\nnonsense")); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("PTX that is none: %v", err)
	}
}

func TestGraph(t *testing.T) {
	d := open(t, Options{Wait: true})
	k := loadKernels(t, d)
	m := take(t, pool(t, d, 1<<20), 4096)
	word := func() uint32 {
		v := make([]uint32, 1)
		if err := Download(m, v); err != nil {
			t.Fatal(err)
		}
		return v[0]
	}
	if err := m.Fill(0); err != nil {
		t.Fatal(err)
	}
	g, err := d.Capture(func() error {
		for i := range 3 {
			if err := k.fillRandom(m, 1, 0, uint32(i+1)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if v := word(); v != 0 {
		t.Errorf("a capture ran: %d", v)
	}
	for range 2 {
		if err := m.Fill(0); err != nil {
			t.Fatal(err)
		}
		if err := g.Launch(); err != nil {
			t.Fatal(err)
		}
		if v := word(); v != 3 {
			t.Errorf("the graph left %d", v)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		if err := g.Launch(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a launch of a graph allocates %v times", n)
	}
	if err := d.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	failed := errors.New("a failure")
	if _, err := d.Capture(func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("a capture that fails: %v", err)
	}
	if err := m.Fill(9); err != nil {
		t.Fatal(err)
	}
	if v := word(); v != 0x09090909 {
		t.Errorf("after a capture that failed: %#x", v)
	}
}

func TestLaunchesAllocateNothing(t *testing.T) {
	d := open(t, Options{})
	k := loadKernels(t, d)
	p := pool(t, d, 64<<20)
	for f := range formats {
		m, err := k.blank(p, Format(f), 512, 1024)
		if err != nil {
			t.Fatal(err)
		}
		o, err := k.Operand(p, 1024, MaxRows)
		if err != nil {
			t.Fatal(err)
		}
		x, y := take(t, p, MaxRows*1024*4), take(t, p, MaxRows*512*4)
		for _, n := range []int{1, 5, 16} {
			product := &Product{Y: y, Pitch: 512, X: o, M: m}
			if allocs := testing.AllocsPerRun(50, func() {
				if err := k.Split(o, x, n, 1024); err != nil {
					t.Fatal(err)
				}
				if err := k.Linear(product); err != nil {
					t.Fatal(err)
				}
			}); allocs != 0 {
				t.Errorf("a product of %d rows in %v allocates %v times", n, Format(f), allocs)
			}
		}
	}
	if err := d.Wait(); err != nil {
		t.Fatal(err)
	}
}

// TestFaultsAreNamed lets a kernel write where it may not, in a process of its
// own, since the context is lost.
func TestFaultsAreNamed(t *testing.T) {
	if os.Getenv("CUDA_TEST_FAULT") == "" {
		open(t, Options{})
		c := exec.Command(os.Args[0], "-test.run=^TestFaultsAreNamed$")
		c.Env = append(os.Environ(), "CUDA_TEST_FAULT=1")
		out, err := c.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "fill_random") || !strings.Contains(string(out), "CUDA_ERROR_ILLEGAL_ADDRESS") {
			t.Errorf("a kernel that writes where it may not: %v\n%s", err, out)
		}
		return
	}
	d, err := Open(0, Options{Cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	k, err := d.Kernels()
	if err != nil {
		t.Fatal(err)
	}
	if err := k.fillRandom(Memory{d, 1 << 20, 4096}, 1, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Fatal(d.Wait())
}

func TestOpenAndCloseLeakNothing(t *testing.T) {
	cache := t.TempDir()
	var first int64
	for i := range 12 {
		d, err := Open(0, Options{Cache: cache})
		if err != nil {
			if os.Getenv("VELO_GPU") == "" {
				t.Skip(err)
			}
			t.Fatal(err)
		}
		k, err := d.Kernels()
		if err != nil {
			t.Fatal(err)
		}
		p, err := d.Pool(256 << 20)
		if err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			first = d.Facts().Free
		}
		if i > 2 && d.Facts().Free < first-8<<20 {
			t.Errorf("after %d times %d bytes less are free", i, first-d.Facts().Free)
		}
		for _, err := range []error{p.Close(), k.Close(), d.Close()} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
