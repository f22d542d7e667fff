package block

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"velo/bench"
)

// A Batch collects events until they are encoded as one block. It copies what it needs: an event
// may be changed once Add has returned. The zero value is empty and ready.
type Batch struct {
	lines  bytes.Buffer
	events int // lines
	chunks []bench.Chunk
	text   int // bytes of the chunks' texts
}

// What Batch.Full compares with. More in a block compresses better; less is rewritten and kept in
// memory while a session is recorded.
const (
	fullChunks = 1 << 15
	fullBytes  = 4 << 20
)

// Full tells whether the batch is large enough to be worth a block of best compression.
func (b *Batch) Full() bool { return b.FullWith(&Batch{}) }

// FullWith tells whether the two batches together would be.
func (b *Batch) FullWith(other *Batch) bool {
	return len(b.chunks)+len(other.chunks) >= fullChunks || b.text+b.lines.Len()+other.text+other.lines.Len() >= fullBytes
}

// Empty tells whether there is nothing in the batch.
func (b *Batch) Empty() bool { return b.events == 0 && len(b.chunks) == 0 }

// Len is the number of chunks and of other events.
func (b *Batch) Len() (chunks, events int) { return len(b.chunks), b.events }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.lines.Reset()
	clear(b.chunks) // lets go of the texts
	b.events, b.chunks, b.text = 0, b.chunks[:0], 0
}

// line is how an event other than chunks is written: one JSON object with one of these keys.
type line struct {
	Header  *bench.Header  `json:"header,omitempty"`
	Step    *bench.Step    `json:"step,omitempty"`
	Request *bench.Request `json:"request,omitempty"`
	Conn    *bench.Conn    `json:"conn,omitempty"`
	Counts  *bench.Counts  `json:"counts,omitempty"`
	End     *bench.End     `json:"end,omitempty"`
	Sample  *bench.Sample  `json:"sample,omitempty"`
	Note    *bench.Note    `json:"note,omitempty"`
	Finish  *bench.Finish  `json:"finish,omitempty"`
}

// Add puts an event into the batch, as Stored gives it. An event that cannot be written (a number
// that is not finite, an event larger than a block can be) is an error, and the batch is as it was.
func (b *Batch) Add(e bench.Event) error {
	if chunks, ok := e.(bench.Chunks); ok {
		return b.addChunks(chunks)
	}
	var l line
	switch e := Stored(e).(type) {
	case *bench.Header:
		l.Header = e
	case *bench.Step:
		l.Step = e
	case *bench.Request:
		l.Request = e
	case *bench.Conn:
		l.Conn = e
	case *bench.Counts:
		l.Counts = e
	case *bench.End:
		l.End = e
	case *bench.Sample:
		l.Sample = e
	case *bench.Note:
		l.Note = e
	case *bench.Finish:
		l.Finish = e
	default:
		return fmt.Errorf("cannot store an event of type %T: this program does not know it", e)
	}
	at := b.lines.Len()
	enc := json.NewEncoder(&b.lines) // ends each value with a line feed
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&l); err != nil {
		b.lines.Truncate(at)
		return fmt.Errorf("cannot store an event of type %T: %w", e, err)
	}
	if n := b.lines.Len() - at; n > MaxRaw/2 {
		b.lines.Truncate(at)
		return fmt.Errorf("cannot store an event of type %T: it has %d bytes, at most %d are possible", e, n, MaxRaw/2)
	}
	b.events++
	return nil
}

func (b *Batch) addChunks(chunks bench.Chunks) error {
	for i := range chunks {
		if n := len(chunks[i].Text); n > MaxRaw/2 {
			return fmt.Errorf("cannot store a chunk of request %d: its text has %d bytes, at most %d are possible", chunks[i].Request, n, MaxRaw/2)
		}
		b.text += len(chunks[i].Text)
	}
	b.chunks = append(b.chunks, chunks...)
	return nil
}

// AddBatch puts everything of another batch into this one.
func (b *Batch) AddBatch(other *Batch) {
	b.lines.Write(other.lines.Bytes())
	b.events += other.events
	b.chunks = append(b.chunks, other.chunks...)
	b.text += other.text
}

// Split returns the batch as batches that each keep the limits of a block, in order. It is the
// batch itself unless a burst made it very large.
func (b *Batch) Split() []*Batch {
	const chunks, size = MaxChunks / 2, MaxRaw / 2
	if len(b.chunks) <= chunks && b.text+b.lines.Len()+len(b.chunks)*chunkBytes <= MaxRaw {
		return []*Batch{b}
	}
	var parts []*Batch
	part := &Batch{}
	fits := func(n int) {
		if part.text+part.lines.Len()+len(part.chunks)*chunkBytes+n > size && !part.Empty() {
			parts, part = append(parts, part), &Batch{}
		}
	}
	for l := range bytes.Lines(b.lines.Bytes()) {
		fits(len(l))
		part.lines.Write(l)
		part.events++
	}
	for _, c := range b.chunks {
		fits(len(c.Text) + chunkBytes)
		if len(part.chunks) == chunks {
			parts, part = append(parts, part), &Batch{}
		}
		part.chunks = append(part.chunks, c)
		part.text += len(c.Text)
	}
	return append(parts, part)
}

// chunkBytes bounds what a chunk needs in all columns together, without its text: ten bytes for
// each of five counts, nine for each of two stamps, and its share of the runs.
const chunkBytes = 96

// A group is the chunks of one request: indices into Batch.chunks, in order of arrival.
type group struct {
	request int
	index   []int32
}

// groups sorts the chunks by request and keeps their order within each.
func (b *Batch) groups() []group {
	counts := make(map[int]int)
	for i := range b.chunks {
		counts[b.chunks[i].Request]++
	}
	out := make([]group, 0, len(counts))
	index := make([]int32, len(b.chunks))
	for request, n := range counts {
		out = append(out, group{request: request, index: index[:0:n]})
		index = index[n:]
	}
	slices.SortFunc(out, func(a, b group) int {
		if a.request < b.request {
			return -1
		}
		return 1
	})
	position := counts // reused: where each request's group is
	for i, g := range out {
		position[g.request] = i
	}
	for i := range b.chunks {
		g := &out[position[b.chunks[i].Request]]
		g.index = append(g.index, int32(i))
	}
	return out
}
