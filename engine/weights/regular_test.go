//go:build unix

package weights

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// irregular are ways to put what is no file where one is read, and what is said of each.
var irregular = []struct {
	name string
	put  func(t *testing.T, path string) error
	want string
}{
	{"a pipe", func(_ *testing.T, path string) error { return syscall.Mkfifo(path, 0o600) }, "it is a named pipe, and must be a regular file"},
	{"a link to a pipe", func(_ *testing.T, path string) error {
		if err := syscall.Mkfifo(path+".pipe", 0o600); err != nil {
			return err
		}
		return os.Symlink(path+".pipe", path)
	}, "it is a named pipe, and must be a regular file"},
	{"a socket", func(t *testing.T, path string) error {
		// The path of a socket may have a hundred bytes: it is made elsewhere and moved.
		short, err := os.MkdirTemp("", "")
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = os.RemoveAll(short) })
		l, err := net.Listen("unix", filepath.Join(short, "s"))
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = l.Close() })
		return os.Symlink(filepath.Join(short, "s"), path)
	}, "it is a socket, and must be a regular file"},
	{"a device", func(_ *testing.T, path string) error { return os.Symlink("/dev/zero", path) }, "it is a device, and must be a regular file"},
	{"a folder", func(_ *testing.T, path string) error { return os.Mkdir(path, 0o700) }, "it is a folder, and must be a regular file"},
	{"a link to itself", func(_ *testing.T, path string) error { return os.Symlink(path, path) }, "it is a symbolic link to"},
	{"a link to nothing", func(_ *testing.T, path string) error { return os.Symlink("nowhere", path) }, "it is a symbolic link to nowhere, which is not there"},
}

// TestIrregularFiles: whatever stands where a file of a model should, opening neither waits nor tries to
// read it, and the error names the file and what it is.
func TestIrregularFiles(t *testing.T) {
	files, _ := tinyFolder(t, "qwen2")
	index := "model.safetensors.index.json"
	names := []string{"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "chat_template.json", index, "model.safetensors"}
	for _, c := range irregular {
		for _, name := range names {
			dir := t.TempDir()
			for n, data := range files {
				if n == name {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, n), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(dir, name)
			if err := c.put(t, path); err != nil {
				t.Skip(c.name, err)
			}
			m, err := Open(dir)
			if err == nil {
				_ = m.Close()
				t.Errorf("%s as %s: it opened", c.name, name)
			} else if !strings.Contains(err.Error(), name+": "+c.want) {
				t.Errorf("%s as %s: %v", c.name, name, err)
			}
		}
		path := filepath.Join(t.TempDir(), "model.gguf")
		if err := c.put(t, path); err != nil {
			t.Skip(c.name, err)
		}
		want := c.want
		if c.name == "a folder" {
			want = "the folder has no config.json" // a folder may be a model
		}
		if err := opening(t, path); err == nil || !strings.Contains(err.Error(), "cannot open model "+path+": "+want) {
			t.Errorf("%s as a model: %v", c.name, err)
		}
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if data, err := ReadFile(path, 4); data != nil || err != nil {
		t.Errorf("no file: %q, %v", data, err)
	}
	if err := os.WriteFile(path, []byte("four"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadFile(path, 4); string(data) != "four" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if data, err := ReadFile(path, 3); data != nil || err == nil || err.Error() != "it has 4 bytes, and more than 3 are not read" {
		t.Errorf("%q, %v", data, err)
	}
	if os.Geteuid() != 0 { // who may read everything
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFile(path, 4); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("a file that may not be read: %v", err)
		}
	}
}
