package store

import (
	"encoding/binary"
	"encoding/json"
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	err = s.view(func(tx *bolt.Tx) error {
		if tx.Bucket(bucketSessions).Get([]byte(h.ID)) != nil {
			return fmt.Errorf("cannot record a session with the identity %s: %w", h.ID, ErrExists)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r, err := newRecorder(h, &tables{s: s, id: []byte(h.ID)})
	if err != nil {
		return nil, err
	}
	s.recorders[h.ID] = r
	return r, nil
}

// tables writes one session into the database. What comes is put into the bucket live at once, in
// small blocks; when these make up a large one, or at the end, they are replaced by it, in the
// bucket blocks. So the file holds everything at any time and hardly anything twice, and the few
// large values, which bbolt copies when it adds another beside them, are seldom touched.
type tables struct {
	s      *Store
	id     []byte
	window block.Batch // what is in the small blocks
	small  int64       // their bytes
	large  int64       // those of the large ones
	next   uint64      // key of the next piece, in either bucket
}

func (t *tables) commit(b *block.Batch, sum Summary) error {
	if t.window.FullWith(b) {
		t.window.AddBatch(b)
		b.Reset()
		return t.settle(sum)
	}
	frames, err := encode(b, block.Quick)
	if err != nil {
		return err
	}
	err = t.put(bucketLive, frames, sum, nil)
	if err != nil {
		return err
	}
	t.small += size(frames)
	t.window.AddBatch(b)
	b.Reset()
	return nil
}

func (t *tables) seal(b *block.Batch, sum Summary) error {
	t.window.AddBatch(b)
	b.Reset()
	return t.settle(sum)
}

// settle replaces the small blocks by large ones that hold the window.
func (t *tables) settle(sum Summary) error {
	frames, err := encode(&t.window, block.Best)
	if err != nil {
		return err
	}
	small := t.small
	t.small = 0
	err = t.put(bucketBlocks, frames, sum, func(tx *bolt.Tx) error {
		live := tx.Bucket(bucketLive)
		if live.Bucket(t.id) == nil {
			return nil
		}
		return live.DeleteBucket(t.id)
	})
	if err != nil {
		t.small = small
		return err
	}
	t.large += size(frames)
	t.window.Reset()
	return nil
}

// put writes blocks and the summary, and does what else belongs into the same transaction.
func (t *tables) put(bucket []byte, frames [][]byte, sum Summary, also func(*bolt.Tx) error) error {
	sum.Bytes = t.large + t.small + size(frames)
	next := t.next
	err := t.s.update(func(tx *bolt.Tx) (err error) {
		if also != nil {
			if err := also(tx); err != nil {
				return err
			}
		}
		if next, err = putFrames(tx, bucket, t.id, t.next, frames); err != nil {
			return err
		}
		return putSummary(tx, sum)
	})
	if err == nil {
		t.next = next
	}
	return err
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
		sum.Title, sum.Metrics, sum.Source = old.Title, old.Metrics, old.Source
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
