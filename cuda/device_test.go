//go:build linux && cuda && cgo

package cuda

import (
	"debug/elf"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// open opens the first GPU. VELO_KERNELS is a folder for compiled kernels that tests may
// share. Without one the test is skipped, unless VELO_GPU
// is set, which says that there is one.
func open(t testing.TB, o Options) *Device {
	t.Helper()
	if o.Cache == "" {
		if o.Cache = os.Getenv("VELO_KERNELS"); o.Cache == "" {
			o.Cache = t.TempDir()
		}
	}
	d, err := Open(0, o)
	if err != nil {
		if os.Getenv("VELO_GPU") == "" {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		noteLaunched(t, d)
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// pool is device memory for a test.
func pool(t testing.TB, d *Device, bytes int64) *Pool {
	t.Helper()
	p, err := d.Pool(bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func take(t testing.TB, p *Pool, bytes int64) Memory {
	t.Helper()
	m, err := p.Take("a test", bytes)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// launchOtherwise makes launches as VELO_WAY says: "teams=N", "apart", "whole"; see ways.
func launchOtherwise(t testing.TB, k *Kernels) {
	t.Helper()
	launchAs(t, k, os.Getenv("VELO_WAY"))
}

func launchAs(t testing.TB, k *Kernels, words string) {
	t.Helper()
	k.ways = ways{}
	for _, word := range strings.Fields(words) {
		switch word {
		case "whole":
			k.ways.whole = true
		case "apart":
			k.ways.apart = true
		default:
			number, found := strings.CutPrefix(word, "teams=")
			n, err := strconv.Atoi(number)
			if !found || err != nil {
				t.Fatalf("VELO_WAY has no %s", word)
			}
			k.ways.teams = n
		}
	}
}

func loadKernels(t testing.TB, d *Device) *Kernels {
	t.Helper()
	k, err := d.Kernels()
	if err != nil {
		t.Fatal(err)
	}
	launchOtherwise(t, k)
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

func TestBinaryDoesNotNeedTheDriver(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range libraries {
		if strings.Contains(l, "cuda") {
			t.Errorf("the binary needs %s to start; it needs %v", l, libraries)
		}
	}
	if !slices.ContainsFunc(libraries, func(l string) bool { return strings.HasPrefix(l, "libc.") }) {
		t.Errorf("a binary with cgo that needs no libc: %v", libraries)
	}
}

func TestOpenSaysWhatIsMissing(t *testing.T) {
	d, err := Open(999, Options{})
	if err == nil {
		d.Close()
		t.Fatal("GPU 999 was opened")
	}
	if s := err.Error(); !strings.HasPrefix(s, "cannot ") || len(s) < 30 {
		t.Errorf("not a sentence: %q", s)
	}
}

func TestFacts(t *testing.T) {
	d := open(t, Options{})
	f := d.Facts()
	if f.Name == "" || f.Major < 8 || f.SMs < 1 || f.Memory < 1<<30 || f.Free <= 0 || f.Free > f.Memory ||
		f.L2 < 1<<20 || f.Shared < 48<<10 || f.Threads < 1024 || f.Driver < 12000 || f.Clock < 100000 {
		t.Errorf("unlikely facts: %+v", f)
	}
	t.Log(f, *f)
}
