package store

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The data folder moves at a start, when nobody has the database open: everything is copied, each copy is
// compared with what it was made of, the database is checked, and only then the usual place says where
// the folder is from now on. The old folder stays as it was.

const (
	moveName  = "velo.move"  // in a data folder: the folder that it is to become at the next start
	movedName = "velo.moved" // in the usual place: where the data folder is
)

// moved is the data folder, which is the usual one as long as nobody chose another.
func moved(usual string) string {
	b, err := os.ReadFile(filepath.Join(usual, movedName))
	if err != nil {
		return usual
	}
	if to := strings.TrimSpace(string(b)); filepath.IsAbs(to) {
		return to
	}
	return usual
}

// gone says that the data folder was moved to a place that is not there now: on a disk that is not
// attached, say. An empty database in its place would look like a loss.
func gone(dir string) error {
	usual := usualDir()
	if os.Getenv("VELO_DATA") != "" || dir == usual || dir != moved(usual) {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, fileName)); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot find the data folder %s, where the data was moved to: attach its disk; or delete %s, and Velo begins anew in %s",
			dir, filepath.Join(usual, movedName), usual)
	}
	return nil
}

// Move has the data folder moved at the next start. It checks now what can be known now.
func (s *Store) Move(to string) error {
	refuse := func(why string, args ...any) error {
		return fmt.Errorf("cannot move the data folder to %q: %s", to, fmt.Sprintf(why, args...))
	}
	if os.Getenv("VELO_DATA") != "" {
		return refuse("the variable VELO_DATA names the folder; change it there")
	}
	if s.dir != DefaultDir() {
		return refuse("this window uses %s, which is not the usual place", s.dir)
	}
	if !filepath.IsAbs(to) {
		return refuse("write the whole path, from the root on")
	}
	to = filepath.Clean(to)
	if within(to, s.dir) || within(s.dir, to) {
		return refuse("one of the two folders would lie in the other")
	}
	if err := free(to); err != nil {
		return refuse("%v", err)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return refuse("the folder cannot be made: %v", err)
	}
	probe, err := os.CreateTemp(to, "velo-*.tmp")
	if err != nil {
		return refuse("nothing can be written there: %v", err)
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name())
	if err := replaceFile(filepath.Join(s.dir, moveName), []byte(to), 0o600); err != nil {
		return refuse("the wish cannot be noted: %v", err)
	}
	return nil
}

// Moving is where the data folder moves at the next start; empty = it stays.
func (s *Store) Moving() string { return movingTo(s.dir) }

func movingTo(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, moveName))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// CancelMove takes Move back.
func (s *Store) CancelMove() error { return cancelMove(s.dir) }

func cancelMove(dir string) error {
	if err := os.Remove(filepath.Join(dir, moveName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot take back the move of the data folder: %w", err)
	}
	return nil
}

// within tells whether a folder is another one or lies in it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// free tells whether a folder can take a database: it is not there, or holds nothing of one.
func free(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch e.Name() {
		case movedName, lockName:
		default:
			return fmt.Errorf("it is not empty: it holds %q; name a folder that is empty or not there yet", e.Name())
		}
	}
	return nil
}

// Settle does the move that was asked for, if one was, before the database is opened. It returns the
// data folder that counts from now on and a sentence for the user; where it fails, everything stays as
// it was. While another process has the database nothing happens.
func Settle(dir string) (now, said string) {
	to := movingTo(dir)
	if to == "" || dir != DefaultDir() || os.Getenv("VELO_DATA") != "" {
		return dir, ""
	}
	lock, err := acquire(filepath.Join(dir, lockName), time.Second)
	if err != nil {
		return dir, ""
	}
	defer lock.release()
	if err := moveTo(dir, to); err != nil {
		_ = cancelMove(dir)
		return dir, fmt.Sprintf("The data folder was not moved to %s (%v): it stays %s.", to, err, dir)
	}
	return to, fmt.Sprintf("The data folder is %s now. The old one, %s, is as it was; delete it when you like.", to, dir)
}

func moveTo(dir, to string) error {
	if err := free(to); err != nil {
		return err
	}
	var copied []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case e.IsDir():
			return os.MkdirAll(target, 0o700)
		case !e.Type().IsRegular(), e.Name() == lockName, e.Name() == moveName, e.Name() == movedName, filepath.Ext(e.Name()) == ".tmp":
			return nil
		}
		copied = append(copied, target)
		return copySame(path, target)
	})
	if err == nil {
		if _, err = checkFile(filepath.Join(to, fileName)); errors.Is(err, os.ErrNotExist) {
			err = errors.New("there is no database to move")
		}
	}
	if err == nil {
		err = point(to)
	}
	if err != nil {
		for _, path := range copied {
			_ = os.Remove(path)
		}
		return err
	}
	return cancelMove(dir)
}

// point notes in the usual place where the data folder is.
func point(to string) error {
	usual := usualDir()
	note := filepath.Join(usual, movedName)
	if to == usual {
		if err := os.Remove(note); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	if err := os.MkdirAll(usual, 0o700); err != nil {
		return err
	}
	return replaceFile(note, []byte(to), 0o600)
}

// copySame copies a file and reads the copy back.
func copySame(from, to string) error {
	if err := duplicate(from, to); err != nil {
		return err
	}
	a, err := sumOf(from)
	if err != nil {
		return err
	}
	b, err := sumOf(to)
	if err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return fmt.Errorf("the copy of %s is not like it", from)
	}
	return nil
}

func sumOf(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}
