package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Backup is a checked copy of the database, in the folder backups.
type Backup struct {
	Name  string // of the file
	Path  string
	Made  time.Time
	Bytes int64
	Why   string // BackupRolling, BackupAsked, BackupUpdate or BackupRestore
}

// Why a backup was made.
const (
	BackupRolling = "by itself" // the newest three are kept
	BackupAsked   = "asked for" // kept until it is deleted, as are the following
	BackupUpdate  = "before an update"
	BackupRestore = "before a restore"
)

const (
	askedPrefix   = "asked-"
	restorePrefix = "before-restore-"
	updatePrefix  = "before-schema-"

	restoreName = "velo.restore" // asks for a backup to be restored at the next start
)

// reasons are the beginnings of the files' names.
var reasons = []struct{ prefix, why string }{
	{backupPrefix, BackupRolling}, {askedPrefix, BackupAsked}, {restorePrefix, BackupRestore}, {updatePrefix, BackupUpdate},
}

// Backups lists the backups, newest first.
func (s *Store) Backups() ([]Backup, error) {
	dir := filepath.Join(s.dir, backupDir)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot list the backups: %w", err)
	}
	var list []Backup
	for _, e := range entries {
		b := Backup{Name: e.Name(), Path: filepath.Join(dir, e.Name()), Why: whyMade(e.Name())}
		info, err := e.Info()
		if b.Why == "" || err != nil || !info.Mode().IsRegular() {
			continue
		}
		b.Bytes, b.Made = info.Size(), info.ModTime()
		if at, ok := timeOf(b.Name); ok {
			b.Made = at
		}
		list = append(list, b)
	}
	slices.SortStableFunc(list, func(a, b Backup) int { return b.Made.Compare(a.Made) })
	return list, nil
}

// whyMade tells why a file of the folder was made; empty = it is no backup.
func whyMade(name string) string {
	if filepath.Ext(name) != ".db" || filepath.Base(name) != name {
		return ""
	}
	for _, r := range reasons {
		if strings.HasPrefix(name, r.prefix) {
			return r.why
		}
	}
	return ""
}

// timeOf reads the moment in a backup's name.
func timeOf(name string) (time.Time, bool) {
	stamp := strings.TrimSuffix(name, ".db")
	if len(stamp) < len(timeInName) {
		return time.Time{}, false
	}
	at, err := time.Parse(timeInName, stamp[len(stamp)-len(timeInName):])
	return at, err == nil
}

// madeAt is that moment in words.
func madeAt(name string) string {
	if at, ok := timeOf(name); ok {
		return at.Local().Format("2 January 2006, 15:04")
	}
	return name
}

// MakeBackup makes a backup now, which is kept until it is deleted. A session that is being recorded is
// in it as far as it was written.
func (s *Store) MakeBackup() (Backup, error) {
	name := askedPrefix + s.options.Now().UTC().Format(timeInName) + ".db"
	path := filepath.Join(s.dir, backupDir, name)
	if err := s.copyTo(path); err != nil {
		return Backup{}, fmt.Errorf("cannot make a backup of the database in %s: %w", filepath.Dir(path), err)
	}
	list, err := s.Backups()
	if err != nil {
		return Backup{}, err
	}
	for _, b := range list {
		if b.Name == name {
			return b, nil
		}
	}
	return Backup{}, fmt.Errorf("cannot find the backup %s, which was just made: %w", path, ErrNotFound)
}

// backupPath is where a backup of that name is.
func (s *Store) backupPath(name string) (string, error) {
	if whyMade(name) == "" {
		return "", fmt.Errorf("cannot use the backup %q: %w", name, ErrNotFound)
	}
	path := filepath.Join(s.dir, backupDir, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("cannot use the backup %s: %w", path, ErrNotFound)
	}
	return path, nil
}

// DeleteBackup removes a backup for good.
func (s *Store) DeleteBackup(name string) error {
	path, err := s.backupPath(name)
	if err != nil {
		return err
	}
	if s.Restoring() == name {
		return fmt.Errorf("cannot delete the backup %s: it is restored at the next start; take that back first", path)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("cannot delete the backup: %w", err)
	}
	return nil
}

// Restore has a backup put in the place of the database at the next start: nobody has it open then.
// What is in the database by then is kept as a backup of its own. The backup is checked now, and again
// then.
func (s *Store) Restore(name string) error {
	path, err := s.backupPath(name)
	if err != nil {
		return err
	}
	if _, err := checkFile(path); err != nil {
		return fmt.Errorf("cannot restore the backup %s: %w", path, err)
	}
	if err := replaceFile(filepath.Join(s.dir, restoreName), []byte(name), 0o600); err != nil {
		return fmt.Errorf("cannot ask for the backup to be restored: %w", err)
	}
	return nil
}

// Restoring is the name of the backup that is restored at the next start; empty = none.
func (s *Store) Restoring() string {
	b, err := os.ReadFile(filepath.Join(s.dir, restoreName))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// CancelRestore takes Restore back.
func (s *Store) CancelRestore() error {
	if err := os.Remove(filepath.Join(s.dir, restoreName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot take back the restore: %w", err)
	}
	return nil
}

// restoreAsked does what Restore asked for, before the database is opened, and returns a sentence about
// it; empty = nothing was asked. A backup that cannot be restored leaves everything as it is, and is
// not tried again.
func (s *Store) restoreAsked() (said string, err error) {
	name := s.Restoring()
	if name == "" {
		return "", nil
	}
	said = s.replaceBy(name)
	return said, s.CancelRestore()
}

func (s *Store) replaceBy(name string) (said string) {
	refuse := func(err error) string {
		return fmt.Sprintf("The backup %s was not restored (%v): the database is as it was.", name, err)
	}
	path, err := s.backupPath(name)
	if err == nil {
		_, err = checkFile(path)
	}
	if err != nil {
		return refuse(err)
	}
	kept := filepath.Join(s.dir, backupDir, restorePrefix+s.options.Now().UTC().Format(timeInName)+".db")
	switch err := duplicate(s.path(), kept); {
	case errors.Is(err, os.ErrNotExist):
		kept = ""
	case err != nil:
		return refuse(err)
	}
	f, err := os.Open(path)
	if err != nil {
		return refuse(err)
	}
	defer f.Close()
	if err := s.install(f, nil); err != nil {
		return refuse(err)
	}
	said = fmt.Sprintf("The backup of %s was restored.", madeAt(name))
	if kept != "" {
		said += fmt.Sprintf(" What was there before is kept as %s.", kept)
	}
	return said
}

// duplicate copies a file and waits for the disk; at any time the whole copy is there, or none.
func duplicate(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	tmp := to + ".tmp"
	out, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	if e := out.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(tmp, to)
	}
	if err != nil {
		_ = os.Remove(tmp)
		return err
	}
	syncDir(filepath.Dir(to))
	return nil
}
