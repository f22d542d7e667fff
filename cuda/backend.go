//go:build linux && cuda && cgo

package cuda

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"gorgonia.org/cu"
	"velo/cuda/kernels"
	"velo/engine/ops"
	"velo/engine/sample"
)

// BackendOptions size a backend.
type BackendOptions struct {
	Device  int        // number of the GPU
	Rows    int        // most rows of a batch, 512 if 0
	KV      ops.KVType // how keys and values are stored
	Eager   bool       // every step as single launches, never as a graph
	Reserve int64      // bytes that the model will ask for, all of them taken at once; 0 = as they are asked for
	FP4     bool       // products of more than MaxRows rows with NVFP4 take x in NVFP4 too, which loses accuracy; compute capability 12.1 only
	Options            // of the device

	patience time.Duration // of Close, in tests
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
	scratch room // of attention
	load    loader
	input   input

	buffers  []*buffer
	operands map[int]*Operand // of so many columns
	values   room             // of all operands, one at a time
	need     int64            // bytes of it
	fours    room             // the operand at hand in NVFP4
	fourNeed int64            // bytes of it
	scales   Memory
	turns    Turns
	angles   room // of turns
	inverse  map[*ops.Rope]Memory

	batch   ops.Batch // of the step, with segments of its own
	calls   []call
	state   dispatch
	shapes  stepShapes
	waiting bool // launches may be on their way
	result  *HostMemory
	choice  choices
	chosen  *HostMemory // of choice
	picked  []int       // likeliest tokens wanted for each choice of the step
	tops    []sample.LogProb
	failed  error  // there was no room for a buffer
	fault   *Fault // the device failed: no step comes after it

	busy      sync.Mutex   // held by what uses the device
	closed    atomic.Bool  // Close was called
	finished  bool         // and has given everything back
	preparing atomic.Int32 // graphs being made
}

// room is memory of its own, which may become larger.
type room struct {
	Memory
	pool *Pool
}

var _ ops.Backend = (*Backend)(nil)

// NewBackend opens a GPU and makes a backend of it.
func NewBackend(o BackendOptions) (*Backend, error) {
	if o.Rows <= 0 {
		o.Rows = 512
	}
	if o.Rows > mostRows {
		return nil, fmt.Errorf("cannot compute steps of %d rows on the GPU: up to %d are possible", o.Rows, mostRows)
	}
	d, err := Open(o.Device, o.Options)
	if err != nil {
		return nil, err
	}
	if o.FP4 {
		if err := checkFP4(d.Facts()); err != nil {
			return nil, errorsOf(err, d.Close())
		}
	}
	b := &Backend{options: o, device: d, operands: map[int]*Operand{}, inverse: map[*ops.Rope]Memory{}}
	b.memory.device, b.load.b = d, b
	if b.k, err = d.Kernels(); err == nil && o.FP4 {
		err = b.k.loadFP4(kernels.FP4(), true)
	}
	if err == nil && o.Reserve > 0 {
		err = b.memory.Reserve(reserve(o.Reserve, o.Rows))
	}
	if err == nil {
		b.scales, err = b.memory.Take("activations", scaleBytes(o.Rows))
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

// mostRows is what a grid has room for.
const mostRows = 65535

// scaleBytes is the scales of the rows of operands.
func scaleBytes(rows int) int64 { return int64(4 * max(rows, MaxRows)) }

// closePatience is how long Close waits for a step that runs and for what was launched.
const closePatience = 10 * time.Second

// Close gives everything back. It may be called from any goroutine, and again, which does nothing. A
// step that runs is waited for, and no other begins. A device that does not come back within ten
// seconds keeps what it has, and the error says so.
func (b *Backend) Close() error {
	if b.closed.Swap(true) {
		return nil
	}
	closed := make(chan error, 1)
	go func() {
		b.busy.Lock()
		defer b.busy.Unlock()
		closed <- b.close()
	}()
	patience := time.NewTimer(b.patience())
	defer patience.Stop()
	select {
	case err := <-closed:
		return err
	case <-patience.C:
		last, _ := b.Doing()
		return fmt.Errorf("cannot give back %s: what was launched did not end within %v, the last were %s", b.device.facts.Name, b.patience(), last)
	}
}

// patience is closePatience, or what a test has instead.
func (b *Backend) patience() time.Duration {
	if b.options.patience > 0 {
		return b.options.patience
	}
	return closePatience
}

// Doing implements [ops.Watched].
func (b *Backend) Doing() (last string, preparing bool) {
	return b.device.launched(), b.preparing.Load() > 0
}

// Graphs is how many graphs of steps are kept; any goroutine may ask.
func (b *Backend) Graphs() int { return int(b.shapes.count.Load()) }

// enter begins something that uses the device, leave ends it.
func (b *Backend) enter() {
	b.busy.Lock()
	if b.closed.Load() {
		b.busy.Unlock()
		panic(&Fault{Err: errClosed})
	}
}

func (b *Backend) leave() { b.busy.Unlock() }

var errClosed = errors.New("the device was given back")

func (b *Backend) close() error {
	if b.finished {
		return nil
	}
	b.finished = true
	var errs []error
	if b.waiting { // what is launched reads and writes the memory that goes
		errs = append(errs, b.device.Wait())
		b.waiting = false
	}
	errs = append(errs, b.forget(), b.load.close(), b.input.close())
	if b.result != nil {
		errs = append(errs, b.result.Close())
	}
	if b.chosen != nil {
		errs = append(errs, b.chosen.Close())
	}
	for _, r := range []*room{&b.scratch, &b.values, &b.fours, &b.angles} {
		if r.pool != nil {
			errs = append(errs, r.pool.Close())
		}
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
	b.enter()
	defer b.leave()
	m, err := b.memory.Take(fmt.Sprintf("activations of %d × %d values", rows, cols), int64(4*rows*cols))
	if err != nil && b.failed == nil {
		b.failed = err
	}
	f := &buffer{rows: rows, cols: cols, memory: m}
	b.buffers = append(b.buffers, f)
	return f
}

// provide makes room, once there is a cache and with it a model, for whatever steps will need: from then
// on none allocates anything.
func (b *Backend) provide(s *ops.CacheShape, pages, sequences int) error {
	err := b.grow(&b.values, "activations", b.need)
	if err == nil {
		err = b.grow(&b.fours, "activations in FP4", b.fourNeed)
	}
	if err == nil && s.Attention > 0 {
		if err = b.grow(&b.scratch, "scratch of attention", attentionBytes(s, pages, b.options.Rows)); err == nil {
			err = b.turning(s.HeadDim / 2)
		}
	}
	if err == nil {
		err = b.input.room(b, b.input.pages()+pageWords(s, pages, b.options.Rows, sequences)+b.choice.lists())
	}
	return err
}

// turning makes room for the angles of so many pairs.
func (b *Backend) turning(pairs int) error {
	half := int64(4 * b.options.Rows * pairs)
	if b.turns.Cosine.bytes >= half {
		return nil
	}
	if err := b.grow(&b.angles, "angles", 2*half); err != nil {
		return err
	}
	b.turns.Cosine, b.turns.Sine = b.angles.Part(0, half), b.angles.Part(half, half)
	return nil
}

// grow makes a memory at least so large. What lay in it is lost, and what was captured with it; the
// memory itself is given back.
func (b *Backend) grow(r *room, what string, bytes int64) error {
	if r.bytes >= bytes {
		return nil
	}
	if err := b.forget(); err != nil {
		return err
	}
	if r.pool != nil {
		b.settle()
		if err := r.pool.Close(); err != nil {
			return fmt.Errorf("cannot give back memory on the GPU: %w", err)
		}
		*r = room{}
	}
	p, err := b.device.Pool(bytes)
	if err != nil {
		return fmt.Errorf("cannot place %s on the GPU: %w", what, err)
	}
	*r = room{p.whole, p}
	return nil
}

// operand notes that products of a matrix in format with rows of cols values will come.
func (b *Backend) operand(format Format, cols int) {
	if b.operands[cols] == nil {
		b.operands[cols] = &Operand{cols: cols, width: operandWidth(cols)}
		b.need = max(b.need, operandBytes(cols, b.options.Rows))
	}
	if b.k.fp4 != nil && format == NVFP4 && b.options.Rows > MaxRows {
		b.fourNeed = max(b.fourNeed, fp4Bytes(cols, b.options.Rows))
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
	b.enter()
	defer b.leave()
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
	if rows < 0 || rows > f.rows {
		panic(fmt.Sprintf("cuda: %d rows of a buffer of %d are read", rows, f.rows))
	}
	b.enter()
	defer b.leave()
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
