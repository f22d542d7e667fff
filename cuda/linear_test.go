//go:build linux && cuda && cgo

package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// e4m3 is the value of an 8-bit float: 4 exponent bits from 7, 3 mantissa bits.
func e4m3(b byte) float64 {
	e, m := int(b>>3&15), float64(b&7)
	v := math.Ldexp(m, -9)
	if e > 0 {
		v = math.Ldexp(8+m, e-10)
	}
	if b&0x80 != 0 {
		return -v
	}
	return v
}

var e2m1 = [8]float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}

// randomPart makes a part of random numbers and their values as float64.
func randomPart(r *rand.Rand, format Format, rows, in int) (Part, [][]float64) {
	p := Part{Rows: rows}
	values := make([][]float64, rows)
	for i := range values {
		values[i] = make([]float64, in)
	}
	switch format {
	case BF16:
		p.Data = make([]byte, rows*in*2)
		for i := range rows * in {
			v := math.Float32bits(float32(r.NormFloat64()*0.05)) >> 16
			binary.LittleEndian.PutUint16(p.Data[2*i:], uint16(v))
			values[i/in][i%in] = float64(math.Float32frombits(v << 16))
		}
	case F16:
		p.Data = make([]byte, rows*in*2)
		for i := range rows {
			p.Row = append(p.Row, float32(math.Exp(r.NormFloat64())*1e-3))
			for j := range in {
				b := halfBits(float32(r.NormFloat64() * 50))
				binary.LittleEndian.PutUint16(p.Data[2*(i*in+j):], b)
				values[i][j] = float64(halfValue(b)) * float64(p.Row[i])
			}
		}
	case FP8:
		p.Data = make([]byte, rows*in)
		for i := range rows {
			p.Row = append(p.Row, float32(math.Exp(r.NormFloat64())*1e-3))
			for j := range in {
				b := byte(r.IntN(256))
				if b&0x7f == 0x7f { // not a number
					b--
				}
				p.Data[i*in+j] = b
				values[i][j] = e4m3(b) * float64(p.Row[i])
			}
		}
	case NVFP4:
		p.Data, p.Scale = make([]byte, rows*in/2), make([]byte, rows*in/16)
		p.All = float32(math.Exp(r.NormFloat64()) * 1e-3)
		for i := range p.Scale {
			switch r.IntN(4) {
			case 0:
				p.Scale[i] = byte(r.IntN(127)) // anything, subnormal and 0 too
			default:
				p.Scale[i] = byte(0x30 + r.IntN(16))
			}
			if r.IntN(50) == 0 {
				p.Scale[i] |= 0x80
			}
		}
		for i := range rows {
			for j := range in {
				c := byte(r.IntN(16))
				p.Data[(i*in+j)/2] |= c << (j % 2 * 4)
				v := e2m1[c&7] * e4m3(p.Scale[(i*in+j)/16]) * float64(p.All)
				if c&8 != 0 {
					v = -v
				}
				values[i][j] = v
			}
		}
	}
	return p, values
}

// randomRows makes activations with a few large ones, as models have them.
func randomRows(r *rand.Rand, n, cols int) []float32 {
	x := make([]float32, n*cols)
	for i := range x {
		x[i] = float32(r.NormFloat64())
		if r.IntN(100) == 0 {
			x[i] *= 300
		}
	}
	for i := range n { // and rows of different size
		f := float32(math.Exp2(float64(r.IntN(40) - 20)))
		for j := range cols {
			x[i*cols+j] *= f
		}
	}
	return x
}

// guard is what the memory behind an output is filled with.
const guard = 0xa5

// output is memory for n values, poisoned, with a guard of 4 KiB behind it.
type output struct {
	all Memory
	n   int
}

func newOutput(t *testing.T, p *Pool, n int) output {
	return output{take(t, p, int64(4*n)+4096), n}
}

func (o output) poison(t *testing.T) {
	t.Helper()
	if err := o.all.Fill(guard); err != nil {
		t.Fatal(err)
	}
	if err := o.all.Part(0, int64(4*o.n)).Fill(0xff); err != nil { // not a number
		t.Fatal(err)
	}
}

// read gives the values, all of which must have been written, and looks whether
// anything was written behind them.
func (o output) read(t *testing.T, n int) []float32 {
	t.Helper()
	bytes := make([]byte, o.all.Bytes())
	if err := Download(o.all, bytes); err != nil {
		t.Fatal(err)
	}
	y := make([]float32, n)
	for i := range y {
		y[i] = math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*i:]))
		if y[i] != y[i] {
			t.Fatalf("value %d was not written", i)
		}
	}
	for i := 4 * n; i < 4*o.n; i++ {
		if bytes[i] != 0xff {
			t.Fatalf("byte %d was written, the output has %d", i, 4*n)
		}
	}
	for i := 4 * o.n; i < len(bytes); i++ {
		if bytes[i] != guard {
			t.Fatalf("byte %d was written, the output has %d", i, 4*n)
		}
	}
	return y
}

// errorOf is by how much a row of y = x·Wᵀ may be off, in units of half's rounding, 2⁻¹¹:
// worst is |got − want| over the sum of the sizes of its terms, which rounding x alone
// keeps under 1, and all is ‖got − want‖ over the length of the row that terms of random
// signs have. What is under 2⁻³⁸ of x's largest number is rounded to a multiple of that
// and not counted in.
func errorOf(got []float32, want, squares, sizes, lost []float64) (worst, all float64) {
	var d, s float64
	for i, w := range want {
		off := max(0, math.Abs(float64(got[i])-w)-lost[i])
		if sizes[i] > 0 {
			worst = max(worst, off/sizes[i])
		}
		d += off * off
		s += squares[i]
	}
	return worst * (1 << 11), math.Sqrt(d/s) * (1 << 11)
}

// errorsOfProducts holds rows of y = x·Wᵀ against float64: x is [rows, columns] and got [rows, rows of W], row by
// row. It gives the largest errors that errorOf gives for a row.
func errorsOfProducts(t *testing.T, got, x []float32, w [][]float64, rows int) (worst, length float64) {
	t.Helper()
	out, in := len(w), len(w[0])
	for n := range rows {
		want, squares, sizes, lost := make([]float64, out), make([]float64, out), make([]float64, out), make([]float64, out)
		row, largest := x[n*in:][:in], 0.0
		for _, v := range row {
			largest = max(largest, math.Abs(float64(v)))
		}
		for i, weights := range w {
			for j, v := range weights {
				term := v * float64(row[j])
				want[i] += term
				squares[i] += term * term
				sizes[i] += math.Abs(term)
				lost[i] += math.Abs(v) * largest / (1 << 38)
			}
		}
		a, b := errorOf(got[n*out:], want, squares, sizes, lost)
		worst, length = max(worst, a), max(length, b)
	}
	t.Logf("in units of 2⁻¹¹: a value is off by %.2g of its terms, a row by %.2g of its length", worst, length)
	return worst, length
}

func TestLinear(t *testing.T) {
	d := open(t, Options{Wait: true})
	k := loadKernels(t, d)
	p := pool(t, d, 256<<20)
	scratch := take(t, p, 1<<20)
	mark := p.used
	for _, size := range []struct {
		in    int
		parts []int
	}{
		{5120, []int{64, 16, 35}}, {128, []int{16}}, {16, []int{1}}, {576, []int{192, 192}}, {17408, []int{48}}, {28672, []int{32}}, {1040, []int{260}}, {256, []int{4160}}, {1024, []int{6400}},
	} {
		for _, format := range []Format{F16, FP8, NVFP4, BF16} {
			t.Run(fmt.Sprintf("%v/%d×%d", format, size.parts, size.in), func(t *testing.T) {
				p.used = mark
				seed := rand.Uint64()
				t.Log("seed", seed)
				r := rand.New(rand.NewPCG(seed, 0))
				var parts []Part
				var values [][]float64
				for _, rows := range size.parts {
					part, v := randomPart(r, format, rows, size.in)
					parts, values = append(parts, part), append(values, v...)
				}
				m, err := k.Matrix(p, scratch, format, size.in, parts...)
				if err != nil {
					t.Fatal(err)
				}
				testProducts(t, k, p, r, m, values)
			})
		}
	}
}

// testProducts holds the products of m with 1 to 16 rows against float64, and
// against each other bit by bit, in every variant.
func testProducts(t *testing.T, k *Kernels, p *Pool, r *rand.Rand, m *Matrix, values [][]float64) {
	x := randomRows(r, MaxRows, m.in)
	xs := take(t, p, int64(4*len(x)))
	if err := Upload(xs, x); err != nil {
		t.Fatal(err)
	}
	bias := make([]float32, m.out)
	for i := range bias {
		bias[i] = float32(r.NormFloat64())
	}
	biases := take(t, p, int64(4*m.out))
	if err := Upload(biases, bias); err != nil {
		t.Fatal(err)
	}
	o, err := k.Operand(p, m.in, MaxRows)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.values.Fill(0xff); err != nil {
		t.Fatal(err)
	}
	pitch := m.out + 3
	y := newOutput(t, p, MaxRows*m.out)
	wide := newOutput(t, p, MaxRows*pitch)
	// All rows at once: the first answer.
	if err := k.Split(o, xs, MaxRows, m.in); err != nil {
		t.Fatal(err)
	}
	y.poison(t)
	if err := k.Linear(&Product{Y: y.all, Pitch: m.out, X: o, M: m}); err != nil {
		t.Fatal(err)
	}
	all := y.read(t, MaxRows*m.out)
	worst, length := errorsOfProducts(t, all, x, values, MaxRows)
	// Rounding errors of x are independent of W's signs: on average over its rows the square
	// of the error is at most that of one rounding, give or take what their number leaves to
	// chance. Float32 sums of up to 28,672 terms add about 10⁻⁵, 2⁻⁵ of 2⁻¹¹.
	if most := 1 + 2/math.Sqrt(float64(m.out)) + 1./32; !(worst <= 1+1./32) || !(length <= most) {
		t.Errorf("in units of 2⁻¹¹, a value is off by %.2g of its terms and a row by %.2g of its length, more than 1.03 and %.2g", worst, length, most)
	}
	// Any number of rows, in any variant, wherever a row stands: the same bits.
	for s := range shapes {
		for n := 1; n <= MaxRows; n++ {
			first := r.IntN(MaxRows - n + 1)
			if err := k.Split(o, xs.Part(int64(4*first*m.in), int64(4*n*m.in)), n, m.in); err != nil {
				t.Fatal(err)
			}
			c := plan(m, n)
			c.shape, k.ways.teams = s, r.IntN(5)
			if c.narrowShared(m.format, n) > portableShared {
				continue
			}
			y.poison(t)
			if err := k.product(&Product{Y: y.all, Pitch: m.out, X: o, M: m}, c); err != nil {
				t.Fatal(err)
			}
			got := y.read(t, n*m.out)
			for i, v := range got {
				if v != all[first*m.out+i] {
					t.Fatalf("%v, %d teams: value %d of row %d is %g among %d rows and %g among %d", shapes[s], k.ways.teams, i%m.out, i/m.out+first, v, n, all[first*m.out+i], MaxRows)
				}
			}
		}
	}
	k.ways.teams = 0
	// Warps that share what they read of x, with and without room for sums of parts: then a
	// block goes through all of them.
	scratch := k.scratch
	for _, bytes := range []int64{scratch.bytes, 0} {
		k.scratch.bytes = bytes
		for _, n := range []int{1, 8, 9, 16} {
			if err := k.Split(o, xs, n, m.in); err != nil {
				t.Fatal(err)
			}
			c := plan(m, n)
			c.shape = wideShape
			y.poison(t)
			if err := k.product(&Product{Y: y.all, Pitch: m.out, X: o, M: m}, c); err != nil {
				t.Fatal(err)
			}
			for i, v := range y.read(t, n*m.out) {
				if v != all[i] {
					t.Fatalf("value %d of row %d is %g when warps share x and %d bytes are there for sums, else %g", i%m.out, i/m.out, v, bytes, all[i])
				}
			}
		}
	}
	k.scratch = scratch
	// Bias and pitch, then on top of it.
	if err := k.Split(o, xs, MaxRows, m.in); err != nil {
		t.Fatal(err)
	}
	if err := wide.all.Fill(0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := k.Linear(&Product{Y: wide.all, Pitch: pitch, X: o, M: m, Bias: biases, Add: true}); err != nil {
			t.Fatal(err)
		}
	}
	twice := make([]float32, MaxRows*pitch)
	if err := Download(wide.all, twice); err != nil {
		t.Fatal(err)
	}
	for n := range MaxRows {
		for i := range pitch {
			want := float32(0)
			if i < m.out {
				want = all[n*m.out+i] + bias[i]
				want += want
			}
			if got := twice[n*pitch+i]; got != want {
				t.Fatalf("value %d of row %d is %g with its bias added twice, not %g", i, n, got, want)
			}
		}
	}
}

// TestFew holds products with a matrix of few rows against float64, and a row among
// others against itself alone.
func TestFew(t *testing.T) {
	rt := newRowsTest(t)
	scratch := take(t, rt.p, 1<<20)
	for _, format := range []Format{BF16, F16} {
		for _, cols := range []int{1024, 5120, 8192, 1043} {
			const out, n, pad = 96, 20, 3
			part, values := randomPart(rt.r, format, out, cols)
			m, err := rt.k.Matrix(rt.p, scratch, format, cols, part)
			rt.check(err)
			if !few(m) {
				t.Fatalf("%d × %d in %v is not computed that way", out, cols, format)
			}
			x, xs := rt.values(n * (cols + pad))
			w, ws := rt.values(cols)
			bias, biases := rt.values(out)
			view := View{xs, cols + pad, 1, 1, cols, cols}
			y := newOutput(t, rt.p, n*out)
			to := View{y.all, out, 0, 1, out, out}
			for _, norm := range []Memory{{}, ws} {
				y.poison(t)
				rt.check(rt.k.Few(&fewProduct{to, view, m, biases, norm, 1e-6, false, n}))
				rt.check(rt.k.Few(&fewProduct{to, view, m, Memory{}, norm, 1e-6, true, n}))
				got := y.read(t, n*out)
				want := make([]float64, n*out)
				for r := range n {
					row, factor := x[r*(cols+pad)+1:][:cols], 1.0
					if norm.bytes > 0 {
						sum := 0.0
						for _, v := range row {
							sum += float64(v) * float64(v)
						}
						factor = 1 / math.Sqrt(sum/float64(cols)+1e-6)
					}
					for o := range out {
						sum := 0.0
						for i, v := range row {
							if norm.bytes > 0 {
								sum += float64(v) * float64(w[i]) * values[o][i]
							} else {
								sum += float64(v) * values[o][i]
							}
						}
						want[r*out+o] = 2*sum*factor + float64(bias[o])
					}
				}
				near(t, fmt.Sprintf("%d × %d in %v", out, cols, format), got, want, 2e-6)
				last := view
				last.Offset += (n - 1) * view.Pitch
				y.poison(t)
				rt.check(rt.k.Few(&fewProduct{to, last, m, biases, norm, 1e-6, false, 1}))
				rt.check(rt.k.Few(&fewProduct{to, last, m, Memory{}, norm, 1e-6, true, 1}))
				for i, v := range y.read(t, out) {
					if v != got[(n-1)*out+i] {
						t.Fatalf("value %d is %g alone and %g among %d rows", i, v, got[(n-1)*out+i], n)
					}
				}
			}
		}
	}
}

// TestSplits holds products of rows that are normalised or gated on their way in
// against those of rows that were before, and those whose blocks do that themselves.
func TestSplits(t *testing.T) {
	rt := newRowsTest(t)
	owned := 0
	scratch := take(t, rt.p, 1<<20)
	for f := range formats {
		for _, cols := range []int{176, 5120, 9001 / 16 * 16, 17408, 28672} {
			const n, pad = 5, 11
			part, _ := randomPart(rt.r, Format(f), 64, cols)
			m, err := rt.k.Matrix(rt.p, scratch, Format(f), cols, part)
			rt.check(err)
			o, err := rt.k.Operand(rt.p, cols, MaxRows)
			rt.check(err)
			x, xs := rt.values(n * (cols + pad))
			_, gates := rt.values(n * (cols + pad))
			_, ws := rt.values(cols)
			view := func(m Memory) View { return View{m, cols + pad, 3, 1, cols, cols} }
			aligned := func(m Memory) View { return View{m, cols + 8, 4, 1, cols, cols} }
			plain := View{take(t, rt.p, int64(4*n*cols)), cols, 0, 1, cols, cols}
			product := func() []float32 {
				out := newOutput(t, rt.p, n*64)
				out.poison(t)
				rt.check(rt.k.Linear(&Product{Y: out.all, Pitch: 64, X: o, M: m}))
				return out.read(t, out.n)
			}
			// own is the first row of the same product with blocks that prepare it.
			own := func(name string, from activations, want []float32) {
				c, ok := rt.k.ownable(m, &from, 1)
				if !ok {
					return
				}
				owned++
				out := newOutput(t, rt.p, 64)
				for c.shape = range shapes {
					if c.ownTeam(m, 1)+ownBytes(m, 1) > rt.k.sharedMost() {
						continue
					}
					for rt.k.ways.teams = range 4 {
						out.poison(t)
						rt.check(rt.k.ownProduct(&Product{Y: out.all, Pitch: 64, M: m}, &from, c))
						for i, v := range out.read(t, out.n) {
							if want[i] != v {
								t.Fatalf("%s in %v of %d columns, %d teams: value %d is %g if blocks prepare the row, else %g", name, Format(f), cols, rt.k.ways.teams, i, v, want[i])
							}
						}
					}
				}
				rt.k.ways.teams = 0
			}
			rt.check(rt.k.splitFrom(o, &activations{x: aligned(xs)}, n))
			own("values", activations{x: aligned(xs)}, product())
			rt.check(rt.k.SplitNorm(o, aligned(xs), ws, 1e-6, n))
			own("norm", activations{source: normSource, x: aligned(xs), norm: ws, eps: 1e-6}, product())
			headed := aligned(xs)
			headed.Dim = 16
			rt.check(rt.k.SplitGated(o, aligned(gates), headed, ws, 1e-6, n))
			own("heads", activations{source: gatedSource, x: headed, gate: aligned(gates), norm: ws, eps: 1e-6}, product())
			for name, run := range map[string]func() ([]float32, []float32){
				"norm": func() ([]float32, []float32) {
					rt.check(rt.k.Norm(plain, view(xs), ws, 1e-6, n))
					rt.check(rt.k.Split(o, plain.Memory, n, cols))
					want := product()
					rt.check(rt.k.SplitNorm(o, view(xs), ws, 1e-6, n))
					return product(), want
				},
				"heads": func() ([]float32, []float32) {
					const dim = 16
					heads := view(xs)
					heads.Heads, heads.Dim, heads.Stride = cols/dim, dim, dim
					normed := plain
					normed.Heads, normed.Dim, normed.Stride = cols/dim, dim, dim
					rt.check(rt.k.SplitGated(o, view(gates), heads, ws, 1e-6, n))
					got := product()
					rt.check(rt.k.Norm(normed, heads, ws, 1e-6, n))
					rt.check(rt.k.SiLU(plain, view(gates), plain, n))
					rt.check(rt.k.Split(o, plain.Memory, n, cols))
					return got, product()
				},
				"silu": func() ([]float32, []float32) {
					rt.check(rt.k.SiLU(plain, view(gates), view(xs), n))
					rt.check(rt.k.Split(o, plain.Memory, n, cols))
					want := product()
					rt.check(rt.k.SplitSiLU(o, view(gates), view(xs), n))
					return product(), want
				},
			} {
				got, once := run()
				for i, v := range once {
					if got[i] != v {
						t.Fatalf("%s within a product in %v of %d columns: value %d of %d is %g, and %g before it", name, Format(f), cols, i, len(x), got[i], v)
					}
				}
			}
		}
	}
	if owned == 0 {
		t.Error("no product prepared its rows")
	}
	if _, err := rt.k.Operand(rt.p, operandMost+1, MaxRows); err == nil {
		t.Error("an operand that does not fit was made")
	}
}
