package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"velo/store/internal/sample"
)

// filled makes a data folder with two sessions, of which the first so many are in backups, and
// returns it with its database file.
func filled(tb testing.TB, backups int) (dir string, file []byte) {
	tb.Helper()
	dir = tb.TempDir()
	clock := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for n := 1; n <= 2; n++ {
		clock = clock.Add(time.Hour)
		s, err := Open(dir, Options{Now: func() time.Time { return clock }})
		if err != nil {
			tb.Fatal(err)
		}
		record(tb, s, fmt.Sprintf("session-%04d", n), small(true))
		if err := s.Close(); err != nil {
			tb.Fatal(err)
		}
		if n > backups { // this one's was the newest
			if err := os.Remove(newest(s.backupFiles())); err != nil {
				tb.Fatal(err)
			}
		}
	}
	file, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		tb.Fatal(err)
	}
	return dir, file
}

func newest(names []string) string { return names[len(names)-1] }

// sessions opens a folder and returns the identities of what is there, which must be readable.
func sessions(tb testing.TB, dir string) (ids string, recovered string) {
	tb.Helper()
	s, err := Open(dir, Options{})
	if err != nil {
		tb.Fatal(err)
	}
	defer s.Close()
	list, err := s.Sessions()
	if err != nil {
		tb.Fatal(err)
	}
	for _, sum := range list {
		if _, err := s.Session(sum.ID); err != nil {
			tb.Fatal(err)
		}
		ids = strings.TrimPrefix(sum.ID, "session-000") + ids
	}
	// The next start finds nothing wrong.
	if err := s.Close(); err != nil {
		tb.Fatal(err)
	}
	again, err := Open(dir, Options{})
	if err != nil || again.Recovered() != "" {
		tb.Fatalf("opened again: %v, %q", err, again.Recovered())
	}
	if err := again.Close(); err != nil {
		tb.Fatal(err)
	}
	return ids, s.Recovered()
}

func damage(tb testing.TB, dir string, data []byte) {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(dir, fileName), data, 0o600); err != nil {
		tb.Fatal(err)
	}
}

// corrupt returns the damaged files that were kept.
func corrupt(tb testing.TB, dir string) []string {
	tb.Helper()
	names, err := filepath.Glob(filepath.Join(dir, fileName+".corrupt-*"))
	if err != nil {
		tb.Fatal(err)
	}
	return names
}

func TestUndamaged(t *testing.T) {
	dir, _ := filled(t, 2)
	if ids, recovered := sessions(t, dir); ids != "12" || recovered != "" || len(corrupt(t, dir)) != 0 {
		t.Fatalf("got %s, %q", ids, recovered)
	}
}

func TestDamaged(t *testing.T) {
	zero := func(data []byte, from, n int) []byte {
		data = bytes.Clone(data)
		clear(data[from : from+n])
		return data
	}
	garbage := make([]byte, 100_000)
	for i := range garbage {
		garbage[i] = byte(rand.Uint32())
	}
	for _, c := range []struct {
		name    string
		backups int // sessions in them
		damage  func([]byte) []byte
		want    string
		says    string
	}{
		{"both heads gone", 2, func(b []byte) []byte { return zero(b, 0, 2*pageSize) }, "12", "The backup of"},
		{"both heads gone, older backup", 1, func(b []byte) []byte { return zero(b, 0, 2*pageSize) }, "1", "The backup of"},
		{"both heads gone, no backup", 0, func(b []byte) []byte { return zero(b, 0, 2*pageSize) }, "", "No good backup"},
		{"garbage", 2, func([]byte) []byte { return garbage }, "12", "The backup of"},
		{"a text", 0, func([]byte) []byte { return []byte("hello") }, "", "No good backup"},
		{"half", 1, func(b []byte) []byte { return b[:len(b)/2] }, "1", "The backup of"},
		{"empty", 2, func([]byte) []byte { return nil }, "12", "is empty"},
		{"empty, no backup", 0, func([]byte) []byte { return nil }, "", "with 2 sessions"},
		{"missing", 2, nil, "12", "is missing"},
		{"missing, no backup", 0, nil, "", "with 2 sessions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, file := filled(t, c.backups)
			if c.damage == nil {
				if err := os.Remove(filepath.Join(dir, fileName)); err != nil {
					t.Fatal(err)
				}
			} else {
				damage(t, dir, c.damage(file))
			}
			ids, recovered := sessions(t, dir)
			found := ids == c.want && strings.Contains(recovered, c.says)
			if c.name == "half" && !found {
				// Which pages the second half holds depends on when commits came: it may be free ones alone.
				found = ids == "12" && strings.Contains(recovered, "Everything but the last change")
			}
			if !found || !strings.Contains(recovered, dir) {
				t.Fatalf("got sessions %q, %q", ids, recovered)
			}
			bad := corrupt(t, dir)
			if c.damage == nil || len(c.damage(file)) == 0 {
				if len(bad) != 0 {
					t.Fatalf("got %v", bad)
				}
				return
			}
			if len(bad) != 1 || !strings.Contains(recovered, bad[0]) {
				t.Fatalf("got %v, %q", bad, recovered)
			}
			kept, err := os.ReadFile(bad[0])
			if err != nil || !bytes.Equal(kept, c.damage(file)) {
				t.Fatalf("the damaged file was changed (%v)", err)
			}
		})
	}
}

// One head that is gone, as after a power cut while it was written, costs at most the last change.
func TestOneHeadGone(t *testing.T) {
	for slot := range 2 {
		dir, file := filled(t, 0)
		bad := bytes.Clone(file)
		clear(bad[slot*pageSize : (slot+1)*pageSize])
		damage(t, dir, bad)
		if ids, recovered := sessions(t, dir); ids != "12" || !strings.Contains(recovered, "One of the two heads") {
			t.Fatalf("head %d: got %q, %q", slot, ids, recovered)
		}
	}
}

// A power cut may leave a head whose pages were not written: the state before is whole.
func TestLastChangeGone(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	record(t, s, "session-0001", small(true))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(filepath.Join(dir, fileName), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bolt.Tx) error { return tx.Bucket(bucketSettings).Put([]byte("x"), []byte(`{}`)) }); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, backupDir)); err != nil {
		t.Fatal(err)
	}
	damage(t, dir, append(after[:2*pageSize:2*pageSize], before[2*pageSize:]...)) // heads of one, pages of the other
	ids, recovered := sessions(t, dir)
	if ids != "1" || !strings.Contains(recovered, "Everything but the last change") || len(corrupt(t, dir)) != 1 {
		t.Fatalf("got %q, %q", ids, recovered)
	}
}

// However much of the file is missing, the store opens, says so, and has what the backup has.
func TestTruncatedAnywhere(t *testing.T) {
	dir, file := filled(t, 1)
	step := len(file)/40 + 1
	if testing.Short() {
		step *= 4
	}
	for cut := 0; cut < len(file); cut += step {
		damage(t, dir, file[:cut])
		ids, recovered := sessions(t, dir)
		whole := ids == "12" && recovered == "" // only free pages were cut off
		saved := strings.HasPrefix(ids, "1") && recovered != ""
		if !whole && !saved {
			t.Fatalf("cut at %d of %d: got %q, %q", cut, len(file), ids, recovered)
		}
	}
}

// Any page may be overwritten: the store opens and gives sessions, or says that one is damaged. It
// never panics and never invents.
func TestOverwrittenAnywhere(t *testing.T) {
	dir, file := filled(t, 1)
	intact := map[string]bool{}
	for page := range len(file) / pageSize {
		if testing.Short() && page%5 != 0 {
			continue
		}
		bad := bytes.Clone(file)
		for i := range 64 {
			bad[page*pageSize+64*i] ^= 0x5A
		}
		damage(t, dir, bad)
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatalf("page %d: %v", page, err)
		}
		list, err := s.Sessions()
		if err != nil {
			t.Fatalf("page %d: %v", page, err)
		}
		for _, sum := range list {
			session, err := s.Session(sum.ID)
			switch {
			case err == nil:
				if len(session.Exchanges) < 20 || session.Finish == nil && s.Recovered() == "" {
					t.Fatalf("page %d: %d requests", page, len(session.Exchanges))
				}
				intact[sum.ID] = true
			case !errors.Is(err, ErrDamaged):
				t.Fatalf("page %d: %v", page, err)
			}
		}
		if err := s.Close(); err != nil && !strings.Contains(err.Error(), "cannot") {
			t.Fatalf("page %d: %v", page, err)
		}
	}
	if len(intact) == 0 {
		t.Fatal("nothing could ever be read")
	}
}

func TestDamagedBackupIsPassedOver(t *testing.T) {
	dir, _ := filled(t, 2)
	s := &Store{dir: dir}
	names := s.backupFiles()
	if len(names) != 2 {
		t.Fatalf("got %v", names)
	}
	if err := os.Truncate(names[1], 10_000); err != nil {
		t.Fatal(err)
	}
	damage(t, dir, []byte("garbage"))
	if ids, recovered := sessions(t, dir); ids != "1" || !strings.Contains(recovered, "The backup of") {
		t.Fatalf("got %q, %q", ids, recovered)
	}
}

func TestBackupsAreRotated(t *testing.T) {
	dir := t.TempDir()
	clock := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for n := range 5 {
		clock = clock.Add(time.Hour)
		s, err := Open(dir, Options{Now: func() time.Time { return clock }})
		if err != nil {
			t.Fatal(err)
		}
		record(t, s, fmt.Sprintf("session-%04d", n), small(false))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.BackupError(); err != nil {
			t.Fatal(err)
		}
	}
	names := (&Store{dir: dir}).backupFiles()
	if len(names) != keepBackups || !strings.Contains(names[0], "T150000") || !strings.Contains(names[2], "T170000") {
		t.Fatalf("got %v", names)
	}
	// A start that stores nothing makes none.
	s := open(t, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if again := s.backupFiles(); newest(again) != names[2] {
		t.Fatalf("got %v", again)
	}
}

func TestMigration(t *testing.T) {
	dir, _ := filled(t, 0)
	known := len(migrations)
	two := append(slices.Clone(migrations), func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("more"))
		return err
	})
	s, err := Open(dir, Options{migrations: two})
	if err != nil {
		t.Fatal(err)
	}
	err = s.view(func(tx *bolt.Tx) error {
		if schemaOf(tx) != known+1 || tx.Bucket([]byte("more")) == nil {
			return errors.New("not migrated")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	copies, _ := filepath.Glob(filepath.Join(dir, backupDir, fmt.Sprintf("before-schema-%d-*.db", known+1)))
	if len(copies) != 1 {
		t.Fatalf("got copies %v", copies)
	}
	// A program that knows less refuses, and changes nothing.
	before, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir, Options{})
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), fmt.Sprintf("schema %d, this one knows %d", known+1, known)) {
		t.Fatalf("got %v", err)
	}
	after, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil || !bytes.Equal(before, after) || len(corrupt(t, dir)) != 0 {
		t.Fatalf("the refused database was changed (%v)", err)
	}
	// A migration that fails leaves the schema before it.
	three := append(slices.Clone(two), func(tx *bolt.Tx) error {
		if err := tx.DeleteBucket([]byte("more")); err != nil {
			return err
		}
		return errors.New("no")
	})
	if _, err := Open(dir, Options{migrations: three}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("from schema %d to %d: no", known+1, known+2)) {
		t.Fatalf("got %v", err)
	}
	s, err = Open(dir, Options{migrations: two})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if list, err := s.Sessions(); err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
}

// What is half done when the program ends is not there afterwards.
func TestUnfinishedImportGoes(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	record(t, s, "session-0001", small(true))
	in := &incoming{s: s}
	if err := in.add(sample.Header("session-0002")); err != nil {
		t.Fatal(err)
	}
	if err := in.flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	err := again.view(func(tx *bolt.Tx) error {
		if tx.Bucket(bucketBlocks).Bucket([]byte("session-0002")) != nil {
			return errors.New("it is still there")
		}
		if tx.Bucket(bucketBlocks).Bucket([]byte("session-0001")) == nil {
			return errors.New("too much was deleted")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Space that deleted sessions leave is used again, and given back when it is most of the file.
func TestCompact(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	record(t, s, "session-0001", small(true))
	fill := func() {
		err := s.update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("filling"))
			for i := range 40 {
				if err == nil {
					err = b.Put(binary.BigEndian.AppendUint32(nil, uint32(i)), make([]byte, 1<<20))
				}
			}
			return err
		})
		if err == nil {
			err = s.update(func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("filling")) })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fill()
	large := s.Size()
	fill()
	if s.Size() > large+large/2 {
		t.Fatalf("the file grew from %d to %d", large, s.Size())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	if again.Size() > compactFrom/4 || again.Recovered() != "" {
		t.Fatalf("the file has %d bytes, it had %d", again.Size(), large)
	}
	if _, err := again.Session("session-0001"); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefusesWhatIsNoFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file, Options{}); err == nil || !strings.Contains(err.Error(), "VELO_DATA") {
		t.Fatalf("got %v", err)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, fileName, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Fatalf("got %v", err)
	}
}
