package emit

import "sync/atomic"

// inlineBody is how long a body may be to be kept in the ring itself. A chat
// chunk is 200 to 350 bytes.
const inlineBody = 384

// ring is a bounded queue of records with many producers and one consumer,
// after Vyukov's bounded queue: each cell carries the turn at which it may be
// written or read, so a producer needs one compare-and-swap and never waits
// for another. Bodies are copied into the cells, so a producer may use its
// buffer again and a push allocates only for a body over inlineBody.
type ring struct {
	cells []cell
	mask  uint64
	_     [64]byte // tail and head are written by different threads
	tail  atomic.Uint64
	_     [64]byte
	head  atomic.Uint64
}

type cell struct {
	turn   atomic.Uint64 // position p may be written at turn p and read at turn p+1
	record Record
	inline []byte
}

// newRing makes a ring for at least size records, a power of two.
func newRing(size int) *ring {
	n := 2
	for n < size {
		n *= 2
	}
	r := &ring{cells: make([]cell, n), mask: uint64(n - 1)}
	bodies := make([]byte, n*inlineBody)
	for i := range r.cells {
		r.cells[i].turn.Store(uint64(i))
		r.cells[i].inline = bodies[i*inlineBody : i*inlineBody : (i+1)*inlineBody]
	}
	return r
}

// push puts a record in and gives its position; false if the ring is full.
func (r *ring) push(record *Record) (uint64, bool) {
	at := r.tail.Load()
	for {
		c := &r.cells[at&r.mask]
		switch ahead := int64(c.turn.Load() - at); {
		case ahead == 0:
			if r.tail.CompareAndSwap(at, at+1) {
				c.record = *record
				c.record.Body = append(c.inline, record.Body...)
				c.turn.Store(at + 1)
				return at, true
			}
			at = r.tail.Load()
		case ahead < 0: // its record of the turn before was not taken yet
			return 0, false
		default: // somebody else has it
			at = r.tail.Load()
		}
	}
}

// peek gives the oldest record, nil if there is none; it is valid until
// release. For the consumer only.
func (r *ring) peek() *Record {
	at := r.head.Load()
	c := &r.cells[at&r.mask]
	if c.turn.Load() != at+1 {
		return nil
	}
	return &c.record
}

// release frees the cell of the record that peek gave.
func (r *ring) release() {
	at := r.head.Load()
	c := &r.cells[at&r.mask]
	c.record = Record{}
	c.turn.Store(at + r.mask + 1)
	r.head.Store(at + 1)
}

func (r *ring) len() int {
	head := r.head.Load() // first, so that it is never past the tail
	return int(r.tail.Load() - head)
}
