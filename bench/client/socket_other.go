//go:build !linux

package client

import (
	"net"

	"velo/bench"
)

// receiver has nothing to keep: there are no kernel stamps here.
type receiver struct{}

func (s *socket) prepare(bool) {}

// Read reads to p, as net.Conn says, and stamps.
func (s *socket) Read(p []byte) (int, error) {
	n, err := s.TCPConn.Read(p)
	s.user = s.clock.Now()
	if n > 0 {
		s.reads++
	}
	return n, err
}

// stale cannot be told here without reading; the reader finds out.
func (s *socket) stale() bool { return false }

// newLine makes a line of a plain connection.
func newLine(c *net.TCPConn, clock bench.Clock, kernel bool, q *queue) (line, error) {
	s := newSocket(c, clock, kernel)
	return newNetLine(s, s, q), nil
}

// pollers is how many threads receive for all lines that are not alone.
func pollers() int { return 0 }

// switchOn has nothing to do.
func switchOn() {}
