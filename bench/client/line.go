package client

import (
	"net"
	"sync/atomic"
	"time"
)

// A line is a connection below HTTP, with whatever receives from it: from the first byte to the last,
// over all the requests that use it, what comes is stamped and queued. It therefore also notices when
// the server closes an idle one.
type line interface {
	// send writes a request and tells the queue when that is done, or why it could not be. It returns
	// at once where the system takes the bytes at once; otherwise writing goes on in the background,
	// since an answer can come, and the user stop, before a large request is out.
	send(header, body []byte)
	// close ends the connection. What still comes is dropped.
	close()
	// stale tells whether an idle connection has been closed by the other side, or sent something.
	stale() bool
	// alone tells whether a goroutine of its own receives from it.
	alone() bool
}

// A netLine receives with a goroutine: TLS everywhere, and plain TCP where there is no poller.
type netLine struct {
	socket *socket
	conn   net.Conn // the socket, or TLS over it
	queue  *queue
	closed atomic.Bool
}

func newNetLine(s *socket, c net.Conn, q *queue) *netLine {
	l := &netLine{socket: s, conn: c, queue: q}
	go l.follow()
	return l
}

func (l *netLine) alone() bool { return true }

func (l *netLine) stale() bool { return l.socket.stale() }

// follow queues what comes. Bytes get the stamps of the last read of the socket: the one that completed
// the TLS record they came in.
func (l *netLine) follow() {
	b := make([]byte, 16<<10)
	s := l.socket
	for {
		n, err := l.conn.Read(b)
		if n > 0 {
			l.queue.push(b[:n], s.reads, s.kernel, s.user)
			l.queue.waitForRoom()
		}
		if err != nil {
			if l.closed.Load() {
				err = net.ErrClosed
			}
			l.queue.fail(err, s.user)
			return
		}
	}
}

func (l *netLine) close() {
	if !l.closed.Swap(true) {
		l.queue.leave()
		_ = l.socket.Close()
	}
}

// send always writes in the background: a deadline, which could bound a direct write, breaks TLS.
func (l *netLine) send(header, body []byte) {
	go func() {
		b := net.Buffers{header, body}
		_, err := b.WriteTo(l.conn)
		l.queue.written(l.socket.clock.Now(), err)
	}()
}

// A conn is a line with its queue, as the pool keeps it.
type conn struct {
	line
	queue  *queue
	origin string
	remote string
	idle   time.Duration // since when it lies in the pool, session time
}
