//go:build linux && cuda && cgo

package cuda

import (
	"fmt"

	"velo/cuda/kernels"
)

// MaxRows is the largest number of rows that have the bits of one row at a time; more go
// through products of their own (kernels/product.cu).
const MaxRows = 16

// Format is how the weights of a matrix are stored.
type Format int

// The formats. BF16 is one of parts only: in a matrix it is F16.
const (
	F16   Format = iota // half with a float32 factor a row
	FP8                 // e4m3 with a float32 factor a row
	NVFP4               // e2m1 with an e4m3 scale for 16 neighbours of a row and a float32 factor a row
	BF16                // bfloat16
)

// formats describes those of matrices, as kernels/linear.cu has it.
var formats = [...]struct {
	name        string
	cols, bytes int     // a unit: 16 rows by cols, and its bytes
	factor      float32 // what a decoded weight is to be multiplied with
}{
	F16:   {"f16", 32, 1024, 1},
	FP8:   {"fp8", 64, 1024, 1 << 8},
	NVFP4: {"nvfp4", 128, 1152, 1 << 7},
}

// String is the format's name.
func (f Format) String() string {
	if f == BF16 {
		return "bf16"
	}
	return formats[f].name
}

// kept is the format of a matrix that is made of parts in f. A bfloat16 becomes a half
// without a loss that matters: a factor brings a row's largest number to 2¹⁴ and more, so
// no number is off by more than 2⁻³⁹ of that.
func (f Format) kept() Format {
	if f == BF16 {
		return F16
	}
	return f
}

// units is how many units a row of cols values takes. Of 16 bits two lie together.
func (f Format) units(cols int) int {
	together := max(formats[f].cols, 64)
	return (cols + together - 1) / together * together / formats[f].cols
}

// Kernels is the portable kernels loaded on a device.
type Kernels struct {
	device *Device
	narrow [len(formats)][2][len(shapes)]*Kernel            // products of up to 8 and of up to 16 rows
	owned  [len(formats)][len(shapes)][len(sources)]*Kernel // of few rows that each block prepares for itself
	wide   [len(formats)]*Kernel                            // of up to 16, with a large matrix
	pack   [BF16 + 1]*Kernel
	factor *Kernel // of rows in bfloat16
	split  [len(sources)]*Kernel
	read   *Kernel
	fill   *Kernel
	elementKernels
	attentionKernels
	recurrentKernels
	products productKernels
	fp4      *fp4Kernels // nil: not loaded
	sampleKernels
	fused fusedKernels
	ways  ways

	own      *Pool  // what follows lies here
	scratch  Memory // sums of parts of the columns
	counters Memory // how many blocks are done with theirs
	powers   Memory // of rows that a product left for the one behind it, a byte for 16 columns
}

// shape is how a product of up to 16 rows is compiled: row tiles a warp, and units
// of weights on their way.
type shape struct{ tiles, stages int }

var shapes = [...]shape{{1, 3}, {1, 4}, {2, 3}}

// scratchBytes bounds how a product of 9 to 16 rows may be divided; counterBytes
// is as many counters as that can take.
const scratchBytes, counterBytes = 32 << 20, 16 << 10

// Kernels compiles and loads the portable kernels and the memory that they need
// for themselves. Close the device after them.
func (d *Device) Kernels() (*Kernels, error) {
	k := &Kernels{device: d}
	ptx := map[string][]byte{}
	for _, name := range kernels.Modules {
		ptx[name] = kernels.PTX(name, d.facts.Capability())
	}
	modules, err := d.LoadAll(ptx)
	if err != nil {
		return nil, err
	}
	dependent := kernels.Dependent(d.facts.Capability())
	find := func(to **Kernel, module, name string) {
		if err == nil {
			if *to, err = modules[module].Kernel(name); err == nil {
				(*to).dependent = dependent && module != "memory"
			}
		}
	}
	k.elementKernels.find(func(to **Kernel, name string) { find(to, "elements", name) })
	k.attentionKernels.find(find)
	k.recurrentKernels.find(func(to **Kernel, name string) { find(to, "recurrent", name) })
	k.chunkKernels.find(func(to **Kernel, name string) { find(to, "chunks", name) })
	k.products.find(func(to **Kernel, name string) { find(to, "product", name) })
	k.sampleKernels.find(func(to **Kernel, name string) { find(to, "sample", name) })
	find(&k.read, "memory", "read_memory")
	find(&k.fill, "memory", "fill_random")
	find(&k.factor, "pack", "bf16_factors")
	find(&k.pack[BF16], "pack", "pack_bf16")
	for i, source := range sources {
		find(&k.split[i], "pack", "split"+source)
	}
	for f := range formats {
		format := Format(f).String()
		find(&k.pack[f], "pack", "pack_"+format)
		find(&k.embed[f], "elements", "embed_"+format)
		find(&k.wide[f], "linear", "linear_"+format+"_n16")
		products := []*Kernel{k.wide[f]}
		for i := range k.narrow[f] {
			for j, s := range shapes {
				find(&k.narrow[f][i][j], "linear", fmt.Sprintf("linear_%s_r%d_s%d_n%d", format, s.tiles, s.stages, 8*(i+1)))
			}
			products = append(products, k.narrow[f][i][:]...)
		}
		for i, s := range shapes {
			for j, source := range sources {
				if j != siluSource {
					find(&k.owned[f][i][j], "linear", fmt.Sprintf("linear_%s_r%d_s%d_own%s", format, s.tiles, s.stages, source))
					products = append(products, k.owned[f][i][j])
				}
			}
		}
		for _, kernel := range products {
			if err == nil {
				err = kernel.Allow(d.facts.Shared - fixedShared)
			}
		}
	}
	k.fused.find(func(to **Kernel, name string) { find(to, "fused", name) })
	for _, kernel := range k.fused.all() {
		if err == nil {
			err = kernel.Allow(d.facts.Shared - fixedShared)
		}
	}
	if err == nil {
		err = k.chunkKernels.allow()
	}
	if err == nil {
		err = k.products.allow()
	}
	if err != nil {
		return nil, err
	}
	if k.own, err = d.Pool(scratchBytes + counterBytes + fusedRows*powerBytes); err != nil {
		return nil, fmt.Errorf("cannot place the scratch of the kernels on the GPU: %w", err)
	}
	k.scratch, _ = k.own.Take("scratch", scratchBytes)
	k.counters, _ = k.own.Take("counters", counterBytes)
	k.powers, _ = k.own.Take("powers", fusedRows*powerBytes)
	return k, k.counters.Fill(0)
}

// Close frees the memory that the kernels have for themselves.
func (k *Kernels) Close() error { return k.own.Close() }

// fixedShared is the shared memory of fixed size that a kernel has at most. portableShared is what a
// block may ask for beside that on every device since compute capability 8.6, GB10 among them;
// blocks that need no more may take more where there is more.
const fixedShared, portableShared = 2 << 10, 97 << 10

// Matrix is the weight of a linear layer on the device, [Out, In].
type Matrix struct {
	format  Format
	out, in int
	units   int // along a row
	weights Memory
	factors Memory // float32 [out]
}

// Out is the number of rows, which is the width of the output.
func (m *Matrix) Out() int { return m.out }

// In is the width of the input.
func (m *Matrix) In() int { return m.in }

// Bytes is what a product reads of the device's memory for m.
func (m *Matrix) Bytes() int64 { return m.weights.bytes + m.factors.bytes }

// Part is rows of a matrix as a checkpoint has them.
type Part struct {
	Rows  int
	Data  []byte    // BF16, F16: [rows, in] little-endian; FP8: [rows, in]; NVFP4: [rows, in/2], the even column in the lower half
	Scale []byte    // NVFP4: [rows, in/16] e4m3
	Row   []float32 // FP8, F16: [rows] factors
	All   float32   // NVFP4: the factor of the whole part
}

// placer hands out device memory; what says what for in an error.
type placer interface {
	Take(what string, bytes int64) (Memory, error)
}

// blank makes room in pool for a matrix of parts in format.
func (k *Kernels) blank(pool placer, format Format, out, in int) (*Matrix, error) {
	format = format.kept()
	f := &formats[format]
	m := &Matrix{format: format, out: out, in: in, units: format.units(in)}
	var err error
	what := fmt.Sprintf("a matrix of %d × %d in %s", out, in, format)
	tiles := (out + 31) / 32 * 2
	if m.weights, err = pool.Take(what, int64(tiles)*int64(m.units)*int64(f.bytes)); err != nil {
		return nil, err
	}
	if m.factors, err = pool.Take(what, int64(out)*4); err != nil {
		return nil, err
	}
	return m, m.weights.Fill(0) // rows and columns that pad it
}

// Matrix packs parts, one above the other, into pool. All but the last have a
// multiple of 16 rows. scratch holds a part's data while it is packed.
func (k *Kernels) Matrix(pool placer, scratch Memory, format Format, in int, parts ...Part) (*Matrix, error) {
	out := 0
	for i, p := range parts {
		if out%16 != 0 {
			return nil, fmt.Errorf("cannot stack part %d of a matrix: the %d rows before it are not a multiple of 16", i, out)
		}
		if err := p.check(format, in); err != nil {
			return nil, fmt.Errorf("cannot use part %d of a matrix: %w", i, err)
		}
		out += p.Rows
	}
	m, err := k.blank(pool, format, out, in)
	if err != nil {
		return nil, err
	}
	row := 0
	for _, p := range parts {
		if err := k.packPart(m, scratch, format, p, row); err != nil {
			return nil, err
		}
		row += p.Rows
	}
	return m, nil
}

// check holds the sizes of a part against the format.
func (p *Part) check(format Format, in int) error {
	if format == NVFP4 && in%16 != 0 {
		return fmt.Errorf("rows of %d values are not a multiple of 16", in)
	}
	want := [...]struct{ data, scale, row int }{
		BF16: {p.Rows * in * 2, 0, 0}, FP8: {p.Rows * in, 0, p.Rows}, NVFP4: {p.Rows * in / 2, p.Rows * in / 16, 0},
		F16: {p.Rows * in * 2, 0, p.Rows},
	}[format]
	if len(p.Data) != want.data || len(p.Scale) != want.scale || len(p.Row) != want.row {
		return fmt.Errorf("%d × %d values in %s are %d bytes, %d scales and %d factors, not %d, %d and %d",
			p.Rows, in, format, want.data, want.scale, want.row, len(p.Data), len(p.Scale), len(p.Row))
	}
	return nil
}

// packPart packs a part in format, whose first row is row number first of m, a slab of rows
// at a time, as many as scratch holds.
func (k *Kernels) packPart(m *Matrix, scratch Memory, format Format, p Part, first int) error {
	if format != BF16 {
		if err := Upload(m.factors.Part(int64(4*first), int64(4*p.Rows)), factorsOf(format, &p)); err != nil {
			return err
		}
	}
	dataRow, scaleRow := len(p.Data)/p.Rows, len(p.Scale)/p.Rows
	slab := int(scratch.bytes-alignment) / (dataRow + scaleRow) / 16 * 16
	if slab < 16 {
		return fmt.Errorf("cannot pack a matrix of %d columns through %d bytes of scratch memory", m.in, scratch.bytes)
	}
	slab = min(slab, 65535*16)
	for row := 0; row < p.Rows; row += slab {
		n := min(slab, p.Rows-row)
		if err := Upload(scratch, p.Data[row*dataRow:(row+n)*dataRow]); err != nil {
			return err
		}
		var scales Memory
		if format == NVFP4 {
			scales = scratch.Part((int64(n*dataRow)+15)&^15, int64(n*scaleRow))
			if err := Upload(scales, p.Scale[row*scaleRow:(row+n)*scaleRow]); err != nil {
				return err
			}
		}
		if err := k.packRows(m, format, scratch, scales, first+row, n); err != nil {
			return err
		}
		if err := k.device.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// Operand is rows of activations as the tensor cores take them: halves, each row divided
// by a power of two.
type Operand struct {
	cols, width int    // values of a row, and with the zeros that pad it
	n           int    // rows
	values      Memory // halves [n, width], see kernels/formats.cuh
	scales      Memory // float32 [n]
}

// operandWidth is the halves of a row: a whole number of units of any format.
func operandWidth(cols int) int { return (cols + 127) / 128 * 128 }

// operandBytes is what [Operand].values of so many rows takes.
func operandBytes(cols, rows int) int64 {
	if rows <= MaxRows {
		rows = MaxRows
	} else {
		rows = (rows + productGroup - 1) / productGroup * productGroup
	}
	return int64(rows) * 2 * int64(operandWidth(cols))
}

// Operand makes room for rows rows of activations of cols columns.
func (k *Kernels) Operand(pool placer, cols, rows int) (*Operand, error) {
	if cols < 1 || cols > operandMost {
		return nil, fmt.Errorf("cannot multiply rows of %d values: 1 to %d are possible", cols, operandMost)
	}
	o := &Operand{cols: cols, width: operandWidth(cols)}
	var err error
	if o.values, err = pool.Take("activations", operandBytes(cols, rows)); err != nil {
		return nil, err
	}
	o.scales, err = pool.Take("activations", int64(max(rows, MaxRows)*4))
	return o, err
}

// operandMost is the most columns of an operand: what 1,024 threads hold in registers.
const operandMost = 32 << 10

// tiles is how many tiles of 8 columns the tensor cores work on for n rows.
func tiles(n int) int {
	switch {
	case n <= 8:
		return 1
	case n <= MaxRows:
		return 2
	}
	return productGroup / 8
}

// The rows that an operand is made of (kernels/activations.cuh).
const (
	plainSource = iota
	normSource
	siluSource
	gatedSource
)

// sources are the ends of the names of kernels that read them: values, values to be
// normalised, gated ones, both.
var sources = [...]string{plainSource: "", normSource: "_norm", siluSource: "_silu", gatedSource: "_gated"}

// activations are rows of one of them, float32.
type activations struct {
	source  int
	x, gate View   // gate of siluSource and gatedSource
	norm    Memory // of normSource [cols], of gatedSource [Dim of x]
	eps     float32
}

// append appends the arguments of a kernel that reads rows of cols values.
func (a *activations) append(to *Args, cols int) *Args {
	return to.Pointer(a.x.first()).Pointer(a.gate.first()).Pointer(a.norm.at).Int(a.x.Pitch).Int(a.gate.Pitch).Int(cols).Int(a.x.Dim).
		Float(a.eps).Int(operandWidth(cols))
}

// Split sets o to n rows of float32 activations, pitch values apart.
func (k *Kernels) Split(o *Operand, x Memory, n, pitch int) error {
	return k.splitFrom(o, &activations{x: View{Memory: x, Pitch: pitch}}, n)
}

// SplitNorm sets o to n rows of x / √(mean(x²)+eps) ⊙ w, w float32 [columns].
func (k *Kernels) SplitNorm(o *Operand, x View, w Memory, eps float32, n int) error {
	return k.splitFrom(o, &activations{source: normSource, x: x, norm: w, eps: eps}, n)
}

// SplitSiLU sets o to n rows of silu(gate) ⊙ x.
func (k *Kernels) SplitSiLU(o *Operand, gate, x View, n int) error {
	return k.splitFrom(o, &activations{source: siluSource, x: x, gate: gate}, n)
}

// SplitGated sets o to n rows of silu(gate) ⊙ y, where y is x with each head divided by
// √(mean(x²)+eps) and multiplied by w, float32 [Dim of x]. Dim is a power of two, 8 to
// 256, and heads lie one after the other.
func (k *Kernels) SplitGated(o *Operand, gate, x View, w Memory, eps float32, n int) error {
	return k.splitFrom(o, &activations{source: gatedSource, x: x, gate: gate, norm: w, eps: eps}, n)
}

// splitFrom sets o to n rows of what from says.
func (k *Kernels) splitFrom(o *Operand, from *activations, n int) error {
	o.n = n
	a := from.append(k.device.args.Reset(), o.cols).Pointer(o.values.at).Pointer(o.scales.at)
	threads := eights(o.width)
	return k.split[from.source].Launch(Grid{X: n, Block: threads}, a)
}

// Product is y = x·mᵀ + bias for the rows of x.
type Product struct {
	Y     Memory // float32 [rows, Pitch]
	Pitch int
	X     *Operand // of the width of M
	M     *Matrix
	Bias  Memory // float32 [Out] or empty
	Add   bool   // add to y instead of setting it
}

// Linear computes a product.
func (k *Kernels) Linear(p *Product) error {
	return k.product(p, plan(p.M, p.X.n))
}

// fewMost and fewCols are the most rows and columns of a matrix that [Kernels.Few] is for;
// from fewCols/8 columns on it is the faster one.
const fewMost, fewCols = 128, 8192

// few tells whether products of up to [MaxRows] rows with m are computed by Few.
func few(m *Matrix) bool {
	return m.format == F16 && m.out <= fewMost && m.in >= fewCols/8 && m.in <= fewCols
}

// fewProduct is n rows of x·mᵀ + bias for a matrix of few rows, or of that added to y. If
// norm is not empty, x is divided by √(mean(x²)+eps) and multiplied by norm, float32
// [columns], first.
type fewProduct struct {
	y, x       View
	m          *Matrix
	bias, norm Memory
	eps        float32
	add        bool
	n          int
}

var noFew = fewProduct{m: &Matrix{}}

// append appends the arguments of a kernel that computes f; nil is none.
func (f *fewProduct) append(to *Args) *Args {
	if f == nil {
		f = &noFew
	}
	return to.Pointer(f.m.weights.at).Pointer(f.m.factors.at).Pointer(f.x.first()).Int(f.x.Pitch).Pointer(f.norm.at).Float(f.eps).
		Pointer(f.bias.at).Pointer(f.y.first()).Int(f.y.Pitch).Int(f.m.in).Int(f.m.units).Bool(f.add).Int(f.m.out).Int(f.n)
}

// Few computes a product with a matrix of few rows.
func (k *Kernels) Few(f *fewProduct) error {
	a := f.append(k.device.args.Reset()).Pointer(0).Int(0).Pointer(0).Pointer(0).Pointer(0).Pointer(0).Pointer(0).Pointer(0).Pointer(0).
		Int(0).Int(0).Int(0)
	return k.convolve.Launch(Grid{X: f.m.out, Y: f.n, Block: 128}, a)
}
