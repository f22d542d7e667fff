package bench

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"time"
)

// Session is a session's events, put together. Its zero value is empty and ready; Append makes it a
// Sink (for one goroutine at a time). A session that was cut off has no Finish, and exchanges
// without an End.
type Session struct {
	Header    Header
	Steps     []*Step
	Exchanges []*Exchange // in order of Request.Number
	Samples   []*Sample
	Notes     []*Note
	Finish    *Finish
}

// RecordedFromTelemetry is the key of Environment.Extra that marks a session of what an engine told: no
// client measured it, and its times are of the emitter's clock.
const RecordedFromTelemetry = "Recorded from telemetry"

// Told tells whether the session is such a one.
func (h *Header) Told() bool { return h.Environment.Extra[RecordedFromTelemetry] != "" }

// Exchange is one request and everything that came back.
type Exchange struct {
	Request *Request
	Conn    *Conn   // nil: no connection was had
	Chunks  Chunks  // in order of arrival
	Counts  *Counts // nil: there was no tokenizer
	End     *End    // nil: still running, or cut off
}

// maxAhead is how far a request's number may run ahead of those before it: an event from outside must
// not ask for any amount of memory.
const maxAhead = 1 << 16

// Append adds an event. An event of a request that never started is left out.
func (s *Session) Append(e Event) {
	switch e := e.(type) {
	case *Header:
		s.Header = *e
	case *Step:
		s.Steps = append(s.Steps, e)
	case *Request:
		if e.Number < 0 || e.Number > len(s.Exchanges)+maxAhead {
			return
		}
		for len(s.Exchanges) <= e.Number {
			s.Exchanges = append(s.Exchanges, &Exchange{})
		}
		s.Exchanges[e.Number].Request = e
	case *Conn:
		if x := s.exchange(e.Request); x != nil {
			x.Conn = e
		}
	case Chunks:
		if len(e) > 0 {
			if x := s.exchange(e[0].Request); x != nil {
				x.Chunks = append(x.Chunks, e...)
			}
		}
	case *Counts:
		if x := s.exchange(e.Request); x != nil {
			x.Counts = e
		}
	case *End:
		if x := s.exchange(e.Request); x != nil {
			x.End = e
		}
	case *Sample:
		s.Samples = append(s.Samples, e)
	case *Note:
		s.Notes = append(s.Notes, e)
	case *Finish:
		s.Finish = e
	}
}

func (s *Session) exchange(n int) *Exchange {
	if n < 0 || n >= len(s.Exchanges) || s.Exchanges[n].Request == nil {
		return nil
	}
	return s.Exchanges[n]
}

// Step returns the step of that number, nil if there is none.
func (s *Session) Step(number int) *Step {
	if number >= 0 && number < len(s.Steps) && s.Steps[number].Number == number {
		return s.Steps[number]
	}
	for _, st := range s.Steps {
		if st.Number == number {
			return st
		}
	}
	return nil
}

// Wall is the wall-clock time of a moment of the session.
func (s *Session) Wall(at time.Duration) time.Time { return s.Header.Anchor.Add(at) }

// NewID returns an identity for a session begun at t: 12 hex digits of milliseconds, so that names
// sort by time, and 8 of chance.
func NewID(t time.Time) string {
	var b [10]byte
	binary.BigEndian.PutUint64(b[:8], uint64(t.UnixMilli())<<16)
	_, _ = rand.Read(b[6:])
	return hex.EncodeToString(b[:])
}

// Clock is the monotonic time base of a session.
type Clock struct{ zero time.Time }

// StartClock starts a clock: its zero is now.
func StartClock() Clock { return Clock{time.Now()} }

// Now is the monotonic time since zero.
func (c Clock) Now() time.Duration { return time.Since(c.zero) }

// At is the monotonic time of t, which must come from time.Now in this process.
func (c Clock) At(t time.Time) time.Duration { return t.Sub(c.zero) }

// Anchor is the wall-clock time of zero, as Header.Anchor takes it.
func (c Clock) Anchor() time.Time { return c.zero.Round(0).UTC() }

// A TokenCounter counts tokens as a model's own tokenizer does.
type TokenCounter interface {
	// Count returns the number of tokens of the text, without special tokens.
	Count(text string) int
	// Prefixes returns, for each part, the tokens of all the parts up to and including it, put
	// together: the incremental count that shares a text's tokens out to its chunks.
	Prefixes(parts []string) []int
	// Name says which tokenizer it is.
	Name() string
}
