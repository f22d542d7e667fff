// Package offset bounds the difference of two clocks: the receiver's and an emitter's.
//
// One-way records cannot separate a clock offset from delay: what a record shows is their sum, and the
// least sum over many records is "offset plus least delay". A request that was measured on both sides
// gives bounds, since the stream began after the request was sent and before its first byte came back:
//
//	t0 ≤ start + offset ≤ first byte
//
// where t0 and first byte are the client's times and start the emitter's. Bounds of several requests
// are intersected. All times are nanoseconds since 1970 on the clock named; the client's is a
// monotonic clock with an anchor, so that setting the wall clock does not move it.
package offset

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"velo/bench"
	"velo/bench/measure"
)

// Bounds are where the offset (client clock − emitter clock) lies.
type Bounds struct {
	Low, High time.Duration
	Pairs     int           // requests measured on both sides that the bounds come from
	Conflicts int           // pairs that contradicted those before: a clock was set, and the bounds began anew
	LeastSum  time.Duration // offset plus least delay, from one-way records
	Records   int           // records that LeastSum comes from
}

// Known tells whether there are bounds.
func (b Bounds) Known() bool { return b.Pairs > 0 }

// Said is what a text about bounds says that they are of.
const Said = "client clock − emitter clock"

// String says where the offset lies, or that it cannot be told from delay; empty where nothing is known.
func (b Bounds) String() string {
	switch {
	case b.Known():
		return "between " + Signed(b.Low) + " and " + Signed(b.High)
	case b.Records > 0:
		return "offset plus least delay " + Signed(b.LeastSum)
	}
	return ""
}

// Signed writes a difference of clocks; one of days has no need of milliseconds.
func Signed(d time.Duration) string {
	sign := "+"
	if d < 0 {
		sign, d = "−", -d
	}
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%s%.1f ms", sign, float64(d)/1e6)
	case d < time.Hour:
		return fmt.Sprintf("%s%.1f s", sign, d.Seconds())
	}
	return sign + d.Round(time.Second).String()
}

// Pair is one request as both sides saw it.
type Pair struct {
	Session    string // X-Session-Id
	Service    string
	Low, High  time.Duration // the bounds that this request gives
	ServerTTFT measure.Num   // seconds, on the emitter's clock
	ClientTTFT measure.Num   // seconds, on the client's clock
}

// Difference is how much more time to the first token the client saw than the server: network,
// queues in front of the server, and the client itself. It needs no clock offset.
func (p Pair) Difference() measure.Num { return p.ClientTTFT - p.ServerTTFT }

// drift is how long a bound holds: clocks drift apart by some 10 µs a second.
const drift = 2 * time.Minute

// Estimator follows one emitter. Its zero value is ready.
type Estimator struct {
	pairs     []bound
	conflicts int
	sums      [2]time.Duration // the least of this period and of the one before
	counts    [2]int
	period    int64
}

type bound struct {
	at        time.Duration
	low, high time.Duration
}

// Record takes a one-way record: emitted on the emitter's clock, received on the receiver's.
func (e *Estimator) Record(emitted, received int64) {
	if p := received / int64(drift); p != e.period {
		if p == e.period+1 {
			e.sums[1], e.counts[1] = e.sums[0], e.counts[0]
		} else {
			e.counts[1] = 0
		}
		e.period, e.counts[0] = p, 0
	}
	d := time.Duration(received - emitted)
	if e.counts[0] == 0 || d < e.sums[0] {
		e.sums[0] = d
	}
	e.counts[0]++
}

// Request takes a request measured on both sides, seen at the receiver's time now. It is false for
// one that says nothing, as its first byte came before it was sent.
func (e *Estimator) Request(now time.Duration, t0, firstByte, start int64) bool {
	if firstByte < t0 {
		return false
	}
	b := bound{now, time.Duration(t0 - start), time.Duration(firstByte - start)}
	e.pairs = slices.DeleteFunc(e.pairs, func(o bound) bool { return now-o.at > drift })
	if low, high := e.bounds(); len(e.pairs) > 0 && (b.low > high || b.high < low) {
		e.pairs = e.pairs[:0]
		e.conflicts++
	}
	if len(e.pairs) >= 256 {
		e.pairs = e.pairs[1:]
	}
	e.pairs = append(e.pairs, b)
	return true
}

func (e *Estimator) bounds() (low, high time.Duration) {
	low, high = math.MinInt64, math.MaxInt64
	for _, b := range e.pairs {
		low, high = max(low, b.low), min(high, b.high)
	}
	return low, high
}

// Bounds is what is known.
func (e *Estimator) Bounds() Bounds {
	b := Bounds{Pairs: len(e.pairs), Conflicts: e.conflicts, Records: e.counts[0] + e.counts[1]}
	if b.Pairs > 0 {
		b.Low, b.High = e.bounds()
	}
	for i, s := range e.sums {
		if e.counts[i] > 0 && (i == 0 || e.counts[0] == 0 || s < b.LeastSum) {
			b.LeastSum = s
		}
	}
	return b
}

// Alignment lines a session recorded from telemetry up with one that a client measured.
type Alignment struct {
	Bounds
	Pairs     []Pair
	Unmatched int         // requests of the telemetry that the client's session does not have
	Median    measure.Num // of the differences client TTFT − server TTFT, seconds; Missing without pairs
}

// Align joins two sessions by the session id that the client sent. A session id that several requests
// of a side bear is not used: which belongs to which could only be guessed.
func Align(telemetry, client *bench.Session) Alignment {
	a := Alignment{Median: measure.Missing}
	theirs, mine := bySession(telemetry), bySession(client)
	var e Estimator
	var differences []float64
	ids := make([]string, 0, len(theirs))
	for id := range theirs {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(x, y string) int {
		return cmp.Or(cmp.Compare(firstStart(mine[x]), firstStart(mine[y])), cmp.Compare(x, y))
	})
	for _, id := range ids {
		s, c := theirs[id], mine[id]
		if len(s) != 1 || len(c) != 1 {
			a.Unmatched += len(s)
			continue
		}
		server, side := measure.Of(s[0], measure.Options{}), measure.Of(c[0], measure.Options{})
		p := Pair{Session: id, Service: telemetry.Header.Endpoint.Server, ServerTTFT: server.TTFT, ClientTTFT: side.TTFT}
		if c[0].Conn == nil || c[0].Conn.FirstByte == bench.Unset || s[0].Request.Start == bench.Unset || c[0].Request.Start == bench.Unset {
			a.Unmatched++
			continue
		}
		t0 := client.Wall(c[0].Request.Start).UnixNano()
		first := client.Wall(c[0].Conn.FirstByte).UnixNano()
		start := telemetry.Wall(s[0].Request.Start).UnixNano()
		p.Low, p.High = time.Duration(t0-start), time.Duration(first-start)
		if !e.Request(c[0].Request.Start, t0, first, start) {
			a.Unmatched++
			continue
		}
		a.Pairs = append(a.Pairs, p)
		if d := p.Difference(); d.Ok() {
			differences = append(differences, float64(d))
		}
	}
	a.Bounds = e.Bounds()
	a.Bounds.Pairs = len(e.pairs)
	if n := len(differences); n > 0 {
		slices.Sort(differences)
		a.Median = measure.Num((differences[(n-1)/2] + differences[n/2]) / 2)
	}
	return a
}

func firstStart(x []*bench.Exchange) time.Duration {
	if len(x) == 0 {
		return 0
	}
	return x[0].Request.Start
}

func bySession(s *bench.Session) map[string][]*bench.Exchange {
	m := map[string][]*bench.Exchange{}
	for _, x := range s.Exchanges {
		if x != nil && x.Request != nil && x.Request.Session != "" {
			m[x.Request.Session] = append(m[x.Request.Session], x)
		}
	}
	return m
}
