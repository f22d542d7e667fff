package store

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

const (
	keepBackups  = 3
	backupPrefix = "velo-"

	// Of a file larger than largeFile a backup is made at most once in largeInterval while the
	// program runs (and once more when it ends).
	largeFile     = 256 << 20
	largeInterval = time.Hour
)

// backups makes copies in the background, one at a time, when no session is recorded.
type backups struct {
	s       *Store
	request chan struct{} // holds one
	done    chan struct{}
	last    time.Time // of the last copy

	mu      sync.Mutex
	due     bool // something has changed since
	stopped bool
}

func startBackups(s *Store) *backups {
	b := &backups{s: s, request: make(chan struct{}, 1), done: make(chan struct{})}
	go b.run()
	return b
}

func (b *backups) run() {
	defer close(b.done)
	for range b.request {
		b.s.mu.Lock()
		busy := len(b.s.recorders) > 0
		b.s.mu.Unlock()
		if busy || b.s.Size() > largeFile && b.s.options.Now().Sub(b.last) < largeInterval {
			continue // the end of the recording, or of the program, asks again
		}
		b.make()
	}
}

// ask says that something worth a backup was stored.
func (b *backups) ask() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.due = true
	if b.stopped {
		return
	}
	select {
	case b.request <- struct{}{}:
	default: // one is asked for already
	}
}

// stop ends the background work and makes the backup that is still due.
func (b *backups) stop() {
	b.mu.Lock()
	b.stopped = true
	close(b.request)
	b.mu.Unlock()
	<-b.done
	b.make()
}

func (b *backups) make() {
	b.mu.Lock()
	due := b.due
	b.due = false
	b.mu.Unlock()
	if !due {
		return
	}
	b.last = b.s.options.Now()
	err := b.s.backup(b.last)
	b.s.mu.Lock()
	b.s.backupErr = err
	b.s.mu.Unlock()
}

// BackupError is why the last backup could not be made, nil if it could.
func (s *Store) BackupError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.backupErr
}

// backup makes a checked copy and deletes the oldest ones beyond keepBackups.
func (s *Store) backup(at time.Time) error {
	path := filepath.Join(s.dir, backupDir, backupPrefix+at.UTC().Format(timeInName)+".db")
	if err := s.copyTo(path); err != nil {
		return fmt.Errorf("cannot make a backup of the database in %s: %w", filepath.Dir(path), err)
	}
	names := s.backupFiles()
	for len(names) > keepBackups {
		if err := os.Remove(names[0]); err != nil {
			return fmt.Errorf("cannot delete the old backup %s: %w", names[0], err)
		}
		names = names[1:]
	}
	return s.writeState()
}

// backupFiles returns the rolling backups, oldest first.
func (s *Store) backupFiles() (names []string) {
	entries, _ := os.ReadDir(filepath.Join(s.dir, backupDir)) // a folder that is not there has none
	for _, e := range entries {                               // in order of the names, which is that of time
		if strings.HasPrefix(e.Name(), backupPrefix) && filepath.Ext(e.Name()) == ".db" {
			names = append(names, filepath.Join(s.dir, backupDir, e.Name()))
		}
	}
	return names
}

// copyTo makes a consistent copy of the open database and checks it.
func (s *Store) copyTo(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp := path + ".tmp"
	err := s.view(func(tx *bolt.Tx) error { return tx.CopyFile(tmp, 0o600) })
	if err == nil {
		_, err = checkFile(tmp)
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
		return err
	}
	syncDir(filepath.Dir(path))
	return nil
}

// restore puts the newest good backup in the place of the database and returns when it was made;
// empty if there is none.
func (s *Store) restore() (when string, err error) {
	names := s.backupFiles()
	slices.Reverse(names)
	for _, name := range names {
		if _, err := checkFile(name); err != nil {
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		err = s.install(f, nil)
		_ = f.Close()
		if err != nil {
			return "", fmt.Errorf("cannot restore the backup %s: %w", name, err)
		}
		return madeAt(filepath.Base(name)), nil
	}
	return "", nil
}
