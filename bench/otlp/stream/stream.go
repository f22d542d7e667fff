// Package stream puts the log records of a serving engine together to streams of tokens: one for each
// generation, keyed by service, conversation and generation, so that parallel generations of one
// conversation never run into each other.
//
// # Records
//
// A record belongs to a stream when it has a request.id or a generation.id (or their semantic-convention
// names). Its attribute event, or its event name, says what it is: stream_start, stream_delta,
// stream_end or status; a record without it is a delta. Its body is an OpenAI stream chunk. A delta
// whose start was missed creates the stream: there is no TTFT then. token.index numbers the records of
// a stream: those that come twice count once, those out of order are put in their place, and what is
// missing is counted as lost.
//
// # Clocks
//
// All times of a stream are of one clock: the emitter's, or the receiver's where the first record has no
// time of its own (Summary.Clock says which). Nothing is computed from the difference of the two.
//
// # Numbers
//
// They come from package measure: a stream is a bench.Exchange like any other. Without usage, logprobs
// or token ids its tokens are an estimate, and say so.
//
// # Memory
//
// A Table has bounds for streams and for bytes. Over its bytes it folds the streams that were quiet
// longest: their numbers and the end of their text stay, their chunks go. Over its number of streams it
// lets the quietest go for good. Both are counted.
package stream

import (
	"container/list"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"velo/bench"
	"velo/bench/measure"
)

// Key names a stream.
type Key struct {
	Service      string // service.name, and service.instance.id behind a slash where there is one
	Conversation string // request.id: the session of the client
	Generation   string // generation.id; "" where the emitter gives none, "#2", … for its later turns
}

// Clocks of a stream's times.
const (
	EmitterClock  = "emitter"
	ReceiverClock = "receiver"
)

// unset marks a time that is not known.
const unset = math.MinInt64

// chunk is one piece of text of a stream.
type chunk struct {
	at      int64 // nanoseconds since 1970 on the stream's clock; unset
	from    uint32
	size    uint32
	index   int32 // token.index; −1 = none
	usage   int32
	exact   int32
	channel bench.Channel
}

// sizes of what is kept, for the sum of bytes.
const (
	chunkBytes  = 32
	streamBytes = 900 // a Stream, its key, its places in map and list
)

// Limits of one stream.
const (
	mostChunks = 400_000
	mostText   = 8 << 20
	tailBytes  = 2048 // of text that stay when a stream is folded
	mostLate   = 4096 // chunks that may have come before one that belongs in front of them
)

// Stream is one generation. It belongs to a Table and to its lock.
type Stream struct {
	key      Key
	serial   uint64
	model    string
	topology string
	clock    string

	started  bool
	start    int64 // of stream_start
	startGot time.Duration
	first    int64 // the earliest time of any record
	latest   int64
	got      time.Duration // receipt of the latest record
	gotFirst time.Duration

	chunks  []chunk
	text    []byte
	version uint64 // changes with every record
	inserts uint64 // changes when a chunk is put before others

	tokens    int // provisional: by usage, token ids, or the text's length
	usageSeen int32
	usage     *bench.Usage

	records    int // distinct ones with an index
	lowest     int32
	highest    int32
	duplicates int
	reordered  int
	cut        int // chunks not kept, as the stream is too long or was folded

	done   bool
	finish string
	failed string
	ended  int64

	hidden bool // by Clear, until the next record
	shown  int  // chunks that a Clear took out of the view

	folded *measure.Request // nil while the chunks are there
	tail   string
	held   int // tapes that still need the chunks
	tapes  []*Tape

	live      *measure.Live
	liveAsked time.Duration
	liveBase  int64

	place *list.Element
}

// Key is the stream's name.
func (s *Stream) Key() Key { return s.key }

// Serial is unique among the streams of a Table and rises in the order of their appearance.
func (s *Stream) Serial() uint64 { return s.serial }

// Folded tells whether the chunks were let go.
func (s *Stream) Folded() bool { return s.folded != nil }

// Done tells whether the stream's end was seen.
func (s *Stream) Done() bool { return s.done }

// Start is the emitter's time of stream_start in nanoseconds since 1970, and the receiver's monotonic
// time at which its record came; ok is false where it was not seen or has no time of the emitter's.
func (s *Stream) Start() (at int64, received time.Duration, ok bool) {
	return s.start, s.startGot, s.started && s.start != unset && s.clock == EmitterClock
}

// First is the earliest time of the stream on its own clock.
func (s *Stream) First() (int64, bool) { return s.first, s.first != unset }

// Received is the receiver's monotonic time of the stream's latest record.
func (s *Stream) Received() time.Duration { return s.got }

func (s *Stream) bytes() int64 {
	return streamBytes + int64(len(s.key.Service)+len(s.key.Conversation)+len(s.key.Generation)) + int64(cap(s.text)) + chunkBytes*int64(cap(s.chunks)) + int64(len(s.tail))
}

// add puts a chunk into its place: at the end, or where its index says.
func (s *Stream) add(c chunk, text string) {
	if s.folded != nil || len(s.chunks) >= mostChunks || len(s.text)+len(text) > mostText {
		s.cut++
		return
	}
	at := len(s.chunks)
	for c.index >= 0 && at > 0 && s.chunks[at-1].index > c.index {
		if at--; len(s.chunks)-at > mostLate {
			s.cut++
			return
		}
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	c.from, c.size = uint32(len(s.text)), uint32(len(text))
	s.text = append(s.text, text...)
	if at < len(s.chunks) {
		s.inserts++
	}
	s.chunks = slices.Insert(s.chunks, at, c)
	switch {
	case c.usage >= 0:
		s.tokens += max(0, int(c.usage-s.usageSeen))
		s.usageSeen = max(s.usageSeen, c.usage)
	case c.exact >= 0:
		s.tokens += int(c.exact)
	default:
		s.tokens += measure.ByTextLength(len(s.text), s.tokens)
	}
}

// seen takes note of a record's index; false if the record came before.
func (s *Stream) seen(index int32) bool {
	if index < 0 {
		return true
	}
	if s.records == 0 {
		s.lowest, s.highest = index, index
		if index == 1 { // the start, which is record 0, is missing
			s.lowest = 0
		}
		s.records++
		return true
	}
	if index > s.highest {
		s.highest = index
		s.records++
		return true
	}
	for i := len(s.chunks) - 1; i >= 0 && s.chunks[i].index >= index && len(s.chunks)-i <= mostLate; i-- {
		if s.chunks[i].index == index {
			s.duplicates++
			return false
		}
	}
	if index == s.highest {
		s.duplicates++
		return false
	}
	s.lowest = min(s.lowest, index)
	s.records++
	s.reordered++
	return true
}

// lost is the number of records that are missing between the first and the last that came.
func (s *Stream) lost() int {
	if s.records == 0 {
		return 0
	}
	return max(0, int(s.highest)-int(s.lowest)+1-s.records)
}

// fold lets the chunks go and keeps what they come to.
func (s *Stream) fold() {
	r := measure.Of(s.exchange(0, s.base(), nil), measure.Options{})
	r.Arrivals, r.ICL, r.Rolling.Samples = nil, nil, nil
	s.folded = &r
	s.tail = s.end(tailBytes)
	s.chunks, s.text, s.live = nil, nil, nil
}

// base is a time near the stream's own, so that differences stay small.
func (s *Stream) base() int64 {
	if s.first == unset {
		return 0
	}
	return s.first
}

// end is the last n bytes of the text, in the order of the chunks, cut at a whole character.
func (s *Stream) end(n int) string {
	if s.folded != nil {
		return lastBytes(s.tail, n)
	}
	return endOf(s.chunks[min(s.shown, len(s.chunks)):], s.text, n)
}

func endOf(chunks []chunk, text []byte, n int) string {
	i, size := len(chunks), 0
	for i > 0 && size < n {
		i--
		size += int(chunks[i].size)
	}
	b := make([]byte, 0, size)
	for ; i < len(chunks); i++ {
		c := &chunks[i]
		b = append(b, text[c.from:c.from+c.size]...)
	}
	return lastBytes(string(b), n)
}

func lastBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for i := 0; i < len(s) && i < utf8.UTFMax; i++ {
		if utf8.RuneStart(s[i]) {
			return s[i:]
		}
	}
	return s
}
