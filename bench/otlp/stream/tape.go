package stream

import (
	"container/list"
	"fmt"
	"slices"
	"strings"
	"time"

	"velo/bench"
)

// Tape turns streams into the events of a session while they come: requests, chunks and ends. Chunks
// wait for the next Pull, so that late records find their place. It belongs to its Table's lock.
type Tape struct {
	table  *Table
	keys   map[Key]bool // nil = all
	since  time.Duration
	last   time.Duration // of the last Pull
	anchor int64
	begun  bool
	ending time.Duration // session time of the latest event

	open  []*taken // streams on the tape that have not ended, in order of number
	slots []bool   // workers that are busy
	next  int      // request number
	count TapeCounts
	names map[string]bool
}

// TapeCounts are what a Tape holds so far.
type TapeCounts struct {
	Streams   int
	Running   int
	Chunks    int
	Tokens    int   // by usage, token ids or the length of the text
	Bytes     int64 // of the events, about
	Late      int   // chunks that came when later ones had been written; they are left out
	Lost      int   // streams of which chunks had to be let go before they were written
	Headless  int   // streams whose start was not seen, and which have no TTFT
	Clockless int   // streams with the receiver's times, as their records had none
	Models    []string
	Services  []string
}

// taken is a stream on the tape.
type taken struct {
	stream  *Stream
	number  int
	worker  int
	pulls   int
	asked   bool  // its request was written
	written int   // chunks
	index   int32 // token.index of the last chunk written
	ready   int   // chunks that were there at the last Pull
	ended   int   // pulls since its end was seen
	usage   int32
	closed  bool
}

// Tape begins a tape of the streams with these keys (none: all that are there and all that come), as
// far as they had a record at or after since, which is the receiver's monotonic time.
func (t *Table) Tape(keys []Key, since time.Duration) *Tape {
	p := &Tape{table: t, since: since, last: since, ending: bench.Unset, names: map[string]bool{}}
	if len(keys) > 0 {
		p.keys = map[Key]bool{}
		for _, k := range keys {
			p.keys[k] = true
		}
	}
	return p
}

// Anchor is the time of the session's zero on the streams' clock, in nanoseconds since 1970: that of
// the earliest record of the first Pull that found a stream. ok is false before that.
func (p *Tape) Anchor() (at int64, ok bool) { return p.anchor, p.begun }

// Counts are what the tape holds so far.
func (p *Tape) Counts() TapeCounts {
	c := p.count
	c.Streams, c.Running = p.next, len(p.open)
	c.Models, c.Services = slices.Clone(c.Models), slices.Clone(c.Services)
	return c
}

// name takes note of a model or a service, of which the first few are kept.
func (p *Tape) name(list *[]string, kind, name string) {
	if name != "" && !p.names[kind+name] && len(*list) < 16 {
		p.names[kind+name] = true
		*list = append(*list, name)
	}
}

// Pull returns the events since the last Pull; now is the receiver's monotonic time. all writes also
// what would wait for later records.
func (p *Tape) Pull(now time.Duration, all bool) []bench.Event {
	p.find()
	p.last = now
	var events []bench.Event
	for _, x := range p.open {
		events = p.write(events, x, all)
	}
	p.open = slices.DeleteFunc(p.open, func(x *taken) bool { return x.closed })
	return events
}

// find takes the streams that had a record since the last Pull onto the tape, the oldest first.
func (p *Tape) find() {
	var fresh []*Stream
	for e := p.table.full.Back(); e != nil; e = e.Prev() {
		s := e.Value.(*Stream)
		if s.got < p.last-time.Second { // the list is in order of receipt, but for a little
			break
		}
		if s.got < p.since || s.taped(p) || p.keys != nil && !p.keys[s.key] {
			continue
		}
		fresh = append(fresh, s)
	}
	if len(fresh) == 0 {
		return
	}
	slices.Reverse(fresh)
	if !p.begun {
		for _, s := range fresh {
			if s.first != unset && (!p.begun || s.first < p.anchor) {
				p.anchor, p.begun = s.first, true
			}
		}
		if !p.begun {
			return
		}
	}
	for _, s := range fresh {
		p.open = append(p.open, &taken{stream: s, number: p.next, worker: p.slot(), index: -1})
		p.next++
		s.held++
		s.tapes = append(s.tapes, p)
	}
}

func (s *Stream) taped(p *Tape) bool { return slices.Contains(s.tapes, p) }

// slot is the lowest worker that is free: streams that run together never share one.
func (p *Tape) slot() int {
	for i, busy := range p.slots {
		if !busy {
			p.slots[i] = true
			return i
		}
	}
	p.slots = append(p.slots, true)
	return len(p.slots) - 1
}

// write appends the events of one stream.
func (p *Tape) write(events []bench.Event, x *taken, all bool) []bench.Event {
	s := x.stream
	x.pulls++
	if !x.asked {
		if x.pulls == 1 && !all && !s.started { // the start may still come
			return events
		}
		x.asked = true
		if !s.started {
			p.count.Headless++
		}
		if s.clock == ReceiverClock {
			p.count.Clockless++
		}
		p.name(&p.count.Models, "model ", s.model)
		p.name(&p.count.Services, "service ", s.key.Service)
		q := s.request(x.number, x.worker, p.anchor)
		p.count.Bytes += int64(200 + len(q.Session))
		events = append(events, q)
	}
	if s.folded != nil {
		p.count.Lost++
		events = append(events, &bench.Note{At: sessionTime(s.latest, p.anchor),
			Text: fmt.Sprintf("request %d is cut short: its chunks had to be let go before they were written, as memory was at its bound", x.number)})
		return p.close(events, x)
	}
	moved := x.moved()
	p.count.Late += moved
	x.written += moved
	end := max(x.written, min(x.ready, len(s.chunks)))
	if all || s.done && x.ended > 0 {
		end = len(s.chunks)
	}
	if end > x.written {
		part := convert(s.chunks[x.written:end], s.text, x.number, p.anchor)
		for i := range part { // the text of a stream must not stay because a sink keeps events
			part[i].Text = strings.Clone(part[i].Text)
			part[i].Read = int32(x.written + i)
			p.tally(x, &part[i])
		}
		events = append(events, part)
		x.written, x.index = end, s.chunks[end-1].index
	}
	x.ready = len(s.chunks)
	if s.done {
		if x.ended++; x.ended > 1 || all {
			return p.close(events, x)
		}
	}
	return events
}

// moved is the number of chunks that were put before ones that are written already.
func (x *taken) moved() int {
	if x.written == 0 || x.index < 0 {
		return 0
	}
	n := 0
	for c := x.stream.chunks; x.written+n < len(c) && c[x.written+n-1].index < x.index; {
		n++
	}
	return n
}

func (p *Tape) tally(x *taken, c *bench.Chunk) {
	n := max(1, (len(c.Text)+3)/4)
	switch {
	case c.Usage >= 0:
		n = max(0, int(c.Usage-x.usage))
		x.usage = max(x.usage, c.Usage)
	case c.Exact >= 0:
		n = int(c.Exact)
	}
	p.count.Tokens += n
	p.count.Chunks++
	p.count.Bytes += int64(len(c.Text)) + 24
	p.until(c.User)
}

func (p *Tape) until(at time.Duration) {
	if at != bench.Unset {
		p.ending = max(p.ending, at)
	}
}

func (p *Tape) close(events []bench.Event, x *taken) []bench.Event {
	if e := x.stream.closing(x.number, p.anchor); e != nil {
		e.Events = x.written
		p.until(e.End)
		p.count.Bytes += 200
		events = append(events, e)
	}
	p.release(x)
	return events
}

func (p *Tape) release(x *taken) {
	x.closed = true
	p.slots[x.worker] = false
	x.stream.held--
}

// missed counts chunks of a stream that came when the tape had its end already.
func (p *Tape) missed(s *Stream, chunks int) {
	if !slices.ContainsFunc(p.open, func(x *taken) bool { return x.stream == s }) {
		p.count.Late += chunks
	}
}

// Close writes everything, ends what still runs as stopped, and lets the streams go. end is the session
// time of the latest event; bench.Unset where there is none.
func (p *Tape) Close(now time.Duration) (events []bench.Event, end time.Duration) {
	events = p.Pull(now, true)
	for _, x := range p.open {
		at := sessionTime(x.stream.latest, p.anchor)
		events = append(events, &bench.End{Request: x.number, Status: bench.Stopped, By: bench.EndCancel, Stamp: Stamp, End: at, Close: at,
			Error: "the recording ended before the stream did", Events: x.written})
		p.until(at)
		p.release(x)
	}
	p.open = nil
	for _, l := range []*list.List{p.table.full, p.table.folded} {
		for e := l.Front(); e != nil; e = e.Next() {
			s := e.Value.(*Stream)
			s.tapes = slices.DeleteFunc(s.tapes, func(q *Tape) bool { return q == p })
		}
	}
	return events, p.ending
}
