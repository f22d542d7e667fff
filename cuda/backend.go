//go:build linux && cuda && cgo

package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"gorgonia.org/cu"
	"velo/engine/ops"
	"velo/engine/sample"
)

// BackendOptions size a backend.
type BackendOptions struct {
	Device  int        // number of the GPU
	Rows    int        // most rows of a batch, 512 if 0
	KV      ops.KVType // how keys and values are stored
	Eager   bool       // every step as single launches, never as a graph
	Options            // of the device
}

// Backend is an [ops.Backend] on a GPU.
//
// Calls between Begin and Read are noted and run at Read, or when something else needs
// their result; a step of up to [MaxRows] rows that was seen before is then one launch of a
// graph. An error of the device is a panic with a *[Fault], since the operations
// return none.
type Backend struct {
	options BackendOptions
	device  *Device
	k       *Kernels
	memory  arena
	scratch Memory // of attention
	load    loader
	input   input

	buffers  []*buffer
	operands map[int]*Operand // of so many columns
	values   Memory           // of all operands, one at a time
	need     int64            // bytes of it
	scales   Memory
	turns    Turns
	inverse  map[*ops.Rope]Memory

	batch    ops.Batch // of the step, with segments of its own
	calls    []call
	state    dispatch
	graphs   []*captured
	waiting  bool // launches may be on their way
	result   *HostMemory
	choice   choices
	chosen   *HostMemory // of choice
	picked   []int       // likeliest tokens wanted for each choice of the step
	tops     []sample.LogProb
	finished bool
	failed   error  // there was no room for a buffer
	fault    *Fault // the device failed: no step comes after it
}

var _ ops.Backend = (*Backend)(nil)

// NewBackend opens a GPU and makes a backend of it.
func NewBackend(o BackendOptions) (*Backend, error) {
	if o.Rows <= 0 {
		o.Rows = 512
	}
	d, err := Open(o.Device, o.Options)
	if err != nil {
		return nil, err
	}
	b := &Backend{options: o, device: d, operands: map[int]*Operand{}, inverse: map[*ops.Rope]Memory{}}
	b.memory.device, b.load.b = d, b
	if b.k, err = d.Kernels(); err == nil {
		b.scales, err = b.memory.Take("activations", int64(4*max(o.Rows, MaxRows)))
	}
	if err == nil {
		err = b.input.open(d, o.Rows)
	}
	if err != nil {
		return nil, errorsOf(err, b.Close())
	}
	return b, nil
}

// Device is the GPU that the backend computes on.
func (b *Backend) Device() *Device { return b.device }

// Close gives everything back.
func (b *Backend) Close() error {
	if b.finished {
		return nil
	}
	b.finished = true
	var errs []error
	if b.waiting { // what is launched reads and writes the memory that goes
		errs = append(errs, b.device.Wait())
		b.waiting = false
	}
	b.forget(&errs)
	errs = append(errs, b.load.close(), b.input.close())
	if b.result != nil {
		errs = append(errs, b.result.Close())
	}
	if b.chosen != nil {
		errs = append(errs, b.chosen.Close())
	}
	errs = append(errs, b.memory.Close())
	if b.k != nil && b.k.own != nil {
		errs = append(errs, b.k.Close())
	}
	return errors.Join(append(errs, b.device.Close())...)
}

// Name tells the device.
func (b *Backend) Name() string { return "cuda (" + b.device.facts.Name + ")" }

// Rows is the largest number of rows in a batch.
func (b *Backend) Rows() int { return b.options.Rows }

// must ends the work on an error of the device, for good: the calls of the step that failed are
// forgotten, and no other step begins, since it would go on with half of what this one did.
func (b *Backend) must(err error) {
	if err == nil {
		return
	}
	b.calls = b.calls[:0]
	if b.fault == nil {
		b.fault = &Fault{Err: err}
	}
	panic(b.fault)
}

// buffer is activations, float32 [rows, cols].
type buffer struct {
	rows, cols int
	memory     Memory
	writes     int // since the step began
}

// Cols is the width of a row.
func (b *buffer) Cols() int { return b.cols }

// Buffer makes an activation of rows × cols values. If there is no room, Matrix, Vector
// and Cache say so from then on.
func (b *Backend) Buffer(rows, cols int) ops.Buffer {
	m, err := b.memory.Take(fmt.Sprintf("activations of %d × %d values", rows, cols), int64(4*rows*cols))
	if err != nil && b.failed == nil {
		b.failed = err
	}
	f := &buffer{rows: rows, cols: cols, memory: m}
	b.buffers = append(b.buffers, f)
	return f
}

// scratchLeast is what attention has for its sums from the beginning.
const scratchLeast = 65 << 20

// loading makes room that a step would have to make otherwise.
func (b *Backend) loading() error { return b.grow(&b.scratch, "scratch", scratchLeast) }

// grow makes a memory at least so large. What lay in it is lost, and what was
// captured with it.
func (b *Backend) grow(m *Memory, what string, bytes int64) error {
	if m.bytes >= bytes {
		return nil
	}
	var errs []error
	b.forget(&errs)
	var err error
	*m, err = b.memory.Take(what, bytes)
	return errors.Join(append(errs, err)...)
}

// operand notes that products with rows of cols values will come.
func (b *Backend) operand(cols int) {
	if b.operands[cols] == nil {
		b.operands[cols] = &Operand{cols: cols, width: operandWidth(cols)}
		b.need = max(b.need, operandBytes(cols, b.options.Rows))
	}
}

// Begin starts a step. After a fault it says so again.
func (b *Backend) Begin(batch *ops.Batch) {
	if b.fault != nil {
		panic(b.fault)
	}
	if len(batch.Tokens) > b.options.Rows {
		panic(fmt.Sprintf("cuda: a batch of %d rows on a backend made for %d", len(batch.Tokens), b.options.Rows))
	}
	b.flush()
	b.settle()
	b.must(b.load.end())
	segments := append(b.batch.Segments[:0], batch.Segments...) // calls may run when the caller's are others
	b.batch = *batch
	b.batch.Segments = segments
	b.must(b.input.begin(b, batch))
}

// settle waits for what was launched.
func (b *Backend) settle() {
	if b.waiting {
		b.must(b.device.Wait())
		b.waiting = false
	}
}

// Read waits for the step and gives the first rows rows of x.
func (b *Backend) Read(x ops.Buffer, rows int) []float32 {
	f := x.(*buffer)
	b.must(b.results(f))
	b.flush()
	n := rows * f.cols
	if n > 0 {
		b.must(b.device.on(func() error {
			return cu.MemcpyDtoHAsync(unsafe.Pointer(unsafe.SliceData(b.result.Host)), cu.DevicePtr(f.memory.at), int64(4*n), b.device.stream)
		}))
		b.waiting = true
	}
	b.settle()
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b.result.Host))), n)
}
