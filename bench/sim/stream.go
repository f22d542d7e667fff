package sim

import (
	"sync"
	"time"
)

// stream is one reply under way.
type stream struct {
	server   *Server
	number   int64
	conn     *conn
	pacer    *pacer
	session  string
	id       string
	script   *script
	start    time.Time // when the request was fully read
	epoch    int64     // the same, on the server's clock
	finished chan struct{}

	// mu is held during each write system call. Whoever holds it therefore knows
	// the times of every byte that a client can have seen.
	mu       sync.Mutex
	next     int // of script.sends
	offset   int // in script.wire
	attempts int // system calls since the last completed chunk
	stamps   []stamp
	canceled stamp // when the client was found to be gone
	gone     bool
	ended    bool
}

// stamp is the truth about one chunk.
type stamp struct {
	before, after         int64 // CLOCK_REALTIME, ns
	monoBefore, monoAfter int64 // since the request was read, ns
	parts                 int
}

// step makes the next write. more says that the stream wants to go on at due.
func (s *stream) step() (due int64, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return 0, false
	}
	to := s.script.sends[s.next].end
	if s.offset < to {
		n, err := s.conn.attempt(s.script.wire[s.offset:to])
		s.attempts++
		s.offset += n
		if err != nil {
			s.abandon(s.conn.before, s.conn.after)
			return 0, false
		}
		if s.offset < to {
			go s.pushThrough()
			return 0, false
		}
	}
	return s.advance()
}

// pushThrough finishes a write for which the socket had no room, away from the
// pacer, which must not wait for one client.
func (s *stream) pushThrough() {
	var failed error
	err := s.conn.whenWritable(func(write func([]byte) (int, error)) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.ended {
			return true
		}
		to := s.script.sends[s.next].end
		var n int
		n, failed = write(s.script.wire[s.offset:to])
		s.attempts++
		s.offset += n
		return failed != nil || s.offset == to
	})
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	if err != nil || failed != nil {
		now := time.Now()
		s.abandon(now, now)
		s.mu.Unlock()
		return
	}
	due, more := s.advance()
	s.mu.Unlock()
	if more {
		s.pacer.add(due, s)
	}
}

// advance notes the chunks that the finished write completed and moves on.
func (s *stream) advance() (due int64, more bool) {
	c := s.conn
	for range s.script.sends[s.next].chunks {
		s.stamps = append(s.stamps, stamp{
			before: c.before.UnixNano(), after: c.after.UnixNano(),
			monoBefore: int64(c.before.Sub(s.start)), monoAfter: int64(c.after.Sub(s.start)),
			parts: max(s.attempts, 1),
		})
	}
	if s.script.sends[s.next].chunks > 0 {
		s.attempts = 0
	}
	s.next++
	if s.next < len(s.script.sends) {
		return s.epoch + int64(s.script.sends[s.next].due), true
	}
	switch s.script.end {
	case endHang: // until the client goes
		return 0, false
	case endClose:
		s.conn.net.Close()
	case endReset:
		s.conn.reset()
	}
	s.end()
	return 0, false
}

// cancel ends the stream because its client is gone.
func (s *stream) cancel() {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.abandon(now, now)
	}
}

func (s *stream) abandon(before, after time.Time) {
	s.gone = true
	s.canceled = stamp{
		before: before.UnixNano(), after: after.UnixNano(),
		monoBefore: int64(before.Sub(s.start)), monoAfter: int64(after.Sub(s.start)), parts: s.attempts,
	}
	s.conn.net.Close()
	s.end()
}

func (s *stream) end() {
	s.ended = true
	s.script.wire = nil
	s.server.retire(s)
	close(s.finished)
}

// writes is the truth about the stream so far. The caller holds mu, or the
// stream has ended.
func (s *stream) writes(to []Write) []Write {
	request := s.start.UnixNano()
	for i, t := range s.stamps {
		c := s.script.chunks[i]
		to = append(to, Write{
			Stream: s.number, Conn: s.conn.number, Session: s.session, ID: s.id, Scenario: s.script.scenario,
			Chunk: i - 1, Kind: c.kind, Choice: c.choice, Tokens: c.tokens, Bytes: c.bytes, Parts: t.parts,
			Request: request, Due: int64(c.due), Before: t.before, After: t.after,
			MonoBefore: t.monoBefore, MonoAfter: t.monoAfter,
		})
	}
	if s.gone {
		t := s.canceled
		to = append(to, Write{
			Stream: s.number, Conn: s.conn.number, Session: s.session, ID: s.id, Scenario: s.script.scenario,
			Chunk: len(s.stamps) - 1, Kind: KindCancel, Parts: t.parts,
			Request: request, Due: t.monoBefore, Before: t.before, After: t.after,
			MonoBefore: t.monoBefore, MonoAfter: t.monoAfter,
		})
	}
	return to
}
