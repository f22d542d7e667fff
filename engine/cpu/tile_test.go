package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"velo/engine/ops"
	"velo/engine/weights"
)

var integerTypes = []weights.Type{weights.Q4_0, weights.Q4_1, weights.Q4_K, weights.Q5_K, weights.Q6_K, weights.Q8_0, weights.NVFP4}

// TestTiles: every set of kernels multiplies quantised weights to the same bits.
func TestTiles(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	const in, out, rows = 768, 53, 7
	x := random(r, rows*in)
	for i := range x {
		switch {
		case i%97 == 0:
			x[i] *= 1000
		case i/group%5 == 3:
			x[i] = 0
		case i/group%5 == 4: // all activations as large as can be
			x[i] = float32(math.Copysign(2, float64(x[i])))
		}
	}
	for _, kind := range integerTypes {
		w := quantisedWeight(r, kind, out, in)
		if kind == weights.Q8_0 { // and codes, −128 included
			for i := 2; i < 34; i++ {
				w.Data[i] = 0x80
			}
		}
		want := product(t, &portable, w, x, rows)
		for _, k := range available() {
			for i, v := range product(t, k, w, x, rows) {
				if v != want[i] || math.IsNaN(float64(v)) {
					t.Fatalf("%v: row %d, column %d is %v with %s and %v with portable code", kind, i/out, i%out, v, k.name, want[i])
				}
			}
		}
	}
}

// product is x·wᵀ with a set of kernels.
func product(t testing.TB, k *kernels, w *ops.Weight, x []float32, rows int) []float32 {
	b := New(Options{Workers: 2})
	defer b.Close()
	b.k = k
	m, err := b.Matrix(w)
	if err != nil {
		t.Fatal(err)
	}
	y := b.Buffer(rows, w.Rows()).(*buffer)
	b.Begin(&ops.Batch{Tokens: make([]int32, rows)})
	b.Linear(ops.All(y), ops.All(&buffer{data: x, cols: w.Cols()}), m, nil)
	return y.data
}

// TestBytes: what Bytes says is what packing takes.
func TestBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	perValue := map[weights.Type]float64{weights.Q4_0: 5. / 8, weights.Q4_1: 5. / 8, weights.Q4_K: 37. / 64, weights.NVFP4: 5. / 8,
		weights.Q8_0: 17. / 16, weights.Q5_K: 69. / 64, weights.Q6_K: 137. / 128}
	for _, k := range available() {
		b := New(Options{Workers: 1})
		b.k = k
		for _, kind := range allTypes {
			const rows, cols = 37, 512
			w := quantisedWeight(r, kind, rows, cols)
			whole := (rows + k.lanes - 1) / k.lanes * k.lanes
			want := int64(perValue[kind] * float64(whole*cols))
			if kind == weights.NVFP4 {
				want += int64(4 * whole)
			}
			m, err := b.Matrix(w)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.Bytes(w); got != want || got != int64(len(m.(*matrix).parts[0].codes)) {
				t.Errorf("%v with %s: %d bytes, not %d; packed are %d", kind, k.name, got, want, len(m.(*matrix).parts[0].codes))
			}
		}
	}
	exact := New(Options{Workers: 1, Exact: true})
	if n := exact.Bytes(quantisedWeight(r, weights.Q4_K, 8, 512)); n != 0 {
		t.Errorf("exact weights take %d more bytes", n)
	}
}

// TestHalfMinimum: the minima of Q4_0 are exact for every scale, those that
// no half can hold included.
func TestHalfMinimum(t *testing.T) {
	for h := range 1 << 16 {
		scale := weights.Float16(uint16(h))
		data := make([]byte, 18)
		data[0], data[1] = byte(h), byte(h>>8)
		if !eightTimesHalf(data) {
			if math.Abs(float64(scale)) < 8192 {
				t.Fatalf("%v is refused", scale)
			}
			continue
		}
		if got := weights.Float16(minusEight(uint16(h))); got != -8*scale {
			t.Fatalf("−8 · %v is %v", scale, got)
		}
	}
	w := quantisedWeight(rand.New(rand.NewPCG(1, 1)), weights.Q4_0, 3, 64)
	w.Data[1] = 0x78 // 2¹⁵
	b := New(Options{Workers: 1})
	m, err := b.Matrix(w)
	if err != nil {
		t.Fatal(err)
	}
	got, want := make([]float32, 64), make([]float32, 64)
	m.(*matrix).row(got, 0)
	w.Row(want, 0)
	for i := range want {
		near(t, "a large scale", got[i], float64(want[i]), 1+math.Abs(float64(want[i])), 1e-6)
	}
}

// BenchmarkTiles multiplies 64 rows of 4096 columns by one and four rows of
// activations.
func BenchmarkTiles(b *testing.B) {
	r := rand.New(rand.NewPCG(25, 26))
	const in, out = 4096, 64
	x := random(r, 4*in)
	for _, k := range available() {
		for _, kind := range integerTypes {
			for _, rows := range []int{1, 4} {
				b.Run(k.name+"/"+kind.String()+"/"+string(rune('0'+rows)), func(b *testing.B) {
					backend := New(Options{Workers: 1})
					backend.k = k
					m, err := backend.Matrix(quantisedWeight(r, kind, out, in))
					if err != nil {
						b.Fatal(err)
					}
					y := backend.Buffer(rows, out).(*buffer)
					backend.Begin(&ops.Batch{Tokens: make([]int32, rows)})
					for b.Loop() {
						backend.Linear(ops.All(y), ops.All(&buffer{data: x, cols: in}), m, nil)
					}
					b.ReportMetric(float64(b.N)*in*out*float64(rows)/b.Elapsed().Seconds()/1e9, "Gmac/s")
				})
			}
		}
	}
}

// BenchmarkPack brings 1024 rows of 4096 columns into tiles.
func BenchmarkPack(b *testing.B) {
	r := rand.New(rand.NewPCG(27, 28))
	for _, kind := range integerTypes {
		w := quantisedWeight(r, kind, 1024, 4096)
		b.Run(kind.String(), func(b *testing.B) {
			backend := New(Options{Workers: 1})
			b.SetBytes(int64(len(w.Data)))
			for b.Loop() {
				if _, err := backend.Matrix(w); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestPacked: what is reckoned before there is a backend is what it will take.
func TestPacked(t *testing.T) {
	b := New(Options{Workers: 1})
	defer b.Close()
	for _, kind := range []weights.Type{weights.Q4_1, weights.Q8_0, weights.Q4_K, weights.Q5_K, weights.Q6_K, weights.BF16} {
		for _, shape := range [][]int{{3, 256}, {40, 512}, {33, 48}} {
			w := &ops.Weight{Type: kind, Shape: shape}
			if got, want := Packed(kind, shape[0], shape[1]), b.Bytes(w); got != want {
				t.Errorf("%v %v: %d bytes reckoned, %d taken", kind, shape, got, want)
			}
		}
	}
}
