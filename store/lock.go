package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A lockFile is held by the one process that uses a data folder. It is apart from the database, so
// that the database can be replaced while it is held, and the system lets it go when the process
// ends, however it ends. Its content is the process's number.
type lockFile struct{ f *os.File }

// errLocked is what lockNow gives when another process, or another open file, has the lock.
var errLocked = errors.New("locked")

// acquire takes the lock within the time given.
func acquire(path string, wait time.Duration) (*lockFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the data folder: %w", err)
	}
	for end := time.Now().Add(wait); ; time.Sleep(20 * time.Millisecond) {
		if err = lockNow(f); err == nil {
			break
		}
		if !errors.Is(err, errLocked) || time.Now().After(end) {
			defer f.Close()
			if !errors.Is(err, errLocked) {
				return nil, fmt.Errorf("cannot lock %s: %w", path, err)
			}
			return nil, fmt.Errorf("cannot open the data folder %s: %w%s; close it, or choose another folder with VELO_DATA", filepath.Dir(path), ErrBusy, holder(f))
		}
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &lockFile{f}, nil
}

// holder names the process that has the lock, where it said so.
func holder(f *os.File) string {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 32))
	if err != nil {
		return ""
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid <= 0 {
		return ""
	}
	return fmt.Sprintf(" (number %d)", pid)
}

func (l *lockFile) release() {
	_ = l.f.Truncate(0)
	_ = l.f.Close()
}
