package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// InboxPath is where a session is recorded with Create while another process has the database of
// dir. That process, or the next one that opens the database, imports it.
func InboxPath(dir, id string) string { return filepath.Join(dir, inboxDir, id+Extension) }

// Inbox is the folder of session files that wait to be imported.
func (s *Store) Inbox() string { return filepath.Join(s.dir, inboxDir) }

func (s *Store) inInbox(path string) bool {
	abs, err := filepath.Abs(path)
	return err == nil && filepath.Dir(abs) == s.Inbox()
}

// ImportInbox imports the session files in the inbox and deletes them, except those that are still
// being written. A file that cannot be read is renamed, so that it is not tried again, and its error
// joined to the others; the rest is imported all the same.
func (s *Store) ImportInbox() ([]Summary, error) {
	entries, err := os.ReadDir(s.Inbox()) // in order of the names, which is that of time
	if err != nil {
		return nil, fmt.Errorf("cannot look into the inbox: %w", err)
	}
	var list []Summary
	var errs []error
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != Extension || !entry.Type().IsRegular() {
			continue
		}
		name := filepath.Join(s.Inbox(), entry.Name())
		busy, err := beingWritten(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot import a session: %w", err))
			continue
		}
		if busy {
			continue
		}
		sum, err := s.ImportFile(name)
		switch {
		case err == nil:
			list = append(list, sum)
		case errors.Is(err, ErrClosed):
			return list, err
		default:
			bad := name + ".rejected"
			if e := os.Rename(name, bad); e == nil {
				err = fmt.Errorf("%w; the file is kept as %s", err, bad)
			}
			errs = append(errs, err)
		}
	}
	return list, errors.Join(errs...)
}

// beingWritten tells whether a process has the file locked, as Create does.
func beingWritten(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = lockNow(f)
	if errors.Is(err, errLocked) {
		return true, nil
	}
	return false, err
}
