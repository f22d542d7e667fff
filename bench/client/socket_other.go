//go:build !linux

package client

// receiver has nothing to keep: there are no kernel stamps here.
type receiver struct{}

func (s *socket) prepare(bool) {}

// Read reads to p, as net.Conn says, and stamps.
func (s *socket) Read(p []byte) (int, error) {
	n, err := s.TCPConn.Read(p)
	s.user = s.clock.Now()
	s.reads++
	return n, err
}

// follow reads to the queue until the connection ends; it returns why.
func (s *socket) follow(q *queue) error { return followThrough(s, s, q) }

// stale cannot be told here without reading; the reader finds out.
func (s *socket) stale() bool { return false }

// switchOn has nothing to do.
func switchOn() {}
