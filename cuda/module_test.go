//go:build linux && cuda && cgo

package cuda

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRefusedCode: machine code from the cache that the driver refuses is thrown away and compiled anew,
// once; code that it refuses although it has just made it is an error. A folder that cannot be written
// to, or is none, is no error.
func TestRefusedCode(t *testing.T) {
	h, ok := onHollow(t)
	if !ok {
		return
	}
	cache := filepath.Join(t.TempDir(), "kernels")
	d := open(t, Options{Cache: cache})
	ptx := map[string][]byte{"a": []byte("kernels a"), "b": []byte("kernels b")}
	compiled := func() int { return count(h.log(t), "compiled") }
	load := func(what string, from bool, compiles int) {
		t.Helper()
		before := compiled()
		all, err := d.LoadAll(ptx)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for name, m := range all {
			if m.cached != from {
				t.Errorf("%s: %s is from the cache: %v", what, name, m.cached)
			}
		}
		if n := compiled() - before; n != compiles {
			t.Errorf("%s: compiled %d times, not %d", what, n, compiles)
		}
		if files, err := filepath.Glob(filepath.Join(cache, "*")); err != nil || len(files) != 2 {
			t.Errorf("%s: the cache holds %v, %v", what, files, err)
		}
	}
	load("the first time", false, 2)
	load("the second time", true, 0)
	h.set(t, "code", "another driver's")
	load("kept code that is refused", false, 2)
	load("and then", true, 0)

	h.set(t, "refuse", "")
	before := compiled()
	if _, err := d.LoadAll(ptx); err == nil || !strings.HasPrefix(err.Error(), "cannot load the kernels a on hollow") || !strings.Contains(err.Error(), "NoBinaryForGpu") {
		t.Errorf("code that is always refused: %v", err)
	}
	if n := compiled() - before; n != 1 {
		t.Errorf("code that is always refused was compiled %d times", n)
	}
	h.unset(t, "refuse")
	if all, err := d.LoadAll(ptx); err != nil || all["a"].cached || !all["b"].cached {
		t.Errorf("after that: %v", err)
	}
	load("and then", true, 0)
}

// TestCacheFolder: where compiled kernels cannot be kept they are compiled each time, and no half of a
// file is ever left.
func TestCacheFolder(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, path := range map[string]string{"no folder": "", "a file above it": filepath.Join(file, "kernels", "x.cubin"), "a folder in its place": folder} {
		writeCache(path, []byte("code"))
		if readCache(path) != nil {
			t.Errorf("%s: something was kept", what)
		}
	}
	path := filepath.Join(folder, "kernels", "x.cubin")
	writeCache(path, []byte("code"))
	writeCache(path, []byte("other code"))
	if got := readCache(path); string(got) != "other code" {
		t.Errorf("kept was %q", got)
	}
	if list, err := filepath.Glob(filepath.Join(folder, "kernels", "*")); err != nil || len(list) != 1 {
		t.Errorf("the folder holds %v, %v", list, err)
	}
	if list, err := filepath.Glob(filepath.Join(folder, "new-*")); err != nil || len(list) != 0 {
		t.Errorf("left behind are %v, %v", list, err)
	}
}
