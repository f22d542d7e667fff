//go:build unix

package weights

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// mappedFile is a mapping of a file of so many bytes.
func mappedFile(t *testing.T, size int64) (*mapping, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	m, err := mapFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.close() })
	return m, path
}

// read reads a byte of mapped memory as everything does that must not end the process.
func read(data []byte, at int) (b byte, err error) {
	defer Recover(debug.SetPanicOnFault(true), &err)
	return data[at], nil
}

// TestShortened: a byte that a file has lost since it was mapped is an error that names the file, the place
// and the reason; what is left can be read, and once the file is whole again all of it.
func TestShortened(t *testing.T) {
	m, path := mappedFile(t, 1<<20)
	if _, err := read(m.data, 1<<20-1); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	_, err := read(m.data, 500_000)
	var fault *Fault
	if !errors.As(err, &fault) || fault.Path != path || fault.Offset != 500_000 {
		t.Fatalf("%#v", err)
	}
	want := "cannot read " + path + " at byte 500000: it has 4096 bytes and had 1048576 when it was opened; it was changed while it was in use, so copy it anew and start again"
	if err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	if _, err := read(m.data, 4095); err != nil {
		t.Errorf("a byte that is still there: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := read(m.data, 500_000); !errors.As(err, &fault) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("after it was removed too: %v", err)
	}
}

// TestRecoverLetsOthersGo: what is no fault of a mapped file stays a panic, and the state of the goroutine is
// as it was.
func TestRecoverLetsOthersGo(t *testing.T) {
	other := func(f func()) (v any, err error) {
		defer func() { v = recover() }()
		defer Recover(debug.SetPanicOnFault(true), &err)
		f()
		return nil, nil
	}
	var nowhere *int
	if v, err := other(func() { *nowhere = 1 }); v == nil || err != nil {
		t.Errorf("a write to nowhere: %v, %v", v, err)
	}
	if v, _ := other(func() { panic("mine") }); v != "mine" {
		t.Errorf("a panic: %v", v)
	}
	// The memory of a mapping that was closed is nobody's.
	m, _ := mappedFile(t, 1<<20)
	data := m.data
	if err := m.close(); err != nil {
		t.Fatal(err)
	}
	if v, err := other(func() { _ = string(data[:1]) }); v == nil || err != nil {
		t.Errorf("a read after closing: %v, %v", v, err)
	}
	if debug.SetPanicOnFault(false) {
		t.Error("faults are still panics")
	}
	err := errors.New("earlier")
	func() {
		defer Recover(false, &err)
	}()
	if err.Error() != "earlier" {
		t.Error(err)
	}
}

// TestUnchanged: a file that was written to since it was opened is found out, one that was replaced is not
// the one that is mapped.
func TestUnchanged(t *testing.T) {
	files, _ := tinyFolder(t, "qwen2")
	dir := t.TempDir()
	for n, data := range files {
		if err := os.WriteFile(filepath.Join(dir, n), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Unchanged(); err != nil {
		t.Errorf("nothing happened: %v", err)
	}
	path := filepath.Join(dir, "model.safetensors")
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := m.Unchanged(); err == nil || !strings.Contains(err.Error(), path+": it was written to since it was opened") {
		t.Errorf("after a write: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.Unchanged(); err != nil {
		t.Errorf("replaced: %v", err)
	}
}
