//go:build linux && cuda && cgo

package cuda

import (
	"fmt"

	"velo/cuda/kernels"
)

// MaxRows is the largest number of rows that a product by [Kernels.Linear] has.
const MaxRows = 16

// Format is how the weights of a matrix are stored.
type Format int

// The formats.
const (
	BF16  Format = iota // bfloat16
	FP8                 // e4m3 with a float32 factor a row
	NVFP4               // e2m1 with an e4m3 scale for 16 neighbours of a row and a float32 factor a row
)

// formats describes each, as kernels/linear.cu has it.
var formats = [...]struct {
	name        string
	cols, bytes int     // a unit: 16 rows by cols, and its bytes
	factor      float32 // what a decoded weight is to be multiplied with
	half        bool    // activations are split into halves, not bfloat16
}{
	BF16:  {"bf16", 32, 1024, 1, false},
	FP8:   {"fp8", 64, 1024, 1 << 8, true},
	NVFP4: {"nvfp4", 128, 1152, 1 << 7, true},
}

// String is the format's name.
func (f Format) String() string { return formats[f].name }

// Kernels is the portable kernels loaded on a device.
type Kernels struct {
	device *Device
	linear map[variant]*Kernel
	pack   [len(formats)]*Kernel
	split  [2]*Kernel // to bfloat16, to halves
	read   *Kernel
	fill   *Kernel

	dependent bool // linear kernels may be launched before the one ahead has ended
}

// variant is one of the kernels of a linear layer.
type variant struct {
	format Format
	tiles  int // row tiles a warp
	stages int
	width  int // rows of activations: 4, 8, 16
}

func (v variant) String() string {
	return fmt.Sprintf("linear_%s_r%d_s%d_n%d", v.format, v.tiles, v.stages, v.width)
}

// shapes are the pairs of row tiles a warp and stages that are compiled.
var shapes = [...]struct{ tiles, stages int }{{1, 3}, {1, 4}, {2, 3}}

// Kernels compiles and loads the portable kernels.
func (d *Device) Kernels() (*Kernels, error) {
	k := &Kernels{device: d, linear: map[variant]*Kernel{}}
	name, ptx := "linear", kernels.Linear
	if d.facts.Major >= 9 {
		name, ptx, k.dependent = "linear90", kernels.Linear90, true
	}
	linear, err := d.Load(name, ptx)
	if err != nil {
		return nil, err
	}
	for f := range formats {
		for _, s := range shapes {
			for _, width := range []int{4, 8, 16} {
				v := variant{Format(f), s.tiles, s.stages, width}
				if k.linear[v], err = linear.Kernel(v.String()); err != nil {
					return nil, err
				}
				if err := k.linear[v].Allow(min(d.facts.Shared, portableShared)); err != nil {
					return nil, err
				}
			}
		}
	}
	pack, err := d.Load("pack", kernels.Pack)
	if err != nil {
		return nil, err
	}
	memory, err := d.Load("memory", kernels.Memory)
	if err != nil {
		return nil, err
	}
	for _, l := range []struct {
		to   **Kernel
		m    *Module
		name string
	}{
		{&k.pack[BF16], pack, "pack_bf16"}, {&k.pack[FP8], pack, "pack_fp8"}, {&k.pack[NVFP4], pack, "pack_nvfp4"},
		{&k.split[0], pack, "split_bfloat"}, {&k.split[1], pack, "split_half"},
		{&k.read, memory, "read_memory"}, {&k.fill, memory, "fill_random"},
	} {
		if *l.to, err = l.m.Kernel(l.name); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// portableShared is the shared memory that a block has on every device since
// compute capability 8.6, GB10 among them.
const portableShared = 99 << 10

// Matrix is the weight of a linear layer on the device, [Out, In].
type Matrix struct {
	format  Format
	out, in int
	units   int // along a row
	weights Memory
	factors Memory // float32 [out], empty for BF16
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
	Data  []byte    // BF16: [rows, in] little-endian; FP8: [rows, in]; NVFP4: [rows, in/2], the even column in the lower half
	Scale []byte    // NVFP4: [rows, in/16] e4m3
	Row   []float32 // FP8: [rows] factors
	All   float32   // NVFP4: the factor of the whole part
}

// blank makes room for a matrix in pool.
func (k *Kernels) blank(pool *Pool, format Format, out, in int) (*Matrix, error) {
	f := &formats[format]
	m := &Matrix{format: format, out: out, in: in, units: (in + f.cols - 1) / f.cols}
	var err error
	what := fmt.Sprintf("a matrix of %d × %d in %s", out, in, format)
	tiles := (out + 31) / 32 * 2
	if m.weights, err = pool.Take(what, int64(tiles)*int64(m.units)*int64(f.bytes)); err != nil {
		return nil, err
	}
	if format != BF16 {
		if m.factors, err = pool.Take(what, int64(out)*4); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Matrix packs parts, one above the other, into pool. All but the last have a
// multiple of 16 rows. scratch holds a part's data while it is packed.
func (k *Kernels) Matrix(pool *Pool, scratch Memory, format Format, in int, parts ...Part) (*Matrix, error) {
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
	if err := m.weights.Fill(0); err != nil {
		return nil, err
	}
	factors := make([]float32, 0, out)
	tile := 0
	for _, p := range parts {
		for i := range p.Rows {
			switch format {
			case FP8:
				factors = append(factors, p.Row[i]*formats[format].factor)
			case NVFP4:
				factors = append(factors, p.All*formats[format].factor)
			}
		}
		if err := k.packPart(m, scratch, p, tile); err != nil {
			return nil, err
		}
		tile += p.Rows / 16
	}
	if format != BF16 {
		if err := Upload(m.factors, factors); err != nil {
			return nil, err
		}
	}
	return m, k.device.Wait()
}

// check holds the sizes of a part against the format.
func (p *Part) check(format Format, in int) error {
	if in%16 != 0 {
		return fmt.Errorf("rows of %d values are not a multiple of 16", in)
	}
	want := [...]struct{ data, scale, row int }{
		BF16: {p.Rows * in * 2, 0, 0}, FP8: {p.Rows * in, 0, p.Rows}, NVFP4: {p.Rows * in / 2, p.Rows * in / 16, 0},
	}[format]
	if len(p.Data) != want.data || len(p.Scale) != want.scale || len(p.Row) != want.row {
		return fmt.Errorf("%d × %d values in %s are %d bytes, %d scales and %d factors, not %d, %d and %d",
			p.Rows, in, format, want.data, want.scale, want.row, len(p.Data), len(p.Scale), len(p.Row))
	}
	return nil
}

// packPart packs a part a slab of rows at a time, as many as scratch holds.
func (k *Kernels) packPart(m *Matrix, scratch Memory, p Part, tile int) error {
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
		a := k.device.args.Reset().Pointer(scratch.at)
		if m.format == NVFP4 {
			scales := scratch.Part((int64(n*dataRow)+15)&^15, int64(n*scaleRow))
			if err := Upload(scales, p.Scale[row*scaleRow:(row+n)*scaleRow]); err != nil {
				return err
			}
			a.Pointer(scales.at)
		}
		a.Pointer(m.weights.at).Int(n).Int(m.in).Int(m.units).Int(tile + row/16)
		if err := k.pack[m.format].Launch(Grid{X: (m.units + 3) / 4, Y: (n + 15) / 16, Block: 128}, a); err != nil {
			return err
		}
		if err := k.device.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// Operand is up to [MaxRows] rows of activations as the tensor cores take them:
// high and low 16-bit halves of each float32.
type Operand struct {
	cols, stride int
	half         bool
	values       Memory // 16-bit [2, MaxRows, stride]
	scales       Memory // float32 [MaxRows]
}

// operandColumns is what the columns of an operand are rounded up to: the
// widest unit.
const operandColumns = 128

// Operand makes room for activations of cols columns for matrices of format.
func (k *Kernels) Operand(pool *Pool, format Format, cols int) (*Operand, error) {
	o := &Operand{cols: cols, stride: (cols + operandColumns - 1) / operandColumns * operandColumns, half: formats[format].half}
	var err error
	if o.values, err = pool.Take("activations", int64(2*MaxRows*o.stride*2)); err != nil {
		return nil, err
	}
	o.scales, err = pool.Take("activations", MaxRows*4)
	return o, err
}

// Split sets o to n rows of float32 activations, pitch values apart.
func (k *Kernels) Split(o *Operand, x Memory, n, pitch int) error {
	kernel := k.split[0]
	if o.half {
		kernel = k.split[1]
	}
	a := k.device.args.Reset().Pointer(x.at).Pointer(o.values.at).Pointer(o.scales.at).Int(o.cols).Int(pitch).Int(o.stride)
	return kernel.Launch(Grid{X: n, Block: min(1024, (o.cols+31)/32*32)}, a)
}

// Product is y = x·mᵀ + bias of n rows, n from 1 to [MaxRows].
type Product struct {
	Y     Memory // float32 [n, Pitch]
	Pitch int
	X     *Operand
	M     *Matrix
	Bias  Memory // float32 [Out] or empty
	N     int
	Add   bool // add to y instead of setting it
}

// Linear computes a product.
func (k *Kernels) Linear(p *Product) error { return k.product(p, plan(p.M, p.N)) }

// choice is how a product is divided. Splits are the parts that a row is summed
// in, so they follow from the matrix alone; the rest has no influence on the
// result.
type choice struct {
	variant
	splits  int // warps that share the columns
	abreast int // row groups that a block works on at once, each with its own warps
}

// plan chooses for a product of n rows.
func plan(m *Matrix, n int) choice {
	v := variant{format: m.format, tiles: 2, stages: 3, width: 16}
	if n <= 8 {
		v.width = 8
	}
	if n <= 4 {
		v.width = 4
	}
	return choice{v, splits(m), 1}
}

// splits is how many warps share the columns of a matrix.
func splits(m *Matrix) int { return max(1, min(8, m.units/2)) }

// warps is how many a block has.
func (c choice) warps() int { return c.splits * c.abreast }

// shared is the dynamic shared memory of a block: units on their way and sums.
func (c choice) shared() int {
	columns, buffers := 2*c.width, 2
	switch c.width {
	case 4:
		columns = 8
	case 16:
		buffers = 1
	}
	return c.warps() * c.tiles * (c.stages*formats[c.format].bytes + buffers*16*4*(columns+1))
}

// product launches a product as c says.
func (k *Kernels) product(p *Product, c choice) error {
	m := p.M
	rows := 16 * c.tiles * c.abreast
	blocks := (m.out + rows - 1) / rows
	shared, threads := c.shared(), 32*c.warps()
	kernel := k.linear[c.variant]
	a := k.device.args.Reset().Pointer(m.weights.at).Pointer(m.factors.at).Pointer(p.X.values.at)
	if p.X.half {
		a.Pointer(p.X.scales.at)
	} else {
		a.Pointer(0)
	}
	a.Pointer(p.Bias.at).Pointer(p.Y.at).Int(m.out).Int(m.units).Int(p.N).Int(p.X.stride).Int(p.Pitch).Int(c.splits)
	if p.Add {
		a.Int(1)
	} else {
		a.Int(0)
	}
	return kernel.Launch(Grid{X: min(blocks, k.device.facts.SMs*kernel.resident(threads, shared)), Block: threads,
		Shared: shared, Dependent: k.dependent}, a)
}
