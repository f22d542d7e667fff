package client

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// A conn is a connection with its reader: a goroutine that receives, stamps and queues from the first
// byte to the last, over all the requests that use the connection. It therefore also notices when
// the server closes an idle one.
type conn struct {
	*socket
	net    net.Conn // what requests are written to: the socket, or TLS over it
	tls    bool
	queue  *queue
	origin string
	remote string
	idle   time.Duration // since when it lies in the pool, session time
	closed atomic.Bool
}

// follow is the reader.
func (k *conn) follow() {
	var err error
	if k.tls {
		err = followThrough(k.net, k.socket, k.queue)
	} else {
		err = k.socket.follow(k.queue)
	}
	if k.closed.Load() {
		err = net.ErrClosed
	}
	k.queue.fail(err, k.socket.user)
}

// followThrough reads r, which reads from the socket, to the queue. Bytes get the stamps of the last
// socket read: the one that completed the TLS record they came in.
func followThrough(r io.Reader, s *socket, q *queue) error {
	b := make([]byte, plainBuffer)
	for {
		n, err := r.Read(b)
		if n > 0 {
			q.push(b[:n], s.reads, s.kernel, s.user)
		}
		if err != nil {
			return err
		}
	}
}

// close ends the connection and its reader.
func (k *conn) close() {
	if !k.closed.Swap(true) {
		k.queue.leave()
		_ = k.socket.Close()
	}
}

// small is up to how many bytes a request is written by the goroutine that goes on to wait for its
// answer: they fit the send buffer of an idle connection.
const small = 32 << 10

// send writes a request. It returns at once where the system takes it at once; otherwise a goroutine
// goes on writing, since an answer can come, and the user stop, before the whole request is out.
// The queue is told when it is.
func (k *conn) send(header, body []byte, now func() time.Duration) {
	if !k.tls && len(header)+len(body) <= small {
		b := append(header, body...)
		_ = k.net.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
		n, err := k.net.Write(b)
		at := now()
		_ = k.net.SetWriteDeadline(time.Time{})
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			k.queue.written(at, err)
			return
		}
		header, body = b[n:], nil
	}
	go func() {
		b := net.Buffers{header, body}
		_, err := b.WriteTo(k.net)
		k.queue.written(now(), err)
	}()
}
