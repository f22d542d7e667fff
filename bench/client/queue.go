package client

import (
	"sync"
	"time"
)

// A mark says when the bytes up to end came.
type mark struct {
	end    int           // offset in the batch
	read   int32         // number of the socket read, over the life of the connection
	kernel int64         // real time in nanoseconds at which the kernel received them; 0 = it did not say
	user   time.Duration // when the read returned, session time
}

// A batch is what came since one last looked: bytes, and a mark for each read.
type batch struct {
	bytes []byte
	marks []mark
}

// clear empties the batch. Memory that a burst took is let go, so that ten thousand streams stay small.
func (b *batch) clear() {
	if cap(b.bytes) > 16<<10 {
		b.bytes = nil
	}
	if cap(b.marks) > 64 {
		b.marks = nil
	}
	b.bytes, b.marks = b.bytes[:0], b.marks[:0]
}

// backlog is how many bytes may wait in one queue; what is received waits when it is that far ahead of
// its parser.
const backlog = 32 << 20

// A queue lies between the goroutine that receives and the one that parses. Only these two know it,
// so its lock is not shared with other streams.
type queue struct {
	wake chan struct{} // one token: there is something to take

	mu    sync.Mutex
	room  func() // to be called when there is room again
	left  bool   // nobody takes any more
	in    batch
	err   error         // why nothing more will come
	errAt time.Duration // when that was seen
	wrote time.Duration // when the request had been written; 0 = not yet
	werr  error         // why it could not be
	head  *head         // of an answer that net/http took apart
	trace trace         // of a connection that net/http made
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// push adds the bytes of one read. It is true when no more should be read until there is room.
func (q *queue) push(b []byte, read int32, kernel int64, user time.Duration) (full bool) {
	q.mu.Lock()
	if !q.left {
		q.in.bytes = append(q.in.bytes, b...)
		q.in.marks = append(q.in.marks, mark{len(q.in.bytes), read, kernel, user})
		full = len(q.in.bytes) > backlog
	}
	q.mu.Unlock()
	q.signal()
	return full
}

// answered takes the head of an answer that net/http took apart.
func (q *queue) answered(h *head, at time.Duration) {
	q.mu.Lock()
	q.head = h
	q.in.marks = append(q.in.marks, mark{user: at}) // of its first byte
	q.mu.Unlock()
	q.signal()
}

// onRoom calls f as soon as there is room, or nobody takes any more.
func (q *queue) onRoom(f func()) {
	q.mu.Lock()
	if !q.left && len(q.in.bytes) > backlog {
		q.room, f = f, nil
	}
	q.mu.Unlock()
	if f != nil {
		f()
	}
}

// waitForRoom waits while the queue is full.
func (q *queue) waitForRoom() {
	q.mu.Lock()
	full := !q.left && len(q.in.bytes) > backlog
	q.mu.Unlock()
	if full {
		room := make(chan struct{})
		q.onRoom(func() { close(room) })
		<-room
	}
}

// fail says that nothing more will come; io.EOF is the ordinary reason.
func (q *queue) fail(err error, at time.Duration) {
	q.mu.Lock()
	if q.err == nil {
		q.err, q.errAt = err, at
	}
	q.mu.Unlock()
	q.signal()
}

// written says that the request has been sent, or why not.
func (q *queue) written(at time.Duration, err error) {
	q.mu.Lock()
	if err == nil {
		q.wrote = at
	} else if q.werr == nil {
		q.werr = err
	}
	q.mu.Unlock()
	q.signal()
}

// sent is when the request had been written, 0 if it has not yet. The goroutine that wrote it may say so
// after a quick answer has come; patience is how long to wait for its word.
func (q *queue) sent(patience time.Duration) time.Duration {
	var over <-chan time.Time
	for {
		q.mu.Lock()
		wrote, werr := q.wrote, q.werr
		q.mu.Unlock()
		if wrote > 0 || werr != nil || patience == 0 {
			return wrote
		}
		if over == nil {
			over = time.After(patience)
		}
		select {
		case <-q.wake:
		case <-over:
			patience = 0
		}
	}
}

// take exchanges an emptied batch for what has come.
func (q *queue) take(b *batch) (news news) {
	b.clear()
	q.mu.Lock()
	*b, q.in = q.in, *b
	room := q.room
	q.room = nil
	news.err, news.errAt, news.werr, news.head = q.err, q.errAt, q.werr, q.head
	q.mu.Unlock()
	if room != nil {
		room()
	}
	return news
}

// news is what a queue says beside the bytes.
type news struct {
	err   error
	errAt time.Duration
	werr  error
	head  *head
}

// leave says that nobody will take any more.
func (q *queue) leave() {
	q.mu.Lock()
	q.left = true
	room := q.room
	q.room = nil
	q.mu.Unlock()
	if room != nil {
		room()
	}
}

// again readies the queue for the next request. It fails when something came that nobody asked for,
// or the connection ended.
func (q *queue) again() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wrote, q.werr = 0, nil
	return q.err == nil && len(q.in.bytes) == 0
}
