// Package store keeps what must outlive the program: measured sessions with their raw events, and
// the user's endpoints, suites and settings, in one bbolt database; keys in the system's keyring.
//
// A session can be written while it is measured (Record), at most CommitInterval behind. Its events
// come back as a bench.Session; nothing that can be computed from them is stored, except a few
// headline numbers for the list. One session travels as one .velo file (Export, Import), and the
// same kind of file takes the events of a measurement while another process has the database
// (Create, then Inbox). docs/store.md describes the files byte by byte, what can be lost when, and
// how a damaged database is put right.
package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

// What callers tell apart with errors.Is. The errors themselves are whole sentences.
var (
	ErrBusy      = errors.New("the database is in use by another process")
	ErrNewer     = errors.New("it was written by a newer Velo")
	ErrNotFound  = errors.New("not found")
	ErrAmbiguous = errors.New("more than one matches")
	ErrRunning   = errors.New("it is being recorded")
	ErrDamaged   = errors.New("it is damaged")
	ErrClosed    = errors.New("the store is closed")
	ErrExists    = errors.New("it exists already")
)

const (
	fileName  = "velo.db"
	lockName  = "velo.lock"
	stateName = "velo.state"
	backupDir = "backups"
	inboxDir  = "inbox"
)

// Options of Open. The zero value is right for the program.
type Options struct {
	Version string           // of this program, noted in the database
	Now     func() time.Time // the clock; nil = time.Now
	Wait    time.Duration    // how long another process may hold the database before ErrBusy; 0 = 1 s
	MaxSize int              // of the database file, in bytes; 0 = as large as the disk allows

	migrations []migration // nil = those of this program
}

// Store is an open database. All methods may be called from any goroutine; those that write wait
// for the disk, so none of them belongs on the goroutine that draws.
type Store struct {
	dir       string
	options   Options
	lock      *lockFile
	db        *bolt.DB
	recovered string

	mu        sync.Mutex
	recorders map[string]*Recorder
	closed    bool
	backupErr error

	recording sync.Mutex // sessions begin one after the other
	importing sync.Mutex // imports come one after the other
	recent    sync.Mutex // changes of the recent files too
	backups   *backups
}

// DefaultDir is where the program keeps its data: $VELO_DATA, else where the data was moved to (Move),
// else the folder velo in the system's place for a user's data ($XDG_DATA_HOME or ~/.local/share;
// Library/Application Support; %LocalAppData%).
func DefaultDir() string {
	if dir := os.Getenv("VELO_DATA"); dir != "" {
		return dir
	}
	return moved(usualDir())
}

func usualDir() string {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "velo")
	}
	if runtime.GOOS == "windows" {
		if dir := os.Getenv("LocalAppData"); dir != "" {
			return filepath.Join(dir, "velo")
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), fmt.Sprintf("velo-%d", os.Getuid()))
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "velo")
	}
	return filepath.Join(home, ".local", "share", "velo")
}

// Open opens the database in dir and makes it where there is none. A file that is damaged is moved
// aside and replaced by the newest good state there is; Recovered then says so. ErrBusy means that
// another process has it (a window that is open: see package handoff), ErrNewer that a newer program
// wrote it; neither changes anything.
func Open(dir string, o Options) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open the data folder %s: %w", dir, err)
	}
	if err := gone(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, inboxDir), 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the data folder %s: %w; choose another one with VELO_DATA", dir, err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == 0 {
		o.Wait = time.Second
	}
	if o.migrations == nil {
		o.migrations = migrations
	}
	lock, err := acquire(filepath.Join(dir, lockName), o.Wait)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, options: o, lock: lock, recorders: map[string]*Recorder{}}
	if err := s.start(); err != nil {
		if s.db != nil {
			_ = s.db.Close()
		}
		lock.release()
		return nil, err
	}
	s.backups = startBackups(s)
	return s, nil
}

// start brings the file into order and opens it.
func (s *Store) start() error {
	if err := s.recover(); err != nil {
		return err
	}
	if err := s.migrate(); err != nil {
		return err
	}
	if err := s.tidy(); err != nil {
		return err
	}
	return s.writeState()
}

// Close ends recordings that still go on (they become sessions without a finish), makes the backup
// that is due and closes the database. It may be called twice.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	running := make([]*Recorder, 0, len(s.recorders))
	for _, r := range s.recorders {
		running = append(running, r)
	}
	s.mu.Unlock()
	var errs []error
	for _, r := range running {
		errs = append(errs, r.Close())
	}
	s.backups.stop()
	errs = append(errs, s.writeState())
	if err := s.db.Close(); err != nil {
		errs = append(errs, fmt.Errorf("cannot close the database %s: %w", s.path(), err))
	}
	s.lock.release()
	return errors.Join(errs...)
}

// Dir is the data folder.
func (s *Store) Dir() string { return s.dir }

// Size is that of the database file, in bytes.
func (s *Store) Size() int64 {
	info, err := os.Stat(s.path())
	if err != nil {
		return 0
	}
	return info.Size()
}

// Recovered is empty, or sentences for the user about a damaged database: what was damaged, where
// the bad file lies, what was restored.
func (s *Store) Recovered() string { return s.recovered }

func (s *Store) path() string { return filepath.Join(s.dir, fileName) }

func (s *Store) view(fn func(*bolt.Tx) error) (err error) {
	defer s.guard(&err)()
	return s.db.View(fn)
}

func (s *Store) update(fn func(*bolt.Tx) error) (err error) {
	defer s.guard(&err)()
	return s.db.Update(fn)
}

// guard turns what a damaged file does to bbolt (a panic, a fault in mapped memory) into an error.
func (s *Store) guard(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			*err = fmt.Errorf("cannot use the database %s: %w (%v); it is checked and put right when Velo starts again", s.path(), ErrDamaged, p)
		}
		if errors.Is(*err, bolt.ErrDatabaseNotOpen) {
			*err = ErrClosed
		}
	}
}
