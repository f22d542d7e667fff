package store

import (
	"encoding/binary"
	"fmt"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// The buckets of the schema; docs/store.md says what is in them.
var (
	bucketMeta      = []byte("meta")
	bucketSessions  = []byte("sessions")
	bucketBlocks    = []byte("blocks")
	bucketLive      = []byte("live")
	bucketEndpoints = []byte("endpoints")
	bucketSuites    = []byte("suites")
	bucketSettings  = []byte("settings")
	bucketChats     = []byte("chats") // from schema 2 on

	keySchema  = []byte("schema")
	keyVersion = []byte("version") // of the program that wrote last
)

// A migration leads from one schema to the next, within one transaction.
type migration func(*bolt.Tx) error

// migrations lead from nothing to the schema of this program, whose number is how many there are.
// A released one is never changed: what changes is a new one at the end.
var migrations = []migration{
	createBuckets,
	createChats,
}

func createBuckets(tx *bolt.Tx) error {
	for _, name := range [][]byte{bucketSessions, bucketBlocks, bucketLive, bucketEndpoints, bucketSuites, bucketSettings} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	return nil
}

// schemaOf reads the number of the schema; 0 = a new database.
func schemaOf(tx *bolt.Tx) int {
	b := tx.Bucket(bucketMeta)
	if b == nil {
		return 0
	}
	v := b.Get(keySchema)
	if len(v) != 4 {
		return 0
	}
	return int(binary.BigEndian.Uint32(v))
}

// migrate brings the open database to the schema of this program, after a copy of a database that
// has something in it.
func (s *Store) migrate() error {
	from, to := 0, len(s.options.migrations)
	if err := s.view(func(tx *bolt.Tx) error { from = schemaOf(tx); return nil }); err != nil {
		return err
	}
	if from > to {
		return fmt.Errorf("cannot open the database %s: %w (schema %d, this one knows %d); update Velo, or choose another folder with VELO_DATA", s.path(), ErrNewer, from, to)
	}
	if from > 0 && from < to {
		name := fmt.Sprintf("before-schema-%d-%s.db", from+1, s.options.Now().UTC().Format(timeInName))
		if err := s.copyTo(filepath.Join(s.dir, backupDir, name)); err != nil {
			return fmt.Errorf("cannot update the database %s: no copy of it could be made first: %w", s.path(), err)
		}
	}
	for n := from; n < to; n++ {
		err := s.update(func(tx *bolt.Tx) error {
			if err := s.options.migrations[n](tx); err != nil {
				return err
			}
			b, err := tx.CreateBucketIfNotExists(bucketMeta)
			if err != nil {
				return err
			}
			return b.Put(keySchema, binary.BigEndian.AppendUint32(nil, uint32(n+1)))
		})
		if err != nil {
			return fmt.Errorf("cannot update the database %s from schema %d to %d: %w; nothing was changed", s.path(), n, n+1, err)
		}
	}
	return s.update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketMeta)
		if string(b.Get(keyVersion)) == s.options.Version {
			return nil
		}
		return b.Put(keyVersion, []byte(s.options.Version))
	})
}
