package block

import (
	"math"
	"time"

	"velo/bench"
)

// Resolution is the finest difference between two stored moments.
const Resolution = time.Microsecond

// The first and last moment that can be stored, in microseconds.
const (
	firstMicro = math.MinInt64 / 1000
	lastMicro  = math.MaxInt64 / 1000
)

// micros rounds a moment down to microseconds. It must not be bench.Unset.
func micros(t time.Duration) int64 {
	us := int64(t) / 1000
	if int64(t)%1000 < 0 {
		us--
	}
	return max(us, firstMicro)
}

// moment rounds a moment down to Resolution and leaves bench.Unset alone.
func moment(t time.Duration) time.Duration {
	if t == bench.Unset {
		return t
	}
	return time.Duration(micros(t) * 1000)
}

// Stored returns the event as it comes back from a block: moments are rounded down to Resolution,
// durations (a phase of a connection, a pause) keep their nanoseconds. The event itself is not
// changed; what needs no rounding is returned as it is.
func Stored(e bench.Event) bench.Event {
	switch e := e.(type) {
	case *bench.Step:
		c := *e
		c.Released = moment(c.Released)
		return &c
	case *bench.Request:
		c := *e
		c.Planned, c.Start = moment(c.Planned), moment(c.Start)
		return &c
	case *bench.Conn:
		c := *e
		c.Wrote, c.FirstByte = moment(c.Wrote), moment(c.FirstByte)
		return &c
	case bench.Chunks:
		c := make(bench.Chunks, len(e))
		for i, x := range e {
			x.User, x.Kernel = moment(x.User), moment(x.Kernel)
			c[i] = x
		}
		return c
	case *bench.End:
		c := *e
		c.End, c.Close = moment(c.End), moment(c.Close)
		return &c
	case *bench.Sample:
		c := *e
		c.At = moment(c.At)
		return &c
	case *bench.Note:
		c := *e
		c.At = moment(c.At)
		return &c
	case *bench.Finish:
		c := *e
		c.At = moment(c.At)
		return &c
	}
	return e
}
