package store

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"

	bolt "go.etcd.io/bbolt"

	"velo/bench"
	"velo/store/block"
)

// Export writes a session as one session file: its raw events, the suite as run, the environment,
// the title as it is now; no key. The same session gives the same bytes, also after it was imported
// elsewhere and exported again.
func (s *Store) Export(id string, w io.Writer) error {
	session, err := s.Session(id)
	if err != nil {
		return err
	}
	if err := writeSession(w, session); err != nil {
		return fmt.Errorf("cannot export the session %s: %w", session.Header.ID, err)
	}
	return nil
}

// Import takes a session from a session file, finished or cut off. One that is here already with
// the same events is left as it is and returned; one with the same identity and other events is
// ErrExists. The file may come from anybody: what is wrong with it is an error, and only one block
// of it at a time is in memory.
func (s *Store) Import(r io.Reader) (Summary, error) {
	s.importing.Lock()
	defer s.importing.Unlock()
	in := &incoming{s: s}
	_, err := readSession(r, in.add)
	if err == nil {
		err = in.end()
	}
	if err != nil {
		in.abandon()
		return Summary{}, fmt.Errorf("cannot import the session: %w", err)
	}
	sum, err := s.Summary(in.id())
	if err == nil && in.out != nil {
		s.backups.ask()
	}
	return sum, err
}

// ImportFile imports a session file. One that lies in the inbox is deleted afterwards.
func (s *Store) ImportFile(path string) (Summary, error) {
	f, err := os.Open(path)
	if err != nil {
		return Summary{}, fmt.Errorf("cannot import a session: %w", err)
	}
	defer f.Close()
	sum, err := s.Import(f)
	if err != nil {
		return Summary{}, fmt.Errorf("%s: %w", path, err)
	}
	if s.inInbox(path) {
		_ = f.Close()
		if err := os.Remove(path); err != nil {
			return sum, fmt.Errorf("cannot delete the imported session file: %w", err)
		}
	}
	return sum, nil
}

// incoming is a session on its way into the database. Its blocks are put there as they come, and
// count as nothing until the last transaction adds the summary.
type incoming struct {
	s     *Store
	tally *tally
	batch block.Batch
	out   *tables        // nil where the session is here already:
	same  *bench.Session // then it is put together, to be compared
}

func (in *incoming) id() string { return in.tally.sum.ID }

func (in *incoming) add(e bench.Event) error {
	if in.tally == nil {
		if err := in.begin(e.(*bench.Header)); err != nil { // the first event, see check
			return err
		}
	}
	in.tally.add(e)
	if in.same != nil {
		in.same.Append(e)
		return nil
	}
	if h, ok := e.(*bench.Header); ok {
		c := *h
		c.Endpoint.URL = withoutSecrets(c.Endpoint.URL)
		e = &c
	}
	if err := in.batch.Add(e); err != nil {
		return err
	}
	if in.batch.Full() {
		return in.flush()
	}
	return nil
}

func (in *incoming) begin(h *bench.Header) error {
	in.tally = newTally()
	in.tally.sum.ID = h.ID
	return in.s.update(func(tx *bolt.Tx) error {
		if tx.Bucket(bucketSessions).Get([]byte(h.ID)) != nil {
			in.same = &bench.Session{}
			return nil
		}
		in.out = newTables(in.s, h.ID)
		return remove(tx, in.out.id) // an earlier import may have been interrupted by an error
	})
}

func (in *incoming) flush() error {
	frames, err := encode(&in.batch, block.Best)
	if err != nil {
		return err
	}
	next := in.out.next
	err = in.s.update(func(tx *bolt.Tx) (err error) {
		next, err = putFrames(tx, bucketBlocks, in.out.id, next, frames)
		return err
	})
	if err != nil {
		return err
	}
	in.out.next = next
	in.out.large += size(frames)
	in.batch.Reset()
	return nil
}

func (in *incoming) end() error {
	if in.same != nil {
		return in.compare()
	}
	return in.out.seal(&in.batch, in.tally.summary(true))
}

// compare tells whether the session that is here is the one that comes, titles aside.
func (in *incoming) compare() error {
	if r := in.s.recorder(in.id()); r != nil {
		return fmt.Errorf("a session with the identity %s is here already: %w", in.id(), ErrRunning)
	}
	here, err := in.s.Session(in.id())
	if err != nil {
		return err
	}
	a, err := digest(here)
	if err != nil {
		return err
	}
	b, err := digest(in.same)
	if err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return fmt.Errorf("another session with the identity %s is here already (%q): %w; delete it first", in.id(), here.Header.Title, ErrExists)
	}
	return nil
}

// digest is the same for sessions with the same events, whatever their title.
func digest(s *bench.Session) ([]byte, error) {
	c := *s
	c.Header.Title = ""
	sum := sha256.New()
	err := writeSession(sum, &c)
	return sum.Sum(nil), err
}

// abandon removes what an import that failed has put into the database. What cannot be removed now
// is removed at the next start, see tidy.
func (in *incoming) abandon() {
	if in.out == nil {
		return
	}
	_ = in.s.update(func(tx *bolt.Tx) error {
		if tx.Bucket(bucketSessions).Get(in.out.id) != nil {
			return nil // it is complete
		}
		return remove(tx, in.out.id)
	})
}
