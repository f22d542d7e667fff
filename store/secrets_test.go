package store

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"
)

func TestSecretsInKeyring(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	keyring.MockInit()
	dir := t.TempDir()
	s := OpenSecrets(dir)
	if s.Where() != "system keyring" || s.Warning() != "" {
		t.Fatalf("%s, %s", s.Where(), s.Warning())
	}
	same(t, s)
	if err := s.Set("a", "sk-1"); err != nil {
		t.Fatal(err)
	}
	if key, err := keyring.Get("velo", "a"); err != nil || key != "sk-1" {
		t.Fatalf("%s, %v", key, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Fatalf("%v, %v", entries, err)
	}
}

// same is what both kinds do.
func same(t *testing.T, s Secrets) {
	t.Helper()
	if key, err := s.Get("x"); key != "" || err != nil {
		t.Fatalf("%q, %v", key, err)
	}
	if err := s.Delete("x"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ id, key string }{{"x", "sk-x"}, {"y", "sk-y"}, {"x", "sk-z"}} {
		if err := s.Set(c.id, c.key); err != nil {
			t.Fatal(err)
		}
		if key, err := s.Get(c.id); key != c.key || err != nil {
			t.Fatalf("%q, %v", key, err)
		}
	}
	if err := s.Set("x", ""); err != nil {
		t.Fatal(err)
	}
	if key, err := s.Get("x"); key != "" || err != nil {
		t.Fatalf("%q, %v", key, err)
	}
	if key, err := s.Get("y"); key != "sk-y" || err != nil {
		t.Fatalf("%q, %v", key, err)
	}
	if err := s.Delete("y"); err != nil {
		t.Fatal(err)
	}
}

func TestSecretsInFile(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	keyring.MockInitWithError(errors.New("no service"))
	dir := t.TempDir()
	path := filepath.Join(dir, "keys.json")
	s := OpenSecrets(dir)
	if !strings.Contains(s.Where(), path) || !strings.Contains(s.Warning(), "no service") {
		t.Fatalf("%s, %s", s.Where(), s.Warning())
	}
	same(t, s)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("an empty file was left: %v", err)
	}
	if err := s.Set("a", "sk-1"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	// A file that others can read is made tight, and the user is told.
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	again := OpenSecrets(dir)
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	if key, err := again.Get("a"); key != "sk-1" || err != nil {
		t.Fatalf("%q, %v", key, err)
	}
	if runtime.GOOS != "windows" && !strings.Contains(again.Warning(), "change the keys") {
		t.Fatal(again.Warning())
	}
	// With a keyring the keys of the file are still found, and move when they are set.
	keyring.MockInit()
	ring := OpenSecrets(dir)
	if key, err := ring.Get("a"); key != "sk-1" || err != nil || !strings.Contains(ring.Warning(), path) {
		t.Fatalf("%q, %v, %s", key, err, ring.Warning())
	}
	if err := ring.Set("a", "sk-1"); err != nil {
		t.Fatal(err)
	}
	if key, err := ring.Get("a"); key != "sk-1" || err != nil || ring.Warning() != "" {
		t.Fatalf("%q, %v, %s", key, err, ring.Warning())
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the key is still in the file: %v", err)
	}
}

func TestSecretsFileDamaged(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
	keyring.MockInitWithError(errors.New("no service"))
	dir := t.TempDir()
	path := filepath.Join(dir, "keys.json")
	for content, want := range map[string]string{"{": "enter the keys again", `{"version":2}`: "newer"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s := OpenSecrets(dir)
		if _, err := s.Get("a"); err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("got %v", err)
		}
		if err := s.Set("a", "b"); err == nil {
			t.Fatal("the damaged file was written over")
		}
	}
}
