package block

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/klauspost/compress/zstd"

	"velo/bench"
)

// Effort says how hard a block is compressed.
type Effort int

// The efforts: Quick while a session is recorded, Best for what stays.
const (
	Quick Effort = iota
	Best
)

// encoders are made when first used (Best holds some tens of MB) and used by one goroutine at a
// time, which EncodeAll sees to.
var encoders = [...]func() *zstd.Encoder{
	Quick: sync.OnceValue(func() *zstd.Encoder { return newEncoder(zstd.SpeedDefault) }),
	Best:  sync.OnceValue(func() *zstd.Encoder { return newEncoder(zstd.SpeedBestCompression) }),
}

func newEncoder(level zstd.EncoderLevel) *zstd.Encoder {
	e, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(level),
		zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(false), // the frame has a checksum
		zstd.WithLowerEncoderMem(true),
		zstd.WithAllLitEntropyCompression(true))
	if err != nil {
		panic(err) // the options above are constants
	}
	return e
}

// Encode appends the block's body to dst. The batch must keep the limits of a block (see Split).
// The same batch gives the same bytes.
func (b *Batch) Encode(dst []byte, effort Effort) ([]byte, error) {
	if len(b.chunks) > MaxChunks {
		return nil, fmt.Errorf("cannot encode a block of %d chunks: at most %d are possible", len(b.chunks), MaxChunks)
	}
	l := newLayout()
	l.events.b = b.lines.Bytes()
	groups := b.groups()
	var last int
	var base int64
	for _, g := range groups {
		l.groups.putInt(int64(g.request) - int64(last))
		l.groups.putUint(uint64(len(g.index)))
		last = g.request
		base = l.putGroup(b.chunks, g.index, base)
	}
	dst = append(dst, KindEvents, Version)
	dst = binary.AppendUvarint(dst, uint64(b.events))
	dst = binary.AppendUvarint(dst, uint64(len(b.chunks)))
	dst = binary.AppendUvarint(dst, uint64(len(groups)))
	raw := 0
	enc := encoders[effort]()
	var packed []byte
	for _, c := range l.columns() {
		raw += len(c.b)
		dst = binary.AppendUvarint(dst, uint64(len(c.b)))
		if len(c.b) == 0 {
			continue
		}
		packed = enc.EncodeAll(c.b, packed[:0])
		if len(packed) >= len(c.b) {
			packed = append(packed[:0], c.b...)
		}
		dst = binary.AppendUvarint(dst, uint64(len(packed)))
		dst = append(dst, packed...)
	}
	if raw > MaxRaw {
		return nil, fmt.Errorf("cannot encode a block of %d bytes: at most %d are possible", raw, MaxRaw)
	}
	return dst, nil
}

// putGroup writes the chunks of one request and returns the first leading stamp, which the next
// request's stamps start from.
func (l *layout) putGroup(chunks []bench.Chunk, index []int32, base int64) int64 {
	n := len(index)
	at := func(i int) *bench.Chunk { return &chunks[index[i]] }
	l.presence.putRuns(n, func(i int) bool { return at(i).User != bench.Unset })
	l.presence.putRuns(n, func(i int) bool { return at(i).Kernel != bench.Unset })
	l.presence.putRuns(n, func(i int) bool { return at(i).Usage != absent })
	l.presence.putRuns(n, func(i int) bool { return at(i).Exact != absent })
	both := true
	for i := range n {
		both = both && at(i).User != bench.Unset && at(i).Kernel != bench.Unset
	}
	for i := 0; i < n; {
		start, channel := i, at(i).Channel
		for i < n && at(i).Channel == channel {
			i++
		}
		l.channels.putByte(byte(channel))
		l.channels.putUint(uint64(i - start))
	}
	lead := leadStamp{base: base}
	var read, usage, gap int64
	for i := range n {
		c := at(i)
		step := int64(c.Read) - read
		read = int64(c.Read)
		l.reads.putInt(step)
		switch {
		case both:
			// The kernel's stamps are the steadier ones: fewer bits when they lead.
			user, kernel := micros(c.User), micros(c.Kernel)
			l.times.put(lead.step(kernel))
			g := user - kernel
			if i > 0 && step == 0 {
				l.gaps.put(g - gap) // chunks of one read have the same stamps
			} else {
				l.gaps.put(g)
			}
			gap = g
		default:
			user := int64(0)
			if c.User != bench.Unset {
				user = micros(c.User)
				l.times.put(lead.step(user))
			}
			if c.Kernel != bench.Unset {
				l.gaps.put(user - micros(c.Kernel))
			}
		}
		if c.Usage != absent {
			l.usage.putInt(int64(c.Usage) - usage)
			usage = int64(c.Usage)
		}
		if c.Exact != absent {
			l.exact.putInt(int64(c.Exact))
		}
		l.lengths.putUint(uint64(len(c.Text)))
		l.texts.b = append(l.texts.b, c.Text...)
	}
	return lead.first()
}

// absent is how bench.Chunk says that it has no usage, or no exact count.
const absent = -1

// leadStamp turns the leading stamps of one request into differences, and back.
type leadStamp struct {
	base   int64 // the stamp before the next one
	begun  bool
	firstS int64
}

func (s *leadStamp) step(stamp int64) int64 {
	d := stamp - s.base
	s.set(stamp)
	return d
}

func (s *leadStamp) stamp(step int64) int64 {
	s.set(s.base + step)
	return s.base
}

func (s *leadStamp) set(stamp int64) {
	if !s.begun {
		s.begun, s.firstS = true, stamp
	}
	s.base = stamp
}

// first is the first stamp of the request; that of the request before where it had none.
func (s *leadStamp) first() int64 {
	if s.begun {
		return s.firstS
	}
	return s.base
}

// inRange tells whether a difference read from a block leads to a time that can be.
func inRange(us int64) bool { return us >= firstMicro && us <= lastMicro }

// fits32 tells whether a number read from a block fits the field that it is for.
func fits32(v int64) bool { return v >= math.MinInt32 && v <= math.MaxInt32 }
