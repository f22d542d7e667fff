package block

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"velo/bench"
)

// decoder is safe for concurrent use. Output never grows beyond what the caller made room for.
var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(MaxRaw))
	if err != nil {
		panic(err) // the options above are constants
	}
	return d
})

// Decode gives the events of a block's body to emit, in an order that is right for each request:
// its start, its chunks, its end. Chunks of a request come as one event a block. It stops at the
// first error of emit and returns it. Whatever the bytes, it allocates at most a small multiple of
// MaxRaw.
func Decode(body []byte, emit func(bench.Event) error) error {
	l, n, err := unpack(body)
	if err != nil {
		return err
	}
	chunks, err := l.readChunks(n)
	if err != nil {
		return err
	}
	read := 0
	for text := range bytes.Lines(l.events.b) {
		e, err := parseLine(text)
		if err != nil {
			return err
		}
		read++
		ended := -1 // the request that has no more chunks
		switch e := e.(type) {
		case *bench.Counts:
			ended = e.Request
		case *bench.End:
			ended = e.Request
		}
		if ended >= 0 {
			if c := chunks.take(ended); c != nil {
				if err := emit(c); err != nil {
					return err
				}
			}
		}
		if err := emit(e); err != nil {
			return err
		}
	}
	if read != n.events {
		return fmt.Errorf("%w: a block with %d events says it has %d", ErrDamaged, read, n.events)
	}
	for _, c := range chunks.list {
		if c != nil {
			if err := emit(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// parseLine reads one event that is not chunks.
func parseLine(text []byte) (bench.Event, error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, fmt.Errorf("%w: an event cannot be read: %v", ErrDamaged, err)
	}
	switch {
	case l.Header != nil:
		return l.Header, nil
	case l.Step != nil:
		return l.Step, nil
	case l.Request != nil:
		return l.Request, nil
	case l.Conn != nil:
		return l.Conn, nil
	case l.Counts != nil:
		return l.Counts, nil
	case l.End != nil:
		return l.End, nil
	case l.Sample != nil:
		return l.Sample, nil
	case l.Note != nil:
		return l.Note, nil
	case l.Finish != nil:
		return l.Finish, nil
	}
	return nil, fmt.Errorf("%w: an event of a kind that this program does not know", ErrDamaged)
}

// counts stand at the beginning of a block.
type counts struct{ events, chunks, groups int }

// unpack reads the counts and decompresses the columns.
func unpack(body []byte) (*layout, counts, error) {
	if len(body) < 2 || body[0] != KindEvents {
		return nil, counts{}, fmt.Errorf("%w: this is no block of events", ErrDamaged)
	}
	if body[1] != Version {
		return nil, counts{}, fmt.Errorf("cannot read a block of version %d: this program knows version %d, a newer Velo may have written it", body[1], Version)
	}
	in := &column{b: body[2:], name: "counts"}
	events, chunks, groups := in.uint(), in.uint(), in.uint()
	if in.err != nil || events > MaxRaw || chunks > MaxChunks || groups > chunks {
		return nil, counts{}, fmt.Errorf("%w: a block says it has %d events, %d chunks, %d requests", ErrDamaged, events, chunks, groups)
	}
	l := newLayout()
	room := uint64(MaxRaw)
	for _, c := range l.columns() {
		if err := c.unpack(in, &room); err != nil {
			return nil, counts{}, err
		}
	}
	if len(in.b) != 0 {
		return nil, counts{}, fmt.Errorf("%w: %d bytes too many in a block", ErrDamaged, len(in.b))
	}
	// Each chunk has a byte or more here: what is allocated for them next was really sent.
	if uint64(len(l.lengths.b)) < chunks {
		return nil, counts{}, fmt.Errorf("%w: %d chunks with %d bytes of lengths", ErrDamaged, chunks, len(l.lengths.b))
	}
	return l, counts{int(events), int(chunks), int(groups)}, nil
}

// unpack takes the column off the front of a block; room is what all columns may still hold.
func (c *column) unpack(in *column, room *uint64) error {
	raw := in.uint()
	if in.err == nil && raw == 0 {
		return nil
	}
	size := in.uint()
	if in.err != nil || raw > *room || size > raw || size > uint64(len(in.b)) {
		return fmt.Errorf("%w: column %s is cut off or too long", ErrDamaged, c.name)
	}
	*room -= raw
	packed := in.b[:size]
	in.b = in.b[size:]
	if size == raw {
		c.b = packed
		return nil
	}
	var err error
	c.b, err = decoder().DecodeAll(packed, make([]byte, 0, raw))
	if err != nil || uint64(len(c.b)) != raw {
		return fmt.Errorf("%w: column %s cannot be unpacked", ErrDamaged, c.name)
	}
	return nil
}

// grouped is the chunks of a block by request.
type grouped struct {
	list []bench.Chunks // nil where they were taken
	at   map[int]int    // request to index of list
}

func (g *grouped) take(request int) bench.Chunks {
	i, ok := g.at[request]
	if !ok {
		return nil
	}
	c := g.list[i]
	g.list[i] = nil
	return c
}

// readChunks reads the chunks of all requests.
func (l *layout) readChunks(n counts) (*grouped, error) {
	out := &grouped{list: make([]bench.Chunks, 0, n.groups), at: make(map[int]int, n.groups)}
	// One string for the whole block: the chunks' texts are parts of it and cost nothing more.
	l.text = string(l.texts.b)
	l.texts.b = nil
	all := make([]bench.Chunk, n.chunks)
	var request, base int64
	for range n.groups {
		request += l.groups.int()
		size := l.groups.uint()
		_, twice := out.at[int(request)]
		if size == 0 || size > uint64(len(all)) || twice || request != int64(int(request)) {
			l.groups.fail("an impossible group")
			break
		}
		chunks := bench.Chunks(all[:size:size])
		all = all[size:]
		var err error
		if base, err = l.readGroup(chunks, int(request), base); err != nil {
			return nil, err
		}
		out.at[int(request)] = len(out.list)
		out.list = append(out.list, chunks)
	}
	for _, c := range l.columns()[1:] {
		if c.err != nil {
			return nil, c.err
		}
		if len(c.b) != 0 {
			return nil, fmt.Errorf("%w: %d bytes too many in column %s", ErrDamaged, len(c.b), c.name)
		}
	}
	if l.text != "" || len(all) != 0 {
		return nil, fmt.Errorf("%w: %d bytes of text and %d chunks belong to no request", ErrDamaged, len(l.text), len(all))
	}
	return out, nil
}

// Which fields of a chunk are present.
const (
	hasUser = 1 << iota
	hasKernel
	hasUsage
	hasExact
)

// readGroup fills in the chunks of one request, as putGroup wrote them.
func (l *layout) readGroup(chunks bench.Chunks, request int, base int64) (int64, error) {
	n := len(chunks)
	l.flags = append(l.flags[:0], make([]byte, n)...)
	users := l.presence.readRuns(l.flags, hasUser)
	kernels := l.presence.readRuns(l.flags, hasKernel)
	l.presence.readRuns(l.flags, hasUsage)
	l.presence.readRuns(l.flags, hasExact)
	l.readChannels(chunks)
	both := users == n && kernels == n
	lead := leadStamp{base: base}
	var read, usage, gap int64
	valid := true
	for i := range chunks {
		c, has := &chunks[i], l.flags[i]
		step := l.reads.int()
		read += step
		user, kernel := int64(0), int64(0)
		switch {
		case both:
			kernel = lead.stamp(l.times.next())
			g := l.gaps.next()
			if i > 0 && step == 0 {
				g += gap
			}
			gap = g
			user = kernel + g
		default:
			if has&hasUser != 0 {
				user = lead.stamp(l.times.next())
			}
			if has&hasKernel != 0 {
				kernel = user - l.gaps.next()
			}
		}
		c.Usage, c.Exact = absent, absent
		if has&hasUsage != 0 {
			usage += l.usage.int()
			c.Usage = int32(usage)
			valid = valid && fits32(usage)
		}
		if has&hasExact != 0 {
			v := l.exact.int()
			c.Exact = int32(v)
			valid = valid && fits32(v)
		}
		size := l.lengths.uint()
		valid = valid && fits32(read) && inRange(user) && inRange(kernel) && size <= uint64(len(l.text))
		if !valid {
			return 0, fmt.Errorf("%w: a chunk of request %d has impossible numbers", ErrDamaged, request)
		}
		c.Request, c.Read = request, int32(read)
		c.User, c.Kernel = bench.Unset, bench.Unset
		if has&hasUser != 0 {
			c.User = time.Duration(user * 1000)
		}
		if has&hasKernel != 0 {
			c.Kernel = time.Duration(kernel * 1000)
		}
		c.Text, l.text = l.text[:size], l.text[size:]
	}
	return lead.first(), nil
}

// readChannels reads the runs of channels that cover the chunks.
func (l *layout) readChannels(chunks bench.Chunks) {
	for i := 0; i < len(chunks) && l.channels.err == nil; {
		channel, n := bench.Channel(l.channels.byte()), l.channels.uint()
		if n == 0 || n > uint64(len(chunks)-i) {
			l.channels.fail("an impossible run")
			return
		}
		for range n {
			chunks[i].Channel = channel
			i++
		}
	}
}
