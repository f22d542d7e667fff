package store

import (
	"fmt"

	"velo/bench"
)

// What a session may hold, so that a file made to do harm does not fill the memory. A session of
// this size needs about 3 GB of it. Recording has no limit: what is larger can be kept, not opened.
const (
	maxChunks = 1 << 25 // five hours of 1,800 tokens/s
	maxEvents = 1 << 24
)

// maxText bounds the bytes of all texts of a session. Tests set it.
var maxText = 1 << 30

// A check sees every event that comes from a file or the database before it is used.
type check struct {
	header   *bench.Header
	chunks   int
	events   int
	text     int
	requests int
}

// add refuses an event that cannot be where it is.
func (c *check) add(e bench.Event) error {
	if c.header == nil {
		h, ok := e.(*bench.Header)
		if !ok {
			return fmt.Errorf("%w: its first event is no header", ErrDamaged)
		}
		if h.Schema > bench.SchemaVersion {
			return fmt.Errorf("%w (events of schema %d, this one knows %d)", ErrNewer, h.Schema, bench.SchemaVersion)
		}
		if err := validID(h.ID); err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		c.header = h
	}
	switch e := e.(type) {
	case *bench.Header:
		if e.ID != c.header.ID {
			return fmt.Errorf("%w: it has two headers", ErrDamaged)
		}
	case *bench.Request:
		// Numbers are given out in order and may arrive a little out of it. Session makes room up
		// to the number, so that one must not be far from how many there are.
		c.requests++
		if e.Number < 0 || e.Number > 2*c.requests+1<<16 {
			return fmt.Errorf("%w: request %d comes after %s", ErrDamaged, e.Number, count(c.requests-1, "other"))
		}
	case bench.Chunks:
		c.chunks += len(e)
		for i := range e {
			c.text += len(e[i].Text)
		}
		if c.chunks > maxChunks || c.text > maxText {
			return fmt.Errorf("it holds more than %d chunks or %d bytes of text, the most that can be opened", maxChunks, maxText)
		}
		return nil
	}
	if c.events++; c.events > maxEvents {
		return fmt.Errorf("it holds more than %d events, the most that can be opened", maxEvents)
	}
	return nil
}

// validID tells whether a session's identity can be a key and the name of a file.
func validID(id string) error {
	if len(id) < 8 || len(id) > 64 {
		return fmt.Errorf("the identity %.70q has not 8 to 64 characters", id)
	}
	for _, r := range id {
		if (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' {
			return fmt.Errorf("the identity %q has other characters than letters, digits and -", id)
		}
	}
	return nil
}
