package store

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"sync"
	"time"

	"velo/bench"
	"velo/store/block"
)

// CommitInterval is the longest time that an event waits before it is written; with the writing
// itself, less than 250 ms of events are lost when the process is killed.
const CommitInterval = 125 * time.Millisecond

const (
	commitChunks  = 16 << 10        // so many waiting chunks are written at once
	retryInterval = 2 * time.Second // after a write that failed
)

// An output takes the batches of one session. Its calls come one at a time.
type output interface {
	// commit makes the batch last, together with what is known about the session so far, and empties
	// it. After an error the next call brings the same events, and newer ones.
	commit(b *block.Batch, sum Summary) error
	// seal makes the batch and the session's last state last and gives the storage its final form.
	seal(b *block.Batch, sum Summary) error
	// release lets go of what the output holds; nothing comes after it.
	release()
}

// Recorder writes the events of one session while they happen. It is a bench.Sink, safe for
// concurrent use: Append only puts the event into memory, a goroutine of its own does the rest. What
// has been written is in Stored; what could not be written stays in memory and is tried again.
type Recorder struct {
	id  string
	out output

	mu     sync.Mutex
	events []bench.Event // waiting, other than chunks
	chunks []bench.Chunk // waiting
	spare  []bench.Chunk // emptied, to be used next
	header *bench.Header
	closed bool
	err    error // the first event that cannot be stored at all
	failed error // of the last write
	stored int

	wake chan struct{} // something waits
	full chan struct{} // so much waits that it should be written now
	quit chan struct{}
	done chan struct{}

	writing sync.Mutex // held while the following are used
	batch   block.Batch
	tally   *tally
	over    bool // the output was released
}

var _ bench.Sink = (*Recorder)(nil)

// newRecorder starts a recorder whose first event, the header, is written before it returns.
func newRecorder(h *bench.Header, out output) (*Recorder, error) {
	r := &Recorder{
		id: h.ID, out: out, header: h, tally: newTally(),
		wake: make(chan struct{}, 1), full: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	r.events = []bench.Event{h}
	if err := r.Flush(); err != nil {
		return nil, err
	}
	go r.run()
	return r, nil
}

// headerFor checks a header and returns it as it is stored: without a password in the URL.
func headerFor(h *bench.Header) (*bench.Header, error) {
	if h == nil {
		return nil, errors.New("cannot record a session: it has no header")
	}
	if err := validID(h.ID); err != nil {
		return nil, fmt.Errorf("cannot record a session: %w", err)
	}
	if h.Schema != bench.SchemaVersion {
		return nil, fmt.Errorf("cannot record a session of schema %d: this program writes %d", h.Schema, bench.SchemaVersion)
	}
	c := *h
	c.Endpoint.URL = withoutSecrets(c.Endpoint.URL)
	return &c, nil
}

// withoutSecrets removes user info and the values of query parameters, where keys are put.
func withoutSecrets(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil && u.RawQuery == "" {
		return address
	}
	u.User = nil
	q := u.Query()
	for name := range q {
		q.Set(name, "")
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// ID is the session's identity.
func (r *Recorder) ID() string { return r.id }

// Append takes an event. It never waits for the disk. Events after Close are dropped. An event must
// not be changed after it was given; the array of Chunks may be used again.
func (r *Recorder) Append(e bench.Event) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	empty := len(r.events) == 0 && len(r.chunks) == 0
	switch e := e.(type) {
	case bench.Chunks:
		r.chunks = append(r.chunks, e...)
	case *bench.Header:
		// A runner may give the header that the recorder was begun with.
		c := *e
		c.Endpoint.URL = withoutSecrets(c.Endpoint.URL)
		if c.ID != r.id || reflect.DeepEqual(&c, r.header) {
			r.mu.Unlock()
			return
		}
		r.header = &c
		r.events = append(r.events, &c)
	default:
		r.events = append(r.events, e)
	}
	waiting := len(r.events) + len(r.chunks)
	r.mu.Unlock()
	if empty && waiting > 0 {
		signal(r.wake)
	}
	if waiting == commitChunks {
		signal(r.full)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it was told already
	}
}

// run writes what waits, CommitInterval after the first event came.
func (r *Recorder) run() {
	defer close(r.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-r.wake:
		case <-r.quit:
			return
		}
		interval := CommitInterval
		for again := true; again; {
			timer.Reset(interval)
			select {
			case <-timer.C:
			case <-r.full:
			case <-r.quit:
				return
			}
			again = r.Flush() != nil
			interval = retryInterval
		}
	}
}

// Flush writes everything that was appended before the call; when it returns nil, all of it lasts.
func (r *Recorder) Flush() error {
	r.writing.Lock()
	defer r.writing.Unlock()
	if r.over {
		return r.lastWrite()
	}
	r.collect()
	if r.batch.Empty() && r.lastWrite() == nil {
		return nil
	}
	return r.written(r.out.commit(&r.batch, r.tally.summary(false)))
}

func (r *Recorder) lastWrite() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// collect moves what waits into the batch.
func (r *Recorder) collect() {
	r.mu.Lock()
	events, chunks := r.events, r.chunks
	r.events, r.chunks, r.spare = nil, r.spare, nil
	r.mu.Unlock()
	// Chunks wait apart from the other events. What ends is counted after them.
	var ends []bench.Event
	for _, e := range events {
		if !r.keep(e) {
			continue
		}
		switch e.(type) {
		case *bench.End, *bench.Finish:
			ends = append(ends, e)
		default:
			r.tally.add(e)
		}
	}
	if len(chunks) > 0 {
		if all := bench.Chunks(chunks); r.batch.Add(all) == nil {
			r.tally.add(all)
		} else { // one of them is too large: the others are kept
			for i := range all {
				if r.keep(all[i : i+1]) {
					r.tally.add(all[i : i+1])
				}
			}
		}
	}
	for _, e := range ends {
		r.tally.add(e)
	}
	clear(chunks)
	r.mu.Lock()
	r.spare = chunks[:0]
	r.mu.Unlock()
}

// keep puts an event into the batch and tells whether it can be stored.
func (r *Recorder) keep(e bench.Event) bool {
	err := r.batch.Add(e)
	if err != nil {
		r.mu.Lock()
		if r.err == nil {
			r.err = err
		}
		r.mu.Unlock()
	}
	return err == nil
}

// written notes how a write ended.
func (r *Recorder) written(err error) error {
	if err != nil {
		err = fmt.Errorf("cannot store the session %s: %w; what is not stored is kept in memory and tried again", r.id, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed = err; err == nil {
		r.stored = r.tally.sum.Chunks + r.tally.sum.Events
	}
	return err
}

// Stored is the number of events, chunks each counted, that are safe whatever happens now.
func (r *Recorder) Stored() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stored
}

// Err is what went wrong so far: a write that failed and is tried again, an event that cannot be
// stored at all.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.err, r.failed)
}

// Close writes what waits, gives the session its final form and ends the recording. A session that
// had no Finish is "cut off" from then on. It may be called twice.
func (r *Recorder) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		<-r.done
		return nil
	}
	r.closed = true
	r.mu.Unlock()
	close(r.quit)
	<-r.done
	r.writing.Lock()
	defer r.writing.Unlock()
	r.collect()
	err := r.out.seal(&r.batch, r.tally.summary(true))
	if err != nil {
		err = fmt.Errorf("cannot store the end of the session %s: %w; %s are stored", r.id, err, count(r.Stored(), "event"))
	} else {
		_ = r.written(nil)
	}
	r.out.release()
	r.over = true
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = err
	return errors.Join(err, r.err)
}
