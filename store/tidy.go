package store

import (
	"bytes"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"velo/store/block"
)

// tidy brings into order what a process that was killed left behind: sessions that were being
// recorded get their final form and are cut off from now on, imports that were not finished go.
func (s *Store) tidy() error {
	var cut, orphans [][]byte
	err := s.view(func(tx *bolt.Tx) error {
		sessions := tx.Bucket(bucketSessions)
		for _, name := range [][]byte{bucketBlocks, bucketLive} {
			err := tx.Bucket(name).ForEachBucket(func(id []byte) error {
				if sessions.Get(id) == nil {
					orphans = append(orphans, bytes.Clone(id))
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return sessions.ForEach(func(id, _ []byte) error {
			sum, _, err := getSummary(tx, id)
			if err == nil && sum.State == StateRunning {
				cut = append(cut, bytes.Clone(id))
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	for _, id := range orphans {
		if err := s.update(func(tx *bolt.Tx) error { return remove(tx, id) }); err != nil {
			return fmt.Errorf("cannot delete the unfinished import %s: %w", id, err)
		}
	}
	for _, id := range cut {
		if err := s.endCutOff(id); err != nil {
			return fmt.Errorf("cannot end the session %s, which was cut off: %w", id, err)
		}
	}
	return nil
}

// endCutOff replaces the small blocks of a session by large ones and marks it as cut off. Small
// blocks that cannot be read stay as they are: Session says what is wrong with them.
func (s *Store) endCutOff(id []byte) error {
	var small []byte
	t := newTables(s, string(id))
	var sum Summary
	err := s.view(func(tx *bolt.Tx) (err error) {
		if sum, _, err = getSummary(tx, id); err != nil {
			return err
		}
		if b := tx.Bucket(bucketBlocks).Bucket(id); b != nil {
			t.next = nextKey(b)
			t.large = int64(len(pieces(tx, bucketBlocks, id)))
		}
		small = pieces(tx, bucketLive, id)
		return nil
	})
	if err != nil {
		return err
	}
	sum.State = StateCutOff
	if decodeFrames(small, t.window.Add) != nil {
		return s.update(func(tx *bolt.Tx) error { return putSummary(tx, sum) })
	}
	return t.seal(&block.Batch{}, sum)
}
