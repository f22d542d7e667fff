package client

import (
	"context"
	"math"
	"time"
)

// wait waits for the queue, the user or a limit. It is false when the exchange is over.
func (x *exchange) wait() (*failure, bool) {
	for {
		due := x.due()
		if due != x.armed && (x.armed == 0 || due < x.armed) {
			x.arm(due)
		}
		var fired <-chan time.Time
		if x.timer != nil {
			fired = x.timer.C
		}
		select {
		case <-x.ctx.Done():
			if x.done {
				return x.ended(nil), false
			}
			return x.c.cancelled(context.Cause(x.ctx)), false
		default:
		}
		select {
		case <-x.queue.wake:
			return nil, true
		case <-x.ctx.Done():
		case <-fired:
			x.armed = 0
			if f, over := x.expired(x.c.o.Clock.Now()); over {
				return f, false
			}
		}
	}
}

// due is when the next limit is reached.
func (x *exchange) due() time.Duration {
	due, t := time.Duration(math.MaxInt64), x.c.o.Timeout
	if t.Total > 0 {
		due = x.r.Start + t.Total
	}
	if !x.begun && t.FirstByte > 0 {
		due = min(due, x.sent+t.FirstByte)
	}
	if x.begun && t.Idle > 0 {
		due = min(due, x.last+t.Idle)
	}
	if x.grace > 0 {
		due = min(due, x.grace)
	}
	return due
}

// arm sets the timer. Reads only push limits back, so it is not set again for each: when it fires too
// early it is set to what is due then.
func (x *exchange) arm(due time.Duration) {
	if due == math.MaxInt64 {
		return
	}
	x.armed = due
	wait := max(0, due-x.c.o.Clock.Now())
	if x.timer == nil {
		x.timer = time.NewTimer(wait)
		return
	}
	x.timer.Reset(wait)
}

// expired tells which limit has been reached, if one has.
func (x *exchange) expired(now time.Duration) (*failure, bool) {
	t := x.c.o.Timeout
	switch {
	case x.grace > 0 && now >= x.grace:
		if x.head == nil {
			return x.c.hungUp(x.werr, x.target), true
		}
		if x.redirect != "" {
			return nil, true
		}
		return x.ended(nil), true
	case t.Total > 0 && now >= x.r.Start+t.Total:
		return x.c.timedOut("total", t.Total), true
	case !x.begun && t.FirstByte > 0 && now >= x.sent+t.FirstByte:
		return x.c.timedOut("first-byte", t.FirstByte), true
	case x.begun && t.Idle > 0 && now >= x.last+t.Idle:
		return x.c.timedOut("idle", t.Idle), true
	}
	return nil, false
}
