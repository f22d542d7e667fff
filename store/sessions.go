package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	bolt "go.etcd.io/bbolt"

	"velo/bench"
	"velo/store/block"
)

// Sessions lists all sessions, newest first. One whose summary is damaged has nothing but its
// identity and StateDamaged; its events may be whole.
func (s *Store) Sessions() ([]Summary, error) {
	var list []Summary
	err := s.view(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketSessions).ForEach(func(id, v []byte) error {
			var sum Summary
			if json.Unmarshal(v, &sum) != nil || sum.ID != string(id) {
				sum = Summary{ID: string(id), State: StateDamaged}
			}
			list = append(list, sum)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	for i := range list {
		s.settleState(&list[i])
	}
	slices.SortFunc(list, func(a, b Summary) int {
		return cmp.Or(b.Began.Compare(a.Began), cmp.Compare(b.ID, a.ID))
	})
	return list, nil
}

// Summary is one session's line of the list. A unique beginning of the identity is enough.
func (s *Store) Summary(id string) (sum Summary, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		key, err := find(tx, id)
		if err != nil {
			return err
		}
		sum, _, err = getSummary(tx, key)
		return err
	})
	s.settleState(&sum)
	return sum, err
}

// settleState tells a session that nobody records any more from one that goes on.
func (s *Store) settleState(sum *Summary) {
	if sum.State == StateRunning && s.recorder(sum.ID) == nil {
		sum.State = StateCutOff
	}
}

func (s *Store) recorder(id string) *Recorder {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recorders[id]
}

// find returns the whole identity of the session that id is the beginning of.
func find(tx *bolt.Tx, id string) ([]byte, error) {
	if id == "" {
		return nil, errors.New("cannot find a session without an identity; velo sessions lists them")
	}
	c := tx.Bucket(bucketSessions).Cursor()
	first, _ := c.Seek([]byte(id))
	if !bytes.HasPrefix(first, []byte(id)) {
		return nil, fmt.Errorf("cannot find the session %q: %w; velo sessions lists those that there are", id, ErrNotFound)
	}
	first = bytes.Clone(first)
	if string(first) == id {
		return first, nil
	}
	if second, _ := c.Next(); bytes.HasPrefix(second, []byte(id)) {
		return nil, fmt.Errorf("cannot tell which session %q is: %w, %s and %s at least; give more of it", id, ErrAmbiguous, first, second)
	}
	return first, nil
}

// Session reads a session's events. A unique beginning of the identity is enough. Of a session that
// is being recorded it gives what was written so far. The title is the user's.
func (s *Store) Session(id string) (*bench.Session, error) {
	var data, key []byte
	var sum Summary
	var unknown error // of the summary
	err := s.view(func(tx *bolt.Tx) (err error) {
		if key, err = find(tx, id); err != nil {
			return err
		}
		sum, _, unknown = getSummary(tx, key)
		// A copy, so that the transaction is short: while it is open, nothing that is deleted can
		// be used again.
		data = append(pieces(tx, bucketBlocks, key), pieces(tx, bucketLive, key)...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	session := &bench.Session{}
	var c check
	err = decodeFrames(data, func(e bench.Event) error {
		if err := c.add(e); err != nil {
			return err
		}
		session.Append(e)
		return nil
	})
	if err == nil && c.header == nil {
		err = fmt.Errorf("%w: it has no header", ErrDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the session %s: %w", key, err)
	}
	if unknown == nil {
		session.Header.Title = sum.Title
	}
	return session, nil
}

// pieces copies what a session has in one of the buckets, put together.
func pieces(tx *bolt.Tx, bucket, id []byte) (data []byte) {
	if b := tx.Bucket(bucket).Bucket(id); b != nil {
		_ = b.ForEach(func(_, v []byte) error { // cannot fail: the function does not
			data = append(data, v...)
			return nil
		})
	}
	return data
}

// decodeFrames gives the events of frames to emit.
func decodeFrames(data []byte, emit func(bench.Event) error) error {
	r := bytes.NewReader(data)
	for {
		at := r.Size() - int64(r.Len())
		body, err := block.ReadFrame(r)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = block.Decode(body, emit)
		}
		if errors.Is(err, block.ErrDamaged) || errors.Is(err, block.ErrTorn) {
			return fmt.Errorf("%w at byte %d: %w", ErrDamaged, at, err)
		}
		if err != nil {
			return err
		}
	}
}

// Delete removes a session and its events for good. The space is used for later sessions; the file
// gets smaller at a later start, when most of it is free.
func (s *Store) Delete(id string) error {
	return s.changeSession(id, "delete", func(tx *bolt.Tx, key []byte) error {
		if s.recorder(string(key)) != nil {
			return fmt.Errorf("cannot delete the session %s: %w; stop it first", key, ErrRunning)
		}
		return remove(tx, key)
	})
}

func remove(tx *bolt.Tx, id []byte) error {
	for _, name := range [][]byte{bucketBlocks, bucketLive} {
		if err := removeBucket(tx, name, id); err != nil {
			return err
		}
	}
	return tx.Bucket(bucketSessions).Delete(id)
}

// Rename gives a session another title, which Session, Export and the list have from then on.
func (s *Store) Rename(id, title string) error {
	return s.changeSummary(id, "rename", func(sum *Summary) { sum.Title = title })
}

// SetSummaryMetrics replaces the headline numbers of a session. Numbers that are not finite are left
// out: they have no place in a list.
func (s *Store) SetSummaryMetrics(id string, metrics map[string]float64) error {
	return s.changeSummary(id, "set the metrics of", func(sum *Summary) {
		sum.Metrics = map[string]float64{}
		for name, v := range metrics {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				sum.Metrics[name] = v
			}
		}
	})
}

// SetSummaryTokens says how many tokens the measured requests have as the caller counts them, and
// in the caller's words who counted them: a report's count is exact where the store had chunks alone.
func (s *Store) SetSummaryTokens(id string, tokens int, source string) error {
	return s.changeSummary(id, "set the tokens of", func(sum *Summary) { sum.Tokens, sum.Source = tokens, source })
}

func (s *Store) changeSummary(id, verb string, change func(*Summary)) error {
	return s.changeSession(id, verb, func(tx *bolt.Tx, key []byte) error {
		sum, _, err := getSummary(tx, key)
		if err != nil {
			return err
		}
		change(&sum)
		return putJSON(tx.Bucket(bucketSessions), string(key), &sum)
	})
}

func (s *Store) changeSession(id, verb string, change func(tx *bolt.Tx, key []byte) error) error {
	own := false // the error is a sentence already
	err := s.update(func(tx *bolt.Tx) error {
		key, err := find(tx, id)
		if err != nil {
			own = true
			return err
		}
		err = change(tx, key)
		own = errors.Is(err, ErrRunning)
		return err
	})
	if err != nil && !own {
		return fmt.Errorf("cannot %s the session %s: %w", verb, id, err)
	}
	return err
}
