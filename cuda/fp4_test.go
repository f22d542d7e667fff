//go:build linux && cuda && cgo

package cuda

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"velo/cuda/kernels"
	"velo/engine/ops"
)

// emulatedFP4 is the module fp4 with its one instruction emulated, so that it runs everywhere.
//
//go:embed testdata/fp4.ptx
var emulatedFP4 []byte

// loadFP4s makes kernels with the FP4 module of each kind that the device can run.
func loadFP4s(t *testing.T, d *Device) map[string]*Kernels {
	t.Helper()
	all := map[string]*Kernels{}
	k := loadKernels(t, d)
	if err := k.loadFP4(emulatedFP4, false); err != nil {
		t.Fatal(err)
	}
	all["emulated"] = k
	if checkFP4(&d.facts) == nil {
		k := loadKernels(t, d)
		if err := k.loadFP4(kernels.FP4(), true); err != nil {
			t.Fatal(err)
		}
		all["real"] = k
	}
	return all
}

// sumsOf says how far a sum of 16 products a block may be off, of the sizes of its terms. Sums
// of 16 are exact if emulated, and each is added with one rounding of float32; the device's own
// sums of 64 may lose a bit more of each, which is allowed for.
func sumsOf(kind string, width int) float64 {
	if kind == "real" {
		return float64(width/16+4) * 0x1p-22
	}
	return float64(width/16+4) * 0x1p-24
}

// nearestOf is the number of the nearest of values, ascending; of two as near the even one.
func nearestOf(values []float64, v float64) int {
	i, found := slices.BinarySearch(values, v)
	switch {
	case found || i == 0:
		return i
	case i == len(values):
		return i - 1
	}
	below, above := v-values[i-1], values[i]-v
	if below < above || below == above && i%2 == 1 {
		return i - 1
	}
	return i
}

// quantisedRow is a row of halves as NVFP4: what kernels/fp4.cu says, computed another way.
func quantisedRow(row []float32) (codes, scales []byte, values []float64) {
	var grid []float64
	for b := range byte(127) {
		grid = append(grid, e4m3(b))
	}
	codes, values = make([]byte, len(row)), make([]float64, len(row))
	for b := range len(row) / 16 {
		block, top := row[16*b:16*b+16], float32(0)
		for _, v := range block {
			top = max(top, float32(math.Abs(float64(v))))
		}
		s := nearestOf(grid, float64(top/48))
		scales = append(scales, byte(s))
		up := float32(0)
		if s > 0 {
			up = 0.125 / float32(grid[s])
		}
		for i, v := range block {
			c := nearestOf(e2m1[:], math.Abs(float64(v*up)))
			values[16*b+i] = e2m1[c] * grid[s] * 8
			codes[16*b+i] = byte(c)
			if math.Signbit(float64(v)) {
				codes[16*b+i] |= 8
				values[16*b+i] = -values[16*b+i]
			}
		}
	}
	return codes, scales, values
}

// halvesOf are rows of an operand in the order of columns, and their factors.
func halvesOf(t *testing.T, o *Operand) (rows [][]float32, factors []float32) {
	t.Helper()
	bytes := make([]byte, 2*o.n*o.width)
	factors = make([]float32, o.n)
	if err := Download(o.values, bytes); err != nil {
		t.Fatal(err)
	}
	if err := Download(o.scales, factors); err != nil {
		t.Fatal(err)
	}
	for n := range o.n {
		row := make([]float32, o.width)
		for i := range row {
			j := i&^63 | i<<2&32 | i>>1&24 | i&7
			row[i] = halfValue(binary.LittleEndian.Uint16(bytes[2*(n*o.width+j):]))
		}
		rows = append(rows, row)
	}
	return rows, factors
}

// checkQuantised holds what quantise made of a row against codes and scales of it.
func checkQuantised(t *testing.T, four []byte, width, row int, codes, scales []byte) {
	t.Helper()
	order := [8]int{2, 6, 0, 4, 3, 7, 1, 5}
	for i := range width / 16 {
		unit := four[(row/16*(width/128)+i/8)*1152:]
		g, tile, half, b := row%8, row/8%2, i/4%2, i%4
		// Blocks 0, 2, 1, 3 are the first to fourth 16 that the tensor cores take.
		slot := [4]int{0, 2, 1, 3}[b]
		if got := unit[1024+(4*g+2*tile+half)*4+slot]; got != scales[i] {
			t.Fatalf("block %d of row %d has the scale %#x, not %#x", i, row, got, scales[i])
		}
		for j := range 16 {
			lane, register := 4*g+slot%2*2+j/8, slot/2
			word := binary.LittleEndian.Uint32(unit[512*tile+16*lane+8*half+4*register:])
			if got := byte(word>>(4*slices.Index(order[:], j%8))) & 15; got != codes[16*i+j] {
				t.Fatalf("column %d of row %d has the code %#x, not %#x", 16*i+j, row, got, codes[16*i+j])
			}
		}
	}
}

// TestFP4 holds products of NVFP4 with NVFP4 against float64 over the same quantised numbers, the
// quantised numbers against their definition bit by bit, and rows against themselves: in every
// tile, among any number of rows.
func TestFP4(t *testing.T) {
	d := open(t, Options{Wait: true})
	p := pool(t, d, 256<<20)
	scratch := take(t, p, 1<<20)
	mark := p.used
	for kind, k := range loadFP4s(t, d) {
		for _, size := range []struct{ in, out int }{{5120, 300}, {128, 16}, {16, 1}, {576, 384}, {17408, 48}, {1040, 260}, {192, 1000}} {
			t.Run(fmt.Sprintf("%s/%d×%d", kind, size.out, size.in), func(t *testing.T) {
				p.used = mark
				seed := rand.Uint64()
				t.Log("seed", seed)
				r := rand.New(rand.NewPCG(seed, 0))
				part, values := randomPart(r, NVFP4, size.out, size.in)
				m, err := k.Matrix(p, scratch, NVFP4, size.in, part)
				if err != nil {
					t.Fatal(err)
				}
				testFP4(t, kind, k, p, r, m, values)
			})
		}
	}
}

func testFP4(t *testing.T, kind string, k *Kernels, p *Pool, r *rand.Rand, m *Matrix, values [][]float64) {
	const distinct, most = 20, 300
	x, bias := randomRows(r, distinct, m.in), make([]float32, m.out)
	clear(x[3*m.in : 3*m.in+min(16, m.in)]) // a block of zeros
	for i := range bias {
		bias[i] = float32(r.NormFloat64())
	}
	many := make([]float32, 0, most*m.in)
	for i := range most {
		many = append(many, x[i%distinct*m.in:][:m.in]...)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	xs, biases := take(t, p, int64(4*len(many))), take(t, p, int64(4*len(bias)))
	check(Upload(xs, many))
	check(Upload(biases, bias))
	o, err := k.Operand(p, m.in, most)
	check(err)
	four := newOutput(t, p, int(fp4Bytes(m.in, most)/4))
	pitch := m.out + 3
	y, wide := newOutput(t, p, most*m.out), newOutput(t, p, most*pitch)
	var all []float32
	for _, n := range []int{most, MaxRows + 1, 64, 65, 129} {
		check(o.values.Fill(0xff))
		check(k.Split(o, xs, n, m.in))
		four.poison(t)
		check(k.quantise(four.all.Part(0, int64(4*four.n)), o))
		for tile := range fp4Tiles {
			y.poison(t)
			check(k.fp4Product(&Product{Y: y.all, Pitch: m.out, X: o, M: m}, four.all, tile))
			got := y.read(t, n*m.out)
			if all == nil {
				all = got[:distinct*m.out]
			}
			for i, v := range got {
				if want := all[i/m.out%distinct*m.out+i%m.out]; v != want {
					t.Fatalf("value %d of row %d of %d is %g in blocks of %s, else %g", i%m.out, i/m.out, n, v, fp4Tiles[tile].name, want)
				}
			}
		}
	}
	check(k.Split(o, xs, distinct, m.in))
	check(k.quantise(four.all, o))
	packed := make([]byte, 4*four.n)
	check(Download(four.all, packed))
	rows, factors := halvesOf(t, o)
	worst := 0.0
	for n, row := range rows {
		codes, scales, quantised := quantisedRow(row)
		checkQuantised(t, packed, o.width, n, codes, scales)
		for i, w := range values {
			want, size := 0.0, 0.0
			for j, v := range w {
				term := v * quantised[j] * float64(factors[n])
				want += term
				size += math.Abs(term)
			}
			// Two factors are multiplied in at the end.
			bound := size*(sumsOf(kind, o.width)+0x1p-22) + 0x1p-149
			off := math.Abs(float64(all[n*m.out+i]) - want)
			if !(off <= bound) {
				t.Fatalf("value %d of row %d is %g, not %g within %g", i, n, all[n*m.out+i], want, bound)
			}
			worst = max(worst, off/bound)
		}
	}
	t.Logf("at most %.2g of what rounding allows", worst)
	// Bias and pitch, then on top of it.
	const n = 70
	check(k.Split(o, xs, n, m.in))
	check(k.quantise(four.all, o))
	check(wide.all.Fill(0))
	for range 2 {
		check(k.fp4Product(&Product{Y: wide.all, Pitch: pitch, X: o, M: m, Bias: biases, Add: true}, four.all, fp4Tile(m.out, n, k.device.facts.SMs)))
	}
	twice := make([]float32, most*pitch)
	check(Download(wide.all, twice))
	for i, got := range twice {
		row, col, want := i/pitch, i%pitch, float32(0)
		if row < n && col < m.out {
			want = all[row%distinct*m.out+col] + bias[col]
			want += want
		}
		if got != want {
			t.Fatalf("value %d of row %d is %g with its bias added twice, not %g", col, row, got, want)
		}
	}
	if err := k.quantise(four.all.Part(0, 1151), o); err == nil {
		t.Error("rows were quantised into too little memory")
	}
}

// TestFP4Exact: where every sum is exact the result is, to the bit, on whatever adds it up.
func TestFP4Exact(t *testing.T) {
	rt := newRowsTest(t)
	scratch := take(t, rt.p, 1<<20)
	mark := rt.p.used
	for kind, k := range loadFP4s(t, rt.k.device) {
		rt.p.used = mark
		const out, in, n = 160, 640, 150
		part, values := randomPart(rt.r, NVFP4, out, in)
		for i := range part.Scale { // ½, 1 or 2
			part.Scale[i] = byte(6+rt.r.IntN(3)) << 3
		}
		part.All = 0.25
		for i := range out * in {
			c := part.Data[i/2] >> (i % 2 * 4)
			v := e2m1[c&7] * e4m3(part.Scale[i/16]) / 4
			if c&8 != 0 {
				v = -v
			}
			values[i/in][i%in] = v
		}
		// Codes times a power of two a block, with a 6 in each: scales are exact, and so are codes.
		x := make([]float32, n*in)
		for i := range x {
			x[i] = float32(e2m1[rt.r.IntN(8)])
			if rt.r.IntN(2) == 0 {
				x[i] = -x[i]
			}
			if i%16 == 0 {
				x[i] = 6
			}
		}
		for b := 1; b < len(x)/16; b++ {
			if b%(in/16) != 0 {
				f := float32(math.Ldexp(1, -rt.r.IntN(3)))
				for i := range 16 {
					x[16*b+i] *= f
				}
			}
		}
		m, err := k.Matrix(rt.p, scratch, NVFP4, in, part)
		rt.check(err)
		o, err := k.Operand(rt.p, in, n)
		rt.check(err)
		four := take(t, rt.p, fp4Bytes(in, n))
		rt.check(k.Split(o, upload(rt, x), n, in))
		rt.check(k.quantise(four, o))
		y := newOutput(t, rt.p, n*out)
		for tile := range fp4Tiles {
			y.poison(t)
			rt.check(k.fp4Product(&Product{Y: y.all, Pitch: out, X: o, M: m}, four, tile))
			for i, got := range y.read(t, n*out) {
				want := 0.0
				for j, w := range values[i%out] {
					want += w * float64(x[i/out*in+j])
				}
				if float64(got) != want {
					t.Fatalf("%s: value %d of row %d is %g, not %g, in blocks of %s", kind, i%out, i/out, got, want, fp4Tiles[tile].name)
				}
			}
		}
	}
}

// TestFP4Steps: linear layers of a backend take the way of FP4 with NVFP4 matrices and more than
// MaxRows rows, and no other way otherwise; layers with the same rows share them.
func TestFP4Steps(t *testing.T) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 0))
	const in, out = 256, 192
	weight := func(format Format) *ops.Weight {
		part, _ := randomPart(r, format, out, in)
		w := &ops.Weight{Name: "w", Type: ops.NVFP4, Shape: []int{out, in}, Data: part.Data, Scale: part.Scale, Global: part.All}
		if format == BF16 {
			w.Type = ops.BF16
		}
		return w
	}
	four, sixteen, table := weight(NVFP4), weight(BF16), weight(BF16)
	results := func(fp4 bool, rows int) [3][]float32 {
		b := newBackend(t, BackendOptions{Rows: 64, Eager: true})
		if fp4 {
			if err := b.k.loadFP4(emulatedFP4, false); err != nil {
				t.Fatal(err)
			}
		}
		var matrices [3]ops.Matrix
		for i, w := range []*ops.Weight{four, sixteen, table} {
			var err error
			if matrices[i], err = b.Matrix(w); err != nil {
				t.Fatal(err)
			}
		}
		x := b.Buffer(64, in)
		var got [3][]float32
		for i := range got {
			y := b.Buffer(64, out)
			batch := &ops.Batch{Segments: []ops.Segment{{Rows: rows, Pages: []int32{0, 0, 0, 0}, State: -1}}}
			for row := range int32(rows) {
				batch.Tokens, batch.Positions = append(batch.Tokens, 7*row%out), append(batch.Positions, row)
			}
			b.Begin(batch)
			all := ops.Tensor{Buffer: x, Heads: 1, Dim: in, Stride: in}
			to := ops.Tensor{Buffer: y, Heads: 1, Dim: out, Stride: out}
			b.Embed(all, matrices[2])
			b.Linear(to, all, matrices[i%2], nil)
			if i == 2 { // on top of the other, which has the same rows
				b.AddLinear(to, all, matrices[1], nil)
				b.AddLinear(to, all, matrices[0], nil)
			}
			got[i] = append(got[i], b.Read(y, rows)...)
		}
		if used := b.fours.bytes > 0; used != fp4 {
			t.Errorf("with FP4 %v, memory for rows in FP4: %v", fp4, used)
		}
		return got
	}
	for _, rows := range []int{MaxRows, MaxRows + 1, 64} {
		plain, fp4 := results(false, rows), results(true, rows)
		for i := range plain {
			same := slices.Equal(plain[i], fp4[i])
			if want := rows <= MaxRows || i == 1; same != want {
				t.Errorf("%d rows, layer %d: the same with FP4 as without: %v", rows, i, same)
			}
			// e2m1 is off by 2⁻³ or so of a number at random, and rows have random signs.
			off, size := 0.0, 0.0
			for j, v := range plain[i] {
				off += math.Pow(float64(fp4[i][j]-v), 2)
				size += float64(v) * float64(v)
			}
			if !(math.Sqrt(off/size) < 0.2) {
				t.Errorf("%d rows, layer %d: off by %.2g of its length", rows, i, math.Sqrt(off/size))
			}
		}
	}
}

// TestFP4Space: what blocks ask for fits on every device of that capability, and operands into
// their memory.
func TestFP4Space(t *testing.T) {
	for i := range fp4Tiles {
		if shared := fp4Shared(i); shared > portableShared || fp4Tiles[i].blocks*(shared+1024) > 100<<10 {
			t.Errorf("%d blocks of %s take %d bytes of shared memory each", fp4Tiles[i].blocks, fp4Tiles[i].name, shared)
		}
		if fp4Tiles[i].across > productGroup {
			t.Errorf("blocks of %s read rows beyond what is set aside", fp4Tiles[i].name)
		}
	}
	for _, c := range []struct {
		cols, rows int
		want       int64
	}{{128, 1, 8 * 1152}, {129, 128, 2 * 8 * 1152}, {17408, 512, 512 * 17408 * 9 / 16}} {
		if got := fp4Bytes(c.cols, c.rows); got != c.want {
			t.Errorf("%d rows of %d values take %d bytes, not %d", c.rows, c.cols, got, c.want)
		}
	}
	if wide, narrow := fp4Tile(34816, 512, 48), fp4Tile(5120, 64, 48); wide != 0 || narrow != 1 {
		t.Errorf("many rows go in blocks of %s, few in %s", fp4Tiles[wide].name, fp4Tiles[narrow].name)
	}
}

// TestFP4Devices: one compute capability has it; for all others there is a sentence.
func TestFP4Devices(t *testing.T) {
	for _, c := range []struct {
		major, minor int
		can          bool
	}{{8, 0, false}, {9, 0, false}, {10, 0, false}, {12, 0, false}, {12, 1, true}, {13, 0, false}} {
		err := checkFP4(&Facts{Name: "a device", Major: c.major, Minor: c.minor})
		if (err == nil) != c.can {
			t.Errorf("%d.%d: %v", c.major, c.minor, err)
		}
		if err != nil && (!strings.HasPrefix(err.Error(), "cannot ") || !strings.Contains(err.Error(), "12.1") || !strings.Contains(err.Error(), "a device")) {
			t.Errorf("not a sentence that helps: %v", err)
		}
	}
	b, err := NewBackend(BackendOptions{FP4: true})
	if err == nil {
		if why := checkFP4(&b.device.facts); why != nil {
			t.Errorf("a backend was made although %v", why)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	} else if !strings.HasPrefix(err.Error(), "cannot ") {
		t.Errorf("not a sentence: %v", err)
	}
}
