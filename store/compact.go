package store

import (
	"errors"
	"fmt"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"

	"velo/store/pages"
)

// wasteful tells whether so much of the file is free that copying it is worth it.
func wasteful(u pages.Usage) bool {
	return int64(u.Pages)*u.PageSize > compactFrom && u.Free*2 > u.Pages
}

// compactFrom is the size under which free space is not worth a copy.
const compactFrom = 32 << 20

// compact copies what is used into a new file. It is called before the database is opened.
func (s *Store) compact() error {
	tmp := s.path() + ".tmp"
	err := compactFile(s.path(), tmp)
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

func compactFile(from, to string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	src, err := bolt.Open(from, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	dst, err := bolt.Open(to, 0o600, &bolt.Options{Timeout: time.Second, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	return bolt.Compact(dst, src, 1<<20)
}
