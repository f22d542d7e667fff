package measure

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"velo/bench"
)

const ms = time.Millisecond

// script is a request to be built by hand: times are offsets from start, in milliseconds.
type script struct {
	start   float64
	at      []float64 // of the chunks
	tokens  []int     // of the chunks by Exact; nil = one each
	text    []string  // nil = four letters a token
	end     float64   // 0 = at the last chunk
	status  bench.Status
	usage   *bench.Usage
	none    bool // no Exact counts
	worker  int
	turn    int
	step    int
	warmup  bool
	channel []bench.Channel
}

func at(milliseconds float64) time.Duration { return time.Duration(math.Round(milliseconds * 1e6)) }

func (s script) exchange(number int) *bench.Exchange {
	x := &bench.Exchange{Request: &bench.Request{Number: number, Step: s.step, Worker: s.worker, Turn: s.turn,
		Warmup: s.warmup, Start: at(s.start), Planned: at(s.start)}}
	for i, t := range s.at {
		n := 1
		if s.tokens != nil {
			n = s.tokens[i]
		}
		c := bench.Chunk{Request: number, Read: int32(i), User: at(s.start+t) + 20*time.Microsecond, Kernel: at(s.start + t),
			Usage: -1, Exact: int32(n), Text: strings.Repeat("abcd", max(n, 1))}
		if s.none {
			c.Exact = -1
		}
		if s.text != nil {
			c.Text = s.text[i]
		}
		if s.channel != nil {
			c.Channel = s.channel[i]
		}
		x.Chunks = append(x.Chunks, c)
	}
	last := 0.0
	if len(s.at) > 0 {
		last = s.at[len(s.at)-1]
	}
	if s.end > 0 {
		last = s.end
	}
	status := s.status
	if status == "" {
		status = bench.OK
	}
	x.End = &bench.End{Request: number, Status: status, By: bench.EndDone, End: at(s.start + last), Close: at(s.start + last),
		Stamp: bench.KernelStamp, Usage: s.usage, Reads: len(s.at)}
	if s.end < 0 {
		x.End = nil
	}
	return x
}

// session puts scripts into a session of one step.
func session(workers int, scripts ...script) *bench.Session {
	s := &bench.Session{Header: bench.Header{ID: "00000000000100000000"}}
	s.Append(&bench.Step{Number: 0, Workers: workers, Barrier: true, Title: "step"})
	for i, x := range scripts {
		feed(s, x.exchange(i))
	}
	return s
}

// feed appends the events of an exchange.
func feed(s bench.Sink, x *bench.Exchange) {
	s.Append(x.Request)
	if x.Conn != nil {
		s.Append(x.Conn)
	}
	if len(x.Chunks) > 0 {
		s.Append(x.Chunks)
	}
	if x.End != nil {
		s.Append(x.End)
	}
}

// every gives n times, gap apart from first on.
func every(first, gap float64, n int) []float64 {
	t := make([]float64, n)
	for i := range t {
		t[i] = first + gap*float64(i)
	}
	return t
}

// generator makes sessions at random, of every kind that a run can leave behind.
type generator struct {
	r *rand.Rand
}

func (g generator) pick(n int) int { return g.r.IntN(n) }

func (g generator) session(workers, turns int) *bench.Session {
	s := &bench.Session{Header: bench.Header{ID: "000000000002deadbeef", Plan: bench.Plan{Workers: workers},
		Drawing: bench.DrawingNone, Environment: bench.Environment{Cores: 4}}}
	number := 0
	clock := make([]time.Duration, workers)
	for step := range 1 + g.pick(3) {
		from := clock[0]
		for _, c := range clock {
			from = max(from, c)
		}
		s.Append(&bench.Step{Number: step, Index: step, Workers: workers, Barrier: true, Released: from})
		for w := range clock {
			clock[w] = from + time.Duration(g.pick(200_000))
		}
		for turn := range turns {
			for w := range clock {
				x := g.exchange(number, w, clock[w])
				x.Request.Step, x.Request.Turn = step, turn
				x.Request.Warmup = step == 0 && turn == 0 && g.pick(4) == 0
				clock[w] = x.End.Close + time.Duration(g.pick(2_000_000))
				feed(s, x)
				number++
			}
		}
	}
	return s
}

// exchange is a request at random: stamps, usage, counts, channels, failures.
func (g generator) exchange(number, worker int, start time.Duration) *bench.Exchange {
	q := &bench.Request{Number: number, Worker: worker, Start: start, Planned: start - time.Duration(g.pick(3))*ms}
	x := &bench.Exchange{Request: q}
	t := start + time.Duration(1+g.pick(300))*ms + time.Duration(g.pick(1e6))
	mean := time.Duration(1+g.pick(40)) * ms
	kernel, continuous, exact := g.pick(4) > 0, g.pick(3) == 0, g.pick(3) == 0
	usage, read, total := int32(0), int32(0), 0
	for i := range g.pick(120) {
		if i > 0 {
			switch g.pick(12) {
			case 0:
			case 1:
				t += time.Duration(g.pick(int(20 * mean)))
			default:
				t += time.Duration(g.pick(int(2 * mean)))
			}
			read++
		}
		n := 1
		if g.pick(5) == 0 {
			n = g.pick(6)
		}
		c := bench.Chunk{Request: number, Read: read, User: t + time.Duration(g.pick(300_000)), Kernel: bench.Unset, Usage: -1,
			Exact: -1, Text: strings.Repeat("x", 1+g.pick(9)), Channel: bench.Channel(g.pick(2))}
		if kernel {
			c.Kernel = t
		}
		usage += int32(n)
		total += n
		if continuous {
			c.Usage = usage
		}
		if exact {
			c.Exact = int32(n)
		}
		x.Chunks = append(x.Chunks, c)
	}
	for i := 1; i < len(x.Chunks); i++ { // reads return in order
		x.Chunks[i].User = max(x.Chunks[i].User, x.Chunks[i-1].User)
	}
	end := t + time.Duration(1+g.pick(1_000_000))
	if n := len(x.Chunks); n > 0 {
		end = max(end, x.Chunks[n-1].User)
	}
	x.End = &bench.End{Request: number, Status: bench.OK, By: bench.EndDone, Finish: "stop", End: end, Close: end + time.Duration(g.pick(100_000)),
		Stamp: bench.UserStamp, Reads: len(x.Chunks)}
	if kernel {
		x.End.Stamp = bench.KernelStamp
		x.End.ClockStep = g.pick(20) == 0
	}
	switch {
	case len(x.Chunks) == 0:
		x.End.Status = bench.Empty
	case g.pick(10) == 0:
		x.End.Status = []bench.Status{bench.Failed, bench.TimedOut, bench.Truncated, bench.Stopped}[g.pick(4)]
		x.End.Class, x.End.Error = "in-stream", "the server said so"
	}
	if g.pick(3) > 0 {
		x.End.Usage = &bench.Usage{Prompt: 100 + g.pick(900), Completion: total + g.pick(2), Reasoning: -1, Cached: g.pick(3) - 1,
			Accepted: -1, Rejected: -1}
	}
	if g.pick(3) == 0 {
		x.Conn = &bench.Conn{Request: number, Reused: g.pick(2) == 0, FirstByte: start + ms, Wrote: start + ms/2}
	}
	return x
}

// close fails unless two numbers agree but for rounding, or both are missing.
func agree(t testing.TB, what string, got, want Num) {
	t.Helper()
	if got.Ok() != want.Ok() || got.Ok() && !near(float64(got), float64(want)) && math.Abs(float64(got-want)) > 1e-9*math.Abs(float64(want)) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}
