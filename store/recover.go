package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"velo/store/pages"
)

// timeInName is how a moment stands in the name of a file: sortable, and allowed everywhere.
const timeInName = "20060102T150405.000Z"

// recover checks the file before bbolt sees it, puts right what is wrong and opens it. In this
// order: the file as it is; the file without its last transaction; the newest good backup; a new
// file. A damaged file is never opened again: it keeps lying beside the database for whoever wants
// to look at it.
func (s *Store) recover() error {
	s.removeLeftovers()
	asked, err := s.restoreAsked()
	if err != nil {
		return err
	}
	defer func() {
		if asked != "" {
			s.recovered = strings.TrimSpace(asked + " " + s.recovered)
		}
	}()
	was := readState(s.dir)
	found, err := checkFile(s.path())
	switch {
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, errEmpty):
		if err := s.replaceMissing(was, errors.Is(err, errEmpty)); err != nil {
			return err
		}
	case errors.Is(err, pages.ErrDamaged):
		if err := s.replaceDamaged(err); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("cannot open the database %s: %w", s.path(), err)
	case found.heads == 1:
		s.recovered = fmt.Sprintf("One of the two heads of the database %s was damaged and has been made anew. The last change may be missing.", s.path())
	case wasteful(found.Usage):
		_ = s.compact() // a file that could not be made smaller is still good
	}
	if s.db, err = s.openFile(); err == nil {
		if found.heads == 1 {
			return s.update(func(*bolt.Tx) error { return nil }) // each change writes the other head
		}
		return nil
	}
	if errors.Is(err, os.ErrPermission) || !errors.Is(err, ErrDamaged) {
		return fmt.Errorf("cannot open the database %s: %w", s.path(), err)
	}
	if err := s.replaceDamaged(err); err != nil {
		return err
	}
	if s.db, err = s.openFile(); err != nil {
		return fmt.Errorf("cannot open the database %s: %w", s.path(), err)
	}
	return nil
}

// openFile opens the database file, and makes one where there is none: under another name first, so
// that a half-made database never stands in its place.
func (s *Store) openFile() (*bolt.DB, error) {
	if _, err := os.Stat(s.path()); errors.Is(err, os.ErrNotExist) {
		tmp := s.path() + ".tmp"
		db, err := openBolt(tmp, s.options.MaxSize)
		if err != nil {
			return nil, err
		}
		if err := db.Close(); err != nil {
			return nil, err
		}
		if err := os.Rename(tmp, s.path()); err != nil {
			return nil, err
		}
		syncDir(s.dir)
	}
	return openBolt(s.path(), s.options.MaxSize)
}

var errEmpty = errors.New("the file is empty")

// finding is what a check of a file found.
type finding struct {
	pages.Usage
	heads int // valid ones: 2, unless one was written in part or overwritten
}

// checkFile walks over the pages of a database file that nobody has open.
func checkFile(path string) (finding, error) {
	f, err := os.Open(path)
	if err != nil {
		return finding{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return finding{}, err
	}
	if info.IsDir() {
		return finding{}, errors.New("it is a folder")
	}
	if info.Size() == 0 {
		return finding{}, errEmpty
	}
	p, err := pages.Open(f, info.Size())
	if err != nil {
		return finding{}, err
	}
	usage, err := p.Walk(p.Metas()[0])
	return finding{usage, len(p.Metas())}, err
}

// openBolt opens a file that was checked. What bbolt finds wrong all the same is ErrDamaged.
func openBolt(path string, maxSize int) (db *bolt.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			// bbolt keeps the file and its lock. A file put in its place is not affected.
			db, err = nil, fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	db, err = bolt.Open(path, 0o600, &bolt.Options{
		Timeout:         time.Second, // our own lock is held: only a program that does not know it can be in the way
		FreelistType:    bolt.FreelistMapType,
		PageSize:        pageSize,
		InitialMmapSize: initialMap(),
		MaxSize:         maxSize,
		NoStatistics:    true,
	})
	if err != nil {
		if errors.Is(err, bolt.ErrInvalid) || errors.Is(err, bolt.ErrChecksum) || errors.Is(err, bolt.ErrVersionMismatch) {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if errors.Is(err, bolt.ErrTimeout) {
			return nil, fmt.Errorf("%w, one that is not Velo; close it", ErrBusy)
		}
		return nil, err
	}
	db.AllocSize = allocSize
	return db, nil
}

// allocSize is how much the file grows at a time, in bytes. bbolt's own 16 MB would be most of the
// file of somebody who measures now and then.
const allocSize = 64 << 10

// pageSize is that of the database, in bytes, on every machine: some have memory pages of 64 KiB.
const pageSize = 4096

// initialMap is the address space taken at first, in bytes. A file that outgrows it is mapped again,
// for which a commit waits until nobody reads. On Windows the file itself would get this size.
func initialMap() int {
	if runtime.GOOS == "windows" {
		return 0
	}
	return 64 << 20
}

// replaceMissing makes a database where there is none: the newest good backup, or an empty one.
func (s *Store) replaceMissing(was state, empty bool) error {
	what := "is missing"
	if empty {
		what = "is empty"
		if err := os.Remove(s.path()); err != nil {
			return fmt.Errorf("cannot replace the empty database %s: %w", s.path(), err)
		}
	}
	restored, err := s.restore()
	if err != nil {
		return err
	}
	switch {
	case restored != "":
		s.recovered = fmt.Sprintf("The database %s %s although there was one. The backup of %s was restored; what was measured later is lost.", s.path(), what, restored)
	case was.Sessions > 0:
		s.recovered = fmt.Sprintf("The database %s %s although there was one with %s, and no backup of it was found. An empty one was made.", s.path(), what, count(was.Sessions, "session"))
	}
	return nil
}

// replaceDamaged moves the file aside and puts the best there is in its place.
func (s *Store) replaceDamaged(why error) error {
	bad := fmt.Sprintf("%s.corrupt-%s", s.path(), s.options.Now().UTC().Format(timeInName))
	for _, err := os.Lstat(bad); err == nil; _, err = os.Lstat(bad) {
		bad += "+"
	}
	if err := os.Rename(s.path(), bad); err != nil {
		return fmt.Errorf("cannot move the damaged database %s aside: %w (%v)", s.path(), err, why)
	}
	syncDir(s.dir)
	s.recovered = fmt.Sprintf("The database was damaged (%v). The damaged file is kept as %s. ", why, bad)
	if err := s.rollBack(bad); err == nil {
		s.recovered += "Everything but the last change was saved from it."
		return nil
	}
	restored, err := s.restore()
	if err != nil {
		return err
	}
	if restored != "" {
		s.recovered += fmt.Sprintf("The backup of %s was restored; what was measured later is lost.", restored)
	} else {
		s.recovered += "No good backup was found; an empty database was made."
	}
	return nil
}

// rollBack makes a database of a damaged file without its last transaction, if that is whole: the
// pages of a state are not written to before the state after the next one is there.
func (s *Store) rollBack(bad string) error {
	f, err := os.Open(bad)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	p, err := pages.Open(f, info.Size())
	if err != nil {
		return err
	}
	metas := p.Metas()
	if len(metas) < 2 {
		return pages.ErrDamaged
	}
	if _, err := p.Walk(metas[1]); err != nil {
		return err
	}
	return s.install(f, func(out *os.File) error {
		_, err := out.WriteAt(make([]byte, p.PageSize()), int64(metas[0].Slot)*p.PageSize())
		return err
	})
}

// install copies a file to where the database belongs, changed by fix if there is one, and checks it.
func (s *Store) install(from io.Reader, fix func(*os.File) error) error {
	tmp := s.path() + ".tmp"
	out, err := os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, from)
	if err == nil && fix != nil {
		err = fix(out)
	}
	if err == nil {
		err = out.Sync()
	}
	if e := out.Close(); err == nil {
		err = e
	}
	if err == nil {
		_, err = checkFile(tmp)
	}
	if err == nil {
		err = os.Rename(tmp, s.path())
	}
	if err != nil {
		_ = os.Remove(tmp)
		return err
	}
	syncDir(s.dir)
	return nil
}

// removeLeftovers deletes files that a crash left half written.
func (s *Store) removeLeftovers() {
	for _, dir := range []string{s.dir, filepath.Join(s.dir, backupDir), s.Inbox()} {
		entries, _ := os.ReadDir(dir) // a folder that is not there has no leftovers
		for _, e := range entries {
			name := filepath.Join(dir, e.Name())
			if filepath.Ext(name) != ".tmp" || !e.Type().IsRegular() {
				continue
			}
			if dir == s.Inbox() {
				if busy, _ := beingWritten(strings.TrimSuffix(name, ".tmp")); busy {
					continue
				}
			}
			_ = os.Remove(name)
		}
	}
}

// count says "1 session", "2 sessions".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
