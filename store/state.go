package store

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// state is what is remembered beside the database, to notice that it was lost (a missing or empty
// file would otherwise look like a first start).
type state struct {
	Sessions int `json:"sessions"` // that were in it when this was written
}

// readState never fails: an unreadable note is as good as none.
func readState(dir string) (s state) {
	b, err := os.ReadFile(filepath.Join(dir, stateName))
	if err != nil || json.Unmarshal(b, &s) != nil {
		return state{}
	}
	return s
}

func (s *Store) writeState() error {
	n := 0
	err := s.view(func(tx *bolt.Tx) error {
		n = tx.Bucket(bucketSessions).Stats().KeyN
		return nil
	})
	if err != nil {
		return err
	}
	b, err := json.Marshal(state{Sessions: n})
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(s.dir, stateName), b, 0o600); err != nil {
		return fmt.Errorf("cannot note the state of the database: %w", err)
	}
	return nil
}

// replaceFile writes a whole file so that at any time the old one or the new one is there.
func replaceFile(path string, data []byte, mode os.FileMode) error {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
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

// syncDir makes a rename last. Where a folder cannot be synced the system does it in its own time.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
