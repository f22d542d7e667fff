//go:build !unix

package sim

import "time"

// socket is empty where a system call cannot be made on a connection without
// waiting: stamps are then taken around net.Conn.Write.
type socket struct{}

func (c *conn) open() error { return nil }

// attempt is one write, stamped in before and after. It may wait for the
// client.
func (c *conn) attempt(b []byte) (n int, err error) {
	c.before = time.Now()
	n, err = c.net.Write(b)
	c.after = time.Now()
	return n, err
}

// whenWritable calls step until it says that it is done.
func (c *conn) whenWritable(step func(write func([]byte) (int, error)) (done bool)) error {
	for !step(c.attempt) {
	}
	return nil
}
