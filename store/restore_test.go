package store

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorded records a session and returns its identity.
func recorded(t *testing.T, s *Store) string {
	t.Helper()
	id := rand.Text()
	record(t, s, id, small(false))
	return id
}

func TestRestoreAtTheNextStart(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	first := recorded(t, s)
	b, err := s.MakeBackup()
	if err != nil || b.Why != BackupAsked || b.Bytes == 0 {
		t.Fatalf("MakeBackup: %+v, %v", b, err)
	}
	second := recorded(t, s)
	if err := s.Restore("../velo.db"); err == nil {
		t.Error("a file outside the folder of backups was taken")
	}
	if err := s.Restore(b.Name); err != nil {
		t.Fatal(err)
	}
	if s.Restoring() != b.Name {
		t.Fatalf("it is to restore %q", s.Restoring())
	}
	if err := s.DeleteBackup(b.Name); err == nil {
		t.Error("the backup that is to be restored was deleted")
	}
	third := recorded(t, s) // after the wish: it must not be lost
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if !strings.Contains(s.Recovered(), "was restored") {
		t.Errorf("it says %q", s.Recovered())
	}
	if _, err := s.Session(first); err != nil {
		t.Error(err)
	}
	for _, id := range []string{second, third} {
		if _, err := s.Session(id); err == nil {
			t.Errorf("the session %s, later than the backup, is there", id)
		}
	}
	list, err := s.Backups()
	if err != nil {
		t.Fatal(err)
	}
	kept := ""
	for _, l := range list {
		if l.Why == BackupRestore {
			kept = l.Name
		}
	}
	if kept == "" {
		t.Fatalf("what was there before is not kept: %+v", list)
	}
	if s.Restoring() != "" {
		t.Error("it would be restored once more")
	}
	// And back again.
	if err := s.Restore(kept); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	for _, id := range []string{first, second, third} {
		if _, err := s.Session(id); err != nil {
			t.Errorf("what was there before the restore did not come back: %v", err)
		}
	}
}

func TestDamagedBackupIsNotRestored(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := recorded(t, s)
	b, err := s.MakeBackup()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(b.Name); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(b.Path, b.Bytes/2); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if !strings.Contains(s.Recovered(), "was not restored") {
		t.Errorf("it says %q", s.Recovered())
	}
	if _, err := s.Session(id); err != nil {
		t.Error(err)
	}
	if err := s.Restore(b.Name); err == nil {
		t.Error("a damaged backup is taken")
	}
}

// usual makes a place for data of the test's own.
func usual(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	t.Setenv("VELO_DATA", "")
	t.Setenv("XDG_DATA_HOME", home)
	return filepath.Join(home, "velo")
}

func TestMoveTheDataFolder(t *testing.T) {
	dir := usual(t)
	s := open(t, dir)
	first := recorded(t, s)
	if err := os.WriteFile(filepath.Join(dir, "keys.json"), []byte(`{"version":1,"keys":{"e":"k"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "thesis.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{full, "relative", dir, filepath.Join(dir, "deeper"), filepath.Dir(dir)} {
		if err := s.Move(bad); err == nil {
			t.Errorf("moving to %q was agreed to", bad)
		}
	}
	to := filepath.Join(t.TempDir(), "new", "place")
	if err := s.Move(to); err != nil {
		t.Fatal(err)
	}
	second := recorded(t, s) // after the wish
	if now, said := Settle(dir); now != dir || said != "" {
		t.Fatalf("it moved while the database was open: %s, %s", now, said)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	now, said := Settle(dir)
	if now != to || !strings.Contains(said, to) || DefaultDir() != to {
		t.Fatalf("after the move the folder is %s (%s), and by default %s", now, said, DefaultDir())
	}
	s = open(t, now)
	for _, id := range []string{first, second} {
		if _, err := s.Session(id); err != nil {
			t.Error(err)
		}
	}
	if info, err := os.Stat(filepath.Join(to, "keys.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the keys: %v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(dir, fileName)); err != nil {
		t.Errorf("the old database is gone: %v", err)
	}
	if now, said := Settle(to); now != to || said != "" {
		t.Errorf("it moves again: %s, %s", now, said)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The disk is not attached.
	if err := os.Rename(to, to+".away"); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(DefaultDir(), Options{}); err == nil {
		_ = s.Close()
		t.Error("an empty database was made where the moved one should be")
	} else if !strings.Contains(err.Error(), "attach") {
		t.Errorf("it says %v", err)
	}
}

func TestMoveThatFailsLeavesEverything(t *testing.T) {
	dir := usual(t)
	s := open(t, dir)
	id := recorded(t, s)
	to := filepath.Join(t.TempDir(), "place")
	if err := s.Move(to); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, "meanwhile.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	now, said := Settle(dir)
	if now != dir || !strings.Contains(said, "was not moved") || DefaultDir() != dir {
		t.Errorf("Settle: %s, %s; by default %s", now, said, DefaultDir())
	}
	s = open(t, dir)
	if _, err := s.Session(id); err != nil {
		t.Error(err)
	}
	if s.Moving() != "" {
		t.Error("it would be tried at each start")
	}
}
