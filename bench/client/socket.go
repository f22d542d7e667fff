package client

import (
	"net"
	"time"

	"velo/bench"
)

// A socket is a TCP connection whose reads are stamped. It is a net.Conn, so that TLS can read through
// it; one goroutine reads.
type socket struct {
	*net.TCPConn
	clock bench.Clock

	reads  int32         // how many reads brought something
	kernel int64         // real time at which the kernel received the last bytes of the last read; 0 = unknown
	user   time.Duration // when the last read returned

	receiver // what the platform needs
}

func newSocket(c *net.TCPConn, clock bench.Clock, kernel bool) *socket {
	s := &socket{TCPConn: c, clock: clock}
	s.prepare(kernel)
	return s
}
