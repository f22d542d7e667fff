//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"slices"
	"unsafe"

	"gorgonia.org/cu"
	"velo/engine/ops"
)

// input is what a step brings besides activations, in one piece that is copied at
// once: int32 arrays of the batch, then the pages of its sequences one after the
// other. Where a row's pages begin is told in tables, so that the arrays lie at the
// same addresses in every step.
type input struct {
	rows   int
	host   *HostMemory
	pool   *Pool
	values []int32 // host
	used   int
	device Memory
	picked int // rows gathered so far in this step
	most   int // the largest position
}

// The arrays, each of as many values as a batch has rows at most; picks has four
// times as many. After them lie the choices of tokens, pickWords each, and then the
// pages, which the lists of these choices follow.
const (
	tokens = iota
	positions
	tables
	firsts
	counts
	slots
	picks
)

const arrays = picks + 4 // how many there are

// choices is where the choices of tokens lie.
func (n *input) choices() int { return arrays * n.rows }

// pages is where the pages begin.
func (n *input) pages() int { return n.choices() + min(mostPicks, n.rows)*pickWords }

func (n *input) open(d *Device, rows int) error {
	n.rows = rows
	return n.take(d, n.pages())
}

// room makes place for so many values. What was sent lies elsewhere then, so graphs are forgotten.
func (n *input) room(b *Backend, values int) error {
	if len(n.values) >= values {
		return nil
	}
	if err := b.forget(); err != nil {
		return err
	}
	b.settle() // what was sent may be on its way
	return n.take(b.device, values)
}

func (n *input) take(d *Device, values int) error {
	old := slices.Clone(n.values[:n.used]) // the memory itself goes
	if err := n.close(); err != nil {
		return err
	}
	var err error
	if n.pool, err = d.Pool(int64(4 * values)); err != nil {
		return err
	}
	if n.host, err = d.HostMemory(4 * values); err != nil {
		return err
	}
	n.device = n.pool.whole
	n.values = unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(n.host.Host))), values)
	copy(n.values, old)
	return nil
}

func (n *input) close() error {
	var err error
	if n.pool != nil {
		err = n.pool.Close()
		n.pool = nil
	}
	if n.host != nil {
		err = errorsOf(err, n.host.Close())
		n.host = nil
	}
	n.values = nil
	return err
}

// begin takes over a batch. The copy of the step before must be done.
func (n *input) begin(b *Backend, batch *ops.Batch) error {
	need := n.pages()
	for i := range batch.Segments {
		s := &batch.Segments[i]
		pages := (s.Past+s.Rows-1)/ops.PageTokens + 1
		if s.Row < 0 || s.Rows < 1 || s.Row+s.Rows > len(batch.Tokens) || s.Past < 0 || pages > len(s.Pages) {
			panic(fmt.Sprintf("cuda: rows %d to %d of %d, behind %d positions, with %d pages", s.Row, s.Row+s.Rows, len(batch.Tokens), s.Past, len(s.Pages)))
		}
		need += pages
	}
	n.used = 0
	if need > len(n.values) {
		if err := n.room(b, need+need/2); err != nil {
			return err
		}
	}
	array := func(i int) []int32 { return n.values[i*n.rows : (i+1)*n.rows] }
	copy(array(tokens), batch.Tokens)
	copy(array(positions), batch.Positions)
	n.used, n.picked, n.most = n.pages(), 0, 0
	for i := range batch.Segments {
		s := &batch.Segments[i]
		array(firsts)[i], array(counts)[i], array(slots)[i] = int32(s.Row), int32(s.Rows), s.State
		for r := range s.Rows {
			array(tables)[s.Row+r] = int32(n.used)
		}
		end := s.Past + s.Rows
		n.most = max(n.most, end-1)
		n.used += copy(n.values[n.used:], s.Pages[:(end-1)/ops.PageTokens+1])
	}
	return nil
}

// spare makes place for so many words of lists after the pages.
func (n *input) spare(b *Backend, words int) error {
	if n.used+words <= len(n.values) {
		return nil
	}
	return n.room(b, (n.used+words)*3/2)
}

// list gives place for words after all that is there.
func (n *input) list(words int) (place int, list []int32) {
	place = n.used
	n.used += words
	return place, n.values[place:n.used]
}

// pick adds rows to be gathered and gives where they lie among the picks.
func (n *input) pick(rows []int32) int {
	at := n.picked
	if at+len(rows) > 4*n.rows {
		panic("cuda: more rows are gathered in a step than four times those of a batch")
	}
	copy(n.values[picks*n.rows+at:], rows)
	n.picked += len(rows)
	return at
}

// at is where array i lies on the device, from value offset on.
func (n *input) at(i, offset int) Memory {
	from := int64(4 * (i*n.rows + offset))
	return n.device.Part(from, n.device.bytes-from)
}

// send copies all of it to the device.
func (n *input) send(d *Device) error {
	return d.on(func() error {
		return cu.MemcpyHtoDAsync(cu.DevicePtr(n.device.at), unsafe.Pointer(unsafe.SliceData(n.host.Host)), int64(4*n.used), d.stream)
	})
}
