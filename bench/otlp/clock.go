package otlp

import (
	"sync/atomic"
	"time"
)

// clock is the receiver's: monotonic, going on while the machine sleeps, with the wall-clock time of
// its zero. Setting the wall clock does not move it.
type clock struct {
	zero  time.Time
	slept atomic.Int64 // nanoseconds that the machine slept since zero, as of the last look
	first time.Duration
	stray time.Duration // wall clock − this clock, at the last look
}

func newClock() *clock {
	c := &clock{zero: time.Now()}
	c.first = asleep()
	return c
}

// now is the time since zero.
func (c *clock) now() time.Duration { return time.Since(c.zero) + time.Duration(c.slept.Load()) }

// wall is a time of this clock as nanoseconds since 1970.
func (c *clock) wall(t time.Duration) int64 { return c.zero.UnixNano() + int64(t) }

// Jump is a sudden change of a clock.
type Jump struct {
	At    time.Duration // receiver's time, after it
	Slept time.Duration // the machine slept for so long
	Set   time.Duration // the wall clock was set by so much
}

// leastJump is what counts as a jump: more than a wall clock is slewed between two looks.
const leastJump = 500 * time.Millisecond

// look compares the clocks. It is called about once a second by one goroutine.
func (c *clock) look() (Jump, bool) {
	var j Jump
	if s := asleep() - c.first; s > 0 {
		j.Slept = s - time.Duration(c.slept.Load())
		c.slept.Store(int64(s))
	}
	now := c.now()
	stray := time.Duration(time.Now().UnixNano() - c.wall(now))
	j.Set = stray - c.stray
	c.stray = stray
	j.At = now
	return j, j.Slept > leastJump || j.Set > leastJump || j.Set < -leastJump
}
