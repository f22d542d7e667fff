//go:build unix

package sim

import (
	"errors"
	"syscall"
	"time"
)

// socket is the way to the bare system call under a connection.
type socket struct {
	raw syscall.RawConn
	// What try works on; the stream's lock guards it.
	buffer []byte
	sent   int
	failed error
	try    func(fd uintptr) bool
}

func (c *conn) open() error {
	sc, ok := c.net.(syscall.Conn)
	if !ok {
		return errors.New("cannot reach the socket under the connection")
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	c.raw = raw
	c.try = func(fd uintptr) bool {
		c.sent, c.failed = c.call(fd, c.buffer)
		return true
	}
	return nil
}

// call makes the system call and stamps it. It takes what fits into the socket.
func (c *conn) call(fd uintptr, b []byte) (int, error) {
	c.before = time.Now()
	n, errno := writeNow(fd, b)
	c.after = time.Now()
	switch errno {
	case 0:
		return n, nil
	case syscall.EAGAIN, syscall.EINTR:
		return 0, nil
	}
	return 0, errno
}

// attempt is one write system call, stamped in before and after. It takes what
// fits into the socket and never waits.
func (c *conn) attempt(b []byte) (n int, err error) {
	c.buffer = b
	if err := c.raw.Write(c.try); err != nil {
		return 0, err
	}
	return c.sent, c.failed
}

// whenWritable calls step each time the socket may take bytes, until step says
// that it is done. step must not close the connection.
func (c *conn) whenWritable(step func(write func([]byte) (int, error)) (done bool)) error {
	return c.raw.Write(func(fd uintptr) bool {
		return step(func(b []byte) (int, error) { return c.call(fd, b) })
	})
}
