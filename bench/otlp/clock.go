package otlp

import (
	"sync/atomic"
	"time"
)

// clock is the receiver's: monotonic, going on while the machine sleeps, with the wall-clock time of
// its zero. Setting the wall clock does not move it.
type clock struct {
	from  Clocks
	zero  time.Time
	slept atomic.Int64 // nanoseconds that the machine slept since zero, as of the last look
	first time.Duration
	stray time.Duration // wall clock − this clock, at the last look
}

// Clocks are those of the machine.
type Clocks struct {
	Now    func() time.Time              // its wall clock, with a monotonic reading as time.Now has it
	Since  func(time.Time) time.Duration // monotonic time since a reading of Now; stands still while the machine sleeps
	Asleep func() time.Duration          // how long the machine slept since it was started
}

func newClock(from Clocks) *clock {
	if from.Now == nil {
		from = Clocks{time.Now, time.Since, asleep}
	}
	c := &clock{from: from, zero: from.Now()}
	c.first = from.Asleep()
	return c
}

// now is the time since zero.
func (c *clock) now() time.Duration { return c.from.Since(c.zero) + time.Duration(c.slept.Load()) }

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
	if s := c.from.Asleep() - c.first; s > 0 {
		j.Slept = s - time.Duration(c.slept.Load())
		c.slept.Store(int64(s))
	}
	now := c.now()
	stray := time.Duration(c.from.Now().UnixNano() - c.wall(now))
	j.Set = stray - c.stray
	c.stray = stray
	j.At = now
	return j, j.Slept > leastJump || j.Set > leastJump || j.Set < -leastJump
}
