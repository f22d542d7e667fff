//go:build linux && cuda && cgo

package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"gorgonia.org/cu"
	"velo/engine/ops"
)

const (
	// loadSlab is how much of a matrix is read, copied and packed at a time, loadSlots how many such
	// slabs are on their way: while one is copied and packed, the others are read.
	loadSlab, loadSlots = 16 << 20, 4
	// loadReads is how many reads of 4 MiB are in flight.
	loadReads = 8
	// loadParts is how many pieces lie in a slab: data, scales, factors of rows.
	loadParts = 3
)

// loader brings weights to the device, from files past the page cache or from memory. It holds memory
// while there is something on its way only; everything that goes wrong comes out of end at the latest.
type loader struct {
	b       *Backend
	reader  *ops.Reader
	size    int // of a slab, loadSlab if 0
	slots   []*slot
	staging *Pool
	next    int     // slot of the next slab
	begun   []*slot // in order, not copied yet
	loaded  ops.Loaded
}

// slot is memory for a slab, here and on the device, with the slab that lies in it or is on its way.
type slot struct {
	host   *HostMemory
	device Memory
	done   cu.Event // what was copied from it is copied, and packed
	busy   bool     // done was recorded
	slab   slab
	reads  [2]*ops.Read
	parts  [loadParts][]byte // of host; of those that are read, once they are there
	at     [loadParts]int64  // where each goes in device
}

// slab is rows of a matrix as a checkpoint has them: n from row on. Data and scales come from a file,
// or lie in part.
type slab struct {
	m           *Matrix
	format      Format // of the part
	row, n      int
	part        Part // Data and Scale may be empty, their sizes are those of sizes
	sizes       [2]int
	data, scale ops.Place
}

// open makes room for slabs on their way.
func (l *loader) open() error {
	if l.slots != nil {
		return nil
	}
	if err := l.room(); err != nil {
		return errorsOf(err, l.close())
	}
	return nil
}

func (l *loader) room() error {
	d := l.b.device
	// Each piece begins where a direct read may, and has room for what such a read takes more.
	size := int64(slotBytes(l.slabBytes()))
	var err error
	if l.staging, err = d.Pool(loadSlots * size); err != nil {
		return fmt.Errorf("cannot make room for weights on their way: %w", err)
	}
	l.reader = ops.NewReader(loadReads)
	for range loadSlots {
		s := &slot{}
		if s.host, err = d.HostMemory(int(size)); err != nil {
			return err
		}
		l.slots = append(l.slots, s)
		if s.device, err = l.staging.Take("weights on their way", size); err != nil {
			return err
		}
		if err = d.on(func() (err error) { s.done, err = cu.MakeEvent(cu.DisableTiming); return err }); err != nil {
			return err
		}
	}
	return nil
}

// slotBytes is the size of a slot for slabs of so many bytes.
func slotBytes(slab int) int { return slab + loadParts*2*ops.ReadAlign }

// matrix loads a tensor into the rows of a matrix from row on, as it lies in its files.
func (l *loader) matrix(m *Matrix, row int, t *ops.Weight) error {
	dataRow, scaleRow := t.RowBytes(), 0
	if t.Type == ops.NVFP4 {
		scaleRow = len(t.Scale) / t.Rows()
	}
	slabRows := l.rows(dataRow + scaleRow)
	for from := 0; from < t.Rows(); from += slabRows {
		n := min(slabRows, t.Rows()-from)
		s := slab{m: m, format: partFormat(t.Type, m.format), row: row + from, n: n, sizes: [2]int{n * dataRow, n * scaleRow}}
		s.part = Part{Rows: n, All: t.Global}
		if t.Type == ops.FP8Row || t.Type == ops.F16 {
			s.part.Row = rowFactors(t, from, n)
		}
		s.data, s.scale = later(t.DataAt, from*dataRow), later(t.ScaleAt, from*scaleRow)
		if s.data.File == nil {
			s.part.Data = t.Data[from*dataRow : (from+n)*dataRow]
		}
		if scaleRow > 0 && s.scale.File == nil {
			s.part.Scale = t.Scale[from*scaleRow : (from+n)*scaleRow]
		}
		if err := l.begin(s); err != nil {
			return err
		}
	}
	return nil
}

// rows is how many rows of so many bytes make a slab, a multiple of 16.
func (l *loader) rows(bytes int) int { return min(max(l.slabBytes()/(bytes+4)/16*16, 16), 65535*16) }

func (l *loader) slabBytes() int {
	if l.size > 0 {
		return l.size
	}
	return loadSlab
}

// later is a place some bytes further on; nowhere stays nowhere.
func later(p ops.Place, bytes int) ops.Place {
	if p.File != nil {
		p.Offset += int64(bytes)
	}
	return p
}

// rowFactors are the factors of rows of a tensor, n from row on.
func rowFactors(t *ops.Weight, from, n int) []float32 {
	f := make([]float32, n)
	for i := range f {
		f[i] = 1
		if t.Type == ops.FP8Row {
			f[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Scale[4*(from+i):]))
		}
	}
	return f
}

// begin takes a slab. What is not read from a file may be changed by the caller afterwards.
func (l *loader) begin(s slab) error {
	if err := l.open(); err != nil {
		return err
	}
	if len(l.begun) == len(l.slots) {
		if err := l.finish(); err != nil {
			return err
		}
	}
	to := l.slots[l.next]
	l.next = (l.next + 1) % len(l.slots)
	if to.busy {
		if err := l.b.device.on(to.done.Synchronize); err != nil {
			return fmt.Errorf("cannot copy weights to the GPU: %w", err)
		}
		to.busy = false
	}
	to.slab = s
	var factors []float32
	if s.format != BF16 {
		factors = factorsOf(s.format, &s.part)
	}
	at := 0
	place := func(i, n int) []byte {
		space := ops.ReadSpace(n)
		if at+space > len(to.host.Host) {
			panic(fmt.Sprintf("cuda: a slab of %d rows does not fit", s.n))
		}
		room := to.host.Host[at : at+space]
		to.at[i] = int64(at)
		at += space
		return room
	}
	for i, from := range []struct {
		place ops.Place
		bytes []byte
	}{{s.data, s.part.Data}, {s.scale, s.part.Scale}} {
		n := s.sizes[i]
		to.reads[i], to.parts[i] = nil, nil
		if n == 0 {
			continue
		}
		room := place(i, n)
		if from.place.File != nil {
			to.reads[i] = l.reader.Start(from.place, n, room)
			continue
		}
		to.parts[i] = room[:copy(room, from.bytes)]
	}
	room := place(2, 4*len(factors))
	to.parts[2] = room[:4*len(factors)]
	for i, f := range factors {
		binary.LittleEndian.PutUint32(room[4*i:], math.Float32bits(f))
	}
	l.begun = append(l.begun, to)
	return nil
}

// finish copies and packs the slab that was begun first.
func (l *loader) finish() error {
	s := l.begun[0] // until its reads have ended, however they do, close has to wait for them
	for i, read := range s.reads {
		if read == nil {
			continue
		}
		var err error
		if s.parts[i], err = read.Wait(); err != nil {
			return err
		}
	}
	l.begun = l.begun[1:]
	d, m := l.b.device, s.slab.m
	to := [loadParts]Memory{}
	for i, n := range s.slab.sizes {
		to[i] = s.device.Part(s.at[i], int64(n))
	}
	to[2] = m.factors.Part(int64(4*s.slab.row), int64(4*s.slab.n))
	err := d.on(func() error {
		for i, part := range s.parts {
			if len(part) == 0 {
				continue
			}
			if err := cu.MemcpyHtoDAsync(cu.DevicePtr(to[i].at), unsafe.Pointer(unsafe.SliceData(part)), int64(len(part)), d.stream); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot copy weights to the GPU: %w", err)
	}
	if err := l.b.k.packRows(m, s.slab.format, to[0], to[1], s.slab.row, s.slab.n); err != nil {
		return err
	}
	if err := d.on(func() error { return s.done.Record(d.stream) }); err != nil {
		return fmt.Errorf("cannot copy weights to the GPU: %w", err)
	}
	s.busy = true
	return nil
}

// end waits until all weights are on the device and gives the memory for them on their way back.
func (l *loader) end() error {
	if l.slots == nil && l.staging == nil {
		return nil
	}
	var errs []error
	for len(l.begun) > 0 && errs == nil {
		if err := l.finish(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, l.close())...)
}

// close gives everything back.
func (l *loader) close() error {
	var errs []error
	for _, s := range l.begun { // a read writes to what is about to go
		for _, read := range s.reads {
			if read != nil {
				_, _ = read.Wait()
			}
		}
	}
	if l.staging != nil { // copies read it
		errs = append(errs, l.b.device.Wait())
	}
	for _, s := range l.slots {
		errs = append(errs, s.host.Close())
		if s.done != (cu.Event{}) {
			errs = append(errs, l.b.device.on(func() error { return cu.DestroyEvent(&s.done) }))
		}
	}
	if l.staging != nil {
		errs = append(errs, l.staging.Close())
	}
	if l.reader != nil {
		all, cached := l.reader.Bytes()
		l.loaded.Read, l.loaded.Cached = l.loaded.Read+all, l.loaded.Cached+cached
		if why := l.reader.Refused(); why != "" {
			l.loaded.Refused = why
		}
		errs = append(errs, l.reader.Close())
	}
	l.slots, l.begun, l.staging, l.reader, l.next = nil, nil, nil, nil, 0
	return errors.Join(errs...)
}

// Loaded tells how the weights came that were loaded so far.
func (b *Backend) Loaded() ops.Loaded { return b.load.loaded }

// factorsOf are the factors of a part's rows as a product multiplies with them.
func factorsOf(format Format, p *Part) []float32 {
	factors := make([]float32, p.Rows)
	for i := range factors {
		if format == NVFP4 {
			factors[i] = p.All * formats[NVFP4].factor
		} else {
			factors[i] = p.Row[i] * formats[format].factor
		}
	}
	return factors
}

// packRows packs n rows in format that lie on the device, data and scales as in a [Part], into m from
// row on, a multiple of 16. Factors of rows in bfloat16 follow from these.
func (k *Kernels) packRows(m *Matrix, format Format, data, scales Memory, row, n int) error {
	factors := m.factors.Part(int64(4*row), int64(4*n))
	if format == BF16 {
		a := k.device.args.Reset().Pointer(data.at).Pointer(factors.at).Int(m.in)
		if err := k.factor.Launch(Grid{X: n, Block: 256}, a); err != nil {
			return err
		}
	}
	a := k.device.args.Reset().Pointer(data.at)
	if format == NVFP4 {
		a.Pointer(scales.at)
	}
	a.Pointer(m.weights.at).Int(n).Int(m.in).Int(m.units).Int(row / 16)
	if format == BF16 {
		a.Pointer(factors.at)
	}
	return k.pack[format].Launch(Grid{X: (m.units + 3) / 4, Y: (n + 15) / 16, Block: 128}, a)
}
