//go:build linux && cuda && cgo

package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestProduct holds products of more than MaxRows rows against float64, with the bounds of
// fewer rows, and against each other bit by bit: in every tile, among any number of rows.
func TestProduct(t *testing.T) {
	d := open(t, Options{Wait: true})
	k := loadKernels(t, d)
	p := pool(t, d, 256<<20)
	scratch := take(t, p, 1<<20)
	mark := p.used
	for _, size := range []struct{ in, out int }{{5120, 300}, {128, 16}, {16, 1}, {576, 384}, {17408, 48}, {1040, 260}, {192, 1000}} {
		for _, format := range []Format{F16, FP8, NVFP4, BF16} {
			t.Run(fmt.Sprintf("%v/%d×%d", format, size.out, size.in), func(t *testing.T) {
				p.used = mark
				seed := rand.Uint64()
				t.Log("seed", seed)
				r := rand.New(rand.NewPCG(seed, 0))
				part, values := randomPart(r, format, size.out, size.in)
				m, err := k.Matrix(p, scratch, format, size.in, part)
				if err != nil {
					t.Fatal(err)
				}
				testPrompts(t, k, p, r, m, values)
			})
		}
	}
}

func testPrompts(t *testing.T, k *Kernels, p *Pool, r *rand.Rand, m *Matrix, values [][]float64) {
	const distinct, most = 20, 300
	x, bias := randomRows(r, distinct, m.in), make([]float32, m.out)
	for i := range bias {
		bias[i] = float32(r.NormFloat64())
	}
	many := make([]float32, 0, most*m.in)
	for i := range most {
		many = append(many, x[i%distinct*m.in:][:m.in]...)
	}
	xs, biases := take(t, p, int64(4*len(many))), take(t, p, int64(4*len(bias)))
	if err := Upload(xs, many); err != nil {
		t.Fatal(err)
	}
	if err := Upload(biases, bias); err != nil {
		t.Fatal(err)
	}
	o, err := k.Operand(p, m.in, most)
	if err != nil {
		t.Fatal(err)
	}
	pitch := m.out + 3
	y, wide := newOutput(t, p, most*m.out), newOutput(t, p, most*pitch)
	var all []float32
	for _, n := range []int{MaxRows + 1, 64, 65, 129, most} {
		for tile := range productTiles {
			if err := o.values.Fill(0xff); err != nil {
				t.Fatal(err)
			}
			if err := k.Split(o, xs, n, m.in); err != nil {
				t.Fatal(err)
			}
			y.poison(t)
			if err := k.promptProduct(&Product{Y: y.all, Pitch: m.out, X: o, M: m}, tile); err != nil {
				t.Fatal(err)
			}
			got := y.read(t, n*m.out)
			if n < distinct { // the rows that others are compared with
				continue
			}
			if all == nil {
				all = got[:distinct*m.out]
			}
			for i, v := range got {
				if want := all[i/m.out%distinct*m.out+i%m.out]; v != want {
					t.Fatalf("value %d of row %d of %d is %g in blocks of %s, else %g", i%m.out, i/m.out, n, v, productTiles[tile].name, want)
				}
			}
		}
	}
	worst, length := errorsOfProducts(t, all, x, values, distinct)
	// As in testProducts; a sum is one number all along, so it may lose 2⁻⁴ of 2⁻¹¹.
	if most := 1 + 2/math.Sqrt(float64(m.out)) + 1./16; !(worst <= 1+1./16) || !(length <= most) {
		t.Errorf("in units of 2⁻¹¹, a value is off by %.2g of its terms and a row by %.2g of its length, more than 1.06 and %.2g", worst, length, most)
	}
	// Bias and pitch, then on top of it.
	const n = 70
	if err := k.Split(o, xs, n, m.in); err != nil {
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
	twice := make([]float32, most*pitch)
	if err := Download(wide.all, twice); err != nil {
		t.Fatal(err)
	}
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
}

// TestProductTile: a choice that wastes few rounds of blocks.
func TestProductTile(t *testing.T) {
	for _, c := range []struct{ out, n, want int }{
		{5120, 17, 1}, {34816, 64, 1}, {5120, 512, 1}, {14336, 512, 0}, {16384, 4096, 0}, {24576, 2048, 0},
	} {
		if got := productTile(c.out, c.n, 132); got != c.want {
			t.Errorf("%d × %d rows go in blocks of %s, not of %s", c.out, c.n, productTiles[got].name, productTiles[c.want].name)
		}
	}
}
