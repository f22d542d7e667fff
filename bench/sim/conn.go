package sim

import (
	"bufio"
	"net"
	"syscall"
	"time"
)

// conn is one connection of a client.
type conn struct {
	number int64
	net    net.Conn
	reader *bufio.Reader
	socket

	// The last write attempt: the clocks just before and just after the call.
	before, after time.Time
}

func newConn(number int64, c net.Conn) (*conn, error) {
	if tcp, ok := c.(*net.TCPConn); ok {
		if err := tcp.SetNoDelay(true); err != nil {
			return nil, err
		}
	}
	k := &conn{number: number, net: c, reader: bufio.NewReader(c)}
	return k, k.open()
}

// reset closes the connection so that the peer sees a reset.
func (c *conn) reset() {
	if tcp, ok := c.net.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.net.Close()
}

var _ syscall.Conn = (*net.TCPConn)(nil)
