package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"

	"velo/bench"
	"velo/store/block"
)

// Record begins a session in the database. The header's identity must be new. The recorder must be
// closed; Close of the store does it too.
func (s *Store) Record(h *bench.Header) (*Recorder, error) {
	h, err := headerFor(h)
	if err != nil {
		return nil, err
	}
	s.recording.Lock()
	defer s.recording.Unlock()
	err = s.view(func(tx *bolt.Tx) error {
		if tx.Bucket(bucketSessions).Get([]byte(h.ID)) != nil {
			return fmt.Errorf("cannot record a session with the identity %s: %w", h.ID, ErrExists)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r, err := newRecorder(h, newTables(s, h.ID))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	closed := s.closed
	s.recorders[h.ID] = r
	s.mu.Unlock()
	if closed {
		return nil, errors.Join(ErrClosed, r.Close())
	}
	return r, nil
}

// tables writes one session into the database. What comes is put into the bucket live at once, in
// small blocks; when these make up a large one, or at the end, they are replaced by it, in the
// bucket blocks. So the file holds everything at any time and hardly anything twice, and what was
// compressed well is not touched again.
type tables struct {
	s  *Store
	id []byte

	window   *block.Batch // what is in the small blocks, and will be the next large one
	spare    *block.Batch // emptied, to be the next window
	settling *settling    // the large block that is being made; nil = none
	small    int64        // bytes of the small blocks
	large    int64        // bytes of the large ones
	nextLive uint64       // keys of the next pieces
	next     uint64
}

// settling is the making of a large block. It takes about a tenth of a second of one core, in which
// commits go on.
type settling struct {
	batch  *block.Batch
	before uint64        // the small blocks that it replaces have keys below
	bytes  int64         // of these
	done   chan struct{} // closed when the following are there
	frames [][]byte
	err    error
}

func newTables(s *Store, id string) *tables {
	return &tables{s: s, id: []byte(id), window: &block.Batch{}, spare: &block.Batch{}}
}

func (t *tables) commit(b *block.Batch, sum Summary) error {
	small, err := encode(b, block.Quick)
	if err != nil {
		return err
	}
	c := change{small: small}
	if t.settling != nil {
		select {
		case <-t.settling.done:
			c.settled = t.settling
		default:
		}
	}
	if err := t.apply(c, sum); err != nil {
		return err
	}
	t.window.AddBatch(b)
	b.Reset()
	if t.window.Full() && t.settling == nil {
		t.settle()
	}
	return nil
}

// settle begins to make a large block of the window.
func (t *tables) settle() {
	set := &settling{batch: t.window, before: t.nextLive, bytes: t.small, done: make(chan struct{})}
	t.settling, t.window, t.spare = set, t.spare, nil
	go func() {
		defer close(set.done)
		set.frames, set.err = encode(set.batch, block.Best)
	}()
}

func (t *tables) seal(b *block.Batch, sum Summary) error {
	t.window.AddBatch(b)
	b.Reset()
	last, err := encode(t.window, block.Best)
	if err != nil {
		return err
	}
	c := change{last: last, end: true}
	if t.settling != nil {
		<-t.settling.done
		c.settled = t.settling
	}
	if err := t.apply(c, sum); err != nil {
		return err
	}
	t.window.Reset()
	return nil
}

// change is what one transaction does.
type change struct {
	small   [][]byte  // blocks to add to live
	settled *settling // nil, or a large block that replaces small ones
	last    [][]byte  // large blocks to add after it
	end     bool      // nothing is left in live
}

func (t *tables) apply(c change, sum Summary) error {
	var large [][]byte
	left := t.small // bytes of the small blocks that stay
	if c.settled != nil {
		if c.settled.err != nil {
			return c.settled.err
		}
		large = c.settled.frames
		left -= c.settled.bytes
	}
	large = append(slices.Clip(large), c.last...)
	if c.end {
		left = 0
	}
	sum.Bytes = t.large + size(large) + left + size(c.small)
	next, nextLive := t.next, t.nextLive
	err := t.s.update(func(tx *bolt.Tx) (err error) {
		if next, err = putFrames(tx, bucketBlocks, t.id, t.next, large); err != nil {
			return err
		}
		if c.end {
			err = removeBucket(tx, bucketLive, t.id)
		} else if c.settled != nil {
			err = removePieces(tx, t.id, c.settled.before)
		}
		if err != nil {
			return err
		}
		if nextLive, err = putFrames(tx, bucketLive, t.id, t.nextLive, c.small); err != nil {
			return err
		}
		return putSummary(tx, sum)
	})
	if err != nil {
		return err
	}
	t.next, t.nextLive = next, nextLive
	t.large += size(large)
	t.small = left + size(c.small)
	if c.settled != nil {
		t.spare, t.settling = c.settled.batch, nil
		t.spare.Reset()
	}
	return nil
}

// removePieces deletes the small blocks with keys below before.
func removePieces(tx *bolt.Tx, id []byte, before uint64) error {
	b := tx.Bucket(bucketLive).Bucket(id)
	if b == nil {
		return nil
	}
	c := b.Cursor()
	for k, _ := c.First(); k != nil && binary.BigEndian.Uint64(k) < before; k, _ = c.First() {
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}

func removeBucket(tx *bolt.Tx, bucket, id []byte) error {
	b := tx.Bucket(bucket)
	if b.Bucket(id) == nil {
		return nil
	}
	return b.DeleteBucket(id)
}

// pieceSize is the largest value, in bytes. bbolt puts two or more values on a page and writes a
// page anew when one comes beside them: two such pieces fill a page of eight times 4 KiB exactly, and
// so much is written anew, not the whole of several blocks.
const pieceSize = (8*pageSize - 16 - 2*(16+8)) / 2

// putFrames appends frames to a session's bucket, cut into pieces whose keys count up from next, and
// returns the key after the last. Put together in the order of the keys, the values of a bucket are
// the frames again.
func putFrames(tx *bolt.Tx, bucket, id []byte, next uint64, frames [][]byte) (uint64, error) {
	if len(frames) == 0 {
		return next, nil
	}
	b, err := tx.Bucket(bucket).CreateBucketIfNotExists(id)
	if err != nil {
		return next, err
	}
	b.FillPercent = 1 // keys only grow
	for _, f := range frames {
		for piece := range slices.Chunk(f, pieceSize) {
			if err := b.Put(binary.BigEndian.AppendUint64(nil, next), piece); err != nil {
				return next, err
			}
			next++
		}
	}
	return next, nil
}

// nextKey is the key after the last of a session's bucket.
func nextKey(b *bolt.Bucket) uint64 {
	last, _ := b.Cursor().Last()
	if len(last) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(last) + 1
}

func (t *tables) release() {
	t.s.mu.Lock()
	delete(t.s.recorders, string(t.id))
	t.s.mu.Unlock()
	t.s.backups.ask()
}

// encode makes frames of a batch: one, unless it is very large; none if it is empty.
func encode(b *block.Batch, effort block.Effort) ([][]byte, error) {
	if b.Empty() {
		return nil, nil
	}
	var frames [][]byte
	for _, part := range b.Split() {
		body, err := part.Encode(nil, effort)
		if err != nil {
			return nil, err
		}
		frames = append(frames, block.AppendFrame(nil, body))
	}
	return frames, nil
}

func size(frames [][]byte) (n int64) {
	for _, f := range frames {
		n += int64(len(f))
	}
	return n
}

// putSummary writes a session's summary. What the user or the caller has set meanwhile stays.
func putSummary(tx *bolt.Tx, sum Summary) error {
	b := tx.Bucket(bucketSessions)
	if old, ok, err := getSummary(tx, []byte(sum.ID)); err != nil {
		return err
	} else if ok {
		sum.Title, sum.Category, sum.Metrics, sum.Source = old.Title, old.Category, old.Metrics, old.Source
	}
	return putJSON(b, sum.ID, &sum)
}

func getSummary(tx *bolt.Tx, id []byte) (sum Summary, ok bool, err error) {
	v := tx.Bucket(bucketSessions).Get(id)
	if v == nil {
		return Summary{}, false, nil
	}
	if err := json.Unmarshal(v, &sum); err != nil {
		return Summary{}, false, fmt.Errorf("cannot read the summary of session %s: %w", id, err)
	}
	return sum, true, nil
}

func putJSON(b *bolt.Bucket, key string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return b.Put([]byte(key), data)
}
